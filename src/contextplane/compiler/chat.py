"""Writes a compiled context as a request of the common chat APIs.

A cache breakpoint ends what the pack decides. Tool names of these APIs are narrower than ours, so each body comes with
a map back to the capabilities. They take a schema of arguments only with an object at its root, without alternatives
there, and with short names. What they do not take is omitted, so that the sent schema refuses no arguments that the
pack accepts. The description of the tool then has the whole schema, and the gateway checks every call against
it. Tools stand in their own list and not in the text.
"""

import copy
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from contextplane.compiler.arguments import describe_arguments, drop_arguments
from contextplane.compiler.digests import text_digest
from contextplane.compiler.errors import ChatToolsTooMany
from contextplane.compiler.limits import ToolKind, is_required
from contextplane.compiler.prompt import prompt_controls, prompt_prefix, prompt_suffix
from contextplane.model.arguments import ResolvedConstraint
from contextplane.model.compiled_context import ArgumentLimit, CompiledContext
from contextplane.model.value import Value

__all__ = ["ChatRequest", "anthropic_chat", "copy_schema", "openai_chat", "schema_of_limits"]

_ALTERNATIVES = frozenset({"allOf", "anyOf", "oneOf"})
_NOT_AT_ROOT = _ALTERNATIVES | {"const", "enum", "not", "type"}
_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_BOUNDS = frozenset({"enum", "maximum", "minimum", "pattern"})
_JSON_TYPES = {"min": "number", "max": "number", "pattern": "string"}
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LENGTH = 64
_SUFFIX_LENGTH = 8
_DESCRIPTION_LENGTH = 1024
_CUT = "..."
_OPENAI_TOOLS = 128


def copy_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the pack's schema of a tool in the form that chat APIs take. The caller may change the copy."""
    kept = {name: copy.deepcopy(part) for name, part in schema.items() if name not in _NOT_AT_ROOT}
    properties: dict[str, Any] = kept.get("properties", {})
    accepted = {name: part for name, part in properties.items() if _KEY.fullmatch(name)}
    if "required" in kept:
        kept["required"] = [*filter(_KEY.fullmatch, kept["required"])]
    # A closed schema would refuse the arguments that are omitted.
    if len(accepted) < len(properties):
        kept.pop("additionalProperties", None)
    if len(accepted) < len(properties) or not _ALTERNATIVES.isdisjoint(schema):
        kept.pop("unevaluatedProperties", None)
    return {"type": "object", **kept, "properties": accepted}


def _add_limits(sent: dict[str, Any], limits: Iterable[ArgumentLimit], kind: ToolKind) -> None:
    """Add the limits of arguments to a copy of the pack's schema, where it has no such keyword of its own."""
    bounds = schema_of_limits(limits, kind)
    for name, bound in bounds["properties"].items():
        declared = sent["properties"].get(name)
        if isinstance(declared, dict) and "$ref" not in declared:
            added: dict[str, Any] = {}
            for word, value in (pair for part in bound.get("allOf", (bound,)) for pair in part.items()):
                if word in _BOUNDS and word not in declared:
                    tighter = {"minimum": max, "maximum": min}.get(word)
                    added[word] = tighter(added.get(word, value), value) if tighter else added.get(word, value)
            declared |= added
    required = [name for name in bounds.get("required", ()) if name in sent["properties"]]
    if required:
        sent["required"] = [*dict.fromkeys((*sent.get("required", ()), *required))]


def schema_of_limits(limits: Iterable[ArgumentLimit], kind: ToolKind) -> dict[str, Any]:
    """The schema of the argument limits. A name with dots is a path into objects.

    A limit that an approval would lift is left to the gateway.
    """
    by_argument: dict[str, list[dict[str, Any]]] = {}
    required: dict[str, None] = {}
    for limit in limits:
        steps, required_here, bound = limit.argument.split("."), is_required(limit, kind), _schema(limit.constraint)
        if limit.constraint.unless_approved or not (required_here or bound) or not all(map(_KEY.fullmatch, steps)):
            continue
        for step in reversed(steps[1:]):
            bound = {"type": "object", "properties": {step: bound}, **({"required": [step]} if required_here else {})}
        by_argument.setdefault(steps[0], []).append(bound)
        if required_here:
            required[steps[0]] = None
    properties = {name: parts[0] if len(parts) == 1 else {"allOf": parts} for name, parts in by_argument.items()}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": [*required]} if required else schema


def _schema(constraint: ResolvedConstraint) -> dict[str, Any]:
    bounds: Mapping[str, Any] = msgspec.to_builtins(constraint)
    names = {"min": "minimum", "max": "maximum", "enum": "enum", "pattern": "pattern"}
    kinds = {_JSON_TYPES[name] for name in bounds if name in _JSON_TYPES}
    schema = {names[name]: [*value] if name == "enum" else value for name, value in bounds.items() if name in names}
    if "equals" in bounds:
        schema["enum"] = [bounds["equals"]]
    return {"type": kinds.pop(), **schema} if len(kinds) == 1 else schema


