"""Taking the inputs: each is digested first, and ids that only connect records are taken away."""

from collections.abc import Sequence

from msgspec.structs import astuple, replace

from contextplane.compiler.draft import Inputs
from contextplane.compiler.hashing import (
    digest_of_open_input,
    digest_of_plain_input,
    spelled,
    text_digest,
    without_correlation,
)
from contextplane.compiler.refusals import InputInvalid
from contextplane.compiler.view import PackView
from contextplane.model.evidence import EvidenceInput
from contextplane.model.invoke import InvokeRequest
from contextplane.model.memory import Memory
from contextplane.model.run_context import CLAIMS, RunContext, UserClaims
from contextplane.model.timestamp import Timestamp
from contextplane.model.tokens import Tokens

__all__ = ["read"]


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
