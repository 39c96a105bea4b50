"""Completion: the scripts are ones that their shells accept, and they offer what can stand there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from contextplane.cli.completion import complete
from contextplane.cli.table import VERBS
from contextplane.registry.streams import ENVIRONMENTS, PINS, VERSIONS
from tests.support.cases import cases
from tests.surfaces.commands import COMMAND, child_environment, ctx
from tests.surfaces.registries import prepared
from tests.surfaces.sample import Store

NAMES = [verb.name for verb in VERBS]
SHELLS = ["bash", "zsh", "fish"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_script_knows_every_verb(tmp_path: Path, shell: str) -> None:
    result = ctx("completion", shell, cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    assert [name for name in NAMES if name not in result.out] == []
    assert "@VERBS@" not in result.out
    assert msgspec.json.decode(ctx("completion", shell, "--json", cwd=tmp_path).raw) == {
        "shell": shell,
        "script": result.out.removesuffix("\n"),
    }


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_script_is_one_that_its_shell_accepts(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / "script"
    script.write_bytes(ctx("completion", shell, cwd=tmp_path).raw)
    checked = subprocess.run([shell, "-n", str(script)], capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")


def candidates(*words: str) -> list[str]:
    return [line.partition("\t")[0] for line in complete(list(words), VERBS)]


LINES: list[tuple[tuple[str, ...], list[str]]] = [
    (("comp",), ["compile", "completion"]),
    (("--json", "comp"), ["compile", "completion"]),
    (("completion", ""), ["bash", "zsh", "fish"]),
    (("completion", "bash", ""), []),
    (("schema", "over"), ["overlay"]),
    (("explain", "object_corr"), ["object_corrupt"]),
    (("lint", "--exp"), ["--explain"]),
    (("lint", "--explain", "object_corr"), ["object_corrupt"]),
    (("lint", "--explain=object_corr"), ["--explain=object_corrupt"]),
    (("lint", "--strict", "--st"), []),
    (("lint", "--overlay", "a.yaml", "--overl"), ["--overlay"]),
    (("lint", ""), [":files"]),
    (("lint", "--environment", ""), [":files"]),
    (("lint", "--", "--st"), [":files"]),
    (("init", ""), [":folders"]),
    (("new", "x.yaml", "--request", "--mode", "b"), ["batch"]),
    (("no-such-verb", ""), []),
    (("new", "x.yaml", "--from", ""), ["openapi", "mcp"]),
    (("new", "x.yaml", "--from", "openapi", ""), [":files"]),
    (("new", "x.yaml", "--from", "openapi", "a.yaml", "--tr"), ["--trust-hints"]),
    (("handoff", ""), ["list", "read", "write", "show", "log", "extend", "export"]),
    (("test", "a", "b", ""), [":files"]),
    (("compile", "p.yaml", "--role", ""), []),
]


@cases("line", LINES, ids=lambda line: " ".join(line[0]))
def test_what_can_stand_there_is_offered(
    line: tuple[tuple[str, ...], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, expected = line
    names = [name for name in candidates(*words) if name.startswith(":") or "@" not in name]
    assert names == expected


def test_the_names_of_a_store_are_offered(sample: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sample.folder)
    packs = sorted(path.name for path in (sample.folder / ".ctx" / "packs").iterdir() if len(path.name) == 64)
    assert packs
    assert [name for name in candidates("show", "") if len(name) == 64] == packs
    assert candidates("show", f"ctx://{packs[0][:8]}") == [f"ctx://{packs[0]}"]
    assert candidates("show", packs[0][:8]) == [packs[0]]


def test_versions_ids_environments_and_keys_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    prepared(tmp_path)
    monkeypatch.chdir(tmp_path)
    versions = [f"ctxpack.support@{number}" for number in ("1.0.0", "1.1.0", "1.2.0", "1.3.0")]
    assert candidates("deprecate", "") == versions
    assert candidates("compile", "ctxpack.support@1.2") == [":files", "ctxpack.support@1.2.0"]
    assert candidates("promote", "prod", "") == ["ctxpack.support"]
    assert candidates("pin", "p") == ["prod"]
    keys = tmp_path / ".ctx" / "keys"
    keys.mkdir(exist_ok=True)
    (keys / "release.key").write_text("private-half-of-the-key")
    (keys / "release.pub").write_text("public")
    assert candidates("keys", "revoke", "") == ["release"]
    assert candidates("sign", "x", "--key", "") == ["release", ":files"]


def test_names_are_those_of_the_streams_of_the_registry() -> None:
    source = Path(sys.modules["contextplane.cli.completion"].__file__ or "").parents[1] / "app" / "names.py"
    text = source.read_text(encoding="utf-8")
    assert [prefix for prefix in (VERSIONS, ENVIRONMENTS, PINS) if f'"{prefix}"' not in text] == []


def test_a_store_that_cannot_be_read_is_silent(tmp_path: Path) -> None:
    for content in (b"", b"no database at all" * 100):
        (tmp_path / ".ctx").mkdir(exist_ok=True)
        (tmp_path / ".ctx" / "catalog.db").write_bytes(content)
        for words in (["show", ""], ["pin", ""], ["sign", "x", "--key", ""], ["finalize", ""]):
            result = ctx("__complete", *words, cwd=tmp_path)
            assert (result.status, result.err, result.out.replace(":files\n", "")) == (0, "", "")
    assert sorted(path.name for path in (tmp_path / ".ctx").iterdir()) == ["catalog.db"]


def test_a_defect_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object) -> list[str]:
        raise ZeroDivisionError

    monkeypatch.setattr("contextplane.app.names.names_of", fail)
    result = ctx("__complete", "show", "", cwd=tmp_path)
    assert (result.status, result.out, result.err) == (0, "", "")


def test_a_file_with_a_line_break_in_its_name_is_no_two_candidates(tmp_path: Path) -> None:
    keys = tmp_path / ".ctx" / "keys"
    keys.mkdir(parents=True)
    (keys / "a\nb.key").write_text("")
    assert ctx("__complete", "sign", "x", "--key", "", cwd=tmp_path).out == ":files\n"


# --- in the shells themselves ---

_BASH = """
source ./script
COMP_LINE="$1"; COMP_POINT=${#COMP_LINE}
read -ra COMP_WORDS <<< "$2"; [[ "$1" == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_ctx ctx
printf '%s\\n' "${COMPREPLY[@]}"
"""


def run_shell(folder: Path, *command: str) -> list[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} here")
    env = child_environment({"PATH": f"{Path(COMMAND).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)})
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "words", "expected"),
    [
        ("ctx comp", "ctx comp", ["compile", "completion"]),
        ("ctx lint --ex", "ctx lint --ex", ["--explain"]),
        ("ctx lint re", "ctx lint re", ["refunds.yaml"]),
        ("ctx init ", "ctx init", ["folder", ".ctx"]),
        ("ctx lint --explain=object_corr", "ctx lint --explain = object_corr", ["object_corrupt"]),
        ("ctx deprecate ctxpack.support@1.2", "ctx deprecate ctxpack.support @ 1.2", ["1.2.0"]),
    ],
)
def test_bash_completes(tmp_path: Path, line: str, words: str, expected: list[str]) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    if "@" in line:
        prepared(tmp_path)
    (tmp_path / "refunds.yaml").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "script").write_bytes(ctx("completion", "bash", cwd=tmp_path).raw)
    assert sorted(run_shell(tmp_path, "bash", "-c", _BASH, "bash", line, words)) == sorted(expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("ctx comp", ["compile", "completion"]), ("ctx lint --ex", ["--explain"]), ("ctx lint re", ["refunds.yaml"])],
)
def test_fish_completes(tmp_path: Path, line: str, expected: list[str]) -> None:
    (tmp_path / "refunds.yaml").touch()
    (tmp_path / "script").write_bytes(ctx("completion", "fish", cwd=tmp_path).raw)
    lines = run_shell(tmp_path, "fish", "--no-config", "-c", f"source ./script; complete -C '{line}'")
    assert [answer.partition("\t")[0] for answer in lines] == expected
