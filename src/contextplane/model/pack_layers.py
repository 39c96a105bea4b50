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

    `arg_constraints`: by the argument of any tool, or by `adapter_id.capability` and then by its arguments.
    """

    allow: bool | UnsetType = UNSET
    reason: Sentence | None = None
    requires: Names = ()
    prohibits: Names = ()
    approval_mode: ApprovalMode | None = None
    requires_approval_gate: GateNames | None = None
    arg_constraints: RuleConstraints = field(default_factory=dict)

    def __post_init__(self) -> None:
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
    """It applies when every key of `applies_to` matches; then a true `if` gives `then`, a false one `else`."""

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
    """The language is closed: what cannot be evaluated the same way everywhere is refused."""

    language: Literal["jsonlogic"]
    rules: Annotated[tuple[Rule, ...], Meta(min_length=1)]


class PolicyBundle(Document, frozen=True, omit_defaults=True):
    """Bundles are taken by descending priority, ties by id."""

    bundle_id: Identifier
    priority: Annotated[int, Meta(ge=0, le=1_000_000)]
    policy_dsl: PolicyDsl


class Guardrail(Document, frozen=True, omit_defaults=True):
    """A refusal or an escalation with a condition of its own."""

    id: Identifier
    when: JsonLogic | None = None
    message: Sentence | None = None


class Guardrails(Document, frozen=True):
    """Evaluated before ordinary policy, and never overridden by it."""

    must_refuse: tuple[Identifier | Guardrail, ...] = ()
    must_escalate: tuple[Identifier | Guardrail, ...] = ()
    redaction_rules: Names = ()


class ApprovalGate(Document, frozen=True, omit_defaults=True):
    """Who must approve, and for how long that holds. Without `when` it is always active where it is named.

    `approvers`: so many different people must approve. The requester is never one of them: `approver_not_requester`
    says so, and can only be true.
    """

    gate_id: Identifier
    required_approver_role: Identifier
    ttl_seconds: Annotated[int, Meta(ge=1, le=2_592_000)]
    when: JsonLogic | None = None
    approvers: Annotated[int, Meta(ge=1, le=10)] = 1
    approver_not_requester: Literal[True] = True


FactType = Literal["boolean", "number", "integer", "string", "array", "object"]


class RequestFact(Document, frozen=True, omit_defaults=True):
    """A fact that a caller sends. Without `required: false`, a request that lacks it is refused."""

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
    """The facts of requests for one intent. A request that breaks one of them is refused before policy."""

    intent: Identifier
    facts: Annotated[tuple[RequestFact, ...], Meta(min_length=1)]


class PolicyLayer(Document, frozen=True):
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
    """One argument of a capability, as a model reads it. What bounds its value is in `arg_constraints`."""

    type: ArgumentType
    description: Sentence | None = None
    required: bool = False


class CapabilitySpec(Document, frozen=True, omit_defaults=True):
    """What one capability can do, and what the Tool Gateway checks and does for it.

    `approval_mode`: the most that this capability can do, never above its adapter's; without one, the adapter's holds.
    `description` tells a model what it does. `arguments` are all of its arguments: the short form of `input_schema`.
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
    """`approval_mode` is the most that any of its capabilities can do."""

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

    `intents`: the only intents that it holds for. Without it, it holds for all. `limits`: how often it may be called,
    and how much in all.
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
        check_lone_names((self.requires_approval_gate,))

    @property
    def gate_ids(self) -> tuple[str, ...]:
        return _gate_ids(self.requires_approval_gate)


class ToolingLayer(Document, frozen=True):
    adapter_registry: Annotated[tuple[Adapter, ...], Meta(min_length=1)]
    permissions: Annotated[tuple[Permission, ...], Meta(min_length=1)]
