"""Verifying a file by the sidecar beside it: which run it says made it, and whether the bytes are those of that run."""

import hashlib
import os

from msgspec.structs import replace

from contextplane.adapters.files.disk import chunks_of
from contextplane.adapters.files.workspace import FileSources
from contextplane.app.platform import Platform
from contextplane.audit.load import LoadedPack, load
from contextplane.audit.verify import Answer, Expected, expected_of
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.sidecar import SIDECAR_MOST, SUFFIX, Sidecar, SidecarInvalid, read_sidecar
from contextplane.model.ids import Digest, ExecutionRef
from contextplane.model.reference import ExecutionPrefix, parse_reference
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound
from contextplane.store.find import ExecutionPackNotFound, find_execution_pack

__all__ = ["ArtifactVerdict", "claimed_pack", "sidecar_at", "verify_artifact"]

_ANYWHERE = FileSources(os.sep)
_SHOWN = 80


class ArtifactVerdict(Value, frozen=True):
    """What checking a file showed. `why` is said of every answer but `verified`; what is None was not come to."""

    answer: Answer
    why: str = ""
    sidecar: Sidecar | None = None
    pack: LoadedPack | None = None
    expected: Expected | None = None
    actual: Digest | None = None


def verify_artifact(platform: Platform, path: str) -> ArtifactVerdict:
    """Check a file against the run that its sidecar names.

    A file that is not there, or not a regular one, is an error and no answer; so is a manifest that was tampered with.
    """
    fd = _ANYWHERE.open(os.path.abspath(path))
    try:
        artifact_verdict = _claim(platform, path)
        if artifact_verdict.expected is None:
            return artifact_verdict
        running = hashlib.sha256()
        for chunk in chunks_of(fd):
            running.update(chunk)
    finally:
        os.close(fd)
    actual = Digest(running.hexdigest())
    if actual == artifact_verdict.expected.digest:
        return replace(artifact_verdict, answer="verified", actual=actual)
    return replace(
        artifact_verdict,
        answer="modified",
        why=f"expected {artifact_verdict.expected.digest}, actual {actual}",
        actual=actual,
    )


def _claim(platform: Platform, path: str) -> ArtifactVerdict:
    """Everything but the bytes: what they should be, or the answer when that cannot be told."""
    try:
        sidecar = sidecar_at(path + SUFFIX)
    except ContextPlaneError as error:
        return ArtifactVerdict(answer="unchecked", why=f"its sidecar is of no use: {error.message}")
    if sidecar is None:
        return ArtifactVerdict(answer="unknown", why=f"it has no sidecar {os.path.basename(path)}{SUFFIX}")
    artifact_verdict = ArtifactVerdict(answer="unchecked", sidecar=sidecar)
    try:
        pack = load(claimed_pack(sidecar, platform), platform.objects)
    except ObjectCorrupt:
        raise
    except (ExecutionPackNotFound, ObjectNotFound) as error:
        registered = isinstance(error, ObjectNotFound)
        absent = f"its pack is not in this store: {sidecar.context_pack[:_SHOWN]}"
        return replace(artifact_verdict, answer="unknown", why=f"{error.at}: {error.message}" if registered else absent)
    except ContextPlaneError as error:
        return replace(artifact_verdict, why=f"its pack cannot be told or read: {error.message}")
    expected = expected_of(pack.manifest, _in_workspace(platform, path), sidecar.output)
    if isinstance(expected, str):
        return replace(artifact_verdict, pack=pack, why=expected)
    return replace(artifact_verdict, pack=pack, expected=expected)


def sidecar_at(path: str) -> Sidecar | None:
    """The sidecar that lies at `path`, None when nothing does."""
    if not os.path.lexists(path):
        return None
    data = bytearray()
    for chunk in _ANYWHERE.chunks(os.path.abspath(path)):
        data += chunk
        if len(data) > SIDECAR_MOST:
            raise SidecarInvalid("larger than any sidecar", at=path)
    return read_sidecar(bytes(data))


def claimed_pack(sidecar: Sidecar, platform: Platform) -> Digest:
    """The registered pack that a sidecar names, in whichever form."""
    reference = parse_reference(sidecar.context_pack)
    named = ExecutionRef(reference.named) if isinstance(reference.named, Digest) else reference.named
    if reference.selector or not isinstance(named, ExecutionRef | ExecutionPrefix):
        raise SidecarInvalid(f"names no execution pack: {sidecar.context_pack[:_SHOWN]!r}")
    return find_execution_pack(platform.catalog, named)


def _in_workspace(platform: Platform, path: str) -> str:
    """Where a file lies, seen from the folder that the store is in; links on the way to it are resolved."""
    folder, base = os.path.split(os.path.abspath(path))
    root = os.path.dirname(os.path.realpath(platform.home.path))
    return os.path.relpath(os.path.join(os.path.realpath(folder), base), root)
