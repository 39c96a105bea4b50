"""The in-toto Statement v1 that is signed for an artifact: these very bytes, under this name, of this kind.

It says as little as it can. What an artifact went through is told by the registry's events, each signed by its actor.
"""

from typing import ClassVar, Literal

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import canonical
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.json_text import parse
from contextplane.model.value import Document, Value

__all__ = ["IN_TOTO", "PREDICATE_TYPE", "Statement", "StatementInvalid"]

IN_TOTO = "application/vnd.in-toto+json"
"""The payload type of an envelope that holds a statement."""

PREDICATE_TYPE = "urn:contextplane:artifact.v1"
_TYPE = "https://in-toto.io/Statement/v1"


class StatementInvalid(ContextPlaneError):
    """A payload that is not a statement of ours: another form, a field that we do not know, several subjects."""

    code: ClassVar[str] = "statement_invalid"
    family: ClassVar[Family] = "untrusted"


class _Digest(Document, frozen=True):
    sha256: str


class _Subject(Document, frozen=True):
    name: str
    digest: _Digest


class _Predicate(Document, frozen=True):
    kind: str
    issuer: str


class _Statement(Document, frozen=True, rename={"type": "_type", "predicate_type": "predicateType"}):
    type: Literal["https://in-toto.io/Statement/v1"]
    subject: tuple[_Subject]
    predicate_type: Literal["urn:contextplane:artifact.v1"]
    predicate: _Predicate


class Statement(Value, frozen=True):
    """One artifact: what it is called (`pack_id@X.Y.Z`), what kind it is, who issues it, and its stored bytes."""

    name: str
    kind: str
    issuer: str
    digest: Digest

    def to_bytes(self) -> bytes:
        """Its canonical JSON: the payload."""
        return canonical(
            {
                "_type": _TYPE,
                "subject": [{"name": self.name, "digest": {"sha256": self.digest.hex}}],
                "predicateType": PREDICATE_TYPE,
                "predicate": {"kind": self.kind, "issuer": self.issuer},
            }
        )

    @classmethod
    def parse(cls, payload: bytes) -> "Statement":
        """Read a payload. Closed: a field that we do not know may say something that we would overlook."""
        try:
            wire = msgspec.convert(parse(payload).value, _Statement)
            digest = Digest(wire.subject[0].digest.sha256)
        except (JsonRefused, msgspec.ValidationError, InvalidId) as error:
            raise StatementInvalid(
                f"not a statement about one artifact: {error}", at="/payload", hint=f"in-toto v1, {PREDICATE_TYPE}"
            ) from error
        return cls(name=wire.subject[0].name, kind=wire.predicate.kind, issuer=wire.predicate.issuer, digest=digest)
