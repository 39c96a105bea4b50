"""One page of a pack, as markdown and as data: the LEGEND, the summary of the compact profiles, and some chunks.

It reads no file and no clock: what refs point at is looked up by a function that is handed in, at most once for each
ref, and only for refs that are shown or whose text must be searched.

The pieces that a page is made of: refs and diagrams, and the text of sections that have neither.

Which chunks have a text, as a page would show each of them alone, whatever the case of its letters.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

from contextplane.handoff.finalize import verdict
from contextplane.handoff.freshness import Freshness, freshness
from contextplane.handoff.markdown import block, code_block, fenced, one_line
from contextplane.handoff.page import PageQuery
from contextplane.handoff.source import Looked
from contextplane.handoff.summary import signals
from contextplane.model.handoff import Diagram, HandoffPack, Lines, Ref, Section
from contextplane.model.json.canonical import Json
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = [
    "Chunk",
    "Rendered",
    "Search",
    "chunks",
    "described",
    "heading",
    "rendered",
    "rendered_chunk",
    "said_anyway",
    "section_head",
]

_UNGROUPED = "ungrouped"
_LONGEST_TITLE = 140
_LANGUAGES = {
    **dict.fromkeys(("ts", "tsx"), "typescript"),
    **dict.fromkeys(("js", "jsx"), "javascript"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cpp", "cc", "cxx", "hpp"), "cpp"),
    **dict.fromkeys(("sh", "bash"), "bash"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("html", "htm"), "html"),
    **{name: name for name in ("go", "java", "toml", "json", "sql", "css")},
    "rs": "rust",
    "py": "python",
    "kt": "kotlin",
    "cs": "csharp",
    "rb": "ruby",
    "md": "markdown",
    "proto": "protobuf",
}


class Chunk(Value, frozen=True):
    """One piece of a section: a ref in its group, a diagram, or (neither) the section's own text."""

    section: Section
    group: str = ""
    ref: Ref | None = None
    diagram: Diagram | None = None

    @property
    def kind(self) -> Literal["text", "ref", "diagram"]:
        return "ref" if self.ref else "diagram" if self.diagram else "text"


def chunks(pack: HandoffPack) -> tuple[Chunk, ...]:
    """Every piece of a pack, in document order; within a section groups by name, then diagrams."""
    return tuple(chunk for section in pack.sections for chunk in _of_section(section))


def _of_section(section: Section) -> list[Chunk]:
    refs = sorted(((ref.group or _UNGROUPED, ref) for ref in section.refs), key=lambda grouped: grouped[0])
    chunks = [Chunk(section=section, group=group, ref=ref) for group, ref in refs]
    chunks += [Chunk(section=section, diagram=diagram) for diagram in section.diagrams]
    return chunks or [Chunk(section=section)]


def section_head(section: Section) -> str:
    """What stands over the first chunk of a section on a page."""
    description = block(section.description or "")
    return f"\n## {one_line(section.title)} [{one_line(section.key)}]\n" + (f"\n{description}\n" if description else "")


def heading(chunk: Chunk) -> str:
    """What stands over the first chunk of a group, or over the first diagram."""
    if chunk.ref:
        return f"\n### group: {one_line(chunk.group)}\n"
    return "\n### Diagrams\n" if chunk.diagram else ""


def rendered_chunk(chunk: Chunk, looked: Looked | None, *, compact: bool) -> str:
    """The chunk as the page shows it, below its headings. `looked` is what was found of a ref."""
    if chunk.ref and looked:
        head, tail = _of_ref(chunk, chunk.ref)
        now = f" ({looked.state}: now {_range(looked.lines)})" if looked.lines and _is_elsewhere(looked) else ""
        stale = f"\n> stale ref: {one_line(looked.why)}\n" if looked.stale else ""
        first = looked.lines.start if looked.lines else 1
        code = "" if compact or not looked.code else f"\n{code_block(looked.code, first, _language(chunk.ref))}\n"
        return f"{head}{now}\n{tail}{stale}{code}"
    return _of_diagram(chunk.diagram) if chunk.diagram else ""


