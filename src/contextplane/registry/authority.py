"""Rights to change the registry, as a table, and the history of the keyring that grants them.

A right is held by the key that signs an event, under the keyring of its time. An owner has the rights of a publisher
and an operator. A review takes exactly the role it is made in: owning the keyring does not make a security reviewer.

An event of the registry is judged by the keyring that it was made under: it stays valid when the role is taken away
later. A revocation is different. It reaches back, so readers check it in the newest keyring.

Roles do not reach across issuers: a reviewer reviews what their own issuer publishes, an issuer publishes under ids
that it owns, an operator pins ids that belong to their own tenant, unless the key has a role for another tenant or for
the environment. Events of the first format keep the rules of their time.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Literal, assert_never

from msgspec.structs import replace

from contextplane.model.ids import Digest
from contextplane.model.keys import LOG, OWNER, PublicKey
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import StreamsView
from contextplane.registry.errors import ActorNotAllowed
from contextplane.registry.events import (
    Change,
    EventInvalid,
    NameClaimed,
    Published,
    RegistryEvent,
    Review,
    kind_of,
)
from contextplane.registry.name_state import NameState
from contextplane.registry.verified_event import Actor, Grant, Scope, VerifiedEvent
from contextplane.trust.dsse import Envelope
from contextplane.trust.keyring import TrustedKeys, apply_change
from contextplane.trust.keyring_events import KEYRING, KeyringEvent, read_keyring_event
from contextplane.trust.keyring_stream import STREAM, KeyringRewritten
from contextplane.trust.merkle_log import LogEntry, revoked_keys
from contextplane.trust.tenancy import tenant_role

__all__ = ["OPERATOR", "PUBLISHER", "RIGHTS", "KeyringHistory", "Right", "authorise", "environment_role"]

PUBLISHER = "publisher"
OPERATOR = "operator"

Right = Literal["anybody", "reviewer", "issuer", "publisher", "operator", "environment"]
"""`anybody`: any trusted key. `reviewer`: a key of the issuer of the artifact with the role of the review. `issuer`:
any key of that issuer. `publisher`: a key of that issuer with this role; for a publication, of the owner of the id.
`operator`: a key with this role, of the tenant of the id, or with the role `tenant:<id>` or `environment:<name>`.
`environment`: an operator with `environment:<name>`."""

RIGHTS: dict[str, Right] = {
    "drafted": "anybody",
    "linted": "anybody",
    "reviewed": "reviewer",
    "signed": "issuer",
    "draft_listed": "anybody",
    "draft_withdrawn": "anybody",  # its author or a publisher: only the fold knows the author (artifact_state.py)
    "name_claimed": "publisher",
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
    "environment_opened": "environment",
    "environment_protected": "environment",
}


def environment_role(environment: str) -> str:
    """The role of an operator who may act in an environment for every tenant."""
    return f"environment:{environment}"


def authorise(
    verified: VerifiedEvent, scope: Scope, name: NameState | None = None, keyrings: "KeyringHistory | None" = None
) -> None:
    """Refuse a change that its actor may not make.

    `name`: the id that the scope names, if it names one. `keyrings`: by which a claim to an id is judged.
    """
    if keyrings is not None:
        _check_claim(verified, keyrings)
    change, actor = verified.change, verified.by
    right = RIGHTS[kind_of(change)]
    if right == "anybody" or (verified.is_first_format and _had_right(right, change, actor, scope)):
        return
    if name is not None and right == "operator":
        scope = replace(scope, tenant=name.tenant_at(verified.event.entry))
    if _has_right(right, change, actor, scope):
        if name is not None and isinstance(change, Published) and scope.published is not None:
            name.check_publication(scope.published, change.issuer, change.kind, verified.event.entry)
        return
    needed = {
        "reviewer": f"the role {change.role if isinstance(change, Review) else ''} of {scope.issuer}",
        "issuer": f"a key of {scope.issuer}",
        "publisher": f"the role publisher of {scope.issuer}",
        "operator": f"the role operator of {scope.tenant or 'its tenant'}, or that for the tenant or the environment",
        "environment": f"the roles operator and {environment_role(scope.environment)}",
    }[right]
    raise ActorNotAllowed(
        f"key {actor.key_id[:16]} may not do this ({kind_of(change)}): this needs {needed}",
        hint="'ctx keys list' shows who may; an owner gives roles: ctx keys trust NAME --issuer ISSUER --role ...",
        details={
            "key_id": actor.key_id,
            "change": kind_of(change),
            "right": right,
            "issuer": scope.issuer,
            "tenant": scope.tenant,
            "environment": scope.environment,
        },
    )


def _check_claim(verified: VerifiedEvent, keyrings: "KeyringHistory") -> None:
    """Refuse a claim to an id for a tenant that its issuer does not publish for."""
    change = verified.change
    if not isinstance(change, NameClaimed) or change.tenant == change.issuer:
        return
    issuer = keyrings.at(verified.event.keyring).issuer(change.issuer)
    if issuer is None or all(tenant_role(change.tenant) not in key.roles for key in issuer.keys):
        raise ActorNotAllowed(
            f"no key of {change.issuer} has the role {tenant_role(change.tenant)}",
            hint="'ctx keys list' shows who may; an owner gives roles: ctx keys trust NAME --issuer ISSUER --role ...",
            details={"key_id": verified.by.key_id, "change": "name_claimed", "tenant": change.tenant},
        )


def _has_right(right: Right, change: Change, actor: Actor, scope: Scope) -> bool:
    match right:
        case "anybody":
            return True
        case "reviewer":
            return isinstance(change, Review) and actor.holds(change.role, scope.issuer)
        case "issuer":
            return actor.is_of(scope.issuer)
        case "publisher":
            return actor.holds(PUBLISHER, scope.issuer) or actor.holds(OWNER, scope.issuer)
        case "operator":
            return actor.holds(OWNER) or any(_operates(grant, scope) for grant in actor.grants)
        case "environment":
            role = environment_role(scope.environment)
            return actor.holds(OWNER) or any({OPERATOR, role} <= {*grant.roles} for grant in actor.grants)
        case _:
            assert_never(right)


def _operates(grant: Grant, scope: Scope) -> bool:
    """Whether a grant makes an operator for this tenant, or for this environment."""
    roles = {*grant.roles}
    if OPERATOR not in roles:
        return False
    in_tenant = bool(scope.tenant) and (grant.issuer == scope.tenant or tenant_role(scope.tenant) in roles)
    return in_tenant or (bool(scope.environment) and environment_role(scope.environment) in roles)


def _had_right(right: Right, change: Change, actor: Actor, scope: Scope) -> bool:
    """The rules of the first format: reviewers and operators of any issuer."""
    if right == "reviewer":
        return isinstance(change, Review) and actor.holds(change.role)
    if right in {"operator", "environment"}:
        return actor.holds(OPERATOR) or actor.holds(OWNER)
    return _has_right(right, change, actor, scope)


class KeyringHistory:
    """The newest keyring, which the caller has verified, and all versions before it.

    The signatures of stored events are not checked again: each event names the one before it, and the last is known.
    """

    def __init__(self, now: TrustedKeys, bodies: Iterable[bytes]) -> None:
        self.now = now
        self._bodies = tuple(bodies)[: now.seq]

    @classmethod
    def of(cls, streams: StreamsView, now: TrustedKeys) -> "KeyringHistory":
        """Read all keyrings of a catalog, the newest of which is `now`."""
        return cls(now, (event.body for event in streams.read(STREAM)))

    def at(self, seq: int) -> TrustedKeys:
        """The keyring after `seq` changes."""
        if seq == self.now.seq:
            return self.now
        if not 0 < seq < len(self._versions):
            raise EventInvalid(f"made under change {seq} of the keyring, which has {self.now.seq}")
        return self._versions[seq]

    def is_newest_for(self, event: RegistryEvent, at: Timestamp) -> bool:
        """Whether the keyring that an event names could be the newest at its time.

        Events of the first format have only times to tell. Others have a place in the log, which decides (`entry`).
        """
        if at < self.at(event.keyring).as_of:
            return False
        return bool(event.origin) or event.keyring == self.now.seq or at <= self.at(event.keyring + 1).as_of

    def entry(self, seq: int) -> tuple[LogEntry, int | None] | None:
        """The entry of the log for a change of the keyring, and the place that the change claims for it.

        None for changes that are not there, or from before the store was sealed: those are in no log.
        """
        if not 0 < seq <= self.now.seq:
            return None
        event, digest = self._events[seq - 1]
        if not event.origin:
            return None
        return LogEntry(event=digest, seq=seq, stream=STREAM, previous=event.previous), event.entry

    def actor(self, key_id: str, seq: int, at: Timestamp, entry: int) -> Actor | None:
        """The roles of a key at a time under a keyring; None if it was not valid then.

        `entry`: the place in the log of what it did.
        """
        grants = _grants(self.at(seq), key_id, at)
        if not grants:
            return None
        linked = tuple(sorted(self.rotated_keys(key_id, seq)))
        return Actor(key_id=key_id, grants=grants, rotated_keys=linked, revoked=self.is_revoked(key_id, at, entry))

    def public_key(self, key_id: str) -> PublicKey | None:
        """A key that is or was trusted, by its id."""
        keys = (issuer.key(key_id) for issuer in self.now.issuers)
        return next((key.key for key in keys if key is not None), None)

    def is_revoked(self, key_id: str, at: Timestamp, entry: int) -> bool:
        """Whether a key is revoked for an event with a time at an entry of the log, by the newest keyring."""
        keys = (issuer.key(key_id) for issuer in self.now.issuers)
        return any(key.is_revoked_for(at, entry) for key in keys if key is not None)

    def trusted_keys_at(self, at: Timestamp) -> tuple[PublicKey, ...]:
        """All keys that could sign the log at a time and are not revoked from before it."""
        revoked = {*revoked_keys(self.now, at)}
        return tuple(key for key in self.trusted_keys_then(at) if key not in revoked)

    def trusted_keys_then(self, at: Timestamp) -> tuple[PublicKey, ...]:
        """All keys that could sign the log at a time by a keyring of that time, later revocations ignored."""
        if at > self.now.as_of:
            keyrings = [self.now]
        else:
            later = [*self._versions[1:], None]
            keyrings = [
                keyring
                for keyring, after in zip(self._versions, later, strict=True)
                if keyring.as_of <= at and (after is None or at <= after.as_of)
            ]
        keys = {key.key for keyring in keyrings for issuer in keyring.issuers for key in issuer.keys}
        return tuple(sorted(key for key in keys if any(_signs_log(keyring, key.key_id, at) for keyring in keyrings)))

    def rotated_keys(self, key_id: str, seq: int) -> frozenset[str]:
        """All keys linked to a key by rotation under a keyring, itself included: the keys of one person.

        A later rotation does not count: a person who takes over a colleague's key was another person before that.
        """
        return self.at(seq).person(key_id)

    @cached_property
    def _versions(self) -> tuple[TrustedKeys, ...]:
        keys = TrustedKeys(origin=self.now.origin)
        versions = [keys]
        for event, head in self._events:
            at = Timestamp.parse(event.at)
            sealed = 0 if event.seq == 1 and event.origin else keys.sealed
            keys = apply_change(replace(keys, sealed=sealed), event.change, at)
            keys = replace(keys, seq=event.seq, head=head, as_of=at)
            versions.append(keys)
        return tuple(versions)

    @cached_property
    def _events(self) -> tuple[tuple[KeyringEvent, str], ...]:
        """Every change with its digest; refused if they do not lead to the newest keyring."""
        events: list[tuple[KeyringEvent, str]] = []
        head = ""
        for body in self._bodies:
            event = read_keyring_event(Envelope.parse(body, payload_type=KEYRING).payload)
            if (event.seq, event.previous) != (len(events) + 1, head):
                raise KeyringRewritten(f"event {event.seq} does not follow event {len(events)}", at=STREAM)
            head = Digest.of(body).hex
            events.append((event, head))
        if (len(events), head) != (self.now.seq, self.now.head):
            raise KeyringRewritten("it does not lead to the keyring that is known", at=STREAM)
        return tuple(events)


def _grants(keys: TrustedKeys, key_id: str, at: Timestamp) -> tuple[Grant, ...]:
    """The grants of a key that is valid at a time; a key that is revoked for any issuer has none."""
    entries = [(issuer.name, key) for issuer in keys.issuers if (key := issuer.key(key_id)) is not None]
    if any(key.state_at(at) == "revoked" for _, key in entries):
        return ()
    return tuple(Grant(issuer=name, roles=key.roles) for name, key in entries if key.state_at(at) == "valid")


def _signs_log(keys: TrustedKeys, key_id: str, at: Timestamp) -> bool:
    """Whether a key may sign checkpoints: one with the role `log`, or an owner's; in the first format any."""
    grants = _grants(keys, key_id, at)
    return bool(grants) and (keys.sealed is None or any({LOG, OWNER} & {*grant.roles} for grant in grants))
