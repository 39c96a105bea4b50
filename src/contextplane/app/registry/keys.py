"""The keys of a store: making one, choosing the one that signs, and changing which keys are trusted.

The keyring is folded from its first event in every process: no folded copy of it is stored.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Concatenate, ParamSpec

import msgspec
from msgspec.structs import replace

from contextplane.adapters.ed25519 import Ed25519Check, generate_key, pem
from contextplane.adapters.files.key_files import FileKeys
from contextplane.app.platform import Platform
from contextplane.app.registry.local_keys import (
    LocalKeys,
    Passphrase,
    SigningKeyUnclear,
    new_passphrase,
    read_public_key,
)
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.keys import OWNER, PublicKey
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.trust.clock import next_event_time, seconds_behind
from contextplane.trust.dsse import encode_base64
from contextplane.trust.keyring import KeyNotTrusted, TrustedKeys, apply_change, sign_change
from contextplane.trust.keyring_events import Change, KeyRevocation, KeyTrust
from contextplane.trust.keyring_stream import append_change, follow_keyring
from contextplane.trust.owner_proposal import ProposalReview
from contextplane.trust.verify import CachedSignatureCheck

if TYPE_CHECKING:
    from contextplane.app.registry.memory import RegistryMemory, RegistryResigner
    from contextplane.trust.checkpoint import Checkpoint

__all__ = [
    "FirstKeyNeedsIssuer",
    "KeyAmbiguous",
    "KeyChangeInvalid",
    "KeyStore",
    "NewKey",
    "act_time",
    "check_changes",
    "confirmed_until",
    "keyring_name",
    "planned_changes",
]


P = ParamSpec("P")
ChangePlan = Callable[[Timestamp], Sequence[Change]]
"""The changes of an act, by its time."""

_MIN_PREFIX = 8
_CHECKPOINTS = "registry/checkpoints"
_NAME = re.compile(r"(?![0-9a-fA-F]{8,}\Z)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")  # never like the beginning of an id


class FirstKeyNeedsIssuer(ContextPlaneError):
    """The first key of a store owns its keyring and is trusted at once, so its issuer must be named."""

    code: ClassVar[str] = "first_key_needs_issuer"
    family: ClassVar[Family] = "usage"


class KeyAmbiguous(ContextPlaneError):
    """A name, or the beginning of a key id, that several trusted keys have."""

    code: ClassVar[str] = "key_ambiguous"
    family: ClassVar[Family] = "usage"


class KeyChangeInvalid(ContextPlaneError):
    """A change of the keyring with a name or a text in it that no keyring can hold."""

    code: ClassVar[str] = "key_change_invalid"
    family: ClassVar[Family] = "usage"


class NewKey(Value, frozen=True):
    """A new key. `trusted`: it is the first of the store, and owns the keyring."""

    name: str
    key_id: str
    public: str
    trusted: bool


class KeyStore:
    """The keys of one store. `environment_key`: a private key that takes precedence over those in files.

    `external_signer`: opens a signer outside of this program, which takes precedence over the environment's key.
    `check`: what checks signatures, Ed25519 by default. Each signature is checked once while this object lives.
    `behind`: how many seconds the clock was behind the record at the last act. `resigner`: signed the registry then.
    """

    def __init__(
        self,
        platform: Platform,
        passphrase: Passphrase,
        environment_key: bytes | None = None,
        check: SignatureCheck | None = None,
        external_signer: Callable[[], Signer] | None = None,
    ) -> None:
        self.platform = platform
        self.files = FileKeys(platform.home.inside("keys"))
        self.check: SignatureCheck = CachedSignatureCheck(check or Ed25519Check())
        self.behind = 0
        self.resigner: RegistryResigner | None = None
        self.origin = _origin_of(platform.store_id)
        self._passphrase = passphrase
        self._local = LocalKeys(self.files, passphrase, environment_key, external_signer)
        platform.takes_turns = external_signer is None

    @cached_property
    def memory(self) -> "RegistryMemory":
        """What this client knows of the registry and the keyring from before."""
        from contextplane.app.registry.memory import RegistryMemory

        return RegistryMemory(self.platform.client_state, self.origin, self.platform.trust_root)

    @cached_property
    def keyring(self) -> TrustedKeys:
        """The keys that are trusted now. A newer keyring is remembered."""
        self.memory.load_position()
        with self.platform.catalog.read() as view:
            keys = follow_keyring(view.streams, TrustedKeys(origin=self.origin), self.check)
            self.memory.check_keyring(view.streams, keys, self.check)
        self.memory.save_keyring(keys)
        return keys

    def follow(self, streams: StreamsView) -> TrustedKeys:
        """Verify the keyring of a view, from its first event or from what this process has verified."""
        known = self.__dict__.get("keyring") or TrustedKeys(origin=self.origin)
        keys = follow_keyring(streams, known, self.check)
        if not known.seq:
            self.memory.check_keyring(streams, keys, self.check)
        return keys

    @property
    def clock(self) -> Timestamp:
        """The time of this machine's clock."""
        return Timestamp.of(self.platform.clock.now())

    @property
    def now(self) -> Timestamp:
        """The time of an act: the clock, but not before the latest time on record."""
        self.memory.load_position()
        with self.platform.catalog.read() as view:
            return next_event_time(self.clock, _latest_time(self, view.streams, self.follow(view.streams)))

    def follow_seen(self, streams: StreamsView, seen: "Checkpoint | None") -> tuple[TrustedKeys, "Checkpoint | None"]:
        """Verify the keyring of a view; return it, and what was seen before as that keyring believes it."""
        keys = self.follow(streams)
        return keys, self.memory.believe(seen, keys, self.check)

    def create_key(self, name: str, issuer: str | None) -> NewKey:
        """Make a key. The first key of a store is trusted at once, and owns the keyring."""
        first = self.keyring.seq == 0
        if first and issuer is None:
            raise FirstKeyNeedsIssuer(
                "the first key needs an issuer", hint="name it with --issuer, as in contract_meta.issuer"
            )
        if not first and issuer is not None:
            raise SigningKeyUnclear(
                "an owner must trust it", hint=f"leave --issuer out, then: ctx keys trust {name} --issuer {issuer}"
            )
        private, signer = generate_key(new_passphrase(self._passphrase))
        founding = [] if issuer is None else [self.key_trust(signer.public_key, issuer, roles=(OWNER,), name=name)]
        check_changes(founding)
        self.files.store_key(name, private, pem("PUBLIC KEY", signer.public_key.spki))
        if founding:
            self.change(founding, signer)
        return NewKey(name=name, key_id=signer.public_key.key_id, public=self.files.public_path(name), trusted=first)

    def key_trust(  # noqa: PLR0913  the fields of KeyTrust
        self,
        key: PublicKey,
        issuer: str,
        *,
        roles: Sequence[str] = (),
        since: Timestamp | None = None,
        until: Timestamp | None = None,
        name: str = "",
    ) -> KeyTrust:
        return KeyTrust(
            issuer=issuer,
            key=encode_base64(key.raw),
            roles=tuple(roles),
            valid_from=str(since or self.now),
            valid_until=None if until is None else str(until),
            name=name,
        )

    def change(self, changes: Sequence[Change], signer: Signer) -> TrustedKeys:
        """Append changes, all or none, signed by one key; save and return the new keyring."""
        return self.apply(lambda _moment: changes, signer)

    def revoke(self, key_id: str, reason: str, signer: Signer, *, since: Timestamp | None = None) -> TrustedKeys:
        """Revoke a key from `since` on; by default from the time of the act."""
        return self.apply(
            lambda moment: [KeyRevocation(key_id=key_id, revoked_from=str(since or moment), reason=reason)], signer
        )

    def submit(self, review: ProposalReview, signer: Signer) -> TrustedKeys:
        """Make a change that other owners approved. Refused if another change came first."""
        return self.apply(lambda _moment: [review.proposal.change], signer, review)

    def apply(self, plan: ChangePlan, signer: Signer, review: ProposalReview | None = None) -> TrustedKeys:
        """Append the changes of a plan, all or none, signed by one key. `review`: what others approved."""
        return _retry_conflicts(KeyStore._append_once)(self, plan, signer, review)

    def _append_once(self, plan: ChangePlan, signer: Signer, review: ProposalReview | None) -> TrustedKeys:
        from contextplane.app.registry.memory import RegistryResigner
        from contextplane.registry.log import next_keyring_entry
        from contextplane.registry.resign import seal_unused
        from contextplane.registry.streams import CHECKPOINTS, LOG
        from contextplane.store.staged_changes import StagedChanges

        seen, _ = self.memory.load() or self.memory.root, self.keyring
        with self.platform.catalog.read() as view:
            staged = StagedChanges(view, unmoved=(LOG, CHECKPOINTS))
            keys, seen = self.follow_seen(view.streams, seen)
            before, clock = keys, self.clock
            changes = _placed_changes(self, view.streams, keys, plan, clock) if review is None else plan(clock)
            check_changes(changes)
            last = _last_time(self, view.streams, keys, changes, clock)
            self.behind = seconds_behind(clock, last)
            keys = seal_unused(staged, keys, check=self.check, signer=signer, now=next_event_time(clock, last))
            approvals = () if review is None else review.approvals_beside(signer.public_key.key_id, keys)
            for change in changes:
                last = next_event_time(clock, max(last, keys.as_of))
                entry = next_keyring_entry(staged.streams, keys)
                body = sign_change(keys, change, at=last, signer=signer, approvals=approvals, entry=entry)
                keys = append_change(staged.streams, keys, body, self.check)
            resigner = RegistryResigner(self.memory, self.origin)
            resigner.sign(staged, before, keys, check=self.check, signer=signer, now=clock, seen=seen)
        staged.commit(self.platform.catalog)
        self.memory.save_keyring(keys)
        self.keyring = keys
        resigner.save_checkpoint()
        self.resigner = resigner
        return keys

    def signer(self, which: str | None = None) -> Signer:
        """Return the named signer, else the external one, else the environment's key, else the only one here."""
        return self._local.signer(which)

    def local_names(self) -> dict[str, str]:
        """Map the ids of the keys in the folder to their names. They are labels: no decision depends on them."""
        return self._local.names()

    def names(self) -> dict[str, str]:
        """Map key ids to names for people: the name in the keyring, else that of the private key here."""
        names: dict[str, str] = {}
        with suppress(ContextPlaneError):  # reading the keyring must not fail for it
            names = self.local_names()
        return names | {key.key.key_id: key.name for issuer in self.keyring.issuers for key in issuer.keys if key.name}

    def public(self, which: str) -> PublicKey:
        """Read a public key: of a private key here by its name, or from a PEM file.

        A key here is opened with its passphrase, unless the keyring has this very key under this name: every program
        that can write to the folder could have exchanged a public half.
        """
        if _is_file(which):
            return read_public_key(which)
        key = self._local.claimed_public(which)
        return key if self._named_ids(which) == {key.key_id} else self._local.proved_public(which)

    def _named_ids(self, name: str) -> set[str]:
        """Return the ids of the trusted keys of this name; revoked ones only if there is no other."""
        keys = [key for issuer in self.keyring.issuers for key in issuer.keys if key.name == name]
        lasting = {key.key.key_id for key in keys if key.revoked_from is None}
        return lasting or {key.key.key_id for key in keys}

    def trusted_id(self, which: str) -> str:
        """Return the id of a trusted key, by its name in the keyring, a PEM file, or the beginning of its id."""
        if _is_file(which):
            return self.public(which).key_id
        ids = {key.key.key_id for issuer in self.keyring.issuers for key in issuer.keys}
        matches = self._named_ids(which)
        if matches and which in self.files.names():  # the trusted key that is stored here may be meant
            matches |= ids & {self._local.claimed_public(which).key_id}
        if not matches:
            matches = {identity for identity in ids if len(which) >= _MIN_PREFIX and identity.startswith(which)}
        return _only_match(matches, which)


