"""Find execution packs by the words in them.

All words must stand in one place, within 16 KiB of it: a prompt, the parameters or the output of a step, an
output, or the metadata (model, tools, names, environment). Searched is text, the first mebibyte of each
content; what is not text is not. The pack that was indexed last comes first. 'ctx cat REF:PART' reads the
place.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.screen import Screen, clean, counted

__all__ = ["add_arguments", "run"]

_MOST = 50


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", help="the words to find")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.cli.opening import opening

    with opening(screen) as platform, platform.catalog.read() as view:
        hits = view.texts.search(" ".join(args.text), _MOST + 1)
    cut, hits = len(hits) > _MOST, hits[:_MOST]
    for hit in hits:
        before, _, rest = hit.snippet.partition("\x02")
        found, _, after = rest.partition("\x03")
        line = clean(before) + screen.paint("bold", clean(found)) + clean(after.replace("\x02", "").replace("\x03", ""))
        screen.say(f"{hit.pack.hex[:12]}:{clean(hit.part)}  {line}")
    if not hits:
        screen.say("Nothing found.")
    if cut:
        screen.note(f"only the first {counted(_MOST, 'place')}; more words narrow it down")
    screen.answer(
        {
            "hits": [
                {
                    "ref": f"ctx://{hit.pack.hex}",
                    "part": hit.part,
                    "snippet": hit.snippet.replace("\x02", "").replace("\x03", ""),
                }
                for hit in hits
            ],
            "more": cut,
        }
    )
    return OK
