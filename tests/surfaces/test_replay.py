"""`ctx replay`: its output, its statuses, and that it changes nothing."""

import sys
import threading
import tomllib
from collections.abc import Mapping
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import msgspec
import pytest

from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.audit.replay import ReplayedPart, RunDrift
from contextplane.model.ids import Digest
from contextplane.model.value import Document
from tests.spec.manifest import ROOT
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import Result, ctx

ORDER = "order 881\n"
READ = {"type": "tool_call", "tool": "read_file", "parameters": {"path": "order.txt"}, "output": ORDER}
PLUGIN = """
from pathlib import Path
if Path("mark").exists():
    raise RuntimeError("it was loaded")
def shout(parameters, workspace):
    return parameters["text"].upper() + " in " + Path(workspace).name
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    init(Settings(cwd=str(folder)), ".")
    (folder / "order.txt").write_text(ORDER)
    return folder


def packed(folder: Path, *steps: Mapping[str, object], versions: Mapping[str, str] | None = None) -> str:
    log = {
        "model": {"identifier": "m-1"},
        "system_prompt": "You are careful.",
        "inputs": [{"name": "order.txt", "content": "as it was given"}],
        "steps": [{"deterministic": True, **step} for step in steps],
        "outputs": [{"name": "report.md", "content": "done"}],
        "environment": {"os": "plan9", "runtime": "go1.22", "tool_versions": versions},
    }
    with open_platform(Settings(cwd=str(folder))) as platform:
        return pack_log(platform, msgspec.json.encode(log), root=str(folder)).digest.hex


def blob(folder: Path, data: bytes) -> Path:
    digits = Digest.of(data).hex
    return folder / ".ctx" / "objects" / digits[:2] / digits[2:]


class Answer(Document, frozen=True):
    """The whole `--json` answer."""

    pack: str
    mode: str
    confinement: str | None
    fidelity: str
    parts: list[ReplayedPart]
    drift: list[RunDrift]


def json_answer(result: Result) -> Answer:
    assert result.err == ""
    return msgspec.json.decode(result.raw, type=Answer)


def test_a_run_is_replayed_line_by_line_for_people(folder: Path) -> None:
    pack = packed(
        folder,
        READ,
        {"type": "reasoning", "output": "hm"},
        {**READ, "output": "another"},
        {**READ, "output": "another", "deterministic": False},
        {**READ, "tool": "bash\x1b[2J"},
        {**READ, "parameters": {"path": "../../secret"}},
        versions={"read_file": "1", "claude-code": "1.0.16"},
    )
    result = ctx("replay", pack[:12], cwd=folder)
    assert (result.status, result.err) == (1, "")
    lines = result.out.splitlines()
    assert lines[:9] == [
        f"Replay of ctx://{pack}",
        "  ✓ steps/0  read_file    matched",
        "  - steps/1  reasoning    skipped: nothing to run",
        "  ≠ steps/2  read_file    diverged",
        "      @@ -1 +1 @@",
        "      -another",
        "      \\ No newline at end of file",
        "      +order 881",
        "  ≈ steps/3  read_file    diverged (expected: non-deterministic)",
    ]
    assert lines[9].startswith("  ✗ steps/4  bash\\x1b[2J  failed: no tool ")
    assert lines[10].startswith("  ✗ steps/5  read_file    failed: ../../secret: leads out of its folder")
    assert lines[11] in {"sandbox: kernel", "sandbox: python"}
    assert [lines[12], lines[13], lines[15]] == [
        "Drift:",
        f"  os was plan9, is {sys.platform}",
        "  version of claude-code was 1.0.16, is unknown",
    ]
    assert lines[-1].endswith("2 failed, 1 skipped; fidelity: failed")


@pytest.mark.parametrize(
    ("output", "path", "fidelity", "status", "reference"),
    [
        (ORDER, "order.txt", "exact", 0, 0),
        ("another", "order.txt", "degraded", 12, 1),
        (ORDER, "missing.txt", "failed", 1, 2),
    ],
)
def test_the_status_says_how_faithful_it_was_also_in_the_words_of_the_reference(  # noqa: PLR0913  a table's columns
    folder: Path, *, output: str, path: str, fidelity: str, status: int, reference: int
) -> None:
    pack = packed(folder, {**READ, "parameters": {"path": path}, "output": output})
    result = ctx("replay", pack, "--json", cwd=folder)
    assert (result.status, json_answer(result).fidelity) == (status, fidelity)
    quiet = ctx("replay", f"ctx://{pack}", "--reference-exit", "--quiet", cwd=folder)
    assert (quiet.status, quiet.err) == (reference, "")
    assert bool(quiet.out) == (fidelity != "exact")


def test_a_machine_gets_every_part_and_every_drift(folder: Path) -> None:
    pack = packed(folder, READ)
    blob(folder, b"as it was given").unlink()
    answer = json_answer(ctx("replay", pack, "--json", cwd=folder))
    assert (answer.pack, answer.mode, answer.fidelity) == (f"ctx://{pack}", "live", "exact")
    (part,) = answer.parts
    assert (part.part, part.outcome, part.recorded) == ("steps/0", "matched", part.replayed)
    assert [drift.kind for drift in answer.drift] == ["environment", "environment", "missing_input"]


def test_inputs_that_are_gone_or_changed_are_told_in_either_form_and_change_no_status(folder: Path) -> None:
    pack = packed(folder, READ)
    blob(folder, b"as it was given").chmod(0o644)
    blob(folder, b"as it was given").write_bytes(b"as it is")
    for args in ((), ("--recorded",)):
        changed = ctx("replay", pack, *args, cwd=folder)
        assert (changed.status, "\n  input order.txt was tampered with\n" in changed.out) == (0, True)
        (drift,) = [
            drift
            for drift in json_answer(ctx("replay", pack, *args, "--json", cwd=folder)).drift
            if drift.what == "order.txt"
        ]
        assert (drift.kind, drift.damage) == ("damaged_input", "tampered")
    blob(folder, b"as it was given").unlink()
    for args in ((), ("--recorded",)):
        gone = ctx("replay", pack, *args, cwd=folder)
        assert (gone.status, "\n  input order.txt is missing\n" in gone.out) == (0, True)


def test_the_recorded_form_needs_no_tool_and_finds_damage(folder: Path) -> None:
    pack = packed(folder, {**READ, "tool": "bash"})
    answer = json_answer(ctx("replay", pack, "--recorded", "--json", cwd=folder))
    assert (answer.mode, answer.fidelity, answer.drift) == ("recorded", "exact", [])
    assert [part.part for part in answer.parts] == ["steps/0", "outputs/report.md"]
    blob(folder, b"done").chmod(0o644)
    blob(folder, b"done").write_bytes(b"DONE")
    result = ctx("replay", pack, "--recorded", cwd=folder)
    assert result.status == 1
    assert result.out.splitlines()[1:3] == [
        "  ✓ steps/0            bash  matched",
        "  ✗ outputs/report.md        failed: what was recorded was tampered with",
    ]
    part = json_answer(ctx("replay", pack, "--recorded", "--json", cwd=folder)).parts[1]
    assert (part.code, part.damage) == ("object_corrupt", "tampered")


def test_columns_stand_below_each_other_whatever_is_in_them(folder: Path) -> None:
    steps = [{**READ, "tool": "t" * (n + 1), "parameters": None} for n in range(11)]
    lines = ctx("replay", packed(folder, *steps), "--recorded", cwd=folder).out.splitlines()[1:-1]
    assert len({line.index("matched") for line in lines}) == 1
    long = ctx("replay", packed(folder, {**READ, "tool": "x" * 90}, READ), "--recorded", cwd=folder).out.splitlines()
    assert long[2].index("matched") < 70


def test_the_workspace_is_the_folder_of_the_store_or_the_one_that_is_named(folder: Path) -> None:
    pack = packed(folder, READ)
    (folder / "deep").mkdir()
    assert ctx("replay", pack, cwd=folder / "deep").status == 0
    assert ctx("replay", pack, "--root", ".", cwd=folder / "deep").status == 1
    (folder / "deep" / "order.txt").write_text(ORDER)
    assert ctx("replay", pack, "--root", ".", cwd=folder / "deep").status == 0
    for root in ("nowhere", "order.txt", "", "a\nb"):
        missing = ctx("replay", pack, "--root", root, cwd=folder)
        assert (missing.status, missing.raw, missing.err.count("\n")) == (2, b"", 1)
        assert "not a folder" in missing.err


@pytest.mark.parametrize("form", ["{}", "ctx://{}", "sha256:{}", "ctx://sha256:{}", "{:.8}", "ctx://{:.12}"])
def test_a_pack_is_named_in_any_form_and_case(folder: Path, form: str) -> None:
    pack = packed(folder, READ)
    for digits in (pack, pack.upper()):
        result = ctx("replay", form.format(digits), cwd=folder)
        assert (result.status, result.out.splitlines()[0]) == (0, f"Replay of ctx://{pack}")


def test_the_store_is_no_part_of_the_workspace_wherever_it_lies(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    (tmp_path / ".ctx").rename(tmp_path / "kept")
    env = {"CTX_DIR": str(tmp_path / "kept")}
    (tmp_path / "log.json").write_bytes(
        msgspec.json.encode(
            {
                "model": {"identifier": "m-1"},
                "system_prompt": "You are careful.",
                "steps": [
                    {**READ, "parameters": {"path": "kept/config.json"}},
                    {"type": "tool_call", "tool": "list_files", "output": "log.json\n"},
                ],
                "environment": {"os": "linux", "runtime": "py3.11"},
            }
        )
    )
    pack = ctx("pack", "log.json", cwd=tmp_path, env=env).out.strip()
    answer = json_answer(ctx("replay", pack, "--json", cwd=tmp_path, env=env))
    assert [(part.outcome, part.code) for part in answer.parts] == [("failed", "tool_refused"), ("matched", "")]


def test_a_replay_leaves_the_workspace_and_the_store_as_they_were(folder: Path) -> None:
    (folder / "work881.py").write_text("def twice(n):\n    return str(2 * n)\n")
    function = {"function": "work881:twice", "arguments": {"n": 4}}
    pack = packed(folder, READ, {**READ, "tool": "python", "parameters": function, "output": "8"})
    before = sorted(folder.rglob("*"))
    assert ctx("replay", pack, cwd=folder).status == 1  # no module is allowed unless it is named
    assert ctx("replay", pack, "--allow-python", "work881", cwd=folder).status == 0
    assert [path for path in sorted(folder.rglob("*")) if not path.name.startswith("catalog.db")] == [
        path for path in before if not path.name.startswith("catalog.db")
    ]


def test_the_network_is_closed_unless_a_host_is_allowed(folder: Path) -> None:
    class Files(SimpleHTTPRequestHandler):
        def __init__(self, request: object, client: object, server: HTTPServer) -> None:
            super().__init__(request, client, server, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its form
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Files) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/order.txt"
        pack = packed(folder, {**READ, "tool": "http_get", "parameters": {"url": url}})
        closed = json_answer(ctx("replay", pack, "--json", cwd=folder))
        allowed = ctx("replay", pack, "--allow-host", "127.0.0.1", cwd=folder)
        server.shutdown()
        thread.join()
    assert closed.parts[0].code == "tool_refused"
    assert allowed.status == 0


def installed(site: Path, name: str, version: str, points: str) -> None:
    """Write the metadata of an installed package, without its modules."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(points)


