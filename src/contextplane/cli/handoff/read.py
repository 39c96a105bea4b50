"""`ctx cat pk_...[@N]`: the bytes of a revision, whose SHA-256 is its digest.

`ctx handoff list`: the packs that can be had, one on each line.

From what was typed to the revision of a handoff pack that it names: `pk_<id>`, `pk_<id>@<number>`, or a name.

Opening the place of handoff packs for a verb.

`ctx handoff read`: the page that an agent gets, for a terminal: its code in colour, what moved or is gone marked.

Colour for code on a terminal: comments, strings, numbers and keywords of the common languages, and nothing more.

It knows words and quotes, no grammar. What it is not sure of stays plain; no character is added, lost or changed.
"""

import re
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from contextplane.app.handoff.session import HandoffSession, open_handoffs
from contextplane.app.settings import from_environment
from contextplane.cli.exit import OK
from contextplane.cli.options import LIMIT, NO_LIMIT
from contextplane.cli.output import CommandOutput, clean, quantity
from contextplane.cli.pager import page
from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffNotFound
from contextplane.handoff.freshness import freshness
from contextplane.handoff.page import PageQuery
from contextplane.handoff.reader import SelectedPack, as_id
from contextplane.mcp.tools import render_selected, row_payload
from contextplane.model.catalog import HandoffRow
from contextplane.model.handoff import HandoffHistory
from contextplane.model.ids import HandoffId
from contextplane.model.reference import HandoffRef, parse_reference
from contextplane.model.timestamp import Timestamp

__all__ = ["revision_bytes", "color_code", "find_pack", "handoff_ref", "find_history", "handoff_session", "list_packs", "read_pack"]


def handoff_ref(text: str) -> HandoffRef | None:
    """The reference that a text is; None when it is a name. A name cannot look like an id."""
    if as_id(text.partition("@")[0]) is None:
        return None
    named = parse_reference(text).target
    return named if isinstance(named, HandoffRef) else None


def find_pack(text: str, session: HandoffSession) -> SelectedPack:
    """The revision that is meant. One that is named by its number is found as long as it is kept at all.

    Without a number it is the newest of a pack that can be had: neither deleted nor expired.
    """
    ref = handoff_ref(text.strip())
    if ref is None or ref.revision is None:
        try:
            return session.pack_reader.get(text)
        except HandoffNotFound as error:
            raise _explain_absence(error, ref, session) from None
    return session.pack_reader.get_revision(ref.id, ref.revision)


def find_history(text: str, session: HandoffSession) -> tuple[HandoffId, HandoffHistory]:
    """What happened to the pack that is meant; by its id also when it cannot be had any more."""
    ref = handoff_ref(text.strip())
    handoff_id = ref.id if ref is not None else session.pack_reader.get(text).pack.handoff_id
    return handoff_id, session.pack_reader.history(handoff_id)


def _explain_absence(error: HandoffNotFound, ref: HandoffRef | None, session: HandoffSession) -> HandoffNotFound:
    """Why a pack that was here cannot be had, and what can be read of it all the same."""
    if ref is None:
        return error
    try:
        history = session.pack_reader.history(ref.id)
    except ContextPlaneError:
        return error
    why = f"it was deleted at {history.deleted}" if history.deleted else "its time is over"
    kept = history.newest
    hint = f"its revisions can be read until they are collected: ctx show {ref.id}@{kept.revision}" if kept else None
    return HandoffNotFound(
        why if kept else f"{why}, and it was collected",
        at=str(ref.id),
        hint=hint or f"'ctx handoff log {ref.id}' tells what happened to it",
        details=error.details,
    )


@contextmanager
def handoff_session(output: CommandOutput) -> Iterator[HandoffSession]:
    """The packs of the place that we are in, those of a reference root there taken in."""
    with open_handoffs(from_environment()) as session:
        session.pack_reader  # noqa: B018  it opens the store, if there is one
        if session.platform is not None and session.platform.adopted:
            output.note(f"adopted the store at {clean(session.platform.home.path)}: what was in it is there unchanged")
        yield session


def revision_bytes(ref: HandoffRef, output: CommandOutput) -> bytes:
    with handoff_session(output) as session:
        return session.pack_reader.bytes_of(find_pack(str(ref), session))


_TITLE = 100
_FRESHNESS_COLOR = {"fresh": "green", "expiring_soon": "yellow", "expired": "red"}


