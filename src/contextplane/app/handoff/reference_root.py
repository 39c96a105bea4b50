"""Imports the packs of a reference server: `packs/*.json` below its root.

The files stay exactly as they are: nothing here removes or changes one. A file that cannot be imported is reported
with its reason.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from contextplane.adapters.files.disk import open_regular_file, storage_errors
from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.import_ import (
    MAX_IMPORT_BYTES,
    ImportCandidate,
    ImportResult,
    import_candidates,
    read_candidate,
)
from contextplane.handoff.reader import HandoffLimits
from contextplane.model.catalog import MAX_INLINE, Event
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, CatalogReadOnly, StreamsView
from contextplane.ports.objects import Objects
from contextplane.ports.world import Clock, Ids
from contextplane.store.event_stream import last_event

__all__ = ["IMPORTS", "ReferenceRoot"]

IMPORTS = "handoff_import/"
"""The prefix of the streams with the results of imports, one for each reference root and its limits."""

_SUFFIX = ".json"
_SETTLE_SECONDS = 2.0
_BATCH_SIZE = 256
_SHOWN = 200
_MORE = "..."
_FOLDER = "packs"

_Identity = tuple[int, int, int, int]


class ReferenceRoot:
    """One reference root, read with certain limits. It reads a file again only if the file has changed.

    Servers of other roots, or with other limits, get other results: each has a stream and a mark of its own.
    """

    def __init__(self, root: str, limits: HandoffLimits) -> None:
        self._folder = os.path.join(root, "packs")
        self._limits = limits
        self._key = {
            "root": _as_text(root),
            "max_pack_bytes": str(limits.max_pack_bytes),
            "grace_seconds": str(limits.grace_seconds),
        }
        self._stream = IMPORTS + Digest.of(canonical(self._key)).hex[:16]
        self._files_read: dict[str, tuple[_Identity, str]] = {}
        self._refused: Mapping[str, str] = {}
        self._mark: str | None = None

    def has_packs(self) -> bool:
        return any(name.endswith(_SUFFIX) for name in self._file_names())

    def listing_problem(self) -> ImportResult:
        """Return why the folder cannot be listed, as a refusal; an empty result if it can."""
        try:
            os.scandir(self._folder).close()
        except (FileNotFoundError, NotADirectoryError):
            return ImportResult()
        except OSError as error:
            why = f"cannot be listed: {error.strerror or error}; check the permissions of {self._folder}"
            return ImportResult(refused={_FOLDER: _as_text(why)})
        return ImportResult()

    def import_failure(self, error: ContextPlaneError) -> ImportResult:
        """Return the result of an import that failed for this reason. Packs imported before can still be read."""
        return ImportResult(refused={_FOLDER: _as_text(f"new packs there are not imported: {error.message}")})

    def is_unchanged(self, clock: Clock) -> bool:
        """Whether nothing has changed since the last import, judged without reading a file."""
        return self._mark is not None and self._mark == self._current_mark(clock)

    def import_new(self, catalog: Catalog, objects: Objects, ids: Ids, clock: Clock) -> ImportResult:
        """Import what is new since last time. Without any change, return the refusals of then."""
        with catalog.read() as view:
            stored_mark = view.marks.get(self._stream)
            if stored_mark is not None and not self._files_read:
                self._refused = _last_refused(view.streams, self._stream)
        if stored_mark is not None and stored_mark == self._current_mark(clock):
            self._mark = stored_mark
            return ImportResult(refused=self._refused)
        # Before anything is read: changes from here on are seen next time.
        since, folder = clock.now(), self._identity("")
        result = self._import_files(catalog, objects, ids, Timestamp.of(since))
        self._refused = result.refused
        files = {name: self._files_read[name][0] if name in self._files_read else None for name in result.refused}
        self._mark = _state_mark(folder, files, since.timestamp())
        # There was nothing new, else storing it had failed before. Only the mark is lost: the next import reads again.
        with suppress(CatalogReadOnly):
            self._record_result(catalog, result, Timestamp.of(since))
        return result

    def _current_mark(self, clock: Clock) -> str | None:
        files = {name: self._identity(name) for name in self._refused}
        return _state_mark(self._identity(""), files, clock.now().timestamp())

    def _import_files(self, catalog: Catalog, objects: Objects, ids: Ids, now: Timestamp) -> ImportResult:
        stored: list[str] = []
        refused: dict[str, str] = dict(self.listing_problem().refused)
        candidates: list[ImportCandidate] = []
        identities: dict[str, _Identity | None] = {}

        def import_batch() -> None:
            result = import_candidates(catalog, objects, candidates, ids)
            stored.extend(result.stored)
            refused.update({name + _SUFFIX: why for name, why in result.refused.items()})
            candidates.clear()

        for name in self._file_names():
            if not name.endswith(_SUFFIX):
                continue
            identity = identities[name] = self._identity(name)
            before, why = self._files_read.get(name, (None, ""))
            if identity is not None and identity == before:
                refused.update({name: why} if why else {})
                continue
            try:
                candidates.append(self._read_candidate(name, now))
            except ContextPlaneError as error:
                refused[name] = _as_text(error.message[:_SHOWN])
            if len(candidates) == _BATCH_SIZE:
                import_batch()
        import_batch()
        self._files_read = {
            name: (identity, refused.get(name, "")) for name, identity in identities.items() if identity is not None
        }
        return ImportResult(
            stored=tuple(stored), refused={_as_text(name): why for name, why in sorted(refused.items())}
        )

    def _identity(self, name: str) -> "_Identity | None":
        """Return what changes when a file does; None if it cannot be read."""
        try:
            status = os.lstat(os.path.join(self._folder, name))
        except OSError:
            return None
        return status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size

    def _read_candidate(self, name: str, now: Timestamp) -> ImportCandidate:
        stem = name.removesuffix(_SUFFIX)
        if not HandoffId.has_form(stem):
            raise HandoffInvalid("not named as a handoff pack is")
        path = os.path.join(self._folder, name)
        with storage_errors(path, reading=True), open(open_regular_file(path), "rb") as file:
            data = file.read(MAX_IMPORT_BYTES + 1)
        return read_candidate(HandoffId(stem), data, now=now, limits=self._limits)

    def _file_names(self) -> Iterable[str]:
        try:
            return sorted(os.listdir(self._folder))
        except OSError:
            return ()  # `listing_problem` says why

    def _record_result(self, catalog: Catalog, result: ImportResult, now: Timestamp) -> None:
        """Append the result to the stream, unless it is the same as before; and store the mark."""
        refused = _truncate_refused(result.refused)
        # Without a mark if some are not named: those could not be compared next time.
        mark = self._mark if refused == result.refused else None
        body = {"at": str(now), "stored": len(result.stored), "refused": refused, **self._key}
        with catalog.read() as view:
            same = not result.stored and refused == _last_refused(view.streams, self._stream)
            is_marked = mark is None or view.marks.get(self._stream) == mark
        if same and is_marked:
            return
        with catalog.write(survives="crash") as tx:
            if not same:
                tx.streams.append(
                    self._stream, tx.streams.head(self._stream), [Event(kind="looked", body=canonical(body))]
                )
            if mark is not None:
                tx.marks.put(self._stream, mark)


def _state_mark(folder: _Identity | None, files: Mapping[str, _Identity | None], now: float) -> str | None:
    """Return a mark that changes when a file is added or removed, or a refused one is edited.

    None while the last change is too recent to be told apart from the next. An imported file needs no check of its
    own: servers replace files atomically, which changes the time of the folder.
    """
    known = [file for file in (folder, *files.values()) if file is not None]
    if _FOLDER in files or any(now - identity[2] / 1e9 <= _SETTLE_SECONDS for identity in known):
        return None
    return Digest.of(repr((folder, sorted(files.items()))).encode()).hex


def _truncate_refused(refused: Mapping[str, str]) -> dict[str, str]:
    """Keep as many refusals as an event has room for, and the number of the others."""
    kept: dict[str, str] = {}
    room = MAX_INLINE // 2
    for name, why in refused.items():
        room -= len(canonical([name, why]))
        if room > 0:
            kept[name] = why
    if more := len(refused) - len(kept):
        kept[_MORE] = f"and {more} more"
    return kept


def _as_text(text: str) -> str:
    """Escape the bytes of a file name that are not valid text."""
    return text.encode(errors="backslashreplace").decode()


def _last_refused(streams: StreamsView, stream: str) -> dict[str, str]:
    """Return the refusals of the last event of a stream."""
    last = last_event(streams, stream)
    refused: dict[str, str] = {} if last is None else msgspec.json.decode(last.body)["refused"]
    return refused
