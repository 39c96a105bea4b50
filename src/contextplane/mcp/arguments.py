"""The arguments of both tools, read strictly.

A mistyped, unknown or misplaced argument is refused, never ignored. Null counts as left out for every argument that the
schema names, and so does false for a flag: the strict mode of OpenAI makes a model send every argument. Any other name
is refused, null or not. A call of an earlier version of the contract is refused with its new form, so that a client can
correct itself.
"""

from collections.abc import Mapping
from typing import cast

from contextplane.app.handoff.contract import FreshnessState, HandoffInputReader, HandoffInvalid, quote_short
from contextplane.mcp.schemas import FRESHNESS, STATUS
from contextplane.model.handoff import Status
from contextplane.model.json.canonical import Json
from contextplane.model.suggestion import closest_name

__all__ = ["FIELDS", "INPUT_ACTIONS", "OUTPUT_ACTIONS", "Arguments", "read_arguments", "refuse_legacy"]

INPUT_ACTIONS = ("list", "get", "write", "ttl", "delete")
OUTPUT_ACTIONS = ("list", "read")

# --- calls of earlier versions ----------------------------------------------------------------------------------------

CONTRACT = "document_full_replace"
_WRITE: dict[str, object] = {"action": "write", "required_fields": ["document"], "contract": CONTRACT}
_TTL: dict[str, object] = {"action": "ttl", "required_fields": ["id", "expected_revision"]}
_DELETE: dict[str, object] = {"action": "delete", "required_fields": ["id"]}
_READ: dict[str, object] = {"action": "read", "required_fields": ["id"]}
_EDITS = (
    "create",
    "upsert_section",
    "upsert_ref",
    "upsert_diagram",
    "delete_section",
    "delete_ref",
    "delete_diagram",
    "set_meta",
    "set_status",
)
_MAPPING: dict[str, dict[str, dict[str, object]]] = {
    "input": {**dict.fromkeys(_EDITS, _WRITE), "touch_ttl": _TTL, "delete_pack": _DELETE},
    "output": {"get": _READ},
}
# Fields of `write` that changed one thing at a time. All of them are part of the document now.
_GRANULAR = {
    "op": "document",
    "snapshot": "document",
    "section_key": "document.sections[].key",
    "section_title": "document.sections[].title",
    "section_description": "document.sections[].description",
    "section_order": "document.sections",
    "ref_key": "document.sections[].refs[].key",
    "ref_title": "document.sections[].refs[].title",
    "ref_why": "document.sections[].refs[].why",
    "path": "document.sections[].refs[].path",
    "line_start": "document.sections[].refs[].line_start",
    "line_end": "document.sections[].refs[].line_end",
    "group": "document.sections[].refs[].group",
    "diagram_key": "document.sections[].diagrams[].key",
    "mermaid": "document.sections[].diagrams[].mermaid",
    "diagram_why": "document.sections[].diagrams[].why",
    "title": "document.title",
    "brief": "document.brief",
    "tags": "document.tags",
    "ttl_minutes": "document.ttl_minutes",
    "status": "document.status",
}
_STILL = ("ttl_minutes", "status")  # of these, arguments of other actions
_PROFILES = {"full": "reviewer", "compact": "orchestrator"}


def refuse_legacy(tool: str, action: str, arguments: Mapping[str, Json]) -> None:
    """Refuse an action or a field that the contract no longer has, and name its replacement."""
    if tool == "output" and "format" in arguments:
        raise _legacy_refusal(
            "format is not supported: output is always markdown",
            tool=tool,
            action=action,
            field="format",
            unsupported_field="format",
            required_mode="markdown",
            replacement_hint="leave format out",
        )
    actions = INPUT_ACTIONS if tool == "input" else OUTPUT_ACTIONS
    if action not in actions:
        raise _no_action(tool, action, actions, arguments)
    if tool == "input":
        _refuse_granular(action, arguments)
    elif action == "read":
        _refuse_old_read(arguments)


