"""From what was typed to the pack it names."""

import os
from typing import TYPE_CHECKING, ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, EvidenceRef, ExecutionRef, PackRef, RecordingId
from contextplane.model.reference import (
    FORMS,
    ExecutionPrefix,
    FilePath,
    HandoffRef,
    InvalidReference,
    Reference,
    parse_reference,
)
from contextplane.store.find import find_execution_pack

if TYPE_CHECKING:
    from contextplane.app.platform import Platform

__all__ = ["RECORDING", "HandoffHasNoParts", "NotAPack", "named_handoff", "named_pack", "understood"]

_HINT = "write ctx://<hash> or its first digits; 'ctx log' lists them"
_ID = "write ctx://<hash>, or id@X.Y.Z for a version; 'ctx log' lists runs, 'ctx packs' versions"
_VERSION = "it is a version: 'ctx show', 'ctx log' and 'ctx diff' tell of it, 'ctx verify --registry' verifies them all"
_NO_PARTS = "a version has no parts: leave out what follows the colon"
RECORDING = "it is not a pack yet: 'ctx finalize %s' makes one of it, 'ctx log --unfinished' lists those there are"
_EVIDENCE = "it is evidence; a version whose id begins like that is written id@X.Y.Z, and 'ctx packs' lists them"


class NotAPack(ContextPlaneError):
    """A reference to something else, where an execution pack is asked for."""

    code: ClassVar[str] = "reference_not_an_execution_pack"
    family: ClassVar[Family] = "usage"


class HandoffHasNoParts(ContextPlaneError):
    """A part of a handoff pack was asked for. It is one object at each revision."""

    code: ClassVar[str] = "reference_handoff_part"
    family: ClassVar[Family] = "usage"


def understood(text: str, *, files: bool = False) -> Reference:
    """Read a reference where packs are asked for, and say what is taken there. `files`: files are taken as well."""
    try:
        return parse_reference(text)
    except InvalidReference as error:
        if error.hint == FORMS:
            error.hint = f"write ./{text} if it is a file" if files and text and _lies_here(text) else _HINT
        raise


def _lies_here(text: str) -> bool:
    return "\0" not in text and os.path.lexists(text)


def _hint(reference: Reference, text: str) -> str:
    named = reference.named
    if isinstance(named, PackRef):
        return _NO_PARTS if reference.selector else _VERSION
    if isinstance(named, EvidenceRef):
        return _EVIDENCE
    if isinstance(named, RecordingId):
        return RECORDING % named
    return _ID if isinstance(named, FilePath) and "/" not in text else _HINT


def named_handoff(text: str) -> HandoffRef | None:
    """The handoff pack that `text` names; None when it names something else."""
    if not text.startswith("pk_"):
        return None
    reference = parse_reference(text)
    if not isinstance(reference.named, HandoffRef):
        return None
    if reference.selector:
        raise HandoffHasNoParts(
            "a handoff pack has no parts", at=text[:200], hint="'ctx handoff read' shows it, 'ctx cat' its bytes"
        )
    return reference.named


def named_pack(text: str, platform: "Platform") -> Digest:
    """The digest of the execution pack that `text` names."""
    reference = understood(text)
    named = reference.named
    if isinstance(named, Digest):
        named = ExecutionRef(named)
    if not isinstance(named, ExecutionRef | ExecutionPrefix):
        raise NotAPack("not an execution pack", at=text[:200], hint=_hint(reference, text))
    if reference.selector:
        raise NotAPack("a part of an execution pack", at=text[:200], hint=f"'ctx cat {text[:200]}' reads a part")
    return find_execution_pack(platform.catalog, named)
