"""A second policy engine and tool surface: plain dictionaries, no code shared with the first.

It takes the layers of a pack and the facts as JSON, and answers in JSON, so that a law can compare everything that was
decided. Nothing is compiled, cached or reordered for speed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.oracle_logic import NullMet, Unanswerable, evaluate, literal_paths, look_up

__all__ = ["bounds_by_tool", "decide", "find_active_gates", "find_fact_problems", "surface_tools"]

Json = Any
_LADDER = ["read_only", "local_write", "network", "delegated", "destructive"]
_SCOPE = {
    "intent": "intent",
    "channel": "request.channel",
    "role": "user.role",
    "safety_mode": "safety_mode",
    "tenant_id": "tenant_id",
}
_RESTRICTING = ("requires", "prohibits", "approval_mode", "requires_approval_gate", "arg_constraints")


def decide(policy: Mapping[str, Json], maxima: Mapping[str, str], facts: Mapping[str, Json]) -> dict[str, Json]:
    """The policy decision about these facts."""
    facts = _without_nulls(facts)
    rules = [
        ([bundle["bundle_id"], rule["rule_id"]], rule, _outcome(rule, facts))
        for bundle in sorted(policy["policy_bundles"], key=lambda bundle: (-bundle["priority"], bundle["bundle_id"]))
        for rule in bundle["policy_dsl"]["rules"]
    ]
    effects = [
        (name, branch, rule, outcome["undecided"]) for name, rule, outcome in rules for branch in outcome["branches"]
    ]
    missing = [[path, *name, *flags] for name, _, outcome in rules for path, *flags in outcome["missing"]]
    forbids = any(outcome["denies"] for *_, outcome in rules) or any(denied for *_, denied, _ in missing)
    applied = any(outcome["state"] != "outside" for *_, outcome in rules)
    spoken = [
        [kind, label, ways, sorted(not_found)]
        for kind, label, guardrail in _guardrails(policy)
        for ways, not_found in [_triggers(guardrail, label, facts)]
        if ways
    ]
    taken_effects = [rule[branch] for _, branch, rule, _ in effects]
    errors = [name for name, _, outcome in rules if outcome["state"] == "error"]
    allowed = any(outcome["allows"] for *_, outcome in rules)
    modes = [
        min(rule[branch]["approval_mode"], maxima.get(rule.get("decision_binding"), "destructive"), key=_LADDER.index)
        for _, branch, rule, _ in effects
        if "approval_mode" in rule[branch]
    ]
    return {
        "allowed": applied and allowed and not forbids and not errors and not spoken,
        "effects": [[*name, branch, undecided] for name, branch, _, undecided in effects],
        "idle": sorted(name for name, _, outcome in rules if outcome["state"] in {"outside", "idle"}),
        "errors": errors,
        "missing": missing,
        "spoken": spoken,
        "mode": max(modes, key=_LADDER.index, default=None),
        "requires": _all_of(taken_effects, "requires"),
        "prohibits": _all_of(taken_effects, "prohibits"),
        "gates": _gates_of(taken_effects),
        "bounds": [
            [scope, argument, f"rule:{name[0]}#{name[1]}", _limits(constraint, facts)]
            for name, branch, rule, _ in effects
            for scope, argument, constraint in _constrained(rule[branch].get("arg_constraints", {}))
        ],
    }


def _constrained(constraints: Mapping[str, Json]) -> Iterator[tuple[str | None, str, Json]]:
    """Each argument that a branch constrains, after the capability that it names for it, with its constraint."""
    for key in sorted(constraints):
        if any(isinstance(part, dict) and "var" not in part for part in constraints[key].values()):
            yield from ((key, argument, constraints[key][argument]) for argument in sorted(constraints[key]))
        else:
            yield None, key, constraints[key]


def _limits(constraint: Mapping[str, Json], facts: Mapping[str, Json]) -> dict[str, Json]:
    """The least, the greatest and the only value of an argument; "?" where a fact does not say."""
    limits = {}
    for name in ("min", "max", "equals"):
        bound = constraint.get(name)
        if isinstance(bound, dict):
            path, default = bound["var"] if isinstance(bound["var"], list) else (bound["var"], None)
            value = look_up(path, facts)[1]
            value = default if value is None else value
            is_number = type(value) in (int, float)
            bound = value if is_number or (name == "equals" and type(value) in (str, bool)) else "?"
        if bound is not None:
            limits[name] = bound
    return limits


def limits_by_tool(tooling: Mapping[str, Json], intent: str, names: list[str]) -> dict[str, Json]:
    """The limits of calls of each of these tools, by the permissions that hold for the intent."""
    return {
        name: [
            [limit, f"permission:{permission['permission_id']}"]
            for permission in tooling["permissions"]
            if permission["allow"] and f"{permission['adapter_id']}.{permission['capability']}" == name
            if intent in permission.get("intents", [intent])
            for limit in permission.get("limits", [])
        ]
        for name in names
    }


def bounds_by_tool(
    tooling: Mapping[str, Json],
    policy: Mapping[str, Json],
    decision: Mapping[str, Json],
    facts: Mapping[str, Json],
    names: list[str],
) -> dict[str, Json]:
    """What bounds the arguments of each of these tools: its permissions, then the rules."""
    facts = _without_nulls(facts)
    by_rules = decision["bounds"] if decision["allowed"] else _bounds_of_both_branches(policy, facts)
    intent = facts["intent"]
    own = [each for each in tooling["permissions"] if each["allow"] and intent in each.get("intents", [intent])]
    return {
        name: [
            *(
                [argument, f"permission:{permission['permission_id']}", _limits(constraint, facts)]
                for permission in own
                if f"{permission['adapter_id']}.{permission['capability']}" == name
                for argument, constraint in sorted(permission.get("arg_constraints", {}).items())
            ),
            *([argument, by, limits] for scope, argument, by, limits in by_rules if scope in (None, name)),
        ]
        for name in names
    }


def _bounds_of_both_branches(policy: Mapping[str, Json], facts: Mapping[str, Json]) -> list[Json]:
    """What every rule that applies, or may apply, bounds in any case: this is left to a request that is denied."""
    return [
        [scope, argument, f"rule:{bundle['bundle_id']}#{rule['rule_id']}", _limits(constraint, facts)]
        for bundle in sorted(policy["policy_bundles"], key=lambda bundle: (-bundle["priority"], bundle["bundle_id"]))
        for rule in bundle["policy_dsl"]["rules"]
        if _applies(rule, facts)[0]
        for branch in ("then", "else")
        for scope, argument, constraint in _constrained(rule.get(branch, {}).get("arg_constraints", {}))
    ]


def _outcome(rule: Mapping[str, Json], facts: Mapping[str, Json]) -> dict[str, Json]:
    """What becomes of one rule: its state, the branches that count, and the facts that it misses."""
    applies, untold = _applies(rule, facts)
    both = _restricting_branches(rule)
    branches = [rule["then"], rule.get("else")]
    either = any(map(_restricts, branches))
    if not applies or untold:
        missing = [[path, either, False] for path in untold if applies]
        return _made("outside", both if applies else [], missing, undecided=applies)
    answer, not_found = _judge(rule["if"], facts)
    if answer == "error":
        return _made("error", both, [[path, False, False] for path in sorted(not_found)], undecided=True)
    if answer == "unknown":
        one_allows = any(map(_allows, branches)) and not all(map(_allows, branches))
        missing = [[path, either, one_allows] for path in sorted(not_found)]
        return _made("idle", both, missing, undecided=True, allows=all(map(_allows, branches)))
    taken, other = ("then", "else") if answer else ("else", "then")
    only_here = _allows(rule.get(taken)) and not _allows(rule.get(other))
    missing = [[path, _restricts(rule.get(other)), only_here] for path in sorted(not_found)]
    allows = _allows(rule.get(taken)) and not (only_here and not_found)
    denies = rule.get(taken, {}).get("allow") is False
    if not_found:
        return _made("idle", both, missing, undecided=True, allows=allows, denies=denies)
    return _made("effect" if taken in rule else "idle", [taken] * (taken in rule), [], allows=allows, denies=denies)


def _made(  # noqa: PLR0913  all that is said of a rule
    state: str,
    branches: list[str],
    missing: list[Json],
    *,
    undecided: bool = False,
    allows: bool = False,
    denies: bool = False,
) -> dict[str, Json]:
    outcome = {"state": state, "branches": branches, "missing": missing}
    return {**outcome, "undecided": undecided, "allows": allows, "denies": denies}


def surface_tools(  # noqa: PLR0913  all that a surface depends on
    tooling: Mapping[str, Json],
    policy: Mapping[str, Json],
    specs: list[Json],
    decision: Mapping[str, Json],
    *,
    intent: str,
    ceiling: str,
) -> tuple[list[Json], list[Json]]:
    """The surfaced tools with mode and gates, and the omitted ones with all of their reasons.

    `specs` are the decisions that the intent may end in.
    """
    tools, left_out = [], []
    reach = max([_spec_reach(spec) for spec in specs], default=0)
    reads = bool(specs) and not any(spec.get("on_deny", "none") == "none" for spec in specs) and not decision["spoken"]
    for adapter, capability, all_permissions in _candidates(tooling):
        permissions = [each for each in all_permissions if intent in each.get("intents", [intent])]
        name = f"{all_permissions[0]['adapter_id'] if adapter is None else adapter['adapter_id']}.{capability}"
        mode = _mode(adapter, capability)
        reasons = []
        if adapter is None:
            reasons.append("not_in_registry")
        if not permissions:
            reasons.append("not_for_intent" if all_permissions else "not_permitted")
        if any(not permission["allow"] for permission in permissions):
            reasons.append("permission_denies")
        if name in decision["prohibits"]:
            reasons.append("prohibited")
        if _LADDER.index(mode) > _LADDER.index(ceiling):
            reasons.append("above_ceiling")
        if _LADDER.index(mode) > reach:
            reasons.append("beyond_decisions")
        if not decision["allowed"] and not (
            reads
            and mode == "read_only"
            and name not in _named_by_rules(policy, intent, "prohibits")
            and not (_named_by_rules(policy, intent, "requires_approval_gate") - {*decision["gates"]}).intersection(
                _gates_of([permission for permission in permissions if permission["allow"]])
            )
        ):
            reasons.append("intent_denied")
        if reasons:
            left_out.append([name, reasons])
        else:
            requested = decision["mode"] or mode
            gates = _gates_of(permissions)
            tools.append([name, min(requested, mode, key=_LADDER.index), gates])
    return tools, left_out


def _spec_reach(spec: Mapping[str, Json]) -> int:
    return 0 if spec["decision_right"] in {"recommend", "propose"} else _LADDER.index(spec["approval_mode"])


def _named_by_rules(policy: Mapping[str, Json], intent: str, key: str) -> set[str]:
    """Whatever a rule prohibits, or requires, in some case, unless it says that it is for other intents."""
    names: set[str] = set()
    for bundle in policy["policy_bundles"]:
        for rule in bundle["policy_dsl"]["rules"]:
            scope = rule["applies_to"].get("intent", intent)
            if intent == scope or (isinstance(scope, list) and intent in scope):
                for effect in (rule["then"], rule.get("else", {})):
                    named = effect.get(key) or []
                    names.update([named] if isinstance(named, str) else named)
    return names


def find_active_gates(
    policy: Mapping[str, Json],
    tooling: Mapping[str, Json],
    decision: Mapping[str, Json],
    kept: list[Json],
    facts: Mapping[str, Json],
) -> list[Json]:
    """The approval gates that are active, each with the tools whose calls wait for it."""
    facts = _without_nulls(facts)
    named = {gate for _, _, gates in kept for gate in gates}
    active = []
    for gate in policy["approval_gates"]:
        holds: Json = True
        if "when" in gate:
            answer, not_found = _judge(gate["when"], facts)
            holds = answer is not False or bool(not_found)
        if gate["gate_id"] in decision["gates"] or (gate["gate_id"] in named and holds):
            by_rule = gate["gate_id"] in decision["gates"]
            waiting = [
                name for name, _, gates in kept if gate["gate_id"] in gates or (by_rule and _writes(tooling, name))
            ]
            active.append([gate["gate_id"], waiting])
    return active


def find_fact_problems(policy: Mapping[str, Json], request: Mapping[str, Json]) -> list[Json]:
    """The declared facts that a request lacks, or has as another type."""
    problems = []
    for declared in policy.get("request_facts", []):
        for fact in declared["facts"] if declared["intent"] == request["intent"] else []:
            _, value = look_up(fact["path"], {"request": request})
            if value in (None, ""):
                problems += [[fact["path"], "missing"]] if fact.get("required", True) else []
            elif not _is_of(value, fact["type"]):
                problems.append([fact["path"], "wrong_type"])
    return problems


def _is_of(value: Json, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, int | float):
        return name == "number" or (name == "integer" and float(value).is_integer())
    return name == ("string" if isinstance(value, str) else "array" if isinstance(value, list) else "object")


def _applies(rule: Mapping[str, Json], facts: Mapping[str, Json]) -> tuple[bool, list[str]]:
    """Whether no given fact is outside the rule's scope; and the missing facts of its scope."""
    missing = []
    for key, names in sorted(rule["applies_to"].items()):
        _, value = look_up(_SCOPE[key], facts)
        if value is None:
            missing.append(_SCOPE[key])
        elif value not in ([names] if isinstance(names, str) else names):
            return False, []
    return True, missing


