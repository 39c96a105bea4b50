"""Documents that are not of their form: what is told of them, and where the rest is found."""

import pytest

from contextplane.model.execution.log import InvalidLog
from contextplane.model.problems import DocumentInvalid, Problem
from contextplane.record.events import RecordingRefused

ALL = "--json lists them all"


def problems(count: int) -> tuple[Problem, ...]:
    return tuple(Problem(at=f"/{n}", message="is wrong") for n in range(count))


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [(DocumentInvalid, ALL), (InvalidLog, ALL), (RecordingRefused, "its `problems` lists them all")],
)
def test_what_is_not_told_of_very_many_problems_is_found_by_the_way_out(
    kind: type[DocumentInvalid], way_out: str
) -> None:
    document_invalid, cut = kind(problems(10)), kind(problems(11))
    assert (document_invalid.hint, "/9: is wrong" in document_invalid.message) == (kind.way_out, True)
    assert (cut.hint, cut.message.endswith("; and 1 more")) == (f"{kind.way_out}; {way_out}", True)
    listed = cut.details["problems"]
    assert isinstance(listed, list)
    assert len(listed) == len(cut.problems) == 11
