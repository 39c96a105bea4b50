"""Take away what an environment pins for an id, or a name for people.

PACK is the id of a pack or of a decision catalog. The overlays that are pinned on it stay, for whatever is
pinned next; --overlay takes away one of them, and leaves the pack. With --alias, ENV is a name that no
version of PACK has from now on. The version itself stays what it is.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import Screen, clean
from contextplane.cli.registry.act import add_reason, add_signing, at_desk, base_id, by

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("environment", metavar="ENV", help="the environment; with --alias, the name")
    parser.add_argument("pack", metavar="PACK", help="the id, without a version")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--overlay", metavar="ID", help="only this overlay")
    what.add_argument("--alias", action="store_true", help="take away the name")
    add_reason(parser, required=True)
    add_signing(parser)


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.registry.pins import alias_dropped, unpinned
    from contextplane.cli.registry.render import tell_pin

    with at_desk(args, screen) as desk:
        if args.alias:
            alias_dropped(desk, base_id(args.pack), args.environment, by=by(desk, args))
            screen.say(f"No version of {clean(args.pack)} is called {clean(args.environment)} any more.")
            screen.answer({"alias": args.environment, "id": args.pack})
            return OK
        act = unpinned(desk, args.environment, base_id(args.pack), args.overlay, by(desk, args))
    tell_pin(act, "is no longer pinned in", screen, pinned=False)
    return OK
