"""Compares two context packs: files of authors, or versions of the registry."""

from contextplane.app.packs.files import official_number
from contextplane.authoring.diff.tree import Change, Effect
from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.authoring.gates.table import Report, judge_pack
from contextplane.authoring.source_file import NamedFile, NotAContextPack
from contextplane.authoring.version_class import ComparedPack, Comparison, VersionClass, compare_versions
from contextplane.model.context_pack import ContextPack

__all__ = ["Change", "Comparison", "Effect", "VersionClass", "compare_pack_files", "compare_with_previous"]


def compare_pack_files(before: NamedFile, after: NamedFile) -> Comparison:
    """Compare two packs: what changed, and which version class that needs."""
    sides = _pack_side(before), _pack_side(after)
    return compare_versions(*sides, judge_pack(after.file.value, identify=official_number))


def compare_with_previous(old: NamedFile, new: NamedFile, report: Report) -> Comparison | None:
    """Compare a pack that was linted already with the version before; None if its form is wrong."""
    before = _pack_side(old)
    return None if report.not_run else compare_versions(before, _pack_side(new), report)


def _pack_side(source: NamedFile) -> ComparedPack:
    """Read the pack in a file for a comparison. Refused, with the first problem, if its form is wrong."""
    value = source.file.value
    typed = typed_or_problems(value, ContextPack)
    if isinstance(typed, ContextPack):
        return ComparedPack(value=value, pack=typed)
    raise NotAContextPack(
        f"not a context pack: {typed[0].cause}",
        at=source.where(typed[0].at),
        hint=f"'ctx lint {source.path}' lists every problem",
    )
