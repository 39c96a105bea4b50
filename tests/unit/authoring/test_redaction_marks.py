"""Marks of `x-redact`: the diff and overlays weigh them, and lint knows every field that a rule can act by."""

from typing import Any

import pytest

from contextplane.authoring.diff.walk import compare_packs
from contextplane.authoring.gates.table import judge_pack
from contextplane.authoring.overlay.resolved_view import OverlayWidens, resolve_view
from contextplane.policy.redaction.schema_marks import find_marks
from tests.support.cases import cases
from tests.unit.authoring.changes import overlay
from tests.unit.authoring.packs import EXAMPLE, with_changes

ADAPTER = EXAMPLE["tooling_layer"]["adapter_registry"][0]
SPECS = "/tooling_layer/adapter_registry/0/capability_specs"
CAPABILITY = ADAPTER["capabilities"][0]
PLAIN: dict[str, Any] = {"type": "object", "properties": {"code": {"type": "string"}, "properties": {"type": "string"}}}
MARKED = {**PLAIN, "properties": {**PLAIN["properties"], "code": {"type": "string", "x-redact": True}}}
NAMED = {**PLAIN, "properties": {**PLAIN["properties"], "code": {"type": "string", "x-redact": "email"}}}
OFF = {**PLAIN, "properties": {**PLAIN["properties"], "code": {"type": "string", "x-redact": False}}}
ODD = {**PLAIN, "properties": {**PLAIN["properties"], "properties": {"type": "string", "x-redact": True}}}
OTHER = {**MARKED, "required": ["code"]}


def with_schema(schema: dict[str, Any] | None, field: str = "output_schema") -> Any:  # noqa: ANN401  any JSON
    return with_changes([{"at": SPECS, "value": {CAPABILITY: {field: schema}}}] if schema else [])


@cases(
    ("old", "new", "expected"),
    [
        (PLAIN, MARKED, ["narrows"]),
        (PLAIN, ODD, ["narrows"]),
        (MARKED, PLAIN, ["widens"]),
        (MARKED, OFF, ["widens"]),
        (PLAIN, OFF, ["metadata"]),
        (MARKED, NAMED, ["wording"]),
        (PLAIN, OTHER, ["narrows", "changes"]),
        (OTHER, PLAIN, ["widens", "changes"]),
        (MARKED, None, ["widens", "changes"]),
        (None, MARKED, ["narrows", "changes"]),
    ],
)
def test_a_new_mark_narrows_and_one_that_is_gone_widens(
    old: dict[str, Any] | None, new: dict[str, Any] | None, expected: list[str]
) -> None:
    for field in ("output_schema", "input_schema"):
        changes = compare_packs(with_schema(old, field), with_schema(new, field))
        assert [change.effect for change in changes] == expected


def test_the_words_name_the_property() -> None:
    (change,) = compare_packs(with_schema(NAMED), with_schema(PLAIN))
    assert change.words == (
        f"adapter {ADAPTER['adapter_id']}: its output schema/properties/code is no longer masked (x-redact was email)"
    )


def test_an_overlay_may_mark_and_not_unmark() -> None:
    at = f"/tooling_layer/adapter_registry/{ADAPTER['adapter_id']}/capability_specs/{CAPABILITY}/output_schema"
    view = resolve_view(with_schema(PLAIN), [overlay(((at, MARKED),))])
    assert [applied.change.effect for applied in view.applied] == ["narrows"]
    with pytest.raises(OverlayWidens):
        resolve_view(with_schema(MARKED), [overlay(((at, PLAIN),))])


def test_a_property_of_any_name_may_be_marked_and_a_property_may_have_the_name_of_the_mark() -> None:
    assert list(find_marks(ODD)) == [("/properties/properties/x-redact", True)]
    assert not list(find_marks({"properties": {"x-redact": {"type": "string"}}}))


def codes(*changes: dict[str, Any]) -> set[str]:
    return {finding.code for finding in judge_pack(with_changes(list(changes))).findings}


def test_a_rule_without_a_shape_can_act_by_an_argument_that_a_capability_lists() -> None:
    rules = {"at": "/policy_layer/guardrails/redaction_rules", "value": ["address"]}
    arguments = {"shipping_address": {"type": "string"}}
    listed = {"at": SPECS, "value": {CAPABILITY: {"arguments": arguments}}}
    assert "redaction_idle" in codes(rules)
    assert "redaction_idle" not in codes(rules, listed)