def _judge(expression: Json, facts: Mapping[str, Json]) -> tuple[Json, set[str]]:
    """True, false, "unknown" or "error"; and the missing facts that were read. On an error, all it could read."""
    not_found: set[str] = set()
    try:
        answer = evaluate(expression, facts, not_found)
    except NullMet:
        answer = "unknown" if not_found else "error"
    except Unanswerable:
        answer = "error"
    if answer == "unknown":
        return answer, not_found
    if answer is True or answer is False:
        return answer, not_found
    return "error", {path for path in literal_paths(expression) if look_up(path, facts)[1] is None}


def _restricts(effect: Mapping[str, Json] | None) -> bool:
    return effect is not None and (effect.get("allow") is False or any(effect.get(name) for name in _RESTRICTING))


def _restricting_branches(rule: Mapping[str, Json]) -> list[str]:
    """The branches that restrict by more than a denial."""
    return [branch for branch in ("then", "else") if any(rule.get(branch, {}).get(field) for field in _RESTRICTING)]


def _allows(effect: Mapping[str, Json] | None) -> bool:
    return effect is not None and effect.get("allow") is True


def _guardrails(policy: Mapping[str, Json]) -> Iterator[tuple[str, str, Json]]:
    for kind in ("must_refuse", "must_escalate"):
        for guardrail in policy["guardrails"].get(kind, []):
            yield kind, guardrail if isinstance(guardrail, str) else guardrail["id"], guardrail


