"""Constraints on the arguments of a call: by a permission, or by a rule.

`business_context`: what the business does, and what it never does. No policy: that is evaluated, not read.

`contract_meta`: the identity of the artifact, who issues it, and what it needs to run.

`decision_layer`: the typed decisions that a run can end in.

`evaluation_layer`: what success is, per intent, and which regressions stop a release.

`intelligence_refs`: what pins the meaning of things: ontology, graph snapshot, identities, embeddings.

`memory_layer`: how long memories live, which may be proposed, and when one is promoted.

The whole pack: ten layers, and an optional eleventh.

`pack_meta`: the deployable identity of a pack, its tenant, and the defaults of its environment.

`policy_layer`: rules, guardrails and approval gates. They constrain capabilities and never create one.

`task_layer`, the optional eleventh layer: the plans that the deterministic planner follows.

The closed sets and the shapes of text that several layers share.

`tone_and_comms`: how the final text sounds. It never overrides policy.

`tooling_layer`: what adapters can do, and which of it this pack may use.

The contract between packs and this runtime: what `compatibility.requires` asks for under the name `runtime`.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from contextplane.model.ids import PackRef
from contextplane.model.terms import (
    ApprovalMode,
    DataClassification,
    Duration,
    Identifier,
    JsonLogic,
    Names,
    Semver,
    Sentence,
)
from contextplane.model.value import Document

__all__ = [
    "RUNTIME_CONTRACT",
    "Adapter",
    "AdapterType",
    "ApprovalGate",
    "ArgConstraint",
    "ArgConstraints",
    "Audience",
    "BusinessContext",
    "BusinessSummary",
    "Capability",
    "CapabilitySpec",
    "Compatibility",
    "ConsentGating",
    "ContextPack",
    "ContractMeta",
    "DecisionLayer",
    "DecisionRight",
    "DecisionSpec",
    "Effect",
    "EnvironmentDefaults",
    "EvalTarget",
    "EvaluationLayer",
    "Guardrail",
    "Guardrails",
    "IdentityLayer",
    "IntelligenceRefs",
    "KnowledgeGraph",
    "Language",
    "MemoryLayer",
    "MemoryPolicy",
    "Metric",
    "Ontology",
    "PackMeta",
    "Permission",
    "PolicyBundle",
    "PolicyDsl",
    "PolicyLayer",
    "PromotionThresholds",
    "ReleaseGate",
    "Rule",
    "TaskLayer",
    "TaskStep",
    "TaskTemplate",
    "Tenant",
    "TierTtls",
    "ToneAndComms",
    "ToolingLayer",
    "WriteClass",
]

Scalar = str | int | float | bool | None


class ArgConstraint(Document, frozen=True, omit_defaults=True):
    """What one argument must be. `unless_approved`: an approval lifts it."""

    min: int | float | None = None
    max: int | float | None = None
    enum: Annotated[tuple[Scalar, ...], Meta(min_length=1)] | None = None
    required: bool = False
    pattern: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    unless_approved: bool = False


ArgConstraints = dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,127}\Z")], ArgConstraint]


class BusinessSummary(Document, frozen=True):
    """A few words about the business."""

    what_we_do: Sentence
    who_we_serve: tuple[Sentence, ...] = ()
    differentiators: tuple[Sentence, ...] = ()


class BusinessContext(Document, frozen=True):
    """`non_negotiables` always reach the model."""

    summary: BusinessSummary
    non_negotiables: tuple[Sentence, ...] = ()


Range = Annotated[str, Meta(min_length=1, max_length=128, description="A range of versions, such as >=1.0.0 <2.0.0.")]
Moment = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})\Z",
        description="A time, such as 2026-05-09T00:00:00Z.",
        extra_json_schema={"format": "date-time"},
    ),
]


class Compatibility(Document, frozen=True):
    """What must be present, each in a range of versions: old runtimes fail closed."""

    requires: Annotated[dict[Identifier, Range], Meta(min_length=1)]


class ContractMeta(Document, frozen=True):
    """`contract_version` is the version of the schema, separate from that of the pack."""

    contract_name: Identifier
    contract_version: Semver
    issuer: Identifier
    created_at: Moment
    compatibility: Compatibility


DecisionRight = Literal["propose", "recommend", "execute", "escalate"]
SchemaRef = Annotated[str, Meta(pattern=r"^schema://[A-Za-z0-9][A-Za-z0-9_.-]{0,255}\Z", description="schema://<name>")]


class DecisionSpec(Document, frozen=True, omit_defaults=True):
    """`allowed_outcomes` is closed; `approval_mode` is at least that of every tool the decision may use."""

    decision_key: Identifier
    version: Semver
    owner_role: Identifier
    required_evidence: Names
    allowed_outcomes: Annotated[Names, Meta(min_length=1)]
    approval_mode: ApprovalMode
    decision_right: DecisionRight
    inputs_schema_ref: SchemaRef
    outputs_schema_ref: SchemaRef
    eligibility_rules: JsonLogic | None = None
    challenge_required: bool = False


class DecisionLayer(Document, frozen=True):
    decision_specs: Annotated[tuple[DecisionSpec, ...], Meta(min_length=1)]


Metric = Literal["policy", "utility", "latency_p99_ms", "safety", "economics_cents_per_decision"]
Score = Annotated[float, Meta(ge=0, le=1)]


class EvalTarget(Document, frozen=True):
    """The scores that runs of one intent must reach."""

    intent: Identifier
    policy: Score
    utility: Score
    latency_p99_ms: Annotated[int, Meta(ge=1)]
    safety: Score
    economics_cents_per_decision: Annotated[float, Meta(ge=0)]


class ReleaseGate(Document, frozen=True):
    """How much worse one metric may become."""

    metric: Metric
    max_delta: Annotated[float, Meta(ge=0)]


class EvaluationLayer(Document, frozen=True):
    eval_targets: Annotated[tuple[EvalTarget, ...], Meta(min_length=1)]
    release_gates: Annotated[tuple[ReleaseGate, ...], Meta(min_length=1)]


PinRule = Annotated[
    str,
    Meta(pattern=r"^(alias|snapshot):[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z", description="alias:<name> or snapshot:<id>"),
]


class Ontology(Document, frozen=True):
    """Which entities and relationships there are, in exactly one version."""

    namespace: Identifier
    version: Semver
    entity_types: Annotated[Names, Meta(min_length=1)]
    relationship_types: Names = ()


class KnowledgeGraph(Document, frozen=True):
    """Which snapshot is read. A live read may follow an alias; a replay is given the snapshot it led to."""

    snapshot_pin_rule: PinRule


class IdentityLayer(Document, frozen=True):
    """The namespaces in which subjects have an identity of their own."""

    ceid_namespaces: Annotated[Names, Meta(min_length=1)]


class IntelligenceRefs(Document, frozen=True):
    """`embedding_keys` are optional; each names its version, because retrieval can alter a decision."""

    ontology: Ontology
    knowledge_graph: KnowledgeGraph
    identity_layer: IdentityLayer
    embedding_keys: Names = ()


WriteClass = Literal["evidence_link", "preference", "decision_outcome", "correction"]


class TierTtls(Document, frozen=True):
    """How long a memory of each tier lives."""

    working: Duration
    episodic: Duration
    semantic: Duration
    durable: Duration


class ConsentGating(Document, frozen=True):
    """Personal data is not written back unless the pack says so."""

    pii_write_back_allowed: bool = False


class MemoryPolicy(Document, frozen=True):
    tier_ttls: TierTtls
    write_classes_allowed: tuple[WriteClass, ...]
    consent_gating: ConsentGating


class PromotionThresholds(Document, frozen=True):
    """From this confidence on a candidate is promoted without a reviewer."""

    auto_promote_confidence: Annotated[float, Meta(ge=0, le=1)]


class MemoryLayer(Document, frozen=True):
    """Only promoted memory is recalled; a write is a proposal."""

    memory_policy: MemoryPolicy
    promotion_thresholds: PromotionThresholds


# A language, what it is a part of, its script, its region, variants, extensions, what is private. Three letters are a
# part of a language and no country: those have two.
Language = Annotated[
    str,
    Meta(
        pattern=r"^[a-z]{2,3}(-[a-z]{3}){0,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?"
        r"(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*(-[0-9A-WY-Za-wy-z](-[A-Za-z0-9]{2,8})+)*"
        r"(-x(-[A-Za-z0-9]{1,8})+)?\Z",
        description="BCP 47, such as en-IN.",
    ),
]


class Tenant(Document, frozen=True, omit_defaults=True):
    """Whose pack it is. Only the tenants in `shared_with` may run it besides."""

    tenant_id: Identifier
    name: Sentence
    shared_with: Names = ()


class EnvironmentDefaults(Document, frozen=True):
    """What holds where a request says nothing of it."""

    language: Language
    timezone: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}\Z")]
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}\Z", description="ISO 4217.")]
    region: Identifier


class PackMeta(Document, frozen=True):
    """`pack_id@pack_version` never changes. `ttl_seconds` is for caches: it does not make anything mutable."""

    pack_id: Identifier
    pack_version: Semver
    tenant: Tenant
    environment_defaults: EnvironmentDefaults
    ttl_seconds: Annotated[int, Meta(ge=1, le=31_536_000)]
    data_classification: DataClassification


class Effect(Document, frozen=True, omit_defaults=True):
    """What a rule does when its condition is decided."""

    allow: bool | UnsetType = UNSET
    reason: Sentence | None = None
    requires: Names = ()
    prohibits: Names = ()
    approval_mode: ApprovalMode | None = None
    requires_approval_gate: Identifier | None = None
    arg_constraints: ArgConstraints = field(default_factory=dict)


class Rule(Document, frozen=True, omit_defaults=True):
    """It applies when every key of `applies_to` matches; then a true `if` gives `then`, a false one `else`."""

    rule_id: Identifier
    applies_to: dict[str, Identifier | Names]
    condition: JsonLogic = field(name="if")
    then: Effect
    otherwise: Effect | None = field(name="else", default=None)
    decision_binding: Identifier | None = None
    rationale: Sentence | None = None


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
    """Who must approve, and for how long that holds. Without `when` it is always active where it is named."""

    gate_id: Identifier
    required_approver_role: Identifier
    ttl_seconds: Annotated[int, Meta(ge=1, le=2_592_000)]
    when: JsonLogic | None = None


class PolicyLayer(Document, frozen=True):
    policy_bundles: Annotated[tuple[PolicyBundle, ...], Meta(min_length=1)]
    guardrails: Guardrails
    approval_gates: tuple[ApprovalGate, ...] = ()


ToolName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\.[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z",
        description="adapter_id.capability",
    ),
]


class TaskStep(Document, frozen=True, omit_defaults=True):
    """One call. What is an object with one key, in a param or within one, is an expression: it is computed.

    It reads the facts, and as `results.<step id>` what the steps gave that this one depends on. All else is handed over
    as it stands.
    """

    id: Identifier
    tool: ToolName
    params: dict[str, Any] = field(default_factory=dict)
    depends_on: Names = ()


class TaskTemplate(Document, frozen=True):
    """The steps towards one decision for one intent."""

    template_id: Identifier
    intent: Identifier
    decision_key: Identifier
    steps: Annotated[tuple[TaskStep, ...], Meta(min_length=1)]


class TaskLayer(Document, frozen=True):
    task_templates: tuple[TaskTemplate, ...] = ()


class Audience(Document, frozen=True, omit_defaults=True):
    """What holds only for one kind of reader."""

    do: tuple[Sentence, ...] = ()
    dont: tuple[Sentence, ...] = ()


class ToneAndComms(Document, frozen=True, omit_defaults=True):
    """For everybody, and where it differs, for customers and for operators apart."""

    voice_attributes: tuple[Sentence, ...] = ()
    do: tuple[Sentence, ...] = ()
    dont: tuple[Sentence, ...] = ()
    customer_facing: Audience | None = None
    operator_facing: Audience | None = None


AdapterType = Literal["OPENAPI", "INTERNAL", "MCP", "A2A", "FUNCTION", "CUSTOM"]
Capability = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z", description="One capability: letters, digits, _ and -.")
]
EndpointRef = Annotated[str, Meta(min_length=1, max_length=512, description="An entry of the endpoint registry.")]
JsonSchema = dict[str, Any]


class CapabilitySpec(Document, frozen=True, omit_defaults=True):
    """What the Tool Gateway checks and does for one capability."""

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


class Permission(Document, frozen=True, omit_defaults=True):
    """Exposes one capability of one adapter. `produces` names the evidence that its result is."""

    permission_id: Identifier
    adapter_id: Identifier
    capability: Capability
    allow: bool
    requires_approval_gate: Identifier | None = None
    arg_constraints: ArgConstraints = field(default_factory=dict)
    produces: Names = ()


class ToolingLayer(Document, frozen=True):
    adapter_registry: Annotated[tuple[Adapter, ...], Meta(min_length=1)]
    permissions: Annotated[tuple[Permission, ...], Meta(min_length=1)]


class ContextPack(Document, frozen=True, omit_defaults=True):
    """Closed at every level. Only its form is checked here; what its parts say to each other is for the gates."""

    contract_meta: ContractMeta
    pack_meta: PackMeta
    intelligence_refs: IntelligenceRefs
    business_context: BusinessContext
    policy_layer: PolicyLayer
    tooling_layer: ToolingLayer
    decision_layer: DecisionLayer
    memory_layer: MemoryLayer
    evaluation_layer: EvaluationLayer
    tone_and_comms: ToneAndComms
    task_layer: TaskLayer = TaskLayer()

    @property
    def ref(self) -> PackRef:
        return PackRef(self.pack_meta.pack_id, self.pack_meta.pack_version)


RUNTIME_CONTRACT = "1.0.0"
"""It is no version of the package: that one changes more often."""
