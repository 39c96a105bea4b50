"""Drawn overlays of a pack, from plain narrowings to the ways in which one could widen it unnoticed.

An overlay is a list of changes: where, by ids, and the value; `REMOVED` removes the part. No code of the package is
used.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.policy_cases import Dice, drawn_condition, drawn_effect

__all__ = [
    "REMOVED",
    "DrawnChange",
    "constants_by_path",
    "drawn_changes",
    "drawn_request",
    "limit_changes",
    "narrowing_changes",
]

Json = Any
DrawnChange = tuple[str, Json]
REMOVED = object()

_CLASSES = ["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"]
_MODES = ["read_only", "local_write", "network", "delegated", "destructive"]
_RIGHTS = ["execute", "escalate", "recommend", "propose"]
_OPPOSITE = {">": ">=", ">=": ">", "<": "<=", "<=": "<", "==": "!=", "!=": "==", "===": "!==", "!==": "==="}
_ODD: list[Json] = [None, None, None, "", "other", "3000", "true", True, False, 0, 1, 2.5, -1, [], ["high"], {"k": 1}]


# --- Conditions, changed a little ---


def _places(condition: Json, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Every operator in a condition, after its place."""
    if isinstance(condition, dict):
        yield at, condition
        for operator, operands in condition.items():
            for n, operand in enumerate(operands if isinstance(operands, list) else []):
                yield from _places(operand, (*at, operator, n))


def _replaced(condition: Json, at: tuple[str | int, ...], part: Json) -> Json:
    if not at:
        return part
    whole = copy.deepcopy(condition)
    place = whole
    for step in at[:-1]:
        place = place[step]
    place[at[-1]] = part
    return whole


def _changed_part(dice: Dice, part: Json) -> Json:
    """One operator, changed in a way that a hand or an attacker would."""
    [(operator, argument)] = part.items()
    operands = argument if isinstance(argument, list) else [argument]
    if operator == "var":
        default = dice.pick([0, 1, False, True, "high", None, 5000])
        return {"var": dice.pick(["request.context.other", [operands[0], default], [operands[0]]])}
    if operator in {"and", "or"}:
        more = drawn_condition(dice, 1)
        return dice.pick(
            [
                {operator: operands[::-1]},
                {operator: operands[1:] or operands},
                {operator: [*operands, more]},
                {operator: [more, *operands]},
                {"or" if operator == "and" else "and": operands},
            ]
        )
    if operator in _OPPOSITE:
        moved = [_moved(dice, operand) for operand in operands]
        return dice.pick([{operator: moved}, {_OPPOSITE[operator]: operands}, {operator: moved}])
    if operator == "in" and isinstance(operands[-1], list):
        return {"in": [operands[0], dice.pick([operands[1][1:], [*operands[1], "other"], operands[1][:1]])]}
    return {dice.pick(["!", "!!"]): [part]}


def _moved(dice: Dice, constant: Json) -> Json:
    """A constant, moved by a little, or replaced by one of another kind."""
    if isinstance(constant, dict | list):
        return constant
    if isinstance(constant, bool):
        return not constant
    if isinstance(constant, int | float):
        return dice.pick([constant + 1, constant - 1, constant + 0.5, str(constant)])
    return dice.pick([f"{constant}x", "other", constant])


def changed_condition(dice: Dice, condition: Json) -> Json:
    """A condition that differs from this one in one or two places, in its order, or altogether."""
    roll = dice.below(100)
    if roll < 8:
        return drawn_condition(dice, 2)
    if roll < 26:
        return {
            dice.pick(["and", "or"]): dice.pick(
                [[condition, drawn_condition(dice, 1)], [drawn_condition(dice, 1), condition]]
            )
        }
    if roll < 32:
        return {dice.pick(["!", "!!"]): [condition]}
    if roll < 36:
        return dice.chance(50)
    for _ in range(1 + dice.below(2)):
        places = list(_places(condition))
        if not places:
            return drawn_condition(dice, 1)
        at, part = dice.pick(places)
        condition = _replaced(condition, at, _changed_part(dice, part))
    return condition


# --- Effects and other parts, changed a little ---


