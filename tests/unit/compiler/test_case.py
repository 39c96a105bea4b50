"""The document of a compile case: closed, read strictly, and everything wrong with it told with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextplane.app.packs.files import MAX_CASE_BYTES, read_case_file
from contextplane.compiler.case import read_case
from contextplane.compiler.source import place_errors
from contextplane.errors import ContextPlaneError
from contextplane.model.invoke import InvokeRequest, RunContext
from tests.support.cases import cases
from tests.unit.compiler.case_files import CLOSING, SHOWN, write_json
from tests.unit.compiler.scenario import PACK, put


def test_a_pack_in_the_place_of_a_request_is_called_one() -> None:
    with pytest.raises(ContextPlaneError) as refused:
        read_case(PACK)
    assert refused.value.code == "compile_case_invalid"
    assert "is a context pack" in refused.value.message
    assert "ctx new FILE --request" in (refused.value.hint or "")


def test_a_moment_that_is_null_is_left_out() -> None:
    assert read_case({**SHOWN, "as_of": None}).as_of is None


def test_a_case_holds_all_inputs_of_a_compile_but_the_pack() -> None:
    case = read_case(CLOSING)
    assert isinstance(case.request, InvokeRequest)
    assert isinstance(case.run_context, RunContext)
    assert case.environment.ontologies == ("ont.support@1.0.0",)
    assert (len(case.evidence), len(case.memories), str(case.as_of)) == (1, 1, "2026-05-04T09:31:00Z")


def test_evidence_memories_and_the_moment_may_be_left_out() -> None:
    case = read_case({key: SHOWN[key] for key in ("request", "run_context", "environment")})
    assert (case.evidence, case.memories, case.as_of) == ((), (), None)


@cases(
    ("changes", "place", "words"),
    [
        ({"/evidnce": []}, "/evidnce", "did you mean evidence?"),
        ({"/request/input/intent": 7}, "/request/input/intent", "text"),
        ({"/request/notes": "x"}, "/request/notes", "notes"),
        ({"/run_context/safety_mode": "wild"}, "/run_context/safety_mode", "wild"),
        ({"/environment": {"ontology": []}}, "/environment/ontology", "did you mean ontologies?"),
        ({"/environment/ontologies": "ont.support@1.0.0"}, "/environment/ontologies", "list"),
        ({"/evidence/0": 7}, "/evidence/0", "an object"),
        ({"/memories/0/state": "forgotten"}, "/memories/0/state", "forgotten"),
        ({"/as_of": "yesterday"}, "/as_of", "2026-05-04T09:31:00Z"),
        ({"/as_of": 7}, "/as_of", "moment"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(changes: dict[str, Any], place: str, words: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        read_case(put(SHOWN, changes))
    assert refused.value.code == "compile_case_invalid"
    assert refused.value.at == place
    assert words in str(refused.value)


def test_every_part_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ContextPlaneError) as refused:
        read_case({"request": {}, "evidence": 3, "as_of": "soon", "x": 1})
    assert refused.value.details["stage"] == "read"
    problems = refused.value.details["problems"]
    assert isinstance(problems, list)
    places = {problem["at"] for problem in problems}
    assert places >= {"/x", "/run_context", "/environment", "/request/input", "/request/mode", "/evidence", "/as_of"}


def test_of_very_many_unknown_members_the_first_are_named_and_the_rest_is_counted() -> None:
    with pytest.raises(ContextPlaneError) as refused:
        read_case({**SHOWN, **{f"x{n:05}": n for n in range(10_000)}})
    problems = refused.value.details["problems"]
    assert isinstance(problems, list)
    assert [problem["at"] for problem in problems] == [*(f"/x{n:05}" for n in range(50)), ""]
    assert problems[-1]["message"] == "9950 more are no part of a compile case"


@cases("document", [[], "text", 7, None])
def test_what_is_no_object_is_no_case(document: object) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        read_case(document)  # type: ignore[arg-type]
    assert (refused.value.code, refused.value.at) == ("compile_case_invalid", "")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{", "json_malformed"),
        (b'{"request": 1, "request": 2}', "json_duplicate_key"),
        (b'{"a": "\xff"}', "json_utf8_invalid"),
        (b"", "json_empty"),
    ],
    ids=["not json", "a key twice", "not utf-8", "empty"],
)
def test_a_file_that_cannot_be_read_by_everybody_alike_is_refused(tmp_path: Path, data: bytes, code: str) -> None:
    (tmp_path / "r.json").write_bytes(data)
    with pytest.raises(ContextPlaneError) as refused:
        read_case_file(str(tmp_path / "r.json"))
    assert refused.value.family == "refused"
    assert (refused.value.at or "").startswith(str(tmp_path / "r.json"))
    assert refused.value.code == code


def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "r.json").open("wb") as file:
        file.truncate(MAX_CASE_BYTES + 1)
    with pytest.raises(ContextPlaneError) as refused:
        read_case_file(str(tmp_path / "r.json"))
    assert refused.value.code == "author_file_too_large"


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        read_case_file(str(tmp_path / "none.json"))
    assert refused.value.code == "document_unreadable"


def test_yaml_and_json_hold_the_same_case(tmp_path: Path) -> None:
    write_json(tmp_path, "r.yaml", SHOWN)  # every JSON document of ours is YAML, too
    assert (
        read_case_file(str(tmp_path / "r.yaml")).file.value
        == read_case_file(write_json(tmp_path, "r.json", SHOWN)).file.value
    )


def test_the_place_in_the_file_is_a_line_and_a_column(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(put(SHOWN, {"/as_of": "soon"}), indent=1), encoding="utf-8")
    file = read_case_file(str(tmp_path / "r.json"))
    with pytest.raises(ContextPlaneError) as refused, place_errors(file):
        read_case(file.file.value)
    line = next(n for n, text in enumerate((tmp_path / "r.json").read_text().splitlines(), 1) if "as_of" in text)
    assert (refused.value.at or "").startswith(f"{tmp_path}/r.json:{line}:")
    assert refused.value.details["pointer"] == "/as_of"
    assert refused.value.message.startswith("/as_of: ")
