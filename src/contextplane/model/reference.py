"""References: the one grammar of what a person types to name a thing, as in `ctx show REF`.

Tried in this order: a whole `id@X.Y.Z`; a typed prefix (`ctx://`, `sha256:`, `pk_`, `run_`, `rec_`, `dr_`, `kg:`); a
part of `id@X.Y.Z`; bare hexadecimal digits; a file. Nothing is looked up here: a prefix of a hash stays a prefix.
"""

import re
from collections.abc import Callable
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import (
    DecisionRecordId,
    Digest,
    EvidenceRef,
    ExecutionRef,
    HandoffId,
    PackRef,
    RecordingId,
    RunId,
    UnpinnedRef,
)
from contextplane.model.value import Value

__all__ = [
    "FORMS",
    "ExecutionPrefix",
    "FilePath",
    "HandoffRef",
    "InvalidReference",
    "Reference",
    "ReferenceTarget",
    "names_file",
    "names_version",
    "parse_reference",
]

# Texts, compiled by `re` on first use.
_HEX = r"[0-9a-fA-F]+"
_FULL, _SHORTEST = 64, 4
_EXTENSION = r"[^/]*\.[A-Za-z0-9_-]{1,16}"
_UNPINNED = r"[A-Za-z0-9_.:-]+@[\^~<>=vV]*[0-9*xX]+(?:\.[0-9*xX]+)*(?:[-+][0-9A-Za-z.+-]*)?"
_WHOLE = r"[A-Za-z0-9][A-Za-z0-9_.:-]*@[0-9]+\.[0-9]+\.[0-9]+"
_VERSION_NAME = r"(?!pk_|(?:kg|ctx|sha256|[0-9a-fA-F]+):)[A-Za-z0-9][A-Za-z0-9_.:-]*@[A-Za-z0-9][A-Za-z0-9_.-]*"
"""A version by an alias or an environment. An id that begins like a handoff pack, evidence or a run is excluded."""

_AUTHOR_EXTENSIONS = (".yaml", ".yml", ".json")
_SHOWN = 80


class InvalidReference(ContextPlaneError):
    """A text that names nothing in any of the forms that references have."""

    code: ClassVar[str] = "reference_invalid"
    family: ClassVar[Family] = "usage"


class ExecutionPrefix(Value, frozen=True):
    """The first digits of an execution pack's hash, four or more. Several packs may match."""

    digits: str

    def __post_init__(self) -> None:
        if not (_SHORTEST <= len(self.digits) < _FULL and re.fullmatch(r"[0-9a-f]+", self.digits)):
            raise InvalidReference(
                f"not the beginning of a hash: {self.digits[:_SHOWN]!r}",
                hint=f"give at least {_SHORTEST} and at most {_FULL} hexadecimal digits",
            )

    def __str__(self) -> str:
        return f"ctx://{self.digits}"


class HandoffRef(Value, frozen=True):
    """A handoff pack, at one of its revisions or at its newest."""

    id: HandoffId
    revision: int | None = None

    def __post_init__(self) -> None:
        if type(self.id) is not HandoffId or not (self.revision is None or self.revision >= 1):
            raise InvalidReference("not a handoff pack at a revision", hint="write pk_<id>@<number>")

    def __str__(self) -> str:
        return str(self.id) if self.revision is None else f"{self.id}@{self.revision}"


class FilePath(Value, frozen=True):
    """A file outside the store."""

    path: str

    def __str__(self) -> str:
        return self.path


ReferenceTarget = (
    ExecutionRef
    | ExecutionPrefix
    | Digest
    | HandoffRef
    | RunId
    | RecordingId
    | DecisionRecordId
    | EvidenceRef
    | PackRef
    | FilePath
)


class Reference(Value, frozen=True):
    """A parsed reference: its target, and the selector after a colon, if any.

    `ctx://ab12...:outputs/report.md` selects an output of a run.
    """

    target: ReferenceTarget
    selector: str = ""


def parse_reference(text: str, *, file: bool = False) -> Reference:
    """Parse a reference. `file`: read it as a path, even if it looks like something else."""
    if not text or "\0" in text:
        raise InvalidReference("an empty reference" if not text else "a reference with a NUL in it", hint=FORMS)
    if file:
        return Reference(target=FilePath(path=text))
    reference = (
        _parse_version(text)
        or _parse_prefixed(text)
        or _parse_version_part(text)
        or _parse_hex(text)
        or _parse_file(text)
    )
    if reference is None:
        raise InvalidReference(f"not a reference: {text[:_SHOWN]!r}", hint=FORMS)
    return reference


