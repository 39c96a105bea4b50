"""Two runs compared: each kind of drift by its own name, in the order of a run, and nothing where nothing differs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from contextplane.adapters.files.objects import FileObjects
from contextplane.audit.diff import MAX_TEXTS, DiffEntry, diff_manifests, diff_packs
from contextplane.audit.load import LoadedPack
from contextplane.model.execution.manifest import (
    Environment,
    Input,
    Manifest,
    Model,
    Output,
    Prompt,
    Step,
    manifest_bytes,
    read_manifest,
)
from contextplane.model.ids import Digest
from contextplane.testing.proofs import proves
from tests.support.cases import cases


def ref(text: str) -> str:
    return str(Digest.of(text.encode()))


def step(tool: str = "read", output: str = "out", **parameters: object) -> Step:
    return Step(type="tool_call", tool=tool, parameters=parameters, output_ref=ref(output) if output else "")


RUN = Manifest(
    created="2026-05-04T09:31:42Z",
    model=Model(identifier="m-1", parameters={"temperature": 0.5}),
    system_prompt=ref("careful"),
    environment=Environment(os="linux", runtime="py3.11", tool_versions={"read": "1"}),
    prompts=(Prompt(role="user", content_ref=ref("do")), Prompt(role="assistant", content_ref=ref("done"))),
    inputs=(Input(name="in", content_ref=ref("in"), size=2),),
    steps=(step(path="a"), step(path="b"), step("write", path="c")),
    outputs=(Output(name="x", content_ref=ref("x")), Output(name="y", content_ref=ref("y"))),
)


def but(**fields: object) -> Manifest:
    return replace(RUN, **fields)


def drift_lines(other: Manifest, run: Manifest = RUN) -> list[tuple[str, str]]:
    return [(entry.type, entry.description) for entry in diff_manifests(run, other)]


def only(other: Manifest, run: Manifest = RUN) -> DiffEntry:
    (entry,) = diff_manifests(run, other)
    return entry


def with_steps(*steps: Step) -> Manifest:
    return but(steps=steps)


FIRST, SECOND, THIRD = RUN.steps


# --- each kind of drift -----------------------------------------------------------------------------------------------


def test_a_run_does_not_differ_from_itself_or_from_one_at_another_time() -> None:
    assert drift_lines(RUN) == []
    later = tuple(replace(step, index=7, timestamp="2027-01-01T00:00:00Z") for step in RUN.steps)
    assert drift_lines(but(created="2027-01-01T00:00:00Z", parent=ref("parent"), steps=later)) == []


def test_another_model_is_a_drift() -> None:
    entry = only(but(model=replace(RUN.model, identifier="m-2")))
    assert entry == DiffEntry(
        type="model_drift",
        description="Model identifier changed",
        pack_a="m-1",
        pack_b="m-2",
        at_a="/model/identifier",
        at_b="/model/identifier",
    )
    model = Model(identifier="m-1", parameters={"seed": 1, "a/b": None, "temperature": 0.7})
    assert drift_lines(but(model=model)) == [
        ("model_drift", 'Model parameter "temperature" changed'),
        ("model_drift", 'Model parameter "a/b" added in pack B'),
        ("model_drift", 'Model parameter "seed" added in pack B'),
    ]
    gone = only(but(model=Model(identifier="m-1")))
    assert (gone.description, gone.pack_a, gone.pack_b) == (
        'Model parameter "temperature" removed in pack B',
        0.5,
        UNSET,
    )


@proves("execution-pack:environment:drift-is-debuggable")
def test_a_changed_environment_names_what_changed_and_from_what_to_what() -> None:
    other = Environment(os="darwin", runtime="py3.12", tool_versions={"read": "2", "bash": "5"})
    assert [
        (entry.description, entry.pack_a, entry.pack_b) for entry in diff_manifests(RUN, but(environment=other))
    ] == [
        ("OS changed", "linux", "darwin"),
        ("Runtime changed", "py3.11", "py3.12"),
        ('Version of tool "read" changed', "1", "2"),
        ('Version of tool "bash" added in pack B', UNSET, "5"),
    ]
    assert drift_lines(but(environment=replace(RUN.environment, tool_versions=None))) == [
        ("environment_drift", 'Version of tool "read" removed in pack B')
    ]


def test_another_system_prompt_is_a_drift_of_its_content() -> None:
    entry = only(but(system_prompt=ref("bold")))
    assert (entry.type, entry.description, entry.step_index) == ("prompt_drift", "System prompts differ", UNSET)
    assert (entry.pack_a, entry.pack_b) == (ref("careful")[7:19], ref("bold")[7:19])
    assert (entry.content_a, entry.content_b) == (ref("careful"), ref("bold"))


def test_prompts_differ_in_content_in_role_or_in_number() -> None:
    first, second = RUN.prompts
    entry = only(but(prompts=(replace(first, content_ref=ref("do it")), second)))
    assert (entry.description, entry.step_index) == ("Prompt 0 content differs (role: user)", 0)
    entry = only(but(prompts=(first, replace(second, role="tool"))))
    assert (entry.description, entry.step_index, entry.pack_a, entry.pack_b) == (
        "Prompt 1 role changed",
        UNSET,
        "assistant",
        "tool",
    )
    both = (Prompt(role="tool", content_ref=ref("else")), second)
    assert [description for _, description in drift_lines(but(prompts=both))] == [
        "Prompt 0 content differs (role: user)",
        "Prompt 0 role changed",
    ]
    more = Prompt(role="user", content_ref=ref("more"))
    entry = only(but(prompts=(more, first, more, second)))
    assert (entry.description, entry.pack_b) == ("Pack B has 2 extra prompt(s)", ["/prompts/0", "/prompts/2"])
    entry = only(but(prompts=(second,)))
    assert (entry.description, entry.pack_a, entry.at_a) == (
        "Pack A has 1 extra prompt(s)",
        ["/prompts/0"],
        "/prompts/0",
    )


@pytest.mark.parametrize(
    ("field", "drift", "noun"), [("inputs", "input_drift", "Input"), ("outputs", "output_drift", "Output")]
)
def test_inputs_and_outputs_differ_by_name(field: str, drift: str, noun: str) -> None:
    def files(**contents: str) -> Manifest:
        made = [Input(name=name, content_ref=ref(text)) for name, text in contents.items()]
        return (
            but(**{field: tuple(made)})
            if noun == "Input"
            else but(outputs=tuple(Output(name=file.name, content_ref=file.content_ref) for file in made))
        )

    run = files(z="1", a="2", m="3")
    assert drift_lines(files(m="3", a="2", z="1"), run) == []
    assert drift_lines(files(n="9", m="4", a="2", b="0"), run) == [
        (drift, f'{noun} "z" removed in pack B'),
        (drift, f'{noun} "m" content differs'),
        (drift, f'{noun} "n" added in pack B'),
        (drift, f'{noun} "b" added in pack B'),
    ]


def test_of_several_outputs_of_one_name_each_is_compared() -> None:
    def outputs(*contents: str) -> Manifest:
        return but(outputs=tuple(Output(name='a"b', content_ref=ref(text)) for text in contents))

    assert drift_lines(outputs("1", "2"), outputs("3", "2")) == [("output_drift", 'Output "a\\"b" content differs')]
    assert drift_lines(outputs("1", "2"), outputs("1")) == [
        ("output_drift", 'Output "a\\"b" (number 2 of this name) added in pack B')
    ]


# --- steps ------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 3))
def test_one_step_put_in_is_one_difference_wherever_it_is(at: int) -> None:
    steps = [*RUN.steps[:at], step("bash", cmd="ls"), *RUN.steps[at:]]
    entry = only(with_steps(*steps))
    assert (entry.type, entry.description) == ("tool_drift", f"Step {at}: bash added in pack B")
    assert (entry.step_index, entry.pack_a, entry.pack_b, entry.at_b) == (at, UNSET, "bash", f"/steps/{at}")
    back = only(RUN, with_steps(*steps))
    assert (back.description, back.step_index, back.pack_a) == (f"Step {at}: bash removed in pack B", at, "bash")


def test_one_step_in_place_of_another_is_one_difference() -> None:
    entry = only(with_steps(FIRST, step("bash"), THIRD))
    assert (entry.type, entry.description, entry.step_index) == ("tool_drift", "Step 1: different tool", 1)
    assert (entry.pack_a, entry.pack_b) == ("read", "bash")


def test_a_call_that_differs_is_compared_with_its_counterpart_behind_a_step_put_in() -> None:
    entries = list(diff_manifests(RUN, with_steps(step("bash"), FIRST, step(path="z", output="else"), THIRD)))
    assert [(entry.type, entry.description) for entry in entries] == [
        ("tool_drift", "Step 0: bash added in pack B"),
        ("param_drift", "Step 1 (2 in pack B): read called with different parameters"),
        ("reasoning_drift", "Step 1 (2 in pack B): read produced different output"),
    ]
    assert (entries[1].pack_a, entries[1].pack_b) == ({"path": "b"}, {"path": "z"})
    assert (entries[2].at_a, entries[2].at_b, entries[2].step_index) == ("/steps/1", "/steps/2", 1)


def test_calls_with_the_same_parameters_answer_to_each_other_before_those_with_others() -> None:
    run = with_steps(step(path="a", output="1"), step(path="b", output="2"))
    other = with_steps(step(path="new"), step(path="a", output="3"), step(path="b", output="4"))
    assert drift_lines(other, run) == [
        ("tool_drift", "Step 0: read added in pack B"),
        ("reasoning_drift", "Step 0 (1 in pack B): read produced different output"),
        ("reasoning_drift", "Step 1 (2 in pack B): read produced different output"),
    ]


def test_where_the_numbers_of_two_runs_part_both_are_told() -> None:
    first, second = RUN.prompts
    more = Prompt(role="system", content_ref=ref("more"))
    changed = replace(second, content_ref=ref("undone"))
    assert [description for _, description in drift_lines(but(prompts=(more, first, changed)))] == [
        "Pack B has 1 extra prompt(s)",
        "Prompt 1 (2 in pack B) content differs (role: assistant)",
    ]
    asked = replace(second, role="tool")
    assert drift_lines(but(prompts=(more, first, asked)))[1][1] == "Prompt 1 (2 in pack B) role changed"
    behind = with_steps(step("bash"), FIRST, replace(SECOND, type="check", deterministic=True), step("curl"))
    assert [description for _, description in drift_lines(behind)] == [
        "Step 0: bash added in pack B",
        "Step 1 (2 in pack B): read is a different type of step",
        "Step 1 (2 in pack B): read is deterministic in pack B only",
        "Step 2 (3 in pack B): different tool",
    ]


def test_what_one_run_has_alone_is_told_with_the_part_that_reads_it() -> None:
    silent = step("bash", output="")
    for extra, part in ((step("bash"), "steps/3"), (silent, "steps/3/parameters"), (Step(type="wait"), UNSET)):
        entry = only(with_steps(*RUN.steps, extra))
        assert (entry.part_a, entry.part_b, entry.content_b) == (UNSET, part, extra.output_ref or UNSET)
    gone = only(but(outputs=RUN.outputs[:1]))
    assert (gone.part_a, gone.part_b, gone.content_a) == ("outputs/y", UNSET, ref("y"))
    assert only(but(prompts=RUN.prompts[:1])).part_a == "prompts/1"
    assert only(but(model=Model(identifier="m-1"))).part_a is UNSET


def test_of_several_outputs_of_one_name_only_the_last_can_be_read_by_it() -> None:
    twice = (*RUN.outputs, Output(name="y", content_ref=ref("y2")))
    other = (*RUN.outputs[:1], *(replace(output, content_ref=ref(f"not {n}")) for n, output in enumerate(twice[1:])))
    entries = list(diff_manifests(but(outputs=twice), but(outputs=other)))
    assert [(entry.part_a, entry.at_a) for entry in entries] == [(UNSET, "/outputs/1"), ("outputs/y", "/outputs/2")]


def test_a_step_that_gave_nothing_differs_from_one_that_did() -> None:
    entry = only(with_steps(FIRST, SECOND, step("write", output="", path="c")))
    assert (entry.type, entry.pack_b, entry.content_b) == ("reasoning_drift", "", "")


def test_a_step_of_another_type_is_a_drift_of_its_tool() -> None:
    entry = only(with_steps(FIRST, SECOND, replace(THIRD, type="plan")))
    assert (entry.type, entry.description) == ("tool_drift", "Step 2: write is a different type of step")
    assert (entry.pack_a, entry.pack_b) == ("tool_call", "plan")


def test_a_step_that_is_deterministic_in_one_run_only_is_a_drift_of_its_tool() -> None:
    other = with_steps(FIRST, replace(SECOND, deterministic=True), THIRD)
    entry = only(other)
    assert (entry.type, entry.description) == ("tool_drift", "Step 1: read is deterministic in pack B only")
    assert (entry.step_index, entry.pack_a, entry.pack_b, entry.at_a) == (1, False, True, "/steps/1")
    assert only(RUN, other).description == "Step 1: read is deterministic in pack A only"
    both = with_steps(FIRST, replace(SECOND, deterministic=True, type="check", output_ref=ref("else")), THIRD)
    assert [description for _, description in drift_lines(both)] == [
        "Step 1: read is a different type of step",
        "Step 1: read is deterministic in pack B only",
        "Step 1: read produced different output",
    ]


def test_reasoning_is_called_by_its_type() -> None:
    thought = Step(type="reasoning", output_ref=ref("hm"))
    assert drift_lines(with_steps(*RUN.steps, thought)) == [("tool_drift", "Step 3: reasoning added in pack B")]


@cases(
    ("a", "b", "same"),
    [
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"n": 0}, {"n": False}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"n": [1.0, 2.5]}, {"n": [1, 2.5]}, True),
        ({"n": 2**60}, {"n": 2**60}, True),
        ({"n": 2**60, "m": 1.0}, {"n": 2**60, "m": 1.0}, True),
        ({"n": "1"}, {"n": 1}, False),
        ({}, None, False),
    ],
)
def test_parameters_are_equal_as_json_is(a: dict[str, object], b: dict[str, object] | None, *, same: bool) -> None:
    run, other = with_steps(replace(FIRST, parameters=a)), with_steps(replace(FIRST, parameters=b))
    assert drift_lines(other, run) == (
        [] if same else [("param_drift", "Step 0: read called with different parameters")]
    )


@pytest.mark.parametrize(("a", "b", "same"), [("1", "1", True), ("1", "2", False), ("1.0", "1.0", True)])
def test_a_manifest_deeper_than_any_of_ours_is_compared_as_others_stored_it(a: str, b: str, *, same: bool) -> None:
    runs = []
    for end in (a, b):
        deep = "[" * 300 + end + "]" * 300
        raw = (
            '{"version":"0.1","hash":"","created":"","model":{"parameters":{"n":9007199254740993}},"system_prompt":"",'
            f'"environment":{{}},"prompts":null,"steps":[{{"type":"t","tool":"t","parameters":{{"deep":{deep}}}}}]}}'
        )
        runs.append(read_manifest(raw.encode()))
    assert [kind for kind, _ in drift_lines(runs[1], runs[0])] == ([] if same else ["param_drift"])


# --- the whole --------------------------------------------------------------------------------------------------------


def test_differences_come_in_the_order_in_which_a_run_happens() -> None:
    other = Manifest(
        created="",
        model=Model(identifier="m-2"),
        system_prompt=ref("bold"),
        environment=Environment(os="darwin"),
        steps=(step("bash"), step("curl")),
        outputs=(Output(name="z", content_ref=ref("z")),),
    )
    kinds = list(dict.fromkeys(entry.type for entry in diff_manifests(RUN, other)))
    assert kinds == ["model_drift", "environment_drift", "prompt_drift", "input_drift", "tool_drift", "output_drift"]


STEPS = st.lists(
    st.builds(step, st.sampled_from(["read", "write"]), st.sampled_from(["", "1", "2"]), n=st.integers(0, 1)),
    max_size=8,
)


@given(STEPS, STEPS)
def test_there_is_a_difference_just_when_the_steps_differ_and_it_is_seen_from_both_sides(
    a: list[Step], b: list[Step]
) -> None:
    there, back = (
        list(diff_manifests(x, y)) for x, y in ((with_steps(*a), with_steps(*b)), (with_steps(*b), with_steps(*a)))
    )
    assert bool(there) == bool(back) == (a != b)
    assert list(diff_manifests(with_steps(*a), with_steps(*b))) == there


def loaded(manifest: Manifest) -> LoadedPack:
    raw = manifest_bytes(manifest)
    return LoadedPack(digest=Digest.of(raw), raw=raw, manifest=manifest)


def test_a_pack_compared_with_itself_is_not_looked_into(tmp_path: Path) -> None:
    assert diff_packs(loaded(RUN), loaded(RUN), FileObjects(str(tmp_path))).entries == ()


def test_contents_that_differ_come_with_their_text_and_others_do_not(tmp_path: Path) -> None:
    objects = FileObjects(str(tmp_path))
    careful, bold = objects.put(b"careful"), objects.put(b"bold")
    a = but(system_prompt=str(careful))
    b = but(system_prompt=str(bold), outputs=())
    pack_diff = diff_packs(loaded(a), loaded(b), objects)
    assert (pack_diff.a, pack_diff.b) == (loaded(a).digest, loaded(b).digest)
    prompt, *outputs = pack_diff.entries
    assert prompt.text is not UNSET
    assert prompt.text.lines == ("@@ -1 +1 @@", "-careful", "+bold")
    assert [entry.text for entry in outputs] == [UNSET, UNSET]


def test_only_so_many_contents_are_read_and_the_rest_says_so(tmp_path: Path) -> None:
    objects = FileObjects(str(tmp_path))
    count = MAX_TEXTS + 2
    runs = []
    for side in "ab":
        with objects.batch() as batch:
            refs = [str(batch.put(f"{side}{n}".encode())) for n in range(count)]
        runs.append(
            with_steps(*(Step(type="t", tool="t", parameters={"n": n}, output_ref=refs[n]) for n in range(count)))
        )
    texts = [entry.text for entry in diff_packs(loaded(runs[0]), loaded(runs[1]), objects).entries]
    states = [text.state for text in texts if text is not UNSET]
    assert states == ["text"] * MAX_TEXTS + ["left_out"] * 2
