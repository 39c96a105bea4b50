"""Forking: a recorded run becomes a draft, and an edited draft a run of its own."""

import os
from contextlib import suppress
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from contextplane.adapters.files.disk import Disk, storage_errors
from contextplane.adapters.system import SystemIds
from contextplane.app.documents import DocumentUnreadable, document
from contextplane.app.draft_contents import ABSENT, DraftDamaged, dangling
from contextplane.app.platform import Platform
from contextplane.app.registering import register_within
from contextplane.audit.load import load
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import canonical
from contextplane.model.ids import Digest
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.manifest import Manifest, manifest_bytes
from contextplane.model.problems import Problem, told_with
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.objects import Objects
from contextplane.ports.streams import Event
from contextplane.record.draft import (
    DRAFT_MOST,
    Draft,
    InvalidDraft,
    draft_so_far,
    draft_text,
    fork_key,
    read_draft,
    same_run,
    with_sizes,
)

__all__ = ["DraftUnchanged", "Finalized", "finalize", "fork"]

_DIGITS, _RANDOM = 12, 8
_DIGESTS = "a draft holds digests; to change a text, write a log and use 'ctx pack LOG --parent REF'"


class DraftUnchanged(ContextPlaneError):
    """A draft that tells the same run as the pack it was forked from."""

    code: ClassVar[str] = "draft_unchanged"
    family: ClassVar[Family] = "refused"


class Finalized(Value, frozen=True):
    """The pack that a draft became. `removed`: the draft lay among the store's drafts, and is gone."""

    digest: Digest
    manifest: Manifest
    new: bool
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
    """Make an edited draft a pack. The same draft gives the same pack, however often and by however many at once.

    Only when the pack is durable does a draft among the store's own drafts go.
    """
    data = _read(platform, path)
    try:
        draft = _checked(data, platform)
        _refuse_unchanged(draft, platform.objects)
        manifest = replace(with_sizes(draft.manifest, platform.objects.size), created=_first_finalized(platform, draft))
        digest, new = _recorded(platform, draft, manifest_bytes(manifest))
    except DraftDamaged as error:
        raise error.under(f"{path}#") from None
    except InvalidDraft as error:
        if any(one.message.startswith("not a digest") and one.at != "/parent" for one in error.problems):
            error.hint = _DIGESTS
        raise error.under(f"{path}#") from None
    except JsonRefused as error:
        raise error.under(f"{path}#" if error.at else path) from None
    except DraftUnchanged as error:
        raise error.under(path) from None
    return Finalized(digest=digest, manifest=manifest, new=new, removed=_removed(platform, path, data))


def _read(platform: Platform, path: str) -> bytes:
    try:
        with document(path) as found:
            if len(found) > DRAFT_MOST:
                raise InvalidDraft((Problem(at="/", message="larger than any draft"),)).under(f"{path}#")
            return bytes(found)
    except DocumentUnreadable as error:
        if not os.path.lexists(path):
            error.hint = _where_drafts_are(platform, path)
        raise


def _where_drafts_are(platform: Platform, path: str) -> str:
    if _is_ours(platform, path):
        return "a draft goes away when it is finalized: 'ctx log' lists the pack it became"
    folder = platform.home.inside("drafts")
    meant = os.path.join(folder, os.path.basename(path))
    return f"did you mean {meant}?" if os.path.lexists(meant) else f"'ctx fork' writes drafts below {folder}"


def _first_finalized(platform: Platform, draft: Draft) -> str:
    """When this very fork was first finalized, which is now unless it was before. Durable before there is a pack.

    Thus all who finalize one draft, at once or after one of them was killed, make the same pack.
    """
    stream = f"fork/{fork_key(draft).hex}"
    with platform.catalog.write() as tx:
        before = next(tx.streams.read(stream), None)
        if before is not None:
            return msgspec.json.decode(before.body, type=dict[str, str])["created"]
        created = str(Timestamp.of(platform.clock.now()))
        tx.streams.append(stream, 0, [Event(kind="finalized", body=canonical({"created": created}))])
    return created


def _recorded(platform: Platform, draft: Draft, raw: bytes) -> tuple[Digest, bool]:
    # Collecting takes the same turn: what is found here stays, because it is linked to before the turn ends.
    with platform.catalog.write() as tx:
        missing = [(at, digest) for at, digest in draft.refs if not platform.objects.has(digest)]
        if missing:
            raise InvalidDraft(tuple(Problem(at=at, message=ABSENT % one) for at, one in missing))
        digest = platform.objects.put(raw)
        return digest, register_within(platform, tx, digest, raw)


def _refuse_unchanged(draft: Draft, objects: Objects) -> None:
    if same_run(draft.manifest, load(draft.parent, objects).manifest):
        raise DraftUnchanged("nothing was changed since it was forked", hint="edit the draft, or remove it")


def _checked(data: bytes, platform: Platform) -> Draft:
    """A draft that is right: its form, and that all it refers to is there and whole. What is wrong is told together."""
    try:
        draft = read_draft(data)
    except InvalidDraft as error:
        raise InvalidDraft((*error.problems, *dangling(error.refs, platform).problems)) from None
    except JsonRefused as error:
        read = draft_so_far(data)
        raise told_with(error, (*read.problems, *dangling(read.refs, platform).problems)) from None
    dangling(draft.refs, platform).refuse()
    return draft


def _removed(platform: Platform, path: str, data: bytes) -> bool:
    """Remove a draft that lies among ours, unless it was edited since it was read. The pack is made either way."""
    if not _is_ours(platform, path):
        return False
    real = os.path.realpath(path)
    try:
        with open(real, "rb") as file:
            if file.read(len(data) + 1) != data:
                return False
        Disk().remove(real)
    except OSError:
        return False
    return True


def _is_ours(platform: Platform, path: str) -> bool:
    """Whether it lies among the store's own drafts."""
    folder = os.path.realpath(platform.home.inside("drafts"))
    return path != "-" and os.path.dirname(os.path.realpath(path)) == folder