def _triggers(guardrail: Json, label: str, facts: Mapping[str, Json]) -> tuple[list[str], set[str]]:
    """Every way in which a guardrail is triggered, and the missing facts of its condition."""
    ways: list[str] = []
    not_found: set[str] = set()
    if isinstance(guardrail, dict) and "when" in guardrail:
        answer, not_found = _judge(guardrail["when"], facts)
        if answer in (False, "unknown") and not_found:
            ways.append("missing")
        elif answer is not False:
            ways.append("when" if answer is True else "error")
    context = facts["request"].get("context", {})
    if label in context.get("signals", []):
        ways.append("signal")
    if label in context and context[label] is not False:
        ways.append("label")
    return ways, not_found


def _candidates(tooling: Mapping[str, Json]) -> Iterator[tuple[Json, str, list[Json]]]:
    """Capabilities that adapters declare, then those that only permissions name."""
    seen = set()
    for adapter in tooling["adapter_registry"]:
        for capability in adapter["capabilities"]:
            seen.add((adapter["adapter_id"], capability))
            yield adapter, capability, _permissions_of(tooling, adapter["adapter_id"], capability)
    for permission in tooling["permissions"]:
        pair = (permission["adapter_id"], permission["capability"])
        if pair not in seen:
            seen.add(pair)
            yield None, permission["capability"], _permissions_of(tooling, *pair)


