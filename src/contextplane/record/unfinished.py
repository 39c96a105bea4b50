"""The recordings that were begun and did not become a pack. What is finished costs nothing here."""

from collections.abc import Iterator

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, InvalidId, RecordingId
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import View
from contextplane.record.journal import RECORDINGS, Desk, Journal

__all__ = ["Unfinished", "Unkept", "keep_unfinished", "unfinished", "unkept"]


class Unfinished(Value, frozen=True):
    """A recording as it stands. `problem`: why it cannot be read, when it cannot."""

    id: RecordingId
    begun: Timestamp = NO_TIME
    model: str = ""
    steps: int = 0
    problem: str = ""


def unfinished(desk: Desk) -> list[Unfinished]:
    """Those that can be resumed or finished, the newest first."""
    with desk.catalog.read() as view:
        found = [_as_it_stands(desk, one, view) for one in _with_roots(view)]
    return sorted(found, key=lambda one: (one.begun, one.id), reverse=True)


def keep_unfinished(desk: Desk) -> None:
    """Keep the contents of every unfinished recording anew: what kept them is index, and may be lost with a catalog."""
    with desk.catalog.write() as tx:
        for stream in list(tx.streams.names(RECORDINGS)):
            try:
                Journal(desk, RecordingId.parse(stream.removeprefix(RECORDINGS))).keep_again(tx)
            except ContextPlaneError:
                continue  # it cannot be read, so nobody can tell what it needs


class Unkept(Value, frozen=True):
    """A recording whose contents may be collected. `lost`: something that it needs and that nothing keeps.

    None when its events cannot be read, so that nobody can tell what it needs: `problem` says why.
    """

    stream: str
    lost: Digest | None = None
    problem: str = ""


def unkept(desk: Desk, view: View) -> Iterator[Unkept]:
    """Every recording that its roots do not keep whole. Those that became a pack need none."""
    for stream in view.streams.names(RECORDINGS):
        try:
            journal = Journal(desk, RecordingId.parse(stream.removeprefix(RECORDINGS)))
            needed, kept = journal.needs(view), journal.kept(view)
        except ContextPlaneError as error:
            yield Unkept(stream=stream, problem=f"{error.code}: {error.message}")
            continue
        for digest in needed:
            if digest not in kept:
                yield Unkept(stream=stream, lost=digest)
                break


def _with_roots(view: View) -> Iterator[RecordingId]:
    names = dict.fromkeys(name.removeprefix(RECORDINGS).partition("/")[0] for name, _ in view.objects.roots(RECORDINGS))
    for name in names:
        try:
            yield RecordingId.parse(name)
        except InvalidId:
            continue


def _as_it_stands(desk: Desk, recording_id: RecordingId, view: View) -> Unfinished:
    try:
        so_far = Journal(desk, recording_id).read(view)
    except ContextPlaneError as error:
        return Unfinished(id=recording_id, problem=f"{error.code}: {error.message}")
    manifest = so_far.manifest
    return Unfinished(id=recording_id, begun=so_far.begun, model=manifest.model.identifier, steps=len(manifest.steps))