def names_version(text: str) -> bool:
    """Whether a text names a version of an artifact: `id@X.Y.Z`, `id@ALIAS` or `id@ENV`.

    It does not check that the version exists.
    """
    return re.fullmatch(_WHOLE, text) is not None or re.fullmatch(_VERSION_NAME, text) is not None


def names_file(text: str) -> bool:
    """Whether a text names an author's file, where a version could be meant too: `old@2.yaml`."""
    return "/" in text or text.endswith(_AUTHOR_EXTENSIONS) or not names_version(text)


FORMS = (
    "write ctx://<hash>, sha256:<hash>, pk_<id>, run_<id>, rec_<id>, dr_<id>, kg:<ref>, id@X.Y.Z, hex digits, or a path"
)
"""The hint for a text that has none of the forms."""


def _parse_version(text: str) -> Reference | None:
    """A text that ends in a version, tried first: an id may begin like any other kind of reference."""
    return Reference(target=PackRef.parse(text)) if re.fullmatch(_WHOLE, text) else None


def _parse_prefixed(text: str) -> Reference | None:
    if text.startswith("kg:"):
        return Reference(target=EvidenceRef(text))
    for prefix, read in _PREFIXES.items():
        if text.startswith(prefix):
            body, selector = _split(text.removeprefix(prefix))
            if prefix.endswith("_") and _looks_like_file(body):
                return None  # run_tests.py is a file, though it begins like a run
            return Reference(target=read(body), selector=selector)
    return None


def _parse_version_part(text: str) -> Reference | None:
    match = re.fullmatch(r"(?P<ref>[A-Za-z0-9_.:-]+@[0-9]+\.[0-9]+\.[0-9]+)(?::(?P<selector>.+))?", text)
    return Reference(target=PackRef.parse(match["ref"]), selector=match["selector"] or "") if match else None


def _parse_hex(text: str) -> Reference | None:
    digits, selector = _split(text)
    return Reference(target=_parse_execution(digits), selector=selector) if re.fullmatch(_HEX, digits) else None


def _parse_file(text: str) -> Reference | None:
    if re.fullmatch(_UNPINNED, text):
        raise UnpinnedRef(f"not a pinned reference: {text[:_SHOWN]!r}", hint="write id@X.Y.Z: no range, no pre-release")
    return Reference(target=FilePath(path=text)) if _looks_like_file(text) else None


def _looks_like_file(text: str) -> bool:
    return "/" in text or text in {".", ".."} or re.fullmatch(_EXTENSION, text) is not None


def _split(text: str) -> tuple[str, str]:
    """The reference, and the selector after its first colon."""
    head, _, selector = text.partition(":")
    return head, selector


def _parse_execution(digits: str) -> ExecutionRef | ExecutionPrefix:
    if len(digits) == _FULL and re.fullmatch(_HEX, digits):
        return ExecutionRef(Digest(digits.lower()))
    return ExecutionPrefix(digits=digits.lower())


def _parse_digest(digits: str) -> Digest:
    if len(digits) < _FULL and (not digits or re.fullmatch(_HEX, digits)):
        raise InvalidReference(
            f"not a whole hash: {digits!r}", hint=f"sha256: takes {_FULL} digits; the first digits alone find a pack"
        )
    return Digest.parse(f"sha256:{digits.lower()}")


def _parse_handoff(body: str) -> HandoffRef:
    head, at, revision = body.partition("@")
    if at and not re.fullmatch(r"[1-9][0-9]{0,9}", revision):
        place = f"pk_{body}"[:_SHOWN]
        raise InvalidReference(
            f"not a revision: {revision[:_SHOWN]!r}", at=place, hint="write pk_<id>@<number>, or id@X.Y.Z"
        )
    return HandoffRef(id=HandoffId(f"pk_{head}"), revision=int(revision) if at else None)


_PREFIXES: dict[str, Callable[[str], ReferenceTarget]] = {
    "ctx://sha256:": _parse_execution,
    "ctx://": _parse_execution,
    "sha256:": _parse_digest,
    "pk_": _parse_handoff,
    "run_": lambda rest: RunId(f"run_{rest}"),
    "rec_": lambda rest: RecordingId(f"rec_{rest}"),
    "dr_": lambda rest: DecisionRecordId(f"dr_{rest}"),
}
