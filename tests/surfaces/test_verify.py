"""`ctx verify`: verified, modified, unchecked or unknown; only the first ends with status 0."""

import os
import shutil
from pathlib import Path

import msgspec

from contextplane.app.execution.sidecars import WrittenSidecars
from contextplane.app.execution.verify import verify_artifact
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from contextplane.testing.proofs import proves
from tests.support.reference_store import ReferenceStore
from tests.surfaces.artifacts import (
    MODIFIED,
    REPORT,
    UNCHECKED,
    UNKNOWN,
    VERIFIED,
    claim,
    damage,
    json_answer,
    log,
    packed,
    place,
    put_out,
    sidecars,
)
from tests.surfaces.commands import Result, ctx


def only_trouble(result: Result, status: int) -> dict[str, str]:
    """The only problem of a pack."""
    (trouble,) = msgspec.convert(json_answer(result, status)["troubles"], list[dict[str, str]])
    return trouble


# --- packs ------------------------------------------------------------------------------------------------------------


@proves("execution-pack:overview:immutable-and-verifiable")
def test_a_pack_is_verified_by_its_content_addresses_alone(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    before = place(tmp_path, run.digest).read_bytes()
    (tmp_path / "elsewhere").mkdir()
    elsewhere = ReferenceStore(tmp_path / "elsewhere")
    for name in ("objects", "packs"):
        shutil.copytree(tmp_path / ".ctx" / name, elsewhere.path / name, dirs_exist_ok=True)
    result = json_answer(ctx("verify", run.digest.hex[:8], "--json", cwd=elsewhere.path.parent), VERIFIED)
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
    name = f"ctx://{run.digest.hex[:12]}:outputs/report.md"
    assert f"\n  modified  {name} was tampered with\n" in result.out
    trouble = only_trouble(ctx("verify", run.digest.hex, "--json", cwd=tmp_path), MODIFIED)
    assert (trouble["what"], trouble["answer"]) == (f"outputs/report.md {blob}", "modified")
    assert (trouble["part"], trouble["digest"], trouble["damage"]) == ("outputs/report.md", str(blob), "tampered")
    assert trouble["why"].startswith("its bytes have the digest sha256:")


def test_a_tampered_manifest_is_modified_and_never_not_found(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    damage(place(tmp_path, run.digest))
    assert (
        json_answer(ctx("verify", f"ctx://{run.digest.hex}", "--json", cwd=tmp_path), MODIFIED)["answer"] == "modified"
    )


def test_what_is_missing_is_unchecked_and_what_was_never_there_is_unknown(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    place(tmp_path, Digest.of(REPORT)).unlink()
    assert json_answer(ctx("verify", run.digest.hex, "--json", cwd=tmp_path), UNCHECKED)["answer"] == "unchecked"
    assert ctx("verify", "ctx://" + "0" * 64, cwd=tmp_path).status == UNKNOWN
    assert ctx("verify", "run_0123456789abcdef", cwd=tmp_path).status == 2


def test_a_missing_parent_is_said(tmp_path: Path) -> None:
    other = ReferenceStore(tmp_path)
    parent = other.pack(outputs={"report.md": REPORT})
    child = other.pack(outputs={"report.md": REPORT}, parent=parent)
    assert json_answer(ctx("verify", child, "--json", cwd=tmp_path), VERIFIED)["parents"] == [f"ctx://{parent}"]
    place(tmp_path, Digest(parent)).unlink()
    result = ctx("verify", child, cwd=tmp_path)
    assert result.status == UNCHECKED
    assert f"parent ctx://{parent[:12]} is missing\n" in result.out
    trouble = only_trouble(ctx("verify", child, "--json", cwd=tmp_path), UNCHECKED)
    assert (trouble["what"], trouble["why"]) == (f"parent sha256:{parent}", "it is not in the store")
    assert (trouble["part"], trouble["digest"], trouble["damage"]) == ("parent", f"sha256:{parent}", "missing")


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
    answer = json_answer(ctx("verify", str(path), "--json", cwd=tmp_path), MODIFIED)
    assert (answer["expected"], answer["actual"]) == (str(expected), str(actual))
    own = f"'ctx cat {short}:outputs/out/report.md' prints the recorded output; if a later run wrote it again"
    assert f"\nSolution:  {own}, 'ctx pack LOG --sidecars' with that run's log replaces the sidecar\n" in result.out
    assert str(answer["hint"]).startswith(own)


def answer_of(folder: Path, path: Path) -> tuple[str, str]:
    """The answer of the code behind the command, and its reason."""
    with open_platform(Settings(cwd=str(folder))) as platform:
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
    machine = json_answer(ctx("verify", "report.md", "--json", cwd=tmp_path), UNCHECKED)
    assert machine["answer"] == "unchecked"
    anew = "move the sidecar away, and 'ctx pack LOG --sidecars' writes it again"
    assert machine["hint"] == f"{anew}; if the pack cannot be read, see 'ctx fsck'"
    put_out(tmp_path, "report.md.ctx.json", b"{")
    assert json_answer(ctx("verify", "report.md", "--json", cwd=tmp_path), UNCHECKED)["hint"] == anew


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
    answer = json_answer(ctx("verify", "report.md", "--json", cwd=tmp_path), UNKNOWN)
    assert (answer["answer"], answer["why"]) == ("unknown", "it has no sidecar report.md.ctx.json")
    assert answer["hint"] == "if a run wrote it, 'ctx pack LOG --sidecars' with the log of that run writes one"
    claim(path, context_pack="ctx://" + "0" * 64)
    answer = json_answer(ctx("verify", "report.md", "--json", cwd=tmp_path), UNKNOWN)
    assert "its pack is not in this store" in str(answer["why"])
    assert answer["hint"] == "'ctx import' imports that run from an archive, 'ctx pack' packs its log"


def test_a_file_of_a_pack_whose_manifest_is_missing_is_told_that(tmp_path: Path) -> None:
    run = packed(tmp_path, "report.md")
    put_out(tmp_path, "report.md")
    sidecars(tmp_path, run)
    place(tmp_path, run.digest).unlink()
    result = ctx("verify", "report.md", cwd=tmp_path)
    assert result.status == UNKNOWN
    reason = f"ctx://{run.digest.hex[:12]}: it is registered, but its manifest is missing"
    assert f"Integrity: unknown ({reason})\n" in result.out


def test_of_a_renamed_file_it_is_told_what_its_sidecar_calls_it(tmp_path: Path) -> None:
    run = packed(tmp_path, "out/report.md")
    path = put_out(tmp_path, "out/report.md")
    sidecars(tmp_path, run)
    for old in (path, path.with_name("report.md.ctx.json")):
        old.rename(old.with_name(old.name.replace("report", "renamed")))
    result = ctx("verify", "out/renamed.md", cwd=tmp_path)
    assert result.status == UNCHECKED
    reason = "the pack has no output named renamed.md; its sidecar calls it out/report.md: was it renamed?"
    assert (
        f"Integrity: unchecked ({reason})\nSolution:  'ctx show {run.digest.hex[:12]}' lists the outputs" in result.out
    )


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


def test_an_output_that_is_named_with_a_folder_is_checked_wherever_its_file_lies(tmp_path: Path) -> None:
    run = packed(tmp_path, "src/deep/report.md", "src/other.md")
    for name in ("src/deep/report.md", "report.md", "src/other.md"):
        claim(put_out(tmp_path, name), context_pack=f"ctx://{run.digest.hex}")
        assert ctx("verify", f"./{name}", cwd=tmp_path).status == VERIFIED
        put_out(tmp_path, name, b"another")
        assert ctx("verify", f"./{name}", cwd=tmp_path).status == MODIFIED


def test_a_file_that_was_swapped_for_another_output_is_not_verified_whatever_its_sidecar_says(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    outputs = [{"name": f"{letter}/r.md", "content": letter} for letter in "ab"]
    put_out(tmp_path, "log.json", msgspec.json.encode({**msgspec.json.decode(log()), "outputs": outputs}))
    for letter in "ab":
        put_out(tmp_path, f"{letter}/r.md", letter.encode())
    assert ctx("pack", "log.json", "--sidecars", cwd=tmp_path).status == 0
    assert ctx("verify", "a/r.md", cwd=tmp_path).status == VERIFIED
    put_out(tmp_path, "a/r.md", b"b")
    assert ctx("verify", "a/r.md", cwd=tmp_path).status == MODIFIED
    sidecar = tmp_path / "a" / "r.md.ctx.json"
    sidecar.write_text(sidecar.read_text().replace("a/r.md", "b/r.md"))
    result = ctx("verify", "a/r.md", cwd=tmp_path)
    assert result.status == UNCHECKED
    assert "its sidecar says that it is b/r.md, and it lies where a/r.md belongs" in result.out
