"""Verification of what came since a checkpoint that an auditor kept. It collects all problems.

    1  the keyring: every change                                                   audit.py
    2  the kept checkpoint: signed by a key of its time, and still in its place    find_checkpoint
    3  every entry since: well-formed, and its event as in a full audit            EventAudit
    4  the nodes over these entries, and the root of both trees at each size       RecentTrees
    5  every checkpoint since                                                      CheckpointAudit
    6  log and ends of streams continue the kept one, and what this client saw     continuity.py
    7  every cosignature of this checkpoint, and of those since                    audit_cosignatures
    8  every object that an event since names                                      ObjectAudit

A stream with a new event is verified from its first event on, and so is every subject that a new event depends on. The
ends of streams prove that nothing else changed. Other events are not read: an auditor who has verified everything up to
the checkpoint has read them. The cost grows with what is new.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import canonical
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.audit import (
    AuditInputs,
    AuditResult,
    EventAudit,
    ObjectAudit,
    read_log_entry,
    report_unlogged_keyring,
    report_void_entry,
    verify_keyring,
)
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.claims import PublicationAudit
from contextplane.registry.continuity import check_continuity, entries_since, follow_entries, prove_heads
from contextplane.registry.events import Published
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.log_audit import AuditProblems, CheckpointAudit, audit_cosignatures
from contextplane.registry.open import RegistryView
from contextplane.registry.reader import RegistryReader
from contextplane.registry.stream_heads import HeadNodesView, HeadTree, StreamHeads
from contextplane.registry.stream_reader import SubjectState
from contextplane.registry.streams import CHECKPOINTS, LOG, SUBJECTS, TREE, VERSIONS
from contextplane.store.event_stream import StreamHead
from contextplane.trust.checkpoint import Checkpoint, CheckpointInvalid, LogRolledBack, open_checkpoint
from contextplane.trust.keyring_stream import STREAM
from contextplane.trust.merkle import EMPTY_ROOT, Frontier, StreamTree, TreeDamaged, leaf_hash, level_name, peaks_of
from contextplane.trust.merkle_log import CheckpointMissing, LogEntry, VerifiedCheckpoint

if TYPE_CHECKING:
    from contextplane.registry.verified_event import VerifiedEvent

__all__ = ["audit_since", "find_checkpoint", "open_kept"]


def audit_since(kept: bytes, inputs: AuditInputs) -> AuditResult:
    """Verify what came since a checkpoint. `kept`: its signed note."""
    problems, view, streams, check = AuditProblems(), inputs.view, inputs.streams, inputs.check
    # (1) the keyring
    keys = verify_keyring(inputs, problems)
    if keys is None:
        return AuditResult(problems=problems.all)
    keyrings = KeyringHistory.of(streams, keys)
    # (2) the kept checkpoint
    since = open_kept(kept, keyrings, check, inputs.known.origin)
    size = since.checkpoint.size
    first = find_checkpoint(streams, since.checkpoint)
    if first is None:
        problems.add(CheckpointMissing.code, CHECKPOINTS, f"the kept checkpoint of {since.time} is not there")
        if (height := streams.head(LOG)) < size:
            # An old copy has nothing that came since.
            problems.add(LogRolledBack.code, LOG, f"{height} entries, and {size} when the checkpoint was kept")
            return AuditResult(problems=problems.all, since=since.checkpoint)
        first = streams.head(CHECKPOINTS)
    checkpoints = CheckpointAudit(streams, keyrings, check, inputs.known.origin, problems, kept=(first, since))
    # (3) the entries since, and their events
    stored = list(streams.read(LOG, after=size))
    entries = [read_log_entry(event, problems) for event in stored]
    shown = checkpoints.newest_at(size + len(entries))
    # (4) both trees
    trees = RecentTrees(streams, since.checkpoint, [event.body for event in stored], problems)
    trees.prove_heads(view.marks, shown, since.checkpoint, entries)
    counting = [entry for place, entry in enumerate(entries, size) if entry is not None and place not in trees.void]
    earlier = _EarlierRegistry(view, keyrings, check, since.checkpoint, shown=shown, entries=counting)
    objects = ObjectAudit(inputs.fetch)
    publications = PublicationAudit(objects.reader, inputs.judge, earlier.publications)
    keyring = 0 if since.checkpoint.keyring is None else since.checkpoint.keyring.seq
    events = EventAudit(streams, keyrings, check, problems, publications, cache(earlier.state), keyring=keyring)
    for event in stored:
        inputs.progress(len(event.body), 1)
    if trees.is_signed(shown):  # others say nothing of events
        _follow_entries(events, entries, size, trees.void, problems)
    # (5) the checkpoints, (6) and the newest of them
    newest, doubtful = checkpoints.compare(trees, events.times)
    with problems.collect(LOG):
        if newest is not None or not doubtful:
            ends = check_continuity(streams, view.marks, newest, since.checkpoint)
            check_continuity(streams, view.marks, newest, inputs.seen or since.checkpoint)
            doubtful = doubtful or report_unlogged_keyring(ends.heads.head(STREAM), newest, keys, problems)
    renewable = doubtful and problems.damage == 1
    # (7) the cosignatures, (8) and the objects
    audit_cosignatures(streams, keyrings, check, problems, since=size)
    objects.check(events.objects, problems)
    return AuditResult(
        problems=problems.all,
        entries=len(entries),
        subjects=len(events.states),
        checkpoints=streams.head(CHECKPOINTS) - first,
        by_revoked=events.by_revoked,
        as_of=checkpoints.as_of,
        newest=newest,
        renewable=renewable,
        since=since.checkpoint,
    )


def _follow_entries(
    events: EventAudit, entries: Iterable[LogEntry | None], size: int, void: frozenset[int], problems: AuditProblems
) -> None:
    """Check the events of entries after the first `size`. `void`: places of entries that do not count."""
    for index, entry in enumerate(entries, size):
        if entry is None:
            continue  # reported where it is read
        if index in void:
            report_void_entry(entry, index, problems)
        else:
            events.follow(entry, index)
    for stream in (stream for stream in events.states if stream.startswith(SUBJECTS)):
        events.refuse_beyond(stream)


def open_kept(note: bytes, keyrings: KeyringHistory, check: SignatureCheck, origin: str) -> VerifiedCheckpoint:
    """Open the note of a checkpoint that was kept: signed by a key of its time, of this format."""
    _, claimed = REGISTRY_LOG.read_note(canonical(note.decode(errors="replace")))
    checkpoint = open_checkpoint(note, origin=origin, keys=keyrings.trusted_keys_then(claimed), check=check)
    if checkpoint.keyring is None:
        raise CheckpointInvalid("it has the first format", hint="verify all of the registry, and keep a new one")
    return VerifiedCheckpoint(checkpoint=checkpoint, note=note)


def find_checkpoint(streams: StreamsView, checkpoint: Checkpoint) -> int | None:
    """The number of a checkpoint in its stream; None if it is not there. It reads O(log n) of them."""
    low, high = 0, streams.head(CHECKPOINTS)
    with suppress(ContextPlaneError):
        while low < high:
            middle = (low + high) // 2
            other = _checkpoint_after(streams, middle)
            if other == checkpoint:
                return middle + 1
            if other is not None and other.height < checkpoint.height:
                low = middle + 1
            else:
                high = middle
    return None


def _checkpoint_after(streams: StreamsView, number: int) -> Checkpoint | None:
    stored = next(iter(streams.read(CHECKPOINTS, after=number)), None)
    if stored is None:
        return None
    note, _ = REGISTRY_LOG.read_note(stored.body)
    return Checkpoint.parse_note(note.decode())


class RecentTrees:
    """Both trees since a checkpoint, as the entries lead to them. `roots` has their roots at every size.

    `void`: the places of entries that do not follow the last ones of their streams.
    """

    def __init__(
        self, streams: StreamsView, since: Checkpoint, bodies: Sequence[bytes], problems: AuditProblems
    ) -> None:
        self.size = since.size + len(bodies)
        self.void = frozenset[int]()
        self._streams = streams
        self.roots: dict[int, tuple[bytes, bytes | None]] = {since.size: (since.root, since.heads)}
        tree, frontier = StreamTree(streams, TREE), Frontier()
        with problems.collect(TREE):
            frontier = Frontier(size=since.size, peaks=peaks_of(tree, since.size))
        if frontier.root != since.root:
            return  # the log does not continue it, which is reported once
        for size, body in enumerate(bodies, since.size + 1):
            frontier, nodes = frontier.append(leaf_hash(body))
            self.roots[size] = (frontier.root, None)
            for node in nodes:
                place = f"{level_name(TREE, node.level)}@{node.index + 1}"
                with problems.collect(place):
                    if tree.node(node.level, node.index) != node.hash:
                        problems.add(TreeDamaged.code, place, "not the hash of what is below it")

    def is_signed(self, shown: VerifiedCheckpoint | None) -> bool:
        """Whether the entries are those of a checkpoint, if there is one of this size."""
        return shown is None or self.roots.get(self.size, (b"", None))[0] == shown.checkpoint.root

    def prove_heads(
        self,
        nodes: HeadNodesView,
        shown: VerifiedCheckpoint | None,
        since: Checkpoint,
        entries: Sequence[LogEntry | None],
    ) -> None:
        """Undo the entries one by one, from the newest ends of streams to those of the checkpoint.

        If they do not lead there, the newest ends are false, and say nothing of those before them.
        """
        if shown is None:
            return
        tree, ends = HeadTree(nodes, shown.heads), {}
        with suppress(ContextPlaneError):
            if prove_heads(nodes, since.heads or EMPTY_ROOT, shown.heads, entries) is None:
                _, counting = follow_entries(entries_since(self._streams, 0, EMPTY_ROOT, shown.checkpoint))
                self.void = frozenset(range(since.size, self.size)) - counting.keys()
            for size, entry in zip(range(self.size, since.size, -1), reversed(entries), strict=True):
                ends[size] = tree.root
                if entry is None or size - 1 in self.void:
                    continue
                if entry.seq == 1:
                    tree.remove(entry.stream)
                else:
                    tree.put(entry.stream, StreamHead(seq=entry.seq - 1, digest=entry.previous or ""))
            if tree.root == since.heads:
                self.roots.update({size: (root, ends.get(size, since.heads)) for size, (root, _) in self.roots.items()})


class _EarlierRegistry:
    """The subjects as they were at a checkpoint, verified from their first events on.

    `entries`: those since it that count. A void one could name any event as the first.
    """

    def __init__(  # noqa: PLR0913  what reading a registry takes
        self,
        view: RegistryView,
        keyrings: KeyringHistory,
        check: SignatureCheck,
        since: Checkpoint,
        *,
        shown: VerifiedCheckpoint | None,
        entries: Iterable[LogEntry],
    ) -> None:
        self._since = since
        self._first: dict[str, LogEntry] = {}
        for entry in entries:
            self._first.setdefault(entry.stream, entry)
        # A stream without a new event must still end where it did: the newest ends say where.
        signed = None if shown is None else StreamHeads(view.marks, shown.heads)
        log = None if shown is None else shown.checkpoint
        self._reader = RegistryReader(view.streams, keyrings, check, signed, log=log, has_voids=True)

    def state(self, stream: str) -> SubjectState:
        """The state of a subject at the checkpoint."""
        first = self._first.get(stream)
        return self._reader.state(stream) if first is None else self._reader.state_after(stream, first.seq - 1)

    def publications(self, base_id: str) -> Iterator[tuple[PackRef, Published]]:
        """All publications of an id at the checkpoint, in the order of the log."""
        published: list[VerifiedEvent] = []
        for stream in self._reader.names(f"{VERSIONS}{base_id}@"):
            with suppress(ContextPlaneError):  # one that no reader accepts owns nothing
                published += islice(self._reader.history(stream), 1)
        for verified in sorted(published, key=lambda verified: verified.event.entry):
            if isinstance(verified.change, Published) and verified.event.entry < self._since.size:
                yield PackRef.parse(verified.event.subject.removeprefix(VERSIONS)), verified.change
