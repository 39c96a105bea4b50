"""Taking the inputs: each is digested first, and ids that only connect records are taken away.

Reading the inputs of a compile from plain data, as files and envelopes hold them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple, replace

from contextplane.compiler.draft import Inputs
from contextplane.compiler.errors import InputInvalid, InputProblem, invalid, problems_of, said_by
from contextplane.compiler.hashing import (
    digest_of_open_input,
    digest_of_plain_input,
    spelled,
    text_digest,
    without_correlation,
)
from contextplane.compiler.view import PackView
from contextplane.model.evidence import Evidence, EvidenceInput, Memory
from contextplane.model.invoke import CLAIMS, InvokeRequest, RunContext, UserClaims, claims_lifted
from contextplane.model.problems import type_name
from contextplane.model.timestamp import Timestamp
from contextplane.model.tokens import Tokens

__all__ = ["read", "read_evidence", "read_memories", "read_request", "read_run_context"]


def read(  # noqa: PLR0913  the inputs
    view: PackView,
    run_context: RunContext,
    request: InvokeRequest,
    *,
    evidence: Sequence[EvidenceInput],
    memories: Sequence[Memory],
    tokens: Tokens,
    as_of: Timestamp | None,
) -> Inputs:
    """The inputs of a compile. One without a canonical form is refused; past this point every text can be written."""
    run, asked = without_correlation(run_context), without_correlation(request)
    _refuse_claims_twice(run.user, "run_context")
    _refuse_claims_twice(asked.user, "request")
    gathered, recalled = tuple(evidence), tuple(memories)
    digests = {
        "pack": view.digest,
        "surroundings": view.surroundings_digest,
        "run_context": digest_of_open_input(
            run, "run_context", [run.metadata, astuple(run.run_budget), _numbers(run.user)]
        ),
        "request": digest_of_open_input(
            asked, "request", [(asked.input.context,), astuple(asked.runtime), _numbers(asked.user)]
        ),
        "evidence": digest_of_plain_input(gathered, "evidence"),
        "memories": digest_of_plain_input(recalled, "memories"),
        "as_of": text_digest(str(as_of or "")),
    }
    return Inputs(
        view=view,
        run_context=_run_spelled(run),
        request=_request_spelled(asked),
        evidence=gathered,
        memories=recalled,
        tokens=tokens,
        as_of=as_of,
        request_id=request.request_id,
        digests=digests,
    )


def _run_spelled(run: RunContext) -> RunContext:
    metadata, further = spelled(run.metadata), spelled(run.user.further)
    if metadata is run.metadata and further is run.user.further:
        return run
    return replace(run, metadata=metadata, user=replace(run.user, further=further))


def _request_spelled(request: InvokeRequest) -> InvokeRequest:
    context = spelled(request.input.context)
    if context is request.input.context:
        return request
    return replace(request, input=replace(request.input, context=context))


def _refuse_claims_twice(user: UserClaims, name: str) -> None:
    """A claim that has a field says nothing from elsewhere: rules would read another role than all the rest does."""
    if not CLAIMS.isdisjoint(user.further):
        place = min(CLAIMS.intersection(user.further))
        raise InputInvalid(
            "a claim with a field of its own stands among further ones",
            at=f"{name}#/user/further/{place}",
            hint=f"give it as {place}",
        )


def _numbers(user: UserClaims) -> tuple[object, ...]:
    """The parts of a user that may hold numbers."""
    return (user.further, user.tenure_days)


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
