"""Whether a registry continues what a client saw: its log begins as it did, and no stream went back.

    1  the log of the newest checkpoint begins with the log of the seen one            trust/checkpoint.py
    2  the entries since are those of the newest log: their hashes lead to its root    entries_since
    3  each entry follows the last one of its stream                                   check_chains
    4  the signed ends of streams are the seen ones with these entries, no others      prove_heads
    5  no new event is put into the past                                               check_times

For a client that looks for the first time the entries since are all entries, and the ends before them are none. So a
signer of checkpoints cannot leave an event out of the ends, not even for newcomers. Step 5 is left out for them: it
reads every event, as an audit does.
"""

from binascii import a2b_base64
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import StoredEvent
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.registry.first_format import MappedHeads, first_format_root
from contextplane.registry.stream_heads import HeadNodesView, HeadTree, StreamCut, StreamHeads, root_over
from contextplane.registry.streams import CHECKPOINTS, LOG, TREE
from contextplane.store.event_stream import StreamHead
from contextplane.trust.checkpoint import Checkpoint, LogRewritten, LogRolledBack, advance_checkpoint
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.merkle import EMPTY_ROOT, Frontier, StreamTree, consistency_proof, leaf_hash, peaks_of
from contextplane.trust.merkle_log import LogEntry, VerifiedCheckpoint

__all__ = [
    "HeadsRewritten",
    "StreamSpan",
    "check_chains",
    "check_continuity",
    "check_log",
    "check_times",
    "entries_since",
    "prove_heads",
    "read_entry",
]

_HINT = "an entry of the log was left out of the ends of streams; see 'ctx verify --registry', and restore a copy"
_decoder = msgspec.json.Decoder(LogEntry)


class HeadsRewritten(ContextPlaneError):
    """A checkpoint that signs other ends of streams than the entries of its log lead to.

    Who signed it left something out: a revocation, a rejection, the newest pin.
    """

    code: ClassVar[str] = "registry_heads_rewritten"
    family: ClassVar[Family] = "untrusted"


class StreamSpan(Value, frozen=True):
    """What some entries of the log say of one stream: its end before the first of them, and after all.

    `before`: None if it had no event.
    """

    before: StreamHead | None
    after: StreamHead


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
    shown = newest.checkpoint
    if newest.is_first_format or seen is None or seen.keyring is None:
        # Ends that were signed in the first format are hashed in another way: all entries lead to those of now.
        return _prove_all(streams, nodes, newest)
    # (2) to (5)
    entries = entries_since(streams, seen.size, seen.root, shown)
    prove_heads(nodes, seen.heads or EMPTY_ROOT, newest.heads, check_chains(entries))
    check_times(streams, entries, seen, seen.keyring.seq)
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


def entries_since(streams: StreamsView, size: int, root: bytes, shown: Checkpoint) -> list[LogEntry]:
    """The entries of the log of a checkpoint after its first `size`, whose root was `root`."""
    if size == shown.size:
        return []
    frontier = Frontier(size=size, peaks=peaks_of(StreamTree(streams, TREE), size))
    if frontier.root != root:
        raise LogRewritten(f"its first {size} entries are not those that were seen", at=LOG, hint=_HINT)
    bodies = [stored.body for stored in streams.read(LOG, after=size)]
    if frontier.extend([leaf_hash(body) for body in bodies]).root != shown.root:
        raise LogRewritten("its entries are not those that are signed", at=LOG, hint=_HINT)
    return [read_entry(body, size + n) for n, body in enumerate(bodies)]


def read_entry(body: bytes, index: int) -> LogEntry:
    """Parse an entry of the log."""
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise LogRewritten(f"entry {index} is no entry: {error}", at=f"{LOG}@{index + 1}", hint=_HINT) from error


def check_chains(entries: Sequence[LogEntry]) -> dict[str, StreamSpan]:
    """Refuse entries that do not follow each other within their streams; return where each stream went."""
    before: dict[str, StreamHead | None] = {}
    after: dict[str, StreamHead] = {}
    for entry in entries:
        last = after.get(entry.stream)
        if last is None:
            before[entry.stream] = _head_before(entry)
        elif entry.seq != last.seq + 1 or entry.previous not in {None, last.digest}:
            raise LogRewritten(
                f"entry for event {entry.seq} of a stream that ended with event {last.seq}",
                at=f"{entry.stream}@{entry.seq}",
                hint=_HINT,
            )
        after[entry.stream] = StreamHead(seq=entry.seq, digest=entry.event)
    return {stream: StreamSpan(before=before[stream], after=head) for stream, head in after.items()}


