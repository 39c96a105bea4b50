"""Golden cases: compile cases together with what they must compile to, one readable file each, JSON or YAML.

A file holds a compile case and, once it was recorded, `expected`. A case is run against the version at hand, whatever
version of the same pack or catalog its request names, so that it goes on holding when the number rises.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import msgspec

from contextplane.app.account import Moved, moved
from contextplane.app.authored import Authored, is_yaml
from contextplane.app.compile_case import case_from, read_case
from contextplane.app.compiling import PackSource, placed
from contextplane.app.documents import DocumentUnreadable, file_in
from contextplane.app.golden_expected import Expected, Refused, as_expected, comparable, differing
from contextplane.app.golden_writing import text_with, write_back
from contextplane.app.knobs import put
from contextplane.compiler.refusals import DocumentNotGiven, PackNotRequested
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import Json
from contextplane.model.value import Value

__all__ = [
    "SURFACE",
    "GoldenCaseInvalid",
    "GoldenFile",
    "NoGoldenCases",
    "Ran",
    "asked_by_all",
    "check",
    "golden_documents",
    "golden_files",
    "record",
    "version_asked_for",
]

SURFACE = "tool_surface.json"
"""The one file of the folder that is no case: the tools that the pack is expected to expose."""


_NEVER = "nothing is recorded of it: 'ctx golden record' writes it"
_STAGE = "it is refused by another stage than before"
_BY_HAND = "the case, or what is expected of it, was changed since it was recorded"


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
    """What came of one case. `stage` is the first that drifted, empty when none did.

    `moved` is all that is otherwise by name, `notes` what else is wrong. `elsewhere`: every stage is the same, and the
    pack is not the one that was recorded, so that the hash of the whole is another. `otherwise_refused`: it is refused
    and was not, or the reverse.
    """

    name: str
    found: Expected | Refused
    stage: str = ""
    notes: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    elsewhere: bool = False
    recorded: bool = True
    otherwise_refused: bool = False

    @property
    def passed(self) -> bool:
        return not self.stage

    @property
    def words(self) -> str:
        """What is wrong, in one line."""
        return "; ".join((*(f"{one.kind} {one.id}" for one in self.moved), *self.notes))

    @property
    def refused(self) -> str:
        """The code with which it is refused, which may be what is expected; empty when it compiles."""
        return self.found.refused if isinstance(self.found, Refused) else ""


def golden_files(folder: str, *, anew: bool = False) -> tuple[GoldenFile, ...]:
    """Every case of a folder, by name. `anew`: they are to be recorded, whatever was recorded before."""
    try:
        names = sorted(one for one in os.listdir(folder) if not one.startswith("."))
    except OSError as error:
        raise DocumentUnreadable(
            f"cannot be listed: {error.strerror}", at=folder, hint="name the folder of the golden cases"
        ) from error
    found: dict[str, GoldenFile] = {}
    for one in (_read(folder, name, anew=anew) for name in names if _is_case(name)):
        if one.name in found:
            raise GoldenCaseInvalid("another case has this name", at=one.file.path, hint="rename one of them")
        found[one.name] = one
    if not found:
        hint = "put requests there, as JSON or YAML; 'ctx golden record'"
        raise NoGoldenCases("holds no golden case", at=folder, hint=hint)
    return tuple(found.values())


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
    texts = [(one.file, _written(one, found)) for one, found in came if found != one.expected]
    for file, text in texts:
        write_back(file, text)
    return tuple(_checked(one, found) for one, found in came)


def _written(one: GoldenFile, found: Expected | Refused) -> bytes:
    text = text_with(one.file, one.case, msgspec.to_builtins(found))
    if text is None:
        raise GoldenCaseInvalid(
            "what came of it cannot be put into YAML of this form", at=one.file.path, hint="write the case as JSON"
        )
    return text


def _is_case(name: str) -> bool:
    return name != SURFACE and (name.lower().endswith(".json") or is_yaml(name))


def _read(folder: str, name: str, *, anew: bool) -> GoldenFile:
    file = case_from(file_in(folder, name))
    return _golden(os.path.splitext(name)[0], file.file.value, file, anew=anew)


def _golden(name: str, value: Json, file: Authored | None = None, *, anew: bool = False) -> GoldenFile:
    where = file.where("/expected") if file is not None else name
    if not isinstance(value, dict):
        raise GoldenCaseInvalid("must be an object", at=where, hint="put a request there; 'ctx new FILE --request'")
    case = {key: one for key, one in value.items() if key != "expected"}
    try:
        expected = as_expected(value["expected"]) if "expected" in value else None
    except msgspec.ValidationError as error:
        if not anew:
            words = "what is expected has not its form, or was recorded by an older compiler"
            raise GoldenCaseInvalid(words, at=where, hint="'ctx golden record' writes it anew") from error
        expected = None
    return GoldenFile(name=name, file=file or _kept(name, value), case=case, expected=expected)


def _kept(name: str, value: Json) -> Authored:
    from contextplane.authoring.author_file import AuthorFile

    return Authored(path=name, file=AuthorFile(value, b"", {}))


def _found(source: PackSource, one: GoldenFile) -> Expected | Refused:
    """What the case comes to now. That it is refused may be what is expected; that it is no case may not."""
    try:
        case = read_case(_for_version(one, [lineage.ref for lineage in source.lineage]))
    except ContextPlaneError as error:
        raise placed(error, source, one.file) from None
    try:
        compiled = source.compile(case)
    except (PackNotRequested, DocumentNotGiven) as error:
        raise placed(error, source, one.file) from None  # a case of another pack: nothing of this one is tried by it
    except ContextPlaneError as error:
        return Refused(refused=error.code, stage=str(error.details.get("stage", ""))).recorded_of(one.case)
    return Expected.of(compiled, one.case)


def _for_version(one: GoldenFile, own: Iterable[str]) -> Json:
    """The case, naming these versions of pack and catalogs instead of any others."""
    refs = _refs(one)
    if refs is None:
        return one.case
    here = {ref.partition("@")[0]: ref for ref in own}
    same = [here.get(ref.partition("@")[0], ref) if isinstance(ref, str) else ref for ref in refs]
    return put(one.case, "/request/context_pack_refs", same)


def asked_by_all(files: Sequence[GoldenFile], own: str) -> Json:
    """The first case, naming this version of the pack, and every catalog that any of them names."""
    first = _for_version(files[0], [own])
    if _refs(files[0]) is None:
        return first
    named = [ref for one in files for ref in _refs(one) or () if isinstance(ref, str)]
    others = [ref for ref in named if ref.partition("@")[0] != own.partition("@")[0]]
    return put(first, "/request/context_pack_refs", [own, *dict.fromkeys(others)])


def version_asked_for(files: Sequence[GoldenFile]) -> str:
    """The version that every case names first."""
    named = {str(refs[0]) if (refs := _refs(one)) else "" for one in files}
    version = named.pop() if len(named) == 1 else ""
    if not version:
        raise GoldenCaseInvalid(
            "the cases do not all name one version", at=files[0].file.path, hint="say which pack: REF or FILE"
        )
    return version


def _refs(one: GoldenFile) -> list[Json] | None:
    """What the request of a case names; None when it is of no form."""
    request = one.case.get("request")
    refs = request.get("context_pack_refs") if isinstance(request, dict) else None
    return refs if isinstance(refs, list) else None


def _checked(one: GoldenFile, found: Expected | Refused) -> Ran:
    expected = one.expected
    if expected is None:
        return Ran(name=one.name, found=found, stage="record", notes=(_NEVER,), recorded=False)
    if found == expected:
        return Ran(name=one.name, found=found)
    if isinstance(found, Refused) and isinstance(expected, Refused) and found.refused == expected.refused:
        return Ran(name=one.name, found=found, stage="record", notes=tuple(_by_hand(one, expected)) or (_STAGE,))
    if isinstance(found, Refused):
        was = f"{expected.refused} was expected" if isinstance(expected, Refused) else "it was compiled"
        notes = (f"refused with {found.refused}; {was}", *_by_hand(one, expected))
        return Ran(
            name=one.name,
            found=found,
            stage=found.stage or "read",
            notes=notes,
            otherwise_refused=isinstance(expected, Expected),
        )
    if isinstance(expected, Refused):
        was = f"compiled; {expected.refused} was expected"
        return Ran(name=one.name, found=found, stage=expected.stage or "read", notes=(was,), otherwise_refused=True)
    return _compared(one, expected, found)


def _compared(one: GoldenFile, expected: Expected, found: Expected) -> Ran:
    """Two that compiled and are not the same. The number of the pack alone may be another."""
    otherwise = moved(comparable(expected), comparable(found))
    stage = next(_drifted(expected, found), "")
    notes = [*_by_hand(one, expected)]
    if expected.compiler_version != found.compiler_version:
        notes.append(f"compiler {expected.compiler_version[:20]} recorded it, and this is {found.compiler_version}")
    elif notes and not stage and not otherwise:
        return Ran(name=one.name, found=found, stage="record", notes=tuple(notes))
    if not stage and not otherwise and not notes and expected.lineage != found.lineage:
        return Ran(name=one.name, found=found, elsewhere=True)
    if not otherwise and not notes:
        notes.append(f"nothing by name; {differing(expected, found)}")
    return Ran(name=one.name, found=found, stage=stage or "seal", notes=tuple(notes), moved=otherwise)


def _by_hand(one: GoldenFile, expected: Expected | Refused) -> Iterator[str]:
    """What says of itself that it was changed after it was recorded."""
    if expected.recorded != expected.digest_with(one.case):
        yield _BY_HAND


def _drifted(expected: Expected, found: Expected) -> Iterator[str]:
    """The stages whose hash is another, in their order."""
    return (name for name in {**found.stages, **expected.stages} if found.stages.get(name) != expected.stages.get(name))
