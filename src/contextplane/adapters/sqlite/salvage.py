"""What can still be read of a damaged catalog, and putting a new one in its place. Nothing here deletes the old one."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from contextplane.adapters.files.disk import Disk, storage_errors
from contextplane.adapters.sqlite.connection import file_uri
from contextplane.model.catalog import MAX_INLINE, StoredEvent
from contextplane.model.ids import Digest

__all__ = ["NEXT", "install", "saved_events", "saved_pending", "unfinished_install"]

NEXT = ".next"
"""Behind the catalog's name: a new catalog that is complete and waits to take the old one's place."""

_PARTS = ("", "-wal", "-shm")


def saved_events(path: str, store_id: str) -> Iterator[StoredEvent]:
    """Every event that can still be read, stream by stream, each stream up to its first gap.

    Only of a catalog that says whose it is: another store's past must not become this one's.
    """
    with _of_store(path, store_id) as db:
        if db is not None:
            for stream in _streams(db):
                yield from _events(db, stream)


def saved_pending(path: str, store_id: str) -> Iterator[tuple[Digest, bytes]]:
    """Every small object that waited there and can still be read whole."""
    with _of_store(path, store_id) as db:
        if db is None:
            return
        try:
            for (data,) in db.execute("SELECT data FROM pending"):
                if type(data) is bytes and len(data) <= MAX_INLINE:
                    yield Digest.of(data), data
        except sqlite3.Error:
            return


@contextmanager
def _of_store(path: str, store_id: str) -> Iterator[sqlite3.Connection | None]:
    """What is left of this store's catalog; None when there is nothing, or it is not certain whose it is."""
    if not os.path.isfile(path):
        yield None
        return
    with closing(sqlite3.connect(file_uri(path, "mode=ro"), uri=True)) as db:
        try:
            ours = db.execute("SELECT store_id FROM identity").fetchall() == [(store_id,)]
        except sqlite3.Error:
            ours = False
        yield db if ours else None


def _streams(db: sqlite3.Connection) -> Iterator[str]:
    """The names of streams, from both ends: a page that cannot be read hides only what lies behind it."""
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


def unfinished_install(path: str) -> bool:
    """Whether an installation stopped half-way: the old catalog is aside, the new one complete and not in place."""
    return not os.path.lexists(path) and os.path.isfile(path + NEXT)


def install(path: str, disk: Disk) -> str | None:
    """Put the complete new catalog `path.next` in the place of the old one; return where that is now.

    The old one gets a second name before it loses its own, log and all, and loses its own name first: between two steps
    there is either the whole old catalog, or none and the new one ready, never one with another's log.
    """
    with storage_errors(path):
        aside = _aside(path, disk) if os.path.lexists(path) else None
        for part in _PARTS[1:]:
            if os.path.lexists(path + part):
                disk.remove(path + part)
        disk.sync_folder(os.path.dirname(path))
        disk.replace(path + NEXT, path)
        disk.sync_folder(os.path.dirname(path))
    return aside


def _aside(path: str, disk: Disk) -> str:
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
