"""The facts that conditions can read: seven about one request, and nothing else."""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, Self, cast

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
from contextplane.policy.clock import CLOCK_TEXTS

__all__ = ["SCOPE_FACTS", "TEXT_FACTS", "Facts", "FactsRefused", "SafetyModeUnknown", "parse_safety_mode"]

SCOPE_FACTS: Mapping[str, str] = {
    "intent": "intent",
    "channel": "request.channel",
    "role": "user.role",
    "safety_mode": "safety_mode",
    "tenant_id": "tenant_id",
}
"""Every key that `applies_to` may have, and the fact that it matches."""

TEXT_FACTS = frozenset({*SCOPE_FACTS.values(), "request.intent", *CLOCK_TEXTS})
"""Facts that are a text where they are given. `Facts.of` refuses all else, and no request has those of the clock."""

_SCOPE_PATHS = {key: path.split(".") for key, path in SCOPE_FACTS.items()}
_SHOWN = 40
_NULL = b":null"
_INDEX = re.compile("0|[1-9][0-9]{0,8}")


class SafetyModeUnknown(ContextPlaneError):
    """A safety mode that is no step of the ladder: what the run may do at most is unknown."""

    code: ClassVar[str] = "safety_mode_unknown"
    family: ClassVar[Family] = "refused"


class FactsRefused(ContextPlaneError):
    """A fact that has another type than every run gives it."""

    code: ClassVar[str] = "facts_refused"
    family: ClassVar[Family] = "refused"


class Facts:
    """The facts of one request, checked: plain JSON with a canonical form, under exactly seven names.

    `request` is the input (`intent`, `message`, `channel`, `locale`, `context`); `user` and `agent` are authenticated
    claims. A member that is null is missing and is left out, so that a default applies to both. Facts are not changed
    after construction.
    """

    __slots__ = ("data", "intent", "safety_mode")

    def __init__(self, data: dict[str, Json], intent: str, mode: ApprovalMode) -> None:
        self.data = data
        self.intent = intent
        self.safety_mode = mode

    @classmethod
    def of(  # noqa: PLR0913  the seven facts
        cls,
        *,
        request: Mapping[str, Json],
        user: Mapping[str, Json],
        agent: Mapping[str, Json],
        tenant_id: str,
        intent: str,
        safety_mode: str,
        run: Mapping[str, Json],
        checked: bool = False,
    ) -> Self:
        """Build the facts of a request; refuse wrong types and values without a canonical form.

        `checked`: the caller knows that they have a canonical form, because the input that holds them has one.
        """
        mode = parse_safety_mode(safety_mode)
        objects: dict[str, object] = {"request": request, "user": user, "agent": agent, "run": run}
        data: dict[str, Json] = {}
        for name, value in objects.items():
            if type(value) is not dict:
                raise FactsRefused("must be an object", at=f"/{name}", hint="give the object itself, not its text")
            data[name] = cast("dict[str, Json]", value)
        for name, text in (("tenant_id", tenant_id), ("intent", intent)):
            if type(text) is not str or not text:
                raise FactsRefused("must be a text", at=f"/{name}", hint="every run has one")
            data[name] = text
        if request.get("intent", intent) != intent:
            raise FactsRefused(
                "is another than the intent of the run", at="/request/intent", hint="one run, one intent"
            )
        data["safety_mode"] = mode
        _check_signals(request)
        _check_scope_fact("/request/channel", request.get("channel"))
        _check_scope_fact("/user/role", user.get("role"))
        if _NULL in (msgspec.json.encode(data) if checked else canonical(data)):
            data = {name: _without_nulls(value) for name, value in data.items()}
        return cls(data, intent, mode)

    def scope_value(self, key: str) -> Json:
        """The fact that a key of `applies_to` matches; None where it is missing."""
        value: Json = self.data
        for step in _SCOPE_PATHS[key]:
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def values_at(self, paths: Iterable[str]) -> dict[str, Json]:
        """The facts at these paths; one that is missing is left out. A path leads through objects and lists."""
        values = {path: _value_at(self.data, path) for path in paths}
        return {path: value for path, value in values.items() if value is not None}

    @property
    def context(self) -> Mapping[str, Json]:
        """`request.context`; empty where there is none."""
        return cast("Mapping[str, Mapping[str, Json]]", self.data["request"]).get("context") or {}


def parse_safety_mode(text: str) -> ApprovalMode:
    """Parse a safety mode, or raise `SafetyModeUnknown`."""
    for mode in APPROVAL_MODES:
        if text == mode and type(text) is str:
            return mode
    shown = ascii(text)[:_SHOWN]
    raise SafetyModeUnknown(
        f"{shown} is no safety mode", at="/safety_mode", hint=f"one of: {', '.join(APPROVAL_MODES)}"
    )


def _value_at(value: Json, path: str) -> Json:
    """The value at a path, as a condition reads it; None where there is none."""
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list | tuple) and _INDEX.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list | tuple) else value


def _check_scope_fact(at: str, value: Json) -> None:
    """Refuse a fact that rules apply by unless it is a text: otherwise it would match none of them."""
    if value is not None and (type(value) is not str or not value):
        raise FactsRefused("must be a text", at=at, hint="rules apply by it: give one, or leave it out")


def _check_signals(request: Mapping[str, Json]) -> None:
    """Refuse a context of the wrong shape: guardrails look into it by name."""
    context = request.get("context")
    if context is not None and type(context) is not dict:
        raise FactsRefused("must be an object", at="/request/context", hint="give named values")
    signals = None if context is None else context.get("signals")
    if signals is not None and not (isinstance(signals, list) and all(type(signal) is str for signal in signals)):
        raise FactsRefused("must be a list of labels", at="/request/context/signals", hint='write ["label"]')
