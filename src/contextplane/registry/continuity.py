"""Whether a registry continues what a client saw: its log begins as it did, and no stream went back.

    1  the log of the newest checkpoint begins with the log of the seen one            trust/checkpoint.py
    2  the entries since are those of the newest log: their hashes lead to its root    entries_since
    3  the signed ends of streams are the seen ones with these entries, no others      prove_heads
    4  the events of these entries are there                                           _refuse_missing_events

A client remembers what it accepts, and never goes back. If the signer of a checkpoint keeps the event of an entry back,
no copy of the registry has the event, and it could never be read or signed again. So a client refuses it before.

For a client that looks for the first time the entries since are all entries, and the ends before them are none. So a
signer of checkpoints cannot leave an event out of the ends, not even for newcomers.

An entry that does not follow the last one of its stream is void, and so is one that cannot be read: it moves no end.
Otherwise one signer could close the registry for good.
"""

from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from itertools import zip_longest
from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.registry.first_format import MappedHeads, first_format_root
from contextplane.registry.stream_heads import HeadNodesView, HeadTree, StreamCut, StreamHeads, root_over
from contextplane.registry.streams import CHECKPOINTS, LOG, TREE
from contextplane.store.event_stream import StreamHead
from contextplane.trust.checkpoint import Checkpoint, LogRewritten, LogRolledBack, advance_checkpoint
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.merkle import EMPTY_ROOT, Frontier, StreamTree, consistency_proof, leaf_hash, peaks_of
from contextplane.trust.merkle_log import LogEntry, VerifiedCheckpoint

__all__ = [
    "HeadsRewritten",
    "LogTrace",
    "StreamSpan",
    "check_continuity",
    "check_log",
    "entries_since",
    "follow_entry",
    "prove_heads",
    "read_entry",
    "trace_entries",
    "void_since",
]

_HINT = "an entry of the log was left out of the ends of streams; see 'ctx verify --registry', and restore a copy"
_HEX_LENGTH = 64
_MOST_SEQ = 2**53 - 1


class HeadsRewritten(ContextPlaneError):
    """A checkpoint that signs other ends of streams than the entries of its log lead to.

    Who signed it left something out: a revocation, a rejection, the newest pin.
    """

    code: ClassVar[str] = "registry_heads_rewritten"
    family: ClassVar[Family] = "untrusted"


class StreamSpan(Value, frozen=True):
    """What some entries of the log say of one stream: its end before the first of them, and after all.

    None: it had no event.
    """

    before: StreamHead | None
    after: StreamHead | None


class LogTrace(Value, frozen=True):
    """What some entries of the log lead to: for each stream its span, and the places of void entries."""

    spans: dict[str, StreamSpan]
    void: frozenset[int]


