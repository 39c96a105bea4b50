"""A draft of a context pack from a service: adapters, capabilities, arguments and modes.

The draft is closed: its only rule denies, only tools that read are permitted, and everything that can destroy has an
approval gate. What was not taken over from the description is listed, and the author is told what to write.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
from contextplane.model.value import Value

__all__ = ["ServiceAdapter", "ServiceCapability", "ServiceDraft", "identifier", "render_pack", "sentence"]

_SIMPLE = frozenset({"string", "integer", "number", "boolean", "array", "object"})
_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_-]*")
_NO_TEXTS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that a YAML of one version or the other does not read as text."""

_MOST_WORDS = 2000
_WIDTH = 116


class ServiceCapability(Value, frozen=True):
    """An operation of a service. `origin`: where it is described; `notes`: what the author must look at."""

    name: str
    origin: str
    approval_mode: ApprovalMode
    description: str
    input_schema: dict[str, Any]
    idempotency_header: str | None = None
    notes: tuple[str, ...] = ()


class ServiceAdapter(Value, frozen=True):
    """A service with its operations."""

    name: str
    type: Literal["OPENAPI", "MCP"]
    capabilities: tuple[ServiceCapability, ...]

    @property
    def adapter_id(self) -> str:
        return f"adp_{self.name}"

    @property
    def approval_mode(self) -> ApprovalMode:
        return max((entry.approval_mode for entry in self.capabilities), key=APPROVAL_MODES.index)


class ServiceDraft(Value, frozen=True):
    """What the description of a service gives. `left_out`: what was not taken over, each with its place."""

    name: str
    title: str
    adapters: tuple[ServiceAdapter, ...]
    left_out: tuple[str, ...]


def identifier(text: str, known: Iterable[str] = (), *, longest: int = 80) -> str:
    """Return a name that a pack accepts, and that is none of the known ones: `GET /a/{id}` -> `get_a_id`."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_-")[:longest] or "unnamed"
    taken, number = set(known), 1
    while (unique := name if number == 1 else f"{name}_{number}") in taken:
        number += 1
    return unique


def sentence(*texts: object) -> str:
    """Return the first text that is not empty, on one line, as long as a pack accepts."""
    for text in texts:
        words = " ".join(text.split()) if isinstance(text, str) else ""
        if words:
            return words if len(words) <= _MOST_WORDS else f"{words[: _MOST_WORDS - 3]}..."
    return ""


def render_pack(draft: ServiceDraft, *, created: str, schema_path: str) -> str:
    """Return the text of the pack, in YAML with comments for its author."""
    name = draft.name
    lines = [
        f"# yaml-language-server: $schema={schema_path}",
        *_comment(f"A draft of a context pack, made from the description of: {draft.title}."),
        *_comment(
            "It is closed: the only rule denies, and only tools that read are permitted. Work through every TODO, then "
            "check it with 'ctx lint'."
        ),
        "",
        *_head(name, created),
        *_policy_lines(draft),
        *_tool_lines(draft),
        *_rest(name),
    ]
    if draft.left_out:
        lines += ["", *_comment("Not taken over from the description:")]
        lines += [line for entry in draft.left_out for line in _comment(f"- {entry}")]
    return "\n".join(lines) + "\n"


def _comment(text: str, indent: int = 0) -> Iterator[str]:
    import textwrap

    plain = "".join(char if char.isprintable() else " " for char in text)
    margin = " " * indent + "# "
    yield from textwrap.wrap(plain, _WIDTH, initial_indent=margin, subsequent_indent=margin, break_long_words=False)


def _flow(value: object) -> str:
    """Return a value in one line of JSON, which is YAML too. What cannot be seen is escaped."""
    text = msgspec.json.encode(value).decode()
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in text)


def _name(text: str) -> str:
    """Return a name as YAML reads it: in quotes where it would be something else than a text."""
    is_plain = _PLAIN_KEY.fullmatch(text) and text.lower() not in _NO_TEXTS
    return text if is_plain else _flow(text)


def _block(key: str, value: object, indent: int) -> Iterator[str]:
    """Yield a member: in one line where it fits, else its own members in lines of their own."""
    margin, name, line = " " * indent, _name(key), _flow(value)
    if len(margin) + len(name) + len(line) <= _WIDTH or not value or not isinstance(value, dict | list):
        yield f"{margin}{name}: {line}"
        return
    yield f"{margin}{name}:"
    if isinstance(value, list):
        yield from (f"{margin}  - {_flow(item)}" for item in value)
        return
    for member, part in value.items():
        yield from _block(member, part, indent + 2)


def _head(name: str, created: str) -> list[str]:
    return [
        "contract_meta:",
        f"  contract_name: ctxpack.{name}",
        "  contract_version: 1.0.0",
        "  issuer: tenant_example # TODO: the authority that answers for the pack",
        f'  created_at: "{created}"',
        '  compatibility: { requires: { runtime: ">=1.0.0" } }',
        "",
        "pack_meta:",
        f"  pack_id: ctxpack.{name}",
        "  pack_version: 0.1.0",
        "  tenant: { tenant_id: tenant_example, name: Example } # TODO: your tenant",
        "  environment_defaults: { language: en, timezone: Etc/UTC, currency: USD, region: us-east-1 } # TODO: yours",
        "  ttl_seconds: 86400",
        "  data_classification: INTERNAL # TODO: PUBLIC, INTERNAL, CONFIDENTIAL or RESTRICTED",
        "",
        "# TODO: what the business does, and what must never happen.",
        "business_context:",
        f"  summary: {{ what_we_do: Work with the service {name} }}",
        "  non_negotiables:",
        "    - never report success before the tool has confirmed it",
        "",
    ]


def _policy_lines(draft: ServiceDraft) -> list[str]:
    name = draft.name
    lines = [
        "# TODO: write the rules that allow. Until then every request is denied, and no tool is surfaced.",
        "policy_layer:",
        "  policy_bundles:",
        f"    - bundle_id: POLICY_{name.upper()}",
        "      priority: 10",
        "      policy_dsl:",
        "        language: jsonlogic",
        "        rules:",
        "          - rule_id: R_DENY_UNTIL_WRITTEN",
        f"            applies_to: {{ intent: {name}.serve }}",
        "            if: true",
        "            then: { allow: false, reason: No rule allows this intent yet. }",
        f"            decision_binding: {name}.serve.decide",
        "            rationale: A draft allows nothing.",
        "  guardrails:",
        "    redaction_rules: [pan, credit_card]",
    ]
    if gates := [adapter for adapter in draft.adapters if adapter.approval_mode == "destructive"]:
        lines.append("  approval_gates:")
    for adapter in gates:
        lines += [
            f"    - gate_id: {_gate(adapter)}",
            "      required_approver_role: operations_lead # TODO: the role that approves",
            "      ttl_seconds: 3600",
        ]
    return [*lines, ""]


def _gate(adapter: ServiceAdapter) -> str:
    return f"GATE_{adapter.name.upper()}_APPROVAL"


def _tool_lines(draft: ServiceDraft) -> Iterator[str]:
    yield "# Modes are drafted from the description of the service. TODO: confirm each of them."
    yield "tooling_layer:"
    yield "  adapter_registry:"
    for adapter in draft.adapters:
        yield f"    - adapter_id: {adapter.adapter_id}"
        yield f"      type: {adapter.type}"
        yield f"      endpoint_ref: internal://{adapter.name} # TODO: its entry in the endpoint registry"
        yield f"      capabilities: [{', '.join(_name(entry.name) for entry in adapter.capabilities)}]"
        yield f"      approval_mode: {adapter.approval_mode}"
        yield "      capability_specs:"
        for entry in adapter.capabilities:
            yield from _spec(entry)
    yield "  permissions:"
    for adapter in draft.adapters:
        for entry in adapter.capabilities:
            yield from _permission(adapter, entry)
    yield ""


def _spec(entry: ServiceCapability) -> Iterator[str]:
    yield from _comment(entry.origin, 8)
    for note in entry.notes:
        yield from _comment(f"TODO: {note}", 8)
    yield f"        {_name(entry.name)}:"
    yield f"          approval_mode: {entry.approval_mode}"
    if entry.description:
        yield f"          description: {_flow(entry.description)}"
    arguments = _short_form(entry.input_schema)
    if arguments:
        yield "          arguments:"
        yield from (f"            {_name(name)}: {_flow(argument)}" for name, argument in arguments.items())
    elif arguments is None:
        yield from _block("input_schema", entry.input_schema, 10)
    else:
        yield "          arguments: {}"
    if entry.idempotency_header:
        yield f"          idempotency_header: {entry.idempotency_header}"


def _short_form(schema: dict[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Return the arguments of a schema in the short form; None if that would lose anything."""
    if schema.keys() - {"type", "properties", "required", "additionalProperties"}:
        return None
    if schema.get("additionalProperties") is not False:
        return None
    arguments: dict[str, dict[str, Any]] = {}
    required = schema.get("required", [])
    for name, part in schema.get("properties", {}).items():
        is_simple = isinstance(part, dict) and not part.keys() - {"type", "description"}
        if not is_simple or str(part.get("type")) not in _SIMPLE or not _ARGUMENT.fullmatch(name):
            return None
        words = sentence(part.get("description"))
        arguments[name] = {
            "type": part["type"],
            **({"description": words} if words else {}),
            **({"required": True} if name in required else {}),
        }
    return arguments if set(required) <= arguments.keys() else None


