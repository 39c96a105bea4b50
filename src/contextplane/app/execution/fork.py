"""Forks a recorded run into a draft, and finalizes an edited draft into a run of its own.

A draft may refer to damaged contents, which is reported as damage, or to contents that were never in the store, which
is a mistake in the draft.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from contextplane.adapters.files.disk import Disk, storage_errors
from contextplane.adapters.system import SystemIds
from contextplane.app.documents import DocumentUnreadable, open_document
from contextplane.app.execution.pack import register_in_transaction
from contextplane.app.platform import Platform
from contextplane.app.references import find_run
from contextplane.audit.load import load_pack
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Event
from contextplane.model.execution.manifest import Manifest, ManifestInvalid, contents_of, manifest_bytes
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.json.canonical import canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.problems import DocumentInvalid, Problem, ProblemCollector, merge_problems
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectNotFound, Objects
from contextplane.record.draft import (
    MAX_DRAFT_BYTES,
    ForkDraft,
    InvalidDraft,
    draft_text,
    fill_input_sizes,
    fork_key,
    is_same_run,
    read_draft,
    read_partial_draft,
)
from contextplane.store.damage import WAY_OUT, Damage, damage_in, damage_sentence, short_ref

__all__ = [
    "ABSENT",
    "DanglingRefs",
    "DraftDamaged",
    "DraftUnchanged",
    "FinalizeResult",
    "ForkResult",
    "damaged_parts",
    "finalize",
    "find_dangling_refs",
    "fork",
    "fork_run",
]

ABSENT = "missing in this store: %s"

_HASH_DIGITS, _RANDOM_DIGITS = 12, 8
_DIGESTS_HINT = "a draft holds digests; to change a text, write a log and use 'ctx pack LOG --parent REF'"


class DraftDamaged(DocumentInvalid):
    """A draft that is right, but a content of it was tampered with.

    `details.problems` lists all that is not whole.
    """

    code: ClassVar[str] = "draft_damaged"
    family: ClassVar[Family] = "untrusted"
    way_out: ClassVar[str] = WAY_OUT["tampered"]


class DraftUnchanged(ContextPlaneError):
    """A draft that tells the same run as the pack it was forked from."""

    code: ClassVar[str] = "draft_unchanged"
    family: ClassVar[Family] = "refused"


class FinalizeResult(Value, frozen=True):
    """The pack that a draft became. `removed`: the draft was in the store's drafts folder, and is removed."""

    digest: Digest
    manifest: Manifest
    new: bool
    removed: bool


class ForkResult(Value, frozen=True):
    """The draft of a run. `damaged`: the parts of the run that are not whole, which a pack must not need."""

    path: str
    parent: Digest
    damaged: tuple[tuple[str, Damage], ...]


# --- forking and finalizing ---


def fork_run(platform: Platform, text: str) -> ForkResult:
    """Write a draft of the execution pack that a text names."""
    digest = find_run(text, platform)
    damaged = damaged_parts(platform, load_pack(digest, platform.objects).manifest)
    return ForkResult(path=fork(platform, digest), parent=digest, damaged=tuple(damaged))


def fork(platform: Platform, digest: Digest) -> str:
    """Write a draft of this pack under a new name, and return its path."""
    pack = load_pack(digest, platform.objects)
    disk, folder = Disk(), platform.home.inside("drafts")
    path = os.path.join(folder, f"{digest.hex[:_HASH_DIGITS]}-{SystemIds().token()[:_RANDOM_DIGITS]}.draft.json")
    with storage_errors(path):
        disk.make_folder(folder)
        fd = disk.create(path, 0o644)  # fails rather than replace another draft
        try:
            disk.write_all(fd, draft_text(pack.manifest, digest))
            disk.sync(fd)
        except BaseException:
            with suppress(OSError):  # the first error counts
                disk.remove(path)
            raise
        finally:
            os.close(fd)
        disk.sync_folder(folder)
    return path


