"""One way from what was typed to what it names: `resolve(text)`, for every verb and every surface.

The grammar is `model.reference`. Here a reference becomes a target that a verb can act on, and a text that names
nothing gets the hint of the place where it was typed. `find_run` looks an execution pack up in a store.
"""

import os
from typing import TYPE_CHECKING, ClassVar, TypeAlias, assert_never

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import (
    DecisionRecordId,
    Digest,
    EvidenceRef,
    ExecutionRef,
    PackRef,
    RecordingId,
    RunId,
)
from contextplane.model.reference import (
    FORMS,
    ExecutionPrefix,
    FilePath,
    HandoffRef,
    InvalidReference,
    Reference,
    names_file,
    names_version,
    parse_reference,
)
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.app.platform import Platform

__all__ = [
    "FileTarget",
    "HandoffHasNoParts",
    "HandoffTarget",
    "NotAPack",
    "OtherTarget",
    "RecordingTarget",
    "RunTarget",
    "Target",
    "VersionTarget",
    "find_run",
    "resolve",
    "resolve_document",
]

_HINT = "write ctx://<hash> or its first digits; 'ctx log' lists them"
_ID = "write ctx://<hash>, or id@X.Y.Z for a version; 'ctx log' lists runs, 'ctx packs' versions"
_VERSION = "it is a version: use 'ctx show', 'ctx log' or 'ctx diff'; 'ctx verify --registry' verifies all versions"
_NO_PARTS = "a version has no parts: leave out what follows the colon"
_RECORDING = "it is not a pack yet: 'ctx finalize %s' makes one of it, 'ctx log --unfinished' lists them"
_EVIDENCE = "it is evidence; a version whose id begins like that is written id@X.Y.Z, and 'ctx packs' lists them"
_SHOWN = 200


class NotAPack(ContextPlaneError):
    """A reference to something else, where an execution pack is asked for."""

    code: ClassVar[str] = "reference_not_an_execution_pack"
    family: ClassVar[Family] = "usage"


class HandoffHasNoParts(ContextPlaneError):
    """A part of a handoff pack was asked for. It is one object at each revision."""

    code: ClassVar[str] = "reference_handoff_part"
    family: ClassVar[Family] = "usage"


class RunTarget(Value, frozen=True):
    """An execution pack by its hash or the first digits of it, a part of one, or any object by its digest."""

    ref: ExecutionRef | ExecutionPrefix | Digest
    selector: str = ""


class VersionTarget(Value, frozen=True):
    """A version in the registry, as it was typed: `id@X.Y.Z`, or an id with an alias or an environment."""

    name: str


class HandoffTarget(Value, frozen=True):
    """A handoff pack, at one of its revisions or at its newest."""

    ref: HandoffRef


class RecordingTarget(Value, frozen=True):
    """A recording that did not become a pack yet."""

    recording_id: RecordingId
    hint: str


class FileTarget(Value, frozen=True):
    """A file outside the store."""

    path: str
    hint: str = _HINT


class OtherTarget(Value, frozen=True):
    """A thing that no verb takes yet: a governed run, a decision record, evidence, or a part of a version."""

    ref: RunId | DecisionRecordId | EvidenceRef | PackRef
    hint: str


Target: TypeAlias = RunTarget | VersionTarget | HandoffTarget | RecordingTarget | FileTarget | OtherTarget


def resolve(text: str, *, files: bool = False, file: bool = False, hint: str = _HINT) -> Target:
    """Return what a text names.

    `files`: the verb also takes files. `file`: the text is always a file. `hint`: what to write instead of a
    text that names nothing.
    """
    if file:
        return FileTarget(path=text)
    if names_version(text):
        return VersionTarget(name=text)
    return _target(_parse(text, files=files, hint=hint), text)


def _target(reference: Reference, text: str) -> Target:
    target: Target
    match reference.target:
        case ExecutionRef() | ExecutionPrefix() | Digest() as ref:
            target = RunTarget(ref=ref, selector=reference.selector)
        case HandoffRef() as ref:
            target = _handoff(ref, reference, text)
        case RecordingId() as ref:
            target = RecordingTarget(recording_id=ref, hint=_RECORDING % ref)
        case FilePath(path=path):
            target = FileTarget(path=path, hint=_HINT if "/" in text else _ID)
        case PackRef() as ref:
            target = OtherTarget(ref=ref, hint=_NO_PARTS)
        case EvidenceRef() as ref:
            target = OtherTarget(ref=ref, hint=_EVIDENCE)
        case RunId() | DecisionRecordId() as ref:
            target = OtherTarget(ref=ref, hint=_HINT)
        case _:
            assert_never(reference.target)
    return target


def resolve_document(text: str) -> VersionTarget | FileTarget:
    """Return the version or the author's file that a text names, where nothing else is taken."""
    return FileTarget(path=text) if names_file(text) else VersionTarget(name=text)


def find_run(text: str, platform: "Platform") -> Digest:
    """Return the digest of the execution pack that a text names; refuse everything else with a hint."""
    # Loaded only where a run is looked up: `ctx compile` reads references, and no store.
    from contextplane.store.find import find_execution_pack

    target = resolve(text)
    if not isinstance(target, RunTarget):
        hint = _VERSION if isinstance(target, VersionTarget) else getattr(target, "hint", _HINT)
        raise NotAPack("not an execution pack", at=text[:_SHOWN], hint=hint)
    if target.selector:
        raise NotAPack("a part of an execution pack", at=text[:_SHOWN], hint=f"'ctx cat {text[:_SHOWN]}' reads a part")
    ref = ExecutionRef(target.ref) if isinstance(target.ref, Digest) else target.ref
    return find_execution_pack(platform.catalog, ref)


def _parse(text: str, *, files: bool, hint: str) -> Reference:
    """Parse a reference, and replace the hint that lists all forms by one that fits where it was typed."""
    try:
        return parse_reference(text)
    except InvalidReference as error:
        if error.hint == FORMS:
            error.hint = f"write ./{text} if it is a file" if files and text and _exists(text) else hint
        raise


def _exists(text: str) -> bool:
    return "\0" not in text and os.path.lexists(text)


def _handoff(ref: HandoffRef, reference: Reference, text: str) -> HandoffTarget:
    if reference.selector:
        raise HandoffHasNoParts(
            "a handoff pack has no parts", at=text[:_SHOWN], hint="'ctx handoff read' shows it, 'ctx cat' its bytes"
        )
    return HandoffTarget(ref=ref)
