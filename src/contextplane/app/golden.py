"""Golden cases: compile cases together with what they must compile to, one readable JSON file each.

A file holds a compile case and, once it was recorded, `expected`. A case is run against the version at hand, whatever
version of the same pack its request names, so that it goes on holding when the number rises.
"""

import os
from collections.abc import Iterable, Iterator
from typing import ClassVar

import msgspec

from contextplane.adapters.files.disk import Disk, storage_errors, write_whole
from contextplane.app.account import Moved, moved
from contextplane.app.authored import Authored
from contextplane.app.compile_case import case_from, read_case
from contextplane.app.compiling import PackSource, placed
from contextplane.app.documents import DocumentUnreadable
from contextplane.app.golden_expected import Expected, Refused, as_expected, comparable
from contextplane.app.knobs import put
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import Json
from contextplane.model.ids import PackRef
from contextplane.model.value import Value

__all__ = [
    "SURFACE",
    "GoldenCaseInvalid",
    "GoldenFile",
    "NoGoldenCases",
    "Ran",
    "check",
    "for_version",
    "golden_documents",
    "golden_files",
    "record",
]

SURFACE = "tool_surface.json"
"""The one file of the folder that is no case: the tools that the pack is expected to expose."""

_YAML = (".yaml", ".yml")


class GoldenCaseInvalid(ContextPlaneError):
    """A file among golden cases that is none."""

    code: ClassVar[str] = "golden_case_invalid"
    family: ClassVar[Family] = "refused"


class NoGoldenCases(ContextPlaneError):
    """A folder that holds no golden case."""

    code: ClassVar[str] = "golden_cases_missing"
    family: ClassVar[Family] = "not_found"


class GoldenFile(Value, frozen=True):
    """A case by its name, where it stands, and what was recorded of it."""

    name: str
    file: Authored
    case: dict[str, Json]
    expected: Expected | Refused | None


class Ran(Value, frozen=True):
    """What came of one case. `stage` is the first that drifted, empty when none did; `words` say what is wrong.

    `moved` is all that is otherwise by name. `elsewhere`: every stage is the same, and the pack is not the one that was
    recorded, so that the hash of the whole is another.
    """

    name: str
    found: Expected | Refused
    stage: str = ""
    words: str = ""
    moved: tuple[Moved, ...] = ()
    elsewhere: bool = False

    @property
    def passed(self) -> bool:
        return not self.stage


def golden_files(folder: str) -> tuple[GoldenFile, ...]:
    """Every case of a folder, by name."""
    try:
        names = sorted(one for one in os.listdir(folder) if not one.startswith("."))
    except OSError as error:
        raise DocumentUnreadable(
            f"cannot be listed: {error.strerror}", at=folder, hint="name the folder of the golden cases"
        ) from error
    found = tuple(_read(folder, name) for name in names if _is_case(folder, name))
    if not found:
        raise NoGoldenCases("holds no golden case", at=folder, hint="put requests there, as JSON; 'ctx golden record'")
    return found


def golden_documents(documents: Iterable[Json]) -> tuple[GoldenFile, ...]:
    """Cases as a registry kept them: each has its name, and the document of its file."""
    return tuple(_golden(str(one["name"]), one["case"]) for one in documents if isinstance(one, dict) and "case" in one)


def check(source: PackSource, files: Iterable[GoldenFile]) -> tuple[Ran, ...]:
    """Compile every case, and compare it with what was recorded."""
    return tuple(_checked(one, _found(source, one)) for one in files)


def record(source: PackSource, files: Iterable[GoldenFile]) -> tuple[Ran, ...]:
    """Compile every case, and write what came of it into its file. What is so already is not written.

    Nothing is written before all of them were read and compiled: a file that is no case leaves the others alone.
    """
    came = [(one, _found(source, one)) for one in files]
    for one, found in came:
        if found != one.expected:
            document = {**one.case, "expected": msgspec.to_builtins(found)}
            text = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
            path = os.path.abspath(one.file.path)
            with storage_errors(one.file.path):
                write_whole(path, text, staging=os.path.dirname(path), disk=Disk())
    return tuple(_checked(one, found) for one, found in came)


