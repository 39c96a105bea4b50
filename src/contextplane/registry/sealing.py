"""Signing a registry anew right after its keyring changed, in the transaction of that change.

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

from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Transaction
from contextplane.ports.signer import SignatureCheck, Signer
from contextplane.registry.checkpoints import Standing, append_entries, check_revocations, standing
from contextplane.registry.keyrings import Keyrings
from contextplane.registry.opening import check_continuity
from contextplane.registry.renewing import refuse_untrusted
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.time_on_record import moment_of_act

__all__ = ["sealed"]


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
    found = standing(tx.streams, keyrings, check, origin)
    if found is None:
        return None
    # (2) by a key that was not revoked before
    check_revocations(found, before)
    # (3) the one that we knew
    check_continuity(tx.streams, found, seen)
    # (4) signed by whoever changed the keyring, if his key is still good
    at = moment_of_act(now, max(after.as_of, found.time))
    refuse_untrusted(signer, keyrings, at)
    return append_entries(tx.streams, [], heads=found.heads, signer=signer, at=at, origin=origin)
