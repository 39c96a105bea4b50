"""Replays a pack of the store: calls its tools again, confined, or reads its recorded outputs back."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contextplane.adapters.tools.process import ProcessTools, SandboxOptions
from contextplane.app.platform import Platform
from contextplane.app.settings import tool_environment
from contextplane.audit.load import LoadedPack
from contextplane.audit.replay import (
    Fidelity,
    ReplayedPart,
    RunDrift,
    fidelity,
    find_environment_drift,
    find_input_drift,
    replay,
    replay_recorded,
)
from contextplane.model.execution.manifest import Environment
from contextplane.model.value import Value
from contextplane.ports.tools import Confinement

__all__ = [
    "Fidelity",
    "Replay",
    "ReplayLimits",
    "ReplayedPart",
    "RunDrift",
    "fidelity",
    "open_recorded_replay",
    "open_replay",
]


class ReplayLimits(Value, frozen=True):
    """What the tools of a replay may reach. The default of `root` is the folder that holds the store.

    `trusting`: foreign code is called also where the kernel cannot confine it.
    """

    root: str | None = None
    hosts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: float = 10.0
    trusting: bool = False


class Replay(Value, frozen=True):
    """A replay that runs as its parts are iterated, and the drift of environment and inputs since the run.

    `confinement` returns how the tools called so far were confined; None if none was called.
    """

    parts: Iterator[ReplayedPart]
    drift: tuple[RunDrift, ...]
    confinement: Callable[[], Confinement | None] = lambda: None


@contextmanager
def open_replay(platform: Platform, pack: LoadedPack, limits: ReplayLimits) -> Iterator[Replay]:
    """Call the tools of a pack again. Their processes end with the block."""
    root = os.path.dirname(os.path.abspath(platform.home.path)) if limits.root is None else limits.root
    confines = SandboxOptions(
        root=root,
        store=platform.home.path,
        hosts=limits.hosts,
        modules=limits.modules,
        seconds=limits.seconds,
        environment=tool_environment(),
        trusting=limits.trusting,
    )
    with ProcessTools(confines) as tools:
        drift = (
            *find_environment_drift(pack, tools, _current_environment()),
            *find_input_drift(pack, platform.objects),
        )
        parts = replay(pack, platform.objects, tools)
        yield Replay(parts=parts, drift=drift, confinement=lambda: tools.confinement)


@contextmanager
def open_recorded_replay(platform: Platform, pack: LoadedPack) -> Iterator[Replay]:
    """Read the recorded outputs of a pack back. The current environment does not matter here."""
    drift = tuple(find_input_drift(pack, platform.objects))
    yield Replay(parts=replay_recorded(pack, platform.objects), drift=drift)


def _current_environment() -> Environment:
    version = ".".join(map(str, sys.version_info[:3]))
    return Environment(os=sys.platform, runtime=f"python{version}")
