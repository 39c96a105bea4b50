"""A compiled context as the common chat APIs want it. The cache breakpoint stands at the end of the prefix.

Their names for tools are narrower than ours, so each body comes with the way back to the capability.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from contextplane.compiler.hashing import text_digest
from contextplane.compiler.prompt import prefix_of, suffix_of
from contextplane.model.compiled_context import ArgumentLimit, CompiledContext
from contextplane.model.context_pack.arguments import ArgConstraint
from contextplane.model.value import Value

__all__ = ["ChatRequest", "anthropic_chat", "openai_chat"]

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64
_SUFFIX = 8
_JSON_TYPES = {"min": "number", "max": "number", "pattern": "string"}


class ChatRequest(Value, frozen=True):
    """`body` is the part of a request that the compiled context decides; `capabilities` leads back from its names."""

    body: dict[str, Any]
    capabilities: dict[str, str]


class _Tool(Value, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]


def openai_chat(compiled: CompiledContext) -> ChatRequest:
    """Messages and tools for an API of OpenAI's form, which caches whatever begins alike."""
    names, tools = _tools(compiled)
    body: dict[str, Any] = {
        "messages": [
            {"role": "system", "content": prefix_of(compiled.compiled_prompt)},
            {"role": "user", "content": suffix_of(compiled.compiled_prompt)},
        ],
        "prompt_cache_key": (compiled.context_ledger.prefix_hash or "").removeprefix("sha256:"),
    }
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": one.name, "description": one.description, "parameters": one.parameters},
            }
            for one in tools
        ]
    return ChatRequest(body=body, capabilities=names)


def anthropic_chat(compiled: CompiledContext) -> ChatRequest:
    """Messages and tools for an API of Anthropic's form, which caches up to a mark: tools first, then the prefix."""
    names, tools = _tools(compiled)
    prefix = {"type": "text", "text": prefix_of(compiled.compiled_prompt), "cache_control": {"type": "ephemeral"}}
    body: dict[str, Any] = {
        "system": [prefix],
        "messages": [{"role": "user", "content": [{"type": "text", "text": suffix_of(compiled.compiled_prompt)}]}],
    }
    if tools:
        body["tools"] = [
            {"name": one.name, "description": one.description, "input_schema": one.parameters} for one in tools
        ]
    return ChatRequest(body=body, capabilities=names)


def _tools(compiled: CompiledContext) -> tuple[dict[str, str], list[_Tool]]:
    """The tools by id, so that their order in the pack does not matter, and the way back from their names."""
    told = dict(_lines(compiled))
    found: dict[str, dict[str, Any]] = {}
    for entry in compiled.manifests.tool_manifest:
        for name in entry.capabilities:
            metadata = entry.capability_metadata.get(name)
            given = metadata.input_schema if metadata else None
            found[f"{entry.adapter_id}.{name}"] = given or _parameters(entry.constraints.get(name, ()))
    names = _names(sorted(found))
    tools = [_Tool(name=one, description=told.get(ref, ref), parameters=found[ref]) for one, ref in names.items()]
    return names, tools


def _lines(compiled: CompiledContext) -> Iterator[tuple[str, str]]:
    """Each capability, and what its block says of it."""
    for block in compiled.compiled_prompt.context_blocks:
        if block.bucket == "tool":
            yield from ((line.partition(": ")[0], line.partition(": ")[2]) for line in block.content.split("\n"))


def _names(capability_ids: Iterable[str]) -> dict[str, str]:
    """A name for each: what is not allowed becomes `_`; a long one, and one that two would share, ends in a hash."""
    plain = {one: _FORBIDDEN.sub("_", one) for one in capability_ids}
    shared = Counter(plain.values())
    return {
        name if shared[name] == 1 and len(name) <= _LONGEST else _with_hash(name, one): one
        for one, name in plain.items()
    }


def _with_hash(name: str, capability_id: str) -> str:
    digits = text_digest(capability_id).removeprefix("sha256:")[:_SUFFIX]
    return f"{name[: _LONGEST - _SUFFIX - 1]}_{digits}"


def _parameters(limits: Iterable[ArgumentLimit]) -> dict[str, Any]:
    """A schema of what the constraints say. What an approval would lift is left to the gateway."""
    firm = [one for one in limits if not one.constraint.unless_approved]
    by_argument: dict[str, list[dict[str, Any]]] = {}
    for one in firm:
        by_argument.setdefault(one.argument, []).append(_schema(one.constraint))
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {name: parts[0] if len(parts) == 1 else {"allOf": parts} for name, parts in by_argument.items()},
    }
    required = [*dict.fromkeys(one.argument for one in firm if one.constraint.required)]
    return {**parameters, "required": required} if required else parameters


def _schema(constraint: ArgConstraint) -> dict[str, Any]:
    said: Mapping[str, Any] = msgspec.to_builtins(constraint)
    names = {"min": "minimum", "max": "maximum", "enum": "enum", "pattern": "pattern"}
    kinds = {_JSON_TYPES[name] for name in said if name in _JSON_TYPES}
    schema = {names[name]: [*value] if name == "enum" else value for name, value in said.items() if name in names}
    return {"type": kinds.pop(), **schema} if len(kinds) == 1 else schema
