"""The arguments of both tools, read strictly: what is mistyped, unknown or out of place is refused, never ignored.

Null counts as left out for every argument that the schema names, as many clients send it so; but `validate_only`
decides whether something is stored, and must be true or false when it is there. Any other name is refused, null or not.

Calls of earlier versions of the contract: each is refused with its new form, so that a client can mend itself.
"""

from collections.abc import Mapping
from typing import cast

from contextplane.handoff.document import Noting, nearest, shown
from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.freshness import FreshnessState
from contextplane.model.handoff import Status
from contextplane.model.json.canonical import Json

__all__ = ["FIELDS", "INPUT_ACTIONS", "OUTPUT_ACTIONS", "Arguments", "arguments_of", "refuse_legacy"]

INPUT_ACTIONS = ("list", "get", "write", "ttl", "delete")
OUTPUT_ACTIONS = ("list", "read")

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


def refuse_legacy(tool: str, action: str, given: Mapping[str, Json]) -> None:
    """Refuse an action or a field that the contract does not have any more, and say what took its place."""
    if tool == "output" and "format" in given:
        raise _refused(
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
        raise _no_action(tool, action, actions, given)
    if tool == "input":
        _refuse_granular(action, given)
    elif action == "read":
        _refuse_old_reading(given)


def _no_action(tool: str, action: str, actions: tuple[str, ...], given: Mapping[str, Json]) -> HandoffInvalid:
    instead = _MAPPING[tool].get(action)
    near = nearest(action, actions)
    told: dict[str, object] = {"requested_action": action[:60], "allowed_actions": list(actions), **_ops(given)}
    if instead is None:
        meant = f"; did you mean {near!r}?" if near else f"; use one of {', '.join(actions)}"
        return _refused(f"unknown action {shown(action)}{meant}", tool=tool, action="unknown", **told)
    if tool == "output":
        told["replacement"] = _reading(given)
    return _refused(
        f"action {action!r} is not supported any more: use action='{instead['action']}'",
        tool=tool,
        action="unsupported",
        **told,
        legacy_mapping=instead,
    )


def _ops(given: Mapping[str, Json]) -> dict[str, object]:
    """With an `op`, which ones are left: none, for the document says it all."""
    return {"requested_op": given["op"], "allowed_ops": []} if "op" in given else {}


def _refuse_granular(action: str, given: Mapping[str, Json]) -> None:
    if action != "write" and "op" not in given:
        return
    for name, instead in _GRANULAR.items():
        # Null is what some clients send for every argument of the schema that they leave out. The rest is not there.
        if name in given and (given[name] is not None or name not in _STILL):
            raise _refused(
                f"{name} is not supported any more: write takes one whole document (action='write', {instead})",
                tool="input",
                action=action,
                requested_field=name,
                unsupported_field=name,
                supported_field="document",
                replacement=instead,
                contract=CONTRACT,
                allowed_actions=list(INPUT_ACTIONS),
                **_ops(given),
                legacy_mapping=_mapped_op(given.get("op")),
            )


def _mapped_op(op: Json) -> dict[str, object]:
    return _MAPPING["input"].get(op, _WRITE) if type(op) is str else _WRITE


def _refuse_old_reading(given: Mapping[str, Json]) -> None:
    for name, instead in (("mode", ["profile"]), ("cursor", ["page_token"]), ("match", ["contains"])):
        if name in given:
            fields: dict[str, object] = {"supported_field": instead[0], "supported_fields": instead}
            raise _refused(
                f"{name} is not supported any more: use {instead[0]}",
                tool="output",
                action="read",
                requested_field=name,
                unsupported_field=name,
                **fields,
                replacement=_reading(given),
            )


def _reading(given: Mapping[str, Json]) -> dict[str, object]:
    """The whole call in its new form."""
    told: dict[str, object] = {"action": "read"}
    told |= {name: given[name] for name in ("id", "name", "profile", "limit") if type(given.get(name)) in {str, int}}
    mode = given.get("mode")
    if type(mode) is str and mode in _PROFILES:
        told["profile"] = _PROFILES[mode]
    if given.get("cursor") is not None:
        told["page_token"] = "<next_page_token of the LEGEND>"  # noqa: S105  it is a placeholder
    if type(given.get("match")) is str:
        told["contains"] = given["match"]
    return told


def _refused(message: str, **details: object) -> HandoffInvalid:
    return HandoffInvalid(message, hint="details has the new form", details=details)


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
        "list": _LIST,
        "read": ("action", *_IDENTITY, "status", "freshness", "profile", "contains", "page_token", "limit", "offset"),
    },
}
"""Which arguments each action takes."""

