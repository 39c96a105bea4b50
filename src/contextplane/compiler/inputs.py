"""Reads the inputs of a compile from plain data, digests them, and strips correlation ids."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple, replace

from contextplane.compiler.digests import (
    digest_of_open_input,
    digest_of_plain_input,
    normalize_numbers,
    strip_correlation_ids,
    text_digest,
)
from contextplane.compiler.draft import Inputs
from contextplane.compiler.errors import InputInvalid, InputProblem, find_problems, input_error, type_problem
from contextplane.compiler.identity import check_claim_window
from contextplane.compiler.view import PackView
from contextplane.model.evidence import Evidence, EvidenceInput, Memory
from contextplane.model.invoke import CLAIMS, InvokeRequest, RunContext, UserClaims, lift_claims
from contextplane.model.problems import type_name
from contextplane.model.timestamp import Timestamp
from contextplane.model.tokens import Tokens

__all__ = ["read_evidence", "read_inputs", "read_memories", "read_request", "read_run_context"]


def read_inputs(  # noqa: PLR0913  the inputs
    view: PackView,
    run_context: RunContext,
    request: InvokeRequest,
    *,
    evidence: Sequence[EvidenceInput],
    memories: Sequence[Memory],
    tokens: Tokens,
    as_of: Timestamp | None,
) -> Inputs:
    """Prepare the inputs of a compile. An input without a canonical form is refused.

    Past this point every text can be encoded.
    """
    check_claim_window(run_context, request, as_of)
    run, stripped_request = strip_correlation_ids(run_context), strip_correlation_ids(request)
    _reject_repeated_claims(run.user, "run_context")
    _reject_repeated_claims(stripped_request.user, "request")
    gathered, recalled = tuple(evidence), tuple(memories)
    digests = {
        "pack": view.digest,
        "surroundings": view.surroundings_digest,
        "run_context": digest_of_open_input(
            run, "run_context", [run.metadata, astuple(run.run_budget), _numbers(run.user)]
        ),
        "request": digest_of_open_input(
            stripped_request,
            "request",
            [
                (stripped_request.input.context,),
                astuple(stripped_request.runtime),
                _numbers(stripped_request.user),
            ],
        ),
        "evidence": digest_of_plain_input(gathered, "evidence"),
        "memories": digest_of_plain_input(recalled, "memories"),
        "as_of": text_digest(str(as_of or "")),
    }
    return Inputs(
        view=view,
        run_context=_normalize_run(run),
        request=_normalize_request(stripped_request),
        evidence=gathered,
        memories=recalled,
        tokens=tokens,
        as_of=as_of,
        request_id=request.request_id,
        digests=digests,
    )


def _normalize_run(run: RunContext) -> RunContext:
    metadata, further = normalize_numbers(run.metadata), normalize_numbers(run.user.further)
    if metadata is run.metadata and further is run.user.further:
        return run
    return replace(run, metadata=metadata, user=replace(run.user, further=further))


def _normalize_request(request: InvokeRequest) -> InvokeRequest:
    context = normalize_numbers(request.input.context)
    if context is request.input.context:
        return request
    return replace(request, input=replace(request.input, context=context))


def _reject_repeated_claims(user: UserClaims, name: str) -> None:
    """Refuse a claim that has a field and stands among further ones too: rules could read another role."""
    if not CLAIMS.isdisjoint(user.further):
        place = min(CLAIMS.intersection(user.further))
        raise InputInvalid(
            "a claim with a field of its own stands among further ones",
            at=f"{name}#/user/further/{place}",
            hint=f"give it as {place}",
        )


def _numbers(user: UserClaims) -> tuple[object, ...]:
    """The fields of a user that may hold numbers."""
    return (user.further, user.tenure_days)


T = TypeVar("T")
D = TypeVar("D", bound=msgspec.Struct)


def read_run_context(value: Any) -> RunContext:  # noqa: ANN401  plain data
    return _convert(_lift_user_claims(value), RunContext, "run_context")


def read_request(value: Any) -> InvokeRequest:  # noqa: ANN401  plain data
    return _convert(_lift_user_claims(value), InvokeRequest, "request")


def read_evidence(value: Any) -> tuple[EvidenceInput, ...]:  # noqa: ANN401  plain data
    """Read a list of typed evidence, and of plain references as older callers send them."""
    return _convert_list(value, tuple[Evidence | str, ...], Evidence, "evidence")


def read_memories(value: Any) -> tuple[Memory, ...]:  # noqa: ANN401  plain data
    return _convert_list(value, tuple[Memory, ...], Memory, "memories")


def _lift_user_claims(value: Any) -> Any:  # noqa: ANN401  plain data
    if isinstance(value, dict) and "user" in value:
        return {**value, "user": lift_claims(value["user"])}
    return value


def _convert(value: Any, form: type[D], name: str) -> D:  # noqa: ANN401  plain data
    try:
        return msgspec.convert(value, type=form)
    except msgspec.ValidationError as error:
        raise input_error(find_problems(value, form) or [type_problem(error)], name) from error
    except UnicodeEncodeError as error:
        raise _surrogate_error(name) from error


def _convert_list(value: Any, form: type[T], of: type[msgspec.Struct], name: str) -> T:  # noqa: ANN401  plain data
    try:
        return msgspec.convert(value, type=form)
    except msgspec.ValidationError as error:
        raise input_error(_list_problems(value, of, name, error), name) from error
    except UnicodeEncodeError as error:
        raise _surrogate_error(name) from error


def _list_problems(
    value: Any,  # noqa: ANN401  plain data
    form: type[msgspec.Struct],
    name: str,
    error: msgspec.ValidationError,
) -> Iterator[InputProblem]:
    """Yield the problems of each element that is not of its form, which the fast decoder decides."""
    if not isinstance(value, list | tuple):
        yield InputProblem(at="", message=f"must be a list, not {type_name(value)}", hint=f"write {name} as a list")
        return
    reported = False
    for n, element in enumerate(value):
        if form is Evidence and isinstance(element, str):
            continue
        try:
            msgspec.convert(element, type=form)
        except msgspec.ValidationError:
            for problem in find_problems(element, form, f"/{n}"):
                reported = True
                yield problem
    if not reported:
        yield type_problem(error)


def _surrogate_error(name: str) -> InputInvalid:
    return InputInvalid("a text holds half of a character", at=f"{name}#", hint="write it as UTF-8")
