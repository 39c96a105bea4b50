"""`ctx diff` as people and programs use it: on real stores, also on those of the other program."""

import base64
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import Result, ctx

LOG: dict[str, Any] = {
    "model": {"identifier": "m-1", "parameters": {"temperature": 0.5, "top_p": 1.0}},
    "system_prompt": "You are careful.\nYou ask first.\n",
    "prompts": [{"role": "user", "content": "Refund order 881"}],
    "inputs": [{"name": "order.json", "content": "{}"}],
    "steps": [
        {"type": "tool_call", "tool": "read_file", "parameters": {"path": "order.json"}, "output": "{}"},
        {"type": "reasoning", "output": "It was delivered."},
        {"type": "tool_call", "tool": "refund", "parameters": {"amount": 10}, "output": "paid"},
    ],
    "outputs": [{"name": "b.md", "content": "# b\n"}, {"name": "a.md", "content": "# a\n"}],
    "environment": {"os": "linux", "runtime": "py3.11", "tool_versions": {"refund": "1", "read_file": "1"}},
}

Pack = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    init(Settings(cwd=str(tmp_path)), ".")
    return tmp_path


@pytest.fixture
def pack(folder: Path) -> Pack:
    def packed(**fields: object) -> str:
        with open_platform(Settings(cwd=str(folder))) as platform:
            return pack_log(platform, json.dumps({**LOG, **fields}).encode(), root=str(folder)).digest.hex

    return packed


def everything_else(pack: Pack) -> str:
    """A run that differs from `LOG` in everything that is compared."""
    first, thought, last = LOG["steps"]
    return pack(
        model={"identifier": "m-2", "parameters": {"temperature": 0.5, "top_p": 1, "seed": 4}},
        system_prompt="You are careful.\nYou act.\n",
        inputs=[{"name": "order.json", "content": "[]"}],
        steps=[
            first,
            {"type": "tool_call", "tool": "search", "output": "found"},
            thought,
            {**last, "parameters": {"amount": 99}},
        ],
        outputs=[{"name": "b.md", "content": "# B\n"}],
        environment={"os": "darwin", "runtime": "py3.11", "tool_versions": {"read_file": "1", "refund": "2"}},
    )


def answer(*args: str, folder: Path, status: int = 0) -> dict[str, Any]:
    result = ctx("diff", *args, "--json", cwd=folder)
    assert (result.status, result.err) == (status, "")
    value: dict[str, Any] = json.loads(result.raw)
    return value


def place(folder: Path, digits: str) -> Path:
    return folder / ".ctx" / "objects" / digits[:2] / digits[2:]


def damage(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"Paid to somebody else.")


def one_error(result: Result, status: int, code: str) -> str:
    assert (result.status, result.out) == (status, "")
    assert result.err.startswith(f"ctx: {code}: ")
    assert result.err.count("\n") == 1
    return result.err


def test_people_see_what_differs_in_the_order_of_the_run_with_its_texts(folder: Path, pack: Pack) -> None:
    a, b = pack(), everything_else(pack)
    result = ctx("diff", a[:12], f"ctx://{b}", cwd=folder)
    assert (result.status, result.err) == (0, "")
    assert (
        result.out
        == f"""\
Comparing {a[:12]} vs {b[:12]}

10 differences found:

  1. [model_drift] Model identifier changed: m-1 -> m-2
  2. [model_drift] Model parameter "seed" added in pack B: 4
  3. [environment_drift] OS changed: linux -> darwin
  4. [environment_drift] Version of tool "refund" changed: 1 -> 2
  5. [prompt_drift] System prompts differ
      @@ -1,2 +1,2 @@
       You are careful.
      -You ask first.
      +You act.
  6. [input_drift] Input "order.json" content differs
      @@ -1 +1 @@
      -{{}}
      +[]
  7. [tool_drift] Step 1: search added in pack B
      ctx cat {b[:12]}:steps/1
  8. [param_drift] Step 2 (3 in pack B): refund called with different parameters
      amount: 10 -> 99
  9. [output_drift] Output "b.md" content differs
      @@ -1 +1 @@
      -# b
      +# B
  10. [output_drift] Output "a.md" removed in pack B
      ctx cat {a[:12]}:outputs/a.md

First divergence: [model_drift] Model identifier changed: m-1 -> m-2
"""
    )
    assert ctx("diff", a, b, "--human", cwd=folder).out == result.out


