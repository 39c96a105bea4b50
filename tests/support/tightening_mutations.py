"""Edits that look as if they only narrowed a pack. A few of them widen it all the same.

An approval lifts a bound, a denial keeps tools that read, evidence that no tool gives is attested by the request, and a
new rule leads to another decision. These are candidates: one counts only if some request gains by it.
"""

from collections.abc import Callable, Iterator
from typing import Any

from tests.support.pack_mutations import (
    DROPPED,
    MODES,
    Edit,
    branches,
    decisions,
    gates,
    intents,
    permissions,
    rules,
    tools,
)

__all__ = ["TIGHTENINGS"]

Json = Any


def add_gate(pack: Json) -> Iterator[Edit]:
    names = [gate["gate_id"] for _, gate in gates(pack)]
    for path, part in (*permissions(pack), *branches(pack)):
        named = part.get("requires_approval_gate", [])
        named = [named] if isinstance(named, str) else named
        for name in names:
            if name not in named:
                yield Edit((*path, "requires_approval_gate"), [*named, name])


def strengthen_gate(pack: Json) -> Iterator[Edit]:
    for path, gate in gates(pack):
        yield Edit((*path, "approvers"), gate.get("approvers", 1) + 1)
        yield Edit((*path, "ttl_seconds"), 60)
        if "when" in gate:
            yield Edit((*path, "when"), DROPPED)


def prohibit_more(pack: Json) -> Iterator[Edit]:
    for path, branch in branches(pack):
        named = branch.get("prohibits", [])
        for tool in [tool for tool in tools(pack) if tool not in named][:4]:
            yield Edit((*path, "prohibits"), [*named, tool])


def require_more(pack: Json) -> Iterator[Edit]:
    produced = [name for _, permission in permissions(pack) for name in permission.get("produces", ())]
    for path, branch in branches(pack):
        for name in produced:
            if name not in branch.get("requires", ()):
                yield Edit((*path, "requires"), [*branch.get("requires", []), name])


def allow_less(pack: Json) -> Iterator[Edit]:
    for path, branch in branches(pack):
        if branch.get("allow") is True:
            yield Edit((*path, "allow"), DROPPED)
        if branch.get("allow") is not False:
            yield Edit((*path, "allow"), value=False)
            yield Edit(path, {"allow": False, "reason": "No."})


def raise_branch_mode(pack: Json) -> Iterator[Edit]:
    for path, branch in branches(pack):
        for mode in MODES:
            if mode != branch.get("approval_mode"):
                yield Edit((*path, "approval_mode"), mode)


def withdraw(pack: Json) -> Iterator[Edit]:
    for path, permission in permissions(pack):
        if permission["allow"]:
            yield Edit((*path, "allow"), value=False)
            yield Edit(path, DROPPED)
            for intent in intents(pack)[:1]:
                if "intents" not in permission:
                    yield Edit((*path, "intents"), [intent])
        if len(permission.get("intents", ())) > 1:
            yield Edit((*path, "intents"), permission["intents"][:1])


def lower_decision(pack: Json) -> Iterator[Edit]:
    for path, spec in decisions(pack):
        for mode in MODES[: MODES.index(spec["approval_mode"])]:
            yield Edit((*path, "approval_mode"), mode)
        for right in ("propose", "recommend"):
            if right != spec["decision_right"]:
                yield Edit((*path, "decision_right"), right)
        if spec.get("on_deny") == "read":
            yield Edit((*path, "on_deny"), DROPPED)


def restrict_by_rule(pack: Json) -> Iterator[Edit]:
    """Add a rule that only restricts, with each decision and without one."""
    path = next(rules(pack))[0]
    count = len(pack["policy_layer"]["policy_bundles"][0]["policy_dsl"]["rules"])
    keys = [spec["decision_key"] for _, spec in decisions(pack)]
    names = [gate["gate_id"] for _, gate in gates(pack)]
    effects: list[Json] = [
        {"allow": False},
        {"prohibits": [next(iter(tools(pack)))]},
        {"requires_approval_gate": names[0]},
        {"approval_mode": "read_only"},
    ]
    for intent in intents(pack):
        for effect in effects:
            for key in (None, *keys):
                rule: Json = {
                    "rule_id": "R_ADDED",
                    "applies_to": {"intent": intent},
                    "if": {"==": [{"var": "user.role"}, "intern"]},
                    "then": effect,
                    "rationale": "Added.",
                }
                yield Edit((*path[:-1], count), {**rule, "decision_binding": key} if key else rule)


TIGHTENINGS: tuple[Callable[[Json], Iterator[Any]], ...] = (
    add_gate,
    strengthen_gate,
    prohibit_more,
    require_more,
    allow_less,
    raise_branch_mode,
    withdraw,
    lower_decision,
    restrict_by_rule,
)
