"""Replaying: a pack of the store, its tools in their confines, and what is around us now."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contextplane.adapters.tools.process import Confines, ProcessTools
from contextplane.app.platform import Platform
from contextplane.app.settings import passed_on
from contextplane.audit.load import LoadedPack
from contextplane.audit.replay import Drift, Replayed, changed_inputs, changed_surroundings, replay, replay_recorded
from contextplane.model.execution.manifest import Environment
from contextplane.model.value import Value
from contextplane.ports.tools import Confinement

__all__ = ["Limits", "Replay", "replaying", "replaying_recorded"]


class Limits(Value, frozen=True):
    """What the tools of a replay may reach. Without a root it is the folder that holds the store.

    `trusting`: code of others is called also where no kernel holds it.
    """

    root: str | None = None
    hosts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: float = 10.0
    trusting: bool = False


class Replay(Value, frozen=True):
    """A replay that runs as its parts are asked for, and what has changed around the run.

    `confinement` tells who held the tools that were called so far; None when there was none.
    """

    parts: Iterator[Replayed]
    drift: tuple[Drift, ...]
    confinement: Callable[[], Confinement | None] = lambda: None


@contextmanager
def replaying(platform: Platform, pack: LoadedPack, limits: Limits) -> Iterator[Replay]:
    """Call the tools of a pack again. They end with the block."""
    root = os.path.dirname(os.path.abspath(platform.home.path)) if limits.root is None else limits.root
    confines = Confines(
        root=root,
        store=platform.home.path,
        hosts=limits.hosts,
        modules=limits.modules,
        seconds=limits.seconds,
        environment=passed_on(),
        trusting=limits.trusting,
    )
    with ProcessTools(confines) as tools:
        drift = (*changed_surroundings(pack, tools, _here()), *changed_inputs(pack, platform.objects))
        parts = replay(pack, platform.objects, tools)
        yield Replay(parts=parts, drift=drift, confinement=lambda: tools.confinement)


@contextmanager
def replaying_recorded(platform: Platform, pack: LoadedPack) -> Iterator[Replay]:
    """Read the outputs of a pack back. What is around us does not matter to that."""
    drift = tuple(changed_inputs(pack, platform.objects))
    yield Replay(parts=replay_recorded(pack, platform.objects), drift=drift)


def _here() -> Environment:
    version = ".".join(map(str, sys.version_info[:3]))
    return Environment(os=sys.platform, runtime=f"python{version}")
