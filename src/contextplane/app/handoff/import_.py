"""The packs of a reference server: `packs/*.json` below its root. They are taken in and left exactly as they are.

What cannot be taken in is reported with its reason, and kept as well. Nothing here removes or changes a file.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from contextplane.adapters.files.disk import open_to_read, storage_errors
from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.import_ import Offer, Taken, read_offer, take
from contextplane.handoff.reader import HandoffLimits
from contextplane.model.catalog import MAX_INLINE, Event
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, CatalogReadOnly, StreamsView
from contextplane.ports.objects import Objects
from contextplane.ports.world import Clock, Ids

__all__ = ["IMPORTS", "ReferenceRoot"]

IMPORTS = "handoff_import/"
"""The prefix of the streams that tell what was found in a reference root, one for each root and its limits."""

_SUFFIX = ".json"
_SETTLED = 2.0
_AT_ONCE = 256
_SHOWN = 200
_MORE = "..."
_FOLDER = "packs"

_Identity = tuple[int, int, int, int]


class ReferenceRoot:
    """One such root, looked at with some limits. As long as it lives it reads a file again only when that has changed.

    Servers of other roots, or with other limits, find other things: each has a stream and a mark of its own.
    """

    def __init__(self, root: str, limits: HandoffLimits) -> None:
        self._folder = os.path.join(root, "packs")
        self._limits = limits
        self._key = {
            "root": _plain(root),
            "max_pack_bytes": str(limits.max_pack_bytes),
            "grace_seconds": str(limits.grace_seconds),
        }
        self._stream = IMPORTS + Digest.of(canonical(self._key)).hex[:16]
        self._read: dict[str, tuple[_Identity, str]] = {}
        self._refused: Mapping[str, str] = {}
        self._state: str | None = None

    def holds_any(self) -> bool:
        return any(name.endswith(_SUFFIX) for name in self._names())

    def unlisted(self) -> Taken:
        """Why nobody can tell what is in it; nothing when that can be told."""
        try:
            os.scandir(self._folder).close()
        except (FileNotFoundError, NotADirectoryError):
            return Taken()
        except OSError as error:
            why = f"cannot be listed: {error.strerror or error}; check the permissions of {self._folder}"
            return Taken(refused={_FOLDER: _plain(why)})
        return Taken()

    def untaken(self, error: ContextPlaneError) -> Taken:
        """Nothing new could be taken in, for this reason. What was taken in before can be had."""
        return Taken(refused={_FOLDER: _plain(f"what is new there is not taken in: {error.message}")})

    def quiet(self, clock: Clock) -> bool:
        """Whether nothing happened there since it was last looked at, as far as that can be told without reading."""
        return self._state is not None and self._state == self._now(clock)

    def bring_in(self, catalog: Catalog, objects: Objects, ids: Ids, clock: Clock) -> Taken:
        """Take in what came since last time; without any change, tell again what could not be taken in then."""
        with catalog.read() as view:
            marked = view.marks.get(self._stream)
            if marked is not None and not self._read:
                self._refused = _last_refused(view.streams, self._stream)
        if marked is not None and marked == self._now(clock):
            self._state = marked
            return Taken(refused=self._refused)
        # Before anything is read: what happens from here on is seen next time.
        since, folder = clock.now(), self._identity("")
        taken = self._taken(catalog, objects, ids, Timestamp.of(since))
        self._refused = taken.refused
        files = {name: self._read[name][0] if name in self._read else None for name in taken.refused}
        self._state = _state(folder, files, since.timestamp())
        # Nothing was new, else it would have been told before; we only look again next time.
        with suppress(CatalogReadOnly):
            self._write_down(catalog, taken, Timestamp.of(since))
        return taken

    def _now(self, clock: Clock) -> str | None:
        files = {name: self._identity(name) for name in self._refused}
        return _state(self._identity(""), files, clock.now().timestamp())

    def _taken(self, catalog: Catalog, objects: Objects, ids: Ids, now: Timestamp) -> Taken:
        stored: list[str] = []
        refused: dict[str, str] = dict(self.unlisted().refused)
        offers: list[Offer] = []
        identities: dict[str, _Identity | None] = {}

        def take_in() -> None:
            taken = take(catalog, objects, offers, ids)
            stored.extend(taken.stored)
            refused.update({name + _SUFFIX: why for name, why in taken.refused.items()})
            offers.clear()

        for name in self._names():
            if not name.endswith(_SUFFIX):
                continue
            identity = identities[name] = self._identity(name)
            before, why = self._read.get(name, (None, ""))
            if identity is not None and identity == before:
                refused.update({name: why} if why else {})
                continue
            try:
                offers.append(self._offer(name, now))
            except ContextPlaneError as error:
                refused[name] = _plain(error.message[:_SHOWN])
            if len(offers) == _AT_ONCE:
                take_in()
        take_in()
        self._read = {name: (one, refused.get(name, "")) for name, one in identities.items() if one is not None}
        return Taken(stored=tuple(stored), refused={_plain(name): why for name, why in sorted(refused.items())})

    def _identity(self, name: str) -> "_Identity | None":
        """What changes when a file does; None when it cannot be told."""
        try:
            found = os.lstat(os.path.join(self._folder, name))
        except OSError:
            return None
        return found.st_ino, found.st_ctime_ns, found.st_mtime_ns, found.st_size

    def _offer(self, name: str, now: Timestamp) -> Offer:
        stem = name.removesuffix(_SUFFIX)
        if HandoffId.PATTERN.fullmatch(stem) is None:
            raise HandoffInvalid("not named as a handoff pack is")
        path = os.path.join(self._folder, name)
        with storage_errors(path, reading=True), open(open_to_read(path), "rb") as file:
            data = file.read(self._limits.max_pack_bytes + 1)
        return read_offer(HandoffId(stem), data, now=now, limits=self._limits)

    def _names(self) -> Iterable[str]:
        try:
            return sorted(os.listdir(self._folder))
        except OSError:
            return ()  # `unlisted` tells why

    def _write_down(self, catalog: Catalog, taken: Taken, now: Timestamp) -> None:
        """What was found, if it is not what was found before; and where we stand."""
        told = _shortened(taken.refused)
        # Those that are not named could not be looked at again.
        state = self._state if told == taken.refused else None
        body = {"at": str(now), "stored": len(taken.stored), "refused": told, **self._key}
        with catalog.read() as view:
            same = not taken.stored and told == _last_refused(view.streams, self._stream)
            marked = state is None or view.marks.get(self._stream) == state
        if same and marked:
            return
        with catalog.write(survives="crash") as tx:
            if not same:
                tx.streams.append(
                    self._stream, tx.streams.head(self._stream), [Event(kind="looked", body=canonical(body))]
                )
            if state is not None:
                tx.marks.put(self._stream, state)


def _state(folder: _Identity | None, files: Mapping[str, _Identity | None], now: float) -> str | None:
    """What changes whenever a file comes or goes, or one that was refused is mended; None while that is too fresh.

    A file that was taken in is written whole under its name by whoever changes it: the folder's time tells that.
    """
    known = [file for file in (folder, *files.values()) if file is not None]
    if _FOLDER in files or any(now - one[2] / 1e9 <= _SETTLED for one in known):
        return None
    return Digest.of(repr((folder, sorted(files.items()))).encode()).hex


def _shortened(refused: Mapping[str, str]) -> dict[str, str]:
    """As many as an event has room for, and how many more there are."""
    told: dict[str, str] = {}
    room = MAX_INLINE // 2
    for name, why in refused.items():
        room -= len(canonical([name, why]))
        if room > 0:
            told[name] = why
    if more := len(refused) - len(told):
        told[_MORE] = f"and {more} more"
    return told


def _plain(text: str) -> str:
    """A name as the disk has it may hold bytes that are no text."""
    return text.encode(errors="backslashreplace").decode()


def _last_refused(streams: StreamsView, stream: str) -> dict[str, str]:
    """What the last event tells; the events before it are not read."""
    for event in streams.read(stream, after=max(0, streams.head(stream) - 1)):
        refused: dict[str, str] = msgspec.json.decode(event.body)["refused"]
        return refused
    return {}
