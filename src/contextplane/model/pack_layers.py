"""Policy and tooling layer of a context pack.

The policy layer holds rules, guardrails, approval gates and argument constraints: they constrain capabilities and never
create one. The tooling layer holds what adapters can do, and which of it this pack may use. Docstrings of
documents are descriptions in the published schema.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import force_setattr

from contextplane.model.arguments import ArgConstraints, CallLimit, RuleConstraints, parse_rule_constraints
from contextplane.model.terms import (
    ApprovalMode,
    Identifier,
    JsonLogic,
    LoneName,
    Names,
    Sentence,
    check_lone_names,
)
from contextplane.model.value import Document

__all__ = [
    "IDEMPOTENCY_KEY",
    "Adapter",
    "AdapterType",
    "ApprovalGate",
    "Capability",
    "CapabilitySpec",
    "Effect",
    "EndpointRef",
    "FactType",
    "GateNames",
    "Guardrail",
    "Guardrails",
    "JsonSchema",
    "Permission",
    "PolicyBundle",
    "PolicyDsl",
    "PolicyLayer",
    "RequestFact",
    "RequestFacts",
    "Rule",
    "ToolArgument",
    "ToolingLayer",
]


GateNames = LoneName | Annotated[Names, Meta(min_length=1, description="Every one of these gates must approve.")]


class Effect(Document, frozen=True, omit_defaults=True):
    """What a rule does when its condition is decided. `requires_approval_gate`: one gate, or a list.

    `allow`: Whether the intent is allowed. One false denies it.
    `reason`: Why, for people.
    `requires`: Evidence that must be there.
    `prohibits`: Capabilities that may not be used.
    `approval_mode`: The most that tools may do.
    `requires_approval_gate`: The gate, or gates, that must approve.
    `arg_constraints`: What arguments must be.
    """

    allow: bool | UnsetType = UNSET
    reason: Sentence | None = None
    requires: Names = ()
    prohibits: Names = ()
    approval_mode: ApprovalMode | None = None
    requires_approval_gate: GateNames | None = None
    arg_constraints: RuleConstraints = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.requires_approval_gate is not None:
            check_lone_names((self.requires_approval_gate,))
        if self.arg_constraints:
            force_setattr(self, "arg_constraints", parse_rule_constraints(self.arg_constraints))

    @property
    def gate_ids(self) -> tuple[str, ...]:
        return _gate_ids(self.requires_approval_gate)


def _gate_ids(named: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """The gates that a part names, each once."""
    if named is None:
        return ()
    return (named,) if isinstance(named, str) else tuple(dict.fromkeys(named))


class Rule(Document, frozen=True, omit_defaults=True):
    """It applies when every key of `applies_to` matches; then a true `if` gives `then`, a false one `else`.

    `rule_id`: The id of the rule, unique in its bundle.
    `applies_to`: The facts by which it applies, such as intent; each key must match.
    `condition`: The condition, in JSONLogic over the facts.
    `then`: What takes effect when the condition is true.
    `otherwise`: What takes effect when the condition is false.
    `decision_binding`: The decision that the rule is about.
    `rationale`: Why the rule exists, for reviewers.
    """

    rule_id: Identifier
    applies_to: dict[str, LoneName | Names]
    condition: JsonLogic = field(name="if")
    then: Effect
    otherwise: Effect | None = field(name="else", default=None)
    decision_binding: Identifier | None = None
    rationale: Sentence | None = None

    def __post_init__(self) -> None:
        check_lone_names(self.applies_to.values())


class PolicyDsl(Document, frozen=True):
    """The language is closed: what cannot be evaluated the same way everywhere is refused.

    `language`: The language of conditions.
    `rules`: The rules, in the order of evaluation.
    """

    language: Literal["jsonlogic"]
    rules: Annotated[tuple[Rule, ...], Meta(min_length=1)]


class PolicyBundle(Document, frozen=True, omit_defaults=True):
    """Bundles are taken by descending priority, ties by id.

    `bundle_id`: The id of the bundle.
    `priority`: Bundles of a higher priority are evaluated first.
    `policy_dsl`: Its rules.
    """

    bundle_id: Identifier
    priority: Annotated[int, Meta(ge=0, le=1_000_000)]
    policy_dsl: PolicyDsl


class Guardrail(Document, frozen=True, omit_defaults=True):
    """A refusal or an escalation with a condition of its own.

    `id`: The label of the guardrail.
    `when`: The condition that triggers it, in JSONLogic over the facts.
    `message`: What to say when it is triggered.
    """

    id: Identifier
    when: JsonLogic | None = None
    message: Sentence | None = None


class Guardrails(Document, frozen=True):
    """Evaluated before ordinary policy, and never overridden by it.

    `must_refuse`: What ends a run as refused before any call.
    `must_escalate`: What ends a run as escalated to a person.
    `redaction_rules`: What is masked before the model reads it; docs/redaction.md lists the rules.
    """

    must_refuse: tuple[Identifier | Guardrail, ...] = ()
    must_escalate: tuple[Identifier | Guardrail, ...] = ()
    redaction_rules: Names = ()


class ApprovalGate(Document, frozen=True, omit_defaults=True):
    """Who must approve, and for how long that holds. Without `when` it is always active where it is named.

    `gate_id`: The id of the gate.
    `required_approver_role`: The role that approves.
    `ttl_seconds`: How long an approval is valid.
    `when`: The condition under which it is active, in JSONLogic over the facts.
    `approvers`: How many different people must approve.
    `approver_not_requester`: Whether the requester may not approve; always true.
    """

    gate_id: Identifier
    required_approver_role: Identifier
    ttl_seconds: Annotated[int, Meta(ge=1, le=2_592_000)]
    when: JsonLogic | None = None
    approvers: Annotated[int, Meta(ge=1, le=10)] = 1
    approver_not_requester: Literal[True] = True


FactType = Literal["boolean", "number", "integer", "string", "array", "object"]


class RequestFact(Document, frozen=True, omit_defaults=True):
    """A fact that a caller sends. Without `required: false`, a request that lacks it is refused.

    `path`: The fact, as rules read it.
    `type`: The type of its value.
    `description`: What it means, for callers.
    `required`: Whether a request without it is refused.
    """

    path: Annotated[
        str,
        Meta(
            pattern=r"^request\.(channel|locale|context(\.[A-Za-z_][A-Za-z0-9_-]{0,127}){1,8})\Z",
            description="request.channel, request.locale, or request.context.<name>.",
        ),
    ]
    type: FactType
    description: Sentence | None = None
    required: bool = True


class RequestFacts(Document, frozen=True):
    """The facts of requests for one intent. A request that breaks one of them is refused before policy.

    `intent`: The intent whose requests send the facts.
    `facts`: The facts that these requests send.
    """

    intent: Identifier
    facts: Annotated[tuple[RequestFact, ...], Meta(min_length=1)]


class PolicyLayer(Document, frozen=True):
    """Rules, guardrails, gates and the facts that callers send.

    `policy_bundles`: The rules, in bundles.
    `guardrails`: What is refused, escalated and redacted before policy.
    `approval_gates`: Who approves what.
    `request_facts`: The facts that callers send, by intent.
    """

    policy_bundles: Annotated[tuple[PolicyBundle, ...], Meta(min_length=1)]
    guardrails: Guardrails
    approval_gates: tuple[ApprovalGate, ...] = ()
    request_facts: tuple[RequestFacts, ...] | UnsetType = UNSET


AdapterType = Literal["OPENAPI", "INTERNAL", "MCP", "A2A", "FUNCTION", "CUSTOM"]


Capability = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z", description="One capability: letters, digits, _ and -.")
]


ToolArgumentName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")]


EndpointRef = Annotated[str, Meta(min_length=1, max_length=512, description="An entry of the endpoint registry.")]


JsonSchema = dict[str, Any]


ArgumentType = Literal["string", "integer", "number", "boolean", "array", "object"]
IDEMPOTENCY_KEY = "idempotency_key"
"""The argument by which every pack asks for a key that makes a retry harmless. The runtime makes the key."""


class ToolArgument(Document, frozen=True, omit_defaults=True):
    """One argument of a capability, as a model reads it. What bounds its value is in `arg_constraints`.

    `type`: The JSON type of the argument.
    `description`: What it means, as the model reads it.
    `required`: Whether every call has it.
    """

    type: ArgumentType
    description: Sentence | None = None
    required: bool = False


class CapabilitySpec(Document, frozen=True, omit_defaults=True):
    """What one capability can do, and what the Tool Gateway checks and does for it.

    `approval_mode`: The most that this capability can do; by default that of its adapter.
    `description`: What it does, as the model reads it.
    `arguments`: All of its arguments, by name.
    `input_schema`: The JSON Schema of its arguments.
    `output_schema`: The JSON Schema of its result.
    `default_timeout_ms`: How long a call may take.
    `idempotency_header`: The header that carries the idempotency key.
    `reversal_op`: The capability that undoes it.
    `reversal_endpoint`: The endpoint that undoes it.
    """

    approval_mode: ApprovalMode | None = None
    description: Sentence | None = None
    arguments: dict[ToolArgumentName, ToolArgument] | None = None
    input_schema: JsonSchema | None = None
    output_schema: JsonSchema | None = None
    default_timeout_ms: Annotated[int, Meta(ge=100, le=60_000)] | None = None
    idempotency_header: Identifier | None = None
    reversal_op: Capability | None = None
    reversal_endpoint: EndpointRef | None = None


class Adapter(Document, frozen=True, omit_defaults=True):
    """`approval_mode` is the most that any of its capabilities can do.

    `adapter_id`: The id of the adapter.
    `type`: How it is called.
    `endpoint_ref`: Where it is called.
    `capabilities`: What it can do.
    `approval_mode`: The most that any of its capabilities can do.
    `capability_specs`: Details of capabilities, by capability.
    """

    adapter_id: Identifier
    type: AdapterType
    endpoint_ref: EndpointRef
    capabilities: Annotated[tuple[Capability, ...], Meta(min_length=1)]
    approval_mode: ApprovalMode
    capability_specs: dict[Capability, CapabilitySpec] = field(default_factory=dict)

    def mode_of(self, capability: str) -> ApprovalMode:
        """The most that one capability can do: its own approval mode, else the adapter's."""
        spec = self.capability_specs.get(capability)
        return self.approval_mode if spec is None or spec.approval_mode is None else spec.approval_mode

    def schema_of(self, capability: str) -> JsonSchema | None:
        """The JSON Schema of the arguments of a capability: as it is given, or made of its `arguments`.

        A call has no other arguments than these. Those of a capability that can change something may have a key.
        """
        spec = self.capability_specs.get(capability)
        if spec is None or spec.input_schema is not None or spec.arguments is None:
            return None if spec is None else spec.input_schema
        properties: dict[str, Any] = {
            name: {"type": argument.type} | ({"description": argument.description} if argument.description else {})
            for name, argument in spec.arguments.items()
        }
        if self.mode_of(capability) != "read_only":
            properties.setdefault(IDEMPOTENCY_KEY, {"type": "string"})
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        required = [name for name, argument in spec.arguments.items() if argument.required]
        return {**schema, "required": required} if required else schema


