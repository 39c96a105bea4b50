"""Comparing two context packs: in files that authors have, or versions of the registry."""

from contextplane.app.packs.files import NotAContextPack, official_number
from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.authoring.gates.table import Report, judged
from contextplane.authoring.source_file import Authored
from contextplane.authoring.version_class import Comparison, Side, comparison
from contextplane.model.context_pack import ContextPack

__all__ = ["compared_with", "packs_compared"]


def packs_compared(before: Authored, after: Authored) -> Comparison:
    """What changed from one pack to the other."""
    sides = _side(before), _side(after)
    return comparison(*sides, judged(after.file.value, identify=official_number))


def compared_with(old: Authored, new: Authored, report: Report) -> Comparison | None:
    """The same where the newer one was judged already; None where its form is wrong."""
    before = _side(old)
    return None if report.not_run else comparison(before, _side(new), report)


def _side(found: Authored) -> Side:
    """The pack in a file. One that has not the form of a pack is refused, with the first of what is wrong with it."""
    value = found.file.value
    typed = typed_or_problems(value, ContextPack)
    if isinstance(typed, ContextPack):
        return Side(value=value, pack=typed)
    raise NotAContextPack(
        f"not a context pack: {typed[0].cause}",
        at=found.where(typed[0].at),
        hint=f"'ctx lint {found.path}' lists everything that is wrong with its form",
    )
