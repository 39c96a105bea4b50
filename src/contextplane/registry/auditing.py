"""Verifying all of a registry: every event, every entry, every node, every checkpoint. It stops at nothing it finds.

    1  the keyring: every change signed by an owner, up to the one that is known          trust/keyring.py
    2  the log: every entry is one, and its event is what the entry says                  here
    3  every event: signature, authority, transition, also against other subjects         audit_events.py
    4  nothing beside the log: no event without an entry, no stream that is none of ours  here
    5  the tree over the entries, node by node; the tree over the ends of streams         audit_trees.py
    6  every checkpoint: signed, in order, of the log as it was then; none before a       audit_checkpoints.py
       revocation is the newest
    7  the newest one covers the whole log, and goes on from what this client saw         opening.py

It is pure over a view. What it costs grows with the registry; that is what it is for.
"""

from collections.abc import Callable
from itertools import chain

import msgspec

from contextplane.model.json_refusals import JsonRefused
from contextplane.model.json_text import parse
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Transaction, View
from contextplane.ports.signer import SignatureCheck
from contextplane.ports.streams import StoredEvent
from contextplane.registry.audit_checkpoints import CheckpointAudit
from contextplane.registry.audit_events import EventAudit
from contextplane.registry.audit_trees import TreeAudit
from contextplane.registry.checkpoints import Entry, Standing, entry_body
from contextplane.registry.keyrings import Keyrings
from contextplane.registry.opening import check_continuity
from contextplane.registry.streams import CHECKPOINTS, LOG, REGISTRY, SUBJECTS
from contextplane.registry.trouble import Trouble, Troubles
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.history import LogRewritten
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM, KeyringRewritten, followed
from contextplane.trust.merkle import EMPTY_ROOT
from contextplane.trust.stream_tree import levels_of

__all__ = ["Audit", "Progress", "audit"]

Progress = Callable[[int, int], None]
"""Called with the bytes and the events checked since the last call."""


class Audit(Value, frozen=True):
    """What was found. `standing` is the newest checkpoint, None when there is none, or none that can be believed.

    `renewable`: nothing is wrong but that the key which signed the newest checkpoint is revoked from before then on, or
    that one is older than a revocation; a fresh checkpoint of another key mends that. `by_revoked`: so many events are
    by keys that are revoked now.
    `as_of` is the time of the newest checkpoint, believed or not.
    """

    troubles: tuple[Trouble, ...]
    entries: int = 0
    subjects: int = 0
    checkpoints: int = 0
    by_revoked: int = 0
    as_of: Timestamp = NO_TIME
    heads: bytes = EMPTY_ROOT
    standing: Standing | None = None
    renewable: bool = False

    @property
    def sound(self) -> bool:
        return not self.troubles


def audit(  # noqa: PLR0913  what a verification stands on
    view: View | Transaction,
    known: TrustedKeys,
    check: SignatureCheck,
    *,
    origin: str,
    seen: Checkpoint | None,
    progress: Progress = lambda _size, _events: None,
) -> Audit:
    """Verify the registry of a view. `known`, `seen`: what the client knew of the keyring and the log before."""
    troubles, streams = Troubles(), view.streams
    # (1) the keyring, from what was known and from its beginning
    keys = _keyring(view, known, check, troubles)
    if keys is None:
        return Audit(troubles=troubles.found)  # nobody is trusted, so that all the rest would be refused for this
    keyrings = Keyrings.of(streams, keys)
    checkpoints = CheckpointAudit(streams, keyrings, check, origin, troubles)
    events, trees = EventAudit(streams, keyrings, check, troubles, seen), TreeAudit(checkpoints.sizes)
    # (2) and (3), in the order of the log
    for stored in streams.read(LOG):
        progress(len(stored.body), 1)
        entry = _entry(stored, troubles)
        trees.add(stored.body, entry)
        if entry is not None:
            events.follow(entry, stored.seq - 1)
    # (4) nothing beside it
    for name in chain.from_iterable(streams.names(prefix) for prefix in SUBJECTS):
        events.refuse_beyond(name)
    _refuse_strays(view, len(trees.levels), troubles)
    # (5) both trees
    trees.compare(view, troubles)
    # (6) the checkpoints, (7) and the newest of them
    newest, doubtful = checkpoints.compare(trees, events.times)
    with troubles.collected(LOG):
        if newest is not None or not doubtful:
            check_continuity(streams, newest, seen)
    found = troubles.found
    return Audit(
        troubles=found,
        entries=trees.size,
        subjects=len(events.states),
        checkpoints=streams.head(CHECKPOINTS),
        by_revoked=events.by_revoked,
        as_of=checkpoints.as_of,
        heads=trees.heads,
        standing=newest,
        renewable=doubtful and len(found) == 1,
    )


def _keyring(
    view: View | Transaction, known: TrustedKeys, check: SignatureCheck, troubles: Troubles
) -> TrustedKeys | None:
    with troubles.collected(STREAM):
        keys = followed(view.streams, known, check)
        if keys != followed(view.streams, TrustedKeys(), check):
            raise KeyringRewritten("from its beginning it does not lead to what is known")
        return keys
    return None


def _entry(stored: StoredEvent, troubles: Troubles) -> Entry | None:
    with troubles.collected(f"{LOG}@{stored.seq}"):
        try:
            entry = msgspec.convert(parse(stored.body).value, Entry)
        except (JsonRefused, msgspec.ValidationError) as error:
            raise LogRewritten(f"not an entry: {error}") from error
        if entry_body(entry) != stored.body or stored.kind != "entry":
            raise LogRewritten("not an entry as it is written")
        return entry
    return None


def _refuse_strays(view: View | Transaction, levels: int, troubles: Troubles) -> None:
    """Every stream of these names is one that somebody checks here."""
    for name in view.streams.names(REGISTRY):
        if name not in {LOG, CHECKPOINTS} and not name.startswith(SUBJECTS):
            troubles.add("registry_event_invalid", name, "not a stream of the registry")
    for name in levels_of(view.streams, "registry")[levels:]:
        troubles.add("tree_damaged", name, "a level that the tree has not")
