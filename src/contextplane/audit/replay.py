"""Replay: what a run's tools give today, beside what they gave then, step by step.

A step of reasoning has nothing to run and is passed over; every other step names a tool and is called again with its
recorded parameters. What a step was recorded to give is re-hashed first: a comparison with damaged bytes proves
nothing. The recorded form calls no tool, and reads every output of the pack back instead.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from contextplane.audit.load import LoadedPack
from contextplane.audit.text_diff import TextDiff, diff_from
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.log import REASONING
from contextplane.model.execution.manifest import Environment, Step
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound, Objects, StorageFailed
from contextplane.ports.tools import Tools, ToolUnknown
from contextplane.store.damage import Damage, damage_by, damage_in, said

__all__ = [
    "MOST_TEXTS",
    "Drift",
    "Fidelity",
    "Outcome",
    "Replayed",
    "changed_inputs",
    "changed_surroundings",
    "fidelity",
    "replay",
    "replay_recorded",
]

Outcome: TypeAlias = Literal["matched", "diverged", "diverged_expected", "failed", "skipped"]
Fidelity: TypeAlias = Literal["exact", "degraded", "failed"]

MOST_TEXTS = 20
"""No more outputs of one replay are compared as text."""

_NOTHING = Digest.of(b"")


class Drift(Value, frozen=True):
    """Something around a run that is not as it was recorded. `now` is empty where there is nothing any more.

    `damage` is said of an input that is not kept whole.
    """

    kind: Literal["environment", "tool_version", "missing_input", "damaged_input"]
    what: str
    recorded: str
    now: str = ""
    damage: Damage | msgspec.UnsetType = msgspec.UNSET


class Replayed(Value, frozen=True):
    """How one part of a run came out. `part` is its name in a reference: `steps/3`, `outputs/report.md`.

    `recorded` and `replayed` are digests. `why` is said of what failed or was skipped, `code` of what failed, `damage`
    of what failed because it is not kept whole, `text`, how the outputs differ, of what diverged though it should not.
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


def fidelity(parts: Iterable[Replayed]) -> Fidelity:
    """How faithful a replay was.

    `failed`: something could not be run, or what was recorded is not whole. Else `degraded`: a deterministic step gave
    something else. Else `exact`: a step that says that it is not deterministic may differ, and one that has nothing to
    run spoils nothing.
    """
    outcomes = {part.outcome for part in parts}
    if "failed" in outcomes:
        return "failed"
    return "degraded" if "diverged" in outcomes else "exact"


def replay(pack: LoadedPack, objects: Objects, tools: Tools) -> Iterator[Replayed]:
    """Call every tool again, in the order of the run. A step that fails does not keep the next one from running."""
    texts = 0
    for position, step in enumerate(pack.manifest.steps):
        if step.type == REASONING:
            yield _of_step(position, step, "skipped", why="nothing to run")
            continue
        try:
            recorded = _whole(step.output_ref, objects) if step.output_ref else _NOTHING
            output = tools.call(step.tool, step.parameters or {})
        except ContextPlaneError as error:
            yield _failed(_of_step(position, step, "failed"), error)
            continue
        replayed = Digest.of(output)
        outcome: Outcome = "diverged" if step.deterministic else "diverged_expected"
        part = _of_step(position, step, "matched" if replayed == recorded else outcome, replayed=str(replayed))
        if part.outcome == "diverged":
            texts += 1
            left_out = TextDiff(state="left_out", why=f"only the first {MOST_TEXTS} outputs are compared as text")
            text = diff_from(step.output_ref, output, objects) if texts <= MOST_TEXTS else left_out
            part = msgspec.structs.replace(part, text=text)
        yield part


def replay_recorded(pack: LoadedPack, objects: Objects) -> Iterator[Replayed]:
    """Read back what every step and the run itself gave, from the pack alone."""
    for position, step in enumerate(pack.manifest.steps):
        if not step.output_ref:
            yield _of_step(position, step, "skipped", why="it had no output")
            continue
        yield _read_back(_of_step(position, step, "matched", replayed=step.output_ref), objects)
    for output in pack.manifest.outputs:
        part = Replayed(part=f"outputs/{output.name}", outcome="matched", recorded=output.content_ref)
        yield _read_back(msgspec.structs.replace(part, replayed=output.content_ref), objects)


def changed_inputs(pack: LoadedPack, objects: Objects) -> Iterator[Drift]:
    """The inputs that the store no longer has as they were."""
    for one in pack.manifest.inputs:
        try:
            _whole(one.content_ref, objects)
        except ObjectNotFound:
            yield Drift(kind="missing_input", what=one.name, recorded=one.content_ref, damage="missing")
        except ContextPlaneError as error:
            damage = damage_by(error) or msgspec.UNSET
            yield Drift(kind="damaged_input", what=one.name, recorded=one.content_ref, now=error.message, damage=damage)


def changed_surroundings(pack: LoadedPack, tools: Tools, here: Environment) -> Iterator[Drift]:
    """What is not as it was around the run: operating system, runtime, and the versions of its tools."""
    then = pack.manifest.environment
    for what, recorded, now in (("os", then.os, here.os), ("runtime", then.runtime, here.runtime)):
        if recorded != now:
            yield Drift(kind="environment", what=what, recorded=recorded, now=now)
    for name, recorded in sorted((then.tool_versions or {}).items()):
        try:
            now = tools.version(name)
        except ToolUnknown:
            now = ""
        if recorded != now:
            yield Drift(kind="tool_version", what=name, recorded=recorded, now=now)


def _of_step(position: int, step: Step, outcome: Outcome, *, replayed: str = "", why: str = "") -> Replayed:
    return Replayed(
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


def _failed(part: Replayed, error: ContextPlaneError) -> Replayed:
    damage = damage_by(error) or msgspec.UNSET
    return msgspec.structs.replace(part, outcome="failed", replayed="", why=str(error), code=error.code, damage=damage)


def _read_back(part: Replayed, objects: Objects) -> Replayed:
    try:
        _whole(part.recorded, objects)
    except ContextPlaneError as error:
        return _failed(part, error)
    return part


def _whole(ref: str, objects: Objects) -> Digest:
    """The digest of recorded bytes that are there and are what it says."""
    digest = Digest.parse(ref)
    condition = objects.check(digest)
    damage = damage_in(condition)
    if damage is not None:
        raise _DAMAGED[damage](said("what was recorded", damage, condition.why))
    return digest


_DAMAGED: dict[Damage, type[ContextPlaneError]] = {
    "tampered": ObjectCorrupt,
    "missing": ObjectNotFound,
    "unreadable": StorageFailed,
}
