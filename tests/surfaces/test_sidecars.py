"""Sidecars: beside each output that lies there, for one pack, never over what is somebody else's."""

from pathlib import Path

import msgspec

from contextplane.app.init import init
from contextplane.app.settings import Settings
from contextplane.app.sidecars import WrittenSidecars
from tests.surfaces.artifacts import (
    REPORT,
    VERIFIED,
    claim,
    log,
    packed,
    put_out,
    sidecars,
)
from tests.surfaces.running import Result, ctx


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
    path.write_bytes(msgspec.json.encode({**value, "tools": None, "confidence": "high", "notes": "read it twice"}))
    assert sidecars(tmp_path, run).written == (str(path),)
    assert msgspec.json.decode(path.read_bytes()) == {**value, "confidence": "high", "notes": "read it twice"}
    assert sorted(one.name for one in tmp_path.iterdir()) == [".ctx", "report.md", "report.md.ctx.json"]


def test_the_sidecar_of_another_pack_is_kept_and_reported(tmp_path: Path) -> None:
    run = packed(tmp_path, "a.md", "b.md", "c.md", "d.md")
    other = packed(tmp_path, "a.md")
    for name in ("a.md", "b.md", "c.md", "d.md"):
        put_out(tmp_path, name)
    claim(tmp_path / "a.md", context_pack=f"ctx://{other.digest.hex}")
    put_out(tmp_path, "b.md.ctx.json", b"not a sidecar")
    (tmp_path / "c.md.ctx.json").symlink_to(tmp_path / "d.md")
    before = {name: (tmp_path / f"{name}.ctx.json").read_bytes() for name in ("a.md", "b.md")}
    done = sidecars(tmp_path, run)
    assert done.written == (str(tmp_path / "d.md.ctx.json"),)
    assert done.kept == tuple(str(tmp_path / f"{name}.ctx.json") for name in ("a.md", "b.md", "c.md"))
    assert {name: (tmp_path / f"{name}.ctx.json").read_bytes() for name in before} == before
    assert (tmp_path / "d.md").read_bytes() == REPORT


def test_no_sidecar_is_written_outside_the_folder_or_into_the_store(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    put_out(outside, "x.md")
    (inside / "linked").symlink_to(outside)
    (inside / "link.md").symlink_to(outside / "x.md")
    (inside / "folder").mkdir()
    names = ["../outside/x.md", str(outside / "x.md"), "linked/x.md", "link.md", "folder", ".", "gone.md"]
    run = packed(inside, *names, ".ctx/config.json", "nul\0.md")
    assert sidecars(inside, run) == WrittenSidecars(written=(), kept=())
    assert sorted(one.name for one in outside.iterdir()) == ["x.md"]


def pack(folder: Path, *outputs: str, **fields: object) -> Result:
    """`ctx pack --sidecars` of a run that put out these files, which lie there."""
    for name in outputs:
        put_out(folder, name)
    (folder / "log.json").write_bytes(log(*outputs))
    return ctx("pack", "log.json", "--sidecars", *(f"--{name}" for name in fields), cwd=folder)


def test_a_sidecar_that_cannot_be_written_is_told_and_the_pack_and_the_others_are_there(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    long = "n" * 250
    result = pack(tmp_path, "a.md", long, "z.md")
    ref = result.out.strip()
    assert (result.status, ref.startswith("ctx://"), result.err.count("\n")) == (1, True, 1)
    assert result.err.startswith("ctx: sidecar_not_written: ")
    assert f"{long}.ctx.json: cannot be written: File name too long (the pack {ref} is stored)" in result.err
    assert ctx("verify", ref, cwd=tmp_path).status == VERIFIED
    for name in ("a.md", "z.md"):
        assert ctx("verify", name, cwd=tmp_path).status == VERIFIED
    quiet = pack(tmp_path, "a.md", long, "z.md", json=True, quiet=True)
    assert quiet.status == 1
    assert msgspec.json.decode(quiet.raw)["sidecars"] == [str(tmp_path / f"{one}.md.ctx.json") for one in "az"]
    assert msgspec.json.decode(quiet.err.encode())["error"]["code"] == "sidecar_not_written"
    assert not [path for path in tmp_path.iterdir() if path.name[0].isdigit()]


def test_the_sidecar_of_another_pack_is_told_to_people_and_machines(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    assert pack(tmp_path, "a.md").status == 0
    first = (tmp_path / "a.md.ctx.json").read_bytes()
    result = pack(tmp_path, "a.md", "b.md")
    assert (result.status, "a.md.ctx.json is of another pack, and was left as it is" in result.err) == (0, True)
    answer = msgspec.json.decode(pack(tmp_path, "a.md", "b.md", json=True).raw)
    assert answer["sidecars_kept"] == [str(tmp_path / "a.md.ctx.json")]
    assert (tmp_path / "a.md.ctx.json").read_bytes() == first
