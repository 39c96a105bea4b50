"""What a model is told of the bounds of arguments."""

from itertools import permutations
from typing import Any

from contextplane.compiler.chat import anthropic_chat
from contextplane.compiler.prompt import prompt_text
from contextplane.model.compiled_context import CompiledContext
from tests.support.cases import cases
from tests.unit.compiler.scenario import PACK, compile_scenario

RULE = "/policy_layer/policy_bundles/0/policy_dsl/rules/0/then/arg_constraints"
SECOND_GATE = {
    "/policy_layer/approval_gates/-": {**PACK["policy_layer"]["approval_gates"][0], "gate_id": "GATE_SECOND"}
}
PERMISSIONS = [
    *PACK["tooling_layer"]["permissions"],
    {
        **PACK["tooling_layer"]["permissions"][2],
        "permission_id": "perm_second",
        "requires_approval_gate": "GATE_SECOND",
        "arg_constraints": {"zone": {"max": 3}, "amount_inr": {"max": 9}},
    },
]


def tool_lines(context: CompiledContext) -> dict[str, str]:
    lines = [block.content for block in context.compiled_prompt.context_blocks if block.bucket == "tool"]
    return {line.partition(": ")[0]: line.partition(": ")[2] for line in lines}


def test_several_permissions_of_one_tool_say_the_same_in_whatever_order() -> None:
    texts = {
        prompt_text(compile_scenario(pack={**SECOND_GATE, "/tooling_layer/permissions": [*order]}).compiled_prompt)
        for order in permutations(PERMISSIONS)
    }
    assert len(texts) == 1


def test_bounds_stand_by_argument_and_gates_as_the_pack_has_them() -> None:
    context = compile_scenario(pack={**SECOND_GATE, "/tooling_layer/permissions": PERMISSIONS[::-1]})
    assert tool_lines(context)["adp_payments.issue_refund"] == (
        "write, destructive; amount_inr at least 1, at most 50000; amount_inr at most 9; zone at most 3"
    )
    assert context.compiled_prompt.developer.split("\n")[-2:] == [
        "adp_payments.issue_refund waits for approval by finance_lead (GATE_FINANCE_APPROVAL).",
        "adp_payments.issue_refund waits for approval by finance_lead (GATE_SECOND).",
    ]
    entry = context.manifests.tool_manifest[2]
    assert [limit.argument for limit in entry.constraints["issue_refund"]] == [
        *("amount_inr", "amount_inr", "idempotency_key", "zone")
    ]


@cases(
    ("constraint", "read", "write"),
    [
        ({"required": True}, "read; gives order_lookup", "reason required"),
        (
            {"required": True, "pattern": "^r"},
            'read; gives order_lookup; reason matching "^r"',
            'reason required, matching "^r"',
        ),
        ({"pattern": "^r"}, 'read; gives order_lookup; reason matching "^r"', 'reason matching "^r"'),
        (
            {"required": True, "unless_approved": True},
            "read; gives order_lookup",
            "reason required, unless approved",
        ),
    ],
)
def test_what_a_rule_requires_it_requires_of_tools_that_can_change_something(
    constraint: dict[str, Any], read: str, write: str
) -> None:
    context = compile_scenario(pack={RULE: {"reason": constraint}})
    assert tool_lines(context)["adp_orders.lookup"] == read
    assert tool_lines(context)["adp_payments.issue_refund"].endswith(write)
    schemas = {tool["name"]: tool["input_schema"] for tool in anthropic_chat(context).body["tools"]}
    assert ("reason" in schemas["adp_orders_lookup"]["properties"]) is ("pattern" in constraint)
    assert "required" not in schemas["adp_orders_lookup"]
    firm = constraint.get("required", False) and "unless_approved" not in constraint
    assert ("reason" in schemas["adp_payments_issue_refund"].get("required", [])) is firm


def test_what_a_permission_requires_it_requires_of_every_tool() -> None:
    context = compile_scenario(pack={"/tooling_layer/permissions/0/arg_constraints": {"order_id": {"required": True}}})
    assert tool_lines(context)["adp_orders.lookup"] == "read; gives order_lookup; order_id required"
