"""Plans changes of the keyring: trust, rotation, revocation; and the roles that `ctx` asks for.

A change is planned before the key that signs it is opened: what is wrong with it is told before a passphrase is asked.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from contextplane.app.registry.keys import KeyStore, keyring_name
from contextplane.model.keys import LOG, OWNER, WITNESS, PublicKey
from contextplane.model.suggestion import did_you_mean
from contextplane.model.timestamp import Timestamp
from contextplane.registry.artifact_state import REVIEW_ROLES
from contextplane.registry.authority import OPERATOR, PUBLISHER, environment_role
from contextplane.trust.clock import LAST_MOMENT
from contextplane.trust.dsse import decode_base64, encode_base64
from contextplane.trust.keyring import IssuerNotFound, TrustedKeys, WindowEmpty
from contextplane.trust.keyring_events import (
    Change,
    KeyRevocation,
    KeyRotation,
    KeyTrust,
    OwnerThreshold,
    ThresholdChange,
    WitnessThreshold,
)
from contextplane.trust.tenancy import tenant_role

__all__ = [
    "OVERLAP_DAYS",
    "ROLES",
    "Change",
    "KeyRevocation",
    "KeyRotation",
    "KeyTrust",
    "OwnerThreshold",
    "PlannedKeyChange",
    "ThresholdChange",
    "TrustedKeys",
    "WitnessThreshold",
    "changed_key",
    "environment_role",
    "plan_revocation",
    "plan_rotation",
    "plan_thresholds",
    "plan_trust",
    "tenant_role",
]

ROLES = (OWNER, PUBLISHER, OPERATOR, LOG, WITNESS, *REVIEW_ROLES)
"""The roles that `ctx` itself asks for. A pack may ask for any other, as the owner_role of a decision."""

OVERLAP_DAYS = 30
"""How long the old key of a rotation stays valid by default."""

_DAY = 86_400


class PlannedKeyChange(NamedTuple):
    """The key that changes are about, or an empty text, and the changes at the time of the act."""

    key_id: str
    changes: Callable[[Timestamp], Sequence[Change]]


def plan_trust(  # noqa: PLR0913  the options of a trusted key
    keys: KeyStore,
    which: str,
    issuer_name: str,
    *,
    roles: Sequence[str] | None,
    since: Timestamp | None,
    until: Timestamp | None,
    threshold: int | None,
    new_issuer: bool = False,
) -> PlannedKeyChange:
    """Plan to trust a key for an issuer, or to change its terms. What is None stays as it is.

    `new_issuer`: the issuer may be one that has no key yet. A misspelt name must not become an issuer.
    """
    issuer = keys.keyring.issuer(issuer_name)
    if issuer is None and keys.keyring.issuers and not new_issuer:
        raise _issuer_unknown(issuer_name, keys.keyring)
    key, name = keys.public(which), keyring_name(which)
    known = None if issuer is None else issuer.key(key.key_id)
    if known is not None:
        roles, since, until = roles or known.roles, since or known.valid_from, until or known.valid_until
        name = name or known.name
    changes: list[Change] = [keys.key_trust(key, issuer_name, roles=roles or (), since=since, until=until, name=name)]
    if threshold is not None:
        changes.append(ThresholdChange(issuer=issuer_name, threshold=threshold))
    return PlannedKeyChange(key.key_id, lambda _moment: changes)


def plan_rotation(
    keys: KeyStore, old: str, new: str, *, overlap_days: int = OVERLAP_DAYS, until: Timestamp | None = None
) -> PlannedKeyChange:
    """Plan to put a new key in the place of an old one, which stays valid for some days.

    Without `until`, the new key ends when the old one would have ended.
    """
    old_id, key = keys.trusted_id(old), keys.public(new)
    now = keys.now
    end = until or _inherited_end(keys.keyring, old_id, key.key_id)
    if until is None and end is not None and end <= now:
        raise WindowEmpty(
            f"the old key ended at {end}", at=old_id[:16], hint="name the end of the new key with --until"
        )
    overlap_end = Timestamp(seconds=now.seconds + overlap_days * _DAY, nanos=now.nanos)
    rotation = KeyRotation(
        old=old_id,
        key=encode_base64(key.raw),
        valid_from=str(now),
        old_until=str(min(overlap_end, max(now, LAST_MOMENT))),
        name=keyring_name(new),
        valid_until=None if end is None else str(end),
    )
    return PlannedKeyChange(key.key_id, lambda _moment: [rotation])


def plan_revocation(keys: KeyStore, which: str, reason: str, *, since: Timestamp | None) -> PlannedKeyChange:
    """Plan to revoke a key from `since` on; by default from the time of the act."""
    key_id = keys.trusted_id(which)
    return PlannedKeyChange(
        key_id,
        lambda moment: [KeyRevocation(key_id=key_id, revoked_from=str(since or moment), reason=reason)],
    )


def plan_thresholds(*, owners: int | None = None, witnesses: int | None = None) -> PlannedKeyChange:
    """Plan how many owners must agree to a change, and how many witnesses must cosign."""
    changes: list[Change] = []
    if owners is not None:
        changes.append(OwnerThreshold(threshold=owners))
    if witnesses is not None:
        changes.append(WitnessThreshold(witnesses=witnesses))
    return PlannedKeyChange("", lambda _moment: changes)


def changed_key(change: Change) -> str | None:
    """Return the id of the key that a change is about; None if it is about no key."""
    match change:
        case KeyTrust(key=key) | KeyRotation(key=key):
            return PublicKey(decode_base64(key, at="/change/key")).key_id
        case KeyRevocation(key_id=key_id):
            return key_id
        case _:
            return None


def _issuer_unknown(name: str, keyring: TrustedKeys) -> IssuerNotFound:
    known = [issuer.name for issuer in keyring.issuers]
    meant = did_you_mean(name, known, "no issuer has this name")
    return IssuerNotFound(
        "no key is trusted for this issuer", at=name[:80], hint=f"{meant} (--new-issuer makes a new one)"
    )


def _inherited_end(keyring: TrustedKeys, old_id: str, new_id: str) -> Timestamp | None:
    """Return the earliest end that the old key, or the new key where it is trusted already, has.

    One rotation is about all issuers of the old key. It lengthens the life of no key.
    """
    holders = [issuer for issuer in keyring.issuers if issuer.key(old_id) is not None]
    keys = [key for issuer in holders for key in issuer.keys if key.key.key_id in (old_id, new_id)]
    return min((key.valid_until for key in keys if key.valid_until is not None), default=None)
