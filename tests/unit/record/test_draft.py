"""A draft gives back the run it was made from; what people broke in it is told at once, each with its place."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.execution.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step
from contextplane.model.ids import Digest
from contextplane.model.json.errors import JsonRefused
from contextplane.record.draft import (
    MAX_DRAFT_BYTES,
    InvalidDraft,
    draft_text,
    fill_input_sizes,
    fork_key,
    is_same_run,
    read_draft,
)
from tests.support.cases import cases
from tests.support.samples import sample

PARENT = Digest.of(b"parent")
ORDER = ["version", "hash", "created", "model", "system_prompt", "prompts"]
ORDER += ["inputs", "steps", "outputs", "environment", "parent"]

words = st.text(max_size=8)
names = st.text(min_size=1, max_size=8)
digests = st.binary(max_size=4).map(lambda data: str(Digest.of(data)))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(-1e6, 1e6) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
parameters = st.none() | st.dictionaries(words, values, max_size=3)
steps = st.builds(
    Step,
    index=st.integers(-5, 2**53 - 1),
    type=names,
    tool=names,
    parameters=parameters,
    output_ref=st.just("") | digests,
    deterministic=st.booleans(),
    timestamp=st.sampled_from(["", "0001-01-01T00:00:00Z", "2026-05-04T09:31:42.5Z", "2026-05-04T11:31:42+02:00"]),
)
manifests = st.builds(
    Manifest,
    created=st.just("2026-05-04T09:31:42Z"),
    model=st.builds(Model, identifier=names, parameters=parameters),
    system_prompt=digests,
    environment=st.builds(
        Environment, os=names, runtime=names, tool_versions=st.none() | st.dictionaries(words, words, max_size=2)
    ),
    prompts=st.lists(st.builds(Prompt, content_ref=digests, role=words), max_size=2).map(tuple),
    inputs=st.lists(st.builds(Input, content_ref=digests, name=words, size=st.integers(0, 99)), max_size=2).map(tuple),
    steps=st.lists(steps, max_size=3).map(tuple),
    outputs=st.lists(st.builds(Output, content_ref=digests, name=names), max_size=2).map(tuple),
    parent=st.just("") | digests,
)

RUN = Manifest(
    created="2026-05-04T09:31:42Z",
    model=Model(identifier="m-1", parameters={"temperature": 0.2, "safe": True}),
    system_prompt=str(Digest.of(b"system")),
    prompts=(Prompt(content_ref=str(Digest.of(b"prompt")), role="user"),),
    inputs=(Input(content_ref=str(Digest.of(b"input")), name="in.txt", size=5),),
    steps=(Step(type="tool_call", tool="read_file", timestamp="2026-05-04T09:31:41Z"),),
    outputs=(Output(content_ref=str(Digest.of(b"output")), name="out.md"),),
    environment=Environment(os="linux", runtime="py3.11", tool_versions={"read_file": "1"}),
)


def fields() -> dict[str, Any]:
    value = msgspec.json.decode(draft_text(RUN, PARENT))
    assert isinstance(value, dict)
    return value


def problems(value: object) -> list[str]:
    with pytest.raises(InvalidDraft) as caught:
        read_draft(msgspec.json.encode(value))
    return [problem.at for problem in caught.value.problems]


@sample(50)
@given(manifests)
def test_a_draft_that_nobody_edited_is_the_same_run_with_the_run_as_its_parent(run: Manifest) -> None:
    text = draft_text(run, PARENT)
    draft = read_draft(text)
    assert is_same_run(draft.manifest, run)
    assert (draft.parent, draft.manifest.parent, draft.manifest.hash) == (PARENT, str(PARENT), "")
    assert {digest for _, digest in draft.refs} == {
        Digest.parse(ref)
        for ref in (
            run.system_prompt,
            *(prompt.content_ref for prompt in run.prompts),
            *(entry.content_ref for entry in run.inputs),
            *(output.content_ref for output in run.outputs),
            *(step.output_ref for step in run.steps if step.output_ref),
            str(PARENT),
        )
    }


def test_a_draft_has_the_field_order_of_the_reference_and_is_made_for_people() -> None:
    text = draft_text(RUN, PARENT)
    assert list(fields()) == ORDER
    assert list(fields()["steps"][0]) == [
        *("index", "type", "tool", "parameters", "output_ref", "deterministic", "timestamp")
    ]
    assert text.startswith(b'{\n  "version": "0.1",\n  "hash": "",\n  "created": ')
    assert text.endswith(b"}\n")


EDITS: dict[str, Manifest] = {
    "model": replace(RUN, model=Model(identifier="m-2", parameters=RUN.model.parameters)),
    "parameter-type": replace(RUN, model=Model(identifier="m-1", parameters={"temperature": 0.2, "safe": 1})),
    "system-prompt": replace(RUN, system_prompt=str(Digest.of(b"another"))),
    "prompts": replace(RUN, prompts=()),
    "input": replace(RUN, inputs=(replace(RUN.inputs[0], name="other.txt"),)),
    "step-time": replace(RUN, steps=(replace(RUN.steps[0], timestamp="2026-05-04T09:31:42Z"),)),
    "step-parameters": replace(RUN, steps=(replace(RUN.steps[0], parameters={}),)),
    "outputs": replace(RUN, outputs=(*RUN.outputs, *RUN.outputs)),
    "environment": replace(RUN, environment=Environment(os="linux", runtime="py3.11")),
}


@cases("edited", EDITS.values(), ids=EDITS.keys())
def test_any_edit_that_means_something_makes_another_run(edited: Manifest) -> None:
    assert not is_same_run(edited, RUN)


def test_when_it_was_made_and_of_what_and_a_size_do_not_make_another_run() -> None:
    edited = replace(RUN, created="2027-01-01T00:00:00Z", parent=str(PARENT), inputs=(replace(RUN.inputs[0], size=9),))
    assert is_same_run(edited, RUN)
    assert is_same_run(replace(RUN, steps=(replace(RUN.steps[0], timestamp="2026-05-04T11:31:41+02:00"),)), RUN)


def test_a_run_of_others_that_has_no_canonical_form_differs_from_every_draft() -> None:
    assert not is_same_run(RUN, replace(RUN, model=Model(identifier="m-1", parameters={"seed": 2**60})))


def test_sizes_are_those_of_the_contents() -> None:
    assert fill_input_sizes(RUN, lambda _digest: 42).inputs[0].size == 42


def test_everything_that_is_wrong_is_told_at_once() -> None:
    value = fields()
    value |= {"version": "9", "hash": "sha256:00", "created": "yesterday", "system_prompt": "You are careful."}
    value |= {"parent": "", "extra": 1}
    value["model"] = {"identifier": "", "parameters": [], "temperature": 1}
    value["prompts"] = ["hello", {"role": 1, "content_ref": ""}]
    value["inputs"][0] |= {"size": 1.5, "content": "text"}
    value["steps"] = [{"type": "tool_call", "index": "0"}, {"type": "reasoning"}, {"deterministic": 1, "tool": "t"}]
    value["outputs"][0] |= {"name": "", "content_ref": None}
    value["environment"] = {"os": 1, "tool_versions": {"a/b": 2}}
    assert sorted(problems(value)) == sorted(
        [
            *("/version", "/hash", "/created", "/system_prompt", "/parent", "/extra"),
            *("/model/identifier", "/model/parameters", "/model/temperature"),
            *("/prompts/0", "/prompts/1/role", "/prompts/1/content_ref"),
            *("/inputs/0/size", "/inputs/0/content"),
            *("/steps/0/index", "/steps/0/tool", "/steps/2/deterministic", "/steps/2/type"),
            *("/outputs/0/name", "/outputs/0/content_ref"),
            *("/environment/os", "/environment/runtime", "/environment/tool_versions/a~1b"),
        ]
    )


@cases("value", [None, [], "draft", 1, True], ids=repr)
def test_what_is_no_object_is_no_draft(value: object) -> None:
    assert problems(value)[0] == "/"


@cases(
    "text",
    [b"", b"{", b'{"version":"0.1","version":"0.1"}', b'{"a":\xff}', b"{} {}", b'{"a":9007199254740993}'],
    ids=["empty", "cut", "duplicate", "not-utf-8", "trailing", "integer"],
)
def test_what_two_readers_could_understand_differently_is_refused(text: bytes) -> None:
    with pytest.raises(JsonRefused):
        read_draft(text)


@sample(50)
@given(field=st.sampled_from(ORDER), value=values)
def test_whatever_stands_in_a_field_it_is_read_or_refused(field: str, value: object) -> None:
    try:
        draft = read_draft(msgspec.json.encode(fields() | {field: value}))
    except ContextPlaneError as error:
        assert error.at is not None  # noqa: PT017  either answer is right
    else:
        assert read_draft(draft_text(draft.manifest, draft.parent)).manifest == draft.manifest


@sample(40)
@given(manifests, manifests, st.binary(max_size=1), st.binary(max_size=1))
def test_a_fork_is_known_by_what_it_says_and_whose_it_is(
    manifest: Manifest, other: Manifest, a: bytes, b: bytes
) -> None:
    first, second = read_draft(draft_text(manifest, Digest.of(a))), read_draft(draft_text(other, Digest.of(b)))
    same = is_same_run(first.manifest, second.manifest) and a == b
    assert (fork_key(first) == fork_key(second)) == same
    later = replace(first.manifest, created="2027-01-01T00:00:00Z")
    assert fork_key(replace(first, manifest=later)) == fork_key(first)


def test_a_draft_that_would_be_too_large_when_indented_stands_in_one_line_and_is_read_back() -> None:
    deep: object = [0] * (MAX_DRAFT_BYTES // 450)  # each on a line of its own, behind so many spaces
    for _ in range(220):
        deep = {"": deep}
    run = replace(RUN, steps=(replace(RUN.steps[0], parameters=deep),))
    text = draft_text(run, PARENT)
    assert text.count(b"\n") == 1
    assert read_draft(text).manifest.steps[0].parameters == deep
    assert draft_text(RUN, PARENT).count(b"\n") > 20
