"""The trust decision about an artifact, as numbered steps. Only the last step returns the bytes.

    1  the envelope is well-formed                      dsse.py
    2  its payload is a statement, and nothing else     dsse.py
    3  the statement is about these bytes and issuer    verify
    4  keys of this issuer signed exactly the PAE       trusted_signers
    5  each of them was valid at the time               trusted_signers
    6  enough people, each counted once                 trusted_signers

Later steps need the registry: whether the issuer may publish for a tenant, the state of the artifact, whether this
runtime can run it. They take a `VerifiedArtifact`, so that they cannot be applied to bytes that did not pass here.

The key id in a signature is a hint. A signature whose hint names no known key is tried with every key of the issuer, as
DSSE requires, because other tools spell key ids in their own ways.
"""

import hashlib
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.keys import Issuer, PublicKey, TrustedKey
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.keys import Keyring, SignatureCheck, Signer
from contextplane.trust.dsse import IN_TOTO, Envelope, Signature, Statement, make_envelope
from contextplane.trust.errors import (
    KeyExpired,
    KeyNotYetValid,
    KeyOfOtherIssuer,
    KeyRevoked,
    KeyUnknown,
    SignatureInvalid,
    SignatureMissing,
    ThresholdNotMet,
    Untrusted,
)

__all__ = [
    "CachedSignatureCheck",
    "DigestMismatch",
    "IssuerMismatch",
    "TrustContext",
    "VerifiedArtifact",
    "sign",
    "trusted_signers",
    "verify",
]

_ASK = "ask the issuer to sign it, or see 'ctx keys list'"
_OUT_OF_TIME: dict[str, type[Untrusted]] = {
    "not_yet_valid": KeyNotYetValid,
    "expired": KeyExpired,
    "revoked": KeyRevoked,
}


class CachedSignatureCheck:
    """Remembers the signatures that held, so that a command computes each of them once.

    It answers exactly as the check behind it: whether a signature holds depends on key, signature and message alone,
    and all three identify what is remembered, the message by its SHA-256. A signature that does not hold is never
    remembered. Of more than `capacity` signatures the oldest is forgotten.
    """

    def __init__(self, check: SignatureCheck, capacity: int = 4096) -> None:
        self._check = check
        self._capacity = capacity
        self._held: dict[tuple[bytes, bytes, bytes], None] = {}

    def holds(self, key: PublicKey, signature: bytes, message: bytes) -> bool:
        """Whether a key made a signature over exactly this message."""
        entry = (key.raw, signature, hashlib.sha256(message).digest())
        if entry in self._held:
            return True
        if not self._check.holds(key, signature, message):
            return False
        while len(self._held) >= self._capacity:
            del self._held[next(iter(self._held))]
        self._held[entry] = None
        return True


class TrustContext(Value, frozen=True):
    """What a trust decision is based on: the keyring, a signature check, and the time.

    `witnessed` is a time at which a trusted party saw the signatures, for example a log entry under a signed
    checkpoint. Without it the time of signing is unknown, and keys must be valid *now*: fail closed.
    """

    keyring: Keyring
    check: SignatureCheck
    now: Timestamp
    witnessed: Timestamp | None = None

    @property
    def moment(self) -> Timestamp:
        """The time at which keys must be valid. A clock that is behind the record revives no key."""
        return self.witnessed or max(self.now, self.keyring.as_of)


def trusted_signers(envelope: Envelope, issuer: str, trust_context: TrustContext) -> tuple[str, ...]:
    """Return the ids of the distinct keys of `issuer` whose signatures count.

    They are at least as many as the threshold of the issuer; otherwise the envelope is refused.
    """
    moment = trust_context.moment
    if not envelope.signatures:
        raise SignatureMissing("it is not signed", at="/signatures", hint=_ASK)
    known = trust_context.keyring.issuer(issuer)
    if known is None:
        raise KeyUnknown(f"no key of {issuer!r} is trusted", at="/signatures", hint="'ctx keys trust' adds keys for it")
    good: dict[str, TrustedKey] = {}
    refused: list[tuple[int, Untrusted]] = []
    for n, signature in enumerate(envelope.signatures):
        # (4) a key of this issuer signed exactly the PAE
        key = _signing_key(signature, envelope.pae, known, trust_context)
        if isinstance(key, Untrusted):
            refused.append((4, key.under(f"/signatures/{n}")))
            continue
        # (5) the key was valid at the time
        state = key.state_at(moment)
        if state == "valid":
            good[key.key.key_id] = key
        else:
            refused.append((5, _key_state_error(key, state, moment).under(f"/signatures/{n}")))
    # (6) enough people, each counted once however many keys they have
    people = len(trust_context.keyring.people_of(good))
    if people < known.threshold:
        raise _threshold_error(good, people, refused, known)
    return tuple(good)