def test_the_plug_in_that_the_page_shows_is_a_tool(folder: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
    project, code = (page.partition(f"```{kind}\n")[2].partition("```")[0] for kind in ("toml", "python"))
    package = tomllib.loads(project)["project"]
    ((group, points),) = package["entry-points"].items()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "line_tools.py").write_text(code)
    entry_points = "".join(f"{name} = {place}\n" for name, place in points.items())
    installed(tmp_path / "site", package["name"], package["version"], f"[{group}]\n{entry_points}")
    step = {"type": "tool_call", "tool": "count_lines", "parameters": {"path": "order.txt"}, "output": "1"}
    pack = packed(folder, step, versions={"count_lines": "1.0"})
    answer = json_answer(
        ctx("replay", pack, "--trust-tools", "--json", cwd=folder, env={"PYTHONPATH": str(tmp_path / "site")})
    )
    assert (answer.fidelity, [drift.kind for drift in answer.drift]) == ("exact", ["environment"] * 2)


def test_code_of_others_finds_its_temporary_folder_where_the_help_says(folder: Path) -> None:
    (folder / "looking.py").write_text(
        "import os, tempfile\n"
        "def places():\n"
        "    return sorted({os.environ['HOME'], os.environ['TMPDIR'], tempfile.gettempdir()}) == [os.environ['HOME']]\n"
    )
    step = {"type": "tool_call", "tool": "python", "parameters": {"function": "looking:places"}, "output": "true"}
    result = ctx("replay", packed(folder, step), "--allow-python", "looking", "--trust-tools", cwd=folder)
    assert (result.status, result.err) == (0, "")
    assert "HOME and TMPDIR" in " ".join(ctx("replay", "--help", cwd=folder).out.split())


