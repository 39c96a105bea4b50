"""A store with handoff packs, made without a server, for tests of `ctx handoff`."""

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
from tests.surfaces.commands import Result, ctx

__all__ = ["CODE", "HandoffStore", "document", "json_answer"]

CODE = 'import time\n\n\ndef check(token):\n    # expiry\n    return "ok" if token else None\n'


def document(**fields: object) -> dict[str, Any]:
    """A handoff document that can be finalized, with one ref to CODE."""
    ref = {"key": "check", "path": "auth.py", "line_start": 4, "line_end": 6, "why": "expiry is ignored"}
    sections = [
        {"key": "scope", "title": "Scope", "description": "The token check."},
        {"key": "findings", "title": "Findings", "refs": [ref]},
        {"key": "qa", "title": "QA", "description": "verdict: pass"},
    ]
    return {"title": "Login bug", "sections": sections, **fields}


def json_answer(result: Result, status: int = 0) -> dict[str, Any]:
    assert (result.status, result.err) == (status, ""), result
    return msgspec.json.decode(result.raw, type=dict[str, Any])


class _FixedClock:
    """A clock that always shows the same time."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        return self._at


class HandoffStore:
    """A folder with a store and the code that its packs refer to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.code = folder / "auth.py"
        self.code.write_text(CODE, encoding="utf-8")
        init(Settings(cwd=str(folder)), ".")

    @contextmanager
    def session(self) -> Iterator[HandoffSession]:
        with open_handoffs(Settings(cwd=str(self.folder))) as session:
            yield session

    def write(self, identity: str | None = None, *, revision: int | None = None, **fields: object) -> HandoffPack:
        """Write a new pack, or the next revision of one."""
        with self.session() as session:
            handoff_document = read_document(document(**fields))
            return session.repository.write(handoff_document, identity=identity, expected_revision=revision).pack

    def write_long_ago(self, at: datetime, **fields: object) -> HandoffPack:
        """Write a new pack as of another time."""
        with self.session() as session:
            session.pack_reader  # noqa: B018  it opens the store
            assert session.platform is not None
            repository = HandoffRepository(
                session.platform.catalog,
                session.platform.objects,
                clock=_FixedClock(at),
                ids=SystemIds(),
                reader_factory=session.source_reader,
                limits=session.limits,
            )
            return repository.write(read_document(document(**fields))).pack

    def delete(self, identity: str) -> None:
        with self.session() as session:
            assert session.repository.delete(identity).deleted

    def object_of(self, pack: HandoffPack) -> Path:
        """The object file of a revision."""
        with self.session() as session:
            digest: Digest = session.pack_reader.get_revision(HandoffId(pack.id), pack.revision).digest
        return self.folder / ".ctx" / "objects" / digest.hex[:2] / digest.hex[2:]

    def ctx(self, *args: str, env: dict[str, str] | None = None, input: bytes | None = None) -> Result:  # noqa: A002
        return ctx(*args, cwd=self.folder, env=env, input=input)
