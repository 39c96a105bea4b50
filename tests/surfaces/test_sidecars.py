"""Sidecars: written beside each existing output, for one pack, never over a foreign file."""

from pathlib import Path

import msgspec
import pytest

from contextplane.app.execution.sidecars import WrittenSidecars
from contextplane.app.init import init
from contextplane.app.settings import Settings
from tests.surfaces.artifacts import (
    REPORT,
    VERIFIED,
    claim,
    log,
    packed,
    put_out,
    sidecars,
)
from tests.surfaces.commands import Result, ctx


def test_a_sidecar_is_sorted_and_written_again_with_what_people_added(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    path = Path(f"{put_out(tmp_path, 'report.md')}.ctx.json")
    sidecars(tmp_path, run)
    value = msgspec.json.decode(path.read_bytes())
    assert value == {
        "context_pack": f"ctx://{run.digest.hex}",
        "output": "report.md",
        "inputs": ["a.txt", "b.txt"],
        "tools": ["read_file", "write_file"],
    }
    added = {"confidence": "high", "notes": "read it twice", "reviewed_by": ["Ann"]}
    path.write_bytes(msgspec.json.encode({**value, "tools": None, **added}))
    result = sidecars(tmp_path, run)
    assert (result.written, result.replaced) == ((str(path),), ())
    assert msgspec.json.decode(path.read_bytes()) == {**value, **added}
    assert sorted(path.name for path in tmp_path.iterdir()) == [".ctx", "report.md", "report.md.ctx.json"]


def test_the_sidecar_of_another_run_gives_way_where_the_file_is_what_this_run_put_out(tmp_path: Path) -> None:
    older, run = packed(tmp_path, "a.md"), packed(tmp_path, "a.md", "b.md", "c.md", "d.md")
    for name in ("a.md", "b.md", "c.md", "d.md"):
        put_out(tmp_path, name)
    # In any form that names the run, whether the run is here or not, and by any writer.
    claim(tmp_path / "a.md", context_pack=f"ctx://{older.digest.hex}", output="a.md", inputs=[], tools=[])
    claim(tmp_path / "b.md", context_pack=older.digest.hex[:8], inputs=None, notes=None)
    claim(tmp_path / "c.md", context_pack=f"sha256:{'0' * 64}", confidence="", notes="")
    result = sidecars(tmp_path, run)
    paths = tuple(str(tmp_path / f"{name}.md.ctx.json") for name in "abcd")
    assert (result.written, result.replaced) == (paths, paths[:3])
    assert (result.kept, result.failed) == ((), ())
    for path in paths:
        assert msgspec.json.decode(Path(path).read_bytes())["context_pack"] == f"ctx://{run.digest.hex}"
        assert ctx("verify", path.removesuffix(".ctx.json"), cwd=tmp_path).status == VERIFIED


LEFT: dict[str, tuple[dict[str, object] | bytes, bytes, str]] = {
    "no-json": (b"own", REPORT, "is no sidecar"),
    "no-sidecar": ({"pack": 1}, REPORT, "is no sidecar"),
    "no-run": ({"context_pack": "report.md"}, REPORT, "is no sidecar"),
    "notes": ({"context_pack": "0" * 64, "notes": "mine"}, REPORT, "another run, and was edited: it has notes"),
    "more": ({"context_pack": "0" * 64, "x": 1, "confidence": "low"}, REPORT, "was edited: it has confidence, x"),
    "other-bytes": ({"context_pack": "0" * 64}, b"edited", "not the output of this run"),
}


@pytest.mark.parametrize(("before", "data", "why"), LEFT.values(), ids=LEFT)
def test_what_is_no_sidecar_or_is_of_another_file_is_left_and_named(
    tmp_path: Path, before: dict[str, object] | bytes, data: bytes, why: str
) -> None:
    run = packed(tmp_path, "a.md", "b.md")
    put_out(tmp_path, "a.md", data)
    put_out(tmp_path, "b.md")
    path = tmp_path / "a.md.ctx.json"
    path.write_bytes(before if isinstance(before, bytes) else msgspec.json.encode(before))
    there = path.read_bytes()
    result = sidecars(tmp_path, run)
    assert (result.written, result.kept) == ((str(tmp_path / "b.md.ctx.json"),), (str(path),))
    (error,) = result.failed
    assert why in error.message
    assert f"the pack ctx://{run.digest.hex} is stored; " in str(error.hint)
    assert path.read_bytes() == there


def test_what_is_no_file_in_the_place_of_a_sidecar_is_left_and_named(tmp_path: Path) -> None:
    run = packed(tmp_path, "a.md")
    put_out(tmp_path, "a.md")
    path = tmp_path / "a.md.ctx.json"
    path.mkdir()
    result = sidecars(tmp_path, run)
    assert (result.written, result.kept) == ((), (str(path),))
    assert [(not_written.at, not_written.message) for not_written in result.failed] == [
        (str(path), "not a regular file")
    ]


def test_a_link_in_the_place_of_a_sidecar_is_left_and_so_is_what_it_leads_to(tmp_path: Path) -> None:
    run = packed(tmp_path, "a.md", "b.md")
    for name in ("a.md", "b.md"):
        put_out(tmp_path, name)
    (tmp_path / "a.md.ctx.json").symlink_to(tmp_path / "b.md")
    result = sidecars(tmp_path, run)
    assert (result.kept, [not_written.message for not_written in result.failed]) == (
        (str(tmp_path / "a.md.ctx.json"),),
        ["is a link; it was left unchanged"],
    )
    assert (tmp_path / "b.md").read_bytes() == REPORT


def test_a_file_of_other_bytes_gets_no_sidecar_that_says_it_is_of_this_run(tmp_path: Path) -> None:
    run = packed(tmp_path, "a.md")
    path = put_out(tmp_path, "a.md", b"edited")
    result = sidecars(tmp_path, run)
    assert (result.written, result.kept, [not_written.at for not_written in result.failed]) == ((), (), [str(path)])
    assert not Path(f"{path}.ctx.json").exists()
    assert result.unwritten == (f"{path}.ctx.json",)


def test_a_sidecar_never_takes_the_place_of_another_output(tmp_path: Path) -> None:
    run = packed(tmp_path, "x", "x.ctx.json")
    other = msgspec.json.encode({"context_pack": f"sha256:{'0' * 64}"})
    put_out(tmp_path, "x")
    (tmp_path / "x.ctx.json").write_bytes(other)
    result = sidecars(tmp_path, run)
    assert result.failed[0].message == "is itself an output of this run; it was left unchanged"
    assert (tmp_path / "x.ctx.json").read_bytes() == other


def test_no_sidecar_is_written_outside_the_folder_or_into_the_store(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    put_out(outside, "x.md")
    (inside / "linked").symlink_to(outside)
    (inside / "link.md").symlink_to(outside / "x.md")
    (inside / "folder").mkdir()
    names = ["../outside/x.md", str(outside / "x.md"), "linked/x.md", "link.md", "folder", ".", "gone.md"]
    run = packed(inside, *names, ".ctx/config.json", "nul\0.md")
    absent = tuple(sorted([*names, ".ctx/config.json", "nul\0.md"]))
    assert sidecars(inside, run) == WrittenSidecars(absent=absent)
    assert sorted(path.name for path in outside.iterdir()) == ["x.md"]


def pack(folder: Path, *outputs: str, **fields: object) -> Result:
    """Run `ctx pack --sidecars` on a run whose output files these are; they exist."""
    for name in outputs:
        put_out(folder, name)
    (folder / "log.json").write_bytes(log(*outputs))
    return ctx("pack", "log.json", "--sidecars", *(f"--{name}" for name in fields), cwd=folder)


def test_a_sidecar_that_cannot_be_written_is_told_and_the_pack_and_the_others_are_there(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    long = "n" * 250
    result = pack(tmp_path, "a.md", long, "z.md")
    ref = result.out.strip()
    assert (result.status, ref.startswith("ctx://")) == (1, True)
    assert [line.partition("/")[0] for line in result.err.splitlines()] == [
        *["ctx: wrote "] * 2,
        "ctx: sidecar_not_written: ",
    ]
    assert f"{long}.ctx.json: cannot be written: File name too long (the pack {ref} is stored)" in result.err
    assert ctx("verify", ref, cwd=tmp_path).status == VERIFIED
    for name in ("a.md", "z.md"):
        assert ctx("verify", name, cwd=tmp_path).status == VERIFIED
    quiet = pack(tmp_path, "a.md", long, "z.md", json=True, quiet=True)
    assert quiet.status == 1
    assert msgspec.json.decode(quiet.raw)["sidecars"] == [str(tmp_path / f"{name}.md.ctx.json") for name in "az"]
    assert msgspec.json.decode(quiet.err.encode())["error"]["code"] == "sidecar_not_written"
    assert not [path for path in tmp_path.iterdir() if path.name[0].isdigit()]


def test_the_second_run_over_the_same_file_is_told_and_verified_by_its_own_sidecar(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    path = tmp_path / "a.md.ctx.json"
    assert f"ctx: wrote {path}\n" in pack(tmp_path, "a.md").err
    result = pack(tmp_path, "a.md", "b.md")
    assert (result.status, f"ctx: wrote {path}, replacing the sidecar of another run\n" in result.err) == (0, True)
    assert result.out.strip() in path.read_text()
    assert ctx("verify", "a.md", cwd=tmp_path).status == VERIFIED
    put_out(tmp_path, "a.md", b"edited")
    again = ctx("pack", "log.json", "--sidecars", "--json", cwd=tmp_path)
    answer = msgspec.json.decode(again.raw)
    assert (again.status, answer["sidecars_kept"], answer["sidecars_replaced"]) == (1, [str(path)], [])
    assert answer["sidecars_unwritten"] == [str(path)]
    assert msgspec.json.decode(again.err.encode())["error"]["at"] == str(tmp_path / "a.md")


def test_that_no_sidecar_was_written_is_told_with_the_outputs_that_have_no_file(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    (tmp_path / "log.json").write_bytes(log(*(f"{n:02}.md" for n in range(21))))
    result = ctx("pack", "log.json", "--sidecars", cwd=tmp_path)
    names = ", ".join(f"{n:02}.md" for n in range(20))
    assert (result.status, result.err) == (0, f"ctx: no sidecar for outputs that are not below .: {names} and 1 more\n")
    answer = msgspec.json.decode(ctx("pack", "log.json", "--sidecars", "--json", cwd=tmp_path).raw)
    assert len(answer["outputs_absent"]) == 21
    (tmp_path / "log.json").write_bytes(log())
    assert ctx("pack", "log.json", "--sidecars", cwd=tmp_path).err == "ctx: no sidecar: this run has no output files\n"
