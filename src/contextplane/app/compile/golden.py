"""Golden cases: compile cases together with what they must compile to, one readable file each, JSON or YAML.

A file holds a compile case and, once it was recorded, `expected`. A case is run against the version at hand, whatever
version of the same pack or catalog its request names, so that it goes on holding when the number rises.

Writing what is expected of a golden case into its file.

A JSON file is written whole. A YAML file is its author's, with comments and an order of its own: `expected` is put at
its end, or where it stood before, and everything else stays as it is.
"""

import os
from collections.abc import Iterable, Sequence
from typing import ClassVar, cast

import msgspec

from contextplane.adapters.files.disk import Disk, storage_errors, write_whole
from contextplane.app.documents import DocumentUnreadable, file_in
from contextplane.app.documents import document as document_of
from contextplane.app.packs.files import case_from, is_yaml
from contextplane.authoring.source_file import Authored
from contextplane.compiler.source import PackSource
from contextplane.errors import ContextPlaneError, Family
from contextplane.evaluation.golden import (
    SURFACE,
    GoldenCaseInvalid,
    GoldenFile,
    Ran,
    compare_golden,
    compile_golden,
    golden_file,
)
from contextplane.evaluation.golden_case import Expected, Refused
from contextplane.evaluation.golden_release import run_cases
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.policy.detect.secrets import secret_shapes
from contextplane.registry.artifacts import Candidate
from contextplane.registry.reports import Golden

__all__ = ["FolderCases", "NoGoldenCases", "golden_files", "record", "text_with", "write_back"]

_INDENT = "  "


def text_with(file: Authored, case: dict[str, Json], expected: Json) -> bytes | None:
    """The file with what is expected of its case; None when a YAML file has a form that this cannot be put into."""
    document: dict[str, Json] = {**case, "expected": expected}
    if is_yaml(file.path):
        with document_of(file.path, piped=False) as source:
            text = bytes(source).decode()
        if not text.lstrip().startswith("{"):
            return _put(text, file, document)
    # A YAML file that is JSON in fact is written as such.
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def write_back(file: Authored, text: bytes) -> None:
    """Write a file anew, whole or not at all. What a link within the folder leads to is written, and not the link."""
    path = os.path.realpath(file.path)
    with storage_errors(file.path):
        write_whole(path, text, staging=os.path.dirname(path), disk=Disk())


def _put(text: str, file: Authored, document: dict[str, Json]) -> bytes | None:
    """The text with `expected` in it. It is read again, and counts only when it says just that."""
    from contextplane.authoring.yaml_reader import read_yaml_file

    lines = text.splitlines(keepends=True)
    before, after = lines, list[str]()
    if "expected" in cast("dict[str, Json]", file.file.value):
        starts = sorted(file.place(f"/{name}").line for name in cast("dict[str, Json]", file.file.value))
        start = file.place("/expected").line
        end = next((line for line in starts if line > start), len(lines) + 1)
        # What is said above the next part belongs to it.
        while end - 2 >= start and lines[end - 2].lstrip()[:1] in {"", "#"}:
            end -= 1
        before, after = lines[: start - 1], lines[end - 1 :]
    if before and not before[-1].endswith("\n"):
        before[-1] += "\n"
    told = msgspec.json.format(msgspec.json.encode(document["expected"]), indent=2).decode()
    made = "".join([*before, f"expected: {told}".replace("\n", f"\n{_INDENT}"), "\n", *after]).encode()
    try:
        return made if read_yaml_file(made).canonical == canonical(document) else None
    except ContextPlaneError:
        return None


class NoGoldenCases(ContextPlaneError):
    """A folder that holds no golden case."""

    code: ClassVar[str] = "golden_cases_missing"
    family: ClassVar[Family] = "not_found"


def golden_files(folder: str, *, anew: bool = False) -> tuple[GoldenFile, ...]:
    """Every case of a folder, by name. `anew`: they are to be recorded, whatever was recorded before."""
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError as error:
        raise DocumentUnreadable(
            f"cannot be listed: {error.strerror}", at=folder, hint="name the folder of the golden cases"
        ) from error
    cases: dict[str, GoldenFile] = {}
    for case in (_read(folder, name, anew=anew) for name in names if _is_case(name)):
        if case.name in cases:
            raise GoldenCaseInvalid("another case has this name", at=case.file.path, hint="rename one of them")
        cases[case.name] = case
    if not cases:
        hint = "put requests there, as JSON or YAML; 'ctx golden record'"
        raise NoGoldenCases("holds no golden case", at=folder, hint=hint)
    return tuple(cases.values())


def record(source: PackSource, files: Iterable[GoldenFile]) -> tuple[Ran, ...]:
    """Compile every case, and write what came of it into its file. What is so already is not written.

    Nothing is written before all of them were read and compiled: a file that is no case leaves the others alone.
    """
    came = [(file, compile_golden(source, file)) for file in files]
    texts = [(case.file, _written(case, found)) for case, found in came if found != case.expected]
    for file, text in texts:
        write_back(file, text)
    return tuple(compare_golden(case, found) for case, found in came)


def _written(case: GoldenFile, found: Expected | Refused) -> bytes:
    text = text_with(case.file, case.case, msgspec.to_builtins(found))
    if text is None:
        raise GoldenCaseInvalid(
            "what came of it cannot be put into YAML of this form", at=case.file.path, hint="write the case as JSON"
        )
    return text


def _is_case(name: str) -> bool:
    return name != SURFACE and (name.lower().endswith(".json") or is_yaml(name))


def _read(folder: str, name: str, *, anew: bool) -> GoldenFile:
    file = case_from(file_in(folder, name))
    return golden_file(os.path.splitext(name)[0], file.file.value, file, anew=anew)


class FolderCases:
    """The cases of a folder."""

    def __init__(self, folder: str) -> None:
        self._files = golden_files(folder)
        for file in self._files:
            if secret_shapes(file.file.file.canonical):
                raise GoldenCaseInvalid(
                    "holds something that looks like a secret, and would be kept for ever",
                    at=file.file.path,
                    hint="take it out; a case needs no real one",
                )

    def run(self, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> Golden:
        return run_cases(self._files, ref, value, catalogs)
