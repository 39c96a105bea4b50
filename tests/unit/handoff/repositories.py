"""A repository on a real store, with a clock that can be set."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from contextplane.adapters.files.workspace import FileSources
from contextplane.adapters.system import SystemIds
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.handoff.reader import HandoffLimits
from contextplane.handoff.source import SourceReader
from contextplane.handoff.writer import HandoffRepository
from contextplane.model.handoff import HandoffDocument, LineRange, Ref, Section, Status
from contextplane.model.ids import Digest, HandoffId
from contextplane.store.damage import DAMAGE, FsckFinding
from contextplane.store.fsck import fsck

__all__ = ["START", "Place", "SetClock", "document", "place_in", "section"]

START = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)


class SetClock:
    """The time is what it was set to."""

    def __init__(self) -> None:
        self.moment = START

    def now(self) -> datetime:
        return self.moment

    def pass_by(self, **span: float) -> None:
        self.moment += timedelta(**span)


class SetIds(SystemIds):
    """Ids as they were put in, then real ones."""

    def __init__(self) -> None:
        self.coming: list[str] = []

    def handoff_id(self) -> HandoffId:
        return HandoffId(self.coming.pop(0)) if self.coming else super().handoff_id()


class Place:
    """A folder with some code, its store, and the repository in it."""

    def __init__(self, folder: Path, platform: Platform, limits: HandoffLimits) -> None:
        self.folder = folder
        self.platform = platform
        self.clock = SetClock()
        self.ids = SetIds()
        self.limits = limits
        self.repository = self.repository_during(lambda: None)

    def repository_during(self, meanwhile: Callable[[], None]) -> HandoffRepository:
        """A repository that calls `meanwhile` during a write: after reading the store, before storing."""
        sources = FileSources(str(self.folder))

        class Interrupted(SourceReader):
            def lines(self, path: str) -> tuple[str, ...]:
                meanwhile()
                return super().lines(path)

        return HandoffRepository(
            self.platform.catalog,
            self.platform.objects,
            clock=self.clock,
            ids=self.ids,
            reader_factory=lambda: Interrupted(sources, self.limits.max_source_bytes),
            limits=self.limits,
        )

    def list_ids(self, **filters: object) -> list[str]:
        return [row.id.text for row in self.repository.list(**filters).rows]  # type: ignore[arg-type]

    def object_path(self, digest: Digest) -> Path:
        return self.folder / ".ctx" / "objects" / digest.hex[:2] / digest.hex[2:]

    def lose(self, digest: Digest) -> None:
        """Take an object away, as a careless person does."""
        self.repository.flush_pending()
        self.object_path(digest).unlink()

    def age_objects(self) -> None:
        self.repository.flush_pending()
        for digest in self.platform.objects.names():
            os.utime(self.object_path(digest), (0, 0))

    def findings(self) -> list[FsckFinding]:
        platform = self.platform
        return list(fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None))

    def damage(self) -> list[FsckFinding]:
        return [finding for finding in self.findings() if finding.state in DAMAGE]


@contextmanager
def place_in(folder: Path, **limits: int) -> Iterator[Place]:
    settings = Settings(cwd=str(folder))
    init(settings, ".")
    (folder / "code.py").write_text("".join(f"line {n}\n" for n in range(1, 21)), encoding="utf-8")
    with open_platform(settings) as platform:
        yield Place(folder, platform, HandoffLimits(**limits))


def section(key: str, text: str = "", refs: Sequence[tuple[str, int, int]] = ()) -> Section:
    """A section with a text, and with refs into `code.py` as (key, first line, last line)."""
    made = tuple(Ref(key=name, path="code.py", lines=LineRange(start=start, end=end)) for name, start, end in refs)
    return Section(key=key, title=key.title(), description=text or None, refs=made)


def document(
    *sections: Section,
    name: str | None = None,
    title: str | None = None,
    ttl: int | None = None,
    status: Status = "draft",
) -> HandoffDocument:
    return HandoffDocument(sections=sections, name=name, title=title, ttl_minutes=ttl, status=status)
