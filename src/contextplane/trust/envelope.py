"""The DSSE envelope: a payload, its type, and signatures over both. It says nothing of whose signatures are good.

Read strictly, written canonically. What is signed is the pre-authentication encoding (PAE) of type and payload, so
that no payload can be passed off as one of another type.
"""

from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import canonical
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.json_text import parse
from contextplane.model.value import Document, Value
from contextplane.ports.signer import Signer
from contextplane.trust.base64_text import decoded, encoded

__all__ = [
    "MAX_ENVELOPE",
    "MAX_SIGNATURES",
    "Envelope",
    "EnvelopeInvalid",
    "PayloadTypeWrong",
    "Signature",
    "pae",
    "sealed",
]

MAX_ENVELOPE = 64 * 1024
"""As much as an event may hold; what is larger is not read."""

MAX_SIGNATURES = 16
"""Each one costs a check of every key of its issuer, so that their number has a limit."""

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
    """One signature. `key_id` is a hint of whoever signed, and nothing is decided by it."""

    key_id: str
    value: bytes


class Envelope(Value, frozen=True):
    """A payload with its signatures. That one exists says nothing of whether they hold."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...] = ()

    @property
    def pae(self) -> bytes:
        return pae(self.payload_type, self.payload)

    def signed(self, signer: Signer) -> "Envelope":
        """The same with one signature more; signing again with the same key changes nothing."""
        signature = Signature(key_id=signer.public_key.key_id, value=signer.sign(self.pae))
        if signature in self.signatures:
            return self
        return msgspec.structs.replace(self, signatures=(*self.signatures, signature))

    def to_bytes(self) -> bytes:
        """Its canonical JSON."""
        return canonical(
            {
                "payload": encoded(self.payload),
                "payloadType": self.payload_type,
                "signatures": [{"keyid": one.key_id, "sig": encoded(one.value)} for one in self.signatures],
            }
        )

    @classmethod
    def parse(cls, data: bytes, *, payload_type: str) -> "Envelope":
        """(1) Read an envelope; closed, strict. (2) Refuse it when its payload is of another type."""
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
        signatures = tuple(_signature(one, f"/signatures/{n}") for n, one in enumerate(wire.signatures))
        return cls(payload_type=wire.payload_type, payload=decoded(wire.payload, at="/payload"), signatures=signatures)


def _signature(wire: _Signature, at: str) -> Signature:
    value = decoded(wire.sig, at=f"{at}/sig")
    if len(value) != _SIGNATURE_SIZE:
        raise EnvelopeInvalid(f"a signature of {len(value)} bytes", at=f"{at}/sig", hint="Ed25519 has 64")
    return Signature(key_id=wire.keyid, value=value)


def pae(payload_type: str, payload: bytes) -> bytes:
    """What is signed: `DSSEv1`, then type and payload, each with its length in bytes before it."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sealed(payload_type: str, payload: bytes, *signers: Signer) -> Envelope:
    """An envelope signed by each of them, in this order."""
    envelope = Envelope(payload_type=payload_type, payload=payload)
    for signer in signers:
        envelope = envelope.signed(signer)
    return envelope
