"""Compares two recorded runs of the store."""

from contextplane.app.execution.load import load_registered
from contextplane.app.platform import Platform
from contextplane.app.references import find_run
from contextplane.audit.diff import DiffEntry, PackDiff, diff_packs
from contextplane.audit.text_diff import TextDiff

__all__ = ["DiffEntry", "PackDiff", "TextDiff", "diff_runs"]


def diff_runs(platform: Platform, a: str, b: str) -> PackDiff:
    """Compare the execution packs that two texts name. Both are found before either is loaded."""
    first, second = find_run(a, platform), find_run(b, platform)
    loaded = load_registered(platform, first)
    other = loaded if first == second else load_registered(platform, second)
    return diff_packs(loaded, other, platform.objects)
