"""Salvage of a damaged catalog: reads what is still readable, and installs a new catalog.

It never deletes the old one.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from contextplane.adapters.files.disk import Disk, storage_errors
from contextplane.adapters.sqlite.connection import file_uri
from contextplane.model.catalog import MAX_INLINE, StoredEvent
from contextplane.model.ids import Digest

__all__ = ["NEXT", "has_unfinished_install", "install", "salvage_events", "salvage_pending"]

NEXT = ".next"
"""Suffix of a new, complete catalog that waits to replace the old one."""

_PARTS = ("", "-wal", "-shm")


def salvage_events(path: str, store_id: str) -> Iterator[StoredEvent]:
    """Yield every readable event, stream by stream, each stream up to its first gap.

    Only from a catalog whose identity is `store_id`: the events of another store must not become ours.
    """
    with _open_for_store(path, store_id) as db:
        if db is not None:
            for stream in _streams(db):
                yield from _events(db, stream)


def salvage_pending(path: str, store_id: str) -> Iterator[tuple[Digest, bytes]]:
    """Yield every pending object that is still readable as a whole."""
    with _open_for_store(path, store_id) as db:
        if db is None:
            return
        try:
            for (data,) in db.execute("SELECT data FROM pending"):
                if type(data) is bytes and len(data) <= MAX_INLINE:
                    yield Digest.of(data), data
        except sqlite3.Error:
            return


@contextmanager
def _open_for_store(path: str, store_id: str) -> Iterator[sqlite3.Connection | None]:
    """Open this store's catalog read-only; yield None when it is missing or its identity is uncertain."""
    if not os.path.isfile(path):
        yield None
        return
    with closing(sqlite3.connect(file_uri(path, "mode=ro"), uri=True)) as db:
        try:
            matches = db.execute("SELECT store_id FROM identity").fetchall() == [(store_id,)]
        except sqlite3.Error:
            matches = False
        yield db if matches else None


def _streams(db: sqlite3.Connection) -> Iterator[str]:
    """Yield the names of streams, from both ends: an unreadable page hides only what lies behind it."""
    low, high = "", "\U0010ffff"
    for sql in ("SELECT min(stream) FROM event WHERE stream > ?", "SELECT max(stream) FROM event WHERE stream < ?"):
        forwards = sql.startswith("SELECT min")
        try:
            while (
                name := db.execute(sql, (low if forwards else high,)).fetchone()[0]
            ) is not None and low < name < high:
                yield name
                low, high = (name, high) if forwards else (low, name)
        except sqlite3.Error:
            continue


def _events(db: sqlite3.Connection, stream: str) -> Iterator[StoredEvent]:
    expected = 1
    try:
        for seq, kind, body in db.execute("SELECT seq, kind, body FROM event WHERE stream = ? ORDER BY seq", (stream,)):
            if seq != expected or type(kind) is not str or type(body) is not bytes or len(body) > MAX_INLINE:
                return
            yield StoredEvent(stream=stream, seq=seq, kind=kind, body=body)
            expected += 1
    except sqlite3.Error:
        return


def has_unfinished_install(path: str) -> bool:
    """Whether an installation stopped half-way: the old catalog is moved, the new one not in place yet."""
    return not os.path.lexists(path) and os.path.isfile(path + NEXT)


def install(path: str, disk: Disk) -> str | None:
    """Replace the old catalog with the complete new one, `path.next`; return where the old one is now.

    The old catalog and its log get second names before they lose their own, and the catalog loses its name before its
    log does. So between two steps there is either the whole old catalog, or none and the new one ready; never a catalog
    with the log of another.
    """
    with storage_errors(path):
        aside = _move_aside(path, disk) if os.path.lexists(path) else None
        for part in _PARTS[1:]:
            if os.path.lexists(path + part):
                disk.remove(path + part)
        disk.sync_folder(os.path.dirname(path))
        disk.replace(path + NEXT, path)
        disk.sync_folder(os.path.dirname(path))
    return aside


def _move_aside(path: str, disk: Disk) -> str:
    number = 1
    while any(os.path.lexists(f"{path}.damaged-{number}{part}") for part in _PARTS):
        number += 1
    aside = f"{path}.damaged-{number}"
    if not os.path.isfile(path):
        disk.replace(path, aside)
        return aside
    for part in _PARTS:
        if os.path.isfile(path + part):
            os.link(path + part, aside + part)
    disk.sync_folder(os.path.dirname(path))
    disk.remove(path)
    return aside
