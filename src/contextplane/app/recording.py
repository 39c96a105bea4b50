"""Recording runs of one's own agent loop: the desk of a store, and recorders that sit at it."""

import os
import platform as machine
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from contextplane.adapters.system import SystemIds
from contextplane.app.packing import register
from contextplane.app.platform import Platform, opened
from contextplane.app.settings import Settings, from_environment
from contextplane.model.canonical import Json
from contextplane.model.manifest import Environment, Model
from contextplane.record.folding import RecordingBroken
from contextplane.record.recorder import Desk, Recorder

__all__ = ["desk_of", "recording", "resumed"]


def desk_of(platform: Platform) -> Desk:
    return Desk(
        objects=platform.objects,
        catalog=platform.catalog,
        clock=platform.clock,
        register=lambda digest, raw: register(platform, digest, raw),
    )


@contextmanager
def recording(
    *,
    model: str,
    system_prompt: str | bytes,
    parameters: Mapping[str, Json] | None = None,
    tool_versions: Mapping[str, str] | None = None,
    settings: Settings | None = None,
) -> Iterator[Recorder]:
    """Record a run into the store that we are in. Leaving the block by an exception leaves it to be resumed."""
    with opened(settings or from_environment()) as platform:
        environment = Environment(
            os=os.uname().sysname.lower(),
            runtime=f"python{machine.python_version()}",
            tool_versions=dict(tool_versions) if tool_versions is not None else None,
        )
        begun = Recorder.begin(
            desk_of(platform),
            f"rec_{SystemIds().token()}",
            model=Model(identifier=model, parameters=dict(parameters) if parameters is not None else None),
            system_prompt=system_prompt,
            environment=environment,
        )
        with begun as recorder:
            yield recorder


@contextmanager
def resumed(recording_id: str, *, settings: Settings | None = None) -> Iterator[Recorder]:
    """Go on with a recording that its process did not finish."""
    with opened(settings or from_environment()) as platform:
        desk = desk_of(platform)
        with desk.catalog.read() as view:
            if not view.streams.head(f"recording/{recording_id}"):
                raise RecordingBroken("there is no such recording", at=recording_id, hint="check the id")
        with Recorder(desk, recording_id) as recorder:
            yield recorder