def _changed_effect(dice: Dice, effect: dict[str, Json]) -> dict[str, Json]:
    changed = copy.deepcopy(effect)
    other = drawn_effect(dice)
    name = dice.pick(["allow", "requires", "prohibits", "approval_mode", "requires_approval_gate", "arg_constraints"])
    if dice.chance(40):
        changed.pop(name, None)
    elif name == "allow":
        changed["allow"] = not effect.get("allow", False)
    elif name == "arg_constraints":
        changed[name] = _changed_bounds(dice, effect.get(name, {}))
    elif name in other:
        changed[name] = other[name]
        if isinstance(other[name], list) and dice.chance(60):
            changed[name] = [
                *effect.get(name, []),
                *(entry for entry in other[name] if entry not in effect.get(name, [])),
            ]
    return changed


def _changed_bounds(dice: Dice, bounds: dict[str, Json]) -> dict[str, Json]:
    changed = copy.deepcopy(bounds)
    argument = dice.pick([*bounds, "amount", "key"])
    constraint = changed.setdefault(argument, {})
    roll = dice.below(6)
    if roll < 2:
        name = ("max", "min")[roll]
        bound = constraint.get(name, 100)
        constraint[name] = dice.below(50) if isinstance(bound, dict) else bound + dice.pick([-1, 1])
    elif roll == 2:
        constraint["unless_approved"] = not constraint.get("unless_approved", False)
    elif roll == 3:
        constraint["required"] = not constraint.get("required", False)
    elif roll == 4:
        constraint["enum"] = dice.pick([["INR"], ["INR", "EUR"], [1, 12, "1"]])
    else:
        del changed[argument]
    return changed


def _changed_limits(dice: Dice, limits: list[Json]) -> list[Json]:
    """Limits of calls, with one that is higher, lower, gone, new, or counted over another time."""
    daily = {"per": "user", "period": "24h", "max_calls": 1 + dice.below(9)}
    if not limits or dice.chance(20):
        return [*limits, daily]
    n = dice.below(len(limits))
    name = "max" if "max" in limits[n] else "max_calls"
    changed = dice.pick(
        [
            [{**limits[n], name: limits[n][name] + 1}],
            [{**limits[n], name: max(1, limits[n][name] - 1)}],
            [{**limits[n], "per": "tenant", "period": "1h"}],
            [limits[n], {**limits[n], name: limits[n][name] + 1}],
            [],
        ]
    )
    return [*limits[:n], *changed, *limits[n + 1 :]]


def _rules(pack: Json) -> list[tuple[str, Json]]:
    return [
        (f"/policy_layer/policy_bundles/{bundle['bundle_id']}/policy_dsl/rules/{rule['rule_id']}", rule)
        for bundle in pack["policy_layer"]["policy_bundles"]
        for rule in bundle["policy_dsl"]["rules"]
    ]


def _rule_change(dice: Dice, pack: Json) -> list[DrawnChange]:
    at, rule = dice.pick(_rules(pack))
    roll = dice.below(100)
    if roll < 60:
        return [(f"{at}/if", changed_condition(dice, rule["if"]))]
    if roll < 66 and "else" in rule:
        return [(f"{at}/then", rule["else"]), (f"{at}/else", rule["then"])]
    if roll < 70:
        return [(at, REMOVED)]
    if roll < 74:
        return [(f"{at}/applies_to", {"intent": "support.refund"})]
    branch = dice.pick(["then", "else"])
    return [(f"{at}/{branch}", _changed_effect(dice, rule.get(branch, {})))]


def _new_rule(dice: Dice, pack: Json) -> list[DrawnChange]:
    bundle = dice.pick(pack["policy_layer"]["policy_bundles"])["bundle_id"]
    rule = {"rule_id": "R_NEW", "applies_to": {"intent": "support.refund"}, "if": drawn_condition(dice, 1)}
    effect = {"allow": False} if dice.chance(50) else drawn_effect(dice)
    if dice.chance(40):
        rule["decision_binding"] = dice.pick(pack["decision_layer"]["decision_specs"])["decision_key"]
    return [(f"/policy_layer/policy_bundles/{bundle}/policy_dsl/rules/R_NEW", {**rule, "then": effect})]


