"""`tooling_layer` of a context pack: what adapters can do, and which of it this pack may use.

Docstrings of documents are descriptions in the published schema.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from contextplane.model.policy_layer import ArgConstraints
from contextplane.model.terms import ApprovalMode, Identifier, Names
from contextplane.model.value import Document

__all__ = [
    "Adapter",
    "AdapterType",
    "Capability",
    "CapabilitySpec",
    "EndpointRef",
    "JsonSchema",
    "Permission",
    "ToolingLayer",
]


AdapterType = Literal["OPENAPI", "INTERNAL", "MCP", "A2A", "FUNCTION", "CUSTOM"]


Capability = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z", description="One capability: letters, digits, _ and -.")
]


EndpointRef = Annotated[str, Meta(min_length=1, max_length=512, description="An entry of the endpoint registry.")]


JsonSchema = dict[str, Any]


class CapabilitySpec(Document, frozen=True, omit_defaults=True):
    """What the Tool Gateway checks and does for one capability."""

    input_schema: JsonSchema | None = None
    output_schema: JsonSchema | None = None
    default_timeout_ms: Annotated[int, Meta(ge=100, le=60_000)] | None = None
    idempotency_header: Identifier | None = None
    reversal_op: Capability | None = None
    reversal_endpoint: EndpointRef | None = None


class Adapter(Document, frozen=True, omit_defaults=True):
    """`approval_mode` is the most that any of its capabilities can do."""

    adapter_id: Identifier
    type: AdapterType
    endpoint_ref: EndpointRef
    capabilities: Annotated[tuple[Capability, ...], Meta(min_length=1)]
    approval_mode: ApprovalMode
    capability_specs: dict[Capability, CapabilitySpec] = field(default_factory=dict)


class Permission(Document, frozen=True, omit_defaults=True):
    """Exposes one capability of one adapter. `produces` names the evidence that its result is."""

    permission_id: Identifier
    adapter_id: Identifier
    capability: Capability
    allow: bool
    requires_approval_gate: Identifier | None = None
    arg_constraints: ArgConstraints = field(default_factory=dict)
    produces: Names = ()


class ToolingLayer(Document, frozen=True):
    adapter_registry: Annotated[tuple[Adapter, ...], Meta(min_length=1)]
    permissions: Annotated[tuple[Permission, ...], Meta(min_length=1)]
