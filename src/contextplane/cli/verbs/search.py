"""Find execution packs by the words in them.

All words must stand in one place, within 16 KiB of it: a prompt, the parameters or the output of a step, an
output, or the metadata (model, tools, names, environment). Words in quotes must follow each other
('"refund the order"'), and a * stands for the rest of a word (refun*). Case and accents do not count, and
nothing else has a meaning of its own.
Searched is text, the first mebibyte of each content; what is not text is not, nor are inputs, nor what was
damaged when it was indexed, until packing or importing the run puts it back. The pack that was indexed last
comes first. 'ctx cat REF:PART' reads the place, 'ctx show REF' the metadata. A pack whose manifest was
tampered with since, is missing or is unreadable is marked.
"""

import re
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.options import LIMIT, NO_LIMIT, limit_of
from contextplane.cli.output import CommandOutput, clean, quantity

if TYPE_CHECKING:
    from contextplane.app.platform import Platform
    from contextplane.model.catalog import SearchHit
    from contextplane.model.ids import Digest
    from contextplane.store.damage import Damage

__all__ = ["add_arguments", "run"]

_MARKED, _SPACE = re.compile("[\x02\x03]"), re.compile(r"[ \t\r\n]+")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", help="the words to find")
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--limit", type=limit_of, metavar="N", help=f"at most N places (default: {LIMIT})")
    how_many.add_argument("--all", action="store_true", help="all of them")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.cli.store import open_store
    from contextplane.store.index import LEFT_OUT, SEARCHED, UNREAD

    limit = NO_LIMIT if args.all else args.limit or LIMIT
    with open_store(output) as platform:
        with platform.catalog.read() as view:
            hits = view.texts.search(" ".join(args.text), limit + 1)
            left_out = view.marks.get(LEFT_OUT) is not None
            unread = next(view.marks.names(UNREAD), None) is not None
        cut, hits = len(hits) > limit, hits[:limit]
        damages = {pack: _damage(pack, platform) for pack in dict.fromkeys(hit.pack for hit in hits)}
    for hit in hits:
        problem = _mark(damages[hit.pack])
        output.entry(f"ctx://{hit.pack.hex}:{clean(hit.part)}", _line(hit, problem, output), problem)
    if not hits:
        output.line("Nothing found.")
    if cut:
        output.warn(f"{quantity(limit, 'place')} listed, and there are more: --limit N or --all lists them")
    if left_out:
        output.note("contents that are not text were not searched, and of large ones the first mebibyte only")
    if unread:
        output.note("contents that were damaged when they were indexed were not searched ('ctx fsck' lists all damage)")
    told = [_told(hit, damages[hit.pack]) for hit in hits]
    output.answer({"hits": told, "more": cut, "left_out": left_out or unread, "searched_bytes_of_each": SEARCHED})
    return OK


def _damage(pack: "Digest", platform: "Platform") -> "Damage | None":
    """What became of a manifest since it was indexed, if it is not what it was."""
    from contextplane.store.damage import damage_in

    return damage_in(platform.objects.check(pack))


def _mark(damage: "Damage | None") -> str:
    from contextplane.store.damage import DAMAGE_LABEL

    return DAMAGE_LABEL[damage] if damage is not None else ""


def _line(hit: "SearchHit", problem: str, output: CommandOutput) -> str:
    """A place, and the text around the words, on one line; every other piece of a snippet is one of the words."""
    pieces = [clean(piece) for piece in _MARKED.split(_SPACE.sub(" ", hit.snippet).strip())]
    snippet = "".join(output.paint("bold", piece) if n % 2 else piece for n, piece in enumerate(pieces))
    mark = output.paint("red", f"  [{problem}]") if problem else ""
    return f"{hit.pack.hex[:12]}:{clean(hit.part)}{mark}  {snippet}"


def _told(hit: "SearchHit", damage: "Damage | None") -> dict[str, object]:
    return {
        "ref": f"ctx://{hit.pack.hex}",
        "part": hit.part,
        "snippet": _MARKED.sub("", hit.snippet),
        "problem": _mark(damage) or None,
        "damage": damage,
    }
