"""What is signed, published and pinned: three kinds of documents with one grammar of names, `id@X.Y.Z`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.decision_catalog import DecisionCatalog
from contextplane.model.overlay import Overlay

__all__ = ["FORMS", "Artifact", "ArtifactKind", "issuer_of"]

ArtifactKind = Literal["context_pack", "overlay", "decision_catalog"]
Artifact = ContextPack | Overlay | DecisionCatalog

FORMS: Mapping[ArtifactKind, type[Artifact]] = MappingProxyType(
    {"context_pack": ContextPack, "overlay": Overlay, "decision_catalog": DecisionCatalog}
)
"""Each kind, and the document that it is."""


def issuer_of(artifact: Artifact) -> str:
    """Who answers for it."""
    return artifact.contract_meta.issuer if isinstance(artifact, ContextPack) else artifact.issuer