def _permission(adapter: ServiceAdapter, entry: ServiceCapability) -> Iterator[str]:
    reads = entry.approval_mode == "read_only"
    yield f"    - permission_id: p_{adapter.name}_{entry.name}"
    yield f"      adapter_id: {adapter.adapter_id}"
    yield f"      capability: {_name(entry.name)}"
    yield f"      allow: {'true' if reads else 'false # TODO: true, if this agent may use it'}"
    if entry.approval_mode == "destructive":
        yield f"      requires_approval_gate: {_gate(adapter)}"


def _rest(name: str) -> list[str]:
    return [
        "# TODO: what a run can end in. Its mode and right are those of an agent that only reads.",
        "decision_layer:",
        "  decision_specs:",
        f"    - decision_key: {name}.serve.decide",
        "      version: 0.1.0",
        "      owner_role: operations # TODO: the role that answers for it",
        "      required_evidence: [policy_eval] # TODO: what must be known before it is decided",
        "      allowed_outcomes: [answered, declined]",
        "      approval_mode: read_only # TODO: at least that of every tool that it may use",
        "      decision_right: recommend # TODO: propose, recommend, execute or escalate",
        f"      inputs_schema_ref: schema://{name}.serve.inputs.v1",
        f"      outputs_schema_ref: schema://{name}.serve.outputs.v1",
        "",
        "# TODO: what success is.",
        "evaluation_layer:",
        "  eval_targets:",
        f"    - intent: {name}.serve",
        "      policy: 1.0",
        "      utility: 0.9",
        "      latency_p99_ms: 3000",
        "      safety: 1.0",
        "      economics_cents_per_decision: 1.5",
        "  release_gates:",
        "    - { metric: policy, max_delta: 0 }",
        "    - { metric: safety, max_delta: 0 }",
        "",
        "tone_and_comms:",
        "  voice_attributes: [clear, neutral]",
    ]
