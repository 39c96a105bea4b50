"""Two programs, one store: we read what the reference stored, and it accepts what we store.

The reader here follows the rules of the reference program without using our code: closed over its own fields, open to
unknown ones, strict about types, as Go decodes into structs.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import ctx

REPORT = b"paid\n"
AWKWARD: dict[str, object] = {
    "<html> & more": "\u2028 \u007f / \u00e9 \U0001f600 \b\f\u0001",
    "numbers": [-0.0, 1.0, 1e21, 1e-7, 123456789012345678901.0, 9007199254740993, 5e-324],
    "\ufb33": 1,
    "\U0001f600": 2,
    "nothing": None,
}


# --- what they stored -------------------------------------------------------------------------------------------------


@pytest.fixture
def theirs(tmp_path: Path) -> ReferenceStore:
    return ReferenceStore(tmp_path)


def stored(other: ReferenceStore, digits: str) -> bytes:
    return (other.path / "objects" / digits[:2] / digits[2:]).read_bytes()


def test_their_bytes_are_those_that_were_observed(theirs: ReferenceStore) -> None:
    raw = stored(theirs, theirs.pack(outputs={"report.md": REPORT}, parameters=AWKWARD)).decode()
    assert re.findall(r'"(\w+)":', raw)[:4] == ["created", "environment", "os", "runtime"]
    assert '"\\u003chtml\\u003e \\u0026 more":"\\u2028 \u007f / \u00e9 \U0001f600 \\b\\f\\u0001"' in raw
    assert '"numbers":[-0,1,1e+21,1e-7,123456789012345680000,9007199254740992,5e-324]' in raw
    assert raw.index('"\ufb33"') < raw.index('"\U0001f600"')  # by code points, not by UTF-16
    fork = stored(theirs, theirs.finalized_fork("0" * 64, outputs={"report.md": REPORT})).decode()
    assert fork.startswith('{"version":"0.1","hash":"","created":')
    assert fork.endswith(f'"parent":"sha256:{"0" * 64}"}}')


@pytest.mark.parametrize("kind", ["awkward", "fork"])
def test_every_verb_takes_their_packs_as_they_are(theirs: ReferenceStore, tmp_path: Path, kind: str) -> None:
    plain = theirs.pack(outputs={"report.md": REPORT})
    pack = (
        theirs.pack(outputs={"report.md": REPORT}, parameters=AWKWARD, prompt=b"Be bold.")
        if kind == "awkward"
        else theirs.finalized_fork(plain, outputs={"report.md": b"changed\n"})
    )
    before = stored(theirs, pack)
    (tmp_path / "elsewhere").mkdir()
    assert ctx("init", "elsewhere", cwd=tmp_path).status == 0
    assert ctx("init", cwd=tmp_path).status == 0
    for line in (
        ["show", pack],
        ["show", pack, "--steps", "--content"],
        ["cat", f"{pack}:outputs/report.md"],
        ["verify", pack],
        ["replay", pack, "--recorded"],
        ["diff", plain, pack],
        ["fork", pack],
        ["export", pack, "-o", "one.tar"],
        ["fsck"],
        ["fsck", "--rebuild"],
    ):
        result = ctx(*line, cwd=tmp_path)
        assert (result.status, result.err) == (0, ""), line
    assert ctx("cat", pack, cwd=tmp_path).raw == before
    assert pack[:12] in ctx("log", cwd=tmp_path).out
    manifest = json.loads(ctx("show", pack, "--json", cwd=tmp_path).out)
    assert manifest == {**json.loads(before), "hash": f"sha256:{pack}"}
    assert ctx("import", "../one.tar", cwd=tmp_path / "elsewhere").status == 0
    assert ctx("cat", pack, cwd=tmp_path / "elsewhere").raw == before
    assert stored(theirs, pack) == before


def test_what_stands_in_a_reference_s_place_and_is_none_is_refused_there_and_upper_case_is_one(
    theirs: ReferenceStore, tmp_path: Path
) -> None:
    raw = stored(theirs, theirs.pack(outputs={"up.md": REPORT, "junk.md": b"junk"}))
    up, junk = hashlib.sha256(REPORT).hexdigest(), hashlib.sha256(b"junk").hexdigest()
    data = raw.replace(up.encode(), up.upper().encode()).replace(f"sha256:{junk}".encode(), b"elsewhere")
    pack = theirs.blob(data).removeprefix("sha256:")
    (theirs.path / "packs" / pack).write_text(f"sha256:{pack}", encoding="ascii")
    assert ctx("init", cwd=tmp_path).status == 0
    assert ctx("cat", f"{pack}:outputs/up.md", cwd=tmp_path).raw == REPORT
    (line,) = [line for line in ctx("replay", pack, "--recorded", cwd=tmp_path).out.splitlines() if "up.md" in line]
    assert line.split() == ["✓", "outputs/up.md", "matched"]
    plain = theirs.pack(outputs={"up.md": REPORT, "junk.md": b"junk"})
    assert '"up.md"' not in ctx("diff", plain, pack, cwd=tmp_path).out
    (tmp_path / "up.md").write_bytes(REPORT)
    (tmp_path / "up.md.ctx.json").write_text(f'{{"context_pack": "{pack}"}}', encoding="ascii")
    assert ctx("verify", "./up.md", cwd=tmp_path).status == 0
    refused = ctx("cat", f"{pack}:outputs/junk.md", cwd=tmp_path)
    assert (refused.status, f"manifest_invalid: ctx://{pack}:outputs/junk.md: " in refused.err) == (10, True), refused
    assert ctx("verify", pack, cwd=tmp_path).status == 10


# --- what we store ----------------------------------------------------------------------------------------------------

FIELDS: dict[str, dict[str, type | None]] = {
    "model": {"identifier": str, "parameters": None},
    "prompts": {"role": str, "content_ref": str},
    "inputs": {"name": str, "content_ref": str, "size": int},
    "steps": {
        "index": int,
        "type": str,
        "tool": str,
        "parameters": None,
        "output_ref": str,
        "deterministic": bool,
        "timestamp": str,
    },
    "outputs": {"name": str, "content_ref": str},
    "environment": {"os": str, "runtime": str, "tool_versions": None},
}
LISTS = ("prompts", "inputs", "steps", "outputs")
TOP = ("created", "environment", "hash", "inputs", "model", "outputs", "prompts", "steps", "system_prompt", "version")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")


class TheirProgram:
    """How the reference program looks at a store: `show`, `diff` and `fork` load packs, `log` all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / ".ctx"

    def resolve(self, ref: str) -> str:
        """Strip the scheme; return a whole hash as it is, look a prefix up among the names in `packs/`."""
        ref = ref.removeprefix("ctx://").removeprefix("sha256:")
        if len(ref) == 64:
            return ref
        (name,) = [path.name for path in (self.path / "packs").iterdir() if path.name.startswith(ref)]
        return name

    def blob(self, ref: str) -> bytes:
        digits = ref.removeprefix("sha256:")
        assert ref.startswith("sha256:")
        assert re.fullmatch("[0-9a-f]{64}", digits)
        data = (self.path / "objects" / digits[:2] / digits[2:]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digits
        return data

    def load(self, ref: str) -> dict[str, Any]:
        """Decode a manifest as into structs: every field has its type, integers too; timestamps parse."""
        data = self.blob(f"sha256:{self.resolve(ref)}")
        manifest: dict[str, Any] = json.loads(data)
        assert all(type(manifest[key]) is str for key in ("version", "hash", "system_prompt", "created"))
        assert type(manifest.get("parent", "")) is str
        for name, fields in FIELDS.items():
            for record in manifest[name] if name in LISTS else [manifest[name]]:
                assert set(record) == set(fields)
                assert all(type(record[key]) is kind for key, kind in fields.items() if kind)
                assert all(isinstance(record[key], dict | None) for key, kind in fields.items() if kind is None)
        moments = [manifest["created"], *(step["timestamp"] for step in manifest["steps"])]
        assert all(MOMENT.fullmatch(moment) for moment in moments)
        return manifest

    def log(self) -> list[str]:
        packs = [(self.load(path.name), path.name) for path in (self.path / "packs").iterdir()]
        rows = sorted(((pack["created"], name, pack) for pack, name in packs), reverse=True)
        return [
            f"{name[:12]}  {created[:19].replace('T', ' ')}  {pack['model']['identifier']}  {len(pack['steps'])} steps"
            for created, name, pack in rows
        ]

    def verify(self, artifact: str) -> str:
        sidecar = json.loads((self.folder / f"{artifact}.ctx.json").read_bytes())
        assert type(sidecar["context_pack"]) is str
        assert all(type(entry) is str for key in ("inputs", "tools") for entry in sidecar[key])
        actual = "sha256:" + hashlib.sha256((self.folder / artifact).read_bytes()).hexdigest()
        for output in self.load(sidecar["context_pack"])["outputs"]:
            if output["name"] == Path(artifact).name:
                return "verified" if output["content_ref"] == actual else "modified"
        return ""


LOG: dict[str, Any] = {
    "model": {"identifier": "model-x", "parameters": {"temperature": 0.7, "top_p": 1.0, "big": 1e21}},
    "system_prompt": "You are careful.",
    "prompts": [{"role": "user", "content": "Refund <order> & more"}],
    "inputs": [{"name": "order.json", "content_base64": "AP8="}, {"name": "empty"}],
    "steps": [
        {"type": "tool_call", "tool": "read_file", "index": 9007199254740991, "timestamp": "2026-05-04T11:31:41+02:00"},
        {"type": "reasoning", "output": "thought", "timestamp": "2026-05-04T09:31:42.123456789Z"},
    ],
    "outputs": [{"name": "report.md", "content": "paid\n"}],
    "environment": {"os": "linux", "runtime": "python3.11"},
}


@pytest.fixture
def ours(tmp_path: Path) -> TheirProgram:
    """A store of ours, as the other program sees it: a run, its fork, and a minimal run."""
    assert ctx("init", cwd=tmp_path).status == 0
    (tmp_path / "report.md").write_bytes(REPORT)
    (tmp_path / "run.json").write_text(json.dumps(LOG), encoding="utf-8")
    assert ctx("pack", "run.json", "--sidecars", cwd=tmp_path).status == 0
    least = {"model": {"identifier": "least"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}
    assert ctx("pack", "-", cwd=tmp_path, input=json.dumps(least).encode()).status == 0
    draft = Path(json.loads(ctx("fork", "--json", pack_of(tmp_path, "model-x"), cwd=tmp_path).out)["draft"])
    draft.write_bytes(draft.read_bytes().replace(b"model-x", b"model-y"))
    assert ctx("finalize", str(draft), cwd=tmp_path).status == 0
    return TheirProgram(tmp_path)


def pack_of(folder: Path, model: str) -> str:
    (row,) = json.loads(ctx("log", "--json", "--model", model, cwd=folder).out)["packs"]
    ref: str = row["ref"]
    return ref


@pytest.mark.parametrize("model", ["model-x", "model-y", "least"])
def test_a_manifest_of_ours_has_their_fields_and_their_types(ours: TheirProgram, model: str) -> None:
    ref = pack_of(ours.folder, model)
    manifest = ours.load(ref)
    assert ours.load(ref.removeprefix("ctx://")) == ours.load(ref[:16]) == manifest
    assert tuple(sorted(set(manifest) - {"parent"})) == TOP
    assert manifest["hash"] == ""
    assert ("parent" in manifest) == (model == "model-y")
    assert all(isinstance(manifest[name], list) for name in LISTS)
    assert all(step["output_ref"] == "" or ours.blob(step["output_ref"]) for step in manifest["steps"])
    contents = [part["content_ref"] for name in ("prompts", "inputs", "outputs") for part in manifest[name]]
    for ref in (manifest["system_prompt"], *contents, *([manifest["parent"]] if "parent" in manifest else [])):
        ours.blob(ref)
    assert [item["size"] for item in manifest["inputs"]] == [
        len(ours.blob(item["content_ref"])) for item in manifest["inputs"]
    ]


def test_their_log_lists_our_packs(ours: TheirProgram) -> None:
    lines = ours.log()
    assert [line.split("  ", 1)[1] for line in lines[1:]] == [
        "2026-05-04 09:31:42  model-x  2 steps",
        "0001-01-01 00:00:00  least  0 steps",
    ]
    assert lines[0].endswith("  model-y  2 steps")


def test_their_verify_takes_our_sidecars(ours: TheirProgram) -> None:
    assert ours.verify("report.md") == "verified"
    (ours.folder / "report.md").write_bytes(b"stolen\n")
    assert ours.verify("report.md") == "modified"


def test_a_store_that_both_write_to_stays_sound(ours: TheirProgram, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = ReferenceStore(tmp_path / "other")
    pack = other.pack(outputs={"report.md": REPORT}, parameters=AWKWARD)
    for path in other.path.rglob("*"):
        place = ours.path / path.relative_to(other.path)
        if path.is_file() and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            path.rename(place)
    assert ctx("show", pack, cwd=ours.folder).status == 0
    assert len(ours.log()) == 4
    assert ctx("fsck", cwd=ours.folder).status == 0
