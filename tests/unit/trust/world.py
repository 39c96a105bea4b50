"""Keys that are the same on every run, a keyring made of real signed events, and times that no clock knows."""

import hashlib
from contextlib import closing
from functools import cache

from contextplane.adapters.ed25519 import Ed25519Check, Ed25519Signer, pem, signer_from_pem
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import MEMORY
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.ports.keys import Signer
from contextplane.trust.dsse import Statement, encode_base64
from contextplane.trust.keyring import TrustedKeys, sign_change
from contextplane.trust.keyring_events import Change, KeyRevocation, KeyRotation, KeyTrust, ThresholdChange
from contextplane.trust.verify import CachedSignatureCheck, TrustContext

__all__ = [
    "CHECK",
    "PACK",
    "day",
    "der_of",
    "key_of",
    "keyring",
    "memory_catalog",
    "revoke",
    "rotate",
    "statement",
    "threshold",
    "trust",
    "trust_context",
]

CHECK = CachedSignatureCheck(Ed25519Check())
"""Real signatures, each checked once: a registry is read over and over in a test."""
PACK = b'{"pack_id":"refunds"}'


def memory_catalog() -> closing[SqliteCatalog]:
    """A new catalog in memory, closed at the end of the `with` block."""
    return closing(SqliteCatalog.create(MEMORY, "store_0123456789abcdef")[0])


def der_of(seed: str) -> bytes:
    """A private key that is made of a word, in the form that files hold."""
    return bytes.fromhex("302e020100300506032b657004220420") + hashlib.sha256(seed.encode()).digest()


@cache
def key_of(seed: str) -> Ed25519Signer:
    """The same, as one that signs."""
    return signer_from_pem(pem("PRIVATE" + " KEY", der_of(seed)), None, at="test")


def day(number: int) -> Timestamp:
    return Timestamp.parse(f"2030-01-{number:02d}T00:00:00Z")


def trust(
    signer: Signer, issuer: str, *roles: str, since: Timestamp | None = None, until: Timestamp | None = None
) -> KeyTrust:
    return KeyTrust(
        issuer=issuer,
        key=encode_base64(signer.public_key.raw),
        roles=roles,
        valid_from=str(since or day(1)),
        valid_until=str(until) if until else None,
    )


def rotate(old: Signer, new: Signer, *, since: Timestamp, old_until: Timestamp) -> KeyRotation:
    return KeyRotation(
        old=old.public_key.key_id,
        key=encode_base64(new.public_key.raw),
        valid_from=str(since),
        old_until=str(old_until),
    )


def revoke(signer: Signer, since: Timestamp, from_entry: int | None = None) -> KeyRevocation:
    return KeyRevocation(key_id=signer.public_key.key_id, revoked_from=str(since), reason="lost", from_entry=from_entry)


def threshold(issuer: str, number: int) -> ThresholdChange:
    return ThresholdChange(issuer=issuer, threshold=number)


def keyring(*changes: Change, keys: TrustedKeys | None = None, at: Timestamp | None = None) -> TrustedKeys:
    """The keyring of `root`, for the issuer `home`, after these changes."""
    root = key_of("root")
    if keys is None:
        keys = TrustedKeys().after(
            sign_change(TrustedKeys(), trust(root, "home", "owner"), at=day(1), signer=root), CHECK
        )
    for change in changes:
        keys = keys.after(sign_change(keys, change, at=at or keys.as_of, signer=root), CHECK)
    return keys


def statement(data: bytes = PACK, issuer: str = "acme") -> Statement:
    return Statement(name="refunds@1.0.0", kind="context_pack", issuer=issuer, digest=Digest.of(data))


def trust_context(keys: TrustedKeys, now: Timestamp, witnessed: Timestamp | None = None) -> TrustContext:
    return TrustContext(keyring=keys, check=CHECK, now=now, witnessed=witnessed)