class ChatRequest(Value, frozen=True):
    """A request to a chat API. `body`: the part that the compiled context decides.

    `capabilities`: the capability of each tool name in the body.
    """

    body: dict[str, Any]
    capabilities: dict[str, str]


class _Tool(Value, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]


def openai_chat(compiled: CompiledContext) -> ChatRequest:
    """Messages and tools for an API of OpenAI's form, which caches common prefixes.

    It takes at most 128 tools. More are refused: nothing says which of them the model can do without.
    """
    names, tools = _tools(compiled)
    if len(tools) > _OPENAI_TOOLS:
        raise ChatToolsTooMany(
            f"{len(tools)} tools are surfaced, and a request of this form holds {_OPENAI_TOOLS}",
            at="compiled_context#/manifests/tool_manifest",
            hint="surface fewer: by permissions, by a lower safety_mode, or by the budget of the tool bucket",
        )
    prompt = compiled.compiled_prompt
    body: dict[str, Any] = {
        "messages": [
            {"role": "system", "content": prompt_prefix(prompt) + prompt_controls(prompt, tools=False)},
            {"role": "user", "content": prompt_suffix(prompt)},
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
    """Messages and tools for an API of Anthropic's form, which caches tools and text up to a mark.

    The first mark ends what all requests of the pack share, the second what all steps of the run share.
    """
    names, tools = _tools(compiled)
    prompt = compiled.compiled_prompt
    cached = {"cache_control": {"type": "ephemeral"}}
    body: dict[str, Any] = {
        "system": [
            {"type": "text", "text": prompt_prefix(prompt), **cached},
            {"type": "text", "text": prompt_controls(prompt, tools=False), **cached},
        ],
        "messages": [{"role": "user", "content": [{"type": "text", "text": prompt_suffix(prompt)}]}],
    }
    if tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
        ]
    return ChatRequest(body=body, capabilities=names)


def _tools(compiled: CompiledContext) -> tuple[dict[str, str], list[_Tool]]:
    """The capability of each tool name, and the tools by id: their order in the pack does not matter."""
    lines = dict(_lines(compiled))
    by_ref: dict[str, tuple[str, dict[str, Any]]] = {}
    for entry in compiled.manifests.tool_manifest:
        for name in entry.capabilities:
            ref, metadata = f"{entry.adapter_id}.{name}", entry.capability_metadata.get(name)
            supplied = metadata.supplied_by_runtime if metadata else ()
            schema = metadata.input_schema if metadata else None
            if schema is not None:
                schema = drop_arguments(schema, supplied)
            limits = [limit for limit in entry.constraints.get(name, ()) if limit.argument not in supplied]
            sent = copy_schema(schema) if schema else schema_of_limits(limits, metadata.kind if metadata else "write")
            description = lines.get(ref, ref)
            # The arguments stand in the schema, and in words only where the schema had to leave out a part of them.
            if schema and sent == {"type": "object", "properties": {}, **schema}:
                description = description.removesuffix(f"; arguments {describe_arguments(schema)}")
            if schema:
                _add_limits(sent, limits, metadata.kind if metadata else "write")
            by_ref[ref] = (description, sent)
    names = _names(sorted(by_ref))
    tools = [
        _Tool(name=name, description=_truncate(by_ref[ref][0]), parameters=by_ref[ref][1])
        for name, ref in names.items()
    ]
    return names, tools


def _truncate(description: str) -> str:
    """Shorten a description to the length that APIs take."""
    if len(description) <= _DESCRIPTION_LENGTH:
        return description
    return f"{description[: _DESCRIPTION_LENGTH - len(_CUT)]}{_CUT}"


def _lines(compiled: CompiledContext) -> Iterator[tuple[str, str]]:
    """Yield each capability and its description in its block."""
    for block in compiled.compiled_prompt.context_blocks:
        if block.bucket == "tool":
            yield from ((line.partition(": ")[0], line.partition(": ")[2]) for line in block.content.split("\n"))


def _names(capability_ids: Iterable[str]) -> dict[str, str]:
    """Give each capability a unique tool name. Characters that are not allowed become `_`.

    A long name, and one that two capabilities would share, ends in a hash. A hash that is another name is not taken.
    """
    plain = {capability_id: _FORBIDDEN.sub("_", capability_id) for capability_id in capability_ids}
    shared = Counter(plain.values())
    names = {name: ref for ref, name in plain.items() if shared[name] == 1 and len(name) <= _NAME_LENGTH}
    for ref, name in plain.items():
        if names.get(name) != ref:
            names[_with_hash(name, ref, names)] = ref
    return dict(sorted(names.items(), key=lambda pair: pair[1]))


def _with_hash(name: str, capability_id: str, taken: Collection[str]) -> str:
    digest = text_digest(capability_id)
    stem = name[: _NAME_LENGTH - _SUFFIX_LENGTH - 1]
    while (unique := f"{stem}_{digest.removeprefix('sha256:')[:_SUFFIX_LENGTH]}") in taken:
        digest = text_digest(digest)
    return unique