def _mode(adapter: Json, capability: str) -> str:
    if adapter is None:
        return "destructive"
    spec = adapter.get("capability_specs", {}).get(capability, {})
    return str(spec.get("approval_mode", adapter["approval_mode"]))


def _permissions_of(tooling: Mapping[str, Json], adapter: str, capability: str) -> list[Json]:
    return [
        permission
        for permission in tooling["permissions"]
        if (permission["adapter_id"], permission["capability"]) == (adapter, capability)
    ]


def _writes(tooling: Mapping[str, Json], name: str) -> bool:
    """Whether a tool that an adapter declares can change something."""
    modes = [
        _mode(adapter, capability)
        for adapter, capability, _ in _candidates(tooling)
        if adapter is not None and f"{adapter['adapter_id']}.{capability}" == name
    ]
    return modes != ["read_only"]


def _gates_of(parts: list[Json]) -> list[str]:
    """The approval gates that these parts name, each where it occurs first: one name, or a list of them."""
    named = [part["requires_approval_gate"] for part in parts if "requires_approval_gate" in part]
    return _once([name for names in named for name in ([names] if isinstance(names, str) else names)])


def _all_of(effects: list[Json], field: str) -> list[str]:
    return _once([name for effect in effects for name in effect.get(field, [])])


def _once(names: list[str]) -> list[str]:
    return [name for n, name in enumerate(names) if name not in names[:n]]


def _without_nulls(value: Json) -> Json:
    """The value without members that are null: they count as missing."""
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value