def test_programs_get_what_the_reference_gives_and_more(folder: Path, pack: Pack) -> None:
    a, b = pack(), everything_else(pack)
    diff = answer(a, b, folder=folder)
    assert (diff["pack_hash_a"], diff["pack_hash_b"], diff["has_drift"]) == (a[:12], b[:12], True)
    assert (diff["pack_a"], diff["pack_b"]) == (f"ctx://{a}", f"ctx://{b}")
    assert diff["first_divergence"] == diff["entries"][0]
    assert all({"type", "description"} <= entry.keys() for entry in diff["entries"])
    added, parameters = (entry for entry in diff["entries"] if entry["type"] in {"tool_drift", "param_drift"})
    assert (added["step_index"], added["pack_b"], "pack_a" in added) == (1, "search", False)
    assert (parameters["step_index"], parameters["at_a"], parameters["at_b"]) == (2, "/steps/2", "/steps/3")
    assert (parameters["pack_a"], parameters["pack_b"]) == ({"amount": 10}, {"amount": 99})
    output = next(entry for entry in diff["entries"] if entry["type"] == "output_drift")
    assert (output["pack_a"], output["content_a"]) == (Digest.of(b"# b\n").hex[:12], str(Digest.of(b"# b\n")))
    assert output["text"] == {"state": "text", "lines": ["@@ -1 +1 @@", "-# b", "+# B"], "cut": False, "why": ""}


def test_the_first_step_has_its_index(folder: Path, pack: Pack) -> None:
    _, *rest = LOG["steps"]
    (entry,) = answer(pack(), pack(steps=rest), folder=folder)["entries"]
    assert (entry["description"], entry["step_index"]) == ("Step 0: read_file removed in pack B", 0)


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["people", "json"])
def test_the_same_packs_give_the_same_bytes_every_time(folder: Path, pack: Pack, form: list[str]) -> None:
    a, b = pack(), everything_else(pack)
    results = {ctx("diff", a, b, *form, cwd=folder, env={"PYTHONHASHSEED": seed}).raw for seed in ("1", "2", "3")}
    assert len(results) == 1


def test_the_status_tells_of_drift_when_asked_to(folder: Path, pack: Pack) -> None:
    a, b = pack(), pack(system_prompt="You are bold.")
    assert ctx("diff", a, b, cwd=folder).status == 0
    assert ctx("diff", a, b, "--exit-code", cwd=folder).status == 12
    assert answer(a, b, "--exit-code", folder=folder, status=12)["has_drift"] is True
    assert ctx("diff", a, a, "--exit-code", cwd=folder).status == 0


def test_a_pack_does_not_differ_from_itself(folder: Path, pack: Pack) -> None:
    a = pack()
    assert ctx("diff", a, a[:8], cwd=folder).out == "No differences found. It is the same pack.\n"
    diff = answer(a, a, folder=folder)
    assert (diff["entries"], diff["has_drift"], diff["first_divergence"]) == ([], False, None)


def test_the_same_run_at_another_time_is_told_from_the_same_pack(folder: Path, pack: Pack) -> None:
    a, b = pack(), pack(created="2026-05-04T09:31:42Z")
    result = ctx("diff", a, b, "--exit-code", cwd=folder)
    assert (result.status, result.out.startswith("No differences found. The packs differ only in")) == (0, True)


def test_a_damaged_content_is_named_and_its_bytes_are_not_shown(folder: Path, pack: Pack) -> None:
    a, b = pack(), pack(outputs=[{"name": "b.md", "content": "# other\n"}, *LOG["outputs"][1:]])
    bad = Digest.of(b"# other\n")
    damage(place(folder, bad.hex))
    result = ctx("diff", a, b, cwd=folder)
    assert f"      (ctx://{b[:12]}:outputs/b.md was tampered with)\n" in result.out
    assert "somebody" not in result.out
    (entry,) = answer(a, b, folder=folder)["entries"]
    assert (entry["text"]["state"], entry["text"]["lines"]) == ("damaged", [])
    place(folder, bad.hex).unlink()
    (entry,) = answer(a, b, folder=folder)["entries"]
    assert entry["text"]["state"] == "missing"
    assert f"      (ctx://{b[:12]}:outputs/b.md is missing)\n" in ctx("diff", a, b, cwd=folder).out


