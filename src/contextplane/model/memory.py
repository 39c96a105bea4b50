"""A memory as the compiler is given it. Only promoted memory is recalled; what is not says so, and is left out."""

from typing import Annotated, Literal

from msgspec import Meta

from contextplane.model.context_pack.contract_meta import Moment
from contextplane.model.context_pack.memory_layer import WriteClass
from contextplane.model.context_pack.terms import DataClassification, Identifier, Names
from contextplane.model.value import Document

__all__ = ["Memory", "MemoryState", "MemoryTier"]

MemoryState = Literal["captured", "candidate", "reviewed", "promoted", "rejected"]
MemoryTier = Literal["working", "episodic", "semantic", "durable"]


class Memory(Document, frozen=True, omit_defaults=True):
    """What was remembered of a subject. Without `intents` it is for every intent, without `roles` for every role."""

    memory_ref: Annotated[str, Meta(pattern=r"^[!-~]{1,512}\Z", description="ASCII without blanks, at most 512.")]
    tenant_id: Identifier
    state: MemoryState
    tier: MemoryTier
    write_class: WriteClass
    content: Annotated[str, Meta(max_length=1_000_000)]
    subject: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]+:[!-~]{1,256}\Z", description="namespace:id")] | None = None
    intents: Names = ()
    roles: Names = ()
    classification: DataClassification = "INTERNAL"
    expires_at: Moment | None = None
    evidence_refs: tuple[str, ...] = ()