def _no_action(tool: str, action: str, actions: tuple[str, ...], arguments: Mapping[str, Json]) -> HandoffInvalid:
    instead = _MAPPING[tool].get(action)
    near = closest_name(action, actions)
    details: dict[str, object] = {"requested_action": action[:60], "allowed_actions": list(actions), **_ops(arguments)}
    if instead is None:
        meant = f"; did you mean {near!r}?" if near else f"; use one of {', '.join(actions)}"
        return _legacy_refusal(f"unknown action {quote_short(action)}{meant}", tool=tool, action="unknown", **details)
    if tool == "output":
        details["replacement"] = _new_read_call(arguments)
    return _legacy_refusal(
        f"action {action!r} is not supported any more: use action='{instead['action']}'",
        tool=tool,
        action="unsupported",
        **details,
        legacy_mapping=instead,
    )


def _ops(arguments: Mapping[str, Json]) -> dict[str, object]:
    """The details of a call with an `op`: no op is left, because a write replaces the whole document."""
    return {"requested_op": arguments["op"], "allowed_ops": []} if "op" in arguments else {}


def _refuse_granular(action: str, arguments: Mapping[str, Json]) -> None:
    """Refuse a field that changed one part of a pack at a time."""
    if action != "write" and "op" not in arguments:
        return
    for name, instead in _GRANULAR.items():
        # Some clients send null for every argument of the schema that they leave out. Other names are not in it.
        if name in arguments and (arguments[name] is not None or name not in _STILL):
            raise _legacy_refusal(
                f"{name} is not supported any more: write takes one whole document (action='write', {instead})",
                tool="input",
                action=action,
                requested_field=name,
                unsupported_field=name,
                supported_field="document",
                replacement=instead,
                contract=CONTRACT,
                allowed_actions=list(INPUT_ACTIONS),
                **_ops(arguments),
                legacy_mapping=_mapped_op(arguments.get("op")),
            )


def _mapped_op(op: Json) -> dict[str, object]:
    return _MAPPING["input"].get(op, _WRITE) if type(op) is str else _WRITE


def _refuse_old_read(arguments: Mapping[str, Json]) -> None:
    for name, instead in (("mode", ["profile"]), ("cursor", ["page_token"]), ("match", ["contains"])):
        if name in arguments:
            fields: dict[str, object] = {"supported_field": instead[0], "supported_fields": instead}
            raise _legacy_refusal(
                f"{name} is not supported any more: use {instead[0]}",
                tool="output",
                action="read",
                requested_field=name,
                unsupported_field=name,
                **fields,
                replacement=_new_read_call(arguments),
            )


def _new_read_call(arguments: Mapping[str, Json]) -> dict[str, object]:
    """The arguments of an old `read` in their new form."""
    still = ("id", "name", "profile", "limit")
    call: dict[str, object] = {"action": "read"}
    call |= {name: arguments[name] for name in still if type(arguments.get(name)) in {str, int}}
    mode = arguments.get("mode")
    if type(mode) is str and mode in _PROFILES:
        call["profile"] = _PROFILES[mode]
    if arguments.get("cursor") is not None:
        call["page_token"] = "<next_page_token of the LEGEND>"  # noqa: S105  it is a placeholder
    if type(arguments.get("match")) is str:
        call["contains"] = arguments["match"]
    return call


def _legacy_refusal(message: str, **details: object) -> HandoffInvalid:
    return HandoffInvalid(message, hint="details has the new form", details=details)


# --- arguments --------------------------------------------------------------------------------------------------------

_LIST = ("action", "status", "freshness", "query", "limit", "offset")
_IDENTITY = ("id", "name")
FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "input": {
        "list": _LIST,
        "get": ("action", *_IDENTITY, "freshness"),
        "write": ("action", *_IDENTITY, "document", "expected_revision", "validate_only"),
        "ttl": ("action", *_IDENTITY, "expected_revision", "ttl_minutes", "extend_minutes"),
        "delete": ("action", *_IDENTITY),
    },
    "output": {
        "list": (*_LIST, "structured"),
        "read": (
            *("action", *_IDENTITY, "status", "freshness", "profile", "contains", "page_token", "limit", "offset"),
            "structured",
        ),
    },
}
"""The arguments of each action of each tool."""

_FLAGS = ("validate_only", "structured")
_OF_CLIENTS = frozenset({"wait_for_previous"})  # Gemini CLI adds it to the schema of every tool, and sends it on
_ALIAS = "identifier"  # of `write`: an undocumented argument of the reference server

_SHOWN = 60


