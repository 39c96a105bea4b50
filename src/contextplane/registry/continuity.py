"""Whether a registry continues what a client saw: its log begins as it did, and no stream went back.

    1  the log of the newest checkpoint begins with the log of the seen one            trust/checkpoint.py
    2  the entries since are those of the newest log: their hashes lead to its root    entries_since
    3  the signed ends of streams are the seen ones with these entries, no others      prove_heads
    4  the events of these entries are there                                           _missing_event

A client remembers what it accepts, and never goes back. If the signer of a checkpoint keeps the event of an entry back,
no copy of the registry has the event. So a client that misses an event remembers nothing, and acts on nothing, until
the store is restored. Other streams can still be read.

For a client that looks for the first time the entries since are all entries, and the ends before them are none. So a
signer of checkpoints cannot leave an event out of the ends, not even for newcomers.

An entry that does not follow the last one of its stream is void, and so is one that cannot be read, or whose stream is
neither the keyring nor of a subject: it moves no end. Otherwise one signer could close the registry for good.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import ClassVar, NamedTuple

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.registry.first_format import MappedHeads, first_format_root
from contextplane.registry.stream_heads import HeadNodesView, HeadTree, StreamCut, StreamHeads, root_over
from contextplane.registry.streams import CHECKPOINTS, LOG, TREE, is_subject
from contextplane.store.event_stream import StreamHead
from contextplane.trust.checkpoint import Checkpoint, LogRewritten, LogRolledBack, advance_checkpoint
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.merkle import EMPTY_ROOT, Frontier, StreamTree, consistency_proof, leaf_hash, peaks_of
from contextplane.trust.merkle_log import LogEntry, VerifiedCheckpoint

__all__ = [
    "HeadsRewritten",
    "ProvedEnds",
    "check_continuity",
    "check_log",
    "entries_since",
    "follow_entries",
    "follow_entry",
    "is_logged",
    "parse_entry",
    "prove_heads",
    "read_entry",
]

_HINT = "an entry of the log was left out of the ends of streams; see 'ctx verify --registry', and restore a copy"
_MISSING_HINT = "it was deleted, or who signed the log keeps it back; see 'ctx verify --registry', and restore a copy"
_HEX_LENGTH = 64
_MOST_SEQ = 2**53 - 1


class HeadsRewritten(ContextPlaneError):
    """A checkpoint that signs other ends of streams than the entries of its log lead to.

    Who signed it left something out: a revocation, a rejection, the newest pin.
    """

    code: ClassVar[str] = "registry_heads_rewritten"
    family: ClassVar[Family] = "untrusted"


class ProvedEnds(NamedTuple):
    """The proved ends of all streams, and the number of void entries in the log that leads to them.

    `missing`: the error for an event that the log names, and that is not there; None if all are.
    """

    heads: StreamHeads
    voids: int
    missing: StreamCut | None = None


def check_continuity(
    streams: StreamsView,
    nodes: HeadNodesView,
    newest: VerifiedCheckpoint | None,
    seen: Checkpoint | None,
    voids: int | None = None,
) -> ProvedEnds:
    """Refuse a registry that does not continue what was seen; return the proved ends of its streams.

    `voids`: the number of void entries in the seen log; None: not known. The cost grows with the entries since, not
    with the log, unless that number is not known, or one of these entries is odd.
    """
    # (1) the same beginning
    if seen is not None:
        check_log(streams, newest, seen)
    if newest is None:
        return ProvedEnds(StreamHeads(nodes, EMPTY_ROOT), 0)
    if seen is not None and seen.keyring is not None and voids is not None and not newest.is_first_format:
        # (2) the entries since, (3) the ends that they lead to, (4) and their events
        entries = entries_since(streams, seen.size, seen.root, newest.checkpoint)
        counting = prove_heads(nodes, seen.heads or EMPTY_ROOT, newest.heads, entries)
        if counting is not None:
            return ProvedEnds(StreamHeads(nodes, newest.heads), voids, _missing_event(streams, counting))
    return _prove_all(streams, nodes, newest, 0 if seen is None else seen.size)


def check_log(streams: StreamsView, newest: VerifiedCheckpoint | None, seen: Checkpoint) -> None:
    """Refuse a log that does not begin with the entries that were seen. It reads O(log n) nodes."""
    if newest is None:
        raise LogRolledBack(
            f"it is empty, and {seen.size} entries were seen before", at=LOG, hint="restore the catalog from a copy"
        )
    shown, tree = newest.checkpoint, StreamTree(streams, TREE)
    is_older = seen.size < shown.size
    advance_checkpoint(seen, shown, consistency_proof(tree, seen.size, shown.size) if is_older else ())


def entries_since(streams: StreamsView, size: int, root: bytes, shown: Checkpoint) -> list[LogEntry | None]:
    """The entries of the log of a checkpoint after its first `size`, whose root was `root`.

    None stands for one that is void by itself.
    """
    if size == shown.size:
        return []
    frontier = Frontier(size=size, peaks=peaks_of(StreamTree(streams, TREE), size))
    if frontier.root != root:
        raise LogRewritten(f"its first {size} entries are not those that were seen", at=LOG, hint=_HINT)
    bodies = [stored.body for stored in streams.read(LOG, after=size)]
    if frontier.extend([leaf_hash(body) for body in bodies]).root != shown.root:
        raise LogRewritten("its entries are not those that are signed", at=LOG, hint=_HINT)
    return [read_entry(body) for body in bodies]


class _StoredEntry(Value, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An entry with its members in the order in which they are written."""

    event: str
    previous: str | None = None
    seq: int = 0
    stream: str = ""


_decoder = msgspec.json.Decoder(_StoredEntry)
_encoder = msgspec.json.Encoder()


