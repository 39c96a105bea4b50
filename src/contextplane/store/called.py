"""What people know an object of a store by: the run whose manifest it is, or the part of one."""

from collections.abc import Iterable

from contextplane.model.execution import EXECUTION_PACK
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.manifest import ManifestInvalid, read_manifest
from contextplane.model.parts import contents_of
from contextplane.ports.catalog import View
from contextplane.ports.objects import Objects
from contextplane.store.damage import short
from contextplane.store.trace import read_manifest_bytes

__all__ = ["Called", "Calling", "reference", "told"]

Called = tuple[Digest, str | None]
"""A run, and the part of it: empty of its manifest, None while that cannot be read."""


class Calling:
    """Finds out what objects are called. The run that was read last is remembered: damage comes in numbers."""

    def __init__(self, view: View, objects: Objects) -> None:
        self._view = view
        self._objects = objects
        self._run: Digest | None = None
        self._parts: dict[str, str] = {}

    def of(self, digest: Digest, referrers: Iterable[str]) -> Called | None:
        """None when no run consists of it."""
        if self._is_run(digest):
            return digest, ""
        unclear = None
        for name in referrers:
            try:
                run = Digest.parse(name)
            except InvalidId:
                continue  # a root
            parts = self._parts_of(run)
            if str(digest) in parts:
                return run, parts[str(digest)]
            if not parts and self._is_run(run):
                unclear = run  # one whose manifest can be read only mentions it
        return None if unclear is None else (unclear, None)

    def _is_run(self, digest: Digest) -> bool:
        recorded = self._view.objects.recorded(digest)
        return recorded is not None and recorded.kind == EXECUTION_PACK

    def _parts_of(self, run: Digest) -> dict[str, str]:
        if run != self._run:
            self._run, self._parts = run, _parts(read_manifest_bytes(run, self._objects))
        return self._parts


def reference(called: Called) -> str:
    """As it can be typed."""
    run, part = called
    return f"ctx://{run.hex}" + (f":{part}" if part else "")


def told(called: Called | None) -> str:
    """As the beginning of a sentence."""
    if called is None:
        return "it"
    run, part = called
    if part is None:
        return f"a part of {short(run)}"
    return short(run, part) if part else f"the manifest of {short(run)}"


def _parts(manifest: bytes | None) -> dict[str, str]:
    if manifest is None:
        return {}
    try:
        named = list(contents_of(read_manifest(manifest)))
    except ManifestInvalid:
        return {}
    return {ref: part for part, ref in reversed(named)}
