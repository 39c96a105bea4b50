"""Forking: a recorded run becomes a draft, and an edited draft a run of its own.

What a draft refers to: what is damaged is told as damage, what never was here as a mistake of the draft.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from contextplane.adapters.files.disk import Disk, storage_errors
from contextplane.adapters.system import SystemIds
from contextplane.app.documents import DocumentUnreadable, document
from contextplane.app.execution.pack import register_within
from contextplane.app.platform import Platform
from contextplane.audit.load import load
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Event
from contextplane.model.execution.manifest import Manifest, ManifestInvalid, contents_of, manifest_bytes
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.problems import DocumentInvalid, Problem, told_with
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectNotFound, Objects
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
from contextplane.store.damage import WAY_OUT, Damage, damage_in, said, short

__all__ = [
    "ABSENT",
    "Dangling",
    "DraftDamaged",
    "DraftUnchanged",
    "Finalized",
    "damaged_parts",
    "dangling",
    "finalize",
    "fork",
]

ABSENT = "missing in this store: %s"


class DraftDamaged(DocumentInvalid):
    """A draft that is right, of which a content was tampered with. `details.problems` lists all that is not whole."""

    code: ClassVar[str] = "draft_damaged"
    family: ClassVar[Family] = "untrusted"
    way_out: ClassVar[str] = WAY_OUT["tampered"]


class Dangling:
    """What of a draft is not there, or not whole. `damages`: of each problem that is damage, which."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.damages: list[Damage] = []

    def note(self, at: str, message: str, damage: Damage | None = None) -> None:
        self.problems.append(Problem(at=at, message=message))
        self.damages += [] if damage is None else [damage]

    def refuse(self) -> None:
        """Refuse a draft whose form is right. Editing it heals nothing: damage has a way out of its own."""
        if not self.problems:
            return
        if "tampered" in self.damages:
            raise DraftDamaged(tuple(self.problems))
        error = InvalidDraft(tuple(self.problems))
        if len(self.damages) == len(self.problems):
            error.hint = WAY_OUT[self.damages[0]]
        raise error


def dangling(refs: Iterable[tuple[str, Digest]], platform: Platform) -> Dangling:
    """What is wrong with what a draft refers to, in its order. Each content is looked at once."""
    dangling = Dangling()
    refs = tuple(refs)
    called = _called([digest for at, digest in refs if at == "/parent"], platform)
    conditions = {digest: platform.objects.check(digest) for at, digest in refs if at != "/parent"}
    for at, digest in refs:
        if at == "/parent":
            _parent(dangling, at, digest, platform)
            continue
        damage = damage_in(conditions[digest])
        if damage == "missing" and not _was_here(digest, platform):
            dangling.note(at, ABSENT % digest)
        elif damage is not None:
            dangling.note(at, said(called.get(str(digest), str(digest)), damage, conditions[digest].why), damage)
    return dangling


def damaged_parts(platform: Platform, manifest: Manifest) -> list[tuple[str, Damage]]:
    """The contents of a run that are not whole, by their parts."""
    found: list[tuple[str, Damage]] = []
    for part, ref in contents_of(manifest):
        try:
            damage = damage_in(platform.objects.check(Digest.parse(ref)))
        except InvalidId:
            continue  # none, or nothing that names one: others stored it
        found += [(part, damage)] if damage is not None else []
    return found


def _called(parents: list[Digest], platform: Platform) -> dict[str, str]:
    """What people know the contents of the parent by."""
    try:
        return {
            ref: short(parent, part)
            for parent in parents
            for part, ref in contents_of(load(parent, platform.objects).manifest)
        }
    except ContextPlaneError:
        return {}  # told of by itself


def _was_here(digest: Digest, platform: Platform) -> bool:
    """Whether something in this store refers to it."""
    with platform.catalog.read() as view:
        return bool(view.objects.referrers(digest))


def _parent(found: Dangling, at: str, digest: Digest, platform: Platform) -> None:
    try:
        load(digest, platform.objects)
    except ObjectNotFound:
        with platform.catalog.read() as view:
            lost = view.packs.row(digest) is not None
        if lost:
            found.note(at, said(f"the manifest of {short(digest)}", "missing"), "missing")
        else:
            found.note(at, f"no such pack in this store: {digest}")
    except ManifestInvalid as error:
        found.note(at, f"{error.message}: {digest}")


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
        if any(problem.message.startswith("not a digest") and problem.at != "/parent" for problem in error.problems):
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
            raise InvalidDraft(tuple(Problem(at=at, message=ABSENT % digest) for at, digest in missing))
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
