"""Clock facts in a compile: windows and freezes, by the moment of the case and the timezone of the pack."""

from typing import Any

import pytest

from contextplane.compiler.overrides import OverrideInvalid, parse_override
from tests.unit.compiler.scenario import compile_scenario

RULES = "/policy_layer/policy_bundles/0/policy_dsl/rules"
OFFICE_HOURS = {
    "rule_id": "R_OFFICE_HOURS",
    "applies_to": {"intent": "support.refund"},
    "if": {
        "and": [
            {"<=": [{"var": "run.weekday"}, 5]},
            {">=": [{"var": "run.hour"}, 9]},
            {"<": [{"var": "run.hour"}, 18]},
        ]
    },
    "then": {},
    "else": {"allow": False, "reason": "Refunds are made in office hours."},
    "rationale": "Somebody must be there.",
}


def verdict(as_of: str | None, rule: object = OFFICE_HOURS) -> Any:  # noqa: ANN401  of the compiled context
    compiled = compile_scenario(pack={f"{RULES}/-": rule}, as_of=as_of)
    return compiled.policy_decision


@pytest.mark.parametrize(
    ("as_of", "allowed"),
    [
        ("2026-11-16T03:29:59Z", False),  # 08:59 in Kolkata, a Monday
        ("2026-11-16T03:30:00Z", True),
        ("2026-11-16T12:29:59Z", True),
        ("2026-11-16T12:30:00Z", False),  # 18:00
        ("2026-11-14T06:00:00Z", False),  # a Saturday
        ("2026-11-15T18:31:00Z", False),  # a Monday already, and midnight
    ],
)
def test_a_window_is_in_the_timezone_of_the_pack(as_of: str, allowed: bool) -> None:  # noqa: FBT001
    assert verdict(as_of).allowed is allowed


def test_without_a_moment_the_clock_is_missing_and_a_restriction_holds() -> None:
    decision = verdict(None)
    assert not decision.allowed
    assert decision.missing_facts == ("run.weekday",)


def test_a_caller_cannot_choose_the_timezone_of_a_window() -> None:
    moved = compile_scenario(
        pack={f"{RULES}/-": OFFICE_HOURS},
        request={"/input/context/timezone": "Europe/London"},
        as_of="2026-11-16T12:30:00Z",
    )
    assert moved.context_ledger.environment["timezone"].value == "Europe/London"
    assert moved.policy_decision is not None
    assert not moved.policy_decision.allowed


def test_a_freeze_by_date_and_one_by_moment() -> None:
    freeze = {**OFFICE_HOURS, "rule_id": "R_FREEZE", "then": {"allow": False, "reason": "Frozen."}}
    del freeze["else"]
    by_date = {**freeze, "if": {"in": [{"var": "run.date"}, ["2026-12-25"]]}}
    assert not verdict("2026-12-24T18:30:00Z", by_date).allowed
    assert verdict("2026-12-25T18:30:00Z", by_date).allowed
    by_moment = {**freeze, "if": {">=": [{"var": "run.as_of"}, "2026-12-24T00:00:00Z"]}}
    assert verdict("2026-12-23T23:59:59.999Z", by_moment).allowed
    assert not verdict("2026-12-24T00:00:00Z", by_moment).allowed


def test_a_decision_follows_the_clock_only_where_a_rule_reads_it() -> None:
    at_nine, at_ten, at_ten_later = "2026-11-16T04:00:00Z", "2026-11-16T05:00:00Z", "2026-11-16T05:20:00Z"
    ids = [verdict(as_of).policy_decision_id for as_of in (at_nine, at_ten, at_ten_later)]
    assert ids[1] == ids[2]
    assert ids[0] != ids[1]
    unread = [compile_scenario(as_of=as_of).policy_decision for as_of in (at_nine, at_ten, None)]
    assert len({decision.policy_decision_id for decision in unread if decision is not None}) == 1


def test_the_moment_can_be_set_by_the_name_of_its_fact() -> None:
    assert parse_override('run.as_of="2026-11-16T04:00:00Z"').at == "/as_of"
    with pytest.raises(OverrideInvalid, match="follows from the moment"):
        parse_override("run.hour=9")
