"""What somebody can do to a registry who has the file of its catalog and none of its keys."""

import base64
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.registry.audit import AuditInputs, AuditResult, audit
from contextplane.registry.open import open_registry
from contextplane.registry.reader import RegistryReader
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import follow_keyring
from tests.unit.registry.world import ORIGIN, STORE, Registry
from tests.unit.trust.world import CHECK

__all__ = ["Stolen", "copied", "stolen"]


def copied(source: Path, target: Path) -> None:
    """A copy of a catalog, as it is now."""
    with closing(sqlite3.connect(source)) as connection, closing(sqlite3.connect(target)) as two:
        connection.backup(two)


class Stolen:
    """A catalog in wrong hands."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, sql: str, *values: object) -> None:
        """Change something; what guards the tables is taken away before and put back after."""
        with closing(sqlite3.connect(self.path)) as database:
            guards = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in guards:
                database.execute(f"DROP TRIGGER {name}")
            database.execute(sql, values)
            for _, guard in guards:
                database.execute(guard)
            database.commit()

    def ask(self, sql: str, *values: object) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.path)) as database:
            return database.execute(sql, values).fetchall()

    def cut(self, stream: str, events: int = 1) -> None:
        """Remove the last events of a stream."""
        self.run(
            "DELETE FROM event WHERE stream = ? AND seq > (SELECT max(seq) FROM event WHERE stream = ?) - ?",
            stream,
            stream,
            events,
        )

    def body(self, stream: str, seq: int) -> bytes:
        ((body,),) = self.ask("SELECT body FROM event WHERE stream = ? AND seq = ?", stream, seq)
        assert isinstance(body, bytes)
        return body

    def put(self, stream: str, seq: int, body: bytes) -> None:
        """Another body in the place of one."""
        self.run("UPDATE event SET body = ? WHERE stream = ? AND seq = ?", body, stream, seq)

    def add(self, stream: str, kind: str, body: bytes) -> None:
        """One more event at the end of a stream."""
        self.run(
            "INSERT INTO event SELECT ?, coalesce(max(seq), 0) + 1, ?, ? FROM event WHERE stream = ?",
            stream,
            kind,
            body,
            stream,
        )

    def reword(self, stream: str, seq: int, old: bytes, new: bytes) -> None:
        """Other words of the same length in a signed event, under the signature that it has."""
        envelope = msgspec.json.decode(self.body(stream, seq))
        payload = base64.b64decode(envelope["payload"])
        assert old in payload
        assert len(old) == len(new)
        envelope["payload"] = base64.b64encode(payload.replace(old, new)).decode()
        self.put(stream, seq, msgspec.json.encode(envelope, order="sorted"))

    @contextmanager
    def opened(self, seen: Checkpoint | None = None, known: TrustedKeys | None = None) -> Iterator[RegistryReader]:
        """As a client opens it, who saw a checkpoint and knew a keyring before."""
        with closing(SqliteCatalog.open(str(self.path), STORE)) as catalog, catalog.read() as view:
            keys = follow_keyring(view.streams, known or TrustedKeys(origin=ORIGIN), CHECK)
            yield open_registry(view, keys, CHECK, origin=ORIGIN, seen=seen).reader

    @contextmanager
    def registry(self, seconds: int) -> Iterator[Registry]:
        """To act in it, after so many seconds."""
        with closing(SqliteCatalog.open(str(self.path), STORE)) as catalog:
            registry = Registry(catalog)
            registry.seconds = seconds
            yield registry

    def audited(self, seen: Checkpoint | None = None, known: TrustedKeys | None = None) -> AuditResult:
        with closing(SqliteCatalog.open(str(self.path), STORE)) as catalog, catalog.read() as view:
            keys = known or TrustedKeys(origin=ORIGIN)
            return audit(AuditInputs(view=view, known=keys, check=CHECK, seen=seen))


def stolen(source: Path, folder: Path) -> Stolen:
    """A copy of a catalog to do something to."""
    target = folder / "catalog.db"
    copied(source, target)
    return Stolen(target)
