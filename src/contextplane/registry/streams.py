"""The names of the registry's streams, and which versions are published. It reads no event.

    registry/artifact/<64 hex>      the history of a digest before it is published
    registry/version/<id>@<X.Y.Z>   the history of a version from its publication on
    registry/pins/<env>/<id>        what an environment pins for an id, with its overlays
    registry/aliases/<id>           names for people
    registry/environments/<env>     whether an environment is protected
    registry/log                    one entry for each event of those above, in order: the leaves of the Merkle tree
    tree/registry/<level>           its nodes
    registry/checkpoints            one signed note for each transaction that appended

Ids and names of environments have no slash, so that no two subjects share a name.
"""

import re
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, PackRef
from contextplane.ports.catalog import StreamsView

__all__ = [
    "ALIASES",
    "ARTIFACTS",
    "CHECKPOINTS",
    "ENVIRONMENTS",
    "LOG",
    "PINS",
    "REGISTRY",
    "SUBJECTS",
    "TREE",
    "VERSIONS",
    "NameInvalid",
    "aliases_stream",
    "artifact_stream",
    "environment_stream",
    "origin_of",
    "pins_stream",
    "predecessor",
    "version_stream",
    "versions_of",
]

REGISTRY = "registry/"
"""The prefix of all streams except the tree's, and of the roots that keep the registry's objects."""

ARTIFACTS = "registry/artifact/"
VERSIONS = "registry/version/"
PINS = "registry/pins/"
ALIASES = "registry/aliases/"
ENVIRONMENTS = "registry/environments/"

SUBJECTS = (ALIASES, ARTIFACTS, ENVIRONMENTS, PINS, VERSIONS)
"""The prefixes of the streams whose events are in the log."""

LOG = "registry/log"
CHECKPOINTS = "registry/checkpoints"

TREE = "registry"
"""The name of the tree: `StreamTree(streams, TREE)`."""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


class NameInvalid(ContextPlaneError):
    """A text that is no name of an environment, and no id."""

    code: ClassVar[str] = "registry_name_invalid"
    family: ClassVar[Family] = "usage"


def artifact_stream(digest: Digest) -> str:
    return ARTIFACTS + digest.hex


def version_stream(ref: PackRef) -> str:
    return VERSIONS + str(ref)


def pins_stream(environment: str, base_id: str) -> str:
    return f"{PINS}{_check_name(environment)}/{_check_name(base_id)}"


def aliases_stream(base_id: str) -> str:
    return ALIASES + _check_name(base_id)


def environment_stream(environment: str) -> str:
    return ENVIRONMENTS + _check_name(environment)


def origin_of(store_id: str) -> str:
    """The origin of the log of a store in its checkpoints."""
    return f"contextplane.registry/{store_id}"


def _check_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise NameInvalid(f"not a name: {name[:80]!r}", hint="ASCII letters, digits, _ . : and -, at most 128")
    return name


def versions_of(streams: StreamsView, base_id: str = "") -> list[PackRef]:
    """Every version that was ever published, of one id or of all, ordered by id and number."""
    prefix = f"{VERSIONS}{base_id}@" if base_id else VERSIONS
    return sorted(PackRef.parse(name.removeprefix(VERSIONS)) for name in streams.names(prefix))


def predecessor(streams: StreamsView, ref: PackRef) -> PackRef | None:
    """The highest published version below a number: that of 1.0.1 is 1.0.0, even if 2.0.0 exists."""
    below = [version for version in versions_of(streams, ref.pack_id) if version.release < ref.release]
    return below[-1] if below else None
