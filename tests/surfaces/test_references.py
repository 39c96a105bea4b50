"""Every verb understands every form of a reference in the same way."""

from pathlib import Path

import msgspec
import pytest

from tests.support.cases import cases
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import ctx
from tests.surfaces.sample import REPORT, Store, one_error_line


def test_a_pack_is_found_by_its_hash_and_by_the_beginning_of_it(sample: Store) -> None:
    manifest = ctx("cat", f"ctx://{sample.pack}", cwd=sample.folder)
    assert manifest.status == 0
    assert msgspec.json.decode(manifest.raw)["version"] == "0.1"
    for ref in (
        sample.pack,
        sample.pack[:8],
        f"ctx://{sample.pack[:8]}",
        sample.pack[:8].upper(),
        f"sha256:{sample.pack}",
    ):
        assert ctx("cat", ref, cwd=sample.folder) == manifest


def test_a_blob_is_not_found_by_the_beginning_of_its_hash(sample: Store) -> None:
    digits = sample.report.removeprefix("sha256:")
    one_error_line(ctx("cat", digits[:12], cwd=sample.folder), 13, "execution_pack_not_found")
    one_error_line(ctx("cat", f"ctx://{digits}", cwd=sample.folder), 13, "execution_pack_not_found")
    one_error_line(ctx("cat", f"sha256:{digits[:12]}", cwd=sample.folder), 2, "reference_invalid")
    assert ctx("cat", f"sha256:{digits.upper()}", cwd=sample.folder).raw == REPORT


@cases("ref", ["run_0123456789abcdef", "a@1.2.3", "./a", "kg:a"])
def test_what_has_no_bytes_of_its_own_is_told_so(sample: Store, ref: str) -> None:
    one_error_line(ctx("cat", ref, cwd=sample.folder), 2, "reference_not_an_object")


def forms(digits: str) -> dict[str, str]:
    """Every way to write a reference to one pack."""
    return {
        "digits": digits,
        "upper-case": digits.upper(),
        "four": digits[:4],
        "four-upper-case": digits[:4].upper(),
        "all-but-one": digits[:63],
        "uri": f"ctx://{digits}",
        "uri-upper-case": f"ctx://{digits.upper()}",
        "uri-short": f"ctx://{digits[:6]}",
        "uri-digest": f"ctx://sha256:{digits}",
        "uri-digest-upper-case": f"ctx://sha256:{digits.upper()}",
        "uri-digest-short": f"ctx://sha256:{digits[:6]}",
        "digest": f"sha256:{digits}",
        "digest-upper-case": f"sha256:{digits.upper()}",
    }


@cases("form", forms("0" * 64))
def test_every_form_names_the_same_pack(sample: Store, form: str) -> None:
    result = ctx("show", forms(sample.pack)[form], "--json", cwd=sample.folder)
    assert (result.status, msgspec.json.decode(result.raw)["hash"]) == (0, f"sha256:{sample.pack}")


@cases("verb", ["show", "cat", "log --parent", "verify", "replay --recorded", "diff PACK"])
def test_every_verb_understands_them(sample: Store, verb: str) -> None:
    words = verb.replace("PACK", sample.pack).split()
    usual = ctx(*words, sample.pack, "--json", cwd=sample.folder)
    assert usual.status == 0
    for form in ("uri-digest-upper-case", "four-upper-case", "digest-upper-case"):
        assert ctx(*words, forms(sample.pack)[form], "--json", cwd=sample.folder) == usual


@cases(
    ("ref", "code"),
    [
        ("", "reference_invalid"),
        ("abc", "reference_invalid"),
        ("0" * 65, "reference_invalid"),
        ("ctx://", "reference_invalid"),
        ("ctx://abc", "reference_invalid"),
        ("ctx://ctx://abcdef", "reference_invalid"),
        ("ctx://sha256:", "reference_invalid"),
        ("sha256:", "reference_invalid"),
        ("sha256:abcdef", "reference_invalid"),
        ("sha256:" + "0" * 65, "id_invalid"),
        ("sha256:" + "g" * 64, "id_invalid"),
        ("zzzz", "reference_invalid"),
        ("abcd ", "reference_invalid"),
        ("\u0661\u0661\u0661\u0661", "reference_invalid"),
        ("abcdef:steps/0", "reference_not_an_execution_pack"),
        ("run_0123456789abcdef", "reference_not_an_execution_pack"),
        ("a/path.json", "reference_not_an_execution_pack"),
    ],
)
def test_what_is_no_reference_to_a_pack_is_told_with_a_way_out(sample: Store, ref: str, code: str) -> None:
    assert one_error_line(ctx("show", ref, cwd=sample.folder), 2, code).endswith(")\n")


