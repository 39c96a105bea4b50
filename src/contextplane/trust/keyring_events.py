"""The events of the keyring: changes, the signed event around each, and proposals of owners.

An event names the store that it was made for and the event before it. The owner who submits it signs it. Where several
owners must agree, the others approved a proposal before: the same change, for the same place in the same keyring. Their
signatures over the proposal are part of the event, and the time of the change is that of its submission.

Class names may change; the tags and fields are stored and signed, and never do.
"""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.terms import Identifier
from contextplane.model.value import Document
from contextplane.ports.keys import Signer
from contextplane.trust.dsse import Envelope, Signature, encode_base64, make_envelope, pae

__all__ = [
    "KEYRING",
    "PROPOSAL",
    "Change",
    "KeyRevocation",
    "KeyRotation",
    "KeyTrust",
    "KeyringEvent",
    "KeyringEventInvalid",
    "OwnerApproval",
    "OwnerThreshold",
    "Proposal",
    "StoreSealed",
    "ThresholdChange",
    "WitnessThreshold",
    "proposal_envelope",
    "proposal_message",
    "read_keyring_event",
    "read_proposal",
    "sign_keyring_event",
    "sign_proposal",
]

KEYRING = "application/vnd.contextplane.keyring+json"
"""The payload type of these events, so that no statement can be passed off as one, nor one as a statement."""

PROPOSAL = "application/vnd.contextplane.keyring-proposal+json"
"""The payload type of proposals. An approval of one is no event."""

_Hex = Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{64})?\Z")]
_Reason = Annotated[str, Meta(min_length=1, max_length=2000)]
_Name = Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?\Z")]
_Roles = Annotated[tuple[Identifier, ...], Meta(max_length=32)]


class KeyringEventInvalid(ContextPlaneError):
    """An event of the keyring that is not one: another form, or not the next one after what is known."""

    code: ClassVar[str] = "keyring_event_invalid"
    family: ClassVar[Family] = "untrusted"


class KeyTrust(Document, frozen=True, tag_field="change", tag="key_trusted"):
    """An issuer has this key with these roles in this window. It replaces what was recorded before.

    `name`: a label for people. No decision depends on it.
    """

    issuer: Identifier
    key: str
    roles: _Roles
    valid_from: str
    valid_until: str | None
    name: _Name = ""


class KeyRotation(Document, frozen=True, tag_field="change", tag="key_rotated"):
    """A new key replaces an old one for every issuer that has it; both are valid until the old one ends.

    `valid_until`: the end of the new key, if it has one.
    """

    old: _Hex
    key: str
    valid_from: str
    old_until: str
    name: _Name = ""
    valid_until: str | None = None


class KeyRevocation(Document, frozen=True, omit_defaults=True, tag_field="change", tag="key_revoked"):
    """A key is not trusted from a time on, by any issuer. It is never trusted again.

    `from_entry`: nor are its events from this entry of the log on, with any time that it wrote in them.
    """

    key_id: _Hex
    revoked_from: str
    reason: _Reason
    from_entry: Annotated[int, Meta(ge=0, le=2**53 - 1)] | None = None


class ThresholdChange(Document, frozen=True, tag_field="change", tag="threshold_set"):
    """The number of keys of an issuer that must sign."""

    issuer: Identifier
    threshold: int


class OwnerThreshold(Document, frozen=True, tag_field="change", tag="owner_threshold_set"):
    """The number of owners who must agree to a change of the keyring."""

    threshold: Annotated[int, Meta(ge=1, le=16)]


class WitnessThreshold(Document, frozen=True, tag_field="change", tag="witnesses_set"):
    """The number of witnesses who must have cosigned the newest checkpoint for new traffic; 0: none."""

    witnesses: Annotated[int, Meta(ge=0, le=16)]


class StoreSealed(Document, frozen=True, tag_field="change", tag="store_sealed"):
    """A store of the first format becomes one of this format.

    Every later event names its store, and only keys with the role `log` sign checkpoints. The first `entries` entries
    of the log keep the rules that they were made by.
    """

    entries: Annotated[int, Meta(ge=0, le=2**53 - 1)]


Change = KeyTrust | KeyRotation | KeyRevocation | ThresholdChange | OwnerThreshold | WitnessThreshold | StoreSealed


class OwnerApproval(Document, frozen=True):
    """The signature of an owner over the proposal of a change, in base64."""

    by: _Hex
    signature: Annotated[str, Meta(max_length=128)]


class KeyringEvent(Document, frozen=True, omit_defaults=True):
    """One change of the keyring.

    `previous` is the SHA-256 of the event before it, so that no event can be exchanged without notice. `origin` is the
    log of the store; empty in events of the first format. `entry` says where the log has it; readers prove that.
    """

    seq: int
    previous: _Hex
    at: str
    change: Change
    origin: str = ""
    entry: Annotated[int, Meta(ge=0, le=2**53 - 1)] | None = None
    approvals: Annotated[tuple[OwnerApproval, ...], Meta(max_length=16)] = ()


class Proposal(Document, frozen=True):
    """A change that owners approve before it is made. It is void when another change comes first."""

    origin: str
    seq: int
    previous: _Hex
    change: Change


def sign_keyring_event(event: KeyringEvent, signer: Signer) -> bytes:
    """Sign an event; returns the bytes that are stored."""
    return make_envelope(KEYRING, canonical(msgspec.to_builtins(event)), signer).to_bytes()


def read_keyring_event(payload: bytes) -> KeyringEvent:
    """Parse the payload of a stored event."""
    try:
        return msgspec.convert(parse(payload).value, KeyringEvent)
    except (JsonRefused, msgspec.ValidationError) as error:
        raise KeyringEventInvalid(f"not an event of a keyring: {error}", hint="restore the catalog") from error


def proposal_message(event: KeyringEvent | Proposal) -> bytes:
    """The bytes that the owners who approve a change sign."""
    proposal = Proposal(origin=event.origin, seq=event.seq, previous=event.previous, change=event.change)
    return pae(PROPOSAL, _proposal_payload(proposal))


def sign_proposal(proposal: Proposal, signer: Signer) -> OwnerApproval:
    """Approve a proposal with the key of an owner."""
    return OwnerApproval(by=signer.public_key.key_id, signature=encode_base64(signer.sign(proposal_message(proposal))))


def read_proposal(body: bytes) -> tuple[Proposal, tuple[OwnerApproval, ...]]:
    """Parse an envelope of a proposal with the approvals so far; who made them is not checked here."""
    envelope = Envelope.parse(body, payload_type=PROPOSAL)
    try:
        proposal = msgspec.convert(parse(envelope.payload).value, Proposal)
    except (JsonRefused, msgspec.ValidationError) as error:
        raise KeyringEventInvalid(f"not a proposal for a keyring: {error}", hint="propose it again") from error
    approvals = tuple(
        OwnerApproval(by=signature.key_id, signature=encode_base64(signature.value))
        for signature in envelope.signatures
    )
    return proposal, approvals


def proposal_envelope(proposal: Proposal, signatures: tuple[Signature, ...] = ()) -> Envelope:
    """The envelope in which a proposal is passed around among owners."""
    return Envelope(payload_type=PROPOSAL, payload=_proposal_payload(proposal), signatures=signatures)


def _proposal_payload(proposal: Proposal) -> bytes:
    return canonical(msgspec.to_builtins(proposal))
