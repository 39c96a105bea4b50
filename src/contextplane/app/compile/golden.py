"""Golden cases in files: reading them from a folder, and recording what they compile to.

A file, JSON or YAML, holds a compile case and, once it was recorded, `expected`. A case runs against the version at
hand, also if its request names another version of the same pack or catalog: it stays valid when the number rises.

Recording writes a JSON file whole. In a YAML file, which has comments and an order of its own, `expected` is put at the
end, or where it was before, and everything else stays as it is.
"""

import os
from collections.abc import Iterable, Sequence
from typing import ClassVar, cast

import msgspec

from contextplane.adapters.files.disk import Disk, storage_errors, write_atomically
from contextplane.app.documents import DocumentUnreadable, path_in_folder
from contextplane.app.documents import open_document as document_of
from contextplane.app.packs.files import is_yaml, read_case_file
from contextplane.authoring.source_file import NamedFile
from contextplane.compiler.source import PackSource
from contextplane.errors import ContextPlaneError, Family
from contextplane.evaluation.golden import (
    SURFACE,
    CaseResult,
    GoldenCaseInvalid,
    GoldenFile,
    check_cases,
    combined_case,
    compare_golden,
    compile_golden,
    read_golden,
    requested_version,
)
from contextplane.evaluation.golden_case import GoldenContext, GoldenRefusal
from contextplane.evaluation.golden_release import run_cases
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.policy.detect.secrets import secret_shapes
from contextplane.registry.artifacts import Candidate
from contextplane.registry.reports import GoldenResult

__all__ = [
    "CaseResult",
    "FolderCases",
    "NoGoldenCases",
    "check_cases",
    "combined_case",
    "golden_files",
    "record_cases",
    "requested_version",
    "text_with_expected",
    "write_case_file",
]

_INDENT = "  "


def text_with_expected(file: NamedFile, case: dict[str, Json], expected: Json) -> bytes | None:
    """Return the text of the file with `expected` in it; None if the YAML has a form that cannot take it."""
    document: dict[str, Json] = {**case, "expected": expected}
    if is_yaml(file.path):
        with document_of(file.path, piped=False) as source:
            text = bytes(source).decode()
        if not text.lstrip().startswith("{"):
            return _insert_expected(text, file, document)
    # A YAML file that is JSON in fact is written as such.
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def write_case_file(file: NamedFile, text: bytes) -> None:
    """Replace the file atomically. A link within the folder stays; the file it leads to is replaced."""
    path = os.path.realpath(file.path)
    with storage_errors(file.path):
        write_atomically(path, text, staging=os.path.dirname(path), disk=Disk())


def _insert_expected(text: str, file: NamedFile, document: dict[str, Json]) -> bytes | None:
    """Return the YAML text with `expected` in it; None unless it reads back as exactly this document."""
    from contextplane.authoring.yaml_reader import read_yaml_file

    lines = text.splitlines(keepends=True)
    before, after = lines, list[str]()
    if "expected" in cast("dict[str, Json]", file.file.value):
        starts = sorted(file.place(f"/{name}").line for name in cast("dict[str, Json]", file.file.value))
        start = file.place("/expected").line
        end = next((line for line in starts if line > start), len(lines) + 1)
        # Comments above the next member belong to that member.
        while end - 2 >= start and lines[end - 2].lstrip()[:1] in {"", "#"}:
            end -= 1
        before, after = lines[: start - 1], lines[end - 1 :]
    if before and not before[-1].endswith("\n"):
        before[-1] += "\n"
    expected = msgspec.json.format(msgspec.json.encode(document["expected"]), indent=2).decode()
    updated = "".join([*before, f"expected: {expected}".replace("\n", f"\n{_INDENT}"), "\n", *after]).encode()
    try:
        return updated if read_yaml_file(updated).canonical == canonical(document) else None
    except ContextPlaneError:
        return None


class NoGoldenCases(ContextPlaneError):
    """A folder that holds no golden case."""

    code: ClassVar[str] = "golden_cases_missing"
    family: ClassVar[Family] = "not_found"


def golden_files(folder: str, *, anew: bool = False) -> tuple[GoldenFile, ...]:
    """Read every case of a folder, sorted by name. `anew`: ignore what was recorded before."""
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError as error:
        raise DocumentUnreadable(
            f"cannot be listed: {error.strerror}", at=folder, hint="name the folder of the golden cases"
        ) from error
    cases: dict[str, GoldenFile] = {}
    for case in (_read_case(folder, name, anew=anew) for name in names if _is_case_name(name)):
        if case.name in cases:
            raise GoldenCaseInvalid("another case has this name", at=case.file.path, hint="rename one of them")
        cases[case.name] = case
    if not cases:
        hint = "put requests there, as JSON or YAML; 'ctx golden record'"
        raise NoGoldenCases("holds no golden case", at=folder, hint=hint)
    return tuple(cases.values())


def record_cases(source: PackSource, files: Iterable[GoldenFile]) -> tuple[CaseResult, ...]:
    """Compile every case and write the outcome into its file, unless it is there already.

    Nothing is written before all cases were read and compiled: an invalid file changes none of the others.
    """
    outcomes = [(file, compile_golden(source, file)) for file in files]
    texts = [(case.file, _recorded_text(case, outcome)) for case, outcome in outcomes if outcome != case.expected]
    for file, text in texts:
        write_case_file(file, text)
    return tuple(compare_golden(case, outcome) for case, outcome in outcomes)


def _recorded_text(case: GoldenFile, outcome: GoldenContext | GoldenRefusal) -> bytes:
    text = text_with_expected(case.file, case.case, msgspec.to_builtins(outcome))
    if text is None:
        raise GoldenCaseInvalid(
            "the result cannot be written into YAML of this form", at=case.file.path, hint="write the case as JSON"
        )
    return text


def _is_case_name(name: str) -> bool:
    return name != SURFACE and (name.lower().endswith(".json") or is_yaml(name))


def _read_case(folder: str, name: str, *, anew: bool) -> GoldenFile:
    file = read_case_file(path_in_folder(folder, name))
    return read_golden(os.path.splitext(name)[0], file.file.value, file, anew=anew)


class FolderCases:
    """The golden cases of a folder, to be run at a release. A case with a secret in it is refused."""

    def __init__(self, folder: str) -> None:
        self._files = golden_files(folder)
        for file in self._files:
            if secret_shapes(file.file.file.canonical):
                raise GoldenCaseInvalid(
                    "holds something that looks like a secret, and would be kept for ever",
                    at=file.file.path,
                    hint="remove it; a case needs no real secret",
                )

    def run(self, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> GoldenResult:
        return run_cases(self._files, ref, value, catalogs)
