"""Signing a new checkpoint of an unchanged log: after an audit, and after a change of the keyring.

`resign` signs a log that an audit has just verified.

`resign_after_keyring_change` runs in the transaction of the change:

    1  the log matches its newest checkpoint, which is trusted by the new keyring
    2  no key that was revoked before this change could have signed that checkpoint since
    3  it continues what this client saw
    4  the signer of the change signs a checkpoint of the same log, at a later time than the change

So everything that a key signed while it was trusted is covered by a checkpoint that is not older than its revocation,
and nothing that it signs afterwards is. Readers check that of the newest checkpoint (`log.check_revocations`).

An owner who ends their own key cannot sign it. Then, and where steps 1 to 3 refuse, the change is made and the registry
is not signed. After a revocation it stays closed until another key has signed it with `resign`.
"""

from typing import TYPE_CHECKING, ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import StreamConflict, Transaction
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.open import check_continuity
from contextplane.registry.streams import CHECKPOINTS, LOG
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.clock import next_event_time
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import follow_keyring
from contextplane.trust.merkle_log import VerifiedCheckpoint

if TYPE_CHECKING:
    from contextplane.registry.audit import AuditResult

__all__ = ["RegistryEmpty", "RegistryUnsound", "refuse_untrusted", "resign", "resign_after_keyring_change"]


class RegistryEmpty(ContextPlaneError):
    """Nothing was ever written to the registry, so that there is nothing to sign or to prove."""

    code: ClassVar[str] = "registry_empty"
    family: ClassVar[Family] = "not_found"


class RegistryUnsound(ContextPlaneError):
    """A registry in which something is wrong: no new checkpoint of it is signed."""

    code: ClassVar[str] = "registry_unsound"
    family: ClassVar[Family] = "untrusted"


def resign(  # noqa: PLR0913  what an act consists of
    tx: Transaction,
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
    if not (result.sound or result.renewable):
        raise RegistryUnsound(f"{len(result.problems)} things are wrong", hint="restore the catalog from a copy")
    if not result.entries:
        raise RegistryEmpty("nothing was ever written to it", at=LOG, hint="'ctx lint FILE --record' begins it")
    # (2) nothing was written since
    if (tx.streams.head(LOG), tx.streams.head(CHECKPOINTS)) != (result.entries, result.checkpoints):
        raise StreamConflict("another process wrote to the registry meanwhile", at=LOG, hint="do it again")
    # (3) the key is valid now
    keyrings = KeyringHistory.of(tx.streams, follow_keyring(tx.streams, known, check))
    at = next_event_time(now, max(result.as_of, keyrings.now.as_of))
    refuse_untrusted(signer, keyrings, at)
    return REGISTRY_LOG.append_entries(tx.streams, [], heads=result.heads, signer=signer, at=at, origin=origin)


def refuse_untrusted(signer: Signer, keyrings: KeyringHistory, at: Timestamp) -> None:
    """Refuse a key whose checkpoint of that time readers would not trust."""
    if signer.public_key not in keyrings.trusted_keys_at(at):
        raise RegistryUntrusted(
            f"key {signer.public_key.key_id[:16]} is not trusted at {at}", hint="see 'ctx keys list'; name another key"
        )


def resign_after_keyring_change(  # noqa: PLR0913  what an act consists of
    tx: Transaction,
    *,
    before: TrustedKeys,
    after: TrustedKeys,
    check: SignatureCheck,
    signer: Signer,
    now: Timestamp,
    origin: str,
    seen: Checkpoint | None,
) -> VerifiedCheckpoint | None:
    """Sign a new checkpoint after a change of the keyring; None while nothing was ever written.

    `before`, `after`: the keyring before and after the change.
    """
    keyrings = KeyringHistory.of(tx.streams, after)
    # (1) the log matches its newest checkpoint
    newest = REGISTRY_LOG.verify_checkpoint(tx.streams, keyrings, check, origin)
    if newest is None:
        return None
    # (2) by a key that was not revoked before
    REGISTRY_LOG.check_revocations(newest, before)
    # (3) it continues what the client saw
    check_continuity(tx.streams, newest, seen)
    # (4) signed by the signer of the change, if that key is still valid
    at = next_event_time(now, max(after.as_of, newest.time))
    refuse_untrusted(signer, keyrings, at)
    return REGISTRY_LOG.append_entries(tx.streams, [], heads=newest.heads, signer=signer, at=at, origin=origin)
