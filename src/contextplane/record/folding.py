"""A recording is its events: what has been recorded so far is a fold over them. Pure."""

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import canonical
from contextplane.model.ids import Digest
from contextplane.model.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value

__all__ = ["Began", "Finished", "Noted", "RecordingBroken", "RecordingEvent", "SoFar", "folded", "room_of"]

_BESIDE = 10  # the comma behind an entry, and the digits of its index
_FRAME = 200  # the names of the fields, the version and the time


class RecordingBroken(ContextPlaneError):
    """The events of a recording are not those that a recorder writes."""

    code: ClassVar[str] = "recording_broken"
    family: ClassVar[Family] = "refused"


class Began(Value, frozen=True, tag="began"):
    """The first event: when, under which model and where.

    `suspects`: which field looks to hold which secret. `unsearched`: of which only the beginning was looked at.
    """

    model: Model
    system_prompt: str
    environment: Environment
    parent: str = ""
    begun: str = ""
    suspects: tuple[tuple[str, str], ...] = ()
    unsearched: tuple[str, ...] = ()


class Noted(Value, frozen=True, tag="noted"):
    """One thing that belongs to the run.

    `suspects`: which of its fields looks to hold which kind of secret. `unsearched`: of which only the beginning was
    looked at.
    """

    part: Prompt | None = None
    given: Input | None = None
    step: Step | None = None
    made: Output | None = None
    suspects: tuple[tuple[str, str], ...] = ()
    unsearched: tuple[str, ...] = ()


class Finished(Value, frozen=True, tag="finished"):
    """The last event: the run is the pack of this digest. Nothing follows it."""

    digest: str


RecordingEvent = Began | Noted | Finished


class SoFar(Value, frozen=True):
    """What was recorded: the manifest it makes, where something looks like a secret, and the pack it was closed as.

    `unsearched`: of which contents only the beginning was looked at for secrets.
    """

    manifest: Manifest
    begun: Timestamp
    suspects: tuple[tuple[str, str], ...]
    unsearched: tuple[str, ...]
    finished: Digest | None


class _Lists:
    """The lists of a manifest as they grow."""

    def __init__(self) -> None:
        self.of: dict[str, list[Any]] = {"prompts": [], "inputs": [], "steps": [], "outputs": []}
        self.suspects: list[tuple[str, str]] = []
        self.unsearched: list[str] = []

    def add(self, event: Noted) -> None:
        named = (("prompts", event.part), ("inputs", event.given), ("steps", event.step), ("outputs", event.made))
        for name, one in named:
            if one is not None:
                at = f"/{name}/{len(self.of[name])}"
                self.suspects += [(f"{at}/{field}", kind) for field, kind in event.suspects]
                self.unsearched += [f"{at}/{field}" for field in event.unsearched]
                self.of[name].append(one)


def folded(events: Iterable[RecordingEvent]) -> SoFar:
    """What these events say. The run's `created` is the time of its newest step, or when it began if it has none."""
    began: Began | None = None
    finished: Digest | None = None
    lists = _Lists()
    for event in events:
        match event:
            case Began():
                began = event
                lists.suspects += [(f"/{field}", kind) for field, kind in event.suspects]
                lists.unsearched += [f"/{field}" for field in event.unsearched]
            case Noted():
                lists.add(event)
            case Finished():
                finished = Digest.parse(event.digest)
    if began is None:
        raise RecordingBroken("it does not begin", hint="it was not written by a recorder")
    begun = Timestamp.parse(began.begun) if began.begun else NO_TIME
    steps = lists.of["steps"]
    manifest = Manifest(
        created=str(max((Timestamp.parse(step.timestamp) for step in steps), default=begun)),
        model=began.model,
        system_prompt=began.system_prompt,
        environment=began.environment,
        parent=began.parent,
        prompts=tuple(lists.of["prompts"]),
        inputs=tuple(lists.of["inputs"]),
        steps=tuple(msgspec.structs.replace(step, index=n) for n, step in enumerate(steps)),
        outputs=tuple(lists.of["outputs"]),
    )
    return SoFar(
        manifest=manifest,
        begun=begun,
        suspects=tuple(lists.suspects),
        unsearched=tuple(lists.unsearched),
        finished=finished,
    )


def room_of(event: Began | Noted) -> int:
    """How many bytes of the manifest an event takes: never too few, and too many by less than the name of a field."""
    if isinstance(event, Began):
        named = {"model": event.model, "environment": event.environment, "system_prompt": event.system_prompt}
        return _FRAME + len(canonical(msgspec.to_builtins({**named, "parent": event.parent})))
    parts = (one for one in (event.part, event.given, event.step, event.made) if one is not None)
    return sum(_BESIDE + len(canonical(msgspec.to_builtins(one))) for one in parts)
