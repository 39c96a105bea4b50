"""Reads the files of authors: packs, overlays, descriptions of environments, compile cases.

What is read knows its path, and the line and column of each of its parts.
"""

import os
from typing import ClassVar, TypeVar

import msgspec

from contextplane.app.documents import DocumentUnreadable, open_document
from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.authoring.source_file import (
    MAX_BYTES,
    AuthorFile,
    AuthorFileTooLarge,
    NamedFile,
    OverlayFile,
    read_json_file,
    require_pack,
)
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import EnvironmentDescription, Overlay
from contextplane.model.json.parse import parse

__all__ = [
    "MAX_CASE_BYTES",
    "DescriptionInvalid",
    "EnvironmentDescription",
    "NamedFile",
    "is_yaml",
    "official_number",
    "read_author_file",
    "read_case_file",
    "read_environment_file",
    "read_overlay_file",
    "read_pack_file",
    "read_source_file",
]

MAX_CASE_BYTES = 64 << 20
"""The limit of a compile case, whose evidence may be large."""

_YAML = (".yaml", ".yml")
D = TypeVar("D", bound=msgspec.Struct)


class DescriptionInvalid(ContextPlaneError):
    """A file beside the pack, an overlay or a description of an environment, that has not its form."""

    code: ClassVar[str] = "description_invalid"
    family: ClassVar[Family] = "refused"


def read_source_file(path: str) -> NamedFile:
    return NamedFile(path=path, file=read_author_file(path))


def read_pack_file(path: str) -> NamedFile:
    return require_pack(read_source_file(path))


def read_case_file(path: str) -> NamedFile:
    """Read a compile case: YAML by its extension, JSON otherwise; `-` is standard input, JSON or YAML."""
    if is_yaml(path):
        return NamedFile(path=path, file=read_author_file(path))
    with open_document(path, piped=False) as data:
        if len(data) > MAX_CASE_BYTES:
            raise AuthorFileTooLarge(
                f"has {len(data)} bytes, more than {MAX_CASE_BYTES}", at=path, hint="give less evidence at once"
            )
        whole = bytes(data)
    try:
        if path == "-" and whole.lstrip()[:1] not in {b"{", b"[", b""}:
            from contextplane.authoring.yaml_reader import read_yaml_file

            return NamedFile(path=path, file=read_yaml_file(whole))
        parsed = parse(whole)
    except ContextPlaneError as error:
        raise error.under(f"{path}: " if error.at else path) from None
    return NamedFile(path=path, file=AuthorFile(parsed.value, parsed.canonical, whole))


def is_yaml(path: str) -> bool:
    """Whether a file is YAML, by its extension."""
    return os.path.splitext(path)[1].lower() in _YAML


def read_author_file(path: str) -> AuthorFile:
    """Read a document: YAML by its extension, JSON otherwise; `-` is standard input, JSON."""
    with open_document(path, piped=False) as data:
        if len(data) > MAX_BYTES:
            raise AuthorFileTooLarge(
                f"has {len(data)} bytes, more than {MAX_BYTES}", at=path, hint="keep records outside"
            )
        whole = bytes(data)
    try:
        if is_yaml(path):
            from contextplane.authoring.yaml_reader import read_yaml_file

            return read_yaml_file(whole)
        return read_json_file(whole)
    except ContextPlaneError as error:
        raise error.under(f"{path}: " if error.at else path) from None


def read_overlay_file(path: str) -> OverlayFile:
    source = read_source_file(path)
    return OverlayFile(path=path, file=source.file, overlay=_convert(source, Overlay))


def read_environment_file(path: str) -> EnvironmentDescription:
    try:
        return _convert(read_source_file(path), EnvironmentDescription)
    except DocumentUnreadable as error:
        error.hint = "--environment names a file that describes the environment; 'ctx compile' takes its name"
        raise


def _convert(source: NamedFile, form: type[D]) -> D:
    """Convert a file to its type; refuse it with the first problem in full and the others in the details."""
    typed = typed_or_problems(source.file.value, form)
    if isinstance(typed, form):
        return typed
    problems = list(typed) if isinstance(typed, tuple) else []
    first, more = problems[0], len(problems) - 1
    raise DescriptionInvalid(
        f"{first.at or 'the document'}: {first.cause}" + (f"; and {more} more like it" if more else ""),
        at=source.where(first.at),
        hint=first.cure,
        details={
            "problems": [
                {"at": problem.at, "place": source.where(problem.at), "cause": problem.cause, "cure": problem.cure}
                for problem in problems
            ]
        },
    )


def official_number(text: str) -> str | None:
    """Return which kind of official number a text is; None if it is none.

    The library is loaded here and not before: loading it takes longer than running all gates.
    """
    from stdnum import iban
    from stdnum.in_ import aadhaar, pan
    from stdnum.us import ssn

    checks = ((aadhaar, "Aadhaar number"), (pan, "PAN of a taxpayer"), (ssn, "social security number"))
    kinds = [kind for module, kind in (*checks, (iban, "bank account number")) if module.is_valid(text)]
    return kinds[0] if kinds else None
