"""`decision_layer`: the typed decisions that a run can end in."""

from typing import Annotated, Literal

from msgspec import Meta

from contextplane.model.context_pack.terms import ApprovalMode, Identifier, JsonLogic, Names, Semver
from contextplane.model.value import Document

__all__ = ["DecisionLayer", "DecisionRight", "DecisionSpec"]

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
