"""`ctx diff OLD NEW`: two context packs, by layer, with the least version class of the change."""

from argparse import Namespace

from contextplane.app.packs.diff import packs_compared
from contextplane.app.packs.files import pack_from
from contextplane.app.registry.view import version_from
from contextplane.authoring.source_file import Authored
from contextplane.authoring.version_class import Comparison
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.output import Screen, clean, counted
from contextplane.cli.registry.act import at_desk, names_file
from contextplane.cli.render.packs import answer, tell

__all__ = ["diff"]


def diff(args: Namespace, screen: Screen) -> int:
    """Each side is a file or a version of the registry; two files are compared without a store."""
    old, new = _packs((args.a, args.b), args, screen)
    comparison = packs_compared(old, new)
    _tell(comparison, old, new, screen)
    screen.answer({"file_a": args.a, "file_b": args.b, **answer(comparison)})
    return DRIFT if args.exit_code and not comparison.same else OK


def _packs(named: tuple[str, str], args: Namespace, screen: Screen) -> list[Authored]:
    if all(map(names_file, named)):
        return [pack_from(one) for one in named]
    with at_desk(args, screen) as desk:
        return [pack_from(one) if names_file(one) else version_from(desk, one) for one in named]


def _called(pack: Authored, ref: str) -> str:
    """What a pack calls itself, and where it lies unless that says the same."""
    return ref if pack.path == ref else f"{ref} ({clean(pack.path)})"


def _tell(found: Comparison, old: Authored, new: Authored, screen: Screen) -> None:
    if found.same:
        screen.say(f"No differences found. Both are {found.new}, in the same canonical form.")
        return
    screen.say(f"Comparing {_called(old, str(found.old))} vs {_called(new, str(found.new))}")
    screen.say()
    if not found.bump.reasons:
        screen.say("Only the order of parts differs.")
    tell(found, screen, where=new.where)
    screen.say()
    screen.say(f"{counted(len(found.bump.reasons), 'change')}. Least version class: {found.bump.least}")
    if found.refusal:
        # Nothing was refused here: the comparison was asked for, and it was made.
        screen.say(f"{screen.paint('yellow', 'Not ready to publish')}: {clean(found.refusal)}")
