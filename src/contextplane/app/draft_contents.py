"""What a draft refers to: what is damaged is told as damage, what never was here as a mistake of the draft."""

from collections.abc import Iterable
from typing import ClassVar

from contextplane.app.platform import Platform
from contextplane.audit.load import load
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.manifest import Manifest, ManifestInvalid
from contextplane.model.parts import contents_of
from contextplane.model.problems import DocumentInvalid, Problem
from contextplane.ports.objects import ObjectNotFound
from contextplane.record.draft import InvalidDraft
from contextplane.store.damage import WAY_OUT, Damage, damage_in, said, short

__all__ = ["ABSENT", "Dangling", "DraftDamaged", "damaged_parts", "dangling"]

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
    found = Dangling()
    refs = tuple(refs)
    called = _called([digest for at, digest in refs if at == "/parent"], platform)
    conditions = {digest: platform.objects.check(digest) for at, digest in refs if at != "/parent"}
    for at, digest in refs:
        if at == "/parent":
            _parent(found, at, digest, platform)
            continue
        damage = damage_in(conditions[digest])
        if damage == "missing" and not _was_here(digest, platform):
            found.note(at, ABSENT % digest)
        elif damage is not None:
            found.note(at, said(called.get(str(digest), str(digest)), damage, conditions[digest].why), damage)
    return found


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
