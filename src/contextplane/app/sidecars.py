"""Writing sidecars: beside each output of a run that lies in the workspace, the file that says which run it is from."""

import os
from typing import ClassVar

from msgspec.structs import replace

from contextplane.adapters.files.disk import Disk, storage_errors, write_whole
from contextplane.app.packing import Packed
from contextplane.app.platform import Platform
from contextplane.app.verifying import claimed_pack, sidecar_at
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.sidecar import SUFFIX, Sidecar, sidecar_bytes, sidecar_of
from contextplane.model.value import Value

__all__ = ["SidecarNotWritten", "WrittenSidecars", "write_sidecars"]


class SidecarNotWritten(ContextPlaneError):
    """A run was packed, and the sidecar of one of its outputs could not be written."""

    code: ClassVar[str] = "sidecar_not_written"
    family: ClassVar[Family] = "failed"


class WrittenSidecars(Value, frozen=True):
    """`written`: the sidecars of this pack. `kept`: files that stood in a sidecar's place and are not of this pack.

    `failed`: one error for each that could not be written, whatever the reason; the others are there all the same.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]
    failed: tuple[SidecarNotWritten, ...] = ()


def write_sidecars(platform: Platform, packed: Packed, folder: str) -> WrittenSidecars:
    """Write `<file>.ctx.json` beside every output of a pack whose file exists below `folder`, links resolved.

    What a person added to a sidecar of the same pack stays; a sidecar of any other is not touched.
    """
    fresh = sidecar_of(packed.digest, packed.manifest)
    written, kept, failed = list[str](), list[str](), list[SidecarNotWritten]()
    for name in sorted({one.name for one in packed.manifest.outputs}):
        path = _beside(platform, folder, name)
        if path is None:
            continue
        sidecar = _merged(platform, packed, replace(fresh, output=name), path)
        if sidecar is None:
            kept.append(path)
            continue
        try:
            with storage_errors(path):
                write_whole(path, sidecar_bytes(sidecar), staging=os.path.dirname(path), disk=Disk())
        except ContextPlaneError as error:
            failed.append(SidecarNotWritten(error.message, at=path, hint=f"the pack {fresh.context_pack} is stored"))
        else:
            written.append(path)
    return WrittenSidecars(written=tuple(written), kept=tuple(kept), failed=tuple(failed))


def _beside(platform: Platform, folder: str, name: str) -> str | None:
    """Where the sidecar of this output goes; None when its file is not there, or not below the folder."""
    if not name or "\0" in name:
        return None
    root = os.path.realpath(folder)
    given = os.path.join(root, name)
    place = os.path.join(os.path.realpath(os.path.dirname(given)), os.path.basename(given))
    real = os.path.realpath(place)
    store = os.path.realpath(platform.home.path)
    inside = all(_below(root, one) and not _below(store, one) for one in (place, real))
    return place + SUFFIX if inside and os.path.isfile(real) else None


def _below(root: str, path: str) -> bool:
    return path.startswith(root.rstrip(os.sep) + os.sep)


def _merged(platform: Platform, packed: Packed, fresh: Sidecar, path: str) -> Sidecar | None:
    """What to write at `path`; None when something else stands there."""
    if not os.path.lexists(path):
        return fresh
    if os.path.islink(path):
        return None
    try:
        before = sidecar_at(path)
        same = before is not None and claimed_pack(before, platform) == packed.digest
    except ContextPlaneError:
        return None
    return replace(fresh, confidence=before.confidence, notes=before.notes) if same and before is not None else None
