"""The decision of policy about one request: the verdict, its consequences, and every rule's part."""

from typing import Literal

from msgspec import field

from contextplane.model.arguments import BoundName, CallLimit, ResolvedConstraint
from contextplane.model.json.canonical import Json
from contextplane.model.pack_layers import Effect
from contextplane.model.terms import ApprovalMode
from contextplane.model.value import Value

__all__ = [
    "ArgumentBound",
    "BoundFact",
    "BundleEffects",
    "Denial",
    "DenialKind",
    "GuardrailKind",
    "GuardrailVerdict",
    "IdleKind",
    "MissingFact",
    "PolicyDecision",
    "RuleEffect",
    "RuleError",
    "RuleIdle",
    "ToolLimit",
    "TriggerKind",
    "TriggeredGuardrail",
    "UndecidedKind",
]

DenialKind = Literal["refusal", "escalation", "rule", "error", "missing_fact", "no_rule", "nothing_allows"]
IdleKind = Literal["out_of_scope", "scope_unknown", "no_else", "unknown"]
ErrorKind = Literal["failed", "too_much_work", "not_boolean"]
GuardrailKind = Literal["must_refuse", "must_escalate"]
TriggerKind = Literal["when", "error", "missing", "signal", "label"]
UndecidedKind = Literal["error", "missing_fact", "scope"]


class RuleEffect(Value, frozen=True):
    """A branch of a rule that took effect. `approval_mode` is capped at its decision's maximum.

    `undecided`: the rule failed, misses a fact, or applies by one. Neither branch was chosen, so the restrictions of
    both hold; `effect` has those of this branch, and nothing else.
    """

    bundle_id: str
    rule_id: str
    at: str
    branch: Literal["then", "else"]
    effect: Effect
    approval_mode: ApprovalMode | None = None
    decision_binding: str | None = None
    undecided: UndecidedKind | None = None


class RuleIdle(Value, frozen=True):
    """A rule without effect: it does not apply, its scope or its answer is unknown, or it has no `else`."""

    bundle_id: str
    rule_id: str
    at: str
    kind: IdleKind
    why: str


class RuleError(Value, frozen=True):
    """A rule that applies and could not be evaluated. It counts as a denial."""

    bundle_id: str
    rule_id: str
    at: str
    kind: ErrorKind
    why: str


class MissingFact(Value, frozen=True):
    """A fact that a rule read and that is missing.

    `denies`: a branch that was not taken would have restricted. `voids`: not every branch allows, so the allowance of
    the other does not count. `scope`: the rule applies by this fact, and neither of its branches was taken.
    """

    path: str
    bundle_id: str
    rule_id: str
    at: str
    denies: bool
    voids: bool = False
    scope: bool = False


class BoundFact(Value, frozen=True):
    """A bound that is the value of a fact. `problem`: why it is none in this request, else empty."""

    bound: BoundName
    path: str
    problem: str = ""


class ArgumentBound(Value, frozen=True):
    """A constraint on an argument, and its place `at`.

    `origin` is `rule:<bundle>#<rule>` or `permission:<id>`. `capability`: the one that a rule names for it; None for a
    rule that constrains every tool, and for a permission, which has one capability. `facts`: the bounds that are values
    of facts.
    """

    argument: str
    constraint: ResolvedConstraint
    origin: str
    at: str
    capability: str | None = None
    facts: tuple[BoundFact, ...] = ()

    @property
    def problem(self) -> str:
        """Why no value keeps it: a fact is missing, or has a wrong type. Empty where none is."""
        return "; ".join(f"{fact.path} {fact.problem}" for fact in self.facts if fact.problem)

    @property
    def is_general(self) -> bool:
        """Whether a rule sets it for every tool, so that its `required` does not hold for calls that read."""
        return self.capability is None and self.origin.startswith("rule:")


class ToolLimit(Value, frozen=True):
    """How often a tool may be called, or how much in all. The runtime holds it.

    `origin` is `permission:<id>`.
    """

    limit: CallLimit
    origin: str


class BundleEffects(Value, frozen=True):
    """The rules of one bundle that took effect, in document order: a row of the policy manifest.

    `undecided` are the rules of which only the restrictions hold, those of both branches.
    """

    bundle_id: str
    rule_ids: tuple[str, ...]
    undecided: tuple[str, ...] = ()


class TriggeredGuardrail(Value, frozen=True):
    """A triggered guardrail, and every way `by` which it was triggered.

    `missing` are the missing facts that its `when` read. By `missing` alone: its `when` does not hold, and could have
    held if they had been given.
    """

    id: str
    kind: GuardrailKind
    by: tuple[TriggerKind, ...]
    message: str | None = None
    error: str | None = None
    missing: tuple[str, ...] = ()


class GuardrailVerdict(Value, frozen=True):
    """All declared guardrails, and those that were triggered."""

    must_refuse: tuple[str, ...] = ()
    must_escalate: tuple[str, ...] = ()
    triggered: tuple[TriggeredGuardrail, ...] = ()

    @property
    def refusals(self) -> tuple[str, ...]:
        return tuple(guardrail.id for guardrail in self.triggered if guardrail.kind == "must_refuse")

    @property
    def escalations(self) -> tuple[str, ...]:
        return tuple(guardrail.id for guardrail in self.triggered if guardrail.kind == "must_escalate")


class Denial(Value, frozen=True):
    """One reason why the intent is denied. `by`: the rule or guardrail, or empty."""

    kind: DenialKind
    by: str
    reason: str


class PolicyDecision(Value, frozen=True):
    """The verdict on one request. `allowed` exactly when `denials` is empty.

    Every rule of the pack is in one of `effects`, `idle` and `errors`. An undecided rule, which is idle or failed, is
    in `effects` as well, once for each branch that restricts. `effective_approval_mode` is the strictest one that is
    asked for; when it is None, each tool's own declared mode holds. `fact_values`: the facts that bounds of arguments
    refer to, those of permissions included; one that is missing is not there.
    """

    policy_decision_id: str
    intent: str
    allowed: bool
    reason: str
    denials: tuple[Denial, ...]
    effective_approval_mode: ApprovalMode | None
    requires_approval_gates: tuple[str, ...]
    requires: tuple[str, ...]
    prohibits: tuple[str, ...]
    matched_rule_ids: tuple[str, ...]
    bundles: tuple[BundleEffects, ...]
    arg_constraints: tuple[ArgumentBound, ...]
    effects: tuple[RuleEffect, ...]
    idle: tuple[RuleIdle, ...]
    errors: tuple[RuleError, ...]
    missing_facts: tuple[MissingFact, ...]
    guardrails: GuardrailVerdict
    fact_values: dict[str, Json] = field(default_factory=dict)