def said_anyway(chunk: Chunk) -> tuple[str, ...]:
    """What the chunk says below its section's head wherever its lines are now, in parts, from the top."""
    if chunk.ref is None:
        return (heading(chunk) + rendered_chunk(chunk, None, compact=True),)
    head, tail = _of_ref(chunk, chunk.ref)
    return heading(chunk) + head, tail


def described(chunk: Chunk, looked: Looked | None) -> dict[str, Json]:
    """The chunk for machines."""
    said: dict[str, Json] = {"section_key": chunk.section.key, "kind": chunk.kind, "key": chunk.section.key}
    said |= {"section_title": _cut(chunk.section.title)}
    if chunk.diagram:
        said |= {"key": chunk.diagram.key, "title": chunk.diagram.title, "why": chunk.diagram.why}
    if chunk.ref and looked:
        ref = chunk.ref
        said |= {"key": ref.key, "title": ref.title, "why": ref.why, "group": chunk.group, "path": ref.path}
        said |= {"lines": _numbers(ref.lines), "state": looked.state, "stale": looked.stale}
        said |= {"now_lines": _numbers(looked.lines) if looked.lines else None, "reason": looked.why or None}
    return said


def _cut(title: str) -> str:
    """A section's title as each of its chunks repeats it: however long it is, the answer stays in proportion."""
    return title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "\u2026"


def _of_ref(chunk: Chunk, ref: Ref) -> tuple[str, str]:
    """What is said of a ref before and after what has become of its lines."""
    title, why = one_line(ref.title or ""), one_line(ref.why or "")
    return (
        f"\n#### {one_line(ref.key)} [{one_line(chunk.section.key)}]\n"
        + (f"**{title}**\n\n" if title else "")
        + f"- path: {one_line(ref.path)}\n- lines: {_range(ref.lines)}",
        f"- why: {why}\n" if why else "",
    )


def _of_diagram(diagram: Diagram) -> str:
    why = one_line(diagram.why or "")
    drawing = fenced(diagram.mermaid, "mermaid")
    return f"\n#### {one_line(diagram.title)}\n" + (f"_{why}_\n\n" if why else "") + f"{drawing}\n"


def _is_elsewhere(looked: Looked) -> bool:
    return looked.state in ("moved", "changed")


def _range(lines: Lines) -> str:
    return f"{lines.start}-{lines.end}"


def _numbers(lines: Lines) -> dict[str, Json]:
    return {"start": lines.start, "end": lines.end}


def _language(ref: Ref) -> str:
    return _LANGUAGES.get(ref.path.rpartition(".")[2], "")


class Search:
    """One text that is sought in the chunks of one pack. The head of a section is made once for all of its chunks."""

    def __init__(self, contains: str, *, compact: bool) -> None:
        self._needle = contains.casefold()
        self._compact = compact
        self._heads: dict[str, str] = {}

    def finds(self, chunk: Chunk, look: Callable[[], Looked | None]) -> bool:
        """Whether the chunk has it. `look` is called only when what is said anyway does not decide."""
        head = self._head(chunk.section)
        if self._needle in head:
            return True
        edge = head[-len(self._needle) :]  # it may begin in the head and end below
        first, *others = (said.casefold() for said in said_anyway(chunk))
        if self._needle in edge + first or any(self._needle in other for other in others):
            return True
        if chunk.ref is None:
            return False
        shown = heading(chunk) + rendered_chunk(chunk, look(), compact=self._compact)
        return self._needle in edge + shown.casefold()

    def _head(self, section: Section) -> str:
        if section.key not in self._heads:
            self._heads[section.key] = section_head(section).casefold()
        return self._heads[section.key]


Look = Callable[[Ref], Looked]

_SIGNALS = 3
_HINTS = 5
_PARTIAL = ("compact page is partial; continue via LEGEND next_page_token",)