def _gate_change(dice: Dice, pack: Json) -> list[DrawnChange]:
    gate = dice.pick(pack["policy_layer"]["approval_gates"])
    at = f"/policy_layer/approval_gates/{gate['gate_id']}"
    roll = dice.below(100)
    if roll < 60:
        return [(f"{at}/when", changed_condition(dice, gate.get("when", True)))]
    if roll < 70 and "when" in gate:
        return [(f"{at}/when", REMOVED)]
    return [(f"{at}/ttl_seconds", max(1, gate["ttl_seconds"] + dice.pick([-1, 1])))]


def _guardrail_change(dice: Dice, pack: Json) -> list[DrawnChange]:
    kind = dice.pick(["must_refuse", "must_escalate"])
    guardrails = pack["policy_layer"]["guardrails"][kind]
    if not guardrails or dice.chance(30):
        return [(f"/policy_layer/guardrails/{kind}/late", {"id": "late", "when": drawn_condition(dice, 1)})]
    guardrail = dice.pick(guardrails)
    label = guardrail if isinstance(guardrail, str) else guardrail["id"]
    at = f"/policy_layer/guardrails/{kind}/{label}"
    if dice.chance(25):
        return [(at, REMOVED)]
    when = drawn_condition(dice, 1)
    if isinstance(guardrail, dict) and "when" in guardrail:
        when = changed_condition(dice, guardrail["when"])
    return [(at, {"id": label, "when": when})]


def _permission_change(dice: Dice, pack: Json) -> list[DrawnChange]:
    tooling = pack["tooling_layer"]
    permission = dice.pick(tooling["permissions"])
    at = f"/tooling_layer/permissions/{permission['adapter_id']}.{permission['capability']}"
    gates = [gate["gate_id"] for gate in pack["policy_layer"]["approval_gates"]]
    roll = dice.below(100)
    if roll < 15:
        return [(at, REMOVED)]
    if roll < 30:
        return [(f"{at}/allow", not permission["allow"])]
    if roll < 50:
        return [(f"{at}/requires_approval_gate", dice.pick([*gates, gates[:2], gates, REMOVED]))]
    if roll < 60:
        return [(f"{at}/intents", dice.pick([["support.refund"], ["support.refund", "support.lookup"], ["other"]]))]
    return [(f"{at}/arg_constraints", _changed_bounds(dice, permission.get("arg_constraints", {})))]


def limit_changes(dice: Dice, pack: Json) -> list[DrawnChange]:
    """One change of the limits of calls of a permission, of one that has any where there is one."""
    permissions = pack["tooling_layer"]["permissions"]
    permission = dice.pick([entry for entry in permissions if entry.get("limits")] or permissions)
    at = f"/tooling_layer/permissions/{permission['adapter_id']}.{permission['capability']}"
    return [(f"{at}/limits", _changed_limits(dice, permission.get("limits", [])))]


def _other_change(dice: Dice, pack: Json) -> list[DrawnChange]:
    adapter = dice.pick(pack["tooling_layer"]["adapter_registry"])["adapter_id"]
    spec = dice.pick(pack["decision_layer"]["decision_specs"])
    at = f"/decision_layer/decision_specs/{spec['decision_key']}"
    return [
        dice.pick(
            [
                ("/pack_meta/data_classification", dice.pick(_CLASSES)),
                (f"/tooling_layer/adapter_registry/{adapter}/approval_mode", dice.pick(_MODES)),
                (f"{at}/approval_mode", dice.pick(_MODES)),
                (f"{at}/decision_right", dice.pick(_RIGHTS)),
                (f"{at}/on_deny", dice.pick(["none", "read"])),
                (f"{at}/required_evidence", spec["required_evidence"][1:] or ["order_lookup"]),
                ("/policy_layer/guardrails/redaction_rules", dice.pick([[], ["email"], ["email", "phone"]])),
            ]
        )
    ]


