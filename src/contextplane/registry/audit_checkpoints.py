"""Every checkpoint of the registry, compared with the one before it and with the log.

It is signed by a key that was good then. It is never of fewer entries or of an earlier time than the one before it, and
says of the log what the log was at that size. The newest is not older than a revocation.
"""

from collections.abc import Mapping

from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.ports.signer import SignatureCheck
from contextplane.ports.streams import StoredEvent, StreamsView
from contextplane.registry.audit_trees import TreeAudit
from contextplane.registry.checkpoints import (
    CheckpointBeforeRevocation,
    CheckpointMissing,
    Standing,
    check_revocations,
    read_note,
)
from contextplane.registry.keyrings import Keyrings
from contextplane.registry.streams import CHECKPOINTS
from contextplane.registry.trouble import Troubles
from contextplane.trust.checkpoint import CheckpointInvalid, open_checkpoint
from contextplane.trust.history import LogRewritten, LogRolledBack, LogTruncated
from contextplane.trust.note import NoteUnsigned
from contextplane.trust.refusals import ClockWentBackwards

__all__ = ["CheckpointAudit"]


class CheckpointAudit:
    """The checkpoints of a registry, opened. `sizes`: of which they speak; `as_of`: the latest time in them."""

    def __init__(
        self, streams: StreamsView, keyrings: Keyrings, check: SignatureCheck, origin: str, troubles: Troubles
    ) -> None:
        self._keyrings = keyrings
        self._check = check
        self._origin = origin
        self._troubles = troubles
        self._opened: list[tuple[int, Standing | None]] = []
        for one in streams.read(CHECKPOINTS):
            if one.seq != len(self._opened) + 1:
                troubles.add(CheckpointMissing.code, _place(one.seq), "a checkpoint before it is missing")
            self._opened.append((one.seq, self._open(one)))
        self.as_of = max((one.time for _, one in self._opened if one is not None), default=NO_TIME)
        self.sizes = frozenset(one.checkpoint.size for _, one in self._opened if one is not None)

    def compare(self, trees: TreeAudit, times: Mapping[int, Timestamp]) -> tuple[Standing | None, bool]:
        """Compare all with the log. The newest is handed out if it is believed; and whether it is only doubtful.

        Doubtful: its signer is revoked from before then on, or it is older than a revocation. A fresh one mends that.
        """
        before: Standing | None = None
        for seq, one in self._opened:
            if one is not None:
                with self._troubles.collected(_place(seq)):
                    _follows(before, one)
                    _covers(one, trees, times)
                before = one
        seq, newest = self._opened[-1] if self._opened else (0, None)
        if newest is None:
            if not self._opened and trees.size:
                self._troubles.add(CheckpointMissing.code, CHECKPOINTS, "the log has entries and no checkpoint")
            return None, False
        if newest.checkpoint.size < trees.size:
            unsigned = trees.size - newest.checkpoint.size
            self._troubles.add(LogRewritten.code, _place(seq), f"{unsigned} entries more than are signed")
        keys = self._keyrings.good_at(newest.time)
        try:
            open_checkpoint(newest.note, origin=self._origin, keys=keys, check=self._check)
        except NoteUnsigned:
            self._troubles.add(NoteUnsigned.code, _place(seq), "who signed the newest checkpoint is revoked since")
            return None, True
        try:
            check_revocations(newest, self._keyrings.now)
        except CheckpointBeforeRevocation as error:
            self._troubles.add(error.code, _place(seq), error.message)
            return newest, True
        return newest, False

    def _open(self, stored: StoredEvent) -> Standing | None:
        """A checkpoint by a key that was good then, whatever became of it since."""
        with self._troubles.collected(_place(stored.seq)):
            if stored.kind != "checkpoint":
                raise CheckpointInvalid(f"of the kind {stored.kind[:40]!r}")
            note, claimed = read_note(stored.body)
            keys = self._keyrings.good_then(claimed)
            checkpoint = open_checkpoint(note, origin=self._origin, keys=keys, check=self._check)
            return Standing(checkpoint=checkpoint, note=note)
        return None


def _follows(before: Standing | None, one: Standing) -> None:
    if before is not None and one.checkpoint.size < before.checkpoint.size:
        raise LogRolledBack(f"{one.checkpoint.size} entries, after a checkpoint of {before.checkpoint.size}")
    if before is not None and one.time < before.time:
        raise ClockWentBackwards(f"of {one.time}, after one of {before.time}")


def _covers(one: Standing, trees: TreeAudit, times: Mapping[int, Timestamp]) -> None:
    size = one.checkpoint.size
    if size not in trees.roots:
        raise LogTruncated(f"{trees.size} entries, and {size} are signed")
    if trees.roots[size] != (one.checkpoint.root, one.heads):
        raise LogRewritten(f"the first {size} entries are not those that were signed")
    last, after = times.get(size - 1), times.get(size)
    if (last is not None and one.time < last) or (after is not None and after < one.time):
        raise ClockWentBackwards(f"of {one.time}, which is not the time between its last entry and the next one")


def _place(seq: int) -> str:
    return f"{CHECKPOINTS}@{seq}"
