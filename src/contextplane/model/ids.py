"""Checked identities: each is parsed once, and none can exist unchecked.

Constructing one checks it too, so past the edge no code asks "is it pinned?" or "is it a hash?": the type says so. A
text on the command line is a *reference*; `model/reference.py` parses it.
"""

import re
from functools import cache
from typing import ClassVar, Self

import msgspec

from contextplane.errors import ContextPlaneError, Family

__all__ = [
    "DecisionRecordId",
    "Digest",
    "EvidenceRef",
    "ExecutionRef",
    "HandoffId",
    "InvalidId",
    "PackRef",
    "RecordingId",
    "RunId",
    "UnpinnedRef",
    "is_sha256",
]


class InvalidId(ContextPlaneError):
    """A text that is not the identity it is used as."""

    code: ClassVar[str] = "id_invalid"
    family: ClassVar[Family] = "usage"


class UnpinnedRef(ContextPlaneError):
    """A reference that does not name one immutable version: `pack_id` alone, a range, or an alias."""

    code: ClassVar[str] = "pack_ref_unpinned"
    family: ClassVar[Family] = "refused"


# Patterns are texts, compiled by `re` on first use: most commands need none of them.
_HEX_DIGITS, _HEX_LENGTH = "0123456789abcdef", 64
_VERSIONED = r"(?P<id>[A-Za-z0-9_.:-]+)@(?P<version>(?:0|[1-9][0-9]{0,8})(?:\.(?:0|[1-9][0-9]{0,8})){2})"
_SHOWN = 80


def _refuse(what: str, text: object, form: str) -> InvalidId:
    shown = repr(text)
    shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
    return InvalidId(f"not {what}: {shown}", hint=f"the form is {form}")


def is_sha256(text: str) -> bool:
    """Whether a text is a SHA-256 in lower-case hexadecimal digits."""
    return len(text) == _HEX_LENGTH and not text.strip(_HEX_DIGITS)


class Digest(msgspec.Struct, frozen=True, order=True):
    """The SHA-256 of some bytes. Written `sha256:<64 lower-case hex>`."""

    hex: str

    def __post_init__(self) -> None:
        if type(self.hex) is not str or not is_sha256(self.hex):
            raise _refuse("a SHA-256", self.hex, "64 lower-case hexadecimal digits")

    @classmethod
    def of(cls, data: bytes) -> Self:
        # Imported here: it loads OpenSSL, and most commands hash nothing.
        import hashlib  # noqa: PLC0415

        return cls(hashlib.sha256(data).hexdigest())

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            return cls(text.removeprefix("sha256:") if text.startswith("sha256:") else "")
        except InvalidId:
            raise _refuse("a digest", text, "sha256:<64 lower-case hex>") from None

    def __str__(self) -> str:
        return f"sha256:{self.hex}"


class ExecutionRef(msgspec.Struct, frozen=True, order=True):
    """The identity of an ExecutionPack, `ctx://<64 hex>`: the digest of its manifest."""

    digest: Digest

    def __post_init__(self) -> None:
        if type(self.digest) is not Digest:
            raise _refuse("a digest", self.digest, "a Digest")

    @classmethod
    def parse(cls, text: str) -> Self:
        scheme, sep, digits = text.partition("://")
        if scheme != "ctx" or not sep or not is_sha256(digits):
            raise _refuse("an execution pack", text, "ctx://<64 lower-case hex>")
        return cls(Digest(digits))

    def __str__(self) -> str:
        return f"ctx://{self.digest.hex}"


