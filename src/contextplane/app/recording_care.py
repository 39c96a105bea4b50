"""Recordings in the care of a store: what a check, and whoever collects, compares of them."""

from collections.abc import Iterator

from contextplane.app.platform import Platform
from contextplane.app.recording import desk_of
from contextplane.ports.catalog import View
from contextplane.record.unfinished import unkept
from contextplane.store.finding import Comparison, Finding

__all__ = ["recording_comparison"]


def recording_comparison(platform: Platform) -> Comparison:
    """Every recording that is no pack yet can be read, and what it needs is kept."""
    desk = desk_of(platform)

    def compared(view: View) -> Iterator[Finding]:
        for one in unkept(desk, view):
            if one.lost is None:
                yield Finding(state="corrupt", what=one.stream, why=one.problem)
            else:
                yield Finding(state="index", what=one.stream, why=f"it needs {one.lost}, and nothing keeps that")

    return compared
