"""Signing a new checkpoint of an unchanged log: after an audit, and after a change of the keyring.

`resign` signs a log that an audit has just verified.

`resign_after_keyring_change` runs in the transaction of the change:

    1  the log matches its newest checkpoint, which is trusted by the new keyring
    2  that checkpoint was made under the keyring before this change
    3  it continues what this client saw
    4  the signer of the change signs a checkpoint of the log with the change in it, at a later time

So everything that a key signed while it was trusted is covered by a checkpoint that is not older than its revocation,
and nothing that it signs afterwards is. Readers check that of the newest checkpoint (`MerkleLog.check_keyring`).

An owner who ends their own key cannot sign it. Then, and where steps 1 to 3 refuse, the change is made and the registry
is not signed. It stays closed until another key has signed it with `resign`.

`seal` turns a registry of the first format into one of this format, after an audit, by an owner.
"""

from typing import TYPE_CHECKING, ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import StreamConflict
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.continuity import check_continuity
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.first_format import refuse_unsealed
from contextplane.registry.log import REGISTRY_LOG, LogChanges, last_time, next_keyring_entry, rebuild_heads, sign_log
from contextplane.registry.streams import CHECKPOINTS, LOG
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.clock import next_event_time
from contextplane.trust.keyring import TrustedKeys, sign_change
from contextplane.trust.keyring_events import StoreSealed
from contextplane.trust.keyring_stream import append_change, follow_keyring
from contextplane.trust.merkle import EMPTY_ROOT
from contextplane.trust.merkle_log import VerifiedCheckpoint

if TYPE_CHECKING:
    from contextplane.registry.audit import AuditResult

__all__ = [
    "RegistryEmpty",
    "RegistryUnsound",
    "refuse_log_signer",
    "resign",
    "resign_after_keyring_change",
    "seal",
    "seal_unused",
]


class RegistryEmpty(ContextPlaneError):
    """Nothing was ever written to the registry, so that there is nothing to sign or to prove."""

    code: ClassVar[str] = "registry_empty"
    family: ClassVar[Family] = "not_found"


class RegistryUnsound(ContextPlaneError):
    """A registry in which something is wrong: no new checkpoint of it is signed."""

    code: ClassVar[str] = "registry_unsound"
    family: ClassVar[Family] = "untrusted"


def resign(  # noqa: PLR0913  what an act consists of
    changes: LogChanges,
    result: "AuditResult",
    *,
    known: TrustedKeys,
    check: SignatureCheck,
    signer: Signer,
    now: Timestamp,
    origin: str,
) -> VerifiedCheckpoint:
    """Sign a new checkpoint of an audited log.

    It replaces a checkpoint by a revoked key, or from before a revocation. Any other problem is refused.
    """
    # (1) no problem, except perhaps who signed the newest checkpoint, and when
    if not result.signable:
        raise RegistryUnsound(f"{len(result.problems)} things are wrong", hint="restore the catalog from a copy")
    if not (result.entries or known.seq):
        raise RegistryEmpty("nothing was ever written to it", at=LOG, hint="'ctx keys new' begins it")
    # (2) nothing was written since
    if (changes.streams.head(LOG), changes.streams.head(CHECKPOINTS)) != (result.entries, result.checkpoints):
        raise StreamConflict("another process wrote to the registry meanwhile", at=LOG, hint="do it again")
    # (3) no time on record is far ahead, (4) and the key may sign the log now
    keys = follow_keyring(changes.streams, known, check)
    keyrings = KeyringHistory.of(changes.streams, keys)
    latest = REGISTRY_LOG.latest_checkpoint(changes.streams, keyrings, check, origin)
    last_time(changes.streams, latest, keyrings, check, now)
    keys = seal(changes, keys, check=check, signer=signer, now=next_event_time(now, result.as_of))
    keyrings = KeyringHistory.of(changes.streams, keys)
    at = next_event_time(now, max(result.as_of, keys.as_of))
    refuse_log_signer(signer, keyrings, at)
    heads = rebuild_heads(changes) if result.is_first_format else result.heads
    return sign_log(changes, [], heads=heads, keys=keys, signer=signer, at=at, origin=origin)


def seal(
    changes: LogChanges, keys: TrustedKeys, *, check: SignatureCheck, signer: Signer, now: Timestamp
) -> TrustedKeys:
    """Seal a keyring of the first format; returns it as it is then. One of this format stays as it is."""
    if keys.sealed is not None or not keys.seq:
        return keys
    change = StoreSealed(entries=changes.streams.head(LOG))
    at = next_event_time(now, keys.as_of)
    entry = next_keyring_entry(changes.streams, keys)
    return append_change(changes.streams, keys, sign_change(keys, change, at=at, signer=signer, entry=entry), check)


def seal_unused(
    changes: LogChanges, keys: TrustedKeys, *, check: SignatureCheck, signer: Signer, now: Timestamp
) -> TrustedKeys:
    """Seal a keyring of the first format if nothing was registered with it; else refuse."""
    if changes.streams.head(LOG):
        refuse_unsealed(keys)
    return seal(changes, keys, check=check, signer=signer, now=now)


def refuse_log_signer(signer: Signer, keyrings: KeyringHistory, at: Timestamp) -> None:
    """Refuse a key whose checkpoint of that time readers would not trust."""
    if signer.public_key not in keyrings.trusted_keys_at(at):
        raise RegistryUntrusted(
            f"key {signer.public_key.key_id[:16]} may not sign the log at {at}: this needs the role log",
            hint="'ctx keys list' shows who may; an owner gives it: ctx keys trust NAME --issuer ISSUER --role log ...",
        )


def resign_after_keyring_change(  # noqa: PLR0913  what an act consists of
    changes: LogChanges,
    *,
    before: TrustedKeys,
    after: TrustedKeys,
    check: SignatureCheck,
    signer: Signer,
    now: Timestamp,
    origin: str,
    seen: Checkpoint | None,
) -> VerifiedCheckpoint:
    """Sign a new checkpoint after a change of the keyring, the first of which begins the log.

    `before`, `after`: the keyring before and after the change.
    """
    keyrings = KeyringHistory.of(changes.streams, after)
    # (1) the log matches its newest checkpoint, (2) which was made under the keyring before
    newest = REGISTRY_LOG.verify_checkpoint(changes.streams, keyrings, check, origin)
    REGISTRY_LOG.check_keyring(newest, before)
    # (3) it continues what the client saw
    missing = check_continuity(changes.streams, changes.marks, newest, seen).missing
    if missing is not None:
        raise missing
    # (4) signed by the signer of the change, if that key may still do so
    at = next_event_time(now, after.as_of if newest is None else max(after.as_of, newest.time))
    refuse_log_signer(signer, keyrings, at)
    heads = EMPTY_ROOT if newest is None else newest.heads
    return sign_log(changes, [], heads=heads, keys=after, signer=signer, at=at, origin=origin)
