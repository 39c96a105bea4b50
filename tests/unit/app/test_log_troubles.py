"""Whatever is wrong with a log is told in one go, as far as it can be read, and nothing that is not known."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError

LOG: dict[str, Any] = {
    "model": {"identifier": "m"},
    "system_prompt": "s",
    "environment": {"os": "linux", "runtime": "r"},
}
BAD = [{"name": "a", "path": "none"}, {"name": "b", "content_base64": "%%"}, {"name": "c", "content": "fine"}]


def refused(folder: Path, data: bytes) -> ContextPlaneError:
    init(Settings(cwd=str(folder)), ".")
    with open_platform(Settings(cwd=str(folder))) as platform, pytest.raises(ContextPlaneError) as error:
        pack_log(platform, data, root=str(folder))
    return error.value


def places(error: ContextPlaneError) -> list[str]:
    problems = error.details["problems"]
    assert isinstance(problems, list)
    return [problem["at"] for problem in problems]


def test_form_and_contents_are_told_together(tmp_path: Path) -> None:
    error = refused(tmp_path, json.dumps({**LOG, "outputs": BAD, "foo": 1}).encode())
    assert error.code == "execution_log_invalid"
    assert places(error) == ["/foo", "/outputs/0/path", "/outputs/1/content_base64"]


def test_json_form_and_contents_are_told_together_and_of_what_stands_twice_only_that(tmp_path: Path) -> None:
    step = '{"index": 9007199254740993, "type": "reasoning", "foo": 1}'
    rest = json.dumps({**LOG, "outputs": BAD})[1:-1]
    # Of `model` the last one counts, and lacks its identifier: whether that is so when one is kept, nobody knows.
    error = refused(tmp_path, f'{{{rest}, "model": {{}}, "steps": [{step}], "zzz": 1}}'.encode())
    assert error.code == "json_duplicate_key"
    assert places(error) == [
        "/model",
        "/steps/0/index",
        "/zzz",
        "/steps/0/foo",
        "/outputs/0/path",
        "/outputs/1/content_base64",
    ]


def test_a_content_whose_form_is_wrong_is_not_looked_for(tmp_path: Path) -> None:
    outputs = [{"name": "a", "path": 7}, {"name": "b", "path": "none", "content": "x"}, {"path": "none"}]
    error = refused(tmp_path, json.dumps({**LOG, "outputs": outputs}).encode())
    assert places(error) == ["/outputs/0/path", "/outputs/1", "/outputs/2/name", "/outputs/2/path"]


def test_revisions_that_are_none_are_told_with_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = [{"name": "h", "handoff": "pk_abcd2345"}]
    error = refused(tmp_path, json.dumps({**LOG, "inputs": inputs, "outputs": BAD}).encode())
    assert places(error) == ["/inputs/0/handoff", "/outputs/0/path", "/outputs/1/content_base64"]
    error = refused(tmp_path, json.dumps({**LOG, "inputs": inputs, "outputs": BAD, "foo": 1}).encode())
    assert places(error) == ["/foo", "/inputs/0/handoff", "/outputs/0/path", "/outputs/1/content_base64"]


@pytest.mark.parametrize("text", [b"", b"{", b"[] []", b"\xff", b'{"model": {"identifier": "\\ud800"}}'])
def test_where_nothing_can_be_read_the_first_problem_is_all_there_is(tmp_path: Path, text: bytes) -> None:
    assert "problems" not in refused(tmp_path, text).details
