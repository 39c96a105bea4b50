"""What is asked of a registry by whoever starts a run, and what it is given: documents that passed every step."""

from typing import Literal

from contextplane.authoring.overlays import Applied
from contextplane.model.artifact import ArtifactKind
from contextplane.model.canonical import Json
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.decision_catalog import Intent
from contextplane.model.ids import Digest, PackRef
from contextplane.model.value import Value
from contextplane.registry.merging import Part
from contextplane.registry.version import Use
from contextplane.trust.checkpoint import Checkpoint

__all__ = ["Asked", "Mark", "Proof", "Proved", "Resolved", "Used"]

Mark = Literal[
    "deprecated, for replay only",
    "revoked, for replay only",
    "published by a key that is revoked",
    "approved by a key that is revoked",
    "signed by a key that is revoked",
    "signed by a key whose time was changed since",
    "signed by fewer keys than are needed now",
    "of an issuer that may not publish for this tenant now",
]
"""What whoever uses a document must know. New traffic gets none of these."""


class Asked(Value, frozen=True):
    """Which documents, for whom, where, and what for.

    `refs` are one context pack and any catalogs. New traffic gets the overlays that are pinned in the environment; a
    replay names in `overlays` those that were applied then.
    """

    refs: tuple[PackRef, ...]
    tenant: str
    environment: str
    purpose: Use
    overlays: tuple[PackRef, ...] = ()


class Used(Value, frozen=True):
    """A document that took part: which bytes, who signed them, and what whoever uses them must know."""

    ref: PackRef
    kind: ArtifactKind
    digest: Digest
    signed_by: tuple[str, ...]
    marks: tuple[Mark, ...] = ()


class Proved(Value, frozen=True):
    """An event that the decision stands on: where it is in its stream and in the log, and the way to the root."""

    stream: str
    seq: int
    event: str
    entry: int
    path: tuple[bytes, ...]


class Proof(Value, frozen=True):
    """A signed checkpoint, as it was signed, and every event under it."""

    checkpoint: Checkpoint
    note: bytes
    events: tuple[Proved, ...]


class Resolved(Value, frozen=True):
    """All of it, verified. `view` is the pack with its catalogs and overlays; `value` the same as a plain document.

    `parts` tells where each decision, plan and intent comes from, `applied` what the overlays changed.
    """

    packs: tuple[Used, ...]
    overlays: tuple[Used, ...]
    view: ContextPack
    value: Json
    intents: tuple[Intent, ...]
    parts: tuple[Part, ...]
    applied: tuple[Applied, ...]
    proof: Proof

    @property
    def lineage(self) -> tuple[Used, ...]:
        """Everything that took part, in the order in which it did: pack and catalogs, then overlays as applied."""
        return (*self.packs, *self.overlays)

    @property
    def marks(self) -> tuple[str, ...]:
        return tuple(f"{one.ref}: {mark}" for one in self.lineage for mark in one.marks)

    @property
    def ttl_seconds(self) -> int:
        """How long a copy is fresh. It says nothing of whether the version changes: none ever does."""
        return self.view.pack_meta.ttl_seconds
