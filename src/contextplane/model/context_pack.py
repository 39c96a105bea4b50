"""The context pack: eight layers, and three that a pack may leave out.

Each layer is a document of its own; `policy_layer` and `tooling_layer` have modules of their own. Only the form is
checked here: what the parts say to each other is for the gates of `authoring`. Docstrings of documents are descriptions
in the published schema.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from contextplane.model.arguments import CapabilityId
from contextplane.model.ids import PackRef
from contextplane.model.pack_layers import PolicyLayer, ToolingLayer
from contextplane.model.terms import (
    ApprovalMode,
    DataClassification,
    Duration,
    Identifier,
    JsonLogic,
    Names,
    OnDeny,
    Semver,
    Sentence,
)
from contextplane.model.tokens import TokenCounterName
from contextplane.model.value import Document

__all__ = [
    "RUNTIME_CONTRACT",
    "Audience",
    "BusinessContext",
    "BusinessSummary",
    "Compatibility",
    "ConsentGating",
    "ContextPack",
    "ContractMeta",
    "DecisionLayer",
    "DecisionRight",
    "DecisionSpec",
    "EnvironmentDefaults",
    "EvalTarget",
    "EvaluationLayer",
    "IdentityLayer",
    "IntelligenceRefs",
    "KnowledgeGraph",
    "Language",
    "MemoryLayer",
    "MemoryPolicy",
    "Metric",
    "Ontology",
    "PackMeta",
    "PromotionThresholds",
    "ReleaseGate",
    "TaskLayer",
    "TaskStep",
    "TaskTemplate",
    "Tenant",
    "TierTtls",
    "ToneAndComms",
    "WriteClass",
]


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
    """`allowed_outcomes` is closed; `approval_mode` is at least that of every tool the decision may use.

    `on_deny`: the tools that stay when its intent is denied: none, or those that read and that no rule prohibits.
    """

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
    on_deny: OnDeny = "none"


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
    """Each part may be left out: a run without `knowledge_graph` reads no graph.

    `embedding_keys` name their versions, because retrieval can alter a decision.
    """

    ontology: Ontology | UnsetType = UNSET
    knowledge_graph: KnowledgeGraph | UnsetType = UNSET
    identity_layer: IdentityLayer | UnsetType = UNSET
    embedding_keys: Names = ()

    @property
    def pinned_ontology(self) -> str | None:
        """The ontology in its version, `ont.support@1.0.0`; None if there is none."""
        return f"{self.ontology.namespace}@{self.ontology.version}" if self.ontology else None

    @property
    def entity_types(self) -> Names:
        return self.ontology.entity_types if self.ontology else ()

    @property
    def snapshot_pin_rule(self) -> str | None:
        return self.knowledge_graph.snapshot_pin_rule if self.knowledge_graph else None

    @property
    def ceid_namespaces(self) -> Names:
        return self.identity_layer.ceid_namespaces if self.identity_layer else ()


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


# Language, extended language, script, region, variants, extensions, private use. Three letters are an extended
# language and never a country: those have two.
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


class PackMeta(Document, frozen=True, omit_defaults=True):
    """`pack_id@pack_version` never changes. `ttl_seconds` is for caches: it does not make anything mutable.

    `token_counter` counts the tokens of its compiles. Without one, `calibrated1` does, which estimates.
    """

    pack_id: Identifier
    pack_version: Semver
    tenant: Tenant
    environment_defaults: EnvironmentDefaults
    ttl_seconds: Annotated[int, Meta(ge=1, le=31_536_000)]
    data_classification: DataClassification
    token_counter: TokenCounterName | None = None


class TaskStep(Document, frozen=True, omit_defaults=True):
    """One call. What is an object with one key, in a param or within one, is an expression: it is computed.

    It reads the facts, and as `results.<step id>` what the steps gave that this one depends on. All else is handed over
    as it stands.
    """

    id: Identifier
    tool: CapabilityId
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


class ContextPack(Document, frozen=True, omit_defaults=True, kw_only=True):
    """Closed at every level. Only its form is checked here; what its parts say to each other is for the gates.

    A pack without ontology, graph or memory leaves out `intelligence_refs` or its parts, and `memory_layer`.
    """

    contract_meta: ContractMeta
    pack_meta: PackMeta
    intelligence_refs: IntelligenceRefs = IntelligenceRefs()
    business_context: BusinessContext
    policy_layer: PolicyLayer
    tooling_layer: ToolingLayer
    decision_layer: DecisionLayer
    memory_layer: MemoryLayer | UnsetType = UNSET
    evaluation_layer: EvaluationLayer
    tone_and_comms: ToneAndComms
    task_layer: TaskLayer = TaskLayer()

    @property
    def absent_parts(self) -> tuple[str, ...]:
        """The optional parts about knowledge and memory that the pack leaves out."""
        refs = self.intelligence_refs
        parts = {
            "intelligence_refs.ontology": refs.ontology,
            "intelligence_refs.knowledge_graph": refs.knowledge_graph,
            "intelligence_refs.identity_layer": refs.identity_layer,
            "memory_layer": self.memory_layer,
        }
        return tuple(name for name, part in parts.items() if not part)

    @property
    def ref(self) -> PackRef:
        return PackRef(self.pack_meta.pack_id, self.pack_meta.pack_version)


RUNTIME_CONTRACT = "1.0.0"
"""The contract with packs: `compatibility.requires` names it `runtime`. The package version changes more often."""