def check_times(streams: StreamsView, entries: Sequence[LogEntry], seen: Checkpoint, keyring: int) -> None:
    """Refuse new events that are put into the past: before the seen checkpoint, or under an older keyring.

    Otherwise a key whose role was taken away, or whose time is over, could act as if it were earlier, for every client
    that looks a second time. `keyring`: the number of changes of the keyring before the first entry.
    """
    expected: dict[str, list[tuple[LogEntry, int]]] = {}
    for entry in entries:
        if entry.stream == KEYRING_STREAM:
            keyring = entry.seq
        else:
            expected.setdefault(entry.stream, []).append((entry, keyring))
    for stream, pairs in expected.items():
        stored = iter(streams.read(stream, after=pairs[0][0].seq - 1))
        for entry, floor in pairs:
            event = next(stored, None)
            if event is None or Digest.of(event.body).hex != entry.event:
                why = "the log names this event, and it is not there"
                raise StreamCut(why, at=f"{stream}@{entry.seq}", hint=_HINT)
            _refuse_past(event, seen, floor)


class _Envelope(Value, frozen=True):
    """The part of an envelope that is read here. Readers of the event are stricter."""

    payload: str


class _Moment(Value, frozen=True):
    """The part of an event that is read here."""

    keyring: int
    at: str


def _refuse_past(stored: StoredEvent, seen: Checkpoint, keyring: int) -> None:
    try:
        payload = a2b_base64(msgspec.json.decode(stored.body, type=_Envelope).payload)
        moment = msgspec.json.decode(payload, type=_Moment)
        at = Timestamp.parse(moment.at)
    except (msgspec.DecodeError, ValueError, ContextPlaneError):
        return  # every reader of its stream refuses it
    place = f"{stored.stream}@{stored.seq}"
    if moment.keyring < keyring:
        why = f"made under change {moment.keyring} of the keyring, and the log had change {keyring} before it"
        raise ClockWentBackwards(why, at=place, hint=_HINT)
    if seen.time is not None and at < seen.time:
        raise ClockWentBackwards(f"an event at {at}, and at {seen.time} it was not there yet", at=place, hint=_HINT)


def prove_heads(nodes: HeadNodesView, old: bytes, new: bytes, spans: dict[str, StreamSpan]) -> None:
    """Refuse ends of streams that are not the old ones with these changes, and nothing else.

    The changes are undone in the new tree, which must then have the old root.
    """
    tree = HeadTree(nodes, new)
    for stream, span in spans.items():
        if tree.head(stream) != span.after:
            raise HeadsRewritten(
                f"the log leads to event {span.after.seq}, and the signed end is another", at=stream, hint=_HINT
            )
        if span.before is None:
            tree.remove(stream)
        else:
            tree.put(stream, span.before)
    if tree.root != old:
        raise HeadsRewritten("an end of a stream changed without an entry in the log", at=CHECKPOINTS, hint=_HINT)


def _prove_all(streams: StreamsView, nodes: HeadNodesView, newest: VerifiedCheckpoint) -> StreamHeads:
    """The ends of streams that all entries of the log lead to, which must be the signed ones."""
    entries = entries_since(streams, 0, EMPTY_ROOT, newest.checkpoint)
    spans = check_chains(entries)
    for stream, span in spans.items():
        # The keyring of a store that was sealed later has changes from before that, which are in no log.
        if span.before is not None and stream != KEYRING_STREAM:
            raise LogRewritten("its first entry in the log is not of its first event", at=stream, hint=_HINT)
    ends = {stream: span.after for stream, span in spans.items()}
    root = first_format_root(ends) if newest.is_first_format else root_over(ends)
    if root != newest.heads:
        raise HeadsRewritten("the signed ends of streams are not those of the log", at=CHECKPOINTS, hint=_HINT)
    if newest.is_first_format:
        return MappedHeads(ends)
    return StreamHeads(nodes, newest.heads)


def _head_before(entry: LogEntry) -> StreamHead | None:
    if entry.seq == 1:
        return None
    return StreamHead(seq=entry.seq - 1, digest=entry.previous or "")
