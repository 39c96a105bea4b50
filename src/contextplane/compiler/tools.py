"""Stage `tools`: surfaces the tools that the run may see, and describes them and their limits."""

from collections.abc import Iterable
from typing import Any, NamedTuple, assert_never

import msgspec
from msgspec.structs import replace

from contextplane.compiler.arguments import describe_arguments, drop_arguments, supplied_arguments
from contextplane.compiler.draft import Draft, ToolsPart
from contextplane.compiler.limits import (
    ToolKind,
    describe_call_limit,
    describe_limit,
    sort_call_limits,
    sort_limits,
)
from contextplane.compiler.prompt import instruction_block
from contextplane.compiler.quotation import inline
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import (
    ArgumentLimit,
    CapabilityMetadata,
    ContextBlock,
    Omission,
    RequiredApproval,
    ToolManifestEntry,
)
from contextplane.model.pack_layers import CapabilitySpec
from contextplane.model.terms import ApprovalMode
from contextplane.model.tokens import Tokens
from contextplane.policy.approval_gates import ActiveGate, GateAnswer, choose_gates, gate_answers
from contextplane.policy.tool_surface import OmittedTool, Surface, SurfacedTool

__all__ = ["copy_entry", "surface_tools"]

_NO_SPEC = CapabilitySpec()


def _risk_level(mode: ApprovalMode) -> str:
    match mode:
        case "read_only":
            return "read"
        case "local_write":
            return "write_reversible"
        case "network":
            return "write_external"
        case "delegated":
            return "write_on_behalf"
        case "destructive":
            return "write_irreversible"
        case unreachable:
            assert_never(unreachable)


def surface_tools(draft: Draft) -> Draft:
    """Surface or omit every capability of the registry, and every permission without a capability."""
    inputs = draft.inputs
    view = inputs.view
    reach = view.intent(draft.intent.intent).reach
    surface = view.tooling.surface(draft.decision, draft.facts.safety_mode, reach)
    answers = gate_answers(view.policy, surface, draft.facts)
    if draft.decision.fact_values:
        return replace(draft, tools=_tools_part(draft, surface, answers))
    part = view.share_part(
        (surface, draft.decision.effects),
        ("tools", inputs.tokens, answers),
        lambda: _tools_part(draft, surface, answers),
    )
    return replace(draft, tools=part)


def _tools_part(draft: Draft, surface: Surface, answers: tuple[GateAnswer, ...]) -> ToolsPart:
    inputs = draft.inputs
    view = inputs.view
    gates = choose_gates(view.policy, draft.decision, surface, answers)
    # In Python true equals 1, and so do two bounds by facts: their types are part of the key.
    types = tuple((path, type(value)) for path, value in draft.decision.fact_values.items())
    descriptions = view.memoize(
        (surface.tools, types, inputs.tokens), lambda: _describe_tools(view, surface.tools, inputs.tokens)
    )
    return ToolsPart(
        manifest=descriptions.manifest,
        blocks=descriptions.blocks,
        approvals=tuple(map(_required_approval, gates.active)),
        omitted=tuple(map(_omission, surface.left_out)),
        notes=tuple(f"{gate.gate_id} is not active: {gate.why}" for gate in gates.inactive),
    )


def _required_approval(active: ActiveGate) -> RequiredApproval:
    gate = active.gate
    return RequiredApproval(
        gate_id=gate.gate_id,
        capabilities=active.capabilities,
        required_approver_role=gate.required_approver_role,
        approvers=gate.approvers,
        approver_not_requester=gate.approver_not_requester,
        ttl_seconds=gate.ttl_seconds,
        because=active.because,
    )


class _ToolDescriptions(NamedTuple):
    manifest: tuple[ToolManifestEntry, ...]
    blocks: tuple[ContextBlock, ...]


def _describe_tools(view: PackView, surfaced: Iterable[SurfacedTool], tokens: Tokens) -> _ToolDescriptions:
    """A manifest entry and a block for each adapter, in the order of the document."""
    adapters = _by_adapter(surfaced)
    return _ToolDescriptions(
        manifest=tuple(_entry(view, adapter_id, tools) for adapter_id, tools in adapters.items()),
        blocks=tuple(
            instruction_block(
                f"tool_{n}",
                "tool",
                "\n".join(sorted(_describe_tool(view, tool) for tool in tools)),
                tokens,
                classification=view.pack.pack_meta.data_classification,
                refs=tuple(tool.capability_id for tool in tools),
            )
            for n, tools in enumerate(adapters.values())
        ),
    )


