"""The envelope of a request: what is asked, by whom, and under which pinned packs."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from contextplane.model.context_pack.terms import Identifier
from contextplane.model.run_context import AgentIdentity, ShortText, UserClaims
from contextplane.model.value import Document

__all__ = ["Attachment", "InvokeInput", "InvokeRequest", "PinnedRef", "RuntimeHints", "Trace"]

PinnedRef = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9_.:-]+@[0-9]+\.[0-9]+\.[0-9]+\Z", description="pack_id@X.Y.Z: no range, no alias."),
]
Locale = Annotated[str, Meta(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*\Z", description="BCP 47, such as en-IN.")]
Limit = Annotated[int, Meta(ge=0)]


class InvokeInput(Document, frozen=True, omit_defaults=True):
    """What is asked. `context` is what the caller says of it: rules read it as `request.context`."""

    intent: Identifier
    message: Annotated[str, Meta(min_length=1, max_length=1_000_000)]
    channel: ShortText | None = None
    locale: Locale | None = None
    context: dict[str, Any] = field(default_factory=dict)


class RuntimeHints(Document, frozen=True, omit_defaults=True):
    """What the caller would like to spend; the runtime makes a budget of it."""

    plan_timeout_ms: Limit | None = None
    max_session_duration_ms: Limit | None = None
    max_tool_calls: Limit | None = None
    max_payload_bytes: Limit | None = None
    max_cost_cents: float | None = None


class Attachment(Document, frozen=True):
    """Something large, by reference and digest."""

    artifact_id: ShortText
    media_type: ShortText
    sha256: ShortText
    uri: ShortText


class Trace(Document, frozen=True, omit_defaults=True):
    """W3C Trace Context. It only connects records."""

    trace_id: ShortText
    span_id: ShortText
    trace_flags: ShortText | None = None
    tracestate: str | None = None
    baggage: str | None = None


class InvokeRequest(Document, frozen=True, omit_defaults=True):
    """The single entry point of the runtime. `request_id`, `session_id` and `trace` only connect records."""

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