def read_entry(body: bytes) -> LogEntry | None:
    """Parse an entry of the log; None if it is void by itself.

    It is not in the one form that is written, or its stream is none that the log is about.
    """
    entry = parse_entry(body)
    return entry if entry is not None and is_logged(entry.stream) else None


def is_logged(stream: str) -> bool:
    """Whether entries of the log are about a stream of this name: the keyring, or a subject."""
    return stream == KEYRING_STREAM or is_subject(stream)


def parse_entry(body: bytes) -> LogEntry | None:
    """Parse an entry of the log, of any stream; None if it is not in the one form that is written.

    There is one form only, so that an entry can be proved by what it says.
    """
    try:
        stored = _decoder.decode(body)
        # Names are ASCII without spaces and escapes, and nothing is between the members.
        if b" " in body or b"\\" in body or not body.isascii() or _encoder.encode(stored) != body:
            return None
        event = stored.event
        # The event before it is compared with one that was checked.
        if not 0 < stored.seq <= _MOST_SEQ or len(event) != _HEX_LENGTH or bytes.fromhex(event).hex() != event:
            return None
    except (msgspec.DecodeError, ValueError):
        return None
    return LogEntry(event=event, seq=stored.seq, stream=stored.stream, previous=stored.previous)


def follow_entry(ends: dict[str, StreamHead], entry: LogEntry | None) -> bool:
    """Move the end of a stream by the next entry of the whole log; returns False for a void one."""
    if entry is None:
        return False
    last = ends.get(entry.stream)
    if last is None and entry.stream == KEYRING_STREAM:
        is_next = True  # that of a store that was sealed later has changes from before that, which are in no log
    elif entry.previous is None:  # of the first format
        is_next = entry.seq == (1 if last is None else last.seq + 1) and KEYRING_STREAM not in ends
    else:
        is_next = _follows(entry, last)
    if is_next:
        ends[entry.stream] = StreamHead(seq=entry.seq, digest=entry.event)
    return is_next


def _follows(entry: LogEntry, last: StreamHead | None) -> bool:
    if last is None:
        return entry.seq == 1 and entry.previous == ""
    return entry.seq == last.seq + 1 and entry.previous == last.digest


def prove_heads(
    nodes: HeadNodesView, old: bytes, new: bytes, entries: Sequence[LogEntry | None]
) -> list[LogEntry] | None:
    """Prove that the new ends of streams are the old ones with these entries, and nothing else.

    The entries are undone in the new tree, which must then have the old root. Returns them in the order of their
    streams; None if that does not prove it. Then an entry is void, or the ends are false: the whole log shows which.
    """
    tree, listed = HeadTree(nodes, new), dict[str, list[LogEntry]]()
    for entry in entries:
        if entry is None:
            return None
        listed.setdefault(entry.stream, []).append(entry)
    for stream, chain in listed.items():
        first, last = chain[0], chain[-1]
        before = None if first.seq == 1 else StreamHead(seq=first.seq - 1, digest=first.previous or "")
        if not (_is_chain(chain) and tree.exchange(stream, StreamHead(seq=last.seq, digest=last.event), before)):
            return None
    return [entry for chain in listed.values() for entry in chain] if tree.root == old else None


def _missing_event(streams: StreamsView, entries: Iterable[LogEntry]) -> StreamCut | None:
    """The error for an entry of the log whose event is not there. Those of a stream follow each other."""
    listed: dict[str, list[LogEntry]] = {}
    for entry in entries:
        listed.setdefault(entry.stream, []).append(entry)
    for stream, ordered in listed.items():
        before, named = ordered[0].seq - 1, [entry.event for entry in ordered]
        there = [sha256(stored.body).hexdigest() for stored in streams.read(stream, after=before)]
        if there[: len(named)] != named:
            missing = next(place for place, pair in enumerate(zip_longest(named, there), 1) if pair[0] != pair[1])
            why = "the log names this event, and it is not there"
            return StreamCut(why, at=f"{stream}@{before + missing}", hint=_MISSING_HINT)
    return None


def _is_chain(entries: Sequence[LogEntry]) -> bool:
    """Whether each of the entries of one stream follows the one before it."""
    last = entries[0]
    if last.previous is None or (last.seq == 1) is not (last.previous == ""):
        return False
    for entry in entries[1:]:
        if entry.previous != last.event or entry.seq != last.seq + 1:
            return False
        last = entry
    return True


def _prove_all(streams: StreamsView, nodes: HeadNodesView, newest: VerifiedCheckpoint, seen: int) -> ProvedEnds:
    """The ends of streams that all entries of the log lead to, which must be the signed ones.

    `seen`: the number of entries that were seen before; the events of later ones must be there.
    """
    entries = entries_since(streams, 0, EMPTY_ROOT, newest.checkpoint)
    ends, counting = follow_entries(entries)
    root = first_format_root(ends) if newest.is_first_format else root_over(ends)
    if root != newest.heads:
        raise HeadsRewritten("the signed ends of streams are not those of the log", at=CHECKPOINTS, hint=_HINT)
    missing = _missing_event(streams, (entry for index, entry in counting.items() if index >= seen))
    heads = MappedHeads(ends) if newest.is_first_format else StreamHeads(nodes, newest.heads)
    return ProvedEnds(heads, len(entries) - len(counting), missing)


def follow_entries(entries: Iterable[LogEntry | None]) -> tuple[dict[str, StreamHead], dict[int, LogEntry]]:
    """Follow all entries of a log; returns the ends they lead to, and those that count, by their places."""
    ends: dict[str, StreamHead] = {}
    counting = {index: entry for index, entry in enumerate(entries) if entry is not None and follow_entry(ends, entry)}
    return ends, counting
