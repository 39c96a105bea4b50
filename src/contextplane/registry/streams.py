"""The names of the registry's streams, and which versions are published. It reads no event.

    registry/artifact/<64 hex>      the history of a digest before it is published
    registry/drafts/<id>@<X.Y.Z>    the digests of its drafts
    registry/names/<id>             who owns an id
    registry/version/<id>@<X.Y.Z>   the history of a version from its publication on
    registry/pins/<env>/<id>        what an environment pins for an id, with its overlays
    registry/aliases/<id>           names for people
    registry/environments/<env>     whether an environment is protected
    trust/keyring                   the keyring, whose events are entries of the log, too
    registry/log                    one entry for each event of those above, in order: the leaves of the Merkle tree
    tree/registry/<level>           its nodes
    registry/checkpoints            one signed note for each transaction that appended
    registry/cosignatures           signatures of witnesses on checkpoints

Ids and names of environments have no slash, so that no two subjects share a name. They are bounded, and so is the depth
of the tree over all names.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import ClassVar, Protocol

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, PackRef, is_sha256

__all__ = [
    "ALIASES",
    "ARTIFACTS",
    "CHECKPOINTS",
    "COSIGNATURES",
    "DRAFTS",
    "ENVIRONMENTS",
    "LOG",
    "NAMES",
    "PINS",
    "REGISTRY",
    "SUBJECTS",
    "TREE",
    "VERSIONS",
    "NameInvalid",
    "StreamNames",
    "aliases_stream",
    "artifact_stream",
    "digests_of",
    "drafts_stream",
    "environment_stream",
    "is_subject",
    "names_stream",
    "origin_of",
    "pins_stream",
    "version_stream",
    "versions_of",
]

REGISTRY = "registry/"
"""The prefix of all streams except the tree's, and of the roots that keep the registry's objects."""

ARTIFACTS = "registry/artifact/"
DRAFTS = "registry/drafts/"
NAMES = "registry/names/"
VERSIONS = "registry/version/"
PINS = "registry/pins/"
ALIASES = "registry/aliases/"
ENVIRONMENTS = "registry/environments/"

SUBJECTS = (ALIASES, ARTIFACTS, DRAFTS, ENVIRONMENTS, NAMES, PINS, VERSIONS)
"""The prefixes of the registry's own streams whose events are in the log. Those of the keyring are, too."""

LOG = "registry/log"
CHECKPOINTS = "registry/checkpoints"
COSIGNATURES = "registry/cosignatures"

TREE = "registry"
"""The name of the tree: `StreamTree(streams, TREE)`."""


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_LONGEST = 256  # no catalog stores a stream with a longer name
_MOST_NAMES = 2**16  # that are remembered


class NameInvalid(ContextPlaneError):
    """A text that is no name of an environment, and no id."""

    code: ClassVar[str] = "registry_name_invalid"
    family: ClassVar[Family] = "usage"


def artifact_stream(digest: Digest) -> str:
    return ARTIFACTS + digest.hex


def drafts_stream(ref: PackRef) -> str:
    return DRAFTS + str(ref)


def names_stream(base_id: str) -> str:
    return NAMES + _check_name(base_id)


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
    if not _is_name(name):
        raise NameInvalid(f"not a name: {name[:80]!r}", hint="ASCII letters, digits, _ . : and -, at most 128")
    return name


def is_subject(stream: str) -> bool:
    """Whether this is the name of a stream of the registry whose events are in the log.

    A signer of the log can write any name into it. No reader looks at a stream with another name.
    """
    return len(stream) <= _LONGEST and _has_form(stream)


@lru_cache(maxsize=_MOST_NAMES)
def _has_form(stream: str) -> bool:
    kind = next((prefix for prefix in SUBJECTS if stream.startswith(prefix)), "")
    rest = stream.removeprefix(kind)
    if kind == ARTIFACTS:
        return is_sha256(rest)
    if kind == PINS:
        environment, _, rest = rest.partition("/")
        return _is_name(environment) and _is_name(rest)
    if kind in {DRAFTS, VERSIONS}:
        try:
            rest = PackRef.parse(rest).pack_id
        except ContextPlaneError:
            return False
    return bool(kind) and _is_name(rest)


def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


class StreamNames(Protocol):
    """Lists streams by the beginning of their names: a reader, by the proved tree, or a catalog itself."""

    def names(self, prefix: str = "") -> Iterator[str]: ...


def versions_of(streams: StreamNames, base_id: str = "") -> list[PackRef]:
    """Every version that has a stream, of one id or of all, ordered by id and number.

    One whose events are all void was never published. A name that is none of a version has only void events.
    """
    prefix, refs = f"{VERSIONS}{base_id}@" if base_id else VERSIONS, list[PackRef]()
    for name in streams.names(prefix):
        with suppress(ContextPlaneError):
            refs.append(PackRef.parse(name.removeprefix(VERSIONS)))
    return sorted(refs)


def digests_of(streams: StreamNames) -> list[Digest]:
    """Every digest that has a stream. One whose events are all void was never recorded."""
    texts = (name.removeprefix(ARTIFACTS) for name in streams.names(ARTIFACTS))
    return [Digest(text) for text in texts if is_sha256(text)]
