"""Packs travel in one file, whole, from one store to another."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.app.execution.archive import export_packs, import_packs
from contextplane.app.execution.pack import pack_log
from contextplane.model.ids import Digest
from tests.support.reference_store import ReferenceStore
from tests.surfaces.archives import ABSENT, Pair, contents, json_answer, log, store_in
from tests.surfaces.commands import COMMAND, Result, child_environment, ctx


def test_an_exported_pack_arrives_with_all_that_it_reaches(pair: Pair) -> None:
    first = ctx("import", str(pair.file), cwd=pair.there)
    assert (first.status, first.err) == (0, "")
    assert first.out.count("new  ctx://") == 2
    assert "new here: 2 packs and 8 objects" in first.out
    arrivals = contents(pair.there)
    assert arrivals.items() <= contents(pair.here).items()
    assert {f"packs/{pair.pack.hex}", f"packs/{pair.parent.hex}"} <= arrivals.keys()
    assert Digest.of(b"another").hex not in arrivals
    assert ctx("fsck", cwd=pair.there).status == 0
    assert ctx("cat", f"ctx://{pair.parent.hex}", cwd=pair.there).status == 0


def test_quietly_what_came_is_told_by_its_name_alone(pair: Pair) -> None:
    refs = ctx("import", str(pair.file), "--quiet", cwd=pair.there).out.split()
    assert refs == sorted(f"ctx://{pack.hex}" for pack in (pair.pack, pair.parent))
    assert ctx("import", str(pair.file), "--quiet", cwd=pair.there).out.split() == refs


def test_importing_again_says_that_nothing_new_came(pair: Pair) -> None:
    first = json_answer(ctx("import", str(pair.file), "--json", cwd=pair.there))
    again = json_answer(ctx("import", str(pair.file), "--json", cwd=pair.there))
    assert first["new_packs"] == sorted(f"ctx://{pack.hex}" for pack in (pair.pack, pair.parent))
    assert first["roots"] == [f"ctx://{pair.pack.hex}"]
    assert first["parents"] == [f"ctx://{pair.parent.hex}"]
    assert again == first | {"new_packs": [], "new_objects": 0}
    assert "nothing new" in ctx("import", str(pair.file), cwd=pair.there).out


def test_standard_output_and_standard_input_carry_the_same_bytes(pair: Pair) -> None:
    out = ctx("export", pair.pack.hex[:12], "-o", "-", cwd=pair.here)
    assert (out.status, out.raw) == (0, pair.data)
    assert out.err.startswith("ctx: wrote 2 packs, 8 objects")
    assert out.err.endswith(f"\nctx: parents included  ctx://{pair.parent.hex}\n")
    assert pair.take(out.raw).status == 0
    assert ctx("export", f"ctx://{pair.pack.hex}", "-o", "-", "--quiet", cwd=pair.there) == Result(0, pair.data, "")


def test_exporting_tells_what_was_written(pair: Pair) -> None:
    refs = [pair.pack.hex, pair.parent.hex, pair.pack.hex[:8]]
    answer = json_answer(ctx("export", *refs, "-o", "both.tar", "--json", cwd=pair.here))
    assert answer["roots"] == sorted(f"ctx://{pack.hex}" for pack in (pair.pack, pair.parent))
    assert (answer["parents"], answer["parents_not_included"], answer["objects"]) == ([], [], 8)
    assert answer["size"] == (pair.here / "both.tar").stat().st_size
    assert json_answer(ctx("import", str(pair.here / "both.tar"), "--json", cwd=pair.there))["roots"] == answer["roots"]


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
    # It was never here, so nothing is lost.
    for args in (["fsck"], ["fsck", "--rebuild"]):
        checked = ctx(*args, cwd=tmp_path / "there")
        assert (checked.status, checked.err) == (0, "")
        assert f"absent    {ABSENT}  a run is a fork of it, and came here without it" in checked.out
        assert checked.out.endswith("1 absent\nThe store is intact.\n")


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


def test_two_imports_of_one_archive_at_once_both_succeed(pair: Pair) -> None:
    command = [COMMAND, "import", str(pair.file), "--json"]
    both = [
        subprocess.Popen(command, cwd=pair.there, env=child_environment(), stdout=subprocess.PIPE) for _ in range(2)
    ]
    answers = [msgspec.json.decode(process.communicate()[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(pack for answer in answers for pack in answer["new_packs"]) == sorted(
        f"ctx://{pack.hex}" for pack in (pair.pack, pair.parent)
    )
    assert ctx("fsck", cwd=pair.there).status == 0
    assert ctx("export", pair.pack.hex, "-o", "-", "--quiet", cwd=pair.there).raw == pair.data


@pytest.mark.skipif(shutil.which("tar") is None, reason="no tar here")
def test_tar_takes_it_apart_into_a_store(pair: Pair, tmp_path: Path) -> None:
    store = ReferenceStore(tmp_path).path
    result = subprocess.run(["tar", "-xf", pair.file, "-C", store], check=False, capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")
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
