"""Signing a registry anew: a fresh checkpoint of a log that was verified wholly a moment ago."""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Transaction
from contextplane.ports.signer import SignatureCheck, Signer
from contextplane.ports.streams import StreamConflict
from contextplane.registry.auditing import Audit
from contextplane.registry.checkpoints import Standing, append_entries
from contextplane.registry.keyrings import Keyrings
from contextplane.registry.refusals import RegistryUntrusted
from contextplane.registry.streams import CHECKPOINTS, LOG
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import followed
from contextplane.trust.time_on_record import moment_of_act

__all__ = ["RegistryEmpty", "RegistryUnsound", "refuse_untrusted", "renew"]


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
