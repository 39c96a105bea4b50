"""`ctx verify`: verified, modified, unchecked and unknown are four answers, and only the first is status 0."""

import os
import shutil
from pathlib import Path

import msgspec

from contextplane.app.init import init
from contextplane.app.packing import Packed, pack_log
from contextplane.app.platform import opened
from contextplane.app.settings import Settings
from contextplane.app.sidecars import WrittenSidecars, write_sidecars
from contextplane.app.verifying import verify_artifact
from contextplane.model.ids import Digest
from contextplane.testing.proofs import proves
from contextplane.testing.reference_store import ReferenceStore
from tests.surfaces.running import Result, ctx

REPORT = b"The refund of order 881 was paid.\n"
VERIFIED, UNCHECKED, MODIFIED, UNKNOWN = 0, 10, 11, 13


def log(*outputs: str) -> bytes:
    return msgspec.json.encode(
        {
            "model": {"identifier": "m-1"},
            "system_prompt": "You are careful.",
            "inputs": [{"name": "b.txt", "content": "b"}, {"name": "a.txt", "content": "a"}],
            "steps": [
                {"type": "tool_call", "tool": "write_file", "timestamp": "2026-05-04T09:31:41Z"},
                {"type": "tool_call", "tool": "read_file", "output": "seen"},
                {"type": "reasoning", "output": "think"},
            ],
            "outputs": [{"name": name, "content": REPORT.decode()} for name in outputs],
            "environment": {"os": "linux", "runtime": "py3.11"},
        }
    )


def packed(folder: Path, *outputs: str) -> Packed:
    """A store in `folder` with one run that put out these files."""
    init(Settings(cwd=str(folder)), ".")
    with opened(Settings(cwd=str(folder))) as platform:
        return pack_log(platform, log(*outputs), root=str(folder))


def put_out(folder: Path, name: str, data: bytes = REPORT) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def sidecars(folder: Path, run: Packed) -> WrittenSidecars:
    with opened(Settings(cwd=str(folder))) as platform:
        return write_sidecars(platform, run, str(folder))


def claim(path: Path, **fields: object) -> None:
    Path(f"{path}.ctx.json").write_bytes(msgspec.json.encode(fields))


def told(result: Result, status: int) -> dict[str, object]:
    assert (result.status, result.err) == (status, "")
    value = msgspec.json.decode(result.raw)
    assert isinstance(value, dict)
    return value


def place(folder: Path, digest: Digest) -> Path:
    return folder / ".ctx" / "objects" / digest.hex[:2] / digest.hex[2:]


def damage(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"!")


# --- packs ------------------------------------------------------------------------------------------------------------