class PackRef(msgspec.Struct, frozen=True):
    """A pinned reference `id@X.Y.Z` to a ContextPack, Overlay or DecisionCatalog.

    An unpinned one cannot exist.
    """

    pack_id: str
    version: str

    def __post_init__(self) -> None:
        text = f"{self.pack_id}@{self.version}"
        match = re.fullmatch(_VERSIONED, text)
        texts = type(self.pack_id) is str and type(self.version) is str
        if not texts or match is None or match["id"] != self.pack_id:
            raise UnpinnedRef(
                f"not a pinned reference: {text.removesuffix('@')[:_SHOWN]!r}",
                hint="write pack_id@X.Y.Z: no range, no alias, no pre-release",
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        pack_id, at, version = text.rpartition("@")
        return cls(pack_id if at else text, version if at else "")

    @property
    def release(self) -> tuple[int, int, int]:
        """The version as numbers."""
        major, minor, patch = self.version.split(".")
        return int(major), int(minor), int(patch)

    def __lt__(self, other: "PackRef") -> bool:
        """By id, then by version as numbers: 10.0.0 comes after 9.0.0."""
        return (self.pack_id, self.release) < (other.pack_id, other.release)

    def __str__(self) -> str:
        return f"{self.pack_id}@{self.version}"


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile when first needed: a command that reads no such text does without."""
    return re.compile(pattern)


class _Patterned(msgspec.Struct, frozen=True, order=True):
    """An identity that is a text of one fixed form."""

    text: str

    WHAT: ClassVar[str] = ""
    FORM: ClassVar[str] = ""
    PATTERN: ClassVar[str] = r"(?!)"

    def __post_init__(self) -> None:
        if type(self.text) is not str or not self.has_form(self.text):
            raise _refuse(self.WHAT, self.text, self.FORM)

    @classmethod
    def has_form(cls, text: str) -> bool:
        return _compile_pattern(cls.PATTERN).fullmatch(text) is not None

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls(text)

    def __str__(self) -> str:
        return self.text


class HandoffId(_Patterned, frozen=True, order=True):
    """The identity of a HandoffPack: `pk_` and eight characters of the base-32 alphabet a-z2-7."""

    WHAT: ClassVar[str] = "a handoff pack"
    FORM: ClassVar[str] = "pk_[a-z2-7]{8}"
    PATTERN: ClassVar[str] = r"pk_[a-z2-7]{8}"


class RunId(_Patterned, frozen=True, order=True):
    """The identity of a governed run: `run_` and sixteen lower-case hexadecimal digits."""

    WHAT: ClassVar[str] = "a run"
    FORM: ClassVar[str] = "run_[0-9a-f]{16}"
    PATTERN: ClassVar[str] = r"run_[0-9a-f]{16}"


class RecordingId(_Patterned, frozen=True, order=True):
    """The identity of a run that is being recorded: `rec_` and sixteen lower-case hexadecimal digits."""

    WHAT: ClassVar[str] = "a recording"
    FORM: ClassVar[str] = "rec_[0-9a-f]{16}"
    PATTERN: ClassVar[str] = r"rec_[0-9a-f]{16}"


class DecisionRecordId(_Patterned, frozen=True, order=True):
    """The identity of a DecisionRecord: `dr_` and up to 96 lower-case letters, digits and underscores."""

    WHAT: ClassVar[str] = "a decision record"
    FORM: ClassVar[str] = "dr_[a-z0-9_]{1,96}"
    PATTERN: ClassVar[str] = r"dr_[a-z0-9_]{1,96}"


class EvidenceRef(_Patterned, frozen=True, order=True):
    """Where a claim comes from.

    `kg:order:ord_881#snapshot_1`, `tool:adp_orders.lookup:tc_117`, `policy:BUNDLE#RULE`, `session:sess_1`.
    """

    WHAT: ClassVar[str] = "an evidence reference"
    FORM: ClassVar[str] = "kg:|tool:|policy:|session:<id>[#<part>], without white space"
    PATTERN: ClassVar[str] = r"(?:kg|tool|policy|session):[!-\"$-~]{1,512}(?:#[!-\"$-~]{1,256})?"

    @property
    def source(self) -> str:
        """The kind of source: `kg`, `tool`, `policy` or `session`."""
        return self.text.partition(":")[0]
