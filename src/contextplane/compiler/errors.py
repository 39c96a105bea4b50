"""Why nothing is compiled. Every refusal has a code of its own, names the stage, and the place in the input.

What is wrong with an input that is not of its form: all of it, each with its place and a way out.

A request holds what people say and know. So a wrong value is repeated only where it is a short plain word, as one that
was meant to be the name of something is; of any other it is told what kind of value it is.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import ClassVar

import msgspec

from contextplane.authoring.finding import looks_secret, without_secrets
from contextplane.authoring.gates.schema import form_problems, said_by_types
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.terms import APPROVAL_MODES
from contextplane.model.value import Value

__all__ = [
    "BudgetInvalid",
    "ChatToolsTooMany",
    "CompileRefused",
    "DocumentNotGiven",
    "EvidenceOfAnotherTenant",
    "InputInvalid",
    "InputProblem",
    "IntentMismatch",
    "IntentUnknown",
    "MemoryOfAnotherTenant",
    "OntologyMissing",
    "PackNotRequested",
    "PrincipalMismatch",
    "TenantMismatch",
    "invalid",
    "problems_of",
    "said_by",
    "told",
]


class CompileRefused(ContextPlaneError):
    """A context that is not compiled. `details.stage` names the stage that refused.

    What is said names things of the request, and repeats no secret that somebody made a name of.
    """

    code: ClassVar[str] = "compile_refused"
    family: ClassVar[Family] = "refused"
    stage: ClassVar[str] = "seal"

    def __init__(self, message: str, *, at: str, hint: str) -> None:
        super().__init__(
            without_secrets(message),
            at=without_secrets(at, is_pointer=True),
            hint=hint,
            details={"stage": self.stage},
        )


class InputProblem(Value, frozen=True):
    """One thing that is wrong with an input: its JSON Pointer there, what, and the way out."""

    at: str
    message: str
    hint: str


class InputInvalid(CompileRefused):
    """An input that is not of its form, or that has no canonical form. `details.problems` lists all that is wrong."""

    code: ClassVar[str] = "compile_input_invalid"
    stage: ClassVar[str] = "read"

    def __init__(self, message: str, *, at: str, hint: str, problems: tuple[InputProblem, ...] = ()) -> None:
        super().__init__(message, at=at, hint=hint)
        self.problems = problems or (InputProblem(at=at.partition("#")[2], message=message, hint=hint),)
        self.details["problems"] = [
            {"at": problem.at, "message": problem.message, "hint": problem.hint} for problem in self.problems
        ]


class TenantMismatch(CompileRefused):
    """Request, run and pack do not belong to one tenant, and the pack is not shared with this one."""

    code: ClassVar[str] = "compile_tenant_mismatch"
    stage: ClassVar[str] = "scope"


class PrincipalMismatch(CompileRefused):
    """The request names another user or agent than those that were authenticated for the run."""

    code: ClassVar[str] = "compile_principal_mismatch"
    stage: ClassVar[str] = "scope"


class PackNotRequested(CompileRefused):
    """The request does not name the pack that it would be compiled from."""

    code: ClassVar[str] = "compile_pack_not_requested"
    stage: ClassVar[str] = "scope"


class DocumentNotGiven(CompileRefused):
    """The request names a decision catalog that the pack was not put together with."""

    code: ClassVar[str] = "compile_document_not_given"
    stage: ClassVar[str] = "scope"


class OntologyMissing(CompileRefused):
    """The environment does not hold the version of the ontology that the pack pins."""

    code: ClassVar[str] = "compile_ontology_missing"
    stage: ClassVar[str] = "scope"


class IntentUnknown(CompileRefused):
    """No rule, evaluator target or task template names the intent."""

    code: ClassVar[str] = "compile_intent_unknown"
    stage: ClassVar[str] = "intent"


class IntentMismatch(CompileRefused):
    """The run was opened for another intent than the one that the request names."""

    code: ClassVar[str] = "compile_intent_mismatch"
    stage: ClassVar[str] = "intent"


class EvidenceOfAnotherTenant(CompileRefused):
    """Evidence of another tenant: whoever gathered it read across the boundary, so nothing of it is used."""

    code: ClassVar[str] = "compile_evidence_of_another_tenant"
    stage: ClassVar[str] = "evidence"


class MemoryOfAnotherTenant(CompileRefused):
    """A memory of another tenant: whoever recalled it read across the boundary, so nothing of it is used."""

    code: ClassVar[str] = "compile_memory_of_another_tenant"
    stage: ClassVar[str] = "memory"


class ChatToolsTooMany(ContextPlaneError):
    """A compiled context with more tools than one request to a chat API of this form may hold."""

    code: ClassVar[str] = "chat_tools_too_many"
    family: ClassVar[Family] = "refused"


class BudgetInvalid(CompileRefused):
    """A budget that is negative, or that does not allot tokens to exactly the six buckets."""

    code: ClassVar[str] = "compile_budget_invalid"
    stage: ClassVar[str] = "budget"


_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,23}")
_NUMBER = re.compile(r"-?[0-9]{1,6}(?:\.[0-9]{1,3})?")
_LADDER = f"the ceiling is one of {', '.join(APPROVAL_MODES)}, from the lowest up"
_MOST = 50


def problems_of(value: Json, form: type[msgspec.Struct], at: str = "") -> tuple[InputProblem, ...]:
    """Everything in which a value is not of its form; nothing when it is, or when it is no JSON."""
    try:
        return tuple(_problems(value, form, at))
    except (TypeError, ValueError, RecursionError):
        return ()


def _problems(value: Json, form: type[msgspec.Struct], at: str) -> Iterator[InputProblem]:
    for _, violation in form_problems(value, form, told):
        place = without_secrets(at + violation.at, is_pointer=True)
        hint = _LADDER if violation.at == "/safety_mode" else violation.cure
        yield InputProblem(at=place, message=without_secrets(violation.cause), hint=hint)


def said_by(error: msgspec.ValidationError) -> InputProblem:
    """The one thing that the types say, for what only they refuse."""
    violation = said_by_types(error)
    return InputProblem(at=without_secrets(violation.at, is_pointer=True), message=violation.cause, hint=violation.cure)


def invalid(problems: Iterable[InputProblem], name: str) -> InputInvalid:
    """The refusal of an input, with its first problem in front and all of them in its details; of very many, the first.

    `name` is what the input is called.
    """
    input_problems = tuple(islice(problems, _MOST + 1))
    first, *more = input_problems
    count = f"; and {len(more)} more" if more else ""
    if len(input_problems) > _MOST:
        input_problems = (
            *input_problems[:_MOST],
            InputProblem(at="", message="and more than these", hint="mend these first"),
        )
        count = f"; and at least {_MOST} more"
    return InputInvalid(first.message + count, at=f"{name}#{first.at}", hint=first.hint, problems=input_problems)


def told(value: object) -> str:
    """A value in a message."""
    if isinstance(value, str):
        return f"'{value}'" if _WORD.fullmatch(value) and not looks_secret(value) else "this text"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return str(value) if _NUMBER.fullmatch(str(value)) else "this number"
    return "a list" if isinstance(value, list) else "an object"