def _only_match(matches: set[str], which: str) -> str:
    if len(matches) > 1:
        raise KeyAmbiguous(f"{len(matches)} trusted keys are meant by {which}", hint="write more of the id")
    if not matches:
        raise KeyNotTrusted(
            "no trusted key has this name, or an id that starts with it",
            at=which[:80],
            hint="'ctx keys list' prints the ids",
        )
    return matches.pop()


def _latest_time(key_store: KeyStore, streams: StreamsView, keys: TrustedKeys) -> Timestamp:
    """Return the latest time on record. A registry event is never later than the keyring after it."""
    if not streams.head(_CHECKPOINTS):
        return keys.as_of
    # Loaded only where there is a registry.
    from contextplane.registry.authority import KeyringHistory
    from contextplane.registry.log import REGISTRY_LOG

    keyrings = KeyringHistory.of(streams, keys)
    latest = REGISTRY_LOG.latest_checkpoint(streams, keyrings, key_store.check, key_store.origin)
    return keys.as_of if latest is None else max(keys.as_of, latest.time)


def planned_changes(key_store: KeyStore, plan: ChangePlan) -> Sequence[Change]:
    """Return the changes of a plan as an act of now would make them."""
    key_store.memory.load_position()
    with key_store.platform.catalog.read() as view:
        return _placed_changes(key_store, view.streams, key_store.follow(view.streams), plan, key_store.clock)


