"""Packs, requests, evidence and memories for the compiler, as hypothesis draws them."""

from typing import Any

from hypothesis import strategies as st

from contextplane.model.compiled_context import BUCKETS
from contextplane.model.terms import APPROVAL_MODES
from tests.unit.compiler.scenario import CASE, NOW, PACK, evidence, inputs, memory

__all__ = ["scenarios"]

SNAPSHOT = CASE["environment"]["snapshot"]

NAMES = st.sampled_from(["order_lookup", "identity_verified", "order_history", "fraud_check"])
REFS = st.one_of(
    st.integers(0, 6).map(lambda n: f"tool:adp_orders.lookup:tc_{n}"),
    st.sampled_from(
        [f"kg:order:o1#snapshot_{SNAPSHOT}", f"kg:invoice:i1#snapshot_{SNAPSHOT}", "kg:order:o1#snapshot_x"]
    ),
)
LEFT_OUT: list[list[list[str]]] = [
    *([], [], [], [["memory_layer"]], [["intelligence_refs"]], [["intelligence_refs", "identity_layer"]]),
    [["intelligence_refs", "knowledge_graph"], ["memory_layer"]],
]
"""What a pack leaves out: mostly nothing."""

MOMENTS = st.sampled_from(["2026-05-04T09:00:00Z", NOW, "2026-05-04T10:00:00Z"])


@st.composite
def pieces(draw: st.DrawFn) -> Any:  # noqa: ANN401  any JSON
    if draw(st.booleans()):
        return draw(st.one_of(REFS, st.text(max_size=20)))
    conflicts = draw(st.lists(REFS, max_size=2))
    selected = draw(st.sampled_from([{}, {"selected": "tool:adp_orders.lookup:tc_1", "resolution_ref": "r"}]))
    freshness = {"observed_at": draw(MOMENTS), "expires_at": draw(MOMENTS)}
    return {
        **evidence(evidence_ref=draw(REFS), type=draw(NAMES), content=draw(st.text(max_size=60))),
        "trust": draw(st.sampled_from(["authoritative", "verified", "untrusted", "unknown"])),
        "classification": draw(st.sampled_from(["PUBLIC", "INTERNAL", "CONFIDENTIAL"])),
        "freshness": freshness,
        "conflicts": [{"evidence_ref": conflict, **selected} for conflict in conflicts],
    }


@st.composite
def attachments(draw: st.DrawFn) -> Any:  # noqa: ANN401  any JSON
    return {
        "artifact_id": draw(st.sampled_from(["a", "b", "c d\n"])),
        "media_type": draw(st.sampled_from(["text/plain", "application/pdf"])),
        "sha256": draw(st.sampled_from(["0" * 64, "sha256:" + "1" * 64, "2f9cc0"])),
        "uri": "s3://bucket/thing",
    }


@st.composite
def memories(draw: st.DrawFn) -> Any:  # noqa: ANN401  any JSON
    return memory(
        memory_ref=f"mem:{draw(st.integers(0, 5))}",
        state=draw(st.sampled_from(["promoted", "promoted", "candidate"])),
        content=draw(st.text(max_size=60)),
        intents=draw(st.sampled_from([[], ["support.refund"], ["other"]])),
    )


@st.composite
def toolings(draw: st.DrawFn) -> Any:  # noqa: ANN401  any JSON
    """Registries and permissions that need not agree with each other in everything, but are sound."""
    adapters: list[dict[str, Any]] = []
    permissions: list[dict[str, Any]] = []
    for n in range(draw(st.integers(1, 4))):
        capabilities = [f"c{m}" for m in range(draw(st.integers(1, 3)))]
        mode = draw(st.sampled_from(APPROVAL_MODES))
        adapters.append({**PACK["tooling_layer"]["adapter_registry"][0], "adapter_id": f"adp_{n}"})
        adapters[-1] |= {"capabilities": capabilities, "approval_mode": mode}
        for name in capabilities:
            allow = draw(st.sampled_from([True, True, False, None]))
            if allow is not None:
                permission = {"permission_id": f"p_{n}_{name}", "adapter_id": f"adp_{n}", "capability": name}
                permissions.append({**permission, "allow": allow, "requires_approval_gate": "GATE_FINANCE_APPROVAL"})
    fallback = {"permission_id": "p", "adapter_id": "adp_0", "capability": "c0", "allow": True}
    return {"adapter_registry": adapters, "permissions": permissions or [fallback]}


@st.composite
def rules(draw: st.DrawFn) -> Any:  # noqa: ANN401  any JSON
    made = []
    for n in range(draw(st.integers(1, 6))):
        condition = draw(
            st.sampled_from(
                [
                    True,
                    False,
                    {"==": [{"var": "user.role"}, "support_agent"]},
                    {">": [{"var": "request.context.refund_amount"}, 3000]},
                    {"==": [{"var": "request.context.nobody_says"}, 1]},
                    {"<=": [{"var": "run.weekday"}, 5]},
                    {">": [{"var": "run.hour"}, 20]},
                    {"+": [1, 1]},
                ]
            )
        )
        effect: dict[str, Any] = {
            "allow": draw(st.sampled_from([True, True, False])),
            "prohibits": draw(st.sampled_from([[], ["adp_0.c0"]])),
            **draw(st.sampled_from([{}, {}, {"requires_approval_gate": ["GATE_FINANCE_APPROVAL"]}])),
        }
        rule = {"rule_id": f"R{n}", "applies_to": {"intent": draw(st.sampled_from(["support.refund", "other"]))}}
        made.append(
            {**rule, "if": condition, "then": effect, "rationale": draw(st.text("ab\n<>", min_size=1, max_size=9))}
        )
    return made


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    """The shown scenario with everything about it drawn anew."""
    sizes = st.sampled_from([0, 1, 30, 60, 200, 2000])
    drawn = inputs(
        pack={
            "/tooling_layer": draw(toolings()),
            "/policy_layer/policy_bundles/0/policy_dsl/rules": draw(rules()),
        },
        run={
            "/safety_mode": draw(st.sampled_from(APPROVAL_MODES)),
            "/run_budget/bucket_tokens": {name: draw(sizes) for name in BUCKETS},
            "/run_budget/total_tokens": draw(st.sampled_from([0, 100, 300, 12000])),
        },
        request={"/attachments": draw(st.lists(attachments(), max_size=3))},
        evidence=draw(st.lists(pieces(), max_size=8)),
        memories=draw(st.lists(memories(), max_size=4)),
        as_of=NOW,
    )
    for layer, *part in draw(st.sampled_from(LEFT_OUT)):
        del (drawn["pack"][layer] if part else drawn["pack"])[part[0] if part else layer]
    return drawn
