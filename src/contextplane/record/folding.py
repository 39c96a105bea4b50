"""A recording is its events: what has been recorded so far is a fold over them. Pure."""

from collections.abc import Iterable
from typing import Any, ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value

__all__ = ["Began", "Finished", "Noted", "RecordingBroken", "folded"]


class RecordingBroken(ContextPlaneError):
    """The events of a recording are not those that a recorder writes."""

    code: ClassVar[str] = "recording_broken"
    family: ClassVar[Family] = "refused"


class Began(Value, frozen=True, tag="began"):
    """The first event: under which model and where."""

    model: Model
    system_prompt: str
    environment: Environment
    parent: str = ""


class Noted(Value, frozen=True, tag="noted"):
    """One thing that belongs to the run."""

    part: Prompt | None = None
    given: Input | None = None
    step: Step | None = None
    made: Output | None = None


class Finished(Value, frozen=True, tag="finished"):
    """The last event: the run is the pack of this digest."""

    digest: str


def folded(events: Iterable[Began | Noted | Finished]) -> Manifest:
    """The manifest of what was recorded so far. Its `created` is the time of the newest step."""
    lists: dict[str, list[Any]] = {"part": [], "given": [], "step": [], "made": []}
    began: Began | None = None
    for event in events:
        match event:
            case Began():
                began = event
            case Noted():
                for name, found in lists.items():
                    one = getattr(event, name)
                    if one is not None:
                        found.append(one)
            case Finished():
                break
    if began is None:
        raise RecordingBroken("it does not begin", hint="it was never recorded here")
    created = max((Timestamp.parse(step.timestamp) for step in lists["step"]), default=NO_TIME)
    return Manifest(
        created=str(created),
        model=began.model,
        system_prompt=began.system_prompt,
        environment=began.environment,
        parent=began.parent,
        prompts=tuple(lists["part"]),
        inputs=tuple(lists["given"]),
        steps=tuple(msgspec.structs.replace(step, index=n) for n, step in enumerate(lists["step"])),
        outputs=tuple(lists["made"]),
    )
