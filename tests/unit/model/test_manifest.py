"""A manifest is read as leniently as others write it, and one that is none is told field by field."""

import json
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.execution.manifest import (
    Manifest,
    ManifestInvalid,
    contents_of,
    fill_in_hash,
    manifest_bytes,
    read_manifest,
    registry_entry,
)
from contextplane.model.ids import Digest
from contextplane.model.problems import form_problems
from tests.support.cases import cases

REF = "sha256:" + "ab" * 32
LEAST: dict[str, Any] = {"created": "", "model": {}, "system_prompt": REF, "environment": {}}


def read(**fields: object) -> Manifest:
    return read_manifest(json.dumps({**LEAST, **fields}).encode())


@cases(
    ("fields", "message"),
    [
        ({"created": 1.5}, "/created: must be text, not a number"),
        ({"model": 3}, "/model: must be an object, not an integer"),
        ({"model": {"identifier": []}}, "/model/identifier: must be text, not a list"),
        ({"model": {"parameters": "x"}}, "/model/parameters: must be an object, not text"),
        ({"prompts": {}}, "/prompts: must be a list, not an object"),
        ({"prompts": [REF]}, "/prompts/0: must be an object, not text"),
        ({"inputs": [{"content_ref": REF}, {}]}, "/inputs/1/content_ref: is missing"),
        ({"inputs": [{"content_ref": REF, "size": "9"}]}, "/inputs/0/size: must be an integer, not text"),
        ({"steps": [{"index": True}]}, "/steps/0/index: must be an integer, not true or false"),
        ({"steps": [{"index": 1.5}]}, "/steps/0/index: must be an integer, not a number"),
        ({"steps": [{"deterministic": 1}]}, "/steps/0/deterministic: must be true or false, not an integer"),
        ({"environment": {"tool_versions": {"a/b": 1}}}, "/environment/tool_versions/a~1b: must be text"),
    ],
)
def test_a_field_that_is_wrong_is_named_with_what_was_expected_and_what_was_found(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises(ManifestInvalid) as refused:
        read(**fields)
    error = refused.value.under("ctx://ab12")
    assert error.at == f"ctx://ab12#{message.partition(': ')[0]}"
    assert str(error).startswith(f"ctx://ab12: not a manifest: {message}")
    assert error.hint


def test_the_contents_of_a_manifest_are_all_its_parts_in_the_order_of_a_run() -> None:
    refs = ["sha256:" + digit * 64 for digit in "012345"]
    manifest = read(
        system_prompt=refs[0],
        prompts=[{"content_ref": refs[1]}],
        inputs=[{"name": "in.txt", "content_ref": refs[2]}],
        steps=[{"output_ref": refs[3]}, {}, {"output_ref": refs[4]}],
        outputs=[{"name": "out.md", "content_ref": refs[5]}],
    )
    parts = ("system_prompt", "prompts/0", "inputs/in.txt", "steps/0", "steps/1", "steps/2", "outputs/out.md")
    assert list(contents_of(manifest)) == list(zip(parts, [*refs[:4], "", *refs[4:]], strict=True))


def test_of_very_many_problems_the_first_are_told_and_how_many_more_there_are() -> None:
    with pytest.raises(ManifestInvalid) as refused:
        read(steps=[{"tool": n} for n in range(12)])
    assert "/steps/9/tool: must be text, not an integer; and 2 more" in refused.value.message


def test_everything_that_is_wrong_is_told() -> None:
    with pytest.raises(ManifestInvalid) as refused:
        read_manifest(b'{"steps": [{"tool": 1}, {"type": 2}]}')
    problems = refused.value.details["problems"]
    assert isinstance(problems, list)
    assert [problem["at"] for problem in problems] == [
        *("/created", "/model", "/system_prompt", "/environment"),
        *("/steps/0/tool", "/steps/1/type"),
    ]


@cases("data", [b"", b"\xff", b"{", b"[" * 100_000, b'"\xff"'])
def test_bytes_that_are_no_json_are_told_as_such(data: bytes) -> None:
    with pytest.raises(ManifestInvalid, match="its bytes are not JSON"):
        read_manifest(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("created", "model", "system_prompt", "environment", "prompts", "inputs", "steps", "outputs", "parent", "hash")
PARTS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("content_ref", "name", "index", "parameters", "tool_versions", "size", "os"), JSON)
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON | PARTS | st.lists(PARTS, max_size=2))))
def test_whatever_is_refused_has_a_problem_and_what_is_not_has_none(fields: dict[str, object]) -> None:
    value = {**LEAST, **fields}
    try:
        read, reported = read_manifest(msgspec.json.encode(value)), None
    except ManifestInvalid as error:
        read, reported = None, error.details["problems"]
    if read is None:
        assert reported
    else:
        assert list(form_problems(msgspec.json.decode(msgspec.json.encode(read)), Manifest)) == []


def test_a_digest_in_upper_case_names_the_same_bytes_wherever_it_stands() -> None:
    upper = "sha256:" + "AB" * 32
    manifest = read(
        system_prompt=upper,
        parent=upper,
        prompts=[{"content_ref": upper}],
        steps=[{"output_ref": upper, "parameters": {"content_ref": upper}}],
    )
    assert (manifest.system_prompt, manifest.parent, manifest.prompts[0].content_ref) == (REF, REF, REF)
    assert (manifest.steps[0].output_ref, manifest.steps[0].parameters) == (REF, {"content_ref": upper})


def test_nulls_unknown_fields_and_whole_floats_are_read() -> None:
    manifest = read(steps=[{"index": 3.0, "tool": None, "new": 1}], inputs=None, novel={"x": 1})
    assert (manifest.steps[0].index, manifest.steps[0].tool, manifest.inputs) == (3, "", ())


def test_a_hash_is_filled_in_also_where_there_is_no_canonical_form() -> None:
    raw = b'{"hash":"","n":9007199254740993}'
    assert json.loads(fill_in_hash(raw, Digest.of(raw))) == {"hash": str(Digest.of(raw)), "n": 9007199254740993}
    assert fill_in_hash(b"[]", Digest.of(b"[]")) == b"[]"


@cases(
    "raw",
    [
        b'{"created":"","hash":"","steps":[]}',
        b'{ "steps": [],\n "hash": "" }',
        b'{"environment":{"hash":""},"hash":"","steps":[]}',
        b'{"a":"\\"hash\\":\\"\\"","hash":"","n":1.0}',
        b'{"steps":[{"parameters":{"hash":""}}]}',
        b'{"hash":"","n":9007199254740993}',
    ],
)
def test_an_entry_is_the_manifest_with_its_own_hash_and_nothing_else_changed(raw: bytes) -> None:
    digest = Digest.of(raw)
    assert json.loads(registry_entry(raw, digest)) == {**json.loads(raw), "hash": str(digest)}


@cases("raw", [b"[]", b"\xff", b'{"hash":""', b""])
def test_what_is_no_manifest_has_no_hash_to_fill_in(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError) if raw != b"[]" else nullcontext():
        assert registry_entry(raw, Digest.of(raw)) == raw


def test_a_parent_stands_in_the_bytes_only_when_there_is_one() -> None:
    assert b"parent" not in manifest_bytes(read())
    assert f'"parent":"{REF}"'.encode() in manifest_bytes(read(parent=REF))
