"""Forking: a recorded run becomes a draft, and an edited draft a run of its own."""

import os
from contextlib import suppress
from typing import ClassVar

from msgspec.structs import replace

from contextplane.adapters.files.disk import Disk, storage_errors
from contextplane.adapters.system import SystemIds
from contextplane.app.documents import document
from contextplane.app.platform import Platform
from contextplane.audit.load import LoadedPack, load
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import JsonRefused
from contextplane.model.execution import MANIFEST_MOST
from contextplane.model.ids import Digest
from contextplane.model.manifest import Manifest, filled_in, manifest_bytes
from contextplane.model.problems import Problem
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectNotFound, Objects
from contextplane.record.draft import Draft, InvalidDraft, draft_text, read_draft, same_run, with_sizes
from contextplane.store.follow import index_entries

__all__ = ["DraftUnchanged", "Finalized", "finalize", "fork"]

_DIGITS, _RANDOM = 12, 8


class DraftUnchanged(ContextPlaneError):
    """A draft that tells the same run as the pack it was forked from."""

    code: ClassVar[str] = "draft_unchanged"
    family: ClassVar[Family] = "refused"


class Finalized(Value, frozen=True):
    """The pack that a draft became. `removed`: the draft lay among the store's drafts, and is gone."""

    digest: Digest
    manifest: Manifest
    removed: bool


def fork(platform: Platform, digest: Digest) -> str:
    """Write a draft of this pack under a name that no other has, and return its path."""
    pack = load(digest, platform.objects)
    disk, folder = Disk(), platform.home.inside("drafts")
    path = os.path.join(folder, f"{digest.hex[:_DIGITS]}-{SystemIds().token()[:_RANDOM]}.draft.json")
    with storage_errors(path):
        disk.make_folder(folder)
        fd = disk.create(path, 0o644)  # fails rather than take the place of another draft
        try:
            disk.write_all(fd, draft_text(pack.manifest, digest))
            disk.sync(fd)
        except BaseException:
            with suppress(OSError):  # what went wrong first is what counts
                disk.remove(path)
            raise
        finally:
            os.close(fd)
        disk.sync_folder(folder)
    return path


def finalize(platform: Platform, path: str) -> Finalized:
    """Make an edited draft a pack. Only when that is durable does a draft among the store's own drafts go."""
    with document(path) as found:
        if len(found) > MANIFEST_MOST:
            raise InvalidDraft((Problem(at="/", message="larger than any manifest"),)).under(f"{path}#")
        data = bytes(found)
    try:
        digest, manifest = _recorded(platform, read_draft(data))
    except (JsonRefused, InvalidDraft) as error:
        raise error.under(f"{path}#") from None
    except DraftUnchanged as error:
        raise error.under(path) from None
    return Finalized(digest=digest, manifest=manifest, removed=_removed(platform, path, data))


def _recorded(platform: Platform, draft: Draft) -> tuple[Digest, Manifest]:
    if same_run(draft.manifest, _parent(draft, platform.objects).manifest):
        raise DraftUnchanged("nothing was changed since it was forked", hint="edit the draft, or remove it")
    created = str(Timestamp.of(platform.clock.now()))
    # Collecting takes the same turn: what is found here stays, because it is linked to before the turn ends.
    with platform.catalog.write() as tx:
        _refuse_dangling(draft, platform.objects)
        manifest = replace(with_sizes(draft.manifest, platform.objects.size), created=created)
        raw = manifest_bytes(manifest)
        digest = platform.objects.put(raw)
        platform.entries.add(digest, filled_in(raw, digest))
        if tx.packs.row(digest) is None:
            index_entries(tx, [digest], platform.entries, platform.objects)
    return digest, manifest


def _parent(draft: Draft, objects: Objects) -> LoadedPack:
    try:
        return load(draft.parent, objects)
    except ObjectNotFound:
        raise InvalidDraft((Problem(at="/parent", message=f"no such pack in this store: {draft.parent}"),)) from None


def _refuse_dangling(draft: Draft, objects: Objects) -> None:
    missing = [
        Problem(at=at, message=f"{condition.state} in this store: {digest}")
        for at, digest in (*draft.refs, ("/parent", draft.parent))
        if (condition := objects.check(digest)).state != "whole"
    ]
    if missing:
        raise InvalidDraft(tuple(missing))


def _removed(platform: Platform, path: str, data: bytes) -> bool:
    """Remove a draft that lies among ours, unless it was edited since it was read. The pack is made either way."""
    real = os.path.realpath(path)
    if path == "-" or os.path.dirname(real) != os.path.realpath(platform.home.inside("drafts")):
        return False
    try:
        with open(real, "rb") as file:
            if file.read(len(data) + 1) != data:
                return False
        Disk().remove(real)
    except OSError:
        return False
    return True
