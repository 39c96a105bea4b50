"""Replays a run: calls its tools again, step by step, and compares the outputs with the recorded ones.

A reasoning step has nothing to run and is skipped; every other step names a tool and is called again with its recorded
parameters. Recorded outputs are re-hashed first: a comparison with damaged bytes proves nothing. `replay_recorded`
calls no tool, and reads every output of the pack back instead.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias, assert_never

import msgspec

from contextplane.audit.load import LoadedPack
from contextplane.audit.text_diff import TextDiff, diff_with_bytes
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.log import REASONING
from contextplane.model.execution.manifest import Environment, Step
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, Objects, StorageFailed
from contextplane.ports.tools import Tools, ToolUnknown
from contextplane.store.damage import Damage, damage_by, damage_in, damage_sentence

__all__ = [
    "MAX_TEXTS",
    "Fidelity",
    "Outcome",
    "ReplayedPart",
    "RunDrift",
    "fidelity",
    "find_environment_drift",
    "find_input_drift",
    "replay",
    "replay_recorded",
]

Outcome: TypeAlias = Literal["matched", "diverged", "diverged_expected", "failed", "skipped"]
Fidelity: TypeAlias = Literal["exact", "degraded", "failed"]

MAX_TEXTS = 20
"""At most so many outputs of a replay are compared as text."""

_NOTHING = Digest.of(b"")


class RunDrift(Value, frozen=True):
    """A change around a run since it was recorded. `now` is empty if it does not exist any more.

    `damage` is set for an input that is not whole.
    """

    kind: Literal["environment", "tool_version", "missing_input", "damaged_input"]
    what: str
    recorded: str
    now: str = ""
    damage: Damage | msgspec.UnsetType = msgspec.UNSET


class ReplayedPart(Value, frozen=True):
    """The outcome of replaying a part of a run. `part` is its selector: `steps/3`, `outputs/report.md`.

    `recorded` and `replayed` are digests. `why` is set if it failed or was skipped, `code` if it failed, `damage` if it
    failed because the recorded content is not whole, and `text` (how the outputs differ) if a deterministic step
    diverged.
    """

    part: str
    outcome: Outcome
    index: int | None = None
    type: str = ""
    tool: str = ""
    deterministic: bool | None = None
    recorded: str = ""
    replayed: str = ""
    why: str = ""
    code: str = ""
    damage: Damage | msgspec.UnsetType = msgspec.UNSET
    text: TextDiff | msgspec.UnsetType = msgspec.UNSET


def fidelity(parts: Iterable[ReplayedPart]) -> Fidelity:
    """How faithful a replay was.

    `failed`: a step could not be run, or a recorded content is not whole. Else `degraded`: a deterministic step had
    another output. Else `exact`: a nondeterministic step may differ, and skipped steps do not count.
    """
    fidelities = {_part_fidelity(part.outcome) for part in parts}
    if "failed" in fidelities:
        return "failed"
    return "degraded" if "degraded" in fidelities else "exact"


def _part_fidelity(outcome: Outcome) -> Fidelity:
    match outcome:
        case "failed":
            return "failed"
        case "diverged":
            return "degraded"
        case "matched" | "diverged_expected" | "skipped":
            return "exact"
        case unreachable:
            assert_never(unreachable)


def replay(pack: LoadedPack, objects: Objects, tools: Tools) -> Iterator[ReplayedPart]:
    """Call every tool again, in the order of the run. A failed step does not stop the next ones."""
    texts = 0
    for position, step in enumerate(pack.manifest.steps):
        if step.type == REASONING:
            yield _step_part(position, step, "skipped", why="nothing to run")
            continue
        try:
            recorded = _verify_content(step.output_ref, objects) if step.output_ref else _NOTHING
            output = tools.call(step.tool, step.parameters or {})
        except ContextPlaneError as error:
            yield _as_failed(_step_part(position, step, "failed"), error)
            continue
        replayed = Digest.of(output)
        outcome: Outcome = "diverged" if step.deterministic else "diverged_expected"
        part = _step_part(position, step, "matched" if replayed == recorded else outcome, replayed=str(replayed))
        if part.outcome == "diverged":
            texts += 1
            left_out = TextDiff(state="left_out", why=f"only the first {MAX_TEXTS} outputs are compared as text")
            text = diff_with_bytes(step.output_ref, output, objects) if texts <= MAX_TEXTS else left_out
            part = msgspec.structs.replace(part, text=text)
        yield part


def replay_recorded(pack: LoadedPack, objects: Objects) -> Iterator[ReplayedPart]:
    """Read back the outputs of every step and of the run, from the pack alone."""
    for position, step in enumerate(pack.manifest.steps):
        if not step.output_ref:
            yield _step_part(position, step, "skipped", why="it had no output")
            continue
        yield _read_back(_step_part(position, step, "matched", replayed=step.output_ref), objects)
    for output in pack.manifest.outputs:
        part = ReplayedPart(part=f"outputs/{output.name}", outcome="matched", recorded=output.content_ref)
        yield _read_back(msgspec.structs.replace(part, replayed=output.content_ref), objects)


def find_input_drift(pack: LoadedPack, objects: Objects) -> Iterator[RunDrift]:
    """Yield the inputs that are missing or damaged in the store."""
    for entry in pack.manifest.inputs:
        name, ref = entry.name, entry.content_ref
        try:
            _verify_content(ref, objects)
        except ObjectNotFound:
            yield RunDrift(kind="missing_input", what=name, recorded=ref, damage="missing")
        except ContextPlaneError as error:
            damage = damage_by(error) or msgspec.UNSET
            yield RunDrift(kind="damaged_input", what=name, recorded=ref, now=error.message, damage=damage)


def find_environment_drift(pack: LoadedPack, tools: Tools, here: Environment) -> Iterator[RunDrift]:
    """Yield the changes of operating system, runtime and tool versions since the run."""
    then = pack.manifest.environment
    for what, recorded, now in (("os", then.os, here.os), ("runtime", then.runtime, here.runtime)):
        if recorded != now:
            yield RunDrift(kind="environment", what=what, recorded=recorded, now=now)
    for name, recorded in sorted((then.tool_versions or {}).items()):
        try:
            now = tools.version(name)
        except ToolUnknown:
            now = ""
        if recorded != now:
            yield RunDrift(kind="tool_version", what=name, recorded=recorded, now=now)


def _step_part(position: int, step: Step, outcome: Outcome, *, replayed: str = "", why: str = "") -> ReplayedPart:
    return ReplayedPart(
        part=f"steps/{position}",
        outcome=outcome,
        index=step.index,
        type=step.type,
        tool=step.tool,
        deterministic=step.deterministic,
        recorded=step.output_ref,
        replayed=replayed,
        why=why,
    )


def _as_failed(part: ReplayedPart, error: ContextPlaneError) -> ReplayedPart:
    damage = damage_by(error) or msgspec.UNSET
    return msgspec.structs.replace(part, outcome="failed", replayed="", why=str(error), code=error.code, damage=damage)


def _read_back(part: ReplayedPart, objects: Objects) -> ReplayedPart:
    try:
        _verify_content(part.recorded, objects)
    except ContextPlaneError as error:
        return _as_failed(part, error)
    return part


def _verify_content(ref: str, objects: Objects) -> Digest:
    """Check that a recorded content is whole, and return its digest."""
    digest = Digest.parse(ref)
    condition = objects.check(digest)
    damage = damage_in(condition)
    if damage is not None:
        raise _damage_error(damage)(damage_sentence("what was recorded", damage, condition.why))
    return digest


def _damage_error(damage: Damage) -> type[ContextPlaneError]:
    match damage:
        case "tampered":
            return ObjectCorrupt
        case "missing":
            return ObjectNotFound
        case "unreadable":
            return StorageFailed
        case unreachable:
            assert_never(unreachable)
