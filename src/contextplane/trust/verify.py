"""The trust decision about an artifact, as numbered steps. The bytes come out of the last one, and of no other.

    1  the envelope is well-formed                      envelope.py
    2  its payload is a statement, and nothing else     envelope.py
    3  the statement is about these bytes and issuer    here
    4  keys of this issuer signed exactly the PAE       signatures.py
    5  each of them was good at the time                signatures.py
    6  enough distinct ones                             signatures.py

What needs the registry comes after: whether the issuer may publish for a tenant, the artifact's state, whether this
runtime can run it. Those steps take a `Verified`, so that none of them can be asked about bytes that did not pass here.

Whose signatures an envelope carries, and whether they suffice: the middle steps of every trust decision.

What an envelope says of its signers is a hint. A signature whose hint names no key that we know is tried with every
key of the issuer, as DSSE asks; other tools spell key ids in their own ways.
"""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.keys import Issuer, TrustedKey
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.keys import Keyring, SignatureCheck, Signer
from contextplane.trust.dsse import IN_TOTO, Envelope, Signature, Statement, sealed
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

__all__ = ["DigestMismatch", "Grounds", "IssuerMismatch", "Verified", "sign", "signers", "verify"]

_ASK = "ask the issuer to sign it, or see 'ctx keys list'"
_OUT_OF_TIME: dict[str, type[Untrusted]] = {
    "not_yet_valid": KeyNotYetValid,
    "expired": KeyExpired,
    "revoked": KeyRevoked,
}


class Grounds(Value, frozen=True):
    """What a decision stands on: the keyring, a check, and the time.

    `witnessed` is a time at which somebody whom we trust saw the signatures, a log entry under a signed checkpoint for
    example. Without it nobody knows when they were made, and keys must be good *now*: fail closed.
    """

    keyring: Keyring
    check: SignatureCheck
    now: Timestamp
    witnessed: Timestamp | None = None

    @property
    def moment(self) -> Timestamp:
        """The time at which keys must have been good. A clock behind what is on record brings no key back."""
        return self.witnessed or max(self.now, self.keyring.as_of)


def signers(envelope: Envelope, issuer: str, grounds: Grounds) -> tuple[str, ...]:
    """The ids of distinct keys of `issuer` whose signatures count; at least as many as it asks for, or a refusal."""
    moment = grounds.moment
    if not envelope.signatures:
        raise SignatureMissing("nobody signed it", at="/signatures", hint=_ASK)
    known = grounds.keyring.issuer(issuer)
    if known is None:
        raise KeyUnknown(
            f"no key of {issuer!r} is trusted", at="/signatures", hint="'ctx keys trust' says who may sign for it"
        )
    good: dict[str, TrustedKey] = {}
    refused: list[tuple[int, Untrusted]] = []
    for n, signature in enumerate(envelope.signatures):
        # (4) a key of this issuer signed exactly the PAE
        key = _maker(signature, envelope.pae, known, grounds)
        if isinstance(key, Untrusted):
            refused.append((4, key.under(f"/signatures/{n}")))
            continue
        # (5) the key was good at the time
        state = key.state_at(moment)
        if state == "valid":
            good[key.key.key_id] = key
        else:
            refused.append((5, _out_of_time(key, state, moment).under(f"/signatures/{n}")))
    # (6) enough of them, each key counted once
    if len(good) < known.threshold:
        raise _too_few(good, refused, known)
    return tuple(good)


def _maker(signature: Signature, message: bytes, issuer: Issuer, grounds: Grounds) -> TrustedKey | Untrusted:
    """The key of the issuer that made a signature, or why there is none."""
    named = issuer.key(signature.key_id)
    for key in issuer.keys if named is None else (named,):
        if grounds.check.holds(key.key, signature.value, message):
            return key
    shown = signature.key_id[:16] or "none"
    if named is not None:
        return SignatureInvalid(f"key {shown} did not sign this", hint="it was changed, or signed as another thing")
    others = grounds.keyring.issuers_of(signature.key_id)
    if others:
        return KeyOfOtherIssuer(f"key {shown} is one of {', '.join(others)}, not of {issuer.name}", hint=_ASK)
    return KeyUnknown(f"no trusted key of {issuer.name} made it (it names {shown!r})", hint=_ASK)


def _out_of_time(key: TrustedKey, state: str, moment: Timestamp) -> Untrusted:
    shown = key.key.key_id[:16]
    said = {
        "not_yet_valid": f"key {shown} is valid from {key.valid_from} on, not at {moment}",
        "expired": f"key {shown} was valid until {key.valid_until}, not at {moment}",
        "revoked": f"key {shown} is revoked from {key.revoked_from} on",
    }
    return _OUT_OF_TIME[state](said[state], hint=_ASK)


def _too_few(good: dict[str, TrustedKey], refused: list[tuple[int, Untrusted]], issuer: Issuer) -> Untrusted:
    """The refusal. With no good signature at all, the one that came furthest says why."""
    if not good:
        return max(refused, key=lambda pair: pair[0])[1]
    why = [{"code": error.code, "at": error.at, "message": error.message} for _, error in refused]
    return ThresholdNotMet(
        f"signed by {len(good)} of the {issuer.threshold} keys that {issuer.name} asks for",
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


class Verified(Value, frozen=True):
    """Bytes that passed. `verify` makes these, nobody else."""

    data: bytes
    statement: Statement
    signed_by: tuple[str, ...]


def sign(statement: Statement, *signers: Signer) -> bytes:
    """The envelope of a statement, as bytes."""
    return sealed(IN_TOTO, statement.to_bytes(), *signers).to_bytes()


def verify(envelope: bytes, data: bytes, *, issuer: str, grounds: Grounds) -> Verified:
    """Hand out `data` when `issuer` signed it, by `grounds`; every other end is a refusal with its own code."""
    # (1) the envelope is well-formed, (2) its payload is a statement
    opened = Envelope.parse(envelope, payload_type=IN_TOTO)
    # (3) the statement names exactly these bytes, and this issuer
    statement = Statement.parse(opened.payload)
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
    # (4) by keys of this issuer, (5) good at the time, (6) enough of them
    signed_by = signers(opened, issuer, grounds)
    return Verified(data=data, statement=statement, signed_by=signed_by)