def _placed_changes(
    key_store: KeyStore, streams: StreamsView, keys: TrustedKeys, plan: ChangePlan, clock: Timestamp
) -> Sequence[Change]:
    """Return the changes of a plan; a revocation names the place in the log that its time had.

    The holder of the key can write an earlier time in an event, and cannot choose its place. One that is announced for
    later names no place: the key is valid until then.
    """
    moment = next_event_time(clock, _latest_time(key_store, streams, keys))
    changes: list[Change] = []
    for change in plan(moment):
        placed = change
        if isinstance(change, KeyRevocation) and (since := Timestamp.parse(change.revoked_from)) <= moment:
            last = _checkpoint_before(key_store, streams, keys, since)
            placed = replace(change, from_entry=0 if last is None else last.size)
        changes.append(placed)
    return changes


def confirmed_until(key_store: KeyStore, key_id: str, since: Timestamp) -> Timestamp | None:
    """Return until when others confirm what the key did, if it acted alone after that and before `since`.

    Its holder can have written these times, and signed checkpoints with them.
    """
    with key_store.platform.catalog.read() as view:
        keys = key_store.follow(view.streams)
        last = _checkpoint_before(key_store, view.streams, keys, since)
        confirmed = _checkpoint_before(key_store, view.streams, keys, since, except_by=key_id)
    if last is None or confirmed is None or last.size == confirmed.size:
        return None
    return confirmed.time


