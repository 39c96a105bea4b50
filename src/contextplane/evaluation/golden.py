"""Golden cases: compile cases with their recorded outcome, and the comparison with the actual outcome.

A case runs against the given version, even if its request names another version of the same pack or catalog, so that it
stays valid for later versions.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, assert_never, cast

import msgspec

from contextplane.authoring.source_file import AuthorFile, NamedFile
from contextplane.compiler.case import read_case
from contextplane.compiler.errors import DocumentNotGiven, PackNotRequested
from contextplane.compiler.overrides import put_value
from contextplane.compiler.report import ItemChange, compare_contexts, list_items
from contextplane.compiler.source import PackSource, add_place
from contextplane.errors import ContextPlaneError, Family
from contextplane.evaluation.golden_case import (
    GoldenContext,
    GoldenOutcome,
    GoldenRefusal,
    describe_difference,
    drifted_stage,
    read_outcome,
    to_compiled_context,
)
from contextplane.model.compiled_context import Omission
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value

__all__ = [
    "SURFACE",
    "CaseResult",
    "GoldenCaseInvalid",
    "GoldenFile",
    "check_cases",
    "combined_case",
    "golden_documents",
    "requested_version",
]

SURFACE = "tool_surface.json"
"""The one file of the folder that is no case: the tools that the pack is expected to expose."""

_NEVER = "nothing is recorded of it: 'ctx golden record' writes it"
_STAGE = "it is refused by another stage than before"
_BY_HAND = "the case or its expected result was edited after it was recorded"


class GoldenCaseInvalid(ContextPlaneError):
    """A file among golden cases that is none."""

    code: ClassVar[str] = "golden_case_invalid"
    family: ClassVar[Family] = "refused"


class GoldenFile(Value, frozen=True):
    """A golden case: its name, its file, the compile case, and the recorded outcome.

    `inside`: the file of the author holds the outcome, as older versions wrote it; else it is in a file beside it.
    """

    name: str
    file: NamedFile
    case: dict[str, Json]
    expected: GoldenOutcome | None
    inside: bool = False

    @property
    def document(self) -> Json:
        """The case with its outcome in one document, as a registry keeps it."""
        if self.expected is None:
            return self.case
        return {**self.case, "expected": cast("Json", msgspec.to_builtins(self.expected))}


class CaseResult(Value, frozen=True):
    """The result of a golden case. `stage`: the first that drifted, empty if none did.

    `changes`: the items that differ; `notes`: what else is wrong. `other_version`: all that the case used is the same,
    but the pack is not the recorded one, so that the hash of the whole differs. `refusal_changed`: the case is refused
    and was not, or the reverse. `moved`: recording moved the outcome out of the author's file.
    """

    name: str
    actual: GoldenOutcome
    stage: str = ""
    notes: tuple[str, ...] = ()
    changes: tuple[ItemChange, ...] = ()
    other_version: bool = False
    recorded: bool = True
    refusal_changed: bool = False
    moved: bool = False

    @property
    def passed(self) -> bool:
        return not self.stage

    @property
    def words(self) -> str:
        """What is wrong, in one line."""
        return "; ".join((*(f"{change.kind} {change.id}" for change in self.changes), *self.notes))

    @property
    def refused(self) -> str:
        """The error code if the case is refused, which may be expected; empty if it compiles."""
        match self.actual:
            case GoldenRefusal():
                return self.actual.refused
            case GoldenContext():
                return ""
            case unreachable:
                assert_never(unreachable)


def golden_documents(documents: Iterable[Json]) -> tuple[GoldenFile, ...]:
    """Read cases as a registry keeps them: each has its name, and the document of its file."""
    return tuple(
        read_golden(str(document["name"]), document["case"])
        for document in documents
        if isinstance(document, dict) and "case" in document
    )


def check_cases(source: PackSource, files: Iterable[GoldenFile]) -> tuple[CaseResult, ...]:
    """Compile every case, and compare it with its recorded outcome."""
    return tuple(compare_golden(file, *compile_golden(source, file)) for file in files)


def read_golden(
    name: str, value: Json, file: NamedFile | None = None, *, beside: NamedFile | None = None, anew: bool = False
) -> GoldenFile:
    """Read a golden case. `beside`: the file with its outcome; without it, the case itself may have it.

    `anew`: drop an outcome that cannot be read: it will be recorded again.
    """
    if not isinstance(value, dict):
        where = file.path if file is not None else name
        raise GoldenCaseInvalid("must be an object", at=where, hint="put a request there; 'ctx new FILE --request'")
    case = {key: member for key, member in value.items() if key != "expected"}
    inside = "expected" in value
    where = file.where("/expected") if file is not None else name
    outcome = value.get("expected")
    if beside is not None:
        where, outcome = beside.where(""), beside.file.value
    expected = None
    if inside or beside is not None:
        try:
            expected = read_outcome(outcome)
        except msgspec.ValidationError as error:
            if not anew:
                words = "the expected result is malformed, or was recorded by an older compiler"
                raise GoldenCaseInvalid(words, at=where, hint="'ctx golden record' writes it again") from error
    return GoldenFile(name=name, file=file or _document_file(name, value), case=case, expected=expected, inside=inside)


def _document_file(name: str, value: Json) -> NamedFile:
    return NamedFile(path=name, file=AuthorFile(value, b"", {}))


def compile_golden(source: PackSource, golden: GoldenFile) -> tuple[GoldenOutcome, tuple[Omission, ...]]:
    """Compile a golden case; return its outcome and all omissions.

    A refusal is an outcome; a file that is no compile case is an error.
    """
    try:
        case = read_case(_for_version(golden, [lineage.ref for lineage in source.lineage]))
    except ContextPlaneError as error:
        raise add_place(error, source, golden.file) from None
    try:
        compiled = source.compile(case)
    except (PackNotRequested, DocumentNotGiven) as error:
        raise add_place(error, source, golden.file) from None  # a case of another pack, which tests nothing of this one
    except ContextPlaneError as error:
        refusal = GoldenRefusal(refused=error.code, stage=str(error.details.get("stage", "")))
        return refusal.record_for(golden.case), ()
    return GoldenContext.of(compiled, golden.case), compiled.manifests.omission_manifest


def _for_version(case: GoldenFile, own: Iterable[str]) -> Json:
    """The case with these versions of pack and catalogs in place of others."""
    refs = _refs(case)
    if refs is None:
        return case.case
    here = {ref.partition("@")[0]: ref for ref in own}
    same = [here.get(ref.partition("@")[0], ref) if isinstance(ref, str) else ref for ref in refs]
    return put_value(case.case, "/request/context_pack_refs", same)


def combined_case(files: Sequence[GoldenFile], own: str) -> Json:
    """The first case, with this version of the pack, and every catalog that any of the cases names."""
    first = _for_version(files[0], [own])
    if _refs(files[0]) is None:
        return first
    refs = [ref for file in files for ref in _refs(file) or () if isinstance(ref, str)]
    others = [ref for ref in refs if ref.partition("@")[0] != own.partition("@")[0]]
    return put_value(first, "/request/context_pack_refs", [own, *dict.fromkeys(others)])


def requested_version(files: Sequence[GoldenFile]) -> str:
    """The version that every case names first."""
    versions = {str(refs[0]) if (refs := _refs(file)) else "" for file in files}
    version = versions.pop() if len(versions) == 1 else ""
    if not version:
        raise GoldenCaseInvalid(
            "the cases do not all name one version", at=files[0].file.path, hint="name the pack: REF or FILE"
        )
    return version


def _refs(case: GoldenFile) -> list[Json] | None:
    """The documents that the request of a case names; None if it has no such list."""
    request = case.case.get("request")
    refs = request.get("context_pack_refs") if isinstance(request, dict) else None
    return refs if isinstance(refs, list) else None


def compare_golden(case: GoldenFile, actual: GoldenOutcome, omitted: Sequence[Omission] = ()) -> CaseResult:
    """Compare the actual outcome of a case with its recorded one. `omitted`: why other items are out."""
    expected = case.expected
    if expected is None:
        return CaseResult(name=case.name, actual=actual, stage="record", notes=(_NEVER,), recorded=False)
    if actual == expected:
        return CaseResult(name=case.name, actual=actual)
    match actual:
        case GoldenRefusal():
            return _compare_refusal(case, expected, actual)
        case GoldenContext():
            return _compare_context(case, expected, actual, omitted)
        case unreachable:
            assert_never(unreachable)


def _compare_refusal(case: GoldenFile, expected: GoldenOutcome, actual: GoldenRefusal) -> CaseResult:
    edits = tuple(_edit_notes(case, expected))
    match expected:
        case GoldenRefusal() if expected.refused == actual.refused:
            return CaseResult(name=case.name, actual=actual, stage="record", notes=edits or (_STAGE,))
        case GoldenRefusal():
            before = f"{expected.refused} was expected"
        case GoldenContext():
            before = "it was compiled"
        case unreachable:
            assert_never(unreachable)
    return CaseResult(
        name=case.name,
        actual=actual,
        stage=actual.stage or "read",
        notes=(f"refused with {actual.refused}; {before}", *edits),
        refusal_changed=isinstance(expected, GoldenContext),
    )


def _compare_context(
    case: GoldenFile, expected: GoldenOutcome, actual: GoldenContext, omitted: Sequence[Omission]
) -> CaseResult:
    match expected:
        case GoldenContext():
            return _compare_contexts(case, expected, actual, omitted)
        case GoldenRefusal():
            note, stage = f"compiled; {expected.refused} was expected", expected.stage or "read"
            return CaseResult(name=case.name, actual=actual, stage=stage, notes=(note,), refusal_changed=True)
        case unreachable:
            assert_never(unreachable)


def _compare_contexts(
    case: GoldenFile, expected: GoldenContext, actual: GoldenContext, omitted: Sequence[Omission]
) -> CaseResult:
    """Compare two different contexts by what the case used. Other parts of the pack may differ."""
    if expected.compiler_version != actual.compiler_version:
        note = f"compiler {expected.compiler_version[:20]} recorded it, and this is {actual.compiler_version}"
        changes = _item_changes(expected, actual, omitted)
        return CaseResult(name=case.name, actual=actual, stage="seal", notes=(note,), changes=changes)
    stage, notes = drifted_stage(expected, actual), [*_edit_notes(case, expected)]
    if not stage and not notes and expected.lineage != actual.lineage:
        return CaseResult(name=case.name, actual=actual, other_version=True)
    changes = _item_changes(expected, actual, omitted) if stage else ()
    if not stage and notes:
        return CaseResult(name=case.name, actual=actual, stage="record", notes=tuple(notes))
    if not changes and not notes:
        notes.append(f"nothing by name; {describe_difference(expected, actual)}")
    return CaseResult(name=case.name, actual=actual, stage=stage or "seal", notes=tuple(notes), changes=changes)


def _item_changes(
    expected: GoldenContext, actual: GoldenContext, omitted: Sequence[Omission]
) -> tuple[ItemChange, ...]:
    """List the items that differ. Of what is newly out, the reason is among `omitted`."""
    before = to_compiled_context(expected)
    inside = {(item.kind, item.id) for item in list_items(before)}
    reasons = [omission for omission in omitted if (omission.kind, omission.id) in inside]
    return compare_contexts(before, to_compiled_context(actual, reasons))


def _edit_notes(case: GoldenFile, expected: GoldenOutcome) -> Iterator[str]:
    """Yield a note if the case or its outcome was edited after it was recorded."""
    if expected.recorded != expected.digest_for(case.case):
        yield _BY_HAND
