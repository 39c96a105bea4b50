"""The request that invokes a run, and the RunContext that every layer of it carries.

`InvokeRequest`: what is asked, by whom, and under which pinned packs. `RunContext`: who acts for whom, under which
ceiling and budget.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from contextplane.model.terms import ApprovalMode, Identifier
from contextplane.model.value import Document

__all__ = [
    "CLAIMS",
    "AgentIdentity",
    "Attachment",
    "IdentityClaim",
    "InvokeInput",
    "InvokeRequest",
    "PinnedRef",
    "Principal",
    "RunBudget",
    "RunContext",
    "RuntimeHints",
    "Trace",
    "UserClaims",
    "UserDelegation",
    "lift_claims",
]

ShortText = Annotated[str, Meta(min_length=1, max_length=512)]
AgentUrn = Annotated[
    str,
    Meta(
        pattern=r"^agent:[a-z0-9][a-z0-9_-]{0,63}/[A-Za-z0-9][A-Za-z0-9_.-]{0,127}@[0-9]+\.[0-9]+\.[0-9]+\Z",
        description="agent:contextos/<slug>@<version>",
    ),
]
WorkloadIdentity = Annotated[str, Meta(pattern=r"^spiffe://[!-~]{1,2000}\Z", description="spiffe://<trust domain>/...")]


# --- Identities and the run context ---


class Principal(Document, frozen=True, omit_defaults=True):
    """One link of the chain from the requester to the acting agent.

    `kind`: What kind of actor it is.
    `id`: Its id.
    `tenant_id`: Its tenant.
    `display`: Its name for people.
    """

    kind: Literal["user", "service", "agent", "automation"]
    id: ShortText
    tenant_id: Identifier | None = None
    display: ShortText | None = None


class UserDelegation(Document, frozen=True, omit_defaults=True):
    """On whose behalf the run acts. The token itself is never here, only a reference to it.

    `auth_type`: How the user was authenticated.
    `scopes`: What the user allows the agent to do.
    `subject`: The user, as the identity provider names them.
    `token_ref`: A reference to the token, never the token.
    """

    auth_type: Literal["oauth2", "saml", "oidc", "service"]
    scopes: tuple[ShortText, ...]
    subject: ShortText
    token_ref: ShortText | None = None


class UserClaims(Document, frozen=True, omit_defaults=True):
    """The claims of authentication about the user. `further`: claims without a field of their own.

    On the wire those stand beside the others; `lift_claims` moves them before the form is checked.

    `user_id`: The id of the user.
    `delegation`: On whose behalf the run acts. Required from delegated on.
    `role`: The role of the user; rules read it as user.role.
    `tenure_days`: How long the user has been known.
    `further`: Claims without a member of their own.
    """

    user_id: ShortText
    delegation: UserDelegation | None = None
    role: Identifier | None = None
    tenure_days: Annotated[int, Meta(ge=0)] | None = None
    further: dict[str, Any] = field(default_factory=dict)


class IdentityClaim(Document, frozen=True, omit_defaults=True):
    """The short-lived claim of the agent, by its contents and its hash; never the signed token.

    `sub`: The agent that the claim is for.
    `run_id`: The run that it is bound to.
    `tenant_id`: The tenant that it is bound to.
    `scopes`: What the agent may do.
    `claim_hash`: The SHA-256 of the signed claim.
    `version`: The form of the claim.
    `iss`: Who issued it.
    `aud`: Who it is for.
    `kid`: The key that signed it.
    `session_id`: The session that it is bound to.
    `principal_chain`: The chain from the requester to the agent.
    `nbf`: The second from which it is valid.
    `exp`: The second at which it expires.
    """

    sub: ShortText
    run_id: ShortText
    tenant_id: Identifier
    scopes: tuple[ShortText, ...]
    claim_hash: ShortText
    version: Literal["ctxid/1"] = "ctxid/1"
    iss: ShortText | None = None
    aud: ShortText | None = None
    kid: ShortText | None = None
    session_id: ShortText | None = None
    principal_chain: tuple[Principal, ...] = ()
    nbf: int | None = None
    exp: int | None = None


class AgentIdentity(Document, frozen=True, omit_defaults=True):
    """Which agent acts, in which version, and as which workload.

    `agent_id`: The id of the agent.
    `agent_urn`: The agent in its version.
    `workload_identity`: The workload that runs it.
    `role`: The role of the agent.
    `token_ref`: A reference to its token, never the token.
    `lifecycle`: Whether the agent is active; no other may run.
    `principal_chain`: The chain from the requester to the agent.
    `identity_claim`: Its short-lived claim, without the signed token.
    """

    agent_id: ShortText
    agent_urn: AgentUrn | None = None
    workload_identity: WorkloadIdentity | None = None
    role: Identifier | None = None
    token_ref: ShortText | None = None
    lifecycle: ShortText | None = None
    principal_chain: tuple[Principal, ...] = ()
    identity_claim: IdentityClaim | None = None


class RunBudget(Document, frozen=True, omit_defaults=True):
    """The limits of a run. `bucket_tokens` allots tokens to the six buckets of a compiled context.

    `total_tokens`: The tokens of the whole prompt.
    `bucket_tokens`: The tokens of each bucket: business, policy, tool, evidence, memory, session.
    `max_tool_calls`: The largest number of tool calls.
    `max_replan_attempts`: How often the plan may be made anew.
    `wall_clock_ms`: How long the run may take.
    `max_cost_cents`: How much the run may cost.
    """

    total_tokens: int
    bucket_tokens: dict[str, int]
    max_tool_calls: int | None = None
    max_replan_attempts: int | None = None
    wall_clock_ms: int | None = None
    max_cost_cents: float | None = None


class RunContext(Document, frozen=True, omit_defaults=True):
    """`run_id`, `trace_id` and `session_id` only connect records: they shape nothing that is compiled.

    `safety_mode` is the ceiling: no tool above it is surfaced.

    `run_id`: The id of the run.
    `trace_id`: The trace that the run belongs to.
    `tenant_id`: The tenant of the run.
    `user`: Who asks.
    `agent`: Which agent acts.
    `safety_mode`: The ceiling of the run: no tool above it is surfaced.
    `run_budget`: The limits of the run.
    `session_id`: The session that the run belongs to.
    `intent`: The intent; the request must name the same.
    `locale`: The locale where the request names none.
    `metadata`: Anything else, for records.
    """

    run_id: ShortText
    trace_id: ShortText
    tenant_id: Identifier
    user: UserClaims
    agent: AgentIdentity
    safety_mode: ApprovalMode
    run_budget: RunBudget
    session_id: ShortText | None = None
    intent: Identifier | None = None
    locale: ShortText | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


CLAIMS = frozenset(UserClaims.__struct_fields__) - {"further"}
"""The claims that have a field of their own; all others go into `further`."""


def lift_claims(user: Any) -> Any:  # noqa: ANN401  any JSON value
    """The `user` of a document with its further claims moved into `further`."""
    if not isinstance(user, dict):
        return user
    known = {key: value for key, value in user.items() if key in CLAIMS}
    further = {key: value for key, value in user.items() if key not in CLAIMS}
    return {**known, "further": further} if further else known


# --- The request ---

PinnedRef = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_.:-]+@[0-9]+\.[0-9]+\.[0-9]+\Z", description="pack_id@X.Y.Z: no range, no alias."),
]
Locale = Annotated[str, Meta(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*\Z", description="BCP 47, such as en-IN.")]
Limit = Annotated[int, Meta(ge=0)]


class InvokeInput(Document, frozen=True, omit_defaults=True):
    """The request itself. `context` comes from the caller: rules read it as `request.context`.

    `intent`: What is asked for: an intent of the pack.
    `message`: The request in words.
    `channel`: Where the request comes from.
    `locale`: The locale of the caller.
    `context`: Facts from the caller; rules read them as request.context.
    """

    intent: Identifier
    message: Annotated[str, Meta(min_length=1, max_length=1_000_000)]
    channel: ShortText | None = None
    locale: Locale | None = None
    context: dict[str, Any] = field(default_factory=dict)


class RuntimeHints(Document, frozen=True, omit_defaults=True):
    """The limits that the caller asks for; the runtime makes a budget of them.

    `plan_timeout_ms`: How long planning may take.
    `max_session_duration_ms`: How long the session may last.
    `max_tool_calls`: The largest number of tool calls.
    `max_payload_bytes`: The largest size of an answer.
    `max_cost_cents`: How much the run may cost.
    """

    plan_timeout_ms: Limit | None = None
    max_session_duration_ms: Limit | None = None
    max_tool_calls: Limit | None = None
    max_payload_bytes: Limit | None = None
    max_cost_cents: float | None = None


class Attachment(Document, frozen=True):
    """A large content, by reference and digest.

    `artifact_id`: The id of the content.
    `media_type`: Its media type.
    `sha256`: Its SHA-256.
    `uri`: Where it is.
    """

    artifact_id: ShortText
    media_type: ShortText
    sha256: ShortText
    uri: ShortText


class Trace(Document, frozen=True, omit_defaults=True):
    """W3C Trace Context. It only connects records.

    `trace_id`: The id of the trace.
    `span_id`: The id of the span that calls.
    `trace_flags`: The flags of the trace.
    `tracestate`: What vendors add to the trace.
    `baggage`: What the caller passes along.
    """

    trace_id: ShortText
    span_id: ShortText
    trace_flags: ShortText | None = None
    tracestate: str | None = None
    baggage: str | None = None


class InvokeRequest(Document, frozen=True, omit_defaults=True):
    """The single entry point of the runtime. `request_id`, `session_id` and `trace` only connect records.

    `request_id`: The id of the request; the same request again is the same run.
    `tenant_id`: The tenant that asks.
    `user`: Who asks.
    `agent`: Which agent is asked.
    `context_pack_refs`: The pinned packs that hold for the run.
    `input`: What is asked.
    `mode`: How the caller gets the answer.
    `runtime`: The limits that the caller asks for.
    `trace`: The trace that the request belongs to.
    `session_id`: The session that it belongs to.
    `attachments`: Large contents, by reference.
    """

    request_id: ShortText
    tenant_id: Identifier
    user: UserClaims
    agent: AgentIdentity
    context_pack_refs: Annotated[tuple[PinnedRef, ...], Meta(min_length=1)]
    input: InvokeInput
    mode: Literal["stream", "batch", "long_running"]
    runtime: RuntimeHints
    trace: Trace
    session_id: ShortText | None = None
    attachments: tuple[Attachment, ...] = ()
