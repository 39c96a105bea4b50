"""Golden cases in files: reading them from a folder, and recording what they compile to.

A file, JSON or YAML, holds a compile case. Its recorded outcome is in a file of its own: `refund.expected.json` beside
`refund.yaml`. Recording never changes the file of the author. A case runs against the version at hand, also if its
request names another version of the same pack or catalog: it stays valid when the number rises.

Older versions wrote the outcome into the case, as `expected`. It is still read there, and recording moves it out.
"""

import os
from collections.abc import Iterable, Sequence
from typing import ClassVar, cast

import msgspec
from msgspec.structs import replace

from contextplane.adapters.files.disk import Disk, storage_errors, write_atomically
from contextplane.app.documents import DocumentUnreadable, path_in_folder
from contextplane.app.documents import open_document as document_of
from contextplane.app.packs.files import is_yaml, read_case_file
from contextplane.app.token_counters import choose_counter
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
from contextplane.evaluation.golden_release import run_cases
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.policy.detect.secrets import secret_shapes
from contextplane.registry.artifacts import Candidate
from contextplane.registry.reports import GoldenResult

__all__ = [
    "EXPECTED",
    "CaseResult",
    "FolderCases",
    "NoGoldenCases",
    "check_cases",
    "combined_case",
    "expected_path",
    "golden_files",
    "record_cases",
    "requested_version",
    "text_without_expected",
    "write_file",
]

EXPECTED = ".expected.json"
"""The end of the name of a file with an outcome, beside the file of its case."""


def text_without_expected(file: NamedFile, case: dict[str, Json]) -> bytes | None:
    """Return the text of a case without its `expected`; None if that cannot be cut out of the YAML."""
    if is_yaml(file.path):
        with document_of(file.path, piped=False) as source:
            text = bytes(source).decode()
        if not text.lstrip().startswith("{"):
            return _cut_expected(text, file, case)
    # The text of a JSON case was written by us when its outcome was.
    return msgspec.json.format(msgspec.json.encode(case), indent=2) + b"\n"


def write_file(path: str, text: bytes) -> None:
    """Replace a file atomically. A link within the folder stays; the file it leads to is replaced."""
    real = os.path.realpath(path)
    with storage_errors(path):
        write_atomically(real, text, staging=os.path.dirname(real), disk=Disk())


def _cut_expected(text: str, file: NamedFile, case: dict[str, Json]) -> bytes | None:
    """Return the YAML text without `expected`; None unless it reads back as exactly this case."""
    from contextplane.authoring.yaml_reader import read_yaml_file

    lines = text.splitlines(keepends=True)
    starts = sorted(file.place(f"/{name}").line for name in cast("dict[str, Json]", file.file.value))
    start = file.place("/expected").line
    end = next((line for line in starts if line > start), len(lines) + 1)
    # Comments above the next member belong to that member.
    while end - 2 >= start and lines[end - 2].lstrip()[:1] in {"", "#"}:
        end -= 1
    updated = "".join([*lines[: start - 1], *lines[end - 1 :]]).encode()
    try:
        return updated if read_yaml_file(updated).canonical == canonical(case) else None
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
    beside = {name for name in names if name.endswith(EXPECTED)}
    for case in (_read_case(folder, name, beside, anew=anew) for name in names if _is_case_name(name)):
        if case.name in cases:
            raise GoldenCaseInvalid("another case has this name", at=case.file.path, hint="rename one of them")
        cases[case.name] = case
    _refuse_orphans(folder, beside, cases)
    if not cases:
        hint = "put requests there, as JSON or YAML; 'ctx golden record'"
        raise NoGoldenCases("holds no golden case", at=folder, hint=hint)
    return tuple(cases.values())


def record_cases(source: PackSource, files: Iterable[GoldenFile]) -> tuple[CaseResult, ...]:
    """Compile every case and write the outcome into the file beside it, unless it is there already.

    Nothing is written before all cases were read and compiled: an invalid file changes none of the others.
    """
    outcomes = [(file, *compile_golden(source, file)) for file in files]
    texts: list[tuple[str, bytes]] = []
    for case, outcome, _ in outcomes:
        if outcome != case.expected or case.inside:
            text = msgspec.json.format(msgspec.json.encode(outcome), indent=2) + b"\n"
            texts.append((expected_path(case.file.path), text))
        if case.inside:
            texts.append((case.file.path, _text_of_case(case)))
    for path, text in texts:
        write_file(path, text)
    results = (replace(compare_golden(*outcome), moved=outcome[0].inside) for outcome in outcomes)
    return tuple(results)


def expected_path(path: str) -> str:
    """Return the path of the file with the outcome of a case."""
    return os.path.splitext(path)[0] + EXPECTED


def _text_of_case(case: GoldenFile) -> bytes:
    text = text_without_expected(case.file, case.case)
    if text is None:
        raise GoldenCaseInvalid(
            "the expected result cannot be moved out of YAML of this form",
            at=case.file.where("/expected"),
            hint="remove the member expected",
        )
    return text


def _is_case_name(name: str) -> bool:
    return name != SURFACE and not name.endswith(EXPECTED) and (name.lower().endswith(".json") or is_yaml(name))


def _read_case(folder: str, name: str, beside: set[str], *, anew: bool) -> GoldenFile:
    file, stem = read_case_file(path_in_folder(folder, name)), os.path.splitext(name)[0]
    own, outcome = f"{stem}{EXPECTED}", None
    if own in beside:
        try:
            outcome = read_case_file(path_in_folder(folder, own))
        except JsonRefused:
            if not anew:  # recording writes it again, as after a merge that left its marks
                raise
    return read_golden(stem, file.file.value, file, beside=outcome, anew=anew)


def _refuse_orphans(folder: str, beside: Iterable[str], cases: Iterable[str]) -> None:
    """Refuse an outcome whose case is gone: a case that was lost would pass in silence."""
    for name in sorted(beside):
        if name.removesuffix(EXPECTED) not in cases:
            raise GoldenCaseInvalid(
                "its case is not in the folder",
                at=os.path.join(folder, name),
                hint=f"put the case back as {name.removesuffix(EXPECTED)}.yaml or .json, or remove this file",
            )


class FolderCases:
    """The golden cases of a folder, to be run at a release. A case with a secret in it is refused."""

    def __init__(self, folder: str) -> None:
        self._files = golden_files(folder)
        for file in self._files:
            if secret_shapes(canonical(file.document)):
                raise GoldenCaseInvalid(
                    "holds something that looks like a secret, and would be kept for ever",
                    at=file.file.path,
                    hint="remove it; a case needs no real secret",
                )

    def run(self, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> GoldenResult:
        return run_cases(self._files, ref, value, catalogs, choose_counter)