def test_what_only_one_pack_has_is_told_with_the_command_that_reads_it(folder: Path, pack: Pack) -> None:
    many = [{"role": "user", "content": f"{n}"} for n in range(12)]
    odd = {"name": "it's a b.md", "content": "odd\n"}
    b = pack(prompts=[*LOG["prompts"], *many], outputs=[*LOG["outputs"], odd])
    text = ctx("diff", pack(), b, cwd=folder).out
    lines = [line.strip() for line in text.splitlines()]
    start = lines.index("1. [prompt_drift] Pack B has 12 extra prompt(s)") + 1
    assert lines[start : start + 11] == [*(f"ctx cat {b[:12]}:prompts/{n}" for n in range(1, 11)), "and 2 more"]
    command = next(line for line in lines if "odd" not in line and "a b.md" in line and line.startswith("ctx cat"))
    assert ctx(*shlex.split(command)[1:], cwd=folder).raw == b"odd\n"


def test_a_content_that_another_of_the_same_name_hides_is_told_by_its_place(folder: Path, pack: Pack) -> None:
    same = {"name": "x", "content": "last"}
    a = pack(outputs=[{"name": "x", "content": "first"}, same])
    b = pack(outputs=[{"name": "x", "content_base64": "AP8="}, same])
    assert f"      (ctx://{b[:12]}#/outputs/0 is not text)\n" in ctx("diff", a, b, cwd=folder).out


@pytest.mark.parametrize("same", [False, True], ids=["two-packs", "one-pack"])
def test_a_tampered_manifest_is_named_as_tampered(folder: Path, pack: Pack, *, same: bool) -> None:
    a, b = pack(), pack(system_prompt="You are bold.")
    damage(place(folder, b))
    one_error(ctx("diff", b if same else a, b, cwd=folder), 11, "object_corrupt")


def test_what_contents_and_names_say_to_a_terminal_is_shown_and_not_sent(folder: Path, pack: Pack) -> None:
    a = pack()
    b = pack(
        outputs=[{"name": "\x1b[2J", "content": "\x1b[31mred\ttab\n"}],
        model={"identifier": "\x1b[0m"},
        steps=[{"type": "t", "tool": "\x1b]0;x", "parameters": {"\x1b": "\x1b"}}],
    )
    c = pack(outputs=[{"name": "\x1b[2J", "content": "plain\n"}], steps=[{"type": "t", "tool": "\x1b]0;x"}])
    results = [ctx("diff", a, b, cwd=folder), ctx("diff", b, c, cwd=folder)]
    assert [(result.status, b"\x1b" in result.raw) for result in results] == [(0, False)] * 2
    assert "      -\\x1b[31mred\ttab\n" in results[1].out


def test_people_see_just_the_parameters_that_differ_and_where_a_text_was_cut(folder: Path, pack: Pack) -> None:
    def run(parameters: object, empty: object, output: str) -> str:
        steps = [
            {"type": "t", "tool": "one", "parameters": parameters},
            {"type": "t", "tool": "two", "parameters": empty},
        ]
        return pack(steps=steps, outputs=[{"name": "x", "content": output}])

    a = run({"n": 1, "same": [1], "gone": True}, None, "".join(f"a{n}\n" for n in range(300)))
    b = run({"n": "1", "same": [1], "new": None}, {}, "b\n")
    lines = ctx("diff", a, b, cwd=folder).out.splitlines()
    start = lines.index("  1. [param_drift] Step 0: one called with different parameters")
    assert lines[start + 1 : start + 6] == [
        "      gone: true -> (none)",
        '      n: 1 -> "1"',
        "      new: (none) -> null",
        "  2. [param_drift] Step 1: two called with different parameters",
        "      null -> {}",
    ]
    assert lines[-3] == "      (cut: there is more than this)"