class Permission(Document, frozen=True, omit_defaults=True):
    """Exposes one capability of one adapter. `produces` names the evidence that its result is.

    `permission_id`: The id of the permission.
    `adapter_id`: The adapter.
    `capability`: The capability that it exposes.
    `allow`: Whether it may be used. False hides it.
    `requires_approval_gate`: The gate, or gates, that every call waits for.
    `arg_constraints`: What its arguments must be, by argument.
    `produces`: The evidence that its result is.
    `intents`: The only intents that it holds for; without it, all.
    `limits`: How often it may be called, and how much it may move.
    """

    permission_id: Identifier
    adapter_id: Identifier
    capability: Capability
    allow: bool
    requires_approval_gate: GateNames | None = None
    arg_constraints: ArgConstraints = field(default_factory=dict)
    produces: Names = ()
    intents: Names = ()
    limits: tuple[CallLimit, ...] = ()

    def __post_init__(self) -> None:
        if self.requires_approval_gate is not None:
            check_lone_names((self.requires_approval_gate,))

    @property
    def gate_ids(self) -> tuple[str, ...]:
        return _gate_ids(self.requires_approval_gate)


class ToolingLayer(Document, frozen=True):
    """What tools there are, and which of them this pack may use.

    `adapter_registry`: The adapters, and what they can do.
    `permissions`: The capabilities that this pack may use.
    """

    adapter_registry: Annotated[tuple[Adapter, ...], Meta(min_length=1)]
    permissions: Annotated[tuple[Permission, ...], Meta(min_length=1)]