_CHANGES: tuple[tuple[int, Callable[[Dice, Json], list[DrawnChange]]], ...] = (
    (35, _rule_change),
    (10, _new_rule),
    (13, _gate_change),
    (8, _guardrail_change),
    (14, _permission_change),
    (10, limit_changes),
    (10, _other_change),
)


def drawn_changes(dice: Dice, pack: Json) -> list[DrawnChange]:
    """One to three changes of different places, each of which may narrow, widen or do something else."""
    changes: list[DrawnChange] = []
    for _ in range(1 if dice.chance(60) else 2 + dice.below(2)):
        roll = dice.below(100)
        for share, draw in _CHANGES:
            roll -= share
            if roll < 0:
                drawn = draw(dice, pack)
                if not any(_overlap(at, other) for at, _ in drawn for other, _ in changes):
                    changes += drawn
                break
    return changes or _new_rule(dice, pack)


def _overlap(at: str, other: str) -> bool:
    return f"{at}/".startswith(f"{other}/") or f"{other}/".startswith(f"{at}/")


def narrowing_changes(dice: Dice, pack: Json) -> list[DrawnChange]:
    """A change that anyone would call a narrowing: one more denial, refusal or bound, or one tool less."""
    at, rule = dice.pick(_rules(pack))
    permission = dice.pick(pack["tooling_layer"]["permissions"])
    tool = f"/tooling_layer/permissions/{permission['adapter_id']}.{permission['capability']}"
    deny = {"rule_id": "R_NEW", "applies_to": {"intent": "support.refund"}, "if": drawn_condition(dice, 1)}
    bounds = {**permission.get("arg_constraints", {}), "fresh": {"max": dice.below(50)}}
    effect = rule["then"]
    prohibits = [*effect.get("prohibits", []), "adp_orders.lookup"]
    options: list[list[DrawnChange]] = [
        [(f"{at.rpartition('/')[0]}/R_NEW", {**deny, "then": {"allow": False}})],
        [("/policy_layer/guardrails/must_refuse/late", {"id": "late", "when": drawn_condition(dice, 2)})],
        [(f"{tool}/arg_constraints", bounds)],
        [(f"{at}/then", {**effect, "prohibits": list(dict.fromkeys(prohibits))})],
        [(f"{at}/then", {**effect, "allow": False})],
    ]
    if permission["allow"]:
        options += [[(tool, REMOVED)], [(f"{tool}/allow", False)]]
    if effect.get("allow") is True and rule.get("else", {}) in ({}, {"allow": False}) and set(effect) == {"allow"}:
        options += [[(f"{at}/if", {"and": [rule["if"], drawn_condition(dice, 1)]})]] * 4
    return dice.pick(options)


# --- Requests near the constants of a pack ---


def constants_by_path(value: Json) -> dict[str, list[Json]]:
    """The facts that the conditions of these documents read, and every constant in them."""
    paths: set[str] = set()
    constants: list[Json] = []

    def walk(part: Json) -> None:
        if isinstance(part, dict):
            for name, member in part.items():
                if name == "var":
                    paths.add(str((member if isinstance(member, list) else [member])[0]))
                walk(member)
        elif isinstance(part, list):
            for member in part:
                walk(member)
        elif not isinstance(part, str) or len(part) < 20:
            constants.append(part)

    walk(value)
    near = [number + step for number in constants if type(number) in {int, float} for step in (-1, 0, 0.5, 1)]
    texts = [constant for constant in constants if isinstance(constant, str | bool)]
    return {path: [*dict.fromkeys(near), *dict.fromkeys(texts)] for path in sorted(paths)}


def drawn_request(dice: Dice, facts: dict[str, Json], paths: dict[str, list[Json]]) -> dict[str, Json]:
    """These facts, with some of the facts that conditions read left out, mistyped, or near a constant."""
    changed = copy.deepcopy(facts)
    for path, constants in paths.items():
        root, *steps = path.split(".")
        if root not in {"request", "user"} or not steps or not dice.chance(60):
            continue
        value = dice.pick(constants) if constants and dice.chance(70) else dice.pick(_ODD)
        place: Json = changed[root]
        for step in steps[:-1]:
            place = place.setdefault(step, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[steps[-1]] = copy.deepcopy(value)
    return changed
