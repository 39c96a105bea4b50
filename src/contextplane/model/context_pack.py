"""The context pack: eight layers, and three that a pack may leave out.

Each layer is a document of its own; policy, tools, knowledge and memory have modules of their own. Only the form is
checked here: what the parts say to each other is for the gates of `authoring`. Docstrings of documents are descriptions
in the published schema.
"""

from typing import Annotated, Any, Literal, assert_never

from msgspec import UNSET, Meta, UnsetType, field

from contextplane.model.arguments import CapabilityId
from contextplane.model.ids import PackRef
from contextplane.model.knowledge_layers import (
    ConsentGating,
    IdentityLayer,
    IntelligenceRefs,
    KnowledgeGraph,
    MemoryLayer,
    MemoryPolicy,
    Ontology,
    PromotionThresholds,
    TierTtls,
    WriteClass,
)
from contextplane.model.pack_layers import PolicyLayer, ToolingLayer
from contextplane.model.terms import (
    ApprovalMode,
    DataClassification,
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
    """A few words about the business.

    `what_we_do`: What the business does, in a sentence or two.
    `who_we_serve`: Its customers.
    `differentiators`: What it does better than others.
    """

    what_we_do: Sentence
    who_we_serve: tuple[Sentence, ...] = ()
    differentiators: tuple[Sentence, ...] = ()


class BusinessContext(Document, frozen=True):
    """`non_negotiables` always reach the model.

    `summary`: The business in a few words.
    `non_negotiables`: Promises that are never broken; the model always reads them.
    """

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
    """What must be present, each in a range of versions: old runtimes fail closed.

    `requires`: What must be present, by name, each in a range of versions; runtime is required.
    """

    requires: Annotated[dict[Identifier, Range], Meta(min_length=1)]


class ContractMeta(Document, frozen=True):
    """`contract_version` is the version of the schema, separate from that of the pack.

    `contract_name`: The name of the contract.
    `contract_version`: The version of the contract.
    `issuer`: The authority that answers for the pack.
    `created_at`: When the pack was written.
    `compatibility`: What must be present to run it.
    """

    contract_name: Identifier
    contract_version: Semver
    issuer: Identifier
    created_at: Moment
    compatibility: Compatibility


DecisionRight = Literal["propose", "recommend", "execute", "escalate"]
SchemaRef = Annotated[str, Meta(pattern=r"^schema://[A-Za-z0-9][A-Za-z0-9_.-]{0,255}\Z", description="schema://<name>")]


class DecisionSpec(Document, frozen=True, omit_defaults=True):
    """`allowed_outcomes` is closed; `approval_mode` is at least that of every tool the decision may use.

    `decision_key`: The id of the decision.
    `version`: The version of the decision.
    `owner_role`: The role that answers for it.
    `required_evidence`: The evidence without which it may not be committed.
    `allowed_outcomes`: The only outcomes that it can have.
    `approval_mode`: The most that its tools can do.
    `decision_right`: How far the agent may go.
    `inputs_schema_ref`: The schema of what it is made from.
    `outputs_schema_ref`: The schema of its record.
    `eligibility_rules`: The condition under which it may be made at all.
    `challenge_required`: Whether a second look is required before it is committed.
    `on_deny`: The tools that stay when its intent is denied: none, or those that read.
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

    @property
    def reach(self) -> ApprovalMode:
        """The most that a tool can do which it uses. What it only proposes or recommends, another carries out."""
        match self.decision_right:
            case "propose" | "recommend":
                return "read_only"
            case "execute" | "escalate":
                return self.approval_mode
            case unreachable:
                assert_never(unreachable)


class DecisionLayer(Document, frozen=True):
    """The decisions of the pack.

    `decision_specs`: The decisions that a run of this pack can end in.
    """

    decision_specs: Annotated[tuple[DecisionSpec, ...], Meta(min_length=1)]


Metric = Literal["policy", "utility", "latency_p99_ms", "safety", "economics_cents_per_decision"]
Score = Annotated[float, Meta(ge=0, le=1)]


class EvalTarget(Document, frozen=True):
    """The scores that runs of one intent must reach.

    `intent`: The intent whose runs are scored.
    `policy`: The share of runs that follow policy.
    `utility`: The share of runs that serve the request.
    `latency_p99_ms`: The latency that 99 of 100 runs stay below.
    `safety`: The share of runs that do no harm.
    `economics_cents_per_decision`: What a decision may cost.
    """

    intent: Identifier
    policy: Score
    utility: Score
    latency_p99_ms: Annotated[int, Meta(ge=1)]
    safety: Score
    economics_cents_per_decision: Annotated[float, Meta(ge=0)]


class ReleaseGate(Document, frozen=True):
    """How much worse one metric may become.

    `metric`: The metric that is compared with the version before.
    `max_delta`: How much worse it may become.
    """

    metric: Metric
    max_delta: Annotated[float, Meta(ge=0)]


class EvaluationLayer(Document, frozen=True):
    """How runs are scored, and when a release is refused.

    `eval_targets`: The scores that runs must reach, by intent.
    `release_gates`: How much worse a new version may be.
    """

    eval_targets: Annotated[tuple[EvalTarget, ...], Meta(min_length=1)]
    release_gates: Annotated[tuple[ReleaseGate, ...], Meta(min_length=1)]


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
    """Whose pack it is. Only the tenants in `shared_with` may run it besides.

    `tenant_id`: The id of the tenant.
    `name`: The name of the tenant, for people.
    `shared_with`: The other tenants that may run it.
    """

    tenant_id: Identifier
    name: Sentence
    shared_with: Names = ()


class EnvironmentDefaults(Document, frozen=True):
    """What holds where a request says nothing of it.

    `language`: The language of answers.
    `timezone`: The timezone of times, as in the tz database.
    `currency`: The currency of amounts.
    `region`: The country or location.
    """

    language: Language
    timezone: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}\Z")]
    currency: Annotated[str, Meta(pattern=r"^[A-Z]{3}\Z", description="ISO 4217.")]
    region: Identifier


class PackMeta(Document, frozen=True, omit_defaults=True):
    """`pack_id@pack_version` never changes. `ttl_seconds` is for caches: it does not make anything mutable.

    `token_counter` counts the tokens of its compiles. Without one, `calibrated1` does, which estimates.

    `pack_id`: The id of the pack.
    `pack_version`: Its version. The same version never changes.
    `tenant`: Whose pack it is.
    `environment_defaults`: What holds where a request says nothing.
    `ttl_seconds`: How long a cache may keep the pack.
    `data_classification`: The highest classification of data that runs may see.
    `token_counter`: The counter that sizes the prompt.
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

    `id`: The id of the step, unique in the template.
    `tool`: The capability that is called.
    `params`: The arguments, each a value or an expression.
    `depends_on`: The steps that must end first.
    """

    id: Identifier
    tool: CapabilityId
    params: dict[str, Any] = field(default_factory=dict)
    depends_on: Names = ()


class TaskTemplate(Document, frozen=True):
    """The steps towards one decision for one intent.

    `template_id`: The id of the template.
    `intent`: The intent that it serves.
    `decision_key`: The decision that it leads to.
    `steps`: The calls, in their order.
    """

    template_id: Identifier
    intent: Identifier
    decision_key: Identifier
    steps: Annotated[tuple[TaskStep, ...], Meta(min_length=1)]


class TaskLayer(Document, frozen=True):
    """The plans of the pack.

    `task_templates`: The plans of the deterministic planner.
    """

    task_templates: tuple[TaskTemplate, ...] = ()


class Audience(Document, frozen=True, omit_defaults=True):
    """What holds only for one kind of reader.

    `do`: What to do for these readers.
    `dont`: What not to do for these readers.
    """

    do: tuple[Sentence, ...] = ()
    dont: tuple[Sentence, ...] = ()


class ToneAndComms(Document, frozen=True, omit_defaults=True):
    """For everybody, and where it differs, for customers and for operators apart.

    `voice_attributes`: How the agent sounds.
    `do`: What to do when writing.
    `dont`: What not to do when writing.
    `customer_facing`: What holds for customers only.
    `operator_facing`: What holds for operators only.
    """

    voice_attributes: tuple[Sentence, ...] = ()
    do: tuple[Sentence, ...] = ()
    dont: tuple[Sentence, ...] = ()
    customer_facing: Audience | None = None
    operator_facing: Audience | None = None


class ContextPack(Document, frozen=True, omit_defaults=True, kw_only=True):
    """Closed at every level. Only its form is checked here; what its parts say to each other is for the gates.

    A pack without ontology, graph or memory leaves out `intelligence_refs` or its parts, and `memory_layer`.

    `contract_meta`: Who issued the contract, and what it needs.
    `pack_meta`: The identity of the pack, and its defaults.
    `intelligence_refs`: What gives words, subjects and facts their meaning.
    `business_context`: What the model must know of the business.
    `policy_layer`: What is allowed, refused, escalated and approved.
    `tooling_layer`: What tools there are, and which may be used.
    `decision_layer`: What a run can decide.
    `memory_layer`: What is remembered.
    `evaluation_layer`: How good runs must be.
    `tone_and_comms`: How the agent writes.
    `task_layer`: The plans of the deterministic planner.
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
        parts = (
            ("intelligence_refs.ontology", refs.ontology),
            ("intelligence_refs.knowledge_graph", refs.knowledge_graph),
            ("intelligence_refs.identity_layer", refs.identity_layer),
            ("memory_layer", self.memory_layer),
        )
        return tuple([name for name, part in parts if not part])

    @property
    def ref(self) -> PackRef:
        return PackRef(self.pack_meta.pack_id, self.pack_meta.pack_version)


RUNTIME_CONTRACT = "1.0.0"
"""The contract with packs: `compatibility.requires` names it `runtime`. The package version changes more often."""
