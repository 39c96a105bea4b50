"""What can still be read of a damaged catalog, and moving it aside. Nothing here deletes."""

import os
import sqlite3

from contextplane.adapters.files.disk import storage_errors
from contextplane.adapters.sqlite.connect import file_uri
from contextplane.ports.catalog import StoredEvent

__all__ = ["salvage", "set_aside"]

_PARTS = ("", "-wal", "-shm")


def salvage(path: str) -> list[StoredEvent]:
    """Every event that can still be read, stream by stream, each stream only up to its first gap."""
    found: list[StoredEvent] = []
    try:
        db = sqlite3.connect(file_uri(path, "mode=ro"), uri=True)
    except sqlite3.Error:
        return found
    try:
        for stream, seq, kind, body in db.execute("SELECT stream, seq, kind, body FROM event ORDER BY stream, seq"):
            previous = found[-1] if found and found[-1].stream == stream else None
            if seq == (previous.seq if previous else 0) + 1:
                found.append(StoredEvent(stream=stream, seq=seq, kind=kind, body=body))
    except sqlite3.Error:
        pass
    finally:
        db.close()
    return found


def set_aside(path: str) -> str | None:
    """Give a damaged catalog another name, free so far, and return that name; None when there was none."""
    if not any(os.path.lexists(path + part) for part in _PARTS):
        return None
    number = 1
    while any(os.path.lexists(f"{path}.damaged-{number}{part}") for part in _PARTS):
        number += 1
    aside = f"{path}.damaged-{number}"
    with storage_errors(path):
        for part in _PARTS:
            if os.path.lexists(path + part):
                os.rename(path + part, aside + part)
    return aside
