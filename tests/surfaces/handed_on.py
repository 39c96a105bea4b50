"""A store with handoff packs, made without a server: what tests of `ctx handoff` look at."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from contextplane.adapters.system import SystemIds
from contextplane.app.handoff.session import HandoffSession, open_handoffs
from contextplane.app.init import init
from contextplane.app.settings import Settings
from contextplane.handoff.document import read_document
from contextplane.handoff.writer import HandoffRepository
from contextplane.model.handoff import HandoffPack
from contextplane.model.ids import Digest, HandoffId
from contextplane.store.pending_objects import flush_pending
from tests.surfaces.running import Result, ctx

__all__ = ["CODE", "HandedOn", "document", "json_of"]

CODE = 'import time\n\n\ndef check(token):\n    # expiry\n    return "ok" if token else None\n'


def document(**fields: object) -> dict[str, Any]:
    """One that can be finalized, with one ref to CODE."""
    ref = {"key": "check", "path": "auth.py", "line_start": 4, "line_end": 6, "why": "expiry is ignored"}
    sections = [
        {"key": "scope", "title": "Scope", "description": "The token check."},
        {"key": "findings", "title": "Findings", "refs": [ref]},
        {"key": "qa", "title": "QA", "description": "verdict: pass"},
    ]
    return {"title": "Login bug", "sections": sections, **fields}


def json_of(result: Result, status: int = 0) -> dict[str, Any]:
    assert (result.status, result.err) == (status, ""), result
    return msgspec.json.decode(result.raw, type=dict[str, Any])


class _Stopped:
    """A clock that shows one time."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at


class HandedOn:
    """A folder with a store and the code that packs speak of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.code = folder / "auth.py"
        self.code.write_text(CODE, encoding="utf-8")
        init(Settings(cwd=str(folder)), ".")

    @contextmanager
    def desk(self) -> Iterator[HandoffSession]:
        with open_handoffs(Settings(cwd=str(self.folder))) as desk:
            yield desk

    def write(self, identity: str | None = None, *, revision: int | None = None, **fields: object) -> HandoffPack:
        """A new pack, or the next revision of one."""
        with self.desk() as desk:
            handoff_document = read_document(document(**fields))
            return desk.repository.write(handoff_document, identity=identity, expected_revision=revision).pack

    def write_long_ago(self, at: datetime, **fields: object) -> HandoffPack:
        """A new pack of another time."""
        with self.desk() as desk:
            desk.pack_reader  # noqa: B018  it opens the store
            assert desk.platform is not None
            repository = HandoffRepository(
                desk.platform.catalog,
                desk.platform.objects,
                clock=_Stopped(at),
                ids=SystemIds(),
                reader_factory=desk.source_reader,
                limits=desk.limits,
                flush_pending=flush_pending,
            )
            return repository.write(read_document(document(**fields))).pack

    def delete(self, identity: str) -> None:
        with self.desk() as desk:
            assert desk.repository.delete(identity).deleted

    def object_of(self, pack: HandoffPack) -> Path:
        """The file that a revision is."""
        with self.desk() as desk:
            digest: Digest = desk.pack_reader.get_revision(HandoffId(pack.id), pack.revision).digest
        return self.folder / ".ctx" / "objects" / digest.hex[:2] / digest.hex[2:]

    def ctx(self, *args: str, env: dict[str, str] | None = None, input: bytes | None = None) -> Result:  # noqa: A002
        return ctx(*args, cwd=self.folder, env=env, input=input)
