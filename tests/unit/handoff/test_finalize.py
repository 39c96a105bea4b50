"""The finalize checklist: all that is missing is told at once, and a moved ref is no fault."""

import pytest

from contextplane.handoff.errors import FinalizeRefused
from contextplane.handoff.finalize import MovedRef, check_finalizable
from contextplane.handoff.source import LocatedRef
from contextplane.model.handoff import HandoffPack, LineRange, Ref, Section
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.handoff.builders import a_diagram, a_pack, a_ref, a_section, as_it_was

SCOPE = a_section("scope", "the refund flow")
FINDINGS = a_section("findings", "refunds are paid twice")
QA = a_section("qa", "verdict: fail")


def refusal(pack: HandoffPack) -> FinalizeRefused:
    with pytest.raises(FinalizeRefused) as caught:
        check_finalizable(pack, as_it_was)
    return caught.value


def test_a_pack_that_has_everything_passes() -> None:
    assert check_finalizable(a_pack(SCOPE, FINDINGS, QA), as_it_was) == ()


@proves("handoff-pack:finalize:missing-sections")
@proves("handoff-pack:finalize:scope-exists", case="scope")
@proves("handoff-pack:finalize:findings-exists", case="findings")
@proves("handoff-pack:finalize:qa-exists", case="qa")
@pytest.mark.parametrize("absent", ["scope", "findings", "qa"])
def test_each_of_the_three_sections_is_needed(absent: str) -> None:
    sections = [section for section in (SCOPE, FINDINGS, QA) if section.key != absent]
    error = refusal(a_pack(*sections))
    assert error.details == {"missing_sections": [absent], "missing_fields": [], "invalid_refs": []}
    assert absent in error.message


@proves("handoff-pack:finalize:missing-fields")
@proves("handoff-pack:finalize:scope-has-substance", case="scope")
@proves("handoff-pack:finalize:findings-has-substance", case="findings")
@pytest.mark.parametrize("key", ["scope", "findings"])
@pytest.mark.parametrize("description", [None, "", " \n\t"])
def test_scope_and_findings_need_something_in_them(key: str, description: str | None) -> None:
    sections = {"scope": SCOPE, "findings": FINDINGS, "qa": QA} | {key: a_section(key, description)}
    assert refusal(a_pack(*sections.values())).details["missing_fields"] == [f"{key}.content"]


@pytest.mark.parametrize("section", [a_section("scope", refs=[a_ref()]), a_section("scope", diagrams=[a_diagram()])])
def test_a_ref_or_a_diagram_is_something(section: Section) -> None:
    assert check_finalizable(a_pack(section, FINDINGS, QA), as_it_was) == ()


@proves("handoff-pack:finalize:qa-has-verdict")
@cases("description", [None, "all is well", "no verdict yet", "verdict: tbd"])
def test_qa_needs_a_verdict(description: str | None) -> None:
    error = refusal(a_pack(SCOPE, FINDINGS, a_section("qa", description)))
    assert error.details["missing_fields"] == ["qa.verdict"]


@proves("handoff-pack:finalize:refs-are-resolvable", "handoff-pack:finalize:invalid-refs", case="*")
@pytest.mark.parametrize("state", ["changed", "gone", "unreadable"])
def test_a_stale_ref_is_named_with_its_place_its_reason_and_its_state(state: str) -> None:
    stale = LocatedRef(state=state, lines=None, why="the file is missing")  # type: ignore[arg-type]
    ref = a_ref("pay-twice", path="src/pay.py", start=3, end=9)
    with pytest.raises(FinalizeRefused) as caught:
        check_finalizable(a_pack(SCOPE, a_section("findings", refs=[ref]), QA), lambda _: stale)
    assert caught.value.details["invalid_refs"] == [
        {
            "section_key": "findings",
            "ref_key": "pay-twice",
            "path": "src/pay.py",
            "line_start": 3,
            "line_end": 9,
            "reason": "the file is missing",
            "state": state,
        }
    ]


def test_only_a_pack_that_exists_is_named_by_its_id() -> None:
    assert refusal(a_pack(SCOPE, revision=2)).at == "pk_abcd2345"
    assert refusal(a_pack(SCOPE, revision=1)).at is None


@proves("handoff-pack:finalize:failure-code")
def test_everything_that_is_wrong_is_told_together() -> None:
    refs = [a_ref(f"ref-{number}") for number in range(12)]
    pack = a_pack(a_section("scope"), a_section("qa", "hm"), a_section("more", refs=refs))
    with pytest.raises(FinalizeRefused) as caught:
        check_finalizable(pack, lambda _: LocatedRef(state="gone", lines=None, why="the lines were removed"))
    error = caught.value
    assert error.answer == ("invalid_state", "finalize_validation")
    assert error.details["missing_sections"] == ["findings"]
    assert error.details["missing_fields"] == ["scope.content", "qa.verdict"]
    assert isinstance(error.details["invalid_refs"], list)
    assert len(error.details["invalid_refs"]) == 12
    assert "more/ref-9 (the lines were removed)" in error.message
    assert "ref-10" not in error.message
    assert "and 2 more" in error.message


def test_refs_that_moved_are_returned_and_those_without_an_anchor_pass() -> None:
    refs = [a_ref("moved", start=1, end=2), a_ref("still"), a_ref("imported")]
    states = {"moved": "moved", "still": "current", "imported": "unanchored"}

    def locate(ref: Ref) -> LocatedRef:
        return LocatedRef(state=states[ref.key], lines=LineRange(start=5, end=6))  # type: ignore[arg-type]

    moved = check_finalizable(a_pack(SCOPE, a_section("findings", refs=refs), QA), locate)
    was, now = LineRange(start=1, end=2), LineRange(start=5, end=6)
    assert moved == (MovedRef(section_key="findings", ref_key="moved", path="src/code.py", was=was, now=now),)