def _signing_key(
    signature: Signature, message: bytes, issuer: Issuer, trust_context: TrustContext
) -> TrustedKey | Untrusted:
    """Find the key of the issuer that made a signature; otherwise return the error that says why not."""
    named = issuer.key(signature.key_id)
    for key in issuer.keys if named is None else (named,):
        if trust_context.check.holds(key.key, signature.value, message):
            return key
    shown = signature.key_id[:16] or "none"
    if named is not None:
        return SignatureInvalid(f"key {shown} did not sign this", hint="it was changed, or signed as another thing")
    others = trust_context.keyring.issuers_of(signature.key_id)
    if others:
        return KeyOfOtherIssuer(f"key {shown} is one of {', '.join(others)}, not of {issuer.name}", hint=_ASK)
    return KeyUnknown(f"no trusted key of {issuer.name} made it (it names {shown!r})", hint=_ASK)


def _key_state_error(key: TrustedKey, state: str, moment: Timestamp) -> Untrusted:
    shown = key.key.key_id[:16]
    messages = {
        "not_yet_valid": f"key {shown} is valid from {key.valid_from} on, not at {moment}",
        "expired": f"key {shown} was valid until {key.valid_until}, not at {moment}",
        "revoked": f"key {shown} is revoked from {key.revoked_from} on",
    }
    return _OUT_OF_TIME[state](messages[state], hint=_ASK)


def _threshold_error(
    good: dict[str, TrustedKey], people: int, refused: list[tuple[int, Untrusted]], issuer: Issuer
) -> Untrusted:
    """Make the refusal. Without any good signature, it is the error of the one that came furthest."""
    if not good:
        return max(refused, key=lambda pair: pair[0])[1]
    why = [{"code": error.code, "at": error.at, "message": error.message} for _, error in refused]
    return ThresholdNotMet(
        f"signed by {people} of the {issuer.threshold} people that {issuer.name} asks for",
        at="/signatures",
        hint=_ASK,
        details={"needed": issuer.threshold, "signed_by": sorted(good), "refused": why},
    )


class DigestMismatch(ContextPlaneError):
    """A statement about other bytes than those that came with it."""

    code: ClassVar[str] = "statement_digest_mismatch"
    family: ClassVar[Family] = "untrusted"


class IssuerMismatch(ContextPlaneError):
    """A statement of another issuer than the one that is asked for."""

    code: ClassVar[str] = "statement_issuer_mismatch"
    family: ClassVar[Family] = "untrusted"


class VerifiedArtifact(Value, frozen=True):
    """Bytes that passed verification. Only `verify` makes these."""

    data: bytes
    statement: Statement
    signed_by: tuple[str, ...]


def sign(statement: Statement, *signers: Signer) -> bytes:
    """Sign a statement; returns the envelope as bytes."""
    return make_envelope(IN_TOTO, statement.to_bytes(), *signers).to_bytes()


def verify(envelope: bytes, data: bytes, *, issuer: str, trust_context: TrustContext) -> VerifiedArtifact:
    """Return `data` as verified if `issuer` signed it; otherwise raise an error with its own code."""
    # (1) the envelope is well-formed, (2) its payload is a statement
    parsed = Envelope.parse(envelope, payload_type=IN_TOTO)
    # (3) the statement names exactly these bytes, and this issuer
    statement = Statement.parse(parsed.payload)
    if statement.digest != Digest.of(data):
        raise DigestMismatch(
            f"the statement is about {statement.digest}, the bytes are {Digest.of(data)}",
            at="/payload/subject/0/digest",
            hint="they were changed after signing, or belong to another statement",
        )
    if statement.issuer != issuer:
        raise IssuerMismatch(
            f"a statement of {statement.issuer[:80]!r}, not of {issuer!r}", at="/payload/predicate/issuer"
        )
    # (4) by keys of this issuer, (5) valid at the time, (6) enough of them
    signed_by = trusted_signers(parsed, issuer, trust_context)
    return VerifiedArtifact(data=data, statement=statement, signed_by=signed_by)
