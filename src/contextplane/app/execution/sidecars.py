"""Writes sidecars: beside each output of a run in the workspace, a file that names the run."""

import hashlib
import os
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from contextplane.adapters.files.disk import Disk, storage_errors, write_atomically
from contextplane.adapters.files.workspace import FileSources
from contextplane.app.execution.pack import PackResult
from contextplane.app.execution.verify import claimed_pack, read_sidecar_at
from contextplane.app.platform import Platform
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution.sidecar import SUFFIX, Sidecar, SidecarInvalid, sidecar_bytes, sidecar_of
from contextplane.model.ids import Digest
from contextplane.model.reference import InvalidReference
from contextplane.model.value import Value

__all__ = ["SidecarNotWritten", "WrittenSidecars", "write_sidecars"]

_OWN_KEYS = frozenset({"context_pack", "output", "inputs", "tools"})
"""The members of a sidecar that a run writes; all others were added by people."""

_REMOVE = "move that file away, then pack again"


class SidecarNotWritten(ContextPlaneError):
    """A run was packed, and the sidecar of one of its outputs could not be written."""

    code: ClassVar[str] = "sidecar_not_written"
    family: ClassVar[Family] = "failed"


class WrittenSidecars(Value, frozen=True):
    """The sidecars of a pack that were written, and those that were not.

    - `written`: the sidecars of this pack. `replaced`: those that belonged to another run before.
    - `absent`: outputs whose file is not in the workspace.
    - `unwritten`: sidecars that could not be written although their file is there; `failed` has one error for each.
    - `kept`: the unwritten ones in whose place there is a file, which was left as it is.
    """

    written: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    unwritten: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    failed: tuple[SidecarNotWritten, ...] = ()


def write_sidecars(platform: Platform, packed: PackResult, folder: str) -> WrittenSidecars:
    """Write `<file>.ctx.json` beside every output of a pack that is below `folder`, links resolved.

    A sidecar is written if the file has the bytes of this run's output; it replaces the sidecar of another run. What
    people added to a sidecar of the same run stays. A sidecar of another run with additions is left as it is, and so is
    a file that is no sidecar.
    """
    places = {output.name: _output_path(platform, folder, output.name) for output in packed.manifest.outputs}
    writing = _SidecarWriter(platform, packed, outputs=frozenset(place for place in places.values() if place))
    for name, place in sorted(places.items()):
        if place is None:
            writing.absent.append(name)
        else:
            writing.write(name, place)
    return WrittenSidecars(
        written=tuple(writing.written),
        replaced=tuple(writing.replaced),
        absent=tuple(writing.absent),
        unwritten=tuple(writing.unwritten),
        kept=tuple(writing.kept),
        failed=tuple(writing.failed),
    )


class _SidecarWriter:
    """Writes the sidecars of one pack, and collects the result of each."""

    def __init__(self, platform: Platform, packed: PackResult, *, outputs: frozenset[str]) -> None:
        self._platform = platform
        self._outputs = outputs
        self._digest = packed.digest
        self._fresh = sidecar_of(packed.digest, packed.manifest)
        self._expected = {(output.name, output.content_ref) for output in packed.manifest.outputs}
        self.written: list[str] = []
        self.replaced: list[str] = []
        self.absent: list[str] = []
        self.unwritten: list[str] = []
        self.kept: list[str] = []
        self.failed: list[SidecarNotWritten] = []

    def write(self, name: str, place: str) -> None:
        """Write the sidecar of the output at `place`, or collect the error."""
        path = place + SUFFIX
        try:
            if (name, str(_digest_of(place))) not in self._expected:
                raise self._differs(name, place)
            before = self._before(path)
            with storage_errors(path):
                data = sidecar_bytes(replace(self._fresh, output=name), before.added)
                write_atomically(path, data, staging=os.path.dirname(path), disk=Disk())
        except SidecarNotWritten as error:
            self._note(error, path)
        except SidecarInvalid as error:
            message = f"{error.message}; it was left unchanged"
            self._note(SidecarNotWritten(message, at=path, hint=f"{self._stored}; {error.hint}"), path)
        except ContextPlaneError as error:
            self._note(SidecarNotWritten(error.message, at=error.at or path, hint=self._stored), path)
        else:
            self.written.append(path)
            if before.is_there and before.pack != self._digest:
                self.replaced.append(path)

    def _before(self, path: str) -> "_ExistingSidecar":
        if path in self._outputs:
            raise SidecarInvalid("is itself an output of this run", hint="give one of the two outputs another name")
        before = _ExistingSidecar.at(path, self._platform)
        if before.added and before.pack != self._digest:
            raise SidecarInvalid(
                f"is of another run, and was edited: it has {', '.join(sorted(before.added))}",
                hint="remove what was added, or the file, then pack again",
            )
        return before

    @property
    def _stored(self) -> str:
        return f"the pack {self._fresh.context_pack} is stored"

    def _differs(self, name: str, place: str) -> SidecarNotWritten:
        return SidecarNotWritten(
            "its bytes are not the output of this run: no sidecar was written",
            at=place,
            hint=f"{self._stored}; 'ctx cat {self._digest.hex[:12]}:outputs/{name}' prints the recorded one",
        )

    def _note(self, error: SidecarNotWritten, path: str) -> None:
        self.failed.append(error)
        self.unwritten.append(path)
        if os.path.lexists(path):
            self.kept.append(path)


class _ExistingSidecar(Value, frozen=True):
    """The file in the place of a sidecar. `pack`: the run it names; None if that is not in this store."""

    is_there: bool = False
    pack: Digest | None = None
    added: dict[str, object] = msgspec.field(default_factory=dict)

    @classmethod
    def at(cls, path: str, platform: Platform) -> "_ExistingSidecar":
        """Read it. `SidecarInvalid` if it is no sidecar: then it must not be replaced."""
        if os.path.islink(path):
            raise SidecarInvalid("is a link", hint=_REMOVE)
        try:
            sidecar = read_sidecar_at(path)
        except SidecarInvalid as error:
            raise SidecarInvalid("is no sidecar", hint=_REMOVE) from error
        if sidecar is None:
            return cls()
        with storage_errors(path, reading=True), open(path, "rb") as file:
            value = msgspec.json.decode(file.read(), type=dict[str, object])
        added = {
            key: member for key, member in value.items() if key not in _OWN_KEYS and member is not None and member != ""
        }
        return cls(is_there=True, pack=_claimed_digest(sidecar, platform), added=added)


def _claimed_digest(sidecar: Sidecar, platform: Platform) -> Digest | None:
    try:
        return claimed_pack(sidecar, platform)
    except (SidecarInvalid, InvalidReference) as error:
        raise SidecarInvalid("is no sidecar", hint=_REMOVE) from error
    except ContextPlaneError:
        return None


def _digest_of(path: str) -> Digest:
    running = hashlib.sha256()
    for chunk in FileSources(os.sep).chunks(path):
        running.update(chunk)
    return Digest(running.hexdigest())


def _output_path(platform: Platform, folder: str, name: str) -> str | None:
    """Return the path of the file of this output; None if it is missing, or not below the folder."""
    if not name or "\0" in name:
        return None
    root = os.path.realpath(folder)
    path = os.path.join(root, name)
    place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    real = os.path.realpath(place)
    store = os.path.realpath(platform.home.path)
    inside = all(_is_below(root, path) and not _is_below(store, path) for path in (place, real))
    return place if inside and os.path.isfile(real) else None


def _is_below(root: str, path: str) -> bool:
    return path.startswith(root.rstrip(os.sep) + os.sep)
