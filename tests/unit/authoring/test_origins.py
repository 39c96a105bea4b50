"""Where the parts of a pack with overlays come from: whatever was taken out or put in, each leads back to its file."""

import json
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from contextplane.authoring.overlay.resolved_view import resolve_view
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import Overlay
from tests.unit.authoring.changes import ADAPTERS, GATE, GUARDRAILS, NARROWING, REFUND, Step, overlay
from tests.unit.authoring.packs import EXAMPLE, leaves, part

TAKEN_OUT: tuple[Step, ...] = (
    (("/tooling_layer/permissions/adp_orders.lookup", None),),
    (("/tooling_layer/permissions/adp_policy.eval", None),),
    ((REFUND, None),),
    ((f"{ADAPTERS}/adp_orders", None),),
    ((f"{ADAPTERS}/adp_payments/capabilities/issue_refund", None),),
    (("/memory_layer/memory_policy/write_classes_allowed/evidence_link", None),),
)


def documents(overlays: list[Overlay]) -> dict[str, Any]:
    return {"": EXAMPLE} | {str(overlay.ref): json.loads(msgspec.json.encode(overlay)) for overlay in overlays}


def test_after_an_entry_was_taken_out_the_others_are_where_they_were() -> None:
    view = resolve_view(EXAMPLE, [overlay((("/tooling_layer/permissions/adp_policy.eval", None),))])
    origin = view.origins.of("/tooling_layer/permissions/1/capability")
    assert (origin.overlay, origin.at) == ("", "/tooling_layer/permissions/2/capability")


def test_what_an_overlay_put_in_is_in_the_overlay() -> None:
    step = ((f"{GUARDRAILS}/redaction_rules/aadhaar", "aadhaar"), (f"{GATE}/ttl_seconds", 60))
    view = resolve_view(EXAMPLE, [overlay(step)])
    assert view.origins.of("/policy_layer/guardrails/redaction_rules/2").at == "/changes/0/value"
    assert view.origins.of("/policy_layer/approval_gates/0/ttl_seconds").at == "/changes/1/value"
    assert view.origins.of("/policy_layer/approval_gates/0/ttl_seconds").overlay == "ov.staging@1.0.0"
    assert view.origins.of("/policy_layer/approval_gates/0/gate_id").overlay == ""


def test_what_is_missing_because_an_overlay_took_it_out_is_in_the_overlay() -> None:
    view = resolve_view(EXAMPLE, [overlay(((f"{GATE}/when", None),))])
    origin = view.origins.of("/policy_layer/approval_gates/0/when")
    assert (origin.overlay, origin.at) == ("ov.staging@1.0.0", "/changes/0")


@given(st.lists(st.sampled_from((*NARROWING, *TAKEN_OUT, *TAKEN_OUT)), max_size=5))
@example([(("/tooling_layer/adapter_registry/adp_payments/capabilities/issue_refund", None),)])
def test_every_part_is_the_same_as_what_stands_at_its_origin(steps: list[Step]) -> None:
    overlays = [overlay(step, order=n, name=f"ov.n{n}") for n, step in enumerate(steps)]
    try:
        view = resolve_view(EXAMPLE, overlays)
    except ContextPlaneError:
        return  # two that do not go together
    known = documents(overlays)
    for at, value in leaves(view.value):
        if value in ([], {}):
            continue  # what is left of a list when its last entry was taken out is not what stands there
        origin = view.origins.of(at)
        assert part(known[origin.overlay], origin.at) == value, at