@proves("execution-pack:overview:immutable-and-verifiable")
def test_a_pack_is_verified_by_its_content_addresses_alone(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    before = place(tmp_path, run.digest).read_bytes()
    (tmp_path / "elsewhere").mkdir()
    elsewhere = ReferenceStore(tmp_path / "elsewhere")
    for name in ("objects", "packs"):
        shutil.copytree(tmp_path / ".ctx" / name, elsewhere.path / name, dirs_exist_ok=True)
    result = told(ctx("verify", run.digest.hex[:8], "--json", cwd=elsewhere.path.parent), VERIFIED)
    assert (result["answer"], result["pack"]) == ("verified", f"ctx://{run.digest.hex}")
    assert packed(tmp_path, "report.md").digest == run.digest
    assert place(tmp_path, run.digest).read_bytes() == before


@proves("execution-pack:store:verify-rehashes-blobs")
def test_a_tampered_blob_is_named_and_is_not_status_0(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    blob = Digest.of(REPORT)
    assert ctx("verify", f"ctx://{run.digest.hex}", cwd=tmp_path).status == VERIFIED
    damage(place(tmp_path, blob))
    result = ctx("verify", f"ctx://{run.digest.hex}", cwd=tmp_path)
    assert result.status == MODIFIED
    assert "Integrity: modified" in result.out
    assert f"outputs {blob}" in result.out


def test_a_tampered_manifest_is_modified_and_never_not_found(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    damage(place(tmp_path, run.digest))
    assert told(ctx("verify", f"ctx://{run.digest.hex}", "--json", cwd=tmp_path), MODIFIED)["answer"] == "modified"


def test_what_is_missing_is_unchecked_and_what_was_never_there_is_unknown(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    place(tmp_path, Digest.of(REPORT)).unlink()
    assert told(ctx("verify", run.digest.hex, "--json", cwd=tmp_path), UNCHECKED)["answer"] == "unchecked"
    assert ctx("verify", "ctx://" + "0" * 64, cwd=tmp_path).status == UNKNOWN
    assert ctx("verify", "pk_abcdefgh", cwd=tmp_path).status == 2


def test_a_missing_parent_is_said(tmp_path: Path) -> None:
    other = ReferenceStore(tmp_path)
    parent = other.pack(outputs={"report.md": REPORT})
    child = other.pack(outputs={"report.md": REPORT}, parent=parent)
    assert told(ctx("verify", child, "--json", cwd=tmp_path), VERIFIED)["parents"] == [f"ctx://{parent}"]
    place(tmp_path, Digest(parent)).unlink()
    result = ctx("verify", child, cwd=tmp_path)
    assert result.status == UNCHECKED
    assert f"parent sha256:{parent}  it is not in the store" in result.out


# --- files ------------------------------------------------------------------------------------------------------------


def test_an_artifact_is_verified_until_it_is_changed(tmp_path: Path) -> None:
    run = packed(tmp_path, "out/report.md")
    path = put_out(tmp_path, "out/report.md")
    assert sidecars(tmp_path, run) == WrittenSidecars(written=(f"{path}.ctx.json",), kept=())
    result = ctx("verify", "out/report.md", cwd=tmp_path)
    short = run.digest.hex[:12]
    assert result.status == VERIFIED
    assert result.out == (
        "Artifact:  out/report.md\n"
        f"Pack:      {short}\n"
        "Created:   2026-05-04T09:31:41Z\n"
        "Tools:     [read_file write_file]\n"
        "Integrity: verified\n"
        "\n"
        f"To inspect: ctx show {short}\n"
        f"To replay:  ctx replay {short}\n"
    )
    path.write_bytes(b"The refund was refused.\n")
    expected, actual = Digest.of(REPORT), Digest.of(b"The refund was refused.\n")
    result = ctx("verify", "report.md", cwd=path.parent)
    assert result.status == MODIFIED
    assert f"Integrity: modified (expected {expected.hex[:12]}, actual {actual.hex[:12]})" in result.out
    answer = told(ctx("verify", str(path), "--json", cwd=tmp_path), MODIFIED)
    assert (answer["expected"], answer["actual"]) == (str(expected), str(actual))


def answer_of(folder: Path, path: Path) -> tuple[str, str]:
    """What the same code that the command runs says, and why."""
    with opened(Settings(cwd=str(folder))) as platform:
        verdict = verify_artifact(platform, str(path))
    return verdict.answer, verdict.why


def test_a_sidecar_may_name_its_pack_in_every_form_and_leave_the_rest_null(tmp_path: Path) -> None:
    other = ReferenceStore(tmp_path)
    pack = other.pack(outputs={"report.md": REPORT})
    path = put_out(tmp_path, "somewhere/else/report.md")
    for form in ("ctx://{}", "{}", "sha256:{}", "ctx://sha256:{}", "ctx://{:.8}", "{:.12}"):
        claim(path, context_pack=form.format(pack), inputs=None, tools=None, generator="unknown to us")
        assert answer_of(tmp_path, path) == ("verified", ""), form


def test_a_sidecar_that_is_of_no_use_is_unchecked_with_the_reason(tmp_path: Path) -> None:
    packed(tmp_path, "report.md")
    path = put_out(tmp_path, "report.md")
    for sidecar, why in USELESS.items():
        put_out(tmp_path, "report.md.ctx.json", sidecar)
        answer = answer_of(tmp_path, path)
        assert (answer[0], why in answer[1]) == ("unchecked", True), sidecar
    assert told(ctx("verify", "report.md", "--json", cwd=tmp_path), UNCHECKED)["answer"] == "unchecked"


USELESS = {
    b"": "not a sidecar",
    b"[]": "not a sidecar",
    b'{"context_pack": 1}': "not a sidecar",
    b'{"tools": []}': "not a sidecar",
    b'{"context_pack": "\xff"}': "not a sidecar",
    b" " * (16 << 20) + b"{}": "larger than any sidecar",
    b'{"context_pack": ""}': "an empty reference",
    b'{"context_pack": "pk_abcdefgh"}': "names no execution pack",
}


def test_what_fits_several_outputs_or_none_is_unchecked(tmp_path: Path) -> None:
    run = packed(tmp_path, "a/report.md", "b/report.md")
    for name in ("report.md", "notes.md"):
        claim(put_out(tmp_path, name), context_pack=f"ctx://{run.digest.hex}")
    result = ctx("verify", "report.md", cwd=tmp_path)
    assert result.status == UNCHECKED
    assert "unchecked (2 outputs of the pack are named report.md: a/report.md, b/report.md)" in result.out
    assert ctx("verify", "notes.md", cwd=tmp_path).status == UNCHECKED
    claim(put_out(tmp_path, "a/report.md"), context_pack=f"ctx://{run.digest.hex}")
    assert ctx("verify", "a/report.md", cwd=tmp_path).status == VERIFIED


def test_no_sidecar_and_no_such_pack_are_unknown(tmp_path: Path) -> None:
    packed(tmp_path, "report.md")
    path = put_out(tmp_path, "report.md")
    answer = told(ctx("verify", "report.md", "--json", cwd=tmp_path), UNKNOWN)
    assert (answer["answer"], answer["why"]) == ("unknown", "it has no sidecar report.md.ctx.json")
    claim(path, context_pack="ctx://" + "0" * 64)
    answer = told(ctx("verify", "report.md", "--json", cwd=tmp_path), UNKNOWN)
    assert "its pack is not in this store" in str(answer["why"])


def test_a_file_that_is_not_there_or_is_none_is_an_error(tmp_path: Path) -> None:
    packed(tmp_path, "report.md")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("nothing.md", "./folder", "./pipe"):
        result = ctx("verify", name, cwd=tmp_path)
        assert (result.status, result.out) == (UNKNOWN, "")
        assert "source_unreadable" in result.err


def test_an_artifact_of_a_tampered_manifest_is_not_verified(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    put_out(tmp_path, "report.md")
    sidecars(tmp_path, run)
    damage(place(tmp_path, run.digest))
    result = ctx("verify", "report.md", cwd=tmp_path)
    assert result.status == MODIFIED
    assert "object_corrupt" in result.err


def test_a_file_that_looks_like_a_reference_is_one_when_that_is_said(tmp_path: Path) -> None:
    run = packed(tmp_path, "decade")
    put_out(tmp_path, "decade")
    sidecars(tmp_path, run)
    assert "no such execution pack" in ctx("verify", "decade", cwd=tmp_path).err
    assert ctx("verify", "--file", "decade", cwd=tmp_path).status == VERIFIED


def test_what_a_sidecar_says_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    path = put_out(tmp_path, "report.md")
    claim(path, context_pack=f"ctx://{run.digest.hex}", tools=["\x1b[31m"], notes="a\nb\x07", confidence="high")
    result = ctx("verify", "report.md", cwd=tmp_path)
    assert result.status == VERIFIED
    assert "\nTools:     [\\x1b[31m]\n" in result.out
    assert "\nConfidence: high\nNotes:     a\\nb\\x07\n" in result.out


# --- sidecars ---------------------------------------------------------------------------------------------------------


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
