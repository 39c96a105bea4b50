"""Verifies whether a stored run is what its digest says, and which output of a run a file should be.

There are four answers. `verified`: everything was checked and is right. `modified`: something is not what it was.
`unchecked`: no change is known, but not everything could be checked, or the manifest contradicts the stored objects.
`unknown`: there is nothing to check against. A manifest may come from another program or be made by hand: its hash
proves its bytes, not its claims, so its claims are compared with the objects.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from contextplane.audit.load import LoadedPack, load_pack
from contextplane.errors import ContextPlaneError
from contextplane.model.execution.manifest import Environment, Input, Manifest, Model, Output, Prompt, Step, contents_of
from contextplane.model.execution.references import digests_in, find_references, is_entry_of
from contextplane.model.ids import Digest
from contextplane.model.json.parse import has_duplicate_key
from contextplane.model.value import Value
from contextplane.ports.objects import Objects
from contextplane.ports.pack_entries import ExecutionEntries
from contextplane.store.damage import Damage, damage_by, damage_in

__all__ = [
    "Answer",
    "ExpectedOutput",
    "PackVerdict",
    "VerificationProblem",
    "expected_output",
    "gravest_answer",
    "manifest_contradictions",
    "unknown_refs",
    "verify_pack",
]

_LISTS: dict[str, type[Value]] = {"prompts": Prompt, "inputs": Input, "steps": Step, "outputs": Output}
_OBJECTS: dict[str, type[Value]] = {"model": Model, "environment": Environment}


Answer = Literal["verified", "modified", "unchecked", "unknown"]
OnObject = Callable[[int, int], None]
"""Called after each object with its size, and 1."""


class VerificationProblem(Value, frozen=True):
    """A problem of a pack, or something that could not be checked: what it is, and why.

    In an execution pack `part` is the manifest, its entry, a parent or the selector of a content, and `digest` its
    object. `damage` is set if the object is not whole.
    """

    answer: Literal["modified", "unchecked", "unknown"]
    what: str
    why: str
    part: str | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    damage: Damage | UnsetType = UNSET


class PackVerdict(Value, frozen=True):
    """The result of verifying a pack. `parents`: those that are present and whole, the nearest first."""

    digest: Digest
    answer: Answer
    manifest: Manifest | None
    objects: int
    size: int
    parents: tuple[Digest, ...]
    problems: tuple[VerificationProblem, ...]


def verify_pack(digest: Digest, entries: ExecutionEntries, objects: Objects, *, seen: OnObject) -> PackVerdict:
    """Verify a pack: its manifest, its entry, every blob that it refers to, and its line of parents.

    Damage is an answer here, not an error. Only the manifests of parents are checked, not their contents.
    """
    check = _PackCheck(entries, objects, seen)
    pack = check.pack(digest)
    return PackVerdict(
        digest=digest,
        answer=gravest_answer(check.problems),
        manifest=pack.manifest if pack is not None else None,
        objects=check.count,
        size=check.size,
        parents=tuple(check.parents),
        problems=tuple(check.problems),
    )


def gravest_answer(problems: Iterable[VerificationProblem]) -> Answer:
    """The answer of the gravest problem; `verified` if there is none."""
    gravest: Answer = "verified"
    for problem in problems:
        gravest = max(gravest, problem.answer, key=_gravity)
    return gravest


def _gravity(answer: Answer) -> int:
    match answer:
        case "verified":
            return 0
        case "unchecked":
            return 1
        case "unknown":
            return 2
        case "modified":
            return 3
        case unreachable:
            assert_never(unreachable)


class ExpectedOutput(Value, frozen=True):
    """The output that a file should be: its name in the pack, and the digest of its bytes."""

    name: str
    digest: Digest


def expected_output(manifest: Manifest, path: str, named: str = "") -> ExpectedOutput | str:
    """The output that a file at `path`, relative to the workspace, should be; or why that is unknown.

    It is the output that its sidecar names, unless the file lies where another output belongs. Without a sidecar it is
    the output of the same base name, if it is the only one or all such outputs have the same bytes. Of several outputs
    of the same name the last counts.
    """
    outputs = {posixpath.normpath(output.name): output for output in manifest.outputs if output.name}
    base = posixpath.basename(path)
    fits = [output for name, output in outputs.items() if _base(name) == base]
    if named and posixpath.normpath(named) in outputs and _base(named) == base:
        fits = [outputs[posixpath.normpath(named)]]
        there = max((name for name in outputs if f"/{path}".endswith(f"/{name}")), key=len, default="")
        if there and outputs[there].content_ref != fits[0].content_ref:
            return f"its sidecar says that it is {fits[0].name}, and it lies where {outputs[there].name} belongs"
    elif path in outputs and len({fit.content_ref for fit in fits}) == 1:
        # A log's own folder may not be the workspace, so a path alone does not choose between different bytes.
        fits = [outputs[path]]
    if len(fits) > 1:
        return f"{len(fits)} outputs of the pack are named {base}: {', '.join(sorted(fit.name for fit in fits))}"
    if not fits:
        renamed = f"; its sidecar calls it {named}: was it renamed?" if named and _base(named) != base else ""
        return f"the pack has no output named {base}{renamed}"
    (output,) = fits
    digest = _parse_digest(output.content_ref)
    return (
        f"the hash of {output.name} is not understood"
        if digest is None
        else ExpectedOutput(name=output.name, digest=digest)
    )


def _base(name: str) -> str:
    return posixpath.basename(name)


def _parse_digest(text: str) -> Digest | None:
    try:
        return Digest.parse(text)
    except ContextPlaneError:
        return None


# --- claims of a manifest ---------------------------------------------------------------------------------------------


def manifest_contradictions(raw: bytes, sizes: Mapping[Digest, int]) -> Iterator[tuple[str, str]]:
    """Yield the claims of a manifest that contradict the stored objects. `sizes`: those of whole contents."""
    value = msgspec.json.decode(raw)
    if has_duplicate_key(raw, value):
        yield "a key", "it occurs twice in one object, and readers differ in which value they use"
    for number, entry in enumerate(_entries(value, "inputs")):
        size = entry.get("size")
        for digest in digests_in(entry.get("content_ref")):
            if size is not None and digest in sizes and size != sizes[digest]:
                yield f"inputs/{number} {digest}", f"its recorded size is {size!r:.20}, and it is {sizes[digest]}"


def unknown_refs(raw: bytes) -> tuple[Digest, ...]:
    """The digests in fields that the form of a manifest does not have: the writer may count them as parts."""
    value = msgspec.json.decode(raw)
    others = [_unknown_values(value, Manifest)]
    others += [_unknown_values(value.get(name), kind) for name, kind in _OBJECTS.items()]
    others += [_unknown_values(entry, kind) for name, kind in _LISTS.items() for entry in _entries(value, name)]
    return tuple(dict.fromkeys(digest for other in others for digest in digests_in(other)))


def _unknown_values(value: object, kind: type[Value]) -> list[object]:
    """The values of the fields that an object of this kind does not have."""
    known = kind.__struct_fields__
    return [member for name, member in value.items() if name not in known] if isinstance(value, dict) else []


def _entries(value: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    entries = value.get(name)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


# --- the check of a pack ----------------------------------------------------------------------------------------------


class _PackCheck:
    """Checks a pack, and collects problems instead of stopping."""

    def __init__(self, entries: ExecutionEntries, objects: Objects, seen: OnObject) -> None:
        self._entries = entries
        self._objects = objects
        self._seen = seen
        self.problems: list[VerificationProblem] = []
        self.parents: list[Digest] = []
        self.count = self.size = 0
        self._sizes: dict[Digest, int] = {}

    def pack(self, digest: Digest) -> LoadedPack | None:
        pack = self._manifest(digest, "manifest", absent="unknown")
        if pack is not None:
            self._entry(pack)
            self._blobs(pack)
            self._line(pack)
        return pack

    def _manifest(
        self, digest: Digest, what: str, *, absent: Literal["unchecked", "unknown"] = "unchecked"
    ) -> LoadedPack | None:
        try:
            pack = load_pack(digest, self._objects)
        except ContextPlaneError as error:
            damage = damage_by(error)
            why = str(error.details["why"]) if damage is not None else error.message
            self._object(what, digest, damage, why, absent=absent)
        else:
            self._count(len(pack.raw))
            return pack
        return None

    def _entry(self, pack: LoadedPack) -> None:
        part, name = "entry", f" packs/{pack.digest.hex}"
        try:
            copy = self._entries.read(pack.digest)
        except ContextPlaneError as error:
            self._note("unchecked", part, error.message, name=name)
            return
        if copy is None:
            self._note("unchecked", part, "this pack was registered, and its entry is gone", name=name)
        elif not is_entry_of(copy, pack.raw, pack.digest):
            self._note("modified", part, "the entry is not a copy of the manifest", name=name)

    def _blobs(self, pack: LoadedPack) -> None:
        refs = find_references(pack.raw)
        if refs is None:
            self._object("manifest", pack.digest, None, "what it refers to is not understood")
            return
        for role, text in refs.unreadable:
            if role != "parent":
                self._note("unchecked", role, f"not a reference that is understood: {text}")
        # Of several parts with the same bytes, the first gives the name.
        parts = {ref: part for part, ref in reversed(list(contents_of(pack.manifest)))}
        roles: dict[Digest, str] = {}
        for role, digest in refs.objects:
            if role != "parent":
                roles.setdefault(digest, parts.get(str(digest), role))
        for digest in unknown_refs(pack.raw):
            roles.setdefault(digest, "unknown field")
        for digest, role in roles.items():
            self._blob(role, digest)
        for what, why in manifest_contradictions(pack.raw, self._sizes):
            self._note("unchecked", "manifest", why, name=f" {what}")

    def _blob(self, role: str, digest: Digest) -> None:
        try:
            condition = self._objects.check(digest)
        except ContextPlaneError as error:
            self._object(role, digest, damage_by(error), error.message)
            return
        if condition.state == "whole":
            self._sizes[digest] = condition.size
            self._count(condition.size)
        else:
            self._object(role, digest, damage_in(condition), condition.why)

    def _line(self, pack: LoadedPack) -> None:
        """Check each parent in turn, up to one that is not whole. It ends: no bytes contain their own hash."""
        here: LoadedPack | None = pack
        while here is not None and (text := here.manifest.parent):
            parent = _parse_digest(text)
            if parent is None:
                why = f"not a reference that is understood: {text[:80]!r}"
                self._note("unchecked", "parent", why, name=f" of {here.digest}")
                return
            here = self._manifest(parent, "parent")
            if here is not None:
                self.parents.append(parent)

    def _count(self, size: int) -> None:
        self.count += 1
        self.size += size
        self._seen(size, 1)

    def _object(
        self,
        part: str,
        digest: Digest,
        damage: Damage | None,
        why: str,
        *,
        absent: Literal["unchecked", "unknown"] = "unchecked",
    ) -> None:
        answer: Literal["modified", "unchecked", "unknown"]
        match damage:
            case "tampered":
                answer = "modified"
            case "missing":
                answer, why = absent, "it is not in the store"
            case "unreadable" | None:
                answer = "unchecked"
            case unreachable:
                assert_never(unreachable)
        self.problems.append(
            VerificationProblem(
                answer=answer,
                what=f"{part} {digest}",
                why=why,
                part=part,
                digest=str(digest),
                damage=damage or UNSET,
            )
        )

    def _note(self, answer: Literal["modified", "unchecked"], part: str, why: str, *, name: str = "") -> None:
        self.problems.append(VerificationProblem(answer=answer, what=part + name, why=why, part=part))
