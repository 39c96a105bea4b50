"""Inputs in which every field of every input of a compile is set, and the places in them."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from contextplane.compiler.inputs import read_evidence, read_memories, read_request, read_run_context
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.evidence import Evidence, Memory
from contextplane.model.invoke import InvokeRequest, RunContext
from tests.unit.authoring.packs import leaves
from tests.unit.compiler.scenario import CASE, NOW, evidence, inputs, memory

__all__ = ["FORMS", "RICH", "fields_of", "fields_set", "leaves", "typed"]

FORMS: tuple[type[msgspec.Struct], ...] = (ContextPack, RunContext, InvokeRequest, Evidence, Memory, Lineage)
RULE = "/policy_layer/policy_bundles/0/policy_dsl/rules/1"
AUDIENCE = {"do": ["say what happens next"], "dont": ["blame"]}
SPEC = {
    "input_schema": {"type": "object", "properties": {"amount_inr": {"type": "integer"}}},
    "output_schema": {"type": "object"},
    "default_timeout_ms": 2000,
    "idempotency_header": "Idempotency-Key",
    "reversal_op": "void",
    "reversal_endpoint": "payments.void",
}
LOOKUP = {
    "approval_mode": "read_only",
    "description": "Looks up one order.",
    "arguments": {"order_id": {"type": "string", "description": "The order.", "required": True}},
}
LIMITS = [
    {"per": "user", "period": "24h", "max_calls": 3},
    {"per": "run", "sum_of": "amount_inr", "max": 60000},
]
FACT = {"path": "request.context.refund_amount", "type": "number", "required": False, "description": "How much."}
CLAIM = {
    **CASE["run_context"]["agent"]["identity_claim"],
    "iss": "https://id",
    "aud": "gateway",
    "session_id": "s",
    "principal_chain": [{"kind": "user", "id": "u", "tenant_id": "t", "display": "U"}],
    "nbf": 1,
    "exp": 4_000_000_000,
}
RICH = inputs(
    pack={
        "/pack_meta/tenant/shared_with": ["tenant_globex"],
        "/policy_layer/guardrails/must_refuse/-": {"id": "g", "when": {"==": [1, 2]}, "message": "no"},
        f"{RULE}/then/prohibits": ["adp_orders.erase"],
        f"{RULE}/then/arg_constraints": {"currency": {"enum": ["INR", "EUR"]}, "amount_inr": {"unless_approved": True}},
        f"{RULE}/then/arg_constraints/adp_orders.lookup": {"order_id": {"equals": {"var": "user.user_id"}}},
        "/pack_meta/token_counter": "approx4",
        "/policy_layer/approval_gates/0/approvers": 2,
        "/policy_layer/request_facts": [{"intent": "support.refund", "facts": [FACT]}],
        "/decision_layer/decision_specs/0/on_deny": "read",
        "/tooling_layer/permissions/0/produces": ["order_lookup"],
        "/tooling_layer/permissions/0/intents": ["support.refund"],
        "/tooling_layer/permissions/2/limits": LIMITS,
        "/tooling_layer/permissions/2/arg_constraints/amount_inr/max": {"var": ["request.context.refund_amount", 7]},
        "/tooling_layer/permissions/2/arg_constraints/currency": {"equals": "INR"},
        "/tooling_layer/adapter_registry/0/capability_specs": {"lookup": LOOKUP},
        "/tooling_layer/permissions/2/arg_constraints/idempotency_key/pattern": "^ik_",
        "/tooling_layer/adapter_registry/2/capability_specs": {"issue_refund": SPEC},
        "/decision_layer/decision_specs/0/eligibility_rules": {"==": [1, 1]},
        "/decision_layer/decision_specs/0/challenge_required": True,
        "/memory_layer/memory_policy/consent_gating/pii_write_back_allowed": True,
        "/tone_and_comms/customer_facing": AUDIENCE,
        "/tone_and_comms/operator_facing": AUDIENCE,
        "/task_layer": {
            "task_templates": [
                {
                    "template_id": "t",
                    "intent": "support.refund",
                    "decision_key": "support.refund.execute",
                    "steps": [{"id": "s", "tool": "adp_orders.lookup", "params": {"p": 1}, "depends_on": ["r"]}],
                }
            ]
        },
    },
    run={
        "/metadata": {"k": [1, {"deep": True}]},
        "/user/region": "south",
        "/user/tenure_days": 40,
        "/agent/identity_claim": CLAIM,
    },
    request={
        "/agent/identity_claim": CLAIM,
        "/attachments": [{"artifact_id": "a", "media_type": "b", "sha256": "0" * 64, "uri": "c"}],
        "/input/context/note": {"a": [0.5]},
        "/trace/tracestate": "a=b",
        "/trace/baggage": "c=d",
        "/runtime/max_session_duration_ms": 1000,
        "/runtime/max_payload_bytes": 1000,
    },
    evidence=[
        evidence(
            classification="PUBLIC",
            content_hash="sha256:99770e7baebba35a62af39881b2c1e2e6a0fefca5ba4284ea2e0332493440da2",
            conflicts=[{"evidence_ref": "session:old", "selected": "session:old", "resolution_ref": "review:1"}],
        ),
        *CASE["evidence"],
    ],
    memories=[
        memory(
            intents=["support.refund"],
            roles=["support_agent"],
            expires_at="2027-01-01T00:00:00Z",
            evidence_refs=["session:a"],
            classification="PUBLIC",
        )
    ],
    lineage=[{"ref": "ctxpack.support@1.0.0", "digest": "sha256:" + "1" * 64}],
    as_of=NOW,
)


def typed(inputs: dict[str, Any]) -> tuple[object, ...]:
    """The same as values."""
    return (
        msgspec.convert(inputs["pack"], ContextPack),
        read_run_context(inputs["run_context"]),
        read_request(inputs["request"]),
        read_evidence(inputs["evidence"]),
        read_memories(inputs["memories"]),
        msgspec.convert(inputs["lineage"], tuple[Lineage, ...]),
    )


def fields_of(*forms: type[msgspec.Struct]) -> set[tuple[str, str]]:
    """Every field of these forms and of all that stand in them, but for those that can have one value only."""
    todo: list[inspect.Type] = [inspect.type_info(form) for form in forms]
    by_name: dict[str, list[inspect.Field]] = {}
    while todo:
        type_ = todo.pop()
        if isinstance(type_, inspect.StructType) and type_.cls.__name__ not in by_name:
            by_name[type_.cls.__name__] = [*type_.fields]
            todo += [part.type for part in type_.fields]
        elif isinstance(type_, inspect.Metadata):
            todo.append(type_.type)
        elif isinstance(type_, inspect.UnionType):
            todo += type_.types
        elif isinstance(type_, inspect.VarTupleType):
            todo.append(type_.item_type)
        elif isinstance(type_, inspect.DictType):
            todo.append(type_.value_type)
    return {
        (form, field.name) for form, fields in by_name.items() for field in fields if not _has_one_value(field.type)
    }


def _has_one_value(form: inspect.Type) -> bool:
    return isinstance(form, inspect.LiteralType) and len(form.values) == 1


def fields_set(value: object) -> Iterator[tuple[str, str]]:
    """Every field in a value that is not as it is when nobody gives it."""
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            part = getattr(value, field.name)
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            if part != default:
                yield type(value).__name__, field.name
            yield from fields_set(part)
    elif isinstance(value, dict | tuple | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from fields_set(part)
