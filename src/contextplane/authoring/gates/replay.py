"""Replay: what a run depended on can be had again. What golden cases would show is told apart, never passed over."""

from collections.abc import Iterator

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Subject

__all__ = ["LAWS"]


def golden_cases_are_stable(subject: Subject) -> Iterator[Broken]:
    """Golden cases compile to stable manifests and budget reports."""
    if subject.intents:
        yield Broken(
            at="",
            cause="golden cases are not compiled here",
            cure="'ctx check PACK --golden DIR' compiles them, and 'ctx publish --golden DIR' refuses what drifted",
            unknown=True,
        )


LAWS: tuple[Law[Subject], ...] = (Law(gate="replay", code="golden_cases_unstable", check=golden_cases_are_stable),)