def read_arguments(tool: str, values: Mapping[str, Json]) -> "Arguments":
    """The arguments of a call, and its action.

    Without an action `input` lists; `output` reads when a pack is named, and else lists.
    """
    values = {name: value for name, value in values.items() if name not in _OF_CLIENTS}
    action = values.get("action")
    if action is None:
        named = any(type(values.get(name)) is str for name in _IDENTITY)
        action = "read" if tool == "output" and named else "list"
    if type(action) is not str:
        raise HandoffInvalid(
            "action must be of type string",
            details={"tool": tool, "field": "action", "required_type": "string", "allowed_actions": [*FIELDS[tool]]},
        )
    refuse_legacy(tool, action, values)
    arguments = Arguments(tool, action, values)
    arguments.note_unknown()
    return arguments


class Arguments(HandoffInputReader):
    """The arguments of one action. Each is read once; `raise_problems` raises when one was invalid."""

    def __init__(self, tool: str, action: str, values: Mapping[str, Json]) -> None:
        super().__init__(tool, action)
        self.tool, self.action = tool, action
        self._values = values

    def note_unknown(self) -> None:
        """Note each argument that this action does not take, with the name that was probably meant."""
        allowed = FIELDS[self.tool][self.action]
        elsewhere = {name for fields in FIELDS[self.tool].values() for name in fields}
        for name in sorted(self._values.keys() - {*allowed, *((_ALIAS,) if self.action == "write" else ())}):
            value = self._values[name]
            if name in elsewhere and (value is None or (value is False and name in _FLAGS)):
                continue
            near = closest_name(name, allowed)
            what = f"is no argument of action {self.action!r}" if name in elsewhere else "is not known"
            guidance: dict[str, object] = {"supported_field": near} if near and name not in elsewhere else {}
            meant = f"; did you mean {near}?" if guidance else f" (allowed: {', '.join(allowed)})"
            self.note(
                name[:_SHOWN],
                what + meant,
                requested_field=name[:_SHOWN],
                unsupported_field=name[:_SHOWN],
                **guidance,
                allowed_fields=list(allowed),
            )

    def words(self, name: str) -> str | None:
        """A text without surrounding white space; None when it is empty or left out."""
        value = self._values.get(name)
        return None if value is None else (self.of_type(value, str, name) or "").strip() or None

    def token(self) -> str | None:
        """The page token. An empty one is not the same as none: it is refused."""
        value = self._values.get("page_token")
        return None if value is None else (self.of_type(value, str, "page_token") or "").strip()

    def number(self, name: str, *, low: int, high: int | None = None) -> int | None:
        value = self._values.get(name)
        number = None if value is None else self.integer(value, name)
        return None if number is None else self.within(number, low, high, name)

    def flag(self, name: str) -> bool:
        """A boolean, false when the argument is left out."""
        value = self._values.get(name)
        return value is not None and self.of_type(value, bool, name) is True

    def choice(self, name: str, allowed: tuple[str, ...], *, exact: bool = False) -> str | None:
        """One of the allowed texts; in any case, unless `exact`."""
        value = self.words(name)
        if value is None:
            return None
        choice = value if exact else value.lower()
        if choice in allowed:
            return choice
        self.note(
            name,
            f"is none of {', '.join(allowed)}: {quote_short(value)}",
            requested=value[:_SHOWN],
            allowed=list(allowed),
        )
        return None

    def status(self) -> Status | None:
        return cast("Status | None", self.choice("status", STATUS))

    def freshness(self) -> FreshnessState | None:
        return cast("FreshnessState | None", self.choice("freshness", FRESHNESS))

    def identity(self) -> str | None:
        """The pack: its `id`, or else its `name`. Either argument may hold the other."""
        texts = [self.words(name) for name in (*_IDENTITY, *((_ALIAS,) if self.action == "write" else ()))]
        return next((text for text in texts if text is not None), None)

    def require_identity(self) -> str:
        identity = self.identity()
        if identity is None:
            self.raise_problems()
            raise HandoffInvalid(
                f"{self.tool} {self.action} needs the pack: id or name",
                details={
                    "tool": self.tool,
                    "action": self.action,
                    "required_fields": list(_IDENTITY),
                    "mutually_interchangeable": list(_IDENTITY),
                },
            )
        return identity

    def value(self, name: str) -> Json:
        return self._values.get(name)