_DECIDING = "validate_only"
_ALIAS = "identifier"  # of `write`, from the reference server, which never wrote it down

STATUSES = ("draft", "finalized")
FRESHNESS = ("fresh", "expiring_soon", "expired")
_SHOWN = 60


def arguments_of(tool: str, given: Mapping[str, Json]) -> "Arguments":
    """The arguments of a call, and which action is meant: without one `input` lists, `output` reads what is named."""
    action = given.get("action")
    if action is None:
        named = any(type(given.get(name)) is str for name in _IDENTITY)
        action = "read" if tool == "output" and named else "list"
    if type(action) is not str:
        raise HandoffInvalid(
            "action must be of type string",
            details={"tool": tool, "field": "action", "required_type": "string", "allowed_actions": [*FIELDS[tool]]},
        )
    refuse_legacy(tool, action, given)
    arguments = Arguments(tool, action, given)
    arguments.refuse_strangers()
    return arguments


class Arguments(Noting):
    """The arguments of one action. Each is read once; `check` refuses when one of those was wrong."""

    def __init__(self, tool: str, action: str, given: Mapping[str, Json]) -> None:
        super().__init__(tool, action)
        self.tool, self.action = tool, action
        self._given = given

    def refuse_strangers(self) -> None:
        """Note each argument that this action does not take, with the one that was probably meant."""
        allowed = FIELDS[self.tool][self.action]
        elsewhere = {name for fields in FIELDS[self.tool].values() for name in fields}
        for name in sorted(self._given.keys() - {*allowed, *((_ALIAS,) if self.action == "write" else ())}):
            if name in elsewhere and name != _DECIDING and self._given[name] is None:
                continue
            near = nearest(name, allowed)
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
        """A text, trimmed; None when there is none."""
        value = self._given.get(name)
        return None if value is None else (self.typed(value, str, name) or "").strip() or None

    def token(self) -> str | None:
        """The page token: one that is empty is no token of ours, and not the same as none."""
        value = self._given.get("page_token")
        return None if value is None else (self.typed(value, str, "page_token") or "").strip()

    def number(self, name: str, *, low: int, high: int | None = None) -> int | None:
        value = self._given.get(name)
        if value is None or self.typed(value, int, name) is None:
            return None
        return self.within(value, low, high, name)

    def flag(self, name: str) -> bool:
        """True or false; false when it is not there at all."""
        return name in self._given and self.typed(self._given[name], bool, name) is True

    def choice(self, name: str, allowed: tuple[str, ...]) -> str | None:
        value = self.words(name)
        if value is None or value.lower() in allowed:
            return value and value.lower()
        self.note(
            name, f"is none of {', '.join(allowed)}: {shown(value)}", requested=value[:_SHOWN], allowed=list(allowed)
        )
        return None

    def status(self) -> Status | None:
        return cast("Status | None", self.choice("status", STATUSES))

    def freshness(self) -> FreshnessState | None:
        return cast("FreshnessState | None", self.choice("freshness", FRESHNESS))

    def identity(self) -> str | None:
        """The pack that is meant: the id, or else the name. Either may hold the other."""
        found = [self.words(name) for name in (*_IDENTITY, *((_ALIAS,) if self.action == "write" else ()))]
        return next((one for one in found if one is not None), None)

    def needed_identity(self) -> str:
        identity = self.identity()
        if identity is None:
            self.check()
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
        return self._given.get(name)
