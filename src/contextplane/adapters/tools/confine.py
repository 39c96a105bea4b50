"""Confining the process of a tool: limits of the system, the kernel's wall where there is one, and Python's fence.

All of it is set up once, before a tool is called, and cannot be taken down in this process.
"""

import math
import os
import resource
import socket
import sys
from collections.abc import Sequence

from contextplane.adapters.tools.fence import Fence, libraries
from contextplane.adapters.tools.landlock import Reach, wall_in
from contextplane.adapters.tools.seccomp import filter_in
from contextplane.adapters.tools.workspace import Workspace
from contextplane.ports.tools import Confinement

__all__ = ["confine", "reach_of"]

_LIMITS = {resource.RLIMIT_DATA: 2 << 30, resource.RLIMIT_FSIZE: 1 << 30, resource.RLIMIT_CORE: 0}
"""Memory, the size of a file that is written, and no image of a process that died."""


def confine(workspace: Workspace, hosts: Sequence[str], *, scratch: str, seconds: float) -> Confinement:
    """Close to this process all but the workspace and the libraries (to read), the scratch folder, and these hosts.

    Who has a scratch folder runs code of others, and that once: to it, the kernel closes the store as well, and it ends
    by itself when all processors together could have worked on it for so long.
    """
    readable = libraries()
    work = {resource.RLIMIT_CPU: math.ceil(seconds) * (os.cpu_count() or 1)} if scratch else {}
    for limit, most in {**_LIMITS, **work}.items():
        _, hard = resource.getrlimit(limit)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (least, least))
    reach = reach_of(workspace, readable, scratch=scratch)
    walled = wall_in(reach, connecting=bool(hosts)) and filter_in(connecting=bool(hosts))
    fence = Fence(workspace, hosts, readable, scratch=scratch, walled=walled)
    socket.getaddrinfo = fence.resolving(socket.getaddrinfo)
    sys.addaudithook(fence)
    return "kernel" if walled else "python"


def reach_of(workspace: Workspace, readable: Sequence[str], *, scratch: str) -> Reach:
    """What the wall leaves open.

    Its rules hold for all below a place, so the store is closed by naming what lies around it, as it is now. Our own
    tools look after the store by themselves, and see what comes into the workspace later.
    """
    places = (*readable, workspace.root)
    if not scratch:
        return Reach(read=places, written=(os.devnull,))
    parts = dict(part for place in places for part in workspace.around_store(place))
    return Reach(
        read=tuple(part for part, whole in parts.items() if whole),
        listed=tuple(part for part, whole in parts.items() if not whole),
        written=(os.path.realpath(scratch), os.devnull),
    )