def list_packs(args: Namespace, output: CommandOutput) -> int:
    limit = NO_LIMIT if args.all else args.limit or LIMIT
    with handoff_session(output) as session:
        page = session.pack_reader.list(
            status=args.status, freshness=args.freshness, query=args.query, limit=limit, offset=args.offset or 0
        )
        now = session.now()
        _note_refused(session, output)
    wide = max((len(str(row.revision)) for row in page.rows), default=1)
    for row in page.rows:
        output.entry(str(row.id), _line(row, now, wide, output))
    if not page.rows:
        output.line("No handoff packs." if session.platform else "No handoff packs, and no store that could hold any.")
    more = page.total - len(page.rows) - (args.offset or 0)
    if more > 0 and page.rows:
        output.warn(f"{quantity(more, 'pack')} more; --limit N or --all shows them")
    output.answer(
        {
            "packs": [{**row_payload(row, now), "digest": str(row.digest)} for row in page.rows],
            "total": page.total,
            "more": more > 0,
        }
    )
    return OK


def _line(row: HandoffRow, now: Timestamp, wide: int, output: CommandOutput) -> str:
    fresh = freshness(row.expires, now)
    state = f"{fresh.state} {fresh.human}" if fresh.seconds else fresh.state
    title = clean(row.title or row.name or "Untitled")
    title = title if len(title) <= _TITLE else title[: _TITLE - 3] + "..."
    name = f" ({clean(row.name)})" if row.name and row.title else ""
    shown = output.paint(_FRESHNESS_COLOR[fresh.state], f"{state:<17}")
    return f"{row.id}  {row.status:<9}  @{row.revision:<{wide}}  {shown}  {title}{name}"


def _note_refused(session: HandoffSession, output: CommandOutput) -> None:
    """What lies in the reference root and could not be taken in."""
    for name, why in sorted(session.import_result.refused.items()) if session.import_result else ():
        output.note(f"not taken in, and left as it is: {clean(name)}: {clean(why)}")


Paint = Callable[[str, str], str]

_CODE_COLOR = {"comment": "dim", "string": "green", "number": "cyan", "keyword": "magenta"}
_HASH = {"python", "ruby", "bash", "toml", "yaml"}
_DASHES = {"sql"}
_MARKUP = {"html", "markdown"}
_NO_COMMENT = {"json"}
_TICKS = {"javascript", "typescript", "go", "bash", "ruby"}
_WORDS = {
    "python": "and as assert async await break class continue def del elif else except finally for from global if"
    " import in is lambda match case None nonlocal not or pass raise return self True False try while with yield",
    "rust": "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod"
    " move mut pub ref return self Self static struct super trait true type unsafe use where while",
    "go": "break case chan const continue default defer else fallthrough for func go goto if import interface map nil"
    " package range return select struct switch true false type var",
    "sql": "select from where insert into values update set delete create table drop alter index join left right inner"
    " outer on as and or not null is in group by order having limit offset union all distinct with case when then else"
    " end primary key references default begin commit rollback",
    "bash": "if then else elif fi for in do done while until case esac function return local export set unset exit",
    "ruby": "alias and begin break case class def do else elsif end ensure false for if in module next nil not or redo"
    " rescue retry return self super then true undef unless until when while yield",
    "json": "true false null",
    "yaml": "true false null",
    "toml": "true false",
    "protobuf": "syntax package import option message enum service rpc returns repeated optional oneof map reserved",
}
_LIKE_C = (
    "abstract as async await auto boolean bool break byte case catch char class const continue default delete do double"
    " else enum export extends extern final finally float for from fun function goto if implements import in instanceof"
    " int interface internal let long namespace new null nullptr object override package private protected public"
    " return sealed short signed sizeof static struct super switch template this throw throws true false try typedef"
    " typeof union unsigned using val var virtual void volatile when while yield"
)


def color_code(code: str, language: str, paint: Paint) -> str:
    """The code with its parts painted, each line by itself: a part of several lines has its colour on each of them."""
    pattern = _pattern(language)
    if pattern is None:
        return code
    return pattern.sub(lambda match: _paint_lines(match[0], _CODE_COLOR[match.lastgroup or "keyword"], paint), code)


def _paint_lines(text: str, color: str, paint: Paint) -> str:
    return "\n".join(paint(color, line) if line else "" for line in text.split("\n"))


