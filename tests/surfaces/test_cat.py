"""`ctx cat REF:PART`: every part of a run by its name, whatever characters the name has."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from tests.support.cases import cases
from tests.surfaces.commands import ctx

NAMES = [
    "a b.txt",
    "dir/sub/a.txt",
    "C:\\a:b",
    "x@1.2.3",
    "..",
    "-",
    "\u00fcn\u00efcode \U0001f600",
    "steps/0",
    "a\nb",
    "#",
]
LOG: dict[str, Any] = {
    "model": {"identifier": "m"},
    "system_prompt": "You are careful.",
    "prompts": [{"role": "user", "content": "first"}, {"role": "user", "content": "second"}],
    "inputs": [{"name": name, "content": f"input {n}"} for n, name in enumerate(NAMES)],
    "steps": [
        {"index": 9, "type": "tool_call", "tool": "t", "parameters": {"b": 1, "a": "\u00e9"}, "output": "step zero"},
        {"index": 0, "type": "reasoning"},
    ],
    "outputs": [
        *({"name": name, "content": f"output {n}"} for n, name in enumerate(NAMES)),
        {"name": "twice", "content": "one"},
        {"name": "twice", "content": "two"},
    ],
    "environment": {"os": "linux", "runtime": "py"},
}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store, and the digits of the pack in it. No test changes either."""
    folder = tmp_path_factory.mktemp("cat")
    init(Settings(cwd=str(folder)), ".")
    with open_platform(Settings(cwd=str(folder))) as platform:
        return folder, pack_log(platform, json.dumps(LOG).encode(), root=str(folder)).digest.hex


@cases("n", range(len(NAMES)), ids=map(repr, NAMES))
def test_inputs_and_outputs_are_found_by_any_name(packed: tuple[Path, str], n: int) -> None:
    folder, digits = packed
    assert ctx("cat", f"{digits[:8]}:inputs/{NAMES[n]}", cwd=folder).raw == f"input {n}".encode()
    assert ctx("cat", f"sha256:{digits}:outputs/{NAMES[n]}", cwd=folder).raw == f"output {n}".encode()


@cases("form", ["{}", "ctx://{}", "ctx://sha256:{}", "sha256:{}", "ctx://{:.9}"])
def test_a_pack_may_be_named_in_any_of_its_forms(packed: tuple[Path, str], form: str) -> None:
    folder, digits = packed
    assert ctx("cat", f"{form.format(digits)}:inputs/C:\\a:b", cwd=folder).raw == b"input 2"


@cases(
    ("part", "content"),
    [
        ("system_prompt", b"You are careful."),
        ("prompts/1", b"second"),
        ("steps/0", b"step zero"),
        ("steps/0/parameters", '{"a":"\u00e9","b":1}'.encode()),
        ("outputs/twice", b"two"),
    ],
)
def test_every_other_part_is_found_where_it_stands(packed: tuple[Path, str], part: str, content: bytes) -> None:
    folder, digits = packed
    assert ctx("cat", f"{digits}:{part}", cwd=folder).raw == content
    answer = json.loads(ctx("cat", f"{digits}:{part}", "--json", cwd=folder).out)
    assert answer == {"digest": str(Digest.of(content)), "size": len(content)}


@cases(
    ("part", "message"),
    [
        ("outputs/none", "no such part (it has outputs/a b.txt, outputs/dir/sub/a.txt, "),
        ("inputs/none", "no such part (it has inputs/a b.txt, "),
        ("prompts/2", "no such part (it has prompts/0, prompts/1, system_prompt, inputs/a b.txt, "),
        ("steps/2", "no such part (it has steps/0, steps/0/parameters, system_prompt, "),
        ("steps/1", "this step had no output (it has steps/0, steps/0/parameters, "),
        ("steps/1/parameters", "no such part (it has steps/0, "),
        ("steps/00/parameters", "no such part (it has steps/0, "),
        ("steps/-1/parameters", "no such part (it has steps/0, "),
        ("metadata", "no such part (it has system_prompt, prompts/0, "),
        ("outputs", "no such part (it has outputs/a b.txt, "),
    ],
)
def test_a_part_that_is_not_there_is_told_with_those_that_are(
    packed: tuple[Path, str], part: str, message: str
) -> None:
    folder, digits = packed
    result = ctx("cat", f"{digits}:{part}", cwd=folder)
    assert (result.status, result.out, result.err.count("\n")) == (13, "", 1)
    assert f"{digits}:{part}: {message}" in result.err
    assert " more, see 'ctx show')" in result.err
    error = json.loads(ctx("cat", f"{digits}:{part}", "--json", cwd=folder).err)["error"]
    assert error["code"] == "execution_pack_part_not_found"
    assert error["details"]["more"] is False
    assert sorted(error["details"]["parts"]) == sorted(
        ["system_prompt", "prompts/0", "prompts/1", "steps/0", "steps/0/parameters", "outputs/twice"]
        + [f"{kind}/{name}" for kind in ("inputs", "outputs") for name in NAMES]
    )


def test_what_is_no_pack_has_no_parts(packed: tuple[Path, str]) -> None:
    folder, _ = packed
    result = ctx("cat", f"{Digest.of(b'You are careful.')}:system_prompt", cwd=folder)
    assert (result.status, "manifest_invalid" in result.err) == (10, True)