def finalize(platform: Platform, path: str) -> FinalizeResult:
    """Make a pack of an edited draft. Idempotent, also when several processes finalize it at once.

    A draft in the store's drafts folder is removed, but only after the pack is durable.
    """
    data = _read_file(platform, path)
    try:
        draft = _read_and_check(data, platform)
        _reject_unchanged(draft, platform.objects)
        manifest = replace(
            fill_input_sizes(draft.manifest, platform.objects.size), created=_first_finalized_time(platform, draft)
        )
        digest, new = _register(platform, draft, manifest_bytes(manifest))
    except DraftDamaged as error:
        raise error.under(f"{path}#") from None
    except InvalidDraft as error:
        if any(problem.message.startswith("not a digest") and problem.at != "/parent" for problem in error.problems):
            error.hint = _DIGESTS_HINT
        raise error.under(f"{path}#") from None
    except JsonRefused as error:
        raise error.under(f"{path}#" if error.at else path) from None
    except DraftUnchanged as error:
        raise error.under(path) from None
    return FinalizeResult(digest=digest, manifest=manifest, new=new, removed=_remove_draft(platform, path, data))


def _read_file(platform: Platform, path: str) -> bytes:
    try:
        with open_document(path) as data:
            if len(data) > MAX_DRAFT_BYTES:
                raise InvalidDraft((Problem(at="/", message="larger than any draft"),)).under(f"{path}#")
            return bytes(data)
    except DocumentUnreadable as error:
        if not os.path.lexists(path):
            error.hint = _drafts_hint(platform, path)
        raise


def _drafts_hint(platform: Platform, path: str) -> str:
    if _is_in_drafts_folder(platform, path):
        return "a finalized draft is removed: 'ctx log' lists its pack"
    folder = platform.home.inside("drafts")
    suggestion = os.path.join(folder, os.path.basename(path))
    return f"did you mean {suggestion}?" if os.path.lexists(suggestion) else f"'ctx fork' writes drafts below {folder}"


def _first_finalized_time(platform: Platform, draft: ForkDraft) -> str:
    """Return when this fork was first finalized: now, unless it was before.

    The time is durable before there is a pack. So all processes that finalize one draft, at once or after one of them
    was killed, make the same pack.
    """
    stream = f"fork/{fork_key(draft).hex}"
    with platform.catalog.write() as tx:
        before = next(tx.streams.read(stream), None)
        if before is not None:
            return msgspec.json.decode(before.body, type=dict[str, str])["created"]
        created = str(Timestamp.of(platform.clock.now()))
        tx.streams.append(stream, 0, [Event(kind="finalized", body=canonical({"created": created}))])
    return created


def _register(platform: Platform, draft: ForkDraft, raw: bytes) -> tuple[Digest, bool]:
    # Collection needs this lock too: what exists here stays, because it is linked before the lock is released.
    with platform.catalog.write() as tx:
        missing = [(at, digest) for at, digest in draft.refs if not platform.objects.has(digest)]
        if missing:
            raise InvalidDraft(tuple(Problem(at=at, message=ABSENT % digest) for at, digest in missing))
        digest = platform.objects.put(raw)
        return digest, register_in_transaction(platform, tx, digest, raw)


def _reject_unchanged(draft: ForkDraft, objects: Objects) -> None:
    if is_same_run(draft.manifest, load_pack(draft.parent, objects).manifest):
        raise DraftUnchanged("nothing was changed since it was forked", hint="edit the draft, or remove it")


def _read_and_check(data: bytes, platform: Platform) -> ForkDraft:
    """Read a draft, and check that all it refers to is there and whole. Reports all problems together."""
    try:
        draft = read_draft(data)
    except InvalidDraft as error:
        raise InvalidDraft((*error.problems, *find_dangling_refs(error.refs, platform).problems)) from None
    except JsonRefused as error:
        read = read_partial_draft(data)
        raise merge_problems(error, (*read.problems, *find_dangling_refs(read.refs, platform).problems)) from None
    find_dangling_refs(draft.refs, platform).refuse()
    return draft


