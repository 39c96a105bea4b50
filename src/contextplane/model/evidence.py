"""Evidence that a run may rest on: where it comes from, how far it is trusted, how fresh it is, what contradicts it.

A plain text is evidence, too, as older callers give it: a bare reference, of which nothing is known. It can be shown to
a model and can never close a gate.
"""

from typing import Annotated, Literal

from msgspec import Meta

from contextplane.model.context_pack.contract_meta import Moment
from contextplane.model.context_pack.terms import DataClassification, Identifier
from contextplane.model.value import Document

__all__ = ["Evidence", "EvidenceConflict", "EvidenceInput", "EvidenceText", "Freshness", "Trust"]

Trust = Literal["authoritative", "verified", "untrusted", "unknown"]
"""How far the source is trusted. Only the first two can close a gate."""

EvidenceText = Annotated[
    str,
    Meta(
        pattern=r"^(kg|tool|policy|session):[!-\"$-~]{1,512}(#[!-\"$-~]{1,256})?\Z",
        description="kg:|tool:|policy:|session:<id>[#<part>], without white space",
    ),
]


class Freshness(Document, frozen=True, omit_defaults=True):
    """When it was seen, and until when that holds. Without an end it does not age."""

    observed_at: Moment
    expires_at: Moment | None = None


class EvidenceConflict(Document, frozen=True, omit_defaults=True):
    """Another piece of evidence that says otherwise.

    It is resolved when `selected` names one of the two and `resolution_ref` who decided that.
    """

    evidence_ref: EvidenceText
    selected: EvidenceText | None = None
    resolution_ref: Annotated[str, Meta(min_length=1, max_length=512)] | None = None


class Evidence(Document, frozen=True, omit_defaults=True):
    """One typed fact. `type` is the name that a decision requires it by; `content` is what the model is shown."""

    evidence_ref: EvidenceText
    type: Identifier
    tenant_id: Identifier
    source: Identifier
    trust: Trust
    content: Annotated[str, Meta(max_length=1_000_000)]
    freshness: Freshness | None = None
    classification: DataClassification = "INTERNAL"
    content_hash: Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")] | None = None
    conflicts: tuple[EvidenceConflict, ...] = ()


EvidenceInput = Evidence | str
