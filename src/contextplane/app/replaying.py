"""Replaying: a pack of the store, its tools in their confines, and what is around us now."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from contextplane.adapters.tools.process import Confines, ProcessTools
from contextplane.app.platform import Platform
from contextplane.audit.load import LoadedPack
from contextplane.audit.replay import (
    Drift,
    Replayed,
    changed_inputs,
    changed_surroundings,
    replay,
    replay_recorded,
)
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.manifest import Environment
from contextplane.model.value import Value

__all__ = ["Limits", "Replay", "WorkspaceNotFound", "replaying", "replaying_recorded"]


class WorkspaceNotFound(ContextPlaneError):
    """The folder in which tools should run is not there, or is no folder."""

    code: ClassVar[str] = "workspace_not_found"
    family: ClassVar[Family] = "not_found"


class Limits(Value, frozen=True):
    """What the tools of a replay may reach. Without a root it is the folder that holds the store."""

    root: str | None = None
    hosts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    seconds: float = 10.0


class Replay(Value, frozen=True):
    """A replay that runs as its parts are asked for, and what has changed around the run."""

    parts: Iterator[Replayed]
    drift: tuple[Drift, ...]


@contextmanager
def replaying(platform: Platform, pack: LoadedPack, limits: Limits) -> Iterator[Replay]:
    """Call the tools of a pack again. They end with the block."""
    root = os.path.dirname(os.path.abspath(platform.home.path)) if limits.root is None else limits.root
    if not os.path.isdir(root):
        raise WorkspaceNotFound("not a folder", at=root, hint="--root names the folder in which the tools run")
    confines = Confines(root=root, hosts=limits.hosts, modules=limits.modules, seconds=limits.seconds)
    with ProcessTools(confines) as tools:
        drift = (*changed_surroundings(pack, tools, _here()), *changed_inputs(pack, platform.objects))
        yield Replay(parts=replay(pack, platform.objects, tools), drift=drift)


@contextmanager
def replaying_recorded(platform: Platform, pack: LoadedPack) -> Iterator[Replay]:
    """Read the outputs of a pack back. What is around us does not matter to that."""
    drift = tuple(changed_inputs(pack, platform.objects))
    yield Replay(parts=replay_recorded(pack, platform.objects), drift=drift)


def _here() -> Environment:
    version = ".".join(map(str, sys.version_info[:3]))
    return Environment(os=sys.platform, runtime=f"python{version}")