class Rendered(Value, frozen=True):
    """A page for people and models, and the same for machines."""

    text: str
    structured: dict[str, Json]


class _Page(Value, frozen=True):
    """The chunks of a page with what was found of their refs, and its place among all that match."""

    shown: tuple[tuple[Chunk, Looked | None], ...]
    offset: int
    total: int
    token: str | None

    @property
    def stale(self) -> list[str]:
        return [chunk.ref.key for chunk, looked in self.shown if chunk.ref and looked and looked.stale]


class _Facts(Value, frozen=True):
    """What a page says of the pack beside its chunks."""

    fresh: Freshness
    selected_by: str
    verdict: str | None
    risks: list[str]
    gaps: list[str]


def rendered(  # noqa: PLR0913  all that a page depends on is handed in
    pack: HandoffPack,
    query: PageQuery,
    *,
    now: Timestamp,
    selected_by: str,
    look: Look,
    token: Callable[[int], str],
) -> Rendered:
    """The page of the pack that is asked for. `token` makes the page token that goes on at an offset."""
    page = _page(pack, query, look=look, token=token)
    fresh = freshness(pack.expires, now)
    told = signals(pack)
    most = _SIGNALS if query.compact else None
    facts = _Facts(
        fresh=fresh,
        selected_by=selected_by,
        verdict=verdict(pack),
        risks=[*_page_risks(page, fresh), *told.risks][:most],
        gaps=[*told.gaps, *(_PARTIAL if query.compact and page.token else ())][:most],
    )
    legend = "".join(f"- {name}: {value}\n" for name, value in _legend(pack, query, page, facts))
    summary = "\n".join(_summary(pack, page, facts)) + "\n" if query.compact else ""
    content = "".join(_content(page, compact=query.compact)) or "\n_No chunks matched current filters._\n"
    return Rendered(
        text=f"[LEGEND]\n# Context pack: {_objective(pack)}\n\n{legend}\n[CONTENT]\n{summary}{content}",
        structured=_structured(pack, query, page, facts),
    )


def _page(pack: HandoffPack, query: PageQuery, *, look: Look, token: Callable[[int], str]) -> _Page:
    seen: dict[int, Looked] = {}
    found = chunks(pack)

    def looked(at: int) -> Looked | None:
        ref = found[at].ref
        if ref is not None and at not in seen:
            seen[at] = look(ref)
        return seen.get(at)

    matching = list(range(len(found)))
    if query.contains:
        search = Search(query.contains, compact=query.compact)
        matching = [at for at in matching if search.finds(found[at], partial(looked, at))]
    start = min(query.offset, len(matching))
    end = len(matching) if query.most is None else min(start + query.most, len(matching))
    return _Page(
        shown=tuple((found[at], looked(at)) for at in matching[start:end]),
        offset=start,
        total=len(matching),
        token=token(end) if end < len(matching) else None,
    )


def _objective(pack: HandoffPack) -> str:
    return one_line(pack.heading) or "Untitled"


def _expires(pack: HandoffPack) -> str:
    return str(pack.expires).removesuffix("Z") + "+00:00"


def _legend(pack: HandoffPack, query: PageQuery, page: _Page, facts: _Facts) -> Iterator[tuple[str, object]]:
    """The fields of the LEGEND, in their order. Each is one line, whatever its text."""
    yield "id", one_line(pack.id)
    if pack.name:
        yield "name", one_line(pack.name)
    yield "status", pack.status
    yield "revision", pack.revision
    yield "expires_at", _expires(pack)
    yield "ttl_remaining", facts.fresh.human
    yield "freshness_state", facts.fresh.state
    if facts.fresh.warning:
        yield "warning", facts.fresh.warning
    if pack.tags:
        yield "tags", ", ".join(map(one_line, pack.tags))
    if pack.brief:
        yield "brief", one_line(pack.brief)
    yield "profile", query.profile
    if query.compact:
        yield "mode", "compact"
    if query.contains:
        yield "contains", one_line(query.contains)
    if query.paged:
        yield "paging", "active"
        yield "offset", page.offset
        yield "limit", query.most or "all"
        yield "has_more", "true" if page.token else "false"
        yield "next_page_token", page.token or "null"
        yield "chunks_total", page.total
        yield "chunks_returned", len(page.shown)
    yield "selected_by", facts.selected_by
    yield "selected_revision", pack.revision
    yield "selected_status", pack.status