def _remove_draft(platform: Platform, path: str, data: bytes) -> bool:
    """Remove a draft in the drafts folder, unless it was edited since it was read; return whether it was."""
    if not _is_in_drafts_folder(platform, path):
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


def _is_in_drafts_folder(platform: Platform, path: str) -> bool:
    """Whether the file is in the store's drafts folder."""
    folder = os.path.realpath(platform.home.inside("drafts"))
    return path != "-" and os.path.dirname(os.path.realpath(path)) == folder


# --- what a draft refers to ---


class DanglingRefs(ProblemCollector):
    """Collects the refs of a draft that are missing or damaged. `damages`: the kind of each damage."""

    def __init__(self) -> None:
        super().__init__()
        self.damages: list[Damage] = []

    def note_damage(self, at: str, message: str, damage: Damage) -> None:
        self.note(at, message)
        self.damages.append(damage)

    def refuse(self) -> None:
        """Refuse a draft whose form is right. Editing does not repair damage, so damage has a hint of its own."""
        if not self.problems:
            return
        if "tampered" in self.damages:
            raise DraftDamaged(tuple(self.problems))
        error = InvalidDraft(tuple(self.problems))
        if len(self.damages) == len(self.problems):
            error.hint = WAY_OUT[self.damages[0]]
        raise error


def find_dangling_refs(refs: Iterable[tuple[str, Digest]], platform: Platform) -> DanglingRefs:
    """Check what a draft refers to, in its order. Each content is read once."""
    dangling = DanglingRefs()
    refs = tuple(refs)
    names = _part_names([digest for at, digest in refs if at == "/parent"], platform)
    conditions = {digest: platform.objects.check(digest) for at, digest in refs if at != "/parent"}
    for at, digest in refs:
        if at == "/parent":
            _check_parent(dangling, at, digest, platform)
            continue
        damage = damage_in(conditions[digest])
        if damage == "missing" and not _is_referenced(digest, platform):
            dangling.note(at, ABSENT % digest)
        elif damage is not None:
            dangling.note_damage(
                at, damage_sentence(names.get(str(digest), str(digest)), damage, conditions[digest].why), damage
            )
    return dangling


def damaged_parts(platform: Platform, manifest: Manifest) -> list[tuple[str, Damage]]:
    """List the parts of a run whose content is damaged."""
    damaged: list[tuple[str, Damage]] = []
    for part, ref in contents_of(manifest):
        try:
            damage = damage_in(platform.objects.check(Digest.parse(ref)))
        except InvalidId:
            continue  # no digest: another program wrote this manifest
        damaged += [(part, damage)] if damage is not None else []
    return damaged


def _part_names(parents: list[Digest], platform: Platform) -> dict[str, str]:
    """Map each content of the parents to the name that people know it by."""
    try:
        return {
            ref: short_ref(parent, part)
            for parent in parents
            for part, ref in contents_of(load_pack(parent, platform.objects).manifest)
        }
    except ContextPlaneError:
        return {}  # the parent is reported by itself


def _is_referenced(digest: Digest, platform: Platform) -> bool:
    """Whether something in this store refers to the object."""
    with platform.catalog.read() as view:
        return bool(view.objects.referrers(digest))


def _check_parent(dangling: DanglingRefs, at: str, digest: Digest, platform: Platform) -> None:
    try:
        load_pack(digest, platform.objects)
    except ObjectNotFound:
        with platform.catalog.read() as view:
            lost = view.packs.row(digest) is not None
        if lost:
            dangling.note_damage(at, damage_sentence(f"the manifest of {short_ref(digest)}", "missing"), "missing")
        else:
            dangling.note(at, f"no such pack in this store: {digest}")
    except ManifestInvalid as error:
        dangling.note(at, f"{error.message}: {digest}")
