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

from contextplane.authoring.finding import without_secrets
from contextplane.authoring.suggest import nearest
from contextplane.compiler.errors import InputInvalid, invalid, problems_of, said_by
from contextplane.compiler.inputs import read_evidence, read_memories, read_request, read_run_context
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.evidence import EvidenceInput, Memory
from contextplane.model.invoke import InvokeRequest, RunContext
from contextplane.model.json.canonical import Json
from contextplane.model.problems import type_name
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.model.value import Document, Value

__all__ = ["CaseEnvironment", "CaseInvalid", "CompileCase", "read_case"]


_REQUIRED = ("request", "run_context", "environment")


_MEMBERS = (*_REQUIRED, "evidence", "memories", "as_of")


_TOLD = 3


_MOST = 50
"""So many unknown members are looked at one by one."""


class CaseInvalid(ContextPlaneError):
    """A compile case that has not its form. `details.problems` lists everything that is wrong with it."""

    code: ClassVar[str] = "compile_case_invalid"
    family: ClassVar[Family] = "refused"


class CaseEnvironment(Document, frozen=True):
    """What is known of the environment: ontologies as `ont.support@1.0.0`, and the snapshot that is read."""

    ontologies: tuple[str, ...]
    snapshot: str | None = None


class CompileCase(Value, frozen=True):
    """All inputs of a compile but the pack."""

    request: InvokeRequest
    run_context: RunContext
    environment: CaseEnvironment
    evidence: tuple[EvidenceInput, ...] = ()
    memories: tuple[Memory, ...] = ()
    as_of: Timestamp | None = None


def read_case(value: Json) -> CompileCase:
    """The case that a document holds. Every part is read, and what is wrong with each is told together."""
    if not isinstance(value, dict):
        raise _invalid([("", f"must be an object, not {type_name(value)}", f"with {', '.join(_REQUIRED)}")])
    if "pack_meta" in value:
        raise _invalid([("", "is a context pack, and no request", "'ctx new FILE --request' writes a request")])
    unknown = sorted(value.keys() - set(_MEMBERS))
    problems = [
        (without_secrets(f"/{name}", is_pointer=True), _unknown(name), nearest(name, _MEMBERS, "remove it"))
        for name in unknown[:_MOST]
    ]
    if len(unknown) > _MOST:
        problems.append(("", f"{len(unknown) - _MOST} more are no part of a compile case", "remove them"))
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


def _unknown(name: str) -> str:
    return without_secrets(f"{name[:60]!r} is no part of a compile case")


def _environment(value: Json) -> CaseEnvironment:
    try:
        return msgspec.convert(value, type=CaseEnvironment)
    except msgspec.ValidationError as error:
        raise invalid(problems_of(value, CaseEnvironment) or [said_by(error)], "environment") from error


def _moment(value: Json) -> Timestamp | None:
    if value is None:
        return None  # as with facts: what is null is not there
    try:
        return Timestamp.parse(value if isinstance(value, str) else "")
    except InvalidTimestamp as error:
        raise InputInvalid("is no moment", at="as_of#", hint="write it as 2026-05-04T09:31:00Z") from error


_READERS = {
    "request": read_request,
    "run_context": read_run_context,
    "environment": _environment,
    "evidence": read_evidence,
    "memories": read_memories,
    "as_of": _moment,
}


def _invalid(problems: list[tuple[str, str, str]]) -> CaseInvalid:
    (at, message, hint), *more = problems
    also = "".join(f"; {place}: {words}" for place, words, _ in more[:_TOLD])
    cut = f"; and {len(more) - _TOLD} more" if len(more) > _TOLD else ""
    return CaseInvalid(
        f"{message}{also}{cut}",
        at=at,
        hint=hint,
        details={
            "stage": InputInvalid.stage,
            "problems": [{"at": place, "message": words, "hint": way} for place, words, way in problems],
        },
    )
