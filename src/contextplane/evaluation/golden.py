"""Golden cases: compile cases with what they must compile to, and the comparison of both.

A case runs against the version at hand, whatever version of the same pack or catalog its request names, so that it
stays valid when the number rises.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import msgspec

from contextplane.authoring.source_file import Authored, AuthorFile
from contextplane.compiler.case import read_case
from contextplane.compiler.errors import DocumentNotGiven, PackNotRequested
from contextplane.compiler.overrides import put
from contextplane.compiler.report import Moved, moved
from contextplane.compiler.source import PackSource, placed
from contextplane.errors import ContextPlaneError, Family
from contextplane.evaluation.golden_case import Expected, Refused, as_expected, comparable, differing
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value

__all__ = [
    "SURFACE",
    "GoldenCaseInvalid",
    "GoldenFile",
    "Ran",
    "asked_by_all",
    "check",
    "golden_documents",
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
        return "; ".join((*(f"{difference.kind} {difference.id}" for difference in self.moved), *self.notes))

    @property
    def refused(self) -> str:
        """The code with which it is refused, which may be what is expected; empty when it compiles."""
        return self.found.refused if isinstance(self.found, Refused) else ""


def golden_documents(documents: Iterable[Json]) -> tuple[GoldenFile, ...]:
    """Cases as a registry kept them: each has its name, and the document of its file."""
    return tuple(
        golden_file(str(document["name"]), document["case"])
        for document in documents
        if isinstance(document, dict) and "case" in document
    )


def check(source: PackSource, files: Iterable[GoldenFile]) -> tuple[Ran, ...]:
    """Compile every case, and compare it with what was recorded."""
    return tuple(compare_golden(file, compile_golden(source, file)) for file in files)


def golden_file(name: str, value: Json, file: Authored | None = None, *, anew: bool = False) -> GoldenFile:
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
    return Authored(path=name, file=AuthorFile(value, b"", {}))


def compile_golden(source: PackSource, one: GoldenFile) -> Expected | Refused:
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


def _for_version(case: GoldenFile, own: Iterable[str]) -> Json:
    """The case, naming these versions of pack and catalogs instead of any others."""
    refs = _refs(case)
    if refs is None:
        return case.case
    here = {ref.partition("@")[0]: ref for ref in own}
    same = [here.get(ref.partition("@")[0], ref) if isinstance(ref, str) else ref for ref in refs]
    return put(case.case, "/request/context_pack_refs", same)


def asked_by_all(files: Sequence[GoldenFile], own: str) -> Json:
    """The first case, naming this version of the pack, and every catalog that any of them names."""
    first = _for_version(files[0], [own])
    if _refs(files[0]) is None:
        return first
    named = [ref for file in files for ref in _refs(file) or () if isinstance(ref, str)]
    others = [ref for ref in named if ref.partition("@")[0] != own.partition("@")[0]]
    return put(first, "/request/context_pack_refs", [own, *dict.fromkeys(others)])


def version_asked_for(files: Sequence[GoldenFile]) -> str:
    """The version that every case names first."""
    named = {str(refs[0]) if (refs := _refs(file)) else "" for file in files}
    version = named.pop() if len(named) == 1 else ""
    if not version:
        raise GoldenCaseInvalid(
            "the cases do not all name one version", at=files[0].file.path, hint="say which pack: REF or FILE"
        )
    return version


def _refs(case: GoldenFile) -> list[Json] | None:
    """What the request of a case names; None when it is of no form."""
    request = case.case.get("request")
    refs = request.get("context_pack_refs") if isinstance(request, dict) else None
    return refs if isinstance(refs, list) else None


def compare_golden(case: GoldenFile, found: Expected | Refused) -> Ran:
    expected = case.expected
    if expected is None:
        return Ran(name=case.name, found=found, stage="record", notes=(_NEVER,), recorded=False)
    if found == expected:
        return Ran(name=case.name, found=found)
    if isinstance(found, Refused) and isinstance(expected, Refused) and found.refused == expected.refused:
        return Ran(name=case.name, found=found, stage="record", notes=tuple(_by_hand(case, expected)) or (_STAGE,))
    if isinstance(found, Refused):
        was = f"{expected.refused} was expected" if isinstance(expected, Refused) else "it was compiled"
        notes = (f"refused with {found.refused}; {was}", *_by_hand(case, expected))
        return Ran(
            name=case.name,
            found=found,
            stage=found.stage or "read",
            notes=notes,
            otherwise_refused=isinstance(expected, Expected),
        )
    if isinstance(expected, Refused):
        was = f"compiled; {expected.refused} was expected"
        return Ran(name=case.name, found=found, stage=expected.stage or "read", notes=(was,), otherwise_refused=True)
    return _compared(case, expected, found)


def _compared(case: GoldenFile, expected: Expected, found: Expected) -> Ran:
    """Two that compiled and are not the same. The number of the pack alone may be another."""
    otherwise = moved(comparable(expected), comparable(found))
    stage = next(_drifted(expected, found), "")
    notes = [*_by_hand(case, expected)]
    if expected.compiler_version != found.compiler_version:
        notes.append(f"compiler {expected.compiler_version[:20]} recorded it, and this is {found.compiler_version}")
    elif notes and not stage and not otherwise:
        return Ran(name=case.name, found=found, stage="record", notes=tuple(notes))
    if not stage and not otherwise and not notes and expected.lineage != found.lineage:
        return Ran(name=case.name, found=found, elsewhere=True)
    if not otherwise and not notes:
        notes.append(f"nothing by name; {differing(expected, found)}")
    return Ran(name=case.name, found=found, stage=stage or "seal", notes=tuple(notes), moved=otherwise)


def _by_hand(case: GoldenFile, expected: Expected | Refused) -> Iterator[str]:
    """What says of itself that it was changed after it was recorded."""
    if expected.recorded != expected.digest_with(case.case):
        yield _BY_HAND


def _drifted(expected: Expected, found: Expected) -> Iterator[str]:
    """The stages whose hash is another, in their order."""
    return (name for name in {**found.stages, **expected.stages} if found.stages.get(name) != expected.stages.get(name))
