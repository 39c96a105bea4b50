"""A compiled context as the common chat APIs want it. The cache breakpoint stands at the end of the prefix.

Their names for tools are narrower than ours, so each body comes with the way back to the capability.

The schema of a tool's arguments as chat APIs take it: an object at its root, no alternatives there, short names.

What they do not take is left out here, so that what is sent refuses no arguments that the pack's schema takes. All of
it stands in the block of the tool, and the gateway judges every call by all of it.
"""

import copy
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from contextplane.compiler.errors import ChatToolsTooMany
from contextplane.compiler.hashing import text_digest
from contextplane.compiler.prompt import prefix_of, suffix_of
from contextplane.compiler.quoting import quoted_json
from contextplane.compiler.tools import Kind, is_needed
from contextplane.model.compiled_context import ArgumentLimit, CompiledContext
from contextplane.model.context_pack import ArgConstraint
from contextplane.model.value import Value

__all__ = ["ChatRequest", "anthropic_chat", "openai_chat", "schema_as_given", "schema_of_limits"]

_ALTERNATIVES = frozenset({"allOf", "anyOf", "oneOf"})
_NOT_AT_ROOT = _ALTERNATIVES | {"const", "enum", "not", "type"}
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_JSON_TYPES = {"min": "number", "max": "number", "pattern": "string"}


def schema_as_given(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema that the pack gives, in a copy: whoever sends it may change it, and the pack stays as it is."""
    kept = {name: copy.deepcopy(part) for name, part in schema.items() if name not in _NOT_AT_ROOT}
    properties: dict[str, Any] = kept.get("properties", {})
    named = {name: part for name, part in properties.items() if _KEY.fullmatch(name)}
    if "required" in kept:
        kept["required"] = [*filter(_KEY.fullmatch, kept["required"])]
    # What is closed would be closed to the arguments that are left out.
    if len(named) < len(properties):
        kept.pop("additionalProperties", None)
    if len(named) < len(properties) or not _ALTERNATIVES.isdisjoint(schema):
        kept.pop("unevaluatedProperties", None)
    return {"type": "object", **kept, "properties": named}


def schema_of_limits(limits: Iterable[ArgumentLimit], kind: Kind) -> dict[str, Any]:
    """A schema of what the constraints say; a name with dots is a way into objects.

    What an approval would lift is left to the gateway.
    """
    by_argument: dict[str, list[dict[str, Any]]] = {}
    required: dict[str, None] = {}
    for limit in limits:
        steps, needed, bound = limit.argument.split("."), is_needed(limit, kind), _schema(limit.constraint)
        if limit.constraint.unless_approved or not (needed or bound) or not all(map(_KEY.fullmatch, steps)):
            continue
        for step in reversed(steps[1:]):
            bound = {"type": "object", "properties": {step: bound}, **({"required": [step]} if needed else {})}
        by_argument.setdefault(steps[0], []).append(bound)
        if needed:
            required[steps[0]] = None
    properties = {name: parts[0] if len(parts) == 1 else {"allOf": parts} for name, parts in by_argument.items()}
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return {**made, "required": [*required]} if required else made


def _schema(constraint: ArgConstraint) -> dict[str, Any]:
    said: Mapping[str, Any] = msgspec.to_builtins(constraint)
    names = {"min": "minimum", "max": "maximum", "enum": "enum", "pattern": "pattern"}
    kinds = {_JSON_TYPES[name] for name in said if name in _JSON_TYPES}
    schema = {names[name]: [*value] if name == "enum" else value for name, value in said.items() if name in names}
    return {"type": kinds.pop(), **schema} if len(kinds) == 1 else schema


_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64
_SUFFIX = 8
_LONGEST_WORDS = 1024
_CUT = "...; see its block"
_MOST_OF_OPENAI = 128


class ChatRequest(Value, frozen=True):
    """`body` is the part of a request that the compiled context decides; `capabilities` leads back from its names."""

    body: dict[str, Any]
    capabilities: dict[str, str]


class _Tool(Value, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]


def openai_chat(compiled: CompiledContext) -> ChatRequest:
    """Messages and tools for an API of OpenAI's form, which caches whatever begins alike.

    It takes no more than 128 tools. More are refused: which of them the model can do without, nobody said.
    """
    names, tools = _tools(compiled)
    if len(tools) > _MOST_OF_OPENAI:
        raise ChatToolsTooMany(
            f"{len(tools)} tools are surfaced, and a request of this form holds {_MOST_OF_OPENAI}",
            at="compiled_context#/manifests/tool_manifest",
            hint="surface fewer: by permissions, by a lower safety_mode, or by the budget of the tool bucket",
        )
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
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in tools
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
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
        ]
    return ChatRequest(body=body, capabilities=names)


def _tools(compiled: CompiledContext) -> tuple[dict[str, str], list[_Tool]]:
    """The tools by id, so that their order in the pack does not matter, and the way back from their names."""
    told = dict(_lines(compiled))
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for entry in compiled.manifests.tool_manifest:
        for name in entry.capabilities:
            ref, metadata = f"{entry.adapter_id}.{name}", entry.capability_metadata.get(name)
            given = metadata.input_schema if metadata else None
            words = told.get(ref, ref).removesuffix(f"; input {quoted_json(given)}")
            limits = entry.constraints.get(name, ())
            found[ref] = (
                words,
                schema_as_given(given) if given else schema_of_limits(limits, metadata.kind if metadata else "write"),
            )
    names = _names(sorted(found))
    tools = [
        _Tool(name=name, description=_short(found[ref][0]), parameters=found[ref][1]) for name, ref in names.items()
    ]
    return names, tools


def _short(words: str) -> str:
    """A description of a length that is taken. All of it stands in the block of the tool."""
    return words if len(words) <= _LONGEST_WORDS else f"{words[: _LONGEST_WORDS - len(_CUT)]}{_CUT}"


def _lines(compiled: CompiledContext) -> Iterator[tuple[str, str]]:
    """Each capability, and what its block says of it."""
    for block in compiled.compiled_prompt.context_blocks:
        if block.bucket == "tool":
            yield from ((line.partition(": ")[0], line.partition(": ")[2]) for line in block.content.split("\n"))


def _names(capability_ids: Iterable[str]) -> dict[str, str]:
    """A name for each, and no name for two: what is not allowed becomes `_`.

    A long one, and one that two would share, ends in a hash. Who is named so already keeps the name.
    """
    plain = {capability_identity: _FORBIDDEN.sub("_", capability_identity) for capability_identity in capability_ids}
    shared = Counter(plain.values())
    names = {name: one for one, name in plain.items() if shared[name] == 1 and len(name) <= _LONGEST}
    for one, name in plain.items():
        if names.get(name) != one:
            names[_with_hash(name, one, names)] = one
    return dict(sorted(names.items(), key=lambda pair: pair[1]))


def _with_hash(name: str, capability_id: str, taken: Collection[str]) -> str:
    digest = text_digest(capability_id)
    while (made := f"{name[: _LONGEST - _SUFFIX - 1]}_{digest.removeprefix('sha256:')[:_SUFFIX]}") in taken:
        digest = text_digest(digest)
    return made