def _summary(pack: HandoffPack, page: _Page, facts: _Facts) -> Iterator[str]:
    fresh = facts.fresh
    yield "\n## Handoff summary [handoff]"
    yield f"- objective: {_objective(pack)}"
    yield f"- scope: {_scope(pack)}"
    # Foreign text comes last and quoted: what it says of a status is not the first one that is found.
    yield f"- verdict_status: status={pack.status}, freshness_state={fresh.state}, verdict={_quoted(facts.verdict)}"
    yield f"- freshness: expires_at={_expires(pack)}, ttl_remaining={fresh.human}"
    yield "- top_risks:"
    yield from (f"  - {risk}" for risk in facts.risks or ["none explicitly signaled"])
    yield "- top_gaps:"
    yield from (f"  - {gap}" for gap in facts.gaps or ["none explicitly tagged"])
    yield "- deep_nav_hints:"
    read = f'{{"action":"read","id":"{one_line(pack.id)}","profile":"reviewer"}}'
    yield f"  - full_evidence: output read {read}"
    if page.token:
        yield "  - continue_compact: call output read with LEGEND `next_page_token`"
    sections = [f"{one_line(section.title)}[{one_line(section.key)}]" for section in pack.sections]
    yield f"  - sections: {_some(sections)}"
    yield f"  - refs_on_page: {_some([one_line(chunk.ref.key) for chunk, _ in page.shown if chunk.ref])}"


def _quoted(text: str | None) -> str:
    return "none" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _some(names: list[str]) -> str:
    return ", ".join(list(dict.fromkeys(names))[:_HINTS]) or "none"


def _scope(pack: HandoffPack) -> str:
    titles = [title for title in (one_line(section.title) for section in pack.sections) if title]
    scope = f"sections in scope: {_some(titles)}" if titles else "scope is not explicitly documented in pack brief"
    return one_line(pack.brief or "") or scope


def _page_risks(page: _Page, fresh: Freshness) -> Iterator[str]:
    if fresh.warning:
        yield f"freshness: {fresh.warning}"
    if page.stale:
        yield f"stale refs: {', '.join(map(one_line, page.stale[:_SIGNALS]))}"


def _content(page: _Page, *, compact: bool) -> Iterator[str]:
    """The chunks, each section's head and each heading once on the page, before the first that stands under it."""
    section, over = None, ""
    for chunk, looked in page.shown:
        if chunk.section is not section:
            section, over = chunk.section, ""
            yield section_head(section)
        above = heading(chunk)
        if above != over:
            over = above
            yield above
        yield rendered_chunk(chunk, looked, compact=compact)


def _structured(pack: HandoffPack, query: PageQuery, page: _Page, facts: _Facts) -> dict[str, Json]:
    return {
        "id": pack.id,
        "name": pack.name,
        "title": pack.title,
        "revision": pack.revision,
        "status": pack.status,
        "freshness_state": facts.fresh.state,
        "expires_at": pack.expires_at,
        "ttl_remaining": facts.fresh.human,
        "warning": facts.fresh.warning,
        "profile": query.profile,
        "mode": "compact" if query.compact else "full",
        "paging": {
            "offset": page.offset,
            "limit": query.most,
            "has_more": page.token is not None,
            "next_page_token": page.token,
            "chunks_total": page.total,
            "chunks_returned": len(page.shown),
        },
        "selected_by": facts.selected_by,
        "verdict": facts.verdict,
        "risks": list(facts.risks),
        "gaps": list(facts.gaps),
        "chunks": [described(chunk, looked) for chunk, looked in page.shown],
    }
