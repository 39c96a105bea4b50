"""Tables of cases: requests in a few lines each, with the verdict, tools and gates they must get.

A table names a pack and its cases. A case changes a base request, and says what must come of it. A name that the pack
does not have is refused: a case that expects the absence of a misspelt tool could not fail.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from contextplane.authoring.source_file import NamedFile
from contextplane.compiler.errors import find_problems, type_problem
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.document_kind import document_kind
from contextplane.model.evidence import Trust
from contextplane.model.terms import ApprovalMode, DataClassification
from contextplane.model.value import Document

__all__ = [
    "CaseExpectation",
    "CaseTable",
    "NameExpectation",
    "Names",
    "TableCase",
    "TableEvidence",
    "TableInvalid",
    "read_table",
    "table_error",
]

Text = Annotated[str, Meta(min_length=1, max_length=1000)]


class TableInvalid(ContextPlaneError):
    """A table of cases that has not its form, or that names something the pack does not have."""

    code: ClassVar[str] = "test_table_invalid"
    family: ClassVar[Family] = "refused"


class NameExpectation(Document, frozen=True):
    """Names of which some must be there, and others must not.

    `has`: The names that must be there.
    `lacks`: The names that must not be there.
    """

    has: tuple[Text, ...] = ()
    lacks: tuple[Text, ...] = ()


Names = tuple[Text, ...] | NameExpectation


class CaseExpectation(Document, frozen=True):
    """What must come of a case. What is left out is not compared. A list is exact, in any order.

    `allowed`: The verdict.
    `reason`: A part of the reasons of the verdict.
    `tools`: The tools that are surfaced.
    `gates`: The approval gates that are active.
    `rules`: The rules in effect, by id or BUNDLE#RULE.
    `guardrails`: The guardrails that are triggered.
    `unresolved`: The required evidence that is still open.
    `refused`: The code of the error, if nothing may be compiled. It stands alone.
    """

    allowed: bool | None = None
    reason: Text | None = None
    tools: Names | None = None
    gates: Names | None = None
    rules: Names | None = None
    guardrails: Names | None = None
    unresolved: Names | None = None
    refused: Text | None = None


class TableEvidence(Document, frozen=True, kw_only=True):
    """A piece of evidence that a request comes with, in short.

    `type`: What kind of fact it is; decisions require evidence by type.
    `content`: What it says: a text, or any JSON.
    `evidence_ref`: Its reference; by default a result of the first tool that produces the type.
    `trust`: How far its source is trusted. Only authoritative and verified evidence closes a gate.
    `observed_at`: When it was observed; by default at as_of.
    `expires_at`: Until when it is valid.
    `classification`: The classification of its content.
    """

    type: Text
    content: Any
    evidence_ref: Text | None = None
    trust: Trust = "verified"
    observed_at: Text | None = None
    expires_at: Text | None = None
    classification: DataClassification = "INTERNAL"


class CaseChanges(Document, frozen=True, kw_only=True):
    """Changes of the base request.

    `intent`: The intent.
    `message`: The message of the user.
    `role`: The role of the user.
    `safety_mode`: The most that the run may do.
    `as_of`: The moment at which the request is compiled.
    `evidence`: The evidence that the request comes with, in place of that of the base.
    `set`: Facts by the names that rules use, or places of the document. Null removes a fact.
    """

    intent: Text | None = None
    message: Text | None = None
    role: Text | None = None
    safety_mode: ApprovalMode | None = None
    as_of: Text | None = None
    evidence: tuple[TableEvidence, ...] | None = None
    set: dict[str, Any] = msgspec.field(default_factory=dict)


class TableCase(CaseChanges, frozen=True, kw_only=True):
    """One case: a name, the changes, and what must come of it.

    `intent`: The intent.
    `message`: The message of the user.
    `role`: The role of the user.
    `safety_mode`: The most that the run may do.
    `as_of`: The moment at which the request is compiled.
    `evidence`: The evidence that the request comes with, in place of that of the table.
    `set`: Facts by the names that rules use, or places of the document. Null removes a fact.
    `name`: The name of the case, of its own in the table.
    `expect`: What must come of it.
    """

    name: Text
    expect: CaseExpectation


class CaseTable(CaseChanges, frozen=True, kw_only=True):
    """A table of cases for one pack. Its changes hold for every case that does not make another one.

    Files are named relative to the table. Without `base`, a user with a delegation asks, under the highest ceiling.

    `intent`: The intent of every case.
    `message`: The message of every case.
    `role`: The role of the user in every case.
    `safety_mode`: The most that a run may do in every case.
    `as_of`: The moment of every case.
    `evidence`: The evidence of every case.
    `set`: Facts of every case.
    `pack`: The file of the pack.
    `cases`: The cases.
    `base`: The file of the request that cases change: an envelope, or one with its run context.
    `overlays`: The files of overlays that are applied to the pack.
    `catalogs`: The files of decision catalogs that the pack uses.
    """

    pack: Text
    cases: Annotated[tuple[TableCase, ...], Meta(min_length=1)]
    base: Text | None = None
    overlays: tuple[Text, ...] = ()
    catalogs: tuple[Text, ...] = ()


def read_table(file: NamedFile) -> CaseTable:
    """Read a table, or raise `TableInvalid` with everything that is wrong with its form."""
    value = file.file.value
    kind = document_kind(value)
    if kind is not None and not (isinstance(value, dict) and "cases" in value):
        raise TableInvalid(f"this is {kind}, not a table of tests", at=file.path, hint="write pack and cases")
    try:
        table = msgspec.convert(value, type=CaseTable)
    except msgspec.ValidationError as error:
        problems = [
            (problem.at, problem.message, problem.hint)
            for problem in find_problems(value, CaseTable) or [type_problem(error)]
        ]
        raise table_error(file, problems) from error
    problems = [*_repeated_names(table), *_empty_expectations(table)]
    if problems:
        raise table_error(file, problems)
    return table


def _repeated_names(table: CaseTable) -> Iterator[tuple[str, str, str]]:
    seen: set[str] = set()
    for n, case in enumerate(table.cases):
        if case.name in seen:
            yield f"/cases/{n}/name", "another case has this name", "rename one of them"
        seen.add(case.name)


def _empty_expectations(table: CaseTable) -> Iterator[tuple[str, str, str]]:
    for n, case in enumerate(table.cases):
        # `tools: {}` names nothing. An empty list is another matter: nothing may be there.
        expected = {
            name
            for name in CaseExpectation.__struct_fields__
            if getattr(case.expect, name) not in (None, NameExpectation())
        }
        if not expected:
            yield f"/cases/{n}/expect", "it expects nothing, so it cannot fail", "expect allowed, tools or gates"
        elif "refused" in expected and len(expected) > 1:
            yield f"/cases/{n}/expect/refused", "a refused request has no verdict and no tools", "expect refused alone"


def table_error(file: NamedFile, problems: Sequence[tuple[str, str, str]]) -> TableInvalid:
    (at, message, hint), *more = problems
    count = f"; and {len(more)} more" if more else ""
    return TableInvalid(
        f"{at or 'the table'}: {message}{count}",
        at=file.where(at),
        hint=hint,
        details={
            "problems": [
                {"at": place, "place": file.where(place), "message": words, "hint": cure}
                for place, words, cure in problems
            ]
        },
    )
