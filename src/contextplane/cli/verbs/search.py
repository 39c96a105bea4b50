"""Find execution packs by their words.

All words must occur in one place, within 16 KiB: a prompt, the parameters or output of a step, an output, or the
metadata (model, tools, names, environment).

  "two words"    words in quotes must follow each other
  refun*         a * stands for the rest of a word

Case and accents are ignored, and no other character is special. The first MiB of each text is searched. Binary
contents and inputs are not searched, nor contents that were damaged when they were indexed, until the run is packed or
imported again. The pack that was indexed last comes first. 'ctx cat REF:PART' prints the place, 'ctx show REF' the
metadata.

Examples:
  ctx search refund limit              both words in one place
  ctx search '"refund the order"'      a phrase
"""

import re
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.options import LIMIT, NO_LIMIT, limit_of
from contextplane.cli.output import CommandOutput, clean, quantity

if TYPE_CHECKING:
    from contextplane.app.execution.history import RunHit

__all__ = ["add_arguments", "run"]

_MARKED, _SPACE = re.compile("[\x02\x03]"), re.compile(r"[ \t\r\n]+")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", help="the words to find")
    how_many = parser.add_mutually_exclusive_group()
    how_many.add_argument("--limit", type=limit_of, metavar="N", help=f"at most N places (default: {LIMIT})")
    how_many.add_argument("--all", action="store_true", help="list all")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.execution.history import SEARCHED, search_runs
    from contextplane.cli.store import open_store

    limit = NO_LIMIT if args.all else args.limit or LIMIT
    with open_store(output) as platform:
        result = search_runs(platform, " ".join(args.text), limit)
    for hit in result.hits:
        problem = _problem(hit)
        output.entry(f"ctx://{hit.hit.pack.hex}:{clean(hit.hit.part)}", _line(hit, problem, output), problem)
    if not result.hits:
        output.line("Nothing found.")
    if result.more:
        output.warn(f"{quantity(limit, 'place')} listed, there are more: use --limit N or --all")
    if result.left_out:
        output.note("binary contents were not searched, and large texts only up to the first MiB")
    if result.unread:
        output.note("contents that were damaged when they were indexed were not searched ('ctx fsck' lists all damage)")
    output.answer(
        {
            "hits": [_hit_json(hit) for hit in result.hits],
            "more": result.more,
            "left_out": result.left_out or result.unread,
            "searched_bytes_of_each": SEARCHED,
        }
    )
    return OK


def _problem(hit: "RunHit") -> str:
    from contextplane.app.damage import DAMAGE_LABEL

    return DAMAGE_LABEL[hit.damage] if hit.damage is not None else ""


def _line(hit: "RunHit", problem: str, output: CommandOutput) -> str:
    """Return a place and the text around the words. Every second piece of a snippet is one of the words."""
    pieces = [clean(piece) for piece in _MARKED.split(_SPACE.sub(" ", hit.hit.snippet).strip())]
    snippet = "".join(output.paint("bold", piece) if n % 2 else piece for n, piece in enumerate(pieces))
    mark = output.paint("red", f"  [{problem}]") if problem else ""
    return f"{hit.hit.pack.hex[:12]}:{clean(hit.hit.part)}{mark}  {snippet}"


def _hit_json(hit: "RunHit") -> dict[str, object]:
    return {
        "ref": f"ctx://{hit.hit.pack.hex}",
        "part": hit.hit.part,
        "snippet": _MARKED.sub("", hit.hit.snippet),
        "problem": _problem(hit) or None,
        "damage": hit.damage,
    }
