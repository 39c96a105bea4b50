"""The identity of a run: whether its agent may act, under this claim, up to this ceiling. Pure.

The signature of a claim is checked where the run is admitted. Here its contents are compared with the run that uses it.
Refused are: a claim of another agent, run or time; a claim without the scopes that the ceiling needs; an agent that is
not active; and a run on behalf of a user without a delegation.
"""

from typing import Literal

from contextplane.compiler.errors import CompileTenantMismatch, IdentityUnfit
from contextplane.model.invoke import AgentIdentity, IdentityClaim, InvokeRequest, RunContext
from contextplane.model.terms import ApprovalMode
from contextplane.model.timestamp import Timestamp

__all__ = ["READ_SCOPE", "WRITE_SCOPE", "check_claim_window", "check_identity"]

READ_SCOPE, WRITE_SCOPE = "tools:read", "tools:write"
"""The scopes of a claim: to call tools that only read, and to call all others."""

_ACTIVE = "active"
_WITHOUT_DELEGATION: frozenset[ApprovalMode] = frozenset({"read_only", "local_write", "network"})
"""The ceilings of runs that act for no user. What is not one of them needs a delegation."""

Document = Literal["request", "run_context"]


def check_identity(run: RunContext, request: InvokeRequest) -> None:
    """Refuse a run whose agent or user may not act as it says, with the place of the reason."""
    for document, agent in _agents(run, request):
        if agent.lifecycle is not None and agent.lifecycle != _ACTIVE:
            raise IdentityUnfit(
                f"the agent is {agent.lifecycle}, not active",
                at=f"{document}#/agent/lifecycle",
                hint="activate the agent, or send the request as another one",
            )
        if agent.identity_claim is not None:
            _check_claim(agent.identity_claim, run, f"{document}#/agent/identity_claim")
    if run.safety_mode not in _WITHOUT_DELEGATION and run.user.delegation is None:
        raise IdentityUnfit(
            f"a run with the ceiling {run.safety_mode} acts on behalf of a user, and no delegation says so",
            at="run_context#/user/delegation",
            hint="give the user's delegation, or lower safety_mode to network",
        )


def check_claim_window(run: RunContext, request: InvokeRequest, as_of: Timestamp | None) -> None:
    """Refuse a claim that was issued for another run, or does not hold at the moment `as_of`.

    A claim with times cannot be judged without a moment. Run and times of a claim shape nothing that is compiled: they
    are checked here, before they are stripped.
    """
    for document, agent in _agents(run, request):
        claim, place = agent.identity_claim, f"{document}#/agent/identity_claim"
        if claim is None:
            continue
        if claim.run_id != run.run_id:
            raise IdentityUnfit(
                "the claim is for another run", at=f"{place}/run_id", hint="have a claim issued for this run"
            )
        _check_times(claim, as_of, place)


def _agents(run: RunContext, request: InvokeRequest) -> tuple[tuple[Document, AgentIdentity], ...]:
    return (("request", request.agent), ("run_context", run.agent))


def _check_claim(claim: IdentityClaim, run: RunContext, place: str) -> None:
    if claim.tenant_id != run.tenant_id:
        raise CompileTenantMismatch(
            f"the agent's identity claim is of {claim.tenant_id}, the run of {run.tenant_id}",
            at=f"{place}/tenant_id",
            hint="act under a claim for the tenant of the run",
        )
    if claim.sub != (run.agent.agent_urn or run.agent.agent_id):
        raise IdentityUnfit(
            "the claim is for another agent",
            at=f"{place}/sub",
            hint="act under a claim for the agent of the run, named by its agent_urn",
        )
    needed = (READ_SCOPE,) if run.safety_mode == "read_only" else (READ_SCOPE, WRITE_SCOPE)
    missing = [scope for scope in needed if scope not in claim.scopes]
    if missing:
        raise IdentityUnfit(
            f"the claim has no scope {' and '.join(missing)}, which the ceiling {run.safety_mode} needs",
            at=f"{place}/scopes",
            hint="have a claim issued with this scope, or lower safety_mode",
        )


def _check_times(claim: IdentityClaim, as_of: Timestamp | None, place: str) -> None:
    if claim.nbf is None and claim.exp is None:
        return
    if as_of is None:
        raise IdentityUnfit(
            "the claim has times, and no moment is given to judge them by",
            at=f"{place}/{'exp' if claim.exp is not None else 'nbf'}",
            hint="give as_of",
        )
    second = as_of.unix_seconds
    if claim.exp is not None and claim.exp <= second:
        raise IdentityUnfit("the claim is expired", at=f"{place}/exp", hint="have a new claim issued")
    if claim.nbf is not None and claim.nbf > second:
        raise IdentityUnfit("the claim is not valid yet", at=f"{place}/nbf", hint="wait, or check the clock")
