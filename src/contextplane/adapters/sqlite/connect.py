"""One connection to the catalog's file, set up the same way every time, with SQLite's errors turned into ours."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from contextplane.errors import ContextPlaneError
from contextplane.ports.catalog import CatalogBusy, CatalogCorrupt, CatalogFailed, CatalogReadOnly

__all__ = ["BUSY_SECONDS", "catalog_errors", "connect", "file_uri"]

BUSY_SECONDS = 10.0
"""How long a writer waits for its turn before it gives up."""


def connect(path: str, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """Open an existing file, or make a new one, in write-ahead mode; where nothing can be written, open it to read."""
    with catalog_errors(path):
        writable = _writable(path)
        db = sqlite3.connect(_uri(path, writable=writable), uri=True, isolation_level=None, timeout=busy_seconds)
        try:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("PRAGMA trusted_schema = OFF")
            if writable:
                db.execute("PRAGMA journal_mode = WAL").fetchone()
            else:
                db.execute("PRAGMA query_only = ON")
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        except BaseException:
            db.close()
            raise
        return db


def _writable(path: str) -> bool:
    folder = os.path.dirname(path) or "."
    return os.access(folder, os.W_OK) and (not os.path.exists(path) or os.access(path, os.W_OK))


def _uri(path: str, *, writable: bool) -> str:
    if writable:
        return file_uri(path, "mode=rwc")
    # Readers of a write-ahead database share a file beside it. Where that cannot be made, the database may be read as
    # it stands, but only when no log holds newer pages.
    log = f"{path}-wal"
    newer = os.path.exists(log) and os.path.getsize(log) > 0
    return file_uri(path, "mode=ro" if newer else "mode=ro&immutable=1")


def file_uri(path: str, options: str) -> str:
    """A path as SQLite takes it with options: the characters that end or escape a path there are written otherwise."""
    escaped = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{escaped}?{options}"


@contextmanager
def catalog_errors(path: str) -> Iterator[None]:
    """Turn what SQLite raises into an error with a code, a place and a way out."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, path) from error


def _translated(error: sqlite3.Error, path: str) -> ContextPlaneError:
    primary = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return CatalogBusy("another process is writing to the catalog", at=path, hint="try again when it has finished")
    if primary in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return CatalogCorrupt(
            f"not a sound database: {error}", at=path, hint="'ctx fsck --rebuild' saves what can be read"
        )
    if primary in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
        return CatalogReadOnly(f"cannot be written: {error}", at=path, hint="check the mount and the permissions")
    if primary == sqlite3.SQLITE_FULL:
        return CatalogFailed(
            f"no room to write: {error}", at=path, hint="free some space, then run the same command again"
        )
    return CatalogFailed(f"{error}", at=path, hint="'ctx fsck' tells what is whole")
