"""Signing a registry anew: a fresh checkpoint of a log that was verified wholly a moment ago.

Signing a registry anew right after its keyring changed, in the transaction of that change.

    1  the log is what its newest checkpoint says, and that is believed by what is known of keys now
    2  no key that was revoked before this change could have signed it since
    3  it goes on from what this client saw
    4  whoever changes the keyring signs a checkpoint of the same log, at a later moment than the change

So all that a key did while it was trusted stands under a checkpoint that is not older than its revocation, and nothing
that it signs afterwards does. Readers hold the newest checkpoint to that (`checkpoints.check_revocations`).

The key that signs is the one that signs the change: an owner's, which may sign checkpoints as every trusted key may.
Who ends his own key cannot: then, and where (1) to (3) refuse, the change stands and the registry is not signed. After
a revocation it is closed until another key has signed it (`renewing.py`).
"""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import StreamConflict, Transaction
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.registry.audit import Audit
from contextplane.registry.authority import Keyrings
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.log import Standing, append_entries, check_revocations, standing
from contextplane.registry.open import check_continuity
from contextplane.registry.streams import CHECKPOINTS, LOG
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.clock import moment_of_act
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import followed

__all__ = ["RegistryEmpty", "RegistryUnsound", "refuse_untrusted", "renew", "sealed"]


class RegistryEmpty(ContextPlaneError):
    """Nothing was ever written to the registry, so that there is nothing to sign or to prove."""

    code: ClassVar[str] = "registry_empty"
    family: ClassVar[Family] = "not_found"


class RegistryUnsound(ContextPlaneError):
    """A registry in which something is wrong: nobody vouches for it anew."""

    code: ClassVar[str] = "registry_unsound"
    family: ClassVar[Family] = "untrusted"


def renew(  # noqa: PLR0913  what an act consists of
    tx: Transaction,
    found: Audit,
    *,
    known: TrustedKeys,
    check: SignatureCheck,
    signer: Signer,
    now: Timestamp,
    origin: str,
) -> Standing:
    """Sign what was verified. A checkpoint by a revoked key, or from before a revocation, is what this is for.

    Nothing else may be wrong.
    """
    # (1) all is well, but perhaps for who signed the newest checkpoint, and when
    if not (found.sound or found.renewable):
        raise RegistryUnsound(f"{len(found.troubles)} things are wrong", hint="restore the catalog from a copy")
    if not found.entries:
        raise RegistryEmpty("nothing was ever written to it", at=LOG, hint="'ctx lint FILE --record' begins it")
    # (2) and nobody wrote since
    if (tx.streams.head(LOG), tx.streams.head(CHECKPOINTS)) != (found.entries, found.checkpoints):
        raise StreamConflict("somebody wrote to the registry meanwhile", at=LOG, hint="do it again")
    # (3) the key is good now
    keyrings = Keyrings.of(tx.streams, followed(tx.streams, known, check))
    at = moment_of_act(now, max(found.as_of, keyrings.now.as_of))
    refuse_untrusted(signer, keyrings, at)
    return append_entries(tx.streams, [], heads=found.heads, signer=signer, at=at, origin=origin)


def refuse_untrusted(signer: Signer, keyrings: Keyrings, at: Timestamp) -> None:
    """Refuse a key whose checkpoint of that time nobody would believe."""
    if signer.public_key not in keyrings.good_at(at):
        raise RegistryUntrusted(
            f"key {signer.public_key.key_id[:16]} is not trusted at {at}", hint="see 'ctx keys list'; name another key"
        )


def sealed(  # noqa: PLR0913  what an act consists of
    tx: Transaction,
    *,
    before: TrustedKeys,
    after: TrustedKeys,
    check: SignatureCheck,
    signer: Signer,
    now: Timestamp,
    origin: str,
    seen: Checkpoint | None,
) -> Standing | None:
    """The fresh checkpoint, or a refusal; None while nothing was ever written. `before`, `after`: the change."""
    keyrings = Keyrings.of(tx.streams, after)
    # (1) the log is what is signed
    status = standing(tx.streams, keyrings, check, origin)
    if status is None:
        return None
    # (2) by a key that was not revoked before
    check_revocations(status, before)
    # (3) the one that we knew
    check_continuity(tx.streams, status, seen)
    # (4) signed by whoever changed the keyring, if his key is still good
    at = moment_of_act(now, max(after.as_of, status.time))
    refuse_untrusted(signer, keyrings, at)
    return append_entries(tx.streams, [], heads=status.heads, signer=signer, at=at, origin=origin)