def test_a_prefix_that_fits_several_packs_lists_them(tmp_path: Path) -> None:
    other = ReferenceStore(tmp_path)
    names = sorted("abcd" + f"{n:x}" * 60 for n in range(12))
    for name in names:
        (other.path / "packs" / name).write_text(f"sha256:{name}", encoding="ascii")
    result = ctx("--json", "show", "ABCD", cwd=tmp_path)
    error = msgspec.json.decode(result.err)["error"]
    assert (result.status, error["code"]) == (14, "reference_ambiguous")
    assert error["details"] == {"candidates": [f"ctx://{name}" for name in names[:10]], "more": True}
    message = one_error_line(ctx("show", "abcd0", cwd=tmp_path), 13, "manifest_missing")
    assert f"ctx://{names[0][:12]}: it is registered, but its manifest is missing (" in message


@pytest.mark.parametrize("junk", ["README", "{pack}.tmp", "{pack}0", "{short}", "{upper}", ".{pack}"])
def test_junk_among_the_packs_is_no_pack_and_makes_nothing_ambiguous(tmp_path: Path, junk: str) -> None:
    other = ReferenceStore(tmp_path)
    pack = other.pack(outputs={"report.md": REPORT})
    name = junk.format(pack=pack, short=pack[:20], upper=pack[:4] + "A" * 60)
    (other.path / "packs" / name).write_bytes(b"junk")
    assert ctx("show", pack[:4], cwd=tmp_path).status == 0
    assert ctx("log", cwd=tmp_path).out.count("\n") == 1
    assert (other.path / "packs" / name).exists()


# --- a parent ---------------------------------------------------------------------------------------------------------

LOG = b'{"model": {"identifier": "m"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}'


@pytest.mark.parametrize(
    ("harm", "status", "code"), [("tampered", 11, "object_corrupt"), ("gone", 13, "manifest_missing")]
)
def test_a_run_cannot_be_forked_from_a_pack_that_is_not_whole(
    tmp_path: Path, harm: str, status: int, code: str
) -> None:
    other = ReferenceStore(tmp_path)
    pack = other.pack(outputs={"report.md": REPORT})
    place = other.path / "objects" / pack[:2] / pack[2:]
    place.chmod(0o644)
    if harm == "gone":
        place.unlink()
    else:
        place.write_bytes(place.read_bytes().replace(b"model-x", b"model-y"))
    assert ctx("init", cwd=tmp_path).status == 0
    for ref in (pack, pack[:6], f"sha256:{pack.upper()}"):
        one_error_line(ctx("pack", "-", "--parent", ref, cwd=tmp_path, input=LOG), status, code)
    one_error_line(ctx("pack", "-", "--parent", "0" * 64, cwd=tmp_path, input=LOG), 13, "execution_pack_not_found")
    assert len(list((other.path / "packs").iterdir())) == 1


@pytest.mark.parametrize("root", ["nowhere", "file", ""])
def test_a_root_that_is_no_folder_is_refused_before_anything_is_read(tmp_path: Path, root: str) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    (tmp_path / "file").write_bytes(b"")
    message = one_error_line(ctx("pack", "-", "--root", root, cwd=tmp_path, input=LOG), 2, "usage")
    assert f"--root: not a folder: {root!r}" in message


def test_a_tool_with_a_line_break_in_its_name_is_one_tool(tmp_path: Path) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    log = msgspec.json.decode(LOG)
    for tools in (["a\nb"], ["a", "c\0d", '"']):
        log["steps"] = [{"type": "tool_call", "tool": tool} for tool in tools]
        assert ctx("pack", "-", cwd=tmp_path, input=msgspec.json.encode(log)).status == 0

    def tool_lists(*args: str) -> list[list[str]]:
        return [row["tools"] for row in msgspec.json.decode(ctx("log", "--json", *args, cwd=tmp_path).raw)["packs"]]

    assert tool_lists("--tool", "a\nb") == [["a\nb"]]
    assert tool_lists("--tool", "a") == [['"', "a", "c\0d"]]
    assert tool_lists("--tool", "b") == []
