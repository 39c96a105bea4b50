"""Replay: what a run depended on can be had again. What golden cases would show is told apart, never passed over."""

from collections.abc import Iterator

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Subject

__all__ = ["LAWS"]


def golden_cases_are_stable(subject: Subject) -> Iterator[Broken]:
    """Golden cases compile to stable manifests and budget reports."""
    for intent, at in subject.intents.items():
        yield Broken(
            at=at,
            cause=f"whether the golden cases of {intent!r} compile the same cannot be told: nothing compiles them yet",
            cure="'ctx check --golden DIR' will, once packs are compiled",
            unknown=True,
        )


LAWS: tuple[Law[Subject], ...] = (Law(gate="replay", code="golden_cases_unstable", check=golden_cases_are_stable),)