def _checkpoint_before(
    key_store: KeyStore, streams: StreamsView, keys: TrustedKeys, time: Timestamp, *, except_by: str = ""
) -> "Checkpoint | None":
    if not streams.head(_CHECKPOINTS):
        return None
    from contextplane.registry.authority import KeyringHistory
    from contextplane.registry.log import checkpoint_before

    keyrings = KeyringHistory.of(streams, keys)
    return checkpoint_before(streams, keyrings, key_store.check, key_store.origin, time, except_by=except_by)


def act_time(key_store: KeyStore, changes: Sequence[Change]) -> Timestamp:
    """Return the time that an act with these changes would have now. Refused if the record is far ahead."""
    key_store.memory.load_position()
    with key_store.platform.catalog.read() as view:
        keys, clock = key_store.follow(view.streams), key_store.clock
        return next_event_time(clock, _last_time(key_store, view.streams, keys, changes, clock))


def _last_time(
    key_store: KeyStore, streams: StreamsView, keys: TrustedKeys, changes: Sequence[Change], clock: Timestamp
) -> Timestamp:
    """Return the time on record that changes follow; refuse one that is far ahead of the clock.

    A checkpoint does not count if these very changes revoke its signer from before it: so a revocation has the time of
    the clock, and not one that the revoked key put on record.
    """
    if not streams.head(_CHECKPOINTS):
        return keys.as_of
    from contextplane.registry.authority import KeyringHistory
    from contextplane.registry.log import REGISTRY_LOG, last_time

    recorded = _latest_time(key_store, streams, keys)
    for change in changes:
        if isinstance(change, KeyRevocation) and Timestamp.parse(change.revoked_from) < recorded:
            with suppress(ContextPlaneError):  # refused when it is made
                keys = apply_change(keys, change, keys.as_of)
    keyrings = KeyringHistory.of(streams, keys)
    latest = REGISTRY_LOG.latest_checkpoint(streams, keyrings, key_store.check, key_store.origin)
    return last_time(streams, latest, keyrings, key_store.check, clock)


def _origin_of(store_id: str) -> str:
    from contextplane.registry.streams import origin_of

    return origin_of(store_id)


def _retry_conflicts(
    act: Callable[Concatenate[KeyStore, P], TrustedKeys],
) -> Callable[Concatenate[KeyStore, P], TrustedKeys]:
    from contextplane.store.staged_changes import retry_conflicts

    return retry_conflicts(act)


def check_changes(changes: Sequence[Change]) -> None:
    """Refuse an invalid change before it is signed: every reader would refuse the event."""
    try:
        msgspec.convert(msgspec.to_builtins(changes), list[Change])
    except msgspec.ValidationError as error:
        raise KeyChangeInvalid(f"{error}", hint="names: ASCII letters, digits, _ . : and -, at most 128") from error


def keyring_name(which: str) -> str:
    """Return the name of a key for a keyring: its name here, or its file's; empty if that is no name."""
    stem = (
        os.path.basename(which).removesuffix(".pub").removesuffix(".pem").removesuffix(".key")
        if _is_file(which)
        else which
    )
    return stem if _NAME.fullmatch(stem) else ""


def _is_file(which: str) -> bool:
    return os.sep in which or "." in which
