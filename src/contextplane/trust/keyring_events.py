"""What can happen to a keyring, as signed events: each names the one before it and is signed by an owner's key.

It decides nothing; `keyring.py` folds these.
"""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import canonical
from contextplane.model.context_pack.terms import Identifier
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.json_text import parse
from contextplane.model.value import Document
from contextplane.ports.signer import Signer
from contextplane.trust.envelope import sealed

__all__ = [
    "KEYRING",
    "Change",
    "KeyRevocation",
    "KeyRotation",
    "KeyTrust",
    "KeyringEvent",
    "KeyringEventInvalid",
    "ThresholdChange",
    "read_change",
    "written",
]

KEYRING = "application/vnd.contextplane.keyring+json"
"""The payload type of these events: no statement can be passed off as one, nor the other way round."""

_Hex = Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{64})?\Z")]
_Reason = Annotated[str, Meta(min_length=1, max_length=2000)]
_Name = Annotated[str, Meta(pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,63})?\Z")]
_Roles = Annotated[tuple[Identifier, ...], Meta(max_length=32)]


class KeyringEventInvalid(ContextPlaneError):
    """An event of the keyring that is not one: another form, or not the next one after what is known."""

    code: ClassVar[str] = "keyring_event_invalid"
    family: ClassVar[Family] = "untrusted"


class KeyTrust(Document, frozen=True, tag_field="change", tag="key_trusted"):
    """An issuer has this key, with these roles, in this window; from now on and instead of what was said before.

    `name`: what people call it. Nothing is ever decided by that.
    """

    issuer: Identifier
    key: str
    roles: _Roles
    valid_from: str
    valid_until: str | None
    name: _Name = ""


class KeyRotation(Document, frozen=True, tag_field="change", tag="key_rotated"):
    """A new key takes the place of an old one wherever that is trusted; both are good until the old one ends."""

    old: _Hex
    key: str
    valid_from: str
    old_until: str
    name: _Name = ""


class KeyRevocation(Document, frozen=True, tag_field="change", tag="key_revoked"):
    """A key is not to be trusted from a time on, wherever it was. It never comes back."""

    key_id: _Hex
    revoked_from: str
    reason: _Reason


class ThresholdChange(Document, frozen=True, tag_field="change", tag="threshold_set"):
    """So many keys of an issuer must sign."""

    issuer: Identifier
    threshold: int


Change = KeyTrust | KeyRotation | KeyRevocation | ThresholdChange


class KeyringEvent(Document, frozen=True):
    """One change. `previous` is the SHA-256 of the event before it, so that none can be exchanged behind its back."""

    seq: int
    previous: _Hex
    at: str
    change: Change


def written(event: KeyringEvent, signer: Signer) -> bytes:
    """The signed event, as it is stored."""
    return sealed(KEYRING, canonical(msgspec.to_builtins(event)), signer).to_bytes()


def read_change(payload: bytes) -> KeyringEvent:
    try:
        return msgspec.convert(parse(payload).value, KeyringEvent)
    except (JsonRefused, msgspec.ValidationError) as error:
        raise KeyringEventInvalid(f"not an event of a keyring: {error}", hint="restore the catalog") from error
