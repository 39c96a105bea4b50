"""Drawn policies, tools and requests: small, and rich in disagreement between rules.

Everything is drawn by dice. Seeded dice are fast and repeatable; dice that hypothesis throws are slow, and shrink what
fails. No code of the package is used.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

__all__ = [
    "Dice",
    "drawn_condition",
    "drawn_effect",
    "drawn_facts",
    "drawn_policy",
    "drawn_request_facts",
    "drawn_specs",
    "drawn_tooling",
    "seeded",
]

T = TypeVar("T")
Json = Any

_MODES = ["read_only", "local_write", "network", "delegated", "destructive"]
_INTENTS = ["support.refund", "support.lookup", "billing.dispute"]
_ROLES = ["support_agent", "manager", "finance_lead"]
_CHANNELS = ["app_chat", "email"]
_TENANTS = ["tenant_a", "tenant_b"]
_GATES = ["GATE_A", "GATE_B", "GATE_C"]
_LABELS = ["fraud", "no_identity", "flag"]
_ADAPTERS = ["adp_orders", "adp_payments", "adp_mail"]
_CAPABILITIES = ["lookup", "issue", "send"]
_TOOLS = [f"{adapter}.{capability}" for adapter in _ADAPTERS for capability in _CAPABILITIES]
_EVIDENCE = ["order_lookup", "identity", "policy_eval"]
_DECISIONS = ["refund.execute", "dispute.open"]
_PATHS = [
    *("request.context.amount", "request.context.flag", "request.context.kind", "request.context.tags"),
    *("request.context.nested.level", "request.channel", "user.role", "user.tenure_days", "safety_mode", "intent"),
    *("tenant_id", "run.locale", "request.context.tags.0", "run.hour", "run.date"),
]
_CONSTANTS: list[Json] = [
    *(0, 1, 12, 3000, 2.5, -1, "", "high", "support_agent", "12", "2.5", "true", "1d", "24h", True, False, None),
]
_VALUES: list[Json] = [*_CONSTANTS, [], ["high"], [1, 12], ["support_agent", 3000], ["24h", None], {"timestamp": "1d"}]
_ORDERED = ["<", "<=", ">", ">="]
_EQUAL = ["==", "===", "!=", "!=="]
_LOOPS = ["some", "all", "none"]
_NUMBERS: list[Json] = [0, 1, 12, 3000, 4200, 2.5, -1]
_TEXTS: list[Json] = ["high", "low", "support_agent"]
_ITEMS: list[Json] = [
    [{"amount": 12, "kind": "high", "parts": [{"n": 1}]}, {"amount": 4200, "kind": "low", "parts": []}],
    [{"amount": 0, "kind": "low", "parts": [{"n": 12}, {"n": 0}]}],
    [{"amount": 3000}, {"kind": "high", "parts": [{}, {"n": 1}]}],
    [{"amount": True, "kind": 12, "parts": {"n": 1}}, 12, "high", {"amount": "2.5"}],
    [[{"amount": 4200}], [3000, None], None, []],
    [],
]
"""Lists whose elements have what is read of them, lack it, or have it of another kind."""

_USUAL: dict[str, list[Json]] = {
    "request.context.amount": _NUMBERS,
    "user.tenure_days": _NUMBERS,
    "request.context.nested.level": _NUMBERS,
    "request.context.flag": [True, False],
    "request.context.kind": _TEXTS,
    "request.context.tags": [["high"], ["low", 12], []],
    "request.channel": [*_CHANNELS],
    "user.role": [*_ROLES],
    "safety_mode": [*_MODES],
    "intent": [*_INTENTS],
    "tenant_id": [*_TENANTS],
    "run.hour": [0, 9, 12, 18, 23],
    "run.weekday": [1, 5, 6, 7],
    "run.date": ["2026-11-16", "2026-12-25"],
}
"""What stands in these facts as a rule, and what they are then compared with."""

_COMPARED = sorted(path for path, values in _USUAL.items() if not isinstance(values[0], list))
_ITEM = "request.context.items"
_MEASURED = ["request.context.amount", "user.tenure_days", "request.context.nested.level", "run.hour", "run.weekday"]


class Dice:
    """Whole numbers below a bound, and what can be drawn with them."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self.below = below

    def pick(self, among: Sequence[T]) -> T:
        return among[self.below(len(among))]

    def some(self, among: Sequence[T], most: int) -> list[T]:
        """Up to so many, each once, in the order in which they stand."""
        chosen = {self.below(len(among)) for _ in range(self.below(most + 1))}
        return [among[n] for n in sorted(chosen)]

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent


