"""Stage `tools`: which tools the run may see, and what they can do.

What bounds the arguments of a tool, as a model is told of it.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from contextplane.compiler.draft import Draft, ToolsPart
from contextplane.compiler.prompt import instruction_block
from contextplane.compiler.quoting import quoted, quoted_json
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import (
    ArgumentLimit,
    CapabilityMetadata,
    ContextBlock,
    Omission,
    ToolManifestEntry,
)
from contextplane.model.terms import ApprovalMode
from contextplane.model.tokens import Tokens
from contextplane.policy.approval_gates import active_gates
from contextplane.policy.decision import ArgumentBound
from contextplane.policy.tool_surface import LeftOut, SurfacedTool

__all__ = ["Kind", "is_needed", "limits", "told_of", "tools"]

Kind = Literal["read", "write"]
"""Whether a tool can change anything."""


def limits(bounds: Iterable[ArgumentBound]) -> tuple[ArgumentLimit, ...]:
    """By argument, then by origin: so the order of permissions and of arguments in the pack does not matter."""
    return tuple(
        ArgumentLimit(argument=bound.argument, constraint=bound.constraint, origin=bound.origin)
        for bound in sorted(bounds, key=lambda bound: (bound.argument, bound.origin))
    )


def is_needed(limit: ArgumentLimit, kind: Kind) -> bool:
    """Whether a call must give the argument. A rule asks for one only of what can change something.

    The gateway judges calls by the same law: a lookup does not need the amount of a refund.
    """
    return limit.constraint.required and (kind == "write" or not limit.origin.startswith("rule:"))


def told_of(limit: ArgumentLimit, kind: Kind) -> str | None:
    """One bound in words; None when it asks nothing of this tool."""
    words = ", ".join(_words(limit, kind))
    return f"{limit.argument} {words}" if words else None


def _words(limit: ArgumentLimit, kind: Kind) -> Iterator[str]:
    constraint = limit.constraint
    if is_needed(limit, kind):
        yield "required"
    elif constraint.required and not _bounds_values(limit):
        return
    if constraint.min is not None:
        yield f"at least {quoted_json(constraint.min)}"
    if constraint.max is not None:
        yield f"at most {quoted_json(constraint.max)}"
    if constraint.enum is not None:
        yield f"one of {quoted_json(constraint.enum)}"
    if constraint.pattern is not None:
        yield f"matching {quoted(constraint.pattern)}"
    if constraint.unless_approved:
        yield "unless approved"


def _bounds_values(limit: ArgumentLimit) -> bool:
    constraint = limit.constraint
    return any(one is not None for one in (constraint.min, constraint.max, constraint.enum, constraint.pattern))


_RISKS: dict[ApprovalMode, str] = {
    "read_only": "read",
    "local_write": "write_reversible",
    "network": "write_external",
    "delegated": "write_on_behalf",
    "destructive": "write_irreversible",
}


def tools(draft: Draft) -> Draft:
    """Every capability of the registry, and every permission without one, is surfaced or omitted with its reason."""
    inputs = draft.inputs
    view = inputs.view
    surface = view.tooling.surface(draft.decision, draft.facts.safety_mode)
    gates = active_gates(view.policy, draft.decision, surface, draft.facts)
    active = tuple(gate.gate.gate_id for gate in gates.active)
    shown = view.kept(
        (surface.tools, active, inputs.tokens), lambda: _shown(view, surface.tools, active, inputs.tokens)
    )
    part = ToolsPart(
        manifest=tuple(map(_own, shown.manifest)),
        blocks=shown.blocks,
        gates_active=active,
        omitted=tuple(map(_omitted, surface.left_out)),
        notes=tuple(f"{inactive_gate.gate_id} is not active: {inactive_gate.why}" for inactive_gate in gates.inactive),
    )
    return replace(draft, tools=part)


class _Shown(NamedTuple):
    manifest: tuple[ToolManifestEntry, ...]
    blocks: tuple[ContextBlock, ...]


def _shown(view: PackView, surfaced: Iterable[SurfacedTool], active: tuple[str, ...], tokens: Tokens) -> _Shown:
    """An entry and a block for each adapter, in the order of the document."""
    adapters = _by_adapter(surfaced)
    return _Shown(
        manifest=tuple(_entry(view, adapter_id, tools_) for adapter_id, tools_ in adapters.items()),
        blocks=tuple(
            instruction_block(
                f"tool_{n}",
                "tool",
                "\n".join(sorted(_told(view, surfaced_tool, active) for surfaced_tool in tools_)),
                tokens,
                classification=view.pack.pack_meta.data_classification,
                refs=tuple(surfaced_tool.capability_id for surfaced_tool in tools_),
            )
            for n, tools_ in enumerate(adapters.values())
        ),
    )


def _by_adapter(surfaced: Iterable[SurfacedTool]) -> dict[str, list[SurfacedTool]]:
    found: dict[str, list[SurfacedTool]] = {}
    for surfaced_tool in surfaced:
        found.setdefault(surfaced_tool.adapter_id, []).append(surfaced_tool)
    return found


def _entry(view: PackView, adapter_id: str, surfaced: list[SurfacedTool]) -> ToolManifestEntry:
    return ToolManifestEntry(
        adapter_id=adapter_id,
        capabilities=tuple(surfaced_tool.capability for surfaced_tool in surfaced),
        constraints={
            surfaced_tool.capability: limits(surfaced_tool.bounds) for surfaced_tool in surfaced if surfaced_tool.bounds
        },
        capability_metadata={
            surfaced_tool.capability: CapabilityMetadata(
                kind=_kind(surfaced_tool),
                risk_level=_RISKS[surfaced_tool.declared_mode],
                approval_mode=surfaced_tool.declared_mode,
                source="adapter_registry",
                input_schema=view.input_schema(surfaced_tool.adapter_id, surfaced_tool.capability),
            )
            for surfaced_tool in surfaced
        },
    )


def _own(entry: ToolManifestEntry) -> ToolManifestEntry:
    """The same for one compile alone. What is kept is shared by many, and whoever holds one may change its objects."""
    metadata = {
        name: capability_metadata
        if capability_metadata.input_schema is None
        else replace(capability_metadata, input_schema=_copied(capability_metadata.input_schema))
        for name, capability_metadata in entry.capability_metadata.items()
    }
    return replace(entry, constraints={**entry.constraints}, capability_metadata=metadata)


def _copied(schema: dict[str, Any]) -> dict[str, Any]:
    # It was read from JSON, so writing and reading it gives the same, in a tenth of the time of a deep copy.
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    return made


def _omitted(left_out: LeftOut) -> Omission:
    first = left_out.reasons[0]
    return Omission(
        kind="tool",
        id=left_out.capability_id,
        stage="tools",
        reason=first.kind,
        detail="; ".join(reason.message for reason in left_out.reasons),
        at=f"pack#{left_out.at}",
    )


def _told(view: PackView, tool: SurfacedTool, active: tuple[str, ...]) -> str:
    """One capability in one line, its id first. Gates stand in the order of the pack's gates."""
    kind = _kind(tool)
    parts = [f"{tool.capability_id}: {kind}, {tool.declared_mode}"]
    parts += [f"wait for {gate}" for gate in active if gate in tool.gate_ids]
    if gives := view.given_by.get(tool.capability_id):
        parts.append(f"gives {', '.join(gives)}")
    parts += [told for limit in limits(tool.bounds) if (told := told_of(limit, kind)) is not None]
    schema = view.input_schema(tool.adapter_id, tool.capability)
    if schema is not None:
        parts.append(f"input {quoted_json(schema)}")
    return "; ".join(parts)


def _kind(tool: SurfacedTool) -> Kind:
    return "read" if tool.declared_mode == "read_only" else "write"
