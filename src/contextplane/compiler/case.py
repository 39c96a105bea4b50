"""A compile case: the request and all that is compiled with it, as one document in a file.

request       the envelope: intent, message, context, pinned packs
run_context   who acts for whom, the ceiling, the budget
environment   the ontologies that are present, and the snapshot of the graph
evidence      what was gathered; may be left out, and so may the next two
memories      what was recalled
as_of         the moment at which freshness is judged
"""

from typing import Any, ClassVar

import msgspec

from contextplane.authoring.law import redact_secrets
from contextplane.compiler.errors import InputInvalid, find_problems, input_error, type_problem
from contextplane.compiler.inputs import read_evidence, read_memories, read_request, read_run_context
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.document_kind import document_kind
from contextplane.model.evidence import EvidenceInput, Memory
from contextplane.model.invoke import InvokeRequest, RunContext
from contextplane.model.json.canonical import Json
from contextplane.model.problems import type_name
from contextplane.model.suggestion import did_you_mean
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.model.value import Document, Value

__all__ = ["CaseEnvironment", "CaseInvalid", "CompileCase", "read_case"]

_REQUIRED = ("request", "run_context", "environment")
_MEMBERS = (*_REQUIRED, "evidence", "memories", "as_of")
_SHOWN_PROBLEMS = 3
_LISTED_MEMBERS = 50
"""At most so many unknown members are listed one by one."""


class CaseInvalid(ContextPlaneError):
    """A compile case that has not its form. `details.problems` lists everything that is wrong with it."""

    code: ClassVar[str] = "compile_case_invalid"
    family: ClassVar[Family] = "refused"


class CaseEnvironment(Document, frozen=True):
    """The environment of a case: the ontologies that are present, and the snapshot of the graph.

    `ontologies`: The ontologies that are present, such as ont.support@1.0.0.
    `snapshot`: The snapshot of the graph that the run reads.
    """

    ontologies: tuple[str, ...]
    snapshot: str | None = None


class CompileCase(Value, frozen=True):
    """All inputs of a compile except the pack.

    `request`: The envelope: intent, message, context and pinned packs.
    `run_context`: Who acts for whom, the ceiling and the budget.
    `environment`: What the run finds in its environment.
    `evidence`: What was gathered: typed facts, or bare references.
    `memories`: What was recalled.
    `as_of`: The moment at which freshness is judged.
    """

    request: InvokeRequest
    run_context: RunContext
    environment: CaseEnvironment
    evidence: tuple[EvidenceInput, ...] = ()
    memories: tuple[Memory, ...] = ()
    as_of: Timestamp | None = None


def read_case(value: Json) -> CompileCase:
    """Read a compile case from a document, or raise `CaseInvalid` with the problems of all parts."""
    if not isinstance(value, dict):
        raise _invalid([("", f"must be an object, not {type_name(value)}", f"with {', '.join(_REQUIRED)}")])
    kind = document_kind(value)
    if kind is not None and not {"request", "run_context"} & value.keys():
        raise _invalid([("", f"this is {kind}, not a request", "'ctx new FILE --request' writes a request")])
    unknown = sorted(value.keys() - set(_MEMBERS))
    problems = [
        (redact_secrets(f"/{name}", is_pointer=True), _unknown_member(name), did_you_mean(name, _MEMBERS, "remove it"))
        for name in unknown[:_LISTED_MEMBERS]
    ]
    if len(unknown) > _LISTED_MEMBERS:
        problems.append(("", f"{len(unknown) - _LISTED_MEMBERS} more are no part of a compile case", "remove them"))
    problems += [(f"/{name}", f"{name} is missing", f"add {name}") for name in _REQUIRED if name not in value]
    parts: dict[str, Any] = {}
    for name, read in _READERS.items():
        if name in value:
            try:
                parts[name] = read(value[name])
            except InputInvalid as error:
                problems += [(f"/{name}{problem.at}", problem.message, problem.hint) for problem in error.problems]
    if problems:
        raise _invalid(problems)
    return CompileCase(**parts)


def _unknown_member(name: str) -> str:
    return redact_secrets(f"{name[:60]!r} is no part of a compile case")


def _read_environment(value: Json) -> CaseEnvironment:
    try:
        return msgspec.convert(value, type=CaseEnvironment)
    except msgspec.ValidationError as error:
        raise input_error(find_problems(value, CaseEnvironment) or [type_problem(error)], "environment") from error


def _read_moment(value: Json) -> Timestamp | None:
    if value is None:
        return None  # as with facts: null is absent
    try:
        return Timestamp.parse(value if isinstance(value, str) else "")
    except InvalidTimestamp as error:
        raise InputInvalid("is no moment", at="as_of#", hint="write it as 2026-05-04T09:31:00Z") from error


_READERS = {
    "request": read_request,
    "run_context": read_run_context,
    "environment": _read_environment,
    "evidence": read_evidence,
    "memories": read_memories,
    "as_of": _read_moment,
}


def _invalid(problems: list[tuple[str, str, str]]) -> CaseInvalid:
    (at, message, hint), *more = problems
    also = "".join(f"; {place}: {words}" for place, words, _ in more[:_SHOWN_PROBLEMS])
    cut = f"; and {len(more) - _SHOWN_PROBLEMS} more" if len(more) > _SHOWN_PROBLEMS else ""
    return CaseInvalid(
        f"{message}{also}{cut}",
        at=at,
        hint=hint,
        details={
            "stage": InputInvalid.stage,
            "problems": [{"at": place, "message": words, "hint": way} for place, words, way in problems],
        },
    )