def test_a_document_on_one_line_is_shown_where_it_differs(folder: Path, pack: Pack) -> None:
    ours, theirs = ("x" * 300_000 + change + "y" * 300_000 for change in ("paid", "refused"))
    a, b = pack(outputs=[{"name": "o", "content": ours}]), pack(outputs=[{"name": "o", "content": theirs}])
    (entry,) = answer(a, b, folder=folder)["entries"]
    assert entry["text"]["cut"] is True
    assert entry["text"]["lines"] == [
        "@@ -1 +1 @@",
        f"-[299,900 characters] {'x' * 100}paid{'y' * 896} [299,104 characters]",
        f"+[299,900 characters] {'x' * 100}refused{'y' * 893} [299,107 characters]",
    ]
    assert "      (cut: there is more than this)\n" in ctx("diff", a, b, cwd=folder).out


def test_a_step_that_is_deterministic_in_one_run_only_is_a_drift_of_its_tool(folder: Path, pack: Pack) -> None:
    first, *rest = LOG["steps"]
    a, b = pack(), pack(steps=[{**first, "deterministic": True}, *rest])
    (entry,) = answer(a, b, "--exit-code", folder=folder, status=12)["entries"]
    assert (entry["type"], entry["step_index"], entry["pack_a"], entry["pack_b"]) == ("tool_drift", 0, False, True)
    line = "[tool_drift] Step 0: read_file is deterministic in pack B only: false -> true\n"
    assert ctx("diff", a, b, cwd=folder).out.endswith(f"First divergence: {line}")


def test_large_and_binary_contents_are_named_and_not_compared(folder: Path, pack: Pack) -> None:
    (folder / "large").write_bytes(b"line\n" * (3 << 20))
    binary = {"name": "binary", "content_base64": base64.b64encode(bytes(range(256)) * 100).decode()}
    a = pack(outputs=[{"name": "large", "content": ""}, {"name": "binary", "content": ""}])
    b = pack(outputs=[{"name": "large", "path": "large"}, binary])
    result = ctx("diff", a, b, cwd=folder)
    assert f"(ctx://{b[:12]}:outputs/large is too large to compare as text: 15,728,640 bytes)" in result.out
    assert f"(ctx://{b[:12]}:outputs/binary is not text)" in result.out
    states = [entry["text"]["state"] for entry in answer(a, b, folder=folder)["entries"]]
    assert states == ["too_large", "binary"]


def test_names_that_lead_nowhere_or_to_many_or_to_something_else(folder: Path, pack: Pack) -> None:
    a = pack()
    one_error(ctx("diff", a, "0" * 64, cwd=folder), 13, "execution_pack_not_found")
    one_error(ctx("diff", "ffffffff", a, cwd=folder), 13, "execution_pack_not_found")
    one_error(ctx("diff", a, "pk_abcd2345", cwd=folder), 2, "usage")
    one_error(ctx("diff", a, f"{a}:system_prompt", cwd=folder), 2, "reference_not_an_execution_pack")
    one_error(ctx("diff", a, "zz", cwd=folder), 2, "reference_invalid")
    assert ctx("diff", a, cwd=folder).status == 2


def test_a_beginning_that_fits_two_packs_lists_them(folder: Path) -> None:
    # Two registered packs of one beginning, whatever their bytes are: they are told apart before they are read.
    digits = [f"abcd{n}" + "0" * 59 for n in (1, 2)]
    for digit in digits:
        (folder / ".ctx" / "packs" / digit).write_bytes(f"sha256:{digit}".encode())
    line = one_error(ctx("diff", "abcd", digits[0], cwd=folder), 14, "reference_ambiguous")
    assert all(f"ctx://{digit}" in line for digit in digits)


def test_packs_of_the_reference_program_are_compared_as_they_are(tmp_path: Path) -> None:
    other = ReferenceStore(tmp_path)
    a = other.pack(outputs={"report.md": b"paid\n"}, steps=3)
    b = other.pack(outputs={"report.md": b"refused\n"}, steps=4, prompt=b"You are bold.")
    ctx("init", cwd=tmp_path)
    diff = answer(a, b, folder=tmp_path)
    assert [(entry["type"], entry["description"]) for entry in diff["entries"]] == [
        ("prompt_drift", "System prompts differ"),
        ("tool_drift", "Step 3: read_file added in pack B"),
        ("output_drift", 'Output "report.md" content differs'),
    ]
