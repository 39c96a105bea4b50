"""`ctx show`: what a run consists of, how long it took, and what is wrong with its contents."""

import base64
import json
import os
import pty
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from tests.patience import PATIENCE
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import COMMAND, child_environment, ctx

LOG: dict[str, Any] = {
    "model": {"identifier": "model-x"},
    "system_prompt": "You are careful.",
    "prompts": [{"role": "user", "content": "Refund order 881"}],
    "inputs": [{"name": "order.json", "content": "the order"}],
    "steps": [
        {
            "index": 4,
            "type": "tool_call",
            "tool": "read_file",
            "parameters": {"path": "order.json"},
            "output": "what was read",
            "timestamp": "2026-05-04T09:31:41Z",
        },
        {"index": 1, "type": "reasoning", "output": "It was delivered.", "timestamp": "2026-05-04T09:31:42.5Z"},
    ],
    "outputs": [{"name": "report.md", "content": "# Refunded\n"}],
    "environment": {"os": "linux", "runtime": "python3.11"},
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    init(Settings(cwd=str(tmp_path)), ".")
    return tmp_path


def packed(store: Path, parent: str = "", **fields: object) -> str:
    data = json.dumps({**LOG, **fields}).encode()
    with open_platform(Settings(cwd=str(store))) as platform:
        return pack_log(platform, data, root=str(store), parent=Digest(parent) if parent else None).digest.hex


def shown(store: Path, digits: str, *options: str) -> list[str]:
    result = ctx("show", digits, *options, cwd=store)
    assert (result.status, result.err) == (0, "")
    return result.out.splitlines()


def place(store: Path, content: bytes) -> Path:
    digits = Digest.of(content).hex
    return store / ".ctx" / "objects" / digits[:2] / digits[2:]


def tamper(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"Paid to somebody else.")


def at(*moments: str) -> list[dict[str, str]]:
    return [{"type": "reasoning", "output": f"{n}", "timestamp": moment} for n, moment in enumerate(moments)]


def test_a_summary_has_sizes_times_and_the_state_of_the_signature(store: Path) -> None:
    lines = shown(store, packed(store))
    assert max(map(len, lines)) < 80
    assert lines[4:] == [
        "Duration:  1.500s from the first step to the last",
        "Signature: none",
        "",
        "System prompt: 1c8263f8d319 (16 B)",
        "Prompt 0 (user): 16 B",
        "",
        "Inputs (1):",
        "  order.json (9 B)",
        "",
        "Steps (2):",
        "  [0] tool_call read_file (non-deterministic, index 4) -> 13 B",
        "  [1] reasoning (non-deterministic) +1.500s -> 17 B",
        "",
        "Outputs (1):",
        "  report.md (11 B)",
        "",
        "Environment: linux / python3.11",
    ]


def test_steps_and_contents_are_shown_where_they_belong(store: Path) -> None:
    lines = shown(store, packed(store), "--steps", "--content")
    assert lines[7:25] == [
        "System prompt: 1c8263f8d319 (16 B)",
        "      You are careful.",
        "Prompt 0 (user): 16 B",
        "      Refund order 881",
        "",
        "Inputs (1):",
        "  order.json (9 B)",
        "      the order",
        "",
        "Steps (2):",
        "  [0] tool_call read_file (non-deterministic, index 4) -> 13 B",
        "      at 2026-05-04T09:31:41Z",
        '      {"path":"order.json"}',
        "      what was read",
        "  [1] reasoning (non-deterministic) +1.500s -> 17 B",
        "      at 2026-05-04T09:31:42.5Z",
        "      It was delivered.",
        "",
    ]


@pytest.mark.parametrize(
    ("moments", "duration", "since"),
    [
        (["2026-05-04T09:00:00Z", "2026-05-04T10:02:03.9Z"], "1h 02m 03s", "+1h 02m 03s"),
        (["2026-05-04T09:00:00Z", "2026-05-04T11:02:03+02:00"], "2m 03s", "+2m 03s"),
        (["2026-05-04T09:00:00Z", "2026-05-04T09:00:59.9999Z"], "59.999s", "+59.999s"),
        (["2026-05-04T09:00:00Z", "2026-05-04T08:00:00Z"], None, None),
        (["2026-05-04T09:00:00Z", "0001-01-01T00:00:00Z"], None, None),
        (["2026-05-04T09:00:00Z"], None, None),
        ([], None, None),
    ],
)
def test_durations_are_told_where_the_steps_tell_the_time(
    store: Path, moments: list[str], duration: str | None, since: str | None
) -> None:
    text = "\n".join(shown(store, packed(store, steps=at(*moments))))
    assert (f"Duration:  {duration} " in text) == ("Duration" in text) == (duration is not None)
    assert (f" {since} ->" in text) == (" +" in text) == (since is not None)


def test_a_duration_spans_steps_that_do_not_tell_the_time(store: Path) -> None:
    none, first, last = "0001-01-01T00:00:00Z", "2026-05-04T09:00:00Z", "2026-05-04T09:00:02Z"
    text = "\n".join(shown(store, packed(store, steps=at(none, first, none, last, none))))
    assert "Duration:  2.000s " in text
    assert " +" not in text


def test_the_line_of_parents_is_shown_and_that_it_goes_on(store: Path) -> None:
    line = [packed(store)]
    for n in range(21):
        line.append(packed(store, line[-1], system_prompt=f"{n}"))
    short = [digits[:12] for digits in reversed(line)]
    assert shown(store, line[1])[4] == f"Parent:    {short[-1]}"
    assert shown(store, line[3])[4] == f"Parent:    {short[-3]}, forked from {short[-2]}, forked from {short[-1]}"
    assert shown(store, line[4])[4:6] == [
        f"Parent:    {short[-4]}, forked from {short[-3]}, forked from {short[-2]},",
        f"           forked from {short[-1]}",
    ]
    for digits, parents, more in (
        (line[-2], short[2:], ""),
        (line[-1], short[1:21], f", forked from ... ('ctx log {short[0]}' lists them all)"),
    ):
        lines = shown(store, digits)
        assert max(map(len, lines)) <= 80
        block = lines[4 : lines.index("Duration:  1.500s from the first step to the last")]
        assert " ".join(" ".join(block).split()) == "Parent: " + ", forked from ".join(parents) + more
    tamper(store / ".ctx" / "objects" / line[0][:2] / line[0][2:])
    assert f"Parent:    {short[-1]} (tampered with)" in shown(store, line[1])
    assert f"Parent:    {short[-2]}, forked from {short[-1]} (tampered with)" in shown(store, line[2])


@pytest.mark.parametrize(
    ("parent", "text"),
    [
        ("ab" * 32, "abababababab (not in this store)"),
        ("short", "sha256:short (not a reference)"),
    ],
)
def test_a_parent_that_is_none_is_told_as_what_it_is(tmp_path: Path, parent: str, text: str) -> None:
    digits = ReferenceStore(tmp_path).pack(outputs={}, parent=parent)
    ctx("init", cwd=tmp_path)
    assert f"Parent:    {text}" in shown(tmp_path, digits)


def test_a_parent_that_was_here_is_told_apart_from_one_that_never_was(tmp_path: Path) -> None:
    other = ReferenceStore(tmp_path)
    first = other.pack(outputs={})
    junk = other.blob(b"junk").removeprefix("sha256:")
    (other.path / "packs" / junk).write_text(f"sha256:{junk}", encoding="ascii")
    forks = {parent: other.pack(outputs={}, parent=parent) for parent in (first, junk)}
    ctx("init", cwd=tmp_path)
    assert f"Parent:    {first[:12]}" in shown(tmp_path, forks[first])
    (other.path / "objects" / first[:2] / first[2:]).unlink()
    assert f"Parent:    {first[:12]} (missing)" in shown(tmp_path, forks[first])
    assert f"Parent:    {junk[:12]} (not a manifest)" in shown(tmp_path, forks[junk])


def test_the_parameters_of_the_model_are_shown(store: Path) -> None:
    model = {"identifier": "m", "parameters": {"top_p": 1.0, "stop": ["\x1b[2J"], "temperature": 0.7}}
    lines = shown(store, packed(store, model=model))
    assert lines[lines.index("Model parameters:") :][:4] == [
        "Model parameters:",
        '  stop: ["\\u001b[2J"]',
        "  temperature: 0.7",
        "  top_p: 1",
    ]


def test_contents_are_not_part_of_the_answer_for_machines_and_asking_for_them_is_refused(store: Path) -> None:
    digits = packed(store)
    result = ctx("show", digits, "--json", "--content", cwd=store)
    assert (result.status, result.out) == (2, "")
    assert "'ctx cat REF:PART' writes one" in result.err
    assert ctx("show", digits, "--json", "--steps", cwd=store).out == ctx("show", digits, "--json", cwd=store).out


def test_what_was_tampered_with_or_is_missing_is_named_so_everywhere(store: Path) -> None:
    digits = packed(store)
    contents = [b"You are careful.", b"Refund order 881", b"the order", b"what was read", b"# Refunded\n"]
    for content in contents:
        tamper(place(store, content))
    text = "\n".join(shown(store, digits))
    assert text.count("tampered with") == len(contents)
    text = "\n".join(shown(store, digits, "--content"))
    assert text.count("\n      [tampered with]\n") == len(contents)
    assert "somebody" not in text
    for content in contents:
        place(store, content).unlink()
    lines = shown(store, digits)
    assert "System prompt: 1c8263f8d319 (missing)" in lines
    assert "Prompt 0 (user): missing" in lines
    assert "  order.json (missing)" in lines
    assert "  [0] tool_call read_file (non-deterministic, index 4) -> missing" in lines
    assert "  report.md (missing)" in lines
    text = "\n".join(shown(store, digits, "--content"))
    assert text.count("\n      [missing]\n") == len(contents)


def test_a_large_content_is_looked_at_when_it_is_shown(store: Path) -> None:
    data = b"line\n" * (2 << 20)
    (store / "large.txt").write_bytes(data)
    digits = packed(store, outputs=[{"name": "large.txt", "path": "large.txt"}])
    tamper(place(store, data))
    place(store, data).write_bytes(b"l1ne\n" * (2 << 20))
    assert shown(store, digits)[-4:-2] == ["", "Not checked: 1 content; 'ctx verify' checks everything"]
    assert "      [tampered with]" in shown(store, digits, "--content")


def test_of_a_long_content_the_beginning_is_shown_and_how_much_more_there_is(store: Path) -> None:
    text = "\u00e9\U0001f600" * 3000
    lines = shown(store, packed(store, outputs=[{"name": "o", "content": text}]), "--content")
    start = lines.index("  o (17.6 KiB)")
    assert lines[start + 1 : start + 3] == ["      " + text[:4000], "      [... 5.9 KiB more]"]


@pytest.mark.parametrize("data", [b"\x00\xff", b"text\x00", b"\xc3"])
def test_what_is_not_text_is_told_by_its_size(store: Path, data: bytes) -> None:
    output = {"name": "o", "content_base64": base64.b64encode(data).decode()}
    assert f"      [{len(data)} B that are not text]" in shown(store, packed(store, outputs=[output]), "--content")


def test_what_contents_say_to_a_terminal_is_shown_and_not_sent(store: Path) -> None:
    content = "\x1b[31mred\ttab\nnext"
    digits = packed(store, outputs=[{"name": "\x1b[2J", "content": content}], prompts=[{"role": "\x07", "content": ""}])
    lines = shown(store, digits, "--content")
    assert lines[-5:-2] == ["  \\x1b[2J (17 B)", "      \\x1b[31mred\ttab", "      next"]
    assert "Prompt 0 (\\x07): 0 B" in lines


def test_a_pack_of_the_reference_program_is_shown(tmp_path: Path) -> None:
    digits = ReferenceStore(tmp_path).pack(outputs={"report.md": b"paid\n"}, steps=3)
    ctx("init", cwd=tmp_path)
    assert "  report.md (5 B)" in shown(tmp_path, digits)
    assert "      paid" in shown(tmp_path, digits, "--content")


# --- on a terminal ----------------------------------------------------------------------------------------------------


def on_terminal(*args: str, cwd: Path, env: Mapping[str, str]) -> str:
    """The output on a terminal of 20 lines."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, *args],
        cwd=cwd,
        env=child_environment({"LINES": "20", **env}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    output = b""
    try:
        while chunk := os.read(ours, 4096):
            output += chunk
    except OSError:  # how Linux reports that the other end is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0
    return output.decode().replace("\r\n", "\n")


def test_a_long_answer_goes_through_the_pager_and_a_short_one_does_not(store: Path) -> None:
    digits = packed(store)
    env = {"PAGER": "sed s/^/paged:/"}
    plain = ctx("show", digits, "--content", cwd=store, env=env).out
    assert "paged:" not in plain
    assert on_terminal("show", digits, "--content", cwd=store, env=env) == "".join(
        f"paged:{line}\n" for line in plain.splitlines()
    )
    assert "paged:" not in on_terminal("show", digits, cwd=store, env={**env, "LINES": "60"})
    assert "paged:" not in on_terminal("show", digits, "--content", "--quiet", cwd=store, env=env)
    assert json.loads(on_terminal("show", digits, "--json", cwd=store, env={**env, "LINES": "1"}))["version"] == "0.1"


@pytest.mark.parametrize("pager", ["", " ", "no-such-pager --at-all", "'", "cat"])
def test_without_a_pager_the_answer_is_written_as_it_is(store: Path, pager: str) -> None:
    digits = packed(store)
    plain = ctx("show", digits, "--content", cwd=store).out
    assert on_terminal("show", digits, "--content", cwd=store, env={"PAGER": pager}) == plain


def test_who_stops_reading_early_sees_no_error(store: Path) -> None:
    digits = packed(store, outputs=[{"name": f"{n}", "content": "x\n" * 2000} for n in range(100)])
    screen = on_terminal("show", digits, "--content", cwd=store, env={"PAGER": "head -n 1"})
    assert screen.startswith("Pack:")
    assert screen.count("\n") == 1
