"""Packs travel in one file: whole and verified, or not at all."""

import gzip
import os
import pty
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.adapters.files.archive import archive_header
from contextplane.app.archiving import export_packs, import_packs
from contextplane.app.init import init
from contextplane.app.packing import pack_log
from contextplane.app.platform import Platform, opened
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.archive import (
    HEADER_NAME,
    ArchiveTooLarge,
    Header,
    entry_bytes,
    entry_name,
    header_bytes,
    object_name,
)
from contextplane.model.execution import MANIFEST_MOST
from contextplane.model.ids import Digest
from contextplane.testing.reference_store import ReferenceStore
from tests.surfaces.running import COMMAND, Result, child_environment, ctx

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
    with opened(Settings(cwd=str(folder))) as platform:
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
        """The same again, to be changed: a store can be copied."""
        other = copy(self)
        other._stand_in(Path(shutil.copytree(self.folder, folder, dirs_exist_ok=True)))
        return other

    def take(self, data: bytes) -> Result:
        return ctx("import", "-", cwd=self.there, input=data)


@pytest.fixture(scope="module")
def pair_once(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """One that no test changes."""
    return Pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture
def pair(pair_once: Pair, tmp_path: Path) -> Pair:
    return pair_once.copied(tmp_path)


def refused(result: Result, status: int, code: str) -> str:
    assert (result.status, result.raw) == (status, b""), result
    assert result.err.startswith(f"ctx: {code}: "), result
    assert result.err.count("\n") == 1
    return result.err


def told(result: Result) -> dict[str, object]:
    assert (result.status, result.err) == (0, "")
    value = msgspec.json.decode(result.raw)
    assert isinstance(value, dict)
    return value


def member(name: str, data: bytes) -> bytes:
    return archive_header(name, len(data)) + data + bytes(-len(data) % 512)


def archive(header: Header, *objects: bytes, entries: list[Digest] | None = None) -> bytes:
    """An archive in the right form, whatever it says."""
    packs = header.packs if entries is None else entries
    named = sorted((object_name(Digest.of(data)), data) for data in objects)
    named = [(HEADER_NAME, header_bytes(header)), *named, *((entry_name(one), entry_bytes(one)) for one in packs)]
    return b"".join(member(name, data) for name, data in named) + bytes(1024)


def manifest(**fields: object) -> bytes:
    return msgspec.json.encode({"version": "0.1", "steps": [], **fields})


# --- there and back ---------------------------------------------------------------------------------------------------


def test_an_exported_pack_arrives_with_all_that_it_reaches(pair: Pair) -> None:
    first = ctx("import", str(pair.file), cwd=pair.there)
    assert (first.status, first.err) == (0, "")
    assert first.out.count("new  ctx://") == 2
    assert "new here: 2 packs and 8 objects" in first.out
    found = contents(pair.there)
    assert found.items() <= contents(pair.here).items()
    assert {f"packs/{pair.pack.hex}", f"packs/{pair.parent.hex}"} <= found.keys()
    assert Digest.of(b"another").hex not in found
    assert ctx("fsck", cwd=pair.there).status == 0
    assert ctx("cat", f"ctx://{pair.parent.hex}", cwd=pair.there).status == 0


def test_importing_again_says_that_nothing_new_came(pair: Pair) -> None:
    first = told(ctx("import", str(pair.file), "--json", cwd=pair.there))
    again = told(ctx("import", str(pair.file), "--json", cwd=pair.there))
    assert first["new_packs"] == sorted(f"ctx://{pack.hex}" for pack in (pair.pack, pair.parent))
    assert first["roots"] == [f"ctx://{pair.pack.hex}"]
    assert first["parents"] == [f"ctx://{pair.parent.hex}"]
    assert again == first | {"new_packs": [], "new_objects": 0}
    assert "nothing new" in ctx("import", str(pair.file), cwd=pair.there).out


def test_standard_output_and_standard_input_carry_the_same_bytes(pair: Pair) -> None:
    out = ctx("export", pair.pack.hex[:12], "-o", "-", cwd=pair.here)
    assert (out.status, out.raw) == (0, pair.data)
    assert out.err.startswith("ctx: wrote 2 packs, 8 objects")
    assert pair.take(out.raw).status == 0
    assert ctx("export", f"ctx://{pair.pack.hex}", "-o", "-", "--quiet", cwd=pair.there) == Result(0, pair.data, "")


def test_exporting_tells_what_was_written(pair: Pair) -> None:
    refs = [pair.pack.hex, pair.parent.hex, pair.pack.hex[:8]]
    answer = told(ctx("export", *refs, "-o", "both.tar", "--json", cwd=pair.here))
    assert answer["roots"] == sorted(f"ctx://{pack.hex}" for pack in (pair.pack, pair.parent))
    assert (answer["parents"], answer["parents_not_included"], answer["objects"]) == ([], [], 8)
    assert answer["size"] == (pair.here / "both.tar").stat().st_size
    assert told(ctx("import", str(pair.here / "both.tar"), "--json", cwd=pair.there))["roots"] == answer["roots"]


def test_a_parent_that_is_not_here_is_said_on_both_sides(tmp_path: Path) -> None:
    other = ReferenceStore(tmp_path)
    pack = other.pack(outputs={"report.md": b"done"}, parent=ABSENT.hex)
    out = ctx("export", pack, "-o", "x.tar", "--quiet", cwd=tmp_path)
    assert (out.status, out.raw) == (0, b"")
    out = ctx("export", pack, "-o", "x.tar", cwd=tmp_path)
    assert f"parents not included  ctx://{ABSENT.hex}" in out.out
    with store_in(tmp_path / "there"):
        pass
    taken = ctx("import", "../x.tar", cwd=tmp_path / "there")
    assert taken.status == 0
    assert f"parents not included  ctx://{ABSENT.hex}" in taken.out


def test_a_pack_of_the_reference_program_arrives_byte_for_byte(tmp_path: Path) -> None:
    here = ReferenceStore(tmp_path)
    pack = here.pack(outputs={"report.md": b"done"}, steps=3)
    raw = (here.path / "objects" / pack[:2] / pack[2:]).read_bytes()
    odd = here.blob(b" " + raw)  # uncanonical, as it stores its own forks
    (here.path / "packs" / odd.removeprefix("sha256:")).write_bytes(odd.encode())
    assert ctx("export", pack, odd, "-o", "x.tar", cwd=tmp_path).status == 0
    with store_in(tmp_path / "there"):
        pass
    assert ctx("import", "../x.tar", cwd=tmp_path / "there").status == 0
    assert ctx("cat", odd, cwd=tmp_path / "there").raw == b" " + raw
    assert contents(tmp_path / "there") == contents(tmp_path)


@pytest.mark.skipif(shutil.which("tar") is None, reason="no tar here")
def test_tar_takes_it_apart_into_a_store(pair: Pair, tmp_path: Path) -> None:
    store = ReferenceStore(tmp_path).path
    done = subprocess.run(["tar", "-xf", pair.file, "-C", store], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert ctx("fsck", cwd=tmp_path).status == 0
    assert ctx("export", pair.pack.hex, "-o", "-", cwd=tmp_path).raw == pair.data


def test_an_object_that_a_pack_only_mentions_does_not_travel(tmp_path: Path) -> None:
    with store_in(tmp_path / "here") as here, store_in(tmp_path / "there") as there:
        seen = here.objects.put(b"seen before")
        steps = [{"type": "reasoning", "parameters": {"seen": str(seen), "not": str(ABSENT)}, "output": "x"}]
        pack = pack_log(here, log("done", steps=steps), root=str(tmp_path)).digest
        export_packs(here, [pack], str(tmp_path / "x.tar"))
        import_packs(there, str(tmp_path / "x.tar"))
        assert not there.objects.has(seen)


@pytest.mark.parametrize("target", [".ctx/catalog.db", ".ctx/objects/x.tar", "link/x.tar"])
def test_an_archive_is_never_written_into_the_store(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "here"
    with store_in(folder) as here:
        pack = pack_log(here, log("done"), root=str(tmp_path)).digest
    (folder / "link").symlink_to(".ctx")
    result = ctx("export", pack.hex, "-o", target, cwd=folder)
    assert (result.status, "archive_target_inside_store" in result.err) == (10, True), result
    assert ctx("fsck", cwd=folder).status == 0


IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108  a folder of our own is made in it
RUNS = st.lists(st.tuples(st.text(max_size=5), st.integers(0, 3), st.booleans()), min_size=1, max_size=5)


@settings(max_examples=15, deadline=None)
@given(RUNS)
def test_what_comes_out_of_the_other_store_is_what_went_in(runs: list[tuple[str, int, bool]]) -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as name:
        folder = Path(name)
        with store_in(folder / "here") as here, store_in(folder / "there") as there:
            packs: list[Digest] = []
            for text, back, forked in runs:
                parent = packs[-1 - back % len(packs)] if packs and forked else None
                packs.append(pack_log(here, log(text), root=name, parent=parent).digest)
            export_packs(here, packs, str(folder / "one.tar"))
            import_packs(there, str(folder / "one.tar"))
            export_packs(there, packs[::-1], str(folder / "two.tar"))
        assert contents(folder / "there") == contents(folder / "here")
        assert (folder / "one.tar").read_bytes() == (folder / "two.tar").read_bytes()


# --- what is not written ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [True, False], ids=["missing", "damaged"])
def test_a_pack_that_is_not_whole_is_refused_by_name_and_leaves_no_file(pair: Pair, missing: bool) -> None:  # noqa: FBT001
    digits = Digest.of(b"first").hex
    place = pair.here / ".ctx" / "objects" / digits[:2] / digits[2:]
    place.unlink()
    if not missing:
        place.write_bytes(b"First")
    result = ctx("export", pair.pack.hex, "-o", "x.tar", cwd=pair.here)
    error = refused(result, *((10, "execution_pack_incomplete") if missing else (11, "object_corrupt")))
    assert digits[2:] in error
    assert sorted(path.name for path in pair.here.iterdir()) == [".ctx"]
    cut = ctx("export", pair.pack.hex, "-o", "-", cwd=pair.here)
    assert cut.status == result.status
    assert pair.take(cut.raw).status == 10
    assert contents(pair.there) == {}


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["0123456789", "-o", "x.tar"], 13),
        (["x.md", "-o", "x.tar"], 2),
        (["-o", "x.tar"], 2),
        (["PACK"], 2),
        (["PACK", "-o", "-", "--json"], 2),
        (["PACK", "-o", "absent/x.tar"], 1),
        (["PACK", "-o", "."], 1),
    ],
)
def test_an_export_that_cannot_be_is_refused(pair_once: Pair, args: list[str], status: int) -> None:
    result = ctx("export", *(pair_once.pack.hex if arg == "PACK" else arg for arg in args), cwd=pair_once.here)
    assert (result.status, result.raw, result.err.count("\n")) == (status, b"", 1)
    assert sorted(path.name for path in pair_once.here.iterdir()) == [".ctx"]