def check_continuity(
    streams: StreamsView, nodes: HeadNodesView, newest: VerifiedCheckpoint | None, seen: Checkpoint | None
) -> StreamHeads:
    """Refuse a registry that does not continue what was seen; return the proved ends of its streams.

    The cost grows with the entries since, not with the log.
    """
    # (1) the same beginning
    if seen is not None:
        check_log(streams, newest, seen)
    if newest is None:
        return StreamHeads(nodes, EMPTY_ROOT)
    if newest.is_first_format or seen is None or seen.keyring is None:
        # Ends that were signed in the first format are hashed in another way: all entries lead to those of now.
        return _prove_all(streams, nodes, newest)
    # (2) the entries since, (3) the ends that they lead to, (4) and their events
    entries = entries_since(streams, seen.size, seen.root, newest.checkpoint)
    try:
        counting = prove_heads(nodes, seen.heads or EMPTY_ROOT, newest.heads, entries)
    except HeadsRewritten:
        void = void_since(streams, newest, seen)
        if void is None:
            raise
        counting = [entry for place, entry in enumerate(entries) if entry is not None and place not in void]
    _refuse_missing_events(streams, counting)
    return StreamHeads(nodes, newest.heads)


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

    None stands for one that cannot be read.
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
    """Parse an entry of the log; None if it is none in the one form that is written.

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


def trace_entries(entries: Sequence[LogEntry | None], head_of: Callable[[str], StreamHead | None]) -> LogTrace:
    """Follow the streams through some entries to their ends, which `head_of` returns; refuse other ends.

    The end before the entries is what those that lead to the end after them claim. Whether it is true, the caller
    proves.
    """
    spans: dict[str, StreamSpan] = {}
    void = {index for index, entry in enumerate(entries) if entry is None}
    for stream, places in _entries_by_stream(entries).items():
        before = after = head_of(stream)
        for _, entry in reversed(places):
            if before is not None and (entry.seq, entry.event) == (before.seq, before.digest):
                before = _head_before(entry)
        end = before
        for index, entry in places:
            if _follows(entry, end):
                end = StreamHead(seq=entry.seq, digest=entry.event)
            else:
                void.add(index)
        if end != after:
            raise _other_end_error(stream, end)
        spans[stream] = StreamSpan(before=before, after=after)
    return LogTrace(spans=spans, void=frozenset(void))


def _entries_by_stream(entries: Sequence[LogEntry | None]) -> dict[str, list[tuple[int, LogEntry]]]:
    """The entries of each stream, with their places among all."""
    listed: dict[str, list[tuple[int, LogEntry]]] = {}
    for place in enumerate(entries):
        if place[1] is not None:
            listed.setdefault(place[1].stream, []).append((place[0], place[1]))
    return listed


def _head_before(entry: LogEntry) -> StreamHead | None:
    return None if entry.seq == 1 else StreamHead(seq=entry.seq - 1, digest=entry.previous or "")


def _follows(entry: LogEntry, last: StreamHead | None) -> bool:
    if last is None:
        return entry.seq == 1 and entry.previous == ""
    return entry.seq == last.seq + 1 and entry.previous == last.digest


def _other_end_error(stream: str, end: StreamHead | None) -> HeadsRewritten:
    number = 0 if end is None else end.seq
    return HeadsRewritten(f"the log leads to event {number}, and the signed end is another", at=stream, hint=_HINT)


def prove_heads(nodes: HeadNodesView, old: bytes, new: bytes, entries: Sequence[LogEntry | None]) -> list[LogEntry]:
    """Refuse ends of streams that are not the old ones with these entries, and nothing else.

    The entries are undone in the new tree, which must then have the old root. Returns those that are not void, in the
    order of their streams.
    """
    tree = HeadTree(nodes, new)
    counting: list[LogEntry] = []
    odd: list[LogEntry | None] = []
    for stream, places in _entries_by_stream(entries).items():
        listed = [entry for _, entry in places]
        end = StreamHead(seq=listed[-1].seq, digest=listed[-1].event)
        # As it nearly always is: each entry follows the one before it, and the last one is the end.
        is_usual = _is_chain(listed) and tree.exchange(stream, end, _head_before(listed[0]))
        (counting if is_usual else odd).extend(listed)
    trace = trace_entries(odd, tree.head)
    for stream, span in trace.spans.items():
        if span.after is not None:
            tree.exchange(stream, span.after, span.before)
    if tree.root != old:
        raise HeadsRewritten("an end of a stream changed without an entry in the log", at=CHECKPOINTS, hint=_HINT)
    return [*counting, *(entry for place, entry in enumerate(odd) if entry is not None and place not in trace.void)]


def void_since(streams: StreamsView, newest: VerifiedCheckpoint, seen: Checkpoint) -> frozenset[int] | None:
    """The places of void entries since a checkpoint, by following all; None if the ends are others.

    An entry that repeats the last one of its stream from before the checkpoint moves nothing. The entries since alone
    do not show that.
    """
    entries = entries_since(streams, 0, EMPTY_ROOT, newest.checkpoint)
    ends: dict[str, StreamHead] = {}
    for entry in entries[: seen.size]:
        follow_entry(ends, entry)
    if root_over(ends) != (seen.heads or EMPTY_ROOT):
        return None
    since = entries[seen.size :]
    void = frozenset(place for place, entry in enumerate(since) if not follow_entry(ends, entry))
    return void if root_over(ends) == newest.heads else None


def _refuse_missing_events(streams: StreamsView, entries: Iterable[LogEntry]) -> None:
    """Refuse entries of the log whose events are not there. Those of a stream follow each other."""
    listed: dict[str, list[LogEntry]] = {}
    for entry in entries:
        listed.setdefault(entry.stream, []).append(entry)
    for stream, ordered in listed.items():
        before, named = ordered[0].seq - 1, [entry.event for entry in ordered]
        there = [sha256(stored.body).hexdigest() for stored in streams.read(stream, after=before)]
        if there[: len(named)] != named:
            missing = next(place for place, pair in enumerate(zip_longest(named, there), 1) if pair[0] != pair[1])
            why = "the log names this event, and it is not there"
            raise StreamCut(why, at=f"{stream}@{before + missing}", hint=_HINT)


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


def _prove_all(streams: StreamsView, nodes: HeadNodesView, newest: VerifiedCheckpoint) -> StreamHeads:
    """The ends of streams that all entries of the log lead to, which must be the signed ones."""
    ends: dict[str, StreamHead] = {}
    for entry in entries_since(streams, 0, EMPTY_ROOT, newest.checkpoint):
        follow_entry(ends, entry)
    root = first_format_root(ends) if newest.is_first_format else root_over(ends)
    if root != newest.heads:
        raise HeadsRewritten("the signed ends of streams are not those of the log", at=CHECKPOINTS, hint=_HINT)
    if newest.is_first_format:
        return MappedHeads(ends)
    return StreamHeads(nodes, newest.heads)