@cache
def _pattern(language: str) -> re.Pattern[str] | None:
    """What is coloured in a language, None where nothing is."""
    if not language or language in {"markdown", "mermaid"}:
        return None
    words = _WORDS.get(language, "" if language in {"html", "css"} else _LIKE_C).split()
    parts = [f"(?P<comment>{_comment(language)})"] if language not in _NO_COMMENT else []
    parts.append(f"(?P<string>{_string(language)})")
    parts.append(r"(?P<number>(?<![\w.])\d[\w.]*)")
    if words:
        parts.append(rf"(?P<keyword>\b(?:{'|'.join(words)})\b)")
    return re.compile("|".join(parts), re.IGNORECASE if language == "sql" else 0)


def _comment(language: str) -> str:
    if language in _HASH:
        return r"(?<![^\s])#[^\n]*"
    if language in _DASHES:
        return r"--[^\n]*|/\*[\s\S]*?(?:\*/|\Z)"
    if language in _MARKUP:
        return r"<!--[\s\S]*?(?:-->|\Z)"
    return r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)" if language != "css" else r"/\*[\s\S]*?(?:\*/|\Z)"


def _string(language: str) -> str:
    """Quotes on one line; those of several lines where a language has them. Rust's lifetimes are no strings."""
    double, single = r'"(?:[^"\\\n]|\\.)*"?', r"'(?:[^'\\\n]|\\.)*'"
    kinds = [double] if language == "rust" else [double, single]
    if language == "python":
        kinds = [r'"""[\s\S]*?(?:"""|\Z)', r"'''[\s\S]*?(?:'''|\Z)", *kinds]
    return "|".join([*kinds, r"`[^`]*(?:`|\Z)"] if language in _TICKS else kinds)


_FENCE = re.compile(r"(?P<run>`{3,}|~{3,})(?P<language>[a-z]*)")
_NUMBERED = re.compile(r"( *[0-9]+: )(.*)", re.DOTALL)
_MARKS = (
    (re.compile(r"\[(?:LEGEND|CONTENT)\]"), "dim"),
    (re.compile(r"#{1,6} .*"), "bold"),
    (re.compile(r"> stale ref: .*"), "red"),
    (re.compile(r"- (?:warning: .*|lines: .* \((?:moved|changed): now .*\))"), "yellow"),
)


def read_pack(args: Namespace, output: CommandOutput) -> int:
    query = PageQuery(
        profile=args.profile or "reviewer",
        limit=args.limit,
        offset=args.offset or 0,
        contains=(args.contains or "").strip() or None,
    )
    with handoff_session(output) as session:
        pack = find_pack(args.ref, session)
        told = render_selected(pack, query, session)
    output.answer({**told.structured, "digest": str(pack.digest), "markdown": told.text})
    if not output.json:
        text = "\n".join(_lines(told.text.removesuffix("\n"), output))
        output.entry(text, text) if output.quiet else page(text, output)
    return OK


def _lines(text: str, output: CommandOutput) -> Iterator[str]:
    """The page, line by line. No byte of it speaks to the terminal but the colours that are given here."""
    lines = iter([_clean_tabs(line) for line in text.split("\n")])
    for line in lines:
        fence = _FENCE.fullmatch(line)
        if not output.color or not fence:
            color = next((color for mark, color in _MARKS if mark.fullmatch(line)), None)
            yield output.paint(color, line) if color else line
            continue
        yield output.paint("dim", line)
        inside, end = _split_fence(lines, fence["run"])
        yield from _code(inside, fence["language"], output)
        yield output.paint("dim", end)


def _split_fence(lines: Iterator[str], run: str) -> tuple[list[str], str]:
    """What stands up to the fence that closes, and that fence."""
    inside: list[str] = []
    for line in lines:
        if line.startswith(run) and not line.strip(run[0]):
            return inside, line
        inside.append(line)
    return inside, ""


def _code(lines: list[str], language: str, output: CommandOutput) -> Iterator[str]:
    numbers = [_NUMBERED.fullmatch(line) for line in lines]
    if not all(numbers):
        yield from color_code("\n".join(lines), language, output.paint).split("\n") if lines else ()
        return
    code = "\n".join([number[2] for number in numbers if number])
    for number, line in zip(numbers, color_code(code, language, output.paint).split("\n"), strict=False):
        yield output.paint("dim", number[1] if number else "") + line


def _clean_tabs(line: str) -> str:
    # A tab is the one control character that texts are made with, and does no harm.
    return "\t".join(map(clean, line.split("\t")))
