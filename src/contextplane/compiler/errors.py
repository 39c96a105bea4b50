"""The errors of a compile, each with a code, a stage and a place; and the form check of inputs.

`find_problems` lists everything in which an input is not of its form. A request holds what people say and know, so
messages repeat a wrong value only if it is a short plain word; otherwise they say what kind of value it is.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import ClassVar

import msgspec

from contextplane.authoring.gates.schema import schema_violations, type_violation
from contextplane.authoring.law import looks_secret, redact_secrets
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.terms import APPROVAL_MODES
from contextplane.model.value import Value
from contextplane.policy.request_facts import FactProblem

__all__ = [
    "BudgetInvalid",
    "ChatToolsTooMany",
    "CompileOntologyMissing",
    "CompileRefused",
    "CompileTenantMismatch",
    "DocumentNotGiven",
    "EvidenceOfAnotherTenant",
    "IdentityUnfit",
    "InputInvalid",
    "InputProblem",
    "IntentMismatch",
    "IntentUnknown",
    "MemoryOfAnotherTenant",
    "PackNotRequested",
    "PrincipalMismatch",
    "RequestIncomplete",
    "TokensNotGiven",
    "describe_value",
    "find_problems",
    "input_error",
    "type_problem",
]


class CompileRefused(ContextPlaneError):
    """A context that is not compiled. `details.stage` names the stage that refused.

    Messages name things of the request, and redact a secret that was used as a name.
    """

    code: ClassVar[str] = "compile_refused"
    family: ClassVar[Family] = "refused"
    stage: ClassVar[str] = "seal"

    def __init__(self, message: str, *, at: str, hint: str) -> None:
        super().__init__(
            redact_secrets(message),
            at=redact_secrets(at, is_pointer=True),
            hint=hint,
            details={"stage": self.stage},
        )


class InputProblem(Value, frozen=True):
    """A problem of an input: its JSON Pointer, the message, and the way out."""

    at: str
    message: str
    hint: str


class InputInvalid(CompileRefused):
    """An input that is not of its form, or that has no canonical form.

    `details.problems` lists all that is wrong.
    """

    code: ClassVar[str] = "compile_input_invalid"
    stage: ClassVar[str] = "read"

    def __init__(self, message: str, *, at: str, hint: str, problems: tuple[InputProblem, ...] = ()) -> None:
        super().__init__(message, at=at, hint=hint)
        self.problems = problems or (InputProblem(at=at.partition("#")[2], message=message, hint=hint),)
        self.details["problems"] = [
            {"at": problem.at, "message": problem.message, "hint": problem.hint} for problem in self.problems
        ]


class CompileTenantMismatch(CompileRefused):
    """Request, run and pack do not belong to one tenant, and the pack is not shared with this one."""

    code: ClassVar[str] = "compile_tenant_mismatch"
    stage: ClassVar[str] = "scope"


class PrincipalMismatch(CompileRefused):
    """The request names another user or agent than those that were authenticated for the run."""

    code: ClassVar[str] = "compile_principal_mismatch"
    stage: ClassVar[str] = "scope"


class IdentityUnfit(CompileRefused):
    """The agent or the user may not act as the run says.

    The agent is not active; its claim is of another agent or run, is expired, or has too few scopes; or a run with the
    ceiling `delegated` or `destructive` has no delegation.
    """

    code: ClassVar[str] = "compile_identity_unfit"
    stage: ClassVar[str] = "scope"


class PackNotRequested(CompileRefused):
    """The request does not name the pack that it would be compiled from."""

    code: ClassVar[str] = "compile_pack_not_requested"
    stage: ClassVar[str] = "scope"


class DocumentNotGiven(CompileRefused):
    """The request names a decision catalog that the pack was not put together with."""

    code: ClassVar[str] = "compile_document_not_given"
    stage: ClassVar[str] = "scope"


class CompileOntologyMissing(CompileRefused):
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


class RequestIncomplete(CompileRefused):
    """The request lacks facts that the pack declares for its intent, or has them as another type.

    `details.problems` lists all of them, each with its place, its type and what it is.
    """

    code: ClassVar[str] = "compile_request_incomplete"
    stage: ClassVar[str] = "intent"

    def __init__(self, intent: str, problems: Iterable[FactProblem]) -> None:
        listed = tuple(problems)
        message = f"{intent} needs other facts: {'; '.join(problem.words for problem in listed)}"
        super().__init__(
            message, at=f"request#/input{listed[0].at}", hint="send every fact that the pack declares for the intent"
        )
        self.details["problems"] = [
            {
                "at": f"/input{problem.at}",
                "fact": problem.fact.path,
                "problem": problem.kind,
                "type": problem.fact.type,
                "description": problem.fact.description,
            }
            for problem in listed
        ]


class EvidenceOfAnotherTenant(CompileRefused):
    """Evidence of another tenant: it was gathered across the boundary, so nothing of it is used."""

    code: ClassVar[str] = "compile_evidence_of_another_tenant"
    stage: ClassVar[str] = "evidence"


class MemoryOfAnotherTenant(CompileRefused):
    """A memory of another tenant: it was recalled across the boundary, so nothing of it is used."""

    code: ClassVar[str] = "compile_memory_of_another_tenant"
    stage: ClassVar[str] = "memory"


class ChatToolsTooMany(ContextPlaneError):
    """A compiled context with more tools than one request to a chat API of this form may hold."""

    code: ClassVar[str] = "chat_tools_too_many"
    family: ClassVar[Family] = "refused"


class TokensNotGiven(CompileRefused):
    """The pack names a token counter that needs a table, and the caller gave none."""

    code: ClassVar[str] = "compile_tokens_not_given"
    stage: ClassVar[str] = "read"


class BudgetInvalid(CompileRefused):
    """A budget that is negative, or that does not allot tokens to exactly the six buckets."""

    code: ClassVar[str] = "compile_budget_invalid"
    stage: ClassVar[str] = "budget"


_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,23}")
_NUMBER = re.compile(r"-?[0-9]{1,6}(?:\.[0-9]{1,3})?")
_LADDER = f"the ceiling is one of {', '.join(APPROVAL_MODES)}, from the lowest up"
_LISTED_PROBLEMS = 50


def find_problems(value: Json, form: type[msgspec.Struct], at: str = "") -> tuple[InputProblem, ...]:
    """Find everything in which a value is not of its form. Empty if it is of its form, or no JSON."""
    try:
        return tuple(_problems(value, form, at))
    except (TypeError, ValueError, RecursionError):
        return ()


def _problems(value: Json, form: type[msgspec.Struct], at: str) -> Iterator[InputProblem]:
    for _, violation in schema_violations(value, form, describe_value):
        place = redact_secrets(at + violation.at, is_pointer=True)
        hint = _LADDER if violation.at == "/safety_mode" else violation.cure
        yield InputProblem(at=place, message=redact_secrets(violation.cause), hint=hint)


def type_problem(error: msgspec.ValidationError) -> InputProblem:
    """The problem that the decoder reports, for values that only the decoder refuses."""
    violation = type_violation(error)
    return InputProblem(at=redact_secrets(violation.at, is_pointer=True), message=violation.cause, hint=violation.cure)


def input_error(problems: Iterable[InputProblem], name: str) -> InputInvalid:
    """The error for an input: the first problem is its message, and its details list up to 50 problems.

    `name` is what the input is called.
    """
    listed = tuple(islice(problems, _LISTED_PROBLEMS + 1))
    first, *more = listed
    count = f"; and {len(more)} more" if more else ""
    if len(listed) > _LISTED_PROBLEMS:
        listed = (
            *listed[:_LISTED_PROBLEMS],
            InputProblem(at="", message="and more than these", hint="fix these first"),
        )
        count = f"; and at least {_LISTED_PROBLEMS} more"
    return InputInvalid(first.message + count, at=f"{name}#{first.at}", hint=first.hint, problems=listed)


def describe_value(value: object) -> str:
    """Describe a value in a message: repeat a short plain word, else say what kind of value it is."""
    if isinstance(value, str):
        return f"'{value}'" if _WORD.fullmatch(value) and not looks_secret(value) else "this text"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return str(value) if _NUMBER.fullmatch(str(value)) else "this number"
    return "a list" if isinstance(value, list) else "an object"
