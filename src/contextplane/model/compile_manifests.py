"""The manifests of a compiled context: what shaped it, what the run may use, and what was left out.

Docstrings of documents are descriptions in the published schema.
"""

from typing import Any, Literal

from msgspec import field

from contextplane.model.arguments import BoundName, CallLimit, ResolvedConstraint
from contextplane.model.terms import ApprovalMode, Bucket
from contextplane.model.value import Document

__all__ = [
    "ArgumentLimit",
    "CallLimitEntry",
    "CapabilityMetadata",
    "DecisionManifestEntry",
    "EvidenceManifestEntry",
    "LimitFact",
    "Manifests",
    "MemoryManifestEntry",
    "Omission",
    "OmissionKind",
    "PolicyManifestEntry",
    "ToolManifestEntry",
]

OmissionKind = Literal["tool", "rule", "evidence", "memory", "block", "redaction"]


class PolicyManifestEntry(Document, frozen=True, omit_defaults=True):
    """The rules of one bundle that took effect.

    `undecided` are rules that failed or miss a fact: neither branch took effect, and the restrictions of both hold.

    `bundle_id`: The bundle.
    `rule_ids`: Its rules that took effect.
    `undecided`: Its rules that failed or miss a fact.
    """

    bundle_id: str
    rule_ids: tuple[str, ...]
    undecided: tuple[str, ...] = ()


class CapabilityMetadata(Document, frozen=True, omit_defaults=True):
    """How much one capability can do, and where that is declared.

    `kind`: Whether it reads or changes something.
    `risk_level`: How much damage it can do.
    `approval_mode`: The most that it can do.
    `source`: Where that is declared.
    `description`: What it does, as the model reads it.
    `input_schema`: The JSON Schema of its arguments.
    `supplied_by_runtime`: The arguments that the runtime adds to a call.
    """

    kind: Literal["read", "write"]
    risk_level: str
    approval_mode: ApprovalMode
    source: Literal["adapter_registry"]
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    supplied_by_runtime: tuple[str, ...] = ()


class LimitFact(Document, frozen=True, omit_defaults=True):
    """A bound that is the value of a fact, which stands in the constraint.

    `bound`: The bound that is the value of a fact.
    `fact`: The path of the fact.
    `problem`: Why the fact has no usable value; no call keeps the bound then.
    `masked`: Whether a redaction hides the value.
    """

    bound: BoundName
    fact: str
    problem: str | None = None
    masked: bool = False


class ArgumentLimit(Document, frozen=True, omit_defaults=True):
    """What one argument must be, and who says so: `permission:<id>` or `rule:<bundle>#<rule>`.

    The `required` of a rule holds only for tools that write, unless it is `scoped`: the rule names this capability.

    `argument`: The argument that is limited.
    `constraint`: What the argument must be.
    `origin`: Who says so: permission:<id> or rule:<bundle>#<rule>.
    `scoped`: Whether the rule names this capability.
    `facts`: The bounds that are values of facts.
    """

    argument: str
    constraint: ResolvedConstraint
    origin: str
    scoped: bool = False
    facts: tuple[LimitFact, ...] = ()


class CallLimitEntry(Document, frozen=True):
    """How often a tool may be called, or how much in all, and who says so: `permission:<id>`.

    `limit`: The limit that the runtime holds.
    `origin`: Who says so: permission:<id>.
    """

    limit: CallLimit
    origin: str


class ToolManifestEntry(Document, frozen=True, omit_defaults=True):
    """The capabilities of one adapter that the run may use. `constraints` bound their arguments.

    `limits` bound how often they are called, and how much in all. The runtime holds them.

    `adapter_id`: The adapter.
    `capabilities`: Its capabilities that the run may use.
    `constraints`: The limits of arguments, by capability.
    `capability_metadata`: What each capability can do, by capability.
    `limits`: The limits of calls and quantities, by capability.
    """

    adapter_id: str
    capabilities: tuple[str, ...]
    constraints: dict[str, tuple[ArgumentLimit, ...]] = field(default_factory=dict)
    capability_metadata: dict[str, CapabilityMetadata] = field(default_factory=dict)
    limits: dict[str, tuple[CallLimitEntry, ...]] = field(default_factory=dict)


class EvidenceManifestEntry(Document, frozen=True, omit_defaults=True):
    """Evidence that was admitted.

    `evidence_ref`: The evidence.
    `source_id`: The source that it comes from.
    `hash`: The SHA-256 of its content.
    """

    evidence_ref: str
    source_id: str | None = None
    hash: str | None = None


class MemoryManifestEntry(Document, frozen=True):
    """A memory that was recalled.

    `memory_ref`: The memory.
    `hash`: The SHA-256 of its content.
    """

    memory_ref: str
    hash: str


class Omission(Document, frozen=True, omit_defaults=True):
    """A candidate that is not in the result: the stage that left it out, and why.

    A redaction is a masked value: `id` is the rule, `count` how many there are at this place, and `places` where they
    stand in it, at most 20. The value itself is nowhere.

    `kind`: What kind of candidate was left out.
    `id`: The id of the candidate.
    `stage`: The stage that left it out.
    `reason`: Why, as a stable code.
    `detail`: Why, in words.
    `at`: Its place in the input.
    `bucket`: The bucket that had no room for it.
    `tokens`: Its size in tokens.
    `priority`: Its priority.
    `source_refs`: What it was made from.
    `count`: How many values were masked at this place.
    `places`: Where they stand in it, at most 20.
    """

    kind: OmissionKind
    id: str
    stage: str
    reason: str
    detail: str | None = None
    at: str | None = None
    bucket: Bucket | None = None
    tokens: int | None = None
    priority: int | None = None
    source_refs: tuple[str, ...] = ()
    count: int | None = None
    places: tuple[str, ...] = ()


class DecisionManifestEntry(Document, frozen=True):
    """A decision that the request can end in: all of its outcomes, and how far it may go.

    `decision_key`: The decision.
    `decision_right`: How far the agent may go: propose, recommend, execute or escalate.
    `allowed_outcomes`: All outcomes that it can have.
    `approval_mode`: The most that its tools can do.
    """

    decision_key: str
    decision_right: str
    allowed_outcomes: tuple[str, ...]
    approval_mode: ApprovalMode


class Manifests(Document, frozen=True):
    """What shaped the run, what it may use, rests on and remembers, and all that was left out.

    `policy_manifest`: The rules that took effect, by bundle.
    `tool_manifest`: The tools that the run may use, by adapter.
    `evidence_manifest`: The evidence that was admitted.
    `memory_manifest`: The memories that were recalled.
    `decision_manifest`: The decisions that the request can end in.
    `omission_manifest`: Everything that was left out, each with its reason.
    """

    policy_manifest: tuple[PolicyManifestEntry, ...]
    tool_manifest: tuple[ToolManifestEntry, ...]
    evidence_manifest: tuple[EvidenceManifestEntry, ...]
    memory_manifest: tuple[MemoryManifestEntry, ...] = ()
    decision_manifest: tuple[DecisionManifestEntry, ...] = ()
    omission_manifest: tuple[Omission, ...] = ()
