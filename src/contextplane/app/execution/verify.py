"""Verifies a run; or a file by its sidecar: whether it is an output of the run that the sidecar names."""

import hashlib
import os
from collections.abc import Callable

from msgspec.structs import replace

from contextplane.adapters.files.disk import read_chunks
from contextplane.adapters.files.workspace import FileSources
from contextplane.app.platform import Platform
from contextplane.app.references import find_run
from contextplane.audit.load import LoadedPack, load_pack
from contextplane.audit.verify import (
    Answer,
    ExpectedOutput,
    PackVerdict,
    VerificationProblem,
    expected_output,
    verify_pack,
)
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.sidecar import MAX_SIDECAR_BYTES, SUFFIX, Sidecar, SidecarInvalid, read_sidecar
from contextplane.model.ids import Digest, ExecutionRef
from contextplane.model.reference import ExecutionPrefix, parse_reference
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectCorrupt, ObjectNotFound
from contextplane.store.find import ExecutionPackNotFound, find_execution_pack

__all__ = [
    "ArtifactVerdict",
    "PackVerdict",
    "VerificationProblem",
    "claimed_pack",
    "read_sidecar_at",
    "verify_artifact",
    "verify_run",
]

_ANYWHERE = FileSources(os.sep)
_SHOWN = 80


class ArtifactVerdict(Value, frozen=True):
    """The result of verifying a file. `why` explains every answer but `verified`.

    A field is None if the check ended before it was known.
    """

    answer: Answer
    why: str = ""
    sidecar: Sidecar | None = None
    pack: LoadedPack | None = None
    expected: ExpectedOutput | None = None
    actual: Digest | None = None


def verify_run(platform: Platform, text: str, seen: Callable[[int, int], None]) -> PackVerdict:
    """Verify the execution pack that a text names. `seen` is told the size of each object that was hashed."""
    return verify_pack(find_run(text, platform), platform.entries, platform.objects, seen=seen)


def verify_artifact(platform: Platform, path: str) -> ArtifactVerdict:
    """Check a file against the run that its sidecar names.

    A file that is missing or not regular is an error, not an answer. So is a manifest that was tampered with.
    """
    fd = _ANYWHERE.open(os.path.abspath(path))
    try:
        verdict = _check_claim(platform, path)
        if verdict.expected is None:
            return verdict
        running = hashlib.sha256()
        for chunk in read_chunks(fd):
            running.update(chunk)
    finally:
        os.close(fd)
    actual = Digest(running.hexdigest())
    if actual == verdict.expected.digest:
        return replace(verdict, answer="verified", actual=actual)
    return replace(
        verdict,
        answer="modified",
        why=f"expected {verdict.expected.digest}, actual {actual}",
        actual=actual,
    )


def _check_claim(platform: Platform, path: str) -> ArtifactVerdict:
    """Check all but the bytes: return the expected digest, or the answer if there is none."""
    try:
        sidecar = read_sidecar_at(path + SUFFIX)
    except ContextPlaneError as error:
        return ArtifactVerdict(answer="unchecked", why=f"its sidecar cannot be used: {error.message}")
    if sidecar is None:
        return ArtifactVerdict(answer="unknown", why=f"it has no sidecar {os.path.basename(path)}{SUFFIX}")
    verdict = ArtifactVerdict(answer="unchecked", sidecar=sidecar)
    try:
        pack = load_pack(claimed_pack(sidecar, platform), platform.objects)
    except ObjectCorrupt:
        raise
    except (ExecutionPackNotFound, ObjectNotFound) as error:
        registered = isinstance(error, ObjectNotFound)
        absent = f"its pack is not in this store: {sidecar.context_pack[:_SHOWN]}"
        return replace(verdict, answer="unknown", why=f"{error.at}: {error.message}" if registered else absent)
    except ContextPlaneError as error:
        return replace(verdict, why=f"its pack is unknown or cannot be read: {error.message}")
    expected = expected_output(pack.manifest, _workspace_path(platform, path), sidecar.output)
    if isinstance(expected, str):
        return replace(verdict, pack=pack, why=expected)
    return replace(verdict, pack=pack, expected=expected)


def read_sidecar_at(path: str) -> Sidecar | None:
    """Read the sidecar at `path`; None if there is no file."""
    if not os.path.lexists(path):
        return None
    data = bytearray()
    for chunk in _ANYWHERE.chunks(os.path.abspath(path)):
        data += chunk
        if len(data) > MAX_SIDECAR_BYTES:
            raise SidecarInvalid("larger than any sidecar", at=path)
    return read_sidecar(bytes(data))


def claimed_pack(sidecar: Sidecar, platform: Platform) -> Digest:
    """Return the registered pack that a sidecar names, in any form of reference."""
    reference = parse_reference(sidecar.context_pack)
    named = ExecutionRef(reference.target) if isinstance(reference.target, Digest) else reference.target
    if reference.selector or not isinstance(named, ExecutionRef | ExecutionPrefix):
        raise SidecarInvalid(f"names no execution pack: {sidecar.context_pack[:_SHOWN]!r}")
    return find_execution_pack(platform.catalog, named)


def _workspace_path(platform: Platform, path: str) -> str:
    """Return the path of a file relative to the folder of the store, with links to its folder resolved."""
    folder, base = os.path.split(os.path.abspath(path))
    root = os.path.dirname(os.path.realpath(platform.home.path))
    return os.path.relpath(os.path.join(os.path.realpath(folder), base), root)