def test_a_reader_that_leaves_ends_the_export_quietly(pair_once: Pair) -> None:
    end, ours = os.pipe()
    os.close(end)
    command = [COMMAND, "export", pair_once.pack.hex, "-o", "-"]
    done = subprocess.run(
        command, cwd=pair_once.here, env=child_environment(), stdout=ours, stderr=subprocess.PIPE, check=False
    )
    os.close(ours)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_archive_is_not_written_to_a_terminal(pair_once: Pair) -> None:
    ours, terminal = pty.openpty()
    command = [COMMAND, "export", pair_once.pack.hex, "-o", "-"]
    done = subprocess.run(
        command, cwd=pair_once.here, env=child_environment(), stdout=terminal, stderr=subprocess.PIPE, check=False
    )
    os.close(terminal)
    os.close(ours)
    assert (done.returncode, done.stderr.startswith(b"ctx: usage: ")) == (2, True)


def test_more_members_than_the_limit_are_not_written(pair_once: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextplane.app.archiving.MEMBERS_MOST", 10)
    with opened(Settings(cwd=str(pair_once.here))) as platform, pytest.raises(ArchiveTooLarge):
        export_packs(platform, [pair_once.pack], str(pair_once.folder / "x.tar"))
    assert not (pair_once.folder / "x.tar").exists()


# --- what is not taken ------------------------------------------------------------------------------------------------


def test_a_changed_byte_is_named_and_nothing_of_the_archive_is_visible(pair: Pair) -> None:
    assert pair.data.count(b"second") == 1
    error = refused(pair.take(pair.data.replace(b"second", b"Second")), 11, "archive_corrupt")
    assert object_name(Digest.of(b"second")) in error
    assert contents(pair.there) == {}
    assert list(pair.there.glob(".ctx/objects/.staging/*")) == []
    assert pair.take(pair.data).status == 0


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_byte_of_an_archive_can_be_another(pair_once: Pair, data: st.DataObject) -> None:
    whole = pair_once.data
    at = data.draw(st.integers(0, len(whole) - 1))
    broken = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    file = pair_once.file.with_name("broken.tar")
    file.write_bytes(broken)
    with opened(Settings(cwd=str(pair_once.there))) as platform, pytest.raises(ContextPlaneError):
        import_packs(platform, str(file))
    assert contents(pair_once.there) == {}


def test_a_compressed_or_truncated_archive_is_refused(pair_once: Pair) -> None:
    assert "decompress it first" in refused(pair_once.take(gzip.compress(pair_once.data)), 10, "archive_invalid")
    assert "truncated" in refused(pair_once.take(pair_once.data[:-1024]), 10, "archive_invalid")
    refused(pair_once.take(b""), 10, "archive_invalid")
    refused(ctx("import", "absent.tar", cwd=pair_once.there), 13, "source_unreadable")
    refused(ctx("import", ".", cwd=pair_once.there), 13, "source_unreadable")
    assert contents(pair_once.there) == {}


LONE = manifest()
CHILD = manifest(parent=str(Digest.of(LONE)))
NEEDY = manifest(system_prompt=str(Digest.of(b"prompt")))


def _header(*roots: bytes, parents: tuple[bytes, ...] = ()) -> Header:
    return Header(roots=tuple(sorted(map(Digest.of, roots))), parents=tuple(map(Digest.of, parents)))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (archive(_header(LONE)), "archive_invalid"),
        (archive(_header(LONE), LONE, b"stowaway"), "archive_invalid"),
        (archive(_header(LONE), LONE, entries=[]), "archive_invalid"),
        (archive(_header(LONE), LONE, CHILD, entries=sorted(map(Digest.of, (LONE, CHILD)))), "archive_invalid"),
        (archive(_header(LONE, parents=(CHILD,)), LONE, CHILD), "archive_invalid"),
        (archive(_header(CHILD), LONE, CHILD), "archive_invalid"),
        (archive(_header(NEEDY), NEEDY), "execution_pack_incomplete"),
        (archive(_header(b"{}"), b"{}"), "execution_pack_not_understood"),
        (
            archive(_header(LONE), LONE, entries=[]).removesuffix(bytes(1024))
            + member(entry_name(Digest.of(LONE)), str(ABSENT).encode())
            + bytes(1024),
            "archive_invalid",
        ),
    ],
    ids=[
        "no-manifest",
        "stowaway",
        "no-entry",
        "an-entry-too-many",
        "a-parent-of-nobody",
        "a-parent-that-the-header-hides",
        "a-content-is-missing",
        "not-a-manifest",
        "an-entry-of-another",
    ],
)
def test_an_archive_that_says_otherwise_than_it_holds_is_refused(pair_once: Pair, data: bytes, code: str) -> None:
    refused(pair_once.take(data), 10, code)
    assert contents(pair_once.there) == {}


def test_a_manifest_beyond_its_limit_is_refused_before_it_is_read(pair_once: Pair) -> None:
    first = member(HEADER_NAME, header_bytes(_header(LONE)))
    large = archive_header(object_name(Digest.of(LONE)), MANIFEST_MOST + 1)
    assert "larger than any manifest" in refused(pair_once.take(first + large), 10, "archive_invalid")


def test_a_pack_is_whole_when_the_store_has_what_the_archive_has_not(pair: Pair) -> None:
    with opened(Settings(cwd=str(pair.there))) as platform:
        prompt = platform.objects.put(b"prompt")
    assert pair.take(archive(_header(NEEDY), NEEDY)).status == 0
    place = pair.there / ".ctx" / "objects" / prompt.hex[:2] / prompt.hex[2:]
    place.chmod(0o644)
    place.write_bytes(b"Prompt")
    refused(pair.take(archive(_header(NEEDY), NEEDY)), 10, "execution_pack_incomplete")
    assert pair.take(archive(_header(NEEDY), NEEDY, b"prompt")).status == 0
    assert place.read_bytes() == b"prompt"
