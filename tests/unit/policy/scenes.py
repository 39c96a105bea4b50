"""The refund of the full example, and policies and requests that differ from it in one place."""

import json
from pathlib import Path
from typing import Any

import msgspec

from contextplane.model.context_pack import ContextPack
from contextplane.model.pack_layers import PolicyLayer
from contextplane.policy.decision import PolicyDecision
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.facts import Facts
from contextplane.policy.tool_surface import IntentReach, ToolProgram

__all__ = [
    "EXAMPLE",
    "EXAMPLE_PROGRAM",
    "EXECUTES",
    "LACKING",
    "PERMISSIONS",
    "RAW",
    "TOOLS",
    "bundle",
    "decide",
    "facts",
    "policy",
    "program",
    "rule",
    "tools",
]

CASES = Path(__file__).resolve().parents[2] / "cases"
EXAMPLE = msgspec.json.decode((CASES / "context_pack" / "support.json").read_bytes(), type=ContextPack)
RAW: dict[str, Any] = json.loads((CASES / "context_pack" / "support.json").read_bytes())
LACKING = object()
"""A fact that is not given at all."""

PERMISSIONS: list[dict[str, Any]] = RAW["tooling_layer"]["permissions"]
EXAMPLE_PROGRAM = PolicyProgram.of(
    EXAMPLE.policy_layer,
    maxima={spec.decision_key: spec.approval_mode for spec in EXAMPLE.decision_layer.decision_specs},
)
TOOLS = ToolProgram.of(EXAMPLE.tooling_layer, EXAMPLE_PROGRAM)
EXECUTES = IntentReach.of_decisions(EXAMPLE.decision_layer.decision_specs)
"""What the decision of the example can use: everything, and nothing when it is denied."""


def facts(*, mode: str = "destructive", intent: str = "support.refund", **values: Any) -> Facts:  # noqa: ANN401
    """The request of the example. `role`, `channel` and `run` stand where they belong, all else in the context."""
    role, channel = values.pop("role", "support_agent"), values.pop("channel", LACKING)
    run, message = values.pop("run", {"run_id": "run_1"}), values.pop("message", "Refund order ord_881")
    context = {"refund_amount": 4200, "identity_verified": True, **values}
    request = {"intent": intent, "message": message, "channel": channel}
    return Facts.of(
        request={
            **{name: value for name, value in request.items() if value is not LACKING},
            "context": {name: value for name, value in context.items() if value is not LACKING},
        },
        user={"user_id": "usr_771"} | ({} if role is LACKING else {"role": role}),
        agent={"agent_id": "agt_support"},
        tenant_id="tenant_acme_prod",
        intent=intent,
        safety_mode=mode,
        run=run,
    )


def rule(name: str = "R", **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """A rule that always allows the refund; `when`, `then`, `otherwise` and `applies_to` make it another."""
    made = {
        "rule_id": name,
        "applies_to": fields.get("applies_to", {"intent": "support.refund"}),
        "if": fields.get("when", True),
        "then": fields.get("then", {"allow": True}),
    }
    if "otherwise" in fields:
        made["else"] = fields["otherwise"]
    if "decision" in fields:
        made["decision_binding"] = fields["decision"]
    return made


def bundle(*rules: dict[str, Any], name: str = "B", priority: int = 0) -> dict[str, Any]:
    return {"bundle_id": name, "priority": priority, "policy_dsl": {"language": "jsonlogic", "rules": list(rules)}}


def policy(*bundles: dict[str, Any], **fields: Any) -> PolicyLayer:  # noqa: ANN401
    """A policy layer of these bundles, with the gates and the guardrails of the example unless others are given."""
    layer = RAW["policy_layer"]
    guardrails = {"must_refuse": [], "must_escalate": [], "redaction_rules": [], **fields.get("guardrails", {})}
    gates = fields.get("gates", layer["approval_gates"])
    made = {"policy_bundles": list(bundles), "guardrails": guardrails, "approval_gates": gates}
    return msgspec.convert(made, PolicyLayer)


def program(*rules: dict[str, Any], **fields: Any) -> PolicyProgram:  # noqa: ANN401
    return PolicyProgram.of(policy(bundle(*rules), **fields), maxima=fields.get("maxima"))


def decide(*rules: dict[str, Any], by: Facts | None = None, **fields: Any) -> PolicyDecision:  # noqa: ANN401
    """What these rules say of the example's request, or of another."""
    return program(*rules, **fields).decide(by or facts())


def tools(layer: dict[str, Any], by: PolicyProgram) -> ToolProgram:
    """The tools of the example with some parts put in the place of others."""
    made = {**RAW["tooling_layer"], **layer}
    return ToolProgram.of(msgspec.convert(made, type(EXAMPLE.tooling_layer)), by)
