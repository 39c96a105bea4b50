"""Who may do what, as a table. A right is held by the key that signs an event, under the keyring of its time.

An owner may do what a publisher and an operator may. A review takes the very role it is made in: nobody reviews as a
security reviewer because he owns the keyring.

The keyring as it was at each of its changes: an event of the registry is judged by the one that it was made under.

What a role allowed then stays done when the role is taken away later. A revocation is different: it reaches back, so
whoever reads an event asks the newest keyring about it.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Literal

from contextplane.model.ids import Digest
from contextplane.model.keys import OWNER, PublicKey
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import StreamsView
from contextplane.registry.errors import ActorNotAllowed
from contextplane.registry.events import Actor, Change, EventInvalid, Grant, RegistryEvent, Review, kind_of
from contextplane.trust.dsse import Envelope, decoded
from contextplane.trust.keyring import KEYRING, KeyringEvent, KeyRotation, TrustedKeys, changed, read_change
from contextplane.trust.keyring_stream import STREAM, KeyringRewritten

__all__ = ["OPERATOR", "PUBLISHER", "RIGHTS", "Keyrings", "Right", "authorise"]

PUBLISHER = "publisher"
OPERATOR = "operator"

Right = Literal["anybody", "reviewer", "issuer", "publisher", "operator"]
"""`anybody`: whoever is trusted. `reviewer`: who has the role of the review. `issuer`: any key of the issuer of the
artifact. `publisher`: of that issuer, in this role. `operator`: in this role, of whatever issuer."""

RIGHTS: dict[str, Right] = {
    "drafted": "anybody",
    "linted": "anybody",
    "reviewed": "reviewer",
    "signed": "issuer",
    "published": "publisher",
    "deprecated": "publisher",
    "revoked": "publisher",
    "refresh_required": "publisher",
    "refresh_reported": "publisher",
    "incident_opened": "operator",
    "incident_closed": "operator",
    "observed": "anybody",
    "pinned": "operator",
    "unpinned": "operator",
    "rolled_back": "operator",
    "rollback_ended": "operator",
    "promoted": "operator",
    "alias_set": "operator",
    "alias_dropped": "operator",
    "environment_opened": "operator",
    "environment_protected": "operator",
}


def authorise(change: Change, actor: Actor, issuer: str) -> None:
    """Refuse a change that its actor may not make. `issuer`: whose artifact it is about, where it is about one."""
    right = RIGHTS[kind_of(change)]
    if right == "anybody" or _has(right, change, actor, issuer):
        return
    needed = {
        "reviewer": f"the role {change.role if isinstance(change, Review) else ''}",
        "issuer": f"a key of {issuer}",
        "publisher": f"the role publisher of {issuer}",
        "operator": "the role operator",
    }[right]
    raise ActorNotAllowed(
        f"key {actor.key_id[:16]} may not do this ({kind_of(change)}): it takes {needed}",
        hint="'ctx keys list' shows who may; 'ctx keys trust --role' gives a role",
        details={"key_id": actor.key_id, "change": kind_of(change), "right": right, "issuer": issuer},
    )


def _has(right: Right, change: Change, actor: Actor, issuer: str) -> bool:
    if right == "reviewer":
        return isinstance(change, Review) and actor.holds(change.role)
    if right == "issuer":
        return actor.is_of(issuer)
    if right == "publisher":
        return actor.holds(PUBLISHER, issuer) or actor.holds(OWNER, issuer)
    return actor.holds(OPERATOR) or actor.holds(OWNER)


class Keyrings:
    """The newest keyring, which somebody followed and trusts, and all before it.

    The bodies need no second look at their signatures: each names the one before it, and the newest is known.
    """

    def __init__(self, now: TrustedKeys, bodies: Iterable[bytes]) -> None:
        self.now = now
        self._bodies = tuple(bodies)[: now.seq]

    @classmethod
    def of(cls, streams: StreamsView, now: TrustedKeys) -> "Keyrings":
        """All keyrings of a catalog, the newest of which is `now`."""
        return cls(now, (event.body for event in streams.read(STREAM)))

    def at(self, seq: int) -> TrustedKeys:
        """The keyring after so many changes."""
        if seq == self.now.seq:
            return self.now
        if not 0 < seq < len(self._all):
            raise EventInvalid(f"made under change {seq} of the keyring, which has {self.now.seq}")
        return self._all[seq]

    def fits(self, event: RegistryEvent, at: Timestamp) -> bool:
        """Whether the keyring that an event names was the newest at its time."""
        if at < self.at(event.keyring).as_of:
            return False
        return event.keyring == self.now.seq or at <= self.at(event.keyring + 1).as_of

    def actor(self, key_id: str, seq: int, at: Timestamp) -> Actor | None:
        """What a key was at a time under a keyring; None when it was no good key then."""
        grants = _good(self.at(seq), key_id, at)
        if not grants:
            return None
        family = tuple(sorted(self.kin(key_id, seq)))
        return Actor(key_id=key_id, grants=grants, family=family, revoked=self.is_revoked(key_id, at))

    def public_key(self, key_id: str) -> PublicKey | None:
        """A key that is or was trusted."""
        keys = (issuer.key(key_id) for issuer in self.now.issuers)
        return next((key.key for key in keys if key is not None), None)

    def is_revoked(self, key_id: str, at: Timestamp) -> bool:
        """Whether by the newest keyring a key was not to be trusted any more at a time."""
        trusted_keys = [key for issuer in self.now.issuers if (key := issuer.key(key_id)) is not None]
        return any(key.state_at(at) == "revoked" for key in trusted_keys)

    def good_at(self, at: Timestamp) -> tuple[PublicKey, ...]:
        """All keys that were good at a time by a keyring of that time, and are not revoked from before it on."""
        return tuple(key for key in self.good_then(at) if not self.is_revoked(key.key_id, at))

    def good_then(self, at: Timestamp) -> tuple[PublicKey, ...]:
        """All keys that were good at a time by a keyring of that time, whatever is known of them since."""
        if at > self.now.as_of:
            fitting = [self.now]
        else:
            later = [*self._all[1:], None]
            fitting = [
                trusted_keys
                for trusted_keys, after in zip(self._all, later, strict=True)
                if trusted_keys.as_of <= at and (after is None or at <= after.as_of)
            ]
        keys = {key.key for trusted_keys in fitting for issuer in trusted_keys.issuers for key in issuer.keys}
        return tuple(
            sorted(key for key in keys if any(_good(trusted_keys, key.key_id, at) for trusted_keys in fitting))
        )

    def kin(self, key_id: str, seq: int) -> frozenset[str]:
        """The keys of whoever had this key under a keyring: those that it was rotated from and into, and itself.

        Who takes over a colleague's key later was another person before that.
        """
        return self._families[seq].get(key_id, frozenset({key_id}))

    @cached_property
    def _all(self) -> tuple[TrustedKeys, ...]:
        keys = TrustedKeys()
        every = [keys]
        for event, head in self._events:
            at = Timestamp.parse(event.at)
            keys = TrustedKeys(seq=event.seq, head=head, as_of=at, issuers=changed(keys.issuers, event.change, at))
            every.append(keys)
        return tuple(every)

    @cached_property
    def _events(self) -> tuple[tuple[KeyringEvent, str], ...]:
        """Every change, each with its digest; or a refusal, when they do not lead to the newest keyring."""
        events: list[tuple[KeyringEvent, str]] = []
        head = ""
        for body in self._bodies:
            event = read_change(Envelope.parse(body, payload_type=KEYRING).payload)
            if (event.seq, event.previous) != (len(events) + 1, head):
                raise KeyringRewritten(f"event {event.seq} does not follow event {len(events)}", at=STREAM)
            head = Digest.of(body).hex
            events.append((event, head))
        if (len(events), head) != (self.now.seq, self.now.head):
            raise KeyringRewritten("it does not lead to the keyring that is known", at=STREAM)
        return tuple(events)

    @cached_property
    def _families(self) -> tuple[dict[str, frozenset[str]], ...]:
        """Who is whose key, after each change."""
        families: dict[str, frozenset[str]] = {}
        every = [families]
        for event, _ in self._events:
            change = event.change
            if isinstance(change, KeyRotation):
                new = PublicKey(decoded(change.key, at="/change/key")).key_id
                none = frozenset[str]()
                family = families.get(change.old, none) | families.get(new, none) | {change.old, new}
                families = families | dict.fromkeys(family, family)
            every.append(families)
        return tuple(every)


def _good(keys: TrustedKeys, key_id: str, at: Timestamp) -> tuple[Grant, ...]:
    """What issuers give a key that is good at a time; one that is revoked anywhere is good nowhere."""
    found = [(issuer.name, key) for issuer in keys.issuers if (key := issuer.key(key_id)) is not None]
    if any(key.state_at(at) == "revoked" for _, key in found):
        return ()
    return tuple(Grant(issuer=name, roles=key.roles) for name, key in found if key.state_at(at) == "valid")
