"""`policy_layer` of a context pack: rules, guardrails, approval gates and argument constraints.

They constrain capabilities and never create one. Docstrings of documents are descriptions in the published schema.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from contextplane.model.terms import ApprovalMode, Identifier, JsonLogic, Names, Sentence
from contextplane.model.value import Document

__all__ = [
    "ApprovalGate",
    "ArgConstraint",
    "ArgConstraints",
    "Effect",
    "Guardrail",
    "Guardrails",
    "PolicyBundle",
    "PolicyDsl",
    "PolicyLayer",
    "Rule",
    "Scalar",
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
