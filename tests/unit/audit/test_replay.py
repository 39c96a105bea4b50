"""What a replay says of a run: each step by itself, the whole by one word, and what changed around it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.audit.load import LoadedPack, load_pack
from contextplane.audit.replay import (
    ReplayedPart,
    RunDrift,
    fidelity,
    find_environment_drift,
    find_input_drift,
    replay,
    replay_recorded,
)
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.manifest import Environment
from contextplane.model.ids import Digest
from contextplane.ports.tools import ToolFailed, ToolRefused, ToolTimedOut, ToolUnknown
from contextplane.testing.proofs import proves
from tests.support.known_tools import KnownTools

HERE = Environment(os="linux", runtime="python3.11.4")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    init(Settings(cwd=str(tmp_path)), ".")
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        yield platform


def step(tool: str, output: str = "then", *, deterministic: bool = True, **parameters: object) -> dict[str, object]:
    fields = {"type": "tool_call", "tool": tool, "parameters": parameters, "output": output}
    return {**fields, "deterministic": deterministic}


def packed(platform: Platform, *steps: Mapping[str, object], **more: object) -> LoadedPack:
    log = {
        "model": {"identifier": "m-1"},
        "system_prompt": "You are careful.",
        "steps": steps,
        "environment": {"os": HERE.os, "runtime": HERE.runtime},
        **more,
    }
    return load_pack(pack_log(platform, msgspec.json.encode(log), root=platform.home.path).digest, platform.objects)


def damage(platform: Platform, text: bytes) -> None:
    place(platform, text).chmod(0o644)
    place(platform, text).write_bytes(b"tampered")


def lose(platform: Platform, text: bytes) -> None:
    place(platform, text).unlink()


def place(platform: Platform, text: bytes) -> Path:
    digits = Digest.of(text).hex
    return Path(platform.home.path) / "objects" / digits[:2] / digits[2:]


def outcomes(parts: list[ReplayedPart]) -> list[str]:
    return [part.outcome for part in parts]


# --- step by step -----------------------------------------------------------------------------------------------------


def test_every_tool_is_called_again_with_its_recorded_parameters_in_the_order_of_the_run(platform: Platform) -> None:
    tools = KnownTools({"a": b"then", "b": b"then"})
    parts = list(replay(packed(platform, step("b", n=1), step("a"), step("b", n=[{}])), platform.objects, tools))
    assert tools.calls == [("b", {"n": 1}), ("a", {}), ("b", {"n": [{}]})]
    assert [(part.part, part.outcome) for part in parts] == [(f"steps/{n}", "matched") for n in range(3)]
    assert {part.replayed for part in parts} == {str(Digest.of(b"then"))}
    assert fidelity(parts) == "exact"


def test_a_deterministic_step_that_gives_something_else_degrades_the_replay(platform: Platform) -> None:
    parts = list(replay(packed(platform, step("a")), platform.objects, KnownTools({"a": b"now"})))
    assert outcomes(parts) == ["diverged"]
    assert (parts[0].recorded, parts[0].replayed) == (str(Digest.of(b"then")), str(Digest.of(b"now")))
    assert fidelity(parts) == "degraded"


def test_a_step_that_is_not_deterministic_may_give_something_else(platform: Platform) -> None:
    pack = packed(platform, step("a", deterministic=False), step("b", deterministic=False))
    parts = list(replay(pack, platform.objects, KnownTools({"a": b"now", "b": b"then"})))
    assert outcomes(parts) == ["diverged_expected", "matched"]
    assert fidelity(parts) == "exact"


@pytest.mark.parametrize("error", [ToolUnknown, ToolFailed, ToolTimedOut, ToolRefused])
def test_a_step_that_cannot_run_fails_the_replay_and_the_next_one_still_runs(
    platform: Platform, error: type[ContextPlaneError]
) -> None:
    tools = KnownTools({"a": error("it is so"), "b": b"then"})
    parts = list(replay(packed(platform, step("a"), step("b")), platform.objects, tools))
    assert outcomes(parts) == ["failed", "matched"]
    assert (parts[0].code, parts[0].why, parts[0].replayed) == (error.code, "it is so", "")
    assert fidelity(parts) == "failed"


@pytest.mark.parametrize(("now", "outcome"), [(b"", "matched"), (b"now", "diverged")])
def test_a_step_that_gave_nothing_must_give_nothing_again(platform: Platform, now: bytes, outcome: str) -> None:
    pack = packed(platform, step("a", output=""))
    assert outcomes(list(replay(pack, platform.objects, KnownTools({"a": now})))) == [outcome]


@pytest.mark.parametrize(("harm", "code"), [(damage, "object_corrupt"), (lose, "object_not_found")])
def test_a_comparison_with_what_is_no_longer_whole_is_not_made(
    platform: Platform, harm: Callable[[Platform, bytes], None], code: str
) -> None:
    pack = packed(platform, step("a"))
    harm(platform, b"then")
    tools = KnownTools({"a": b"then"})
    (part,) = replay(pack, platform.objects, tools)
    assert (part.outcome, part.code, tools.calls) == ("failed", code, [])


def test_reasoning_has_nothing_to_run_and_spoils_nothing(platform: Platform) -> None:
    thought = {"type": "reasoning", "output": "hm"}
    parts = list(replay(packed(platform, thought, {**thought, "tool": "a"}), platform.objects, KnownTools({})))
    assert outcomes(parts) == ["skipped", "skipped"]
    assert all(part.why for part in parts)
    assert fidelity(parts) == "exact"


def test_a_step_of_any_other_type_counts_as_a_call(platform: Platform) -> None:
    parts = list(replay(packed(platform, {**step("a"), "type": "tool_use"}), platform.objects, KnownTools({"a": b""})))
    assert outcomes(parts) == ["diverged"]


def test_a_recorded_reference_that_is_no_digest_fails_its_step_only(platform: Platform) -> None:
    pack = packed(platform, step("a"), step("a", n=1))
    first, second = pack.manifest.steps
    steps = (msgspec.structs.replace(first, output_ref="sha256:zz"), second)
    odd = msgspec.structs.replace(pack, manifest=msgspec.structs.replace(pack.manifest, steps=steps))
    parts = list(replay(odd, platform.objects, KnownTools({"a": b"then"})))
    assert [(part.outcome, part.code) for part in parts] == [("failed", "id_invalid"), ("matched", "")]


# --- from the pack alone ----------------------------------------------------------------------------------------------


def run_with_output(platform: Platform) -> LoadedPack:
    thought = {"type": "reasoning", "output": "hm"}
    return packed(platform, step("a"), thought, step("b", output=""), outputs=[{"name": "r.md", "content": "done"}])


def test_the_recorded_form_reads_every_output_back_and_calls_nothing(platform: Platform) -> None:
    parts = list(replay_recorded(run_with_output(platform), platform.objects))
    outcomes = {part.part: part.outcome for part in parts}
    expected = {"steps/0": "matched", "steps/1": "matched", "steps/2": "skipped", "outputs/r.md": "matched"}
    assert (outcomes, fidelity(parts)) == (expected, "exact")
    assert all(part.recorded == part.replayed for part in parts)


@pytest.mark.parametrize(("harm", "code"), [(damage, "object_corrupt"), (lose, "object_not_found")])
@pytest.mark.parametrize(("text", "name"), [(b"then", "steps/0"), (b"hm", "steps/1"), (b"done", "outputs/r.md")])
def test_the_recorded_form_names_what_is_no_longer_whole(
    platform: Platform, harm: Callable[[Platform, bytes], None], code: str, text: bytes, name: str
) -> None:
    pack = run_with_output(platform)
    harm(platform, text)
    parts = list(replay_recorded(pack, platform.objects))
    assert [(part.part, part.code, part.replayed) for part in parts if part.outcome == "failed"] == [(name, code, "")]
    assert fidelity(parts) == "failed"


# --- the whole, and around it -----------------------------------------------------------------------------------------

OUTCOMES = ("matched", "diverged", "diverged_expected", "failed", "skipped")


@given(st.lists(st.sampled_from(OUTCOMES)))
def test_the_worst_part_decides_whatever_the_order_and_the_number(drawn: list[str]) -> None:
    parts = [
        msgspec.convert({"part": f"steps/{n}", "outcome": outcome}, ReplayedPart) for n, outcome in enumerate(drawn)
    ]
    expected = "failed" if "failed" in drawn else "degraded" if "diverged" in drawn else "exact"
    assert fidelity(parts) == fidelity(reversed(parts)) == expected


@proves("execution-pack:environment:drift-is-debuggable")
def test_what_changed_around_the_run_is_named_with_what_it_was_and_what_it_is(platform: Platform) -> None:
    environment = {"os": "plan9", "runtime": "go1.22", "tool_versions": {"gone": "7", "a": "1", "b": "2"}}
    pack = packed(platform, environment=environment)
    assert list(find_environment_drift(pack, KnownTools({"a": b"", "b": b""}), HERE)) == [
        RunDrift(kind="environment", what="os", recorded="plan9", now="linux"),
        RunDrift(kind="environment", what="runtime", recorded="go1.22", now="python3.11.4"),
        RunDrift(kind="tool_version", what="a", recorded="1", now="2"),
        RunDrift(kind="tool_version", what="gone", recorded="7", now=""),
    ]


def test_where_nothing_changed_nothing_is_named(platform: Platform) -> None:
    pack = packed(platform, inputs=[{"name": "order.txt", "content": "order 881"}])
    assert list(find_environment_drift(pack, KnownTools({}), HERE)) == []
    assert list(find_input_drift(pack, platform.objects)) == []


def test_inputs_that_are_gone_or_damaged_are_two_different_things(platform: Platform) -> None:
    files = [{"name": name, "content": name} for name in ("gone", "damaged", "whole")]
    pack = packed(platform, inputs=files)
    lose(platform, b"gone")
    damage(platform, b"damaged")
    drifts = [(drift.kind, drift.what) for drift in find_input_drift(pack, platform.objects)]
    assert drifts == [("missing_input", "gone"), ("damaged_input", "damaged")]
