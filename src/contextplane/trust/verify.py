"""The trust decision about an artifact, as numbered steps. The bytes come out of the last one, and of no other.

    1  the envelope is well-formed                      envelope.py
    2  its payload is a statement, and nothing else     envelope.py
    3  the statement is about these bytes and issuer    here
    4  keys of this issuer signed exactly the PAE       signatures.py
    5  each of them was good at the time                signatures.py
    6  enough distinct ones                             signatures.py

What needs the registry comes after: whether the issuer may publish for a tenant, the artifact's state, whether this
runtime can run it. Those steps take a `Verified`, so that none of them can be asked about bytes that did not pass here.
"""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.signer import Signer
from contextplane.trust.envelope import Envelope, sealed
from contextplane.trust.signatures import Grounds, signers
from contextplane.trust.statement import IN_TOTO, Statement

__all__ = ["DigestMismatch", "IssuerMismatch", "Verified", "sign", "verify"]


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
