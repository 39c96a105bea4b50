"""The DSSE envelope, the in-toto statement in it, and the strict base64 that both use.

- Base64 with one spelling per value (RFC 4648, section 4): standard alphabet, padded, no stray bits, no line breaks.
  A signature does not cover its own spelling. If two spellings passed for one value, an envelope could be changed
  without breaking its signature.
- The envelope is read strictly and written canonically. Signatures cover the pre-authentication encoding (PAE) of type
  and payload, so that no payload can be passed off as one of another type. Which signatures count is decided in
  `verify.py`.
- The in-toto Statement v1 of an artifact names its bytes, its name and its kind, and nothing else. The history of an
  artifact is in the registry's events, each signed by its actor.
"""

import binascii
from typing import ClassVar, Literal

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.value import Document, Value
from contextplane.ports.keys import Signer

__all__ = [
    "IN_TOTO",
    "MAX_ENVELOPE",
    "MAX_SIGNATURES",
    "PREDICATE_TYPE",
    "Base64Refused",
    "Envelope",
    "EnvelopeInvalid",
    "PayloadTypeWrong",
    "Signature",
    "Statement",
    "StatementInvalid",
    "decode_base64",
    "encode_base64",
    "make_envelope",
    "pae",
]


# --- base64 ----------------------------------------------------------------------------------------------------------


class Base64Refused(ContextPlaneError):
    """A text that is not the one strict base64 spelling of its bytes."""

    code: ClassVar[str] = "base64_not_strict"
    family: ClassVar[Family] = "untrusted"


def encode_base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def decode_base64(text: str, *, at: str) -> bytes:
    """Decode `text`, if it is how `encode_base64` spells the bytes. `at`: its place, for the error."""
    try:
        data = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise _base64_error(at) from error
    # Strict mode accepts leftover bits in the last character.
    if encode_base64(data) != text:
        raise _base64_error(at)
    return data


def _base64_error(at: str) -> Base64Refused:
    return Base64Refused(
        "not strict base64", at=at, hint="the standard alphabet with padding, without spaces and stray bits"
    )


# --- the envelope ----------------------------------------------------------------------------------------------------

MAX_ENVELOPE = 64 * 1024
"""The size limit of an event in bytes; anything larger is not read."""

MAX_SIGNATURES = 16
"""The limit exists because each signature may cost a check of every key of the issuer."""

_SIGNATURE_SIZE = 64


class EnvelopeInvalid(ContextPlaneError):
    """Bytes that are not a DSSE envelope: not JSON, a field too many or too few, too large."""

    code: ClassVar[str] = "envelope_invalid"
    family: ClassVar[Family] = "untrusted"


class PayloadTypeWrong(ContextPlaneError):
    """A signed envelope of another kind than the one that is asked for."""

    code: ClassVar[str] = "envelope_payload_type_wrong"
    family: ClassVar[Family] = "untrusted"


class _Signature(Document, frozen=True):
    sig: str
    keyid: str = ""


class _Envelope(Document, frozen=True, rename={"payload_type": "payloadType"}):
    payload: str
    payload_type: str
    signatures: tuple[_Signature, ...]


class Signature(Value, frozen=True):
    """One signature. `key_id` is the signer's own hint; no decision depends on it."""

    key_id: str
    value: bytes


class Envelope(Value, frozen=True):
    """A payload with its signatures. An instance is parsed, not verified."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...] = ()

    @property
    def pae(self) -> bytes:
        return pae(self.payload_type, self.payload)

    def with_signature(self, signer: Signer) -> "Envelope":
        """Add the signature of a signer. Signing again with the same key changes nothing."""
        signature = Signature(key_id=signer.public_key.key_id, value=signer.sign(self.pae))
        if signature in self.signatures:
            return self
        return msgspec.structs.replace(self, signatures=(*self.signatures, signature))

    def to_bytes(self) -> bytes:
        """Encode as canonical JSON."""
        return canonical(
            {
                "payload": encode_base64(self.payload),
                "payloadType": self.payload_type,
                "signatures": [
                    {"keyid": signature.key_id, "sig": encode_base64(signature.value)} for signature in self.signatures
                ],
            }
        )

    @classmethod
    def parse(cls, data: bytes, *, payload_type: str) -> "Envelope":
        """(1) Read an envelope strictly. (2) Refuse it if its payload is of another type."""
        if len(data) > MAX_ENVELOPE:
            raise EnvelopeInvalid(f"{len(data)} bytes", hint=f"an envelope has at most {MAX_ENVELOPE}")
        try:
            wire = msgspec.convert(parse(data).value, _Envelope)
        except (JsonRefused, msgspec.ValidationError) as error:
            raise EnvelopeInvalid(f"not a DSSE envelope: {error}", hint="payload, payloadType, signatures") from error
        if len(wire.signatures) > MAX_SIGNATURES:
            raise EnvelopeInvalid(f"{len(wire.signatures)} signatures", hint=f"at most {MAX_SIGNATURES} are read")
        if wire.payload_type != payload_type:
            raise PayloadTypeWrong(
                f"a payload of type {wire.payload_type[:80]!r}", at="/payloadType", hint=f"expected {payload_type!r}"
            )
        signatures = tuple(_signature(signature, f"/signatures/{n}") for n, signature in enumerate(wire.signatures))
        return cls(
            payload_type=wire.payload_type, payload=decode_base64(wire.payload, at="/payload"), signatures=signatures
        )


def _signature(wire: _Signature, at: str) -> Signature:
    value = decode_base64(wire.sig, at=f"{at}/sig")
    if len(value) != _SIGNATURE_SIZE:
        raise EnvelopeInvalid(f"a signature of {len(value)} bytes", at=f"{at}/sig", hint="Ed25519 has 64")
    return Signature(key_id=wire.keyid, value=value)


def pae(payload_type: str, payload: bytes) -> bytes:
    """Encode what is signed: `DSSEv1`, then type and payload, each after its length in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def make_envelope(payload_type: str, payload: bytes, *signers: Signer) -> Envelope:
    """Make an envelope and add the signature of each signer, in this order."""
    envelope = Envelope(payload_type=payload_type, payload=payload)
    for signer in signers:
        envelope = envelope.with_signature(signer)
    return envelope


# --- the statement ---------------------------------------------------------------------------------------------------

IN_TOTO = "application/vnd.in-toto+json"
"""The payload type of an envelope that holds a statement."""

PREDICATE_TYPE = "urn:contextplane:artifact.v1"
_TYPE = "https://in-toto.io/Statement/v1"


class StatementInvalid(ContextPlaneError):
    """A payload that is not a statement of ours: another form, an unknown field, several subjects."""

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
    """The name of an artifact (`pack_id@X.Y.Z`), its kind, its issuer, and the digest of its bytes."""

    name: str
    kind: str
    issuer: str
    digest: Digest

    def to_bytes(self) -> bytes:
        """Encode as canonical JSON, the payload of an envelope."""
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
        """Read a payload. An unknown field is refused, because its meaning would be ignored."""
        try:
            wire = msgspec.convert(parse(payload).value, _Statement)
            digest = Digest(wire.subject[0].digest.sha256)
        except (JsonRefused, msgspec.ValidationError, InvalidId) as error:
            raise StatementInvalid(
                f"not a statement about one artifact: {error}", at="/payload", hint=f"in-toto v1, {PREDICATE_TYPE}"
            ) from error
        return cls(name=wire.subject[0].name, kind=wire.predicate.kind, issuer=wire.predicate.issuer, digest=digest)