def _by_adapter(surfaced: Iterable[SurfacedTool]) -> dict[str, list[SurfacedTool]]:
    by_adapter: dict[str, list[SurfacedTool]] = {}
    for tool in surfaced:
        by_adapter.setdefault(tool.adapter_id, []).append(tool)
    return by_adapter


def _entry(view: PackView, adapter_id: str, tools: list[SurfacedTool]) -> ToolManifestEntry:
    return ToolManifestEntry(
        adapter_id=adapter_id,
        capabilities=tuple(tool.capability for tool in tools),
        constraints={tool.capability: sort_limits(tool.bounds, view.redactor) for tool in tools if tool.bounds},
        capability_metadata={
            tool.capability: CapabilityMetadata(
                kind=_kind(tool),
                risk_level=_risk_level(tool.declared_mode),
                approval_mode=tool.declared_mode,
                source="adapter_registry",
                description=_spec(view, tool).description,
                input_schema=view.adapters[tool.adapter_id].schema_of(tool.capability),
                supplied_by_runtime=_supplied_names(view, tool),
            )
            for tool in tools
        },
        limits={tool.capability: sort_call_limits(tool.limits) for tool in tools if tool.limits},
    )


def copy_entry(entry: ToolManifestEntry) -> ToolManifestEntry:
    """Copy an entry for one compile: the memoized one is shared, and a caller may change its objects."""
    metadata = {
        name: capability
        if capability.input_schema is None
        else replace(capability, input_schema=_copy_schema(capability.input_schema))
        for name, capability in entry.capability_metadata.items()
    }
    return replace(entry, constraints={**entry.constraints}, capability_metadata=metadata, limits={**entry.limits})


def _copy_schema(schema: dict[str, Any]) -> dict[str, Any]:
    # It was read from JSON, so encoding and decoding gives the same, in a tenth of the time of a deep copy.
    copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    return copied


def _omission(left_out: OmittedTool) -> Omission:
    first = left_out.reasons[0]
    return Omission(
        kind="tool",
        id=left_out.capability_id,
        stage="tools",
        reason=first.kind,
        detail="; ".join(reason.message for reason in left_out.reasons),
        at=f"pack#{left_out.at}",
    )


def _describe_tool(view: PackView, tool: SurfacedTool) -> str:
    """Describe a capability in one line: its id, whether it writes, and its arguments last."""
    kind, supplied = _kind(tool), _supplied_names(view, tool)
    parts = [f"{tool.capability_id}: {'read' if kind == 'read' else f'write, {tool.declared_mode}'}"]
    if description := _spec(view, tool).description:
        parts[0] += f" - {inline(description).removesuffix('.')}"
    if evidence := view.evidence_producers.by_tool.get(tool.capability_id):
        parts.append(f"gives {', '.join(evidence)}")
    schema = view.adapters[tool.adapter_id].schema_of(tool.capability)
    limits = [limit for limit in sort_limits(tool.bounds, view.redactor) if limit.argument not in supplied]
    if schema is not None:
        limits = [_without_repetition(limit, schema) for limit in limits]
    parts += filter(None, (describe_limit(limit, kind) for limit in limits))
    parts += map(describe_call_limit, sort_call_limits(tool.limits))
    if schema is not None and (arguments := describe_arguments(drop_arguments(schema, supplied))):
        parts.append(f"arguments {arguments}")
    return "; ".join(parts)


def _without_repetition(limit: ArgumentLimit, schema: dict[str, Any]) -> ArgumentLimit:
    """Leave out that an argument is required where the schema says so too."""
    constraint = limit.constraint
    if not constraint.required or constraint.unless_approved or limit.argument not in schema.get("required", ()):
        return limit
    return replace(limit, constraint=replace(constraint, required=False))


def _supplied_names(view: PackView, tool: SurfacedTool) -> tuple[str, ...]:
    """The arguments that the runtime supplies: to a tool that only reads, none."""
    if _kind(tool) == "read":
        return ()
    return supplied_arguments(_spec(view, tool).idempotency_header)


def _spec(view: PackView, tool: SurfacedTool) -> CapabilitySpec:
    return view.adapters[tool.adapter_id].capability_specs.get(tool.capability, _NO_SPEC)


def _kind(tool: SurfacedTool) -> ToolKind:
    match tool.declared_mode:
        case "read_only":
            return "read"
        case "local_write" | "network" | "delegated" | "destructive":
            return "write"
        case unreachable:
            assert_never(unreachable)
