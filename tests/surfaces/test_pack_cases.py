"""Logs as data, with the manifests or the refusals that every implementation must match."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.cli.exit import EXIT_OF
from contextplane.errors import ContextPlaneError
from tests.support.cases import cases
from tests.surfaces.commands import ctx

FOLDER = Path(__file__).parents[1] / "cases" / "execution"
CASES = sorted(FOLDER.glob("*.json"))
TYPES = FOLDER / "refused" / "types.json"
SPACE = b" " * (512 << 10)  # a log of this size is read without its long texts, and is the same log


def read(path: Path) -> dict[str, Any]:
    """A file of cases, with its repetitions expanded."""
    text = re.sub(r"<(\d+) (\\?.)>", lambda match: match[2] * int(match[1]), path.read_text(encoding="utf-8"))
    value: dict[str, Any] = json.loads(text)
    return value


REFUSED = [
    pytest.param(case, id=f"{path.stem}-{number}")
    for path in sorted((FOLDER / "refused").glob("*.json"))
    if path != TYPES
    for number, case in enumerate(read(path)["cases"])
]


def test_there_are_cases() -> None:
    assert len(CASES) >= 14
    assert len(REFUSED) >= 100


# --- what is packed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_log_becomes_its_manifest(tmp_path: Path, path: Path) -> None:
    case = read(path)
    # The case itself is right: its hash is that of its manifest, in the form of the standard.
    assert hashlib.sha256(rfc8785.dumps(case["want_manifest"])).hexdigest() == case["want_hash"]
    assert ctx("init", cwd=tmp_path).status == 0
    for name, content in case.get("files", {}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    forked: list[str] = []
    if "parent" in case:
        parent = ctx("pack", "-", cwd=tmp_path, input=json.dumps(case["parent"]).encode())
        forked = ["--parent", parent.out.strip()]
    for ascii_only, space in ((True, b""), (False, SPACE)):
        body = json.dumps(case["log"], ensure_ascii=ascii_only).encode() + space
        result = ctx("pack", "-", *forked, cwd=tmp_path, input=body)
        assert result.out == f"ctx://{case['want_hash']}\n", result.err
    assert ctx("cat", case["want_hash"], cwd=tmp_path).raw == rfc8785.dumps(case["want_manifest"])
    assert ctx("verify", case["want_hash"], cwd=tmp_path).status == 0


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One store for all cases: a refused log stores nothing."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "root" / "folder").mkdir(parents=True)
    (folder / "root" / "here.txt").write_bytes(b"here")
    (folder / "root" / "link").symlink_to(folder)
    init(Settings(cwd=str(folder)), ".")
    with open_platform(Settings(cwd=str(folder))) as platform:
        yield platform


def refused(platform: Platform, data: bytes) -> ContextPlaneError:
    """Pack an invalid log, check that nothing was stored, and return the error."""
    home = Path(platform.home.path)
    with pytest.raises(ContextPlaneError) as error:
        pack_log(platform, data, root=str(home.parent / "root"))
    left = [path.name for room in ("objects", "packs") for path in (home / room).rglob("*") if path.is_file()]
    assert set(left) <= {".lock"}
    return error.value


def places(error: ContextPlaneError) -> list[str]:
    problems = error.details.get("problems")
    if isinstance(problems, list):
        assert error.at == problems[0]["at"]
        return [problem["at"] for problem in problems]
    return [error.at] if error.at else []


@cases("case", REFUSED)
def test_a_log_that_cannot_be_packed_is_refused_with_its_places(platform: Platform, case: dict[str, Any]) -> None:
    data = case["text"].encode("latin-1") if "text" in case else json.dumps(case["log"]).encode()
    for text in (data, data + SPACE):
        check(refused(platform, text), case)


def check(error: ContextPlaneError, case: dict[str, Any]) -> None:
    assert error.code == case["want_code"]
    assert EXIT_OF[error.family] == case.get("want_status", 10)
    assert error.hint
    if case["want_code"] != "json_too_deep":  # a place of 256 steps is no help
        assert places(error) == case["want_at"]
    for key in ("line", "column"):
        if f"want_{key}" in case:
            assert error.details[key] == case[f"want_{key}"]


KINDS: dict[str, tuple[object, ...]] = {
    "text": ("x" * 5000, "text"),
    "integer": (-7,),
    "truth": (False,),
    "list": ([], [None]),
    "object": ({}, {"a": None}),
    "number": (1.5,),
}
WRONG = [
    pytest.param(place, value, id=f"{place}-{json_type}-{number}")
    for place, kind in read(TYPES)["types"].items()
    for json_type, values in KINDS.items()
    if json_type != kind
    for number, value in enumerate(values)
]


@cases(("place", "value"), WRONG)
def test_a_value_of_another_type_is_refused_at_its_place_and_only_there(
    platform: Platform, place: str, value: object
) -> None:
    log = put(read(TYPES)["log"], place.strip("/").split("/") if place != "/" else [], value)
    for space in (b"", SPACE):
        error = refused(platform, json.dumps(log).encode() + space)
        assert (error.code, places(error)) == ("execution_log_invalid", [place])
        assert re.match(r"must be (an?|text|true or false)\b.*, not ", error.message)


def put(document: Any, tokens: list[str], value: object) -> object:  # noqa: ANN401  any document
    """The document with another value at a place."""
    if not tokens:
        return value
    if isinstance(document, list):
        return [
            put(element, tokens[1:], value) if str(n) == tokens[0] else element for n, element in enumerate(document)
        ]
    return {**document, tokens[0]: put(document[tokens[0]], tokens[1:], value)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"model": {}\n "system_prompt": 1}', "json_malformed: line 2, column 2: a comma or }"),
        (b"{}", "execution_log_invalid: /model/identifier: is missing; /system_prompt: is missing"),
    ],
)
def test_a_refusal_is_one_line_that_says_where_and_what_to_do(tmp_path: Path, text: bytes, message: str) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    result = ctx("pack", "-", cwd=tmp_path, input=text)
    assert (result.status, result.raw, result.err.count("\n")) == (10, b"", 1)
    assert result.err.startswith(f"ctx: {message}")
    assert result.err.endswith(")\n")
