"""Verifies single events of the registry: who signed them, and that the log has them in their places.

    1  an envelope with an event in it                          events.py
    2  signed by one key, its actor                             events.py
    3  the event of this stream and number, of this store
    4  the actor's key was valid at that time, under the keyring that it names, and signed exactly this
    8  the log has it at the entry that it names, and has the keyring before it, the next one after it
                                                                logged_entries.py

The steps between need the state of the subject: `stream_reader.py`. An event that the log has is void if it fails one
of the steps.
"""

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import StoredEvent
from contextplane.model.ids import Digest
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.events import EventInvalid, RegistryEvent, read_event
from contextplane.registry.logged_entries import LoggedEntries
from contextplane.registry.verified_event import VerifiedEvent, VoidEvent
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring import EventOfOtherStore, TrustedKeys
from contextplane.trust.keyring_stream import KeyringRewritten
from contextplane.trust.merkle import TreeDamaged
from contextplane.trust.merkle_log import CheckpointBeforeKeyring

__all__ = ["CATALOG_HINT", "EventVerifier", "misplaced_error"]

CATALOG_HINT = "the catalog was changed; see 'ctx verify --registry'"


class EventVerifier:
    """Verifies events by a verified keyring, and by a log if there is one. `log`: its verified checkpoint.

    `has_voids`: it has void entries. Without a log step 8 is skipped, and no event is void: one that fails is refused.
    """

    def __init__(
        self,
        streams: StreamsView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        log: Checkpoint | None,
        *,
        has_voids: bool,
    ) -> None:
        self.keyrings = keyrings
        self.check = check
        self._streams = streams
        self._has_voids = has_voids
        self._logged = None if log is None else LoggedEntries(streams, keyrings, log, has_voids=has_voids)

    def with_log(self, log: Checkpoint) -> "EventVerifier":
        """Return a verifier for the same log after an honest act, which added no void entry."""
        return EventVerifier(self._streams, self.keyrings, self.check, log, has_voids=self._has_voids)

    def read(self, stored: StoredEvent) -> VerifiedEvent | VoidEvent:
        """Verify an event and its place in the log. One that the log has, and that is not valid, is void."""
        try:
            verified = self._verify_body(stored)
            # (8) in the log, at the entry that it names
            if self._logged is not None:
                self._logged.check(verified)
        except (CheckpointBeforeKeyring, KeyringRewritten, TreeDamaged):
            raise  # damage of something else is no fault of the event
        except ContextPlaneError as error:
            entry = None if self._logged is None else self._logged.find(stored)
            if entry is None:
                raise
            return VoidEvent(seq=stored.seq, digest=entry.event, previous=entry.previous, problem=error)
        _check_kind(verified, stored)
        return verified

    def verify(self, stored: StoredEvent) -> VerifiedEvent:
        """Verify steps 1 to 4 for an event that no log has yet, or whose place the caller checks."""
        verified = self._verify_body(stored)
        _check_kind(verified, stored)
        return verified

    def void(self, verified: VerifiedEvent, problem: ContextPlaneError) -> VoidEvent:
        """Return a void event in the place of one that the log has. Without a log, raise the problem."""
        if self._logged is None:
            raise problem
        return VoidEvent(seq=verified.seq, digest=verified.digest, previous=verified.previous, problem=problem)

    def _verify_body(self, stored: StoredEvent) -> VerifiedEvent:
        # (1) an envelope with an event, (2) one signature
        envelope, event = read_event(stored.body)
        # (3) in its place
        if (event.subject, event.seq) != (stored.stream, stored.seq):
            raise misplaced_error(stored, f"it is event {event.seq} of {event.subject[:120]}")
        _check_origin(self.keyrings.now, event, stored)
        try:
            at = Timestamp.parse(event.at)
        except InvalidTimestamp as error:
            raise misplaced_error(stored, error.message) from error
        # (4) by a key that was valid then
        signature = envelope.signatures[0]
        key = self.keyrings.public_key(signature.key_id)
        actor = self.keyrings.actor(signature.key_id, event.keyring, at, event.entry) if key is not None else None
        if key is None or actor is None or not self.keyrings.is_newest_for(event, at):
            raise RegistryUntrusted(
                f"no key that was trusted then signed it (it names {signature.key_id[:16]!r})",
                at=_place(stored),
                hint=CATALOG_HINT,
            )
        if not self.check.holds(key, signature.value, envelope.pae):
            raise RegistryUntrusted(
                f"key {signature.key_id[:16]} did not sign this", at=_place(stored), hint=CATALOG_HINT
            )
        return VerifiedEvent(event=event, at=at, by=actor, digest=Digest.of(stored.body).hex)


def _check_kind(verified: VerifiedEvent, stored: StoredEvent) -> None:
    """Refuse an event under another kind than its own. The kind is an index: no entry of the log has it."""
    if verified.kind != stored.kind:
        raise misplaced_error(stored, f"it is {verified.kind}, and not {stored.kind[:40]!r}")


def _check_origin(now: TrustedKeys, event: RegistryEvent, stored: StoredEvent) -> None:
    """Refuse an event of another store. `now`: the newest keyring."""
    is_old = not event.origin and (now.sealed is None or event.entry < now.sealed)
    if not is_old and event.origin != now.origin:
        raise EventOfOtherStore(
            f"it was made for {event.origin[:120] or 'no store'}, not for {now.origin}",
            at=_place(stored),
            hint=CATALOG_HINT,
        )


def _place(stored: StoredEvent) -> str:
    return f"{stored.stream}@{stored.seq}"


def misplaced_error(stored: StoredEvent, why: str) -> EventInvalid:
    """The error for an event that is not the one that belongs there."""
    return EventInvalid(f"not the event that belongs there: {why}", at=_place(stored), hint=CATALOG_HINT)
