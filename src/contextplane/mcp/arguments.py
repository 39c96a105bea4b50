"""The arguments of both tools, read strictly: what is mistyped, unknown or out of place is refused, never ignored.

Null counts as left out for every argument that the schema names, as many clients send it so; but `validate_only`
decides whether something is stored, and must be true or false when it is there. Any other name is refused, null or not.
"""

from collections.abc import Mapping
from typing import cast

from contextplane.handoff.freshness import FreshnessState
from contextplane.handoff.noting import Noting, nearest, shown
from contextplane.handoff.refusals import HandoffInvalid
from contextplane.mcp.legacy import refuse_legacy
from contextplane.model.canonical import Json
from contextplane.model.handoff import Status

__all__ = ["FIELDS", "Arguments", "arguments_of"]

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