def test_a_plug_in_is_a_tool_of_its_package_and_is_loaded_only_when_a_step_names_it(
    folder: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    installed(site, "shouting", "2.5", "[contextplane.tools]\nshout = shouting:shout\n")
    (site / "shouting.py").write_text(PLUGIN)
    env = {"PYTHONPATH": str(site)}
    (folder / "mark").touch()
    assert ctx("replay", packed(folder, READ), cwd=folder, env=env).status == 0
    shout = {"type": "tool_call", "tool": "shout", "parameters": {"text": "hey"}, "output": "HEY in project"}
    pack = packed(folder, shout, {**shout, "parameters": {}}, versions={"shout": "2.4"})
    loaded = json_answer(ctx("replay", pack, "--json", cwd=folder, env=env))
    assert [part.why for part in loaded.parts] == ["RuntimeError: it was loaded"] * 2
    (folder / "mark").unlink()
    answer = json_answer(ctx("replay", pack, "--json", cwd=folder, env=env))
    assert [part.outcome for part in answer.parts] == ["matched", "failed"]
    assert answer.drift[-1] == RunDrift(kind="tool_version", what="shout", recorded="2.4", now="2.5")
    assert json_answer(ctx("replay", pack, "--json", cwd=folder)).parts[0].code == "tool_unknown"


def test_thousands_of_steps_are_replayed(folder: Path) -> None:
    pack = packed(folder, *[{**READ, "index": n} for n in range(2000)])
    result = ctx("replay", pack, cwd=folder)
    assert (result.status, result.out.splitlines()[-1]) == (0, "2,000 matched; fidelity: exact")


def test_a_step_that_hangs_is_ended_at_its_time_limit(folder: Path) -> None:
    (folder / "work881.py").write_text("def hang():\n    while True:\n        pass\n")
    hang = {**READ, "tool": "python", "parameters": {"function": "work881:hang"}}
    pack = packed(folder, hang, READ)
    result = ctx("replay", pack, "--allow-python", "work881", "--timeout", "5", "--json", cwd=folder)
    assert [(part.outcome, part.code) for part in json_answer(result).parts] == [
        ("failed", "tool_timed_out"),
        ("matched", ""),
    ]


def test_a_pack_of_the_reference_program_is_replayed(tmp_path: Path) -> None:
    pack = ReferenceStore(tmp_path).pack(outputs={"report.md": b"done"}, steps=2)
    (tmp_path / "order.txt").write_bytes(b"output 1")
    answer = json_answer(ctx("replay", pack, "--json", cwd=tmp_path))
    # The first step gave nothing then; what it gives now is something else.
    assert [part.outcome for part in answer.parts] == ["diverged", "matched"]
    (tmp_path / "order.txt").write_bytes(b"")
    answer = json_answer(ctx("replay", pack, "--json", cwd=tmp_path))
    assert [part.outcome for part in answer.parts] == ["matched", "diverged"]


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["deadbeef"], 13),
        (["order.txt"], 2),
        (["deadbeef", "--timeout", "0"], 2),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(folder: Path, args: list[str], status: int) -> None:
    result = ctx("replay", *args, cwd=folder)
    assert (result.status, result.raw, result.err.count("\n")) == (status, b"", 1)
