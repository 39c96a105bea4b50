"""`contract_meta`: the identity of the artifact, who issues it, and what it needs to run."""

from typing import Annotated

from msgspec import Meta

from contextplane.model.context_pack.terms import Identifier, Semver
from contextplane.model.value import Document

__all__ = ["Compatibility", "ContractMeta"]

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
