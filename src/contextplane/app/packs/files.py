"""The files that authors have: packs, overlays, descriptions of environments. Each knows its name and its places.

A new context pack to begin from, the smallest one that does useful work, and a request to compile it with.

Who knows official numbers: the library that does is loaded when a text may be one.
"""

import os
from typing import TYPE_CHECKING, ClassVar, TypeVar

import msgspec

from contextplane.app.documents import document
from contextplane.authoring.environment import Surroundings
from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.authoring.source_file import (
    LARGEST,
    Authored,
    AuthorFile,
    AuthorFileTooLarge,
    OverlayFile,
    read_json_file,
)
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import Overlay
from contextplane.model.json.parse import parse

if TYPE_CHECKING:
    from contextplane.model.artifact import ArtifactKind

__all__ = [
    "LARGEST_CASE",
    "DescriptionInvalid",
    "NotAContextPack",
    "as_pack",
    "author_file",
    "authored",
    "case_from",
    "is_yaml",
    "kind_of",
    "official_number",
    "overlay_from",
    "pack_from",
    "surroundings_from",
]

_KINDS: dict[str, "ArtifactKind"] = {"overlay_id": "overlay", "catalog_id": "decision_catalog"}
"""The member that tells what kind of artifact a document is; a pack is whatever has none of them."""

_OTHER_KINDS = (
    ("overlay_id", "it is an overlay", "'ctx lint PACK --overlay FILE' judges it together with its pack"),
    ("catalog_id", "it is a decision catalog", "'ctx lint FILE' judges it for itself"),
    ("approval_ceiling", "it describes an environment", "'ctx lint PACK --environment FILE' judges a pack by it"),
    *(
        (name, "it looks like the log of a run", "'ctx pack' makes an execution pack of a log")
        for name in ("model", "system_prompt", "prompts", "steps", "outputs")
    ),
)
"""What a file holds that has a member of this name, and what is done with such a file."""

_YAML = (".yaml", ".yml")
D = TypeVar("D", bound=msgspec.Struct)


class DescriptionInvalid(ContextPlaneError):
    """A file beside the pack, an overlay or a description of an environment, that has not its form."""

    code: ClassVar[str] = "description_invalid"
    family: ClassVar[Family] = "refused"


class NotAContextPack(ContextPlaneError):
    """A file that holds something else, or that has not the form of a context pack, where one is asked for."""

    code: ClassVar[str] = "not_a_context_pack"
    family: ClassVar[Family] = "refused"


def authored(path: str) -> Authored:
    return Authored(path=path, file=author_file(path))


def kind_of(found: Authored) -> "ArtifactKind":
    """What kind of artifact a file holds, told by the member that names it."""
    members = found.file.value if isinstance(found.file.value, dict) else {}
    kinds = [kind for name, kind in _KINDS.items() if name in members and "pack_meta" not in members]
    return kinds[0] if kinds else "context_pack"


def pack_from(path: str) -> Authored:
    return as_pack(authored(path))


def as_pack(found: Authored) -> Authored:
    """The same file, if it may be a context pack. One that plainly holds something else is refused."""
    members = found.file.value if isinstance(found.file.value, dict) else {}
    for name, what, hint in _OTHER_KINDS:
        if name in members and "pack_meta" not in members:
            raise NotAContextPack(f"{what}, not a context pack", at=found.path, hint=hint)
    return found


def is_yaml(path: str) -> bool:
    """Whether a file is YAML, which its extension says."""
    return os.path.splitext(path)[1].lower() in _YAML


def author_file(path: str) -> AuthorFile:
    """Read a document: YAML by its extension, JSON otherwise; `-` is standard input, JSON."""
    with document(path, piped=False) as data:
        if len(data) > LARGEST:
            raise AuthorFileTooLarge(
                f"has {len(data)} bytes, more than {LARGEST}", at=path, hint="keep records outside"
            )
        whole = bytes(data)
    try:
        if is_yaml(path):
            from contextplane.authoring.yaml_reader import read_yaml_file

            return read_yaml_file(whole)
        return read_json_file(whole)
    except ContextPlaneError as error:
        raise error.under(f"{path}: " if error.at else path) from None


def overlay_from(path: str) -> OverlayFile:
    source = authored(path)
    return OverlayFile(path=path, file=source.file, overlay=_typed(source, Overlay))


def surroundings_from(path: str) -> Surroundings:
    return _typed(authored(path), Surroundings)


def _typed(found: Authored, form: type[D]) -> D:
    """The document of a file that is of its form. Else the first problem is told in full, and the others listed."""
    typed = typed_or_problems(found.file.value, form)
    if isinstance(typed, form):
        return typed
    problems = list(typed) if isinstance(typed, tuple) else []
    first, more = problems[0], len(problems) - 1
    raise DescriptionInvalid(
        f"{first.at or 'the document'}: {first.cause}" + (f"; and {more} more like it" if more else ""),
        at=found.where(first.at),
        hint=first.cure,
        details={
            "problems": [
                {"at": problem.at, "place": found.where(problem.at), "cause": problem.cause, "cure": problem.cure}
                for problem in problems
            ]
        },
    )


def official_number(text: str) -> str | None:
    """Which official number a text is. To load the library takes longer than all gates, so nothing loads it before."""
    from stdnum import iban
    from stdnum.in_ import aadhaar, pan
    from stdnum.us import ssn

    checks = ((aadhaar, "Aadhaar number"), (pan, "PAN of a taxpayer"), (ssn, "social security number"))
    kinds = [kind for module, kind in (*checks, (iban, "bank account number")) if module.is_valid(text)]
    return kinds[0] if kinds else None


LARGEST_CASE = 64 << 20
"""Evidence may be large; what is larger than this is not read."""


def case_from(path: str) -> Authored:
    """The file of a case: YAML by its extension, JSON otherwise; `-` is standard input, JSON."""
    if is_yaml(path):
        return Authored(path=path, file=author_file(path))
    with document(path, piped=False) as data:
        if len(data) > LARGEST_CASE:
            raise AuthorFileTooLarge(
                f"has {len(data)} bytes, more than {LARGEST_CASE}", at=path, hint="give less evidence at once"
            )
        whole = bytes(data)
    try:
        parsed = parse(whole)
    except ContextPlaneError as error:
        raise error.under(f"{path}: " if error.at else path) from None
    return Authored(path=path, file=AuthorFile(parsed.value, parsed.canonical, whole))
