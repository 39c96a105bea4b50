"""Reading the inputs of a compile from plain data, as files and envelopes hold them."""

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from contextplane.compiler.malformed import invalid, problems_of, said_by
from contextplane.compiler.refusals import InputInvalid, InputProblem
from contextplane.model.evidence import Evidence, EvidenceInput
from contextplane.model.invoke import InvokeRequest
from contextplane.model.memory import Memory
from contextplane.model.problems import type_name
from contextplane.model.run_context import RunContext, claims_lifted

__all__ = ["read_evidence", "read_memories", "read_request", "read_run_context"]

T = TypeVar("T")
D = TypeVar("D", bound=msgspec.Struct)


def read_run_context(value: Any) -> RunContext:  # noqa: ANN401  plain data
    return _document(_lifted(value), RunContext, "run_context")


def read_request(value: Any) -> InvokeRequest:  # noqa: ANN401  plain data
    return _document(_lifted(value), InvokeRequest, "request")


def read_evidence(value: Any) -> tuple[EvidenceInput, ...]:  # noqa: ANN401  plain data
    """A list of typed evidence, and of plain texts as older callers give them."""
    return _listed(value, tuple[Evidence | str, ...], Evidence, "evidence")


def read_memories(value: Any) -> tuple[Memory, ...]:  # noqa: ANN401  plain data
    return _listed(value, tuple[Memory, ...], Memory, "memories")


def _lifted(value: Any) -> Any:  # noqa: ANN401  plain data
    if isinstance(value, dict) and "user" in value:
        return {**value, "user": claims_lifted(value["user"])}
    return value


def _document(value: Any, form: type[D], name: str) -> D:  # noqa: ANN401  plain data
    try:
        return msgspec.convert(value, type=form)
    except msgspec.ValidationError as error:
        raise invalid(problems_of(value, form) or [said_by(error)], name) from error
    except UnicodeEncodeError as error:
        raise _halved(name) from error


def _listed(value: Any, form: type[T], of: type[msgspec.Struct], name: str) -> T:  # noqa: ANN401  plain data
    try:
        return msgspec.convert(value, type=form)
    except msgspec.ValidationError as error:
        raise invalid(_in_list(value, of, name, error), name) from error
    except UnicodeEncodeError as error:
        raise _halved(name) from error


def _in_list(
    value: Any,  # noqa: ANN401  plain data
    form: type[msgspec.Struct],
    name: str,
    error: msgspec.ValidationError,
) -> Iterator[InputProblem]:
    """What is wrong with each of them that is not of its form. Whether it has it, the types decide, which are fast."""
    if not isinstance(value, list | tuple):
        yield InputProblem(at="", message=f"must be a list, not {type_name(value)}", hint=f"write {name} as a list")
        return
    told = False
    for n, one in enumerate(value):
        if form is Evidence and isinstance(one, str):
            continue
        try:
            msgspec.convert(one, type=form)
        except msgspec.ValidationError:
            for problem in problems_of(one, form, f"/{n}"):
                told = True
                yield problem
    if not told:
        yield said_by(error)


def _halved(name: str) -> InputInvalid:
    return InputInvalid("a text holds half of a character", at=f"{name}#", hint="write it as UTF-8")
