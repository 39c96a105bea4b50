"""Two stores and an archive between them, for tests of `ctx export` and `ctx import`."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path

import msgspec

from contextplane.adapters.files.archive import archive_header
from contextplane.app.execution.archive import export_packs
from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.model.archive import HEADER_NAME, Header, entry_bytes, entry_name, header_bytes, object_name
from contextplane.model.ids import Digest
from tests.surfaces.commands import Result, ctx

__all__ = ["ABSENT", "Pair", "archive", "contents", "json_answer", "log", "manifest", "member", "refused", "store_in"]

ABSENT = Digest.of(b"nobody has this")


def log(output: str, **also: object) -> bytes:
    """A small run that ends with this output."""
    return msgspec.json.encode(
        {
            "model": {"identifier": "m-1"},
            "system_prompt": "You are careful.",
            "prompts": [{"role": "user", "content": "Refund order 881"}],
            "inputs": [{"name": "order.json", "content": "{}"}],
            "steps": [{"type": "reasoning", "output": "think", "timestamp": "2026-05-04T09:31:41Z"}],
            "outputs": [{"name": "report.md", "content": output}],
            "environment": {"os": "linux", "runtime": "py3.11"},
            **also,
        }
    )


@contextmanager
def store_in(folder: Path) -> Iterator[Platform]:
    folder.mkdir()
    init(Settings(cwd=str(folder)), ".")
    with open_platform(Settings(cwd=str(folder))) as platform:
        yield platform


def contents(store: Path) -> dict[str, bytes]:
    """Every object and the name of every entry."""
    objects = {path.name: path.read_bytes() for path in store.glob(".ctx/objects/??/*")}
    return objects | {f"packs/{path.name}": b"" for path in store.glob(".ctx/packs/*")}


class Pair:
    """A store with a pack and the one it was forked from, an archive of both, and an empty store."""

    def __init__(self, folder: Path) -> None:
        self._stand_in(folder)
        with store_in(self.here) as platform, store_in(self.there):
            self.parent = pack_log(platform, log("first"), root=str(folder)).digest
            self.pack = pack_log(platform, log("second"), root=str(folder), parent=self.parent).digest
            pack_log(platform, log("another"), root=str(folder))
            export_packs(platform, [self.pack], str(self.file))
        self.data = self.file.read_bytes()

    def _stand_in(self, folder: Path) -> None:
        self.folder = folder
        self.here, self.there, self.file = folder / "here", folder / "there", folder / "run.tar"

    def copied(self, folder: Path) -> "Pair":
        """A copy in another folder, for a test that changes it."""
        other = copy(self)
        other._stand_in(Path(shutil.copytree(self.folder, folder, dirs_exist_ok=True)))
        return other

    def take(self, data: bytes) -> Result:
        return ctx("import", "-", cwd=self.there, input=data)


def refused(result: Result, status: int, code: str) -> str:
    assert (result.status, result.raw) == (status, b""), result
    assert result.err.startswith(f"ctx: {code}: "), result
    assert result.err.count("\n") == 1
    return result.err


def json_answer(result: Result) -> dict[str, object]:
    assert (result.status, result.err) == (0, "")
    value = msgspec.json.decode(result.raw)
    assert isinstance(value, dict)
    return value


def member(name: str, data: bytes) -> bytes:
    return archive_header(name, len(data)) + data + bytes(-len(data) % 512)


def archive(header: Header, *objects: bytes, entries: list[Digest] | None = None) -> bytes:
    """A well-formed archive, whether or not its header is true."""
    packs = header.packs if entries is None else entries
    named = sorted((object_name(Digest.of(data)), data) for data in objects)
    named = [(HEADER_NAME, header_bytes(header)), *named, *((entry_name(pack), entry_bytes(pack)) for pack in packs)]
    return b"".join(member(name, data) for name, data in named) + bytes(1024)


def manifest(**fields: object) -> bytes:
    """The smallest valid manifest, with these fields added."""
    least = {"created": "", "model": {}, "environment": {}, "system_prompt": "", "version": "0.1", "steps": []}
    return msgspec.json.encode({**least, **fields})