def seeded(seed: int) -> Dice:
    """Dice that fall the same way for the same seed: Knuth's linear generator of 64 bits, its upper half."""
    state = (seed * 2 + 1) * 0x9E3779B97F4A7C15 % 2**64

    def below(bound: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % bound

    return Dice(below)


def drawn_policy(dice: Dice) -> tuple[dict[str, Json], dict[str, str]]:
    """A policy layer, and the approval mode of each decision that its rules are bound to."""
    names = ["B_ONE", "B_TWO", "A_TWO"][: 1 + dice.below(3)]
    policy = {
        "policy_bundles": [
            {
                "bundle_id": name,
                "priority": dice.below(3),
                "policy_dsl": {"language": "jsonlogic", "rules": [_rule(dice, n) for n in range(1 + dice.below(4))]},
            }
            for name in names
        ],
        "guardrails": {"must_refuse": _guardrails(dice), "must_escalate": _guardrails(dice), "redaction_rules": []},
        "approval_gates": [_gate(dice, name) for name in _GATES],
    }
    return policy, {name: dice.pick(_MODES) for name in dice.some(_DECISIONS, 2)}


def _rule(dice: Dice, n: int) -> dict[str, Json]:
    scope: dict[str, Json] = {}
    if dice.chance(85):
        scope["intent"] = dice.pick(_INTENTS) if dice.chance(40) else dice.some(_INTENTS, 3) or _INTENTS
    for key, named in (("channel", _CHANNELS), ("role", _ROLES), ("safety_mode", _MODES), ("tenant_id", _TENANTS)):
        if dice.chance(8):
            scope[key] = dice.pick(named) if dice.chance(50) else dice.some(named, 3) or named[0]
    rule = {"rule_id": f"R_{n}", "applies_to": scope, "if": drawn_condition(dice, 3), "then": drawn_effect(dice)}
    if dice.chance(40):
        rule["else"] = drawn_effect(dice)
    if dice.chance(60):
        rule["decision_binding"] = dice.pick(_DECISIONS)
    return rule


def drawn_effect(dice: Dice) -> dict[str, Json]:
    effect: dict[str, Json] = {}
    if dice.chance(80):
        effect["allow"] = dice.chance(90)
    if dice.chance(15):
        effect["reason"] = "because"
    if dice.chance(25):
        effect["requires"] = dice.some(_EVIDENCE, 2)
    if dice.chance(25):
        effect["prohibits"] = dice.some(_TOOLS, 3)
    if dice.chance(30):
        effect["approval_mode"] = dice.pick(_MODES)
    if dice.chance(25):
        effect["requires_approval_gate"] = _gate_names(dice)
    if dice.chance(20):
        constraints = {"amount": _constraint(dice), "key": {"required": dice.chance(50)}}
        scoped: dict[str, Json] = {tool: {"amount": _constraint(dice)} for tool in dice.some(_TOOLS, 2)}
        effect["arg_constraints"] = {**constraints, **scoped} if dice.chance(70) else scoped
    return effect


def _gate_names(dice: Dice) -> Json:
    return dice.pick(_GATES) if dice.chance(70) else dice.some(_GATES, 3) or [_GATES[0]]


def _constraint(dice: Dice) -> dict[str, Json]:
    """A bound that is a value, or that of a fact."""
    if dice.chance(60):
        return {"max": dice.below(5000)}
    path, name = dice.pick(_PATHS), dice.pick(["min", "max", "equals"])
    return {name: {"var": path if dice.chance(60) else [path, dice.pick(_NUMBERS)]}}


def _guardrails(dice: Dice) -> list[Json]:
    return [
        label
        if dice.chance(60)
        else {"id": label, "when": {"and": [drawn_condition(dice, 2), drawn_condition(dice, 2)]}, "message": "no"}
        for label in dice.some(_LABELS, 1)
        if dice.chance(60)
    ]


def _gate(dice: Dice, name: str) -> dict[str, Json]:
    gate = {"gate_id": name, "required_approver_role": "finance_lead", "ttl_seconds": 60}
    return {**gate, "when": drawn_condition(dice, 2)} if dice.chance(70) else gate


def drawn_condition(dice: Dice, depth: int) -> Json:
    """Mostly something that is true or false; sometimes a value that is neither."""
    roll = dice.below(100)
    if depth and roll < 35:
        operator = dice.pick(["and", "or"])
        return {operator: [drawn_condition(dice, depth - 1) for _ in range(1 + dice.below(3))]}
    if depth and roll < 45:
        return {dice.pick(["!", "!!"]): [drawn_condition(dice, depth - 1)]}
    if depth and roll < 50:
        return {dice.pick(["if", "?:"]): [drawn_condition(dice, depth - 1) for _ in range(3)]}
    if roll < 72:
        path = dice.pick(_COMPARED)
        return {dice.pick(_EQUAL): [_variable(dice, path), dice.pick(_USUAL[path])]}
    if roll < 88:
        return {dice.pick(_ORDERED): [_variable(dice, dice.pick(_MEASURED)), dice.pick(_NUMBERS)]}
    return _wild(dice) if roll < 91 else _leaf(dice)


def _wild(dice: Dice) -> Json:
    """A comparison of things that need not be of one kind."""
    if dice.chance(50):
        return {dice.pick(_EQUAL): [_operand(dice), dice.pick(_CONSTANTS)]}
    return {dice.pick(_ORDERED): [_operand(dice), dice.pick([0, 12, 3000, 2.5, "high", "2h"])]}


def _leaf(dice: Dice) -> Json:
    leaves: list[Callable[[], Json]] = [
        lambda: {"in": [_variable(dice), dice.pick([["high", 12], "high", ["support_agent"], ["1d"]])]},
        lambda: {dice.pick(_LOOPS): [_variable(dice), {dice.pick(_EQUAL): [{"var": ""}, dice.pick(_CONSTANTS)]}]},
        lambda: {"!": [{"missing": dice.some(_PATHS, 2)}]},
        lambda: {"!!": [{"missing_some": [1, dice.some(_PATHS, 2)]}]},
        lambda: {"<": [0, _operand(dice), 3000]},
        lambda: {"==": [{"cat": [dice.pick(["hi", "su"]), dice.pick(["gh", 12])]}, _variable(dice)]},
        lambda: {"==": [{"substr": ["highest", 0, 4]}, _variable(dice)]},
        lambda: {"in": [dice.pick(_CONSTANTS), _variable(dice) if dice.chance(50) else {"merge": [["high"], [12, 0]]}]},
        lambda: {"!!": [{"filter": [_variable(dice), {"==": [{"var": ""}, "high"]}]}]},
        lambda: {">": [{"reduce": [_variable(dice), {"+": [{"var": "accumulator"}, 1]}, 0]}, dice.below(3)]},
        lambda: _variable(dice),
        lambda: dice.chance(50),
    ]
    return _of_items(dice) if dice.chance(30) else dice.pick(leaves)()


def _of_items(dice: Dice) -> Json:
    """What goes through a list of objects, and reads of each what it may lack."""
    items = _variable(dice, _ITEM) if dice.chance(90) else {"var": [_ITEM, dice.pick([[], [12], [[]]])]}
    if dice.chance(25):
        items = {"filter": [items, _of_item(dice, 0)]}
    elif dice.chance(10):
        items = dice.pick([{"merge": [items, []]}, {"if": [dice.chance(80), items, 12]}, {"map": [items, {"var": ""}]}])
    if dice.chance(30):
        member = dice.pick(["current.amount", "current.parts.0.n", "current", "current.kind"])
        total = {"+": [{"var": "accumulator"}, _variable(dice, member)]}
        return {">": [{"reduce": [items, total, 0]}, dice.pick(_NUMBERS)]}
    return {dice.pick(_LOOPS): [items, _of_item(dice, 2)]}


def _of_item(dice: Dice, depth: int) -> Json:
    """A condition on one item."""
    if depth and dice.chance(30):
        return {dice.pick(["and", "or"]): [_of_item(dice, depth - 1) for _ in range(2)]}
    if depth and dice.chance(25):
        each = {dice.pick(_ORDERED): [_variable(dice, dice.pick(["n", "amount"])), dice.pick(_NUMBERS)]}
        return {dice.pick(_LOOPS): [_variable(dice, dice.pick(["parts", ""])), each]}
    if dice.chance(50):
        return {dice.pick(_ORDERED): [_variable(dice, dice.pick(["amount", "0", "parts.0.n"])), dice.pick(_NUMBERS)]}
    return {dice.pick(_EQUAL): [_variable(dice, dice.pick(["kind", ""])), dice.pick(["high", 12, None])]}


def _operand(dice: Dice) -> Json:
    roll = dice.below(10)
    if roll < 7:
        return _variable(dice)
    if roll < 9:
        return {dice.pick(["+", "-", "*", "/", "%"]): [_variable(dice), dice.pick([2, 10, _variable(dice)])]}
    return {dice.pick(["max", "min"]): [_variable(dice), dice.pick([1, 3000])]}


def _variable(dice: Dice, path: str | None = None) -> Json:
    path = dice.pick(_PATHS) if path is None else path
    roll = dice.below(10)
    if roll < 6:
        return {"var": path}
    return {"var": [path]} if roll < 7 else {"var": [path, dice.pick(_USUAL.get(path, _CONSTANTS))]}


def drawn_tooling(dice: Dice) -> dict[str, Json]:
    adapters: list[dict[str, Json]] = [
        {
            "adapter_id": name,
            "type": "INTERNAL",
            "endpoint_ref": "internal://x",
            "capabilities": dice.some(_CAPABILITIES, 3) or ["lookup"],
            "approval_mode": dice.pick(_MODES),
        }
        for name in _ADAPTERS[: 1 + dice.below(3)]
    ]
    for adapter in adapters:
        lower = _MODES[: 1 + _MODES.index(adapter["approval_mode"])]
        specs = {name: {"approval_mode": dice.pick(lower)} for name in adapter["capabilities"] if dice.chance(20)}
        if specs:
            adapter["capability_specs"] = specs
    declared = [
        f"{adapter['adapter_id']}.{capability}" for adapter in adapters for capability in adapter["capabilities"]
    ]
    named = [dice.pick(declared if dice.chance(90) else _TOOLS) for _ in range(1 + dice.below(6))]
    return {"adapter_registry": adapters, "permissions": [_permission(dice, n, tool) for n, tool in enumerate(named)]}


def _permission(dice: Dice, n: int, tool: str) -> dict[str, Json]:
    adapter, _, capability = tool.partition(".")
    permission = {"permission_id": f"p_{n}", "adapter_id": adapter, "capability": capability, "allow": dice.chance(90)}
    if dice.chance(40):
        permission["requires_approval_gate"] = _gate_names(dice)
    if dice.chance(30):
        per = dice.pick(["run", "user", "tenant"])
        limit: dict[str, Json] = {"per": per} | ({"period": "24h"} if per != "run" else {})
        most = {"max_calls": 3} if dice.chance(50) else {"sum_of": "amount", "max": 500}
        permission["limits"] = [limit | most]
        permission["arg_constraints"] = {"amount": {"min": 1}, "other": _constraint(dice)}
    if dice.chance(15):
        permission["intents"] = dice.some(_INTENTS, 2) or [_INTENTS[0]]
    return permission


def drawn_specs(dice: Dice) -> list[Json]:
    """The decisions that an intent may end in."""
    return [
        {
            "decision_key": key,
            "version": "1.0.0",
            "owner_role": "manager",
            "required_evidence": [],
            "allowed_outcomes": ["done"],
            "approval_mode": dice.pick(_MODES) if dice.chance(40) else "destructive",
            "decision_right": dice.pick(["propose", "recommend", "escalate"]) if dice.chance(20) else "execute",
            "inputs_schema_ref": "schema://in",
            "outputs_schema_ref": "schema://out",
            **({"on_deny": dice.pick(["none", "read"])} if dice.chance(60) else {}),
        }
        for key in _DECISIONS
        if dice.chance(85)
    ]


def drawn_facts(dice: Dice) -> dict[str, Json]:
    intent = dice.pick(_INTENTS) if dice.chance(95) else "nobody.asked"
    context = {name: _fact(dice, f"request.context.{name}") for name in ("amount", "flag", "kind", "tags")}
    context |= {label: dice.pick(_VALUES) for label in _LABELS if dice.chance(10)}
    context["items"] = dice.pick(_ITEMS if dice.chance(90) else _VALUES)
    context["nested"] = {"level": _fact(dice, "request.context.nested.level")}
    if dice.chance(10):
        context["signals"] = dice.some(_LABELS, 2)
    request: dict[str, Json] = {"intent": intent, "message": "hello"}
    if dice.chance(95):
        request["context"] = {name: value for name, value in context.items() if dice.chance(90)}
    if dice.chance(80):
        request["channel"] = dice.pick(_CHANNELS)
    user: dict[str, Json] = {"role": dice.pick(_ROLES)} if dice.chance(90) else {}
    if dice.chance(80):
        user["tenure_days"] = _fact(dice, "user.tenure_days")
    return {
        "request": request,
        "user": user,
        "agent": {"agent_id": "agt"},
        "tenant_id": dice.pick(_TENANTS),
        "intent": intent,
        "safety_mode": _MODES[-1] if dice.chance(30) else dice.pick(_MODES),
        "run": {**({"locale": "en"} if dice.chance(50) else {}), **_clock(dice)},
    }


def drawn_request_facts(dice: Dice) -> list[Json]:
    """Declarations of the facts of some intents, of which requests break many."""
    paths = [*(path for path in _PATHS if path.startswith("request.c") and not path.endswith(".0")), _ITEM]
    return [
        {"intent": intent, "facts": [_declared_fact(dice, path) for path in dice.some(paths, 4) or [_ITEM]]}
        for intent in dice.some(_INTENTS, 3)
    ]


def _declared_fact(dice: Dice, path: str) -> dict[str, Json]:
    fact = {"path": path, "type": dice.pick(["boolean", "number", "integer", "string", "array", "object"])}
    return {**fact, "required": False} if dice.chance(30) else fact


def _clock(dice: Dice) -> dict[str, Json]:
    """A clock, which a run has or has not; its values are always of their kinds."""
    names = ("hour", "weekday", "date")
    return {name: dice.pick(_USUAL[f"run.{name}"]) for name in names} if dice.chance(80) else {}


def _fact(dice: Dice, path: str) -> Json:
    return dice.pick(_USUAL[path]) if dice.chance(95) else dice.pick(_VALUES)
