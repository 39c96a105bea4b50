"""A store of the reference program is adopted at first use, and the reference can still use it."""

import os
from pathlib import Path

import msgspec
import pytest

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from contextplane.testing.proofs import proves
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import Result, ctx

REPORT = b"The refund of order 881 was paid.\n"
THEIRS = ("objects", "packs", "refs", "graph")


@pytest.fixture
def other(tmp_path: Path) -> ReferenceStore:
    other = ReferenceStore(tmp_path)
    other.pack(outputs={"report.md": REPORT}, steps=3)
    return other


def theirs(store: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file of the reference program, with its bytes, its mode and its time."""
    files = [path for name in THEIRS for path in sorted((store / name).rglob("[!.]*")) if path.is_file()]
    entries = {str(path.relative_to(store)): (path.read_bytes(), path.stat()) for path in files}
    return {name: (data, stat.st_mode, stat.st_mtime_ns) for name, (data, stat) in entries.items()}


def json_answer(result: Result) -> dict[str, object]:
    assert (result.status, result.err) == (0, "")
    value = msgspec.json.decode(result.raw)
    assert isinstance(value, dict)
    return value


def only_pack(other: ReferenceStore) -> str:
    (entry,) = (other.path / "packs").iterdir()
    return entry.name


def packs_in(folder: Path) -> object:
    return json_answer(ctx("status", "--json", cwd=folder))["execution_packs"]


def test_a_store_of_the_reference_opens_at_the_first_look_and_its_packs_are_there(other: ReferenceStore) -> None:
    folder = other.path.parent
    pack = only_pack(other)
    before = theirs(other.path)
    assert packs_in(folder) == 1
    assert ctx("cat", f"ctx://{pack}", cwd=folder).raw == (other.path / "objects" / pack[:2] / pack[2:]).read_bytes()
    assert ctx("cat", pack[:8], cwd=folder).status == 0
    assert ctx("fsck", cwd=folder).status == 0
    assert ctx("gc", "--grace", "0s", cwd=folder).status == 0
    assert theirs(other.path) == before


def test_init_says_that_it_adopted_and_leaves_what_was_there(other: ReferenceStore) -> None:
    folder = other.path.parent
    before = theirs(other.path)
    first = ctx("init", cwd=folder)
    assert first.out.startswith("Adopted the store at ")
    assert json_answer(ctx("init", "--json", cwd=folder))["what"] == "present"
    assert theirs(other.path) == before
    config = msgspec.json.decode((other.path / "config.json").read_bytes())
    # What the reference program wrote is still what it reads.
    assert config["version"] == "0.1"
    assert str(config["store_id"]).startswith("store_")
    assert packs_in(folder) == 1


def test_an_identity_once_given_stays(other: ReferenceStore) -> None:
    folder = other.path.parent
    first = json_answer(ctx("status", "--json", cwd=folder))["store_id"]
    assert json_answer(ctx("init", "--json", cwd=folder))["store_id"] == first
    assert json_answer(ctx("status", "--json", cwd=folder))["store_id"] == first


def test_an_adoption_that_was_killed_before_its_end_is_completed_as_the_same_store(other: ReferenceStore) -> None:
    catalog, store_id = SqliteCatalog.create(str(other.path / "catalog.db"), "store_0123456789abcdef")
    catalog.close()
    status = json_answer(ctx("status", "--json", cwd=other.path.parent))
    assert (status["store_id"], status["execution_packs"]) == (store_id, 1)


@pytest.mark.parametrize("settled", [False, True], ids=["just-now", "long-ago"])
def test_packs_that_the_reference_adds_and_removes_are_followed(other: ReferenceStore, settled: bool) -> None:  # noqa: FBT001
    folder = other.path.parent
    first = only_pack(other)

    def settle(seconds: int) -> None:
        if settled:
            os.utime(other.path / "packs", (seconds, seconds))

    settle(1000)
    assert packs_in(folder) == 1
    second = other.pack(outputs={"report.md": b"later"}, parent=first)
    settle(2000)
    assert packs_in(folder) == 2
    assert ctx("cat", f"ctx://{second}", cwd=folder).status == 0
    (other.path / "packs" / second).unlink()
    settle(3000)
    # It was not released: it stays, fsck reports it, and nothing of it is collected until a rebuild accepts that.
    assert packs_in(folder) == 2
    assert ctx("fsck", cwd=folder).status == 1
    assert json_answer(ctx("gc", "--grace", "0s", "--json", cwd=folder))["removed"] == []
    assert ctx("fsck", "--rebuild", cwd=folder).status == 0
    assert packs_in(folder) == 1
    assert ctx("cat", f"ctx://{second}", cwd=folder).status == 13
    assert ctx("cat", f"ctx://{first}", cwd=folder).status == 0
    # Released, it is collected, and the blobs that the other one shares with it are not.
    removed = json_answer(ctx("gc", "--grace", "0s", "--json", cwd=folder))["removed"]
    assert removed == sorted([f"sha256:{second}", str(Digest.of(b"later"))])
    assert ctx("fsck", cwd=folder).status == 0


# --- what a store of ours promises to its readers ---------------------------------------------------------------------


@proves(
    "execution-pack:store:objects-directory",
    "execution-pack:store:path-derives-from-hash",
    "execution-pack:inspect:blob-is-raw-bytes-on-disk",
    case="*",
)
@pytest.mark.parametrize("data", [b"", REPORT, bytes(range(256)) * 5000], ids=["empty", "small", "large"])
def test_a_blob_lies_under_its_hash_as_its_own_bytes(tmp_path: Path, data: bytes) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        digits = platform.objects.put(data).hex
        assert platform.objects.put_stream([data]).digest.hex == digits
    place = tmp_path / ".ctx" / "objects" / digits[:2] / digits[2:]
    assert place.read_bytes() == data
    assert place.stat().st_mode & 0o777 == 0o444
    assert [path for path in (tmp_path / ".ctx" / "objects").glob("??/*") if path.is_file()] == [place]


@proves("execution-pack:store:de-duplication")
def test_packs_that_share_a_prompt_and_an_input_share_one_blob_of_each(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    prompt, order = b"You are careful.", b"order 881"
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        for n in range(3):
            with platform.objects.batch() as batch:
                refs = [str(batch.put(data)) for data in (prompt, order, b"output %d" % n)]
                manifest = {
                    "version": "0.1",
                    "hash": "",
                    "system_prompt": refs[0],
                    "inputs": [{"content_ref": refs[1]}],
                    "outputs": [{"content_ref": refs[2]}],
                    "steps": [],
                }
                pack = batch.put(msgspec.json.encode(manifest))
            platform.entries.add(pack, str(pack).encode())
    assert packs_in(tmp_path) == 3
    stored = [path.read_bytes() for path in (tmp_path / ".ctx" / "objects").glob("??/*")]
    assert (stored.count(prompt), stored.count(order), len(stored)) == (1, 1, 2 + 3 + 3)
    assert ctx("fsck", cwd=tmp_path).status == 0


@proves("execution-pack:inspect:blob-from-hash-reference")
def test_a_reference_found_in_a_manifest_is_enough_to_get_that_one_blob(other: ReferenceStore) -> None:
    folder = other.path.parent
    pack = only_pack(other)
    manifest = msgspec.json.decode(ctx("cat", f"ctx://{pack}", cwd=folder).raw)
    assert ctx("cat", manifest["inputs"][0]["content_ref"], cwd=folder) == Result(status=0, raw=b"order 881", err="")
    assert ctx("cat", manifest["outputs"][0]["content_ref"], cwd=folder).raw == REPORT
    assert ctx("cat", manifest["system_prompt"], cwd=folder).raw == b"You are careful."
    assert ctx("cat", manifest["steps"][2]["output_ref"], cwd=folder).raw == b"output 2"
