"""Artifacts as the registry stores them: canonical bytes.

Their digest is what is reviewed, signed and published.
"""

from collections.abc import Sequence
from typing import ClassVar

from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import FORMS, Artifact, ArtifactKind, DecisionCatalog, issuer_of
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import ContextPack, Tenant
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.json.parse import parse
from contextplane.model.value import Value

__all__ = ["ArtifactInvalid", "Candidate", "candidate", "lineage_of", "read_artifact"]


class ArtifactInvalid(ContextPlaneError):
    """A document that is no artifact: it has the form of no kind. `details.problems` lists what is wrong."""

    code: ClassVar[str] = "artifact_invalid"
    family: ClassVar[Family] = "refused"


class Candidate(Value, frozen=True):
    """An artifact as a typed document, as a JSON value, and as the bytes that are stored."""

    kind: ArtifactKind
    document: Artifact
    value: Json
    data: bytes

    @property
    def digest(self) -> Digest:
        return Digest.of(self.data)

    @property
    def ref(self) -> PackRef:
        return self.document.ref

    @property
    def issuer(self) -> str:
        return issuer_of(self.document)

    @property
    def tenant(self) -> Tenant | None:
        """The tenant of the document; None for an overlay, which belongs to the tenant of its pack."""
        if isinstance(self.document, ContextPack):
            return self.document.pack_meta.tenant
        return self.document.tenant if isinstance(self.document, DecisionCatalog) else None


def candidate(value: Json) -> Candidate:
    """Type a document by the id field that it has, or refuse it."""
    fields = value if isinstance(value, dict) else {}
    kind: ArtifactKind = "context_pack"
    if "overlay_id" in fields:
        kind = "overlay"
    elif "catalog_id" in fields:
        kind = "decision_catalog"
    document = typed_or_problems(value, FORMS[kind])
    if isinstance(document, tuple):
        first = document[0]
        raise ArtifactInvalid(
            f"not a {kind.replace('_', ' ')}: {first.cause}",
            at=first.at or "/",
            hint=first.cure,
            details={
                "problems": [{"at": finding.at, "cause": finding.cause, "cure": finding.cure} for finding in document]
            },
        )
    return Candidate(kind=kind, document=document, value=value, data=canonical(value))


def read_artifact(data: bytes) -> Candidate:
    """Read a stored artifact. Bytes that are not in canonical form are refused."""
    parsed = parse(data)
    if parsed.canonical != data:
        raise ArtifactInvalid("its bytes are not in canonical form", hint="RFC 8785")
    return candidate(parsed.value)


def lineage_of(catalogs: Sequence[Candidate]) -> tuple[Lineage, ...]:
    """The lineage entries of decision catalogs, ordered by name, because none has precedence."""
    return tuple(
        Lineage(ref=str(catalog.ref), digest=str(catalog.digest))
        for catalog in sorted(catalogs, key=lambda catalog: str(catalog.ref))
    )