def _is_case(folder: str, name: str) -> bool:
    stem, extension = os.path.splitext(name.lower())
    if extension in _YAML:
        raise GoldenCaseInvalid("golden cases are JSON", at=os.path.join(folder, name), hint=f"write {stem}.json")
    return extension == ".json" and name != SURFACE


def _read(folder: str, name: str) -> GoldenFile:
    file = case_from(os.path.join(folder, name))
    return _golden(os.path.splitext(name)[0], file.file.value, file)


def _golden(name: str, value: Json, file: Authored | None = None) -> GoldenFile:
    where = file.where("/expected") if file is not None else name
    if not isinstance(value, dict):
        raise GoldenCaseInvalid("must be an object", at=where, hint="put a request there; 'ctx new FILE --request'")
    case = {key: one for key, one in value.items() if key != "expected"}
    try:
        expected = as_expected(value["expected"]) if "expected" in value else None
    except msgspec.ValidationError as error:
        raise GoldenCaseInvalid(str(error), at=where, hint="'ctx golden record' writes it anew") from error
    return GoldenFile(name=name, file=file or _kept(name, value), case=case, expected=expected)


def _kept(name: str, value: Json) -> Authored:
    from contextplane.authoring.author_file import AuthorFile

    return Authored(path=name, file=AuthorFile(value, b"", {}))


def _found(source: PackSource, one: GoldenFile) -> Expected | Refused:
    """What the case comes to now. That it is refused may be what is expected; that it is no case may not."""
    try:
        case = read_case(for_version(one, source.pack.ref))
    except ContextPlaneError as error:
        raise placed(error, source, one.file) from None
    try:
        compiled = source.compile(case)
    except ContextPlaneError as error:
        return Refused(refused=error.code, stage=str(error.details.get("stage", "")))
    return Expected.of(compiled)


def for_version(one: GoldenFile, own: PackRef) -> Json:
    """The case, naming this version of the pack instead of any other."""
    request = one.case.get("request")
    refs = request.get("context_pack_refs") if isinstance(request, dict) else None
    if not isinstance(refs, list):
        return one.case
    same = [str(own) if isinstance(ref, str) and ref.partition("@")[0] == own.pack_id else ref for ref in refs]
    return put(one.case, "/request/context_pack_refs", same)


def _checked(one: GoldenFile, found: Expected | Refused) -> Ran:
    expected = one.expected
    if expected is None:
        return Ran(name=one.name, found=found, stage="record", words="nothing is recorded of it")
    if found == expected:
        return Ran(name=one.name, found=found)
    if isinstance(found, Refused):
        was = f"{expected.refused} was expected" if isinstance(expected, Refused) else "it was compiled"
        return Ran(
            name=one.name, found=found, stage=found.stage or "read", words=f"refused with {found.refused}; {was}"
        )
    if isinstance(expected, Refused):
        words = f"compiled; {expected.refused} was expected"
        return Ran(name=one.name, found=found, stage=expected.stage or "read", words=words)
    otherwise = moved(comparable(expected), comparable(found))
    stage = next(_drifted(expected, found), "")
    if not stage and not otherwise and expected.lineage != found.lineage:
        return Ran(name=one.name, found=found, elsewhere=True)
    words = "; ".join(f"{one.kind} {one.id}" for one in otherwise) or "what it is made of"
    return Ran(name=one.name, found=found, stage=stage or "seal", words=words, moved=otherwise)


def _drifted(expected: Expected, found: Expected) -> Iterator[str]:
    """The stages whose hash is another, in their order."""
    return (name for name in {**found.stages, **expected.stages} if found.stages.get(name) != expected.stages.get(name))
