"""Mutations of a pack: single edits, each of which widens what a run may do, or breaks a promise of the pack.

An operator yields edits of the parts that it is for. Edits of conditions are in `condition_mutations`. Where another
part of the pack may hold the same promise, an edit is a candidate: it counts only if some request gains by it, which
`pack_powers` finds out. No code of the package is used.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

__all__ = [
    "DECIDED",
    "DECLARED",
    "DROPPED",
    "Edit",
    "Mutation",
    "Path",
    "branches",
    "conditions",
    "mutations",
    "put",
    "rules",
]

Json = Any
Path = tuple[str | int, ...]
DROPPED = object()
MODES = ["read_only", "local_write", "network", "delegated", "destructive"]
CLASSES = ["PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"]
RIGHTS = ["propose", "recommend", "escalate", "execute"]
LONGEST = 2_592_000


class Edit(NamedTuple):
    """A part of the pack, and what stands there now; `DROPPED` if nothing does."""

    path: Path
    value: Json


class Mutation(NamedTuple):
    """The name of its operator, and its edits."""

    operator: str
    edits: tuple[Edit, ...]

    @property
    def at(self) -> str:
        return "/" + "/".join(map(str, self.edits[0].path))

    def apply(self, pack: Json) -> Json:
        for edit in sorted(self.edits, key=lambda edit: [str(step).rjust(4, "0") for step in edit.path], reverse=True):
            pack = put(pack, edit.path, edit.value)
        return pack


def put(part: Json, path: Path, value: Json) -> Json:
    """Return a part with another value at a path. The part itself stays as it is."""
    if not path:
        return value
    copied, step = part.copy(), path[0]
    if value is DROPPED and len(path) == 1:
        del copied[step]
    elif isinstance(copied, list) and step == len(copied):
        copied.append(put({}, path[1:], value))
    else:
        below = copied.get(step, {}) if isinstance(copied, dict) else copied[step]
        copied[step] = put(below, path[1:], value)
    return copied


# --- where things are ---


def rules(pack: Json) -> Iterator[tuple[Path, Json]]:
    for b, bundle in enumerate(pack["policy_layer"]["policy_bundles"]):
        for r, rule in enumerate(bundle["policy_dsl"]["rules"]):
            yield ("policy_layer", "policy_bundles", b, "policy_dsl", "rules", r), rule


def branches(pack: Json) -> Iterator[tuple[Path, Json]]:
    for path, rule in rules(pack):
        for name in ("then", "else"):
            if name in rule:
                yield (*path, name), rule[name]


def gates(pack: Json) -> Iterator[tuple[Path, Json]]:
    for n, gate in enumerate(pack["policy_layer"].get("approval_gates", ())):
        yield ("policy_layer", "approval_gates", n), gate


def guardrails(pack: Json) -> Iterator[tuple[Path, Json]]:
    for kind in ("must_refuse", "must_escalate"):
        for n, guardrail in enumerate(pack["policy_layer"]["guardrails"].get(kind, ())):
            yield ("policy_layer", "guardrails", kind, n), guardrail


def permissions(pack: Json) -> Iterator[tuple[Path, Json]]:
    for n, permission in enumerate(pack["tooling_layer"]["permissions"]):
        yield ("tooling_layer", "permissions", n), permission


def adapters(pack: Json) -> Iterator[tuple[Path, Json]]:
    for n, adapter in enumerate(pack["tooling_layer"]["adapter_registry"]):
        yield ("tooling_layer", "adapter_registry", n), adapter


def decisions(pack: Json) -> Iterator[tuple[Path, Json]]:
    for n, spec in enumerate(pack["decision_layer"]["decision_specs"]):
        yield ("decision_layer", "decision_specs", n), spec


def constraints(pack: Json) -> Iterator[tuple[Path, Json]]:
    """Yield each constraint of an argument: of permissions, of rules, and of a capability in a rule."""
    for path, part in (*permissions(pack), *branches(pack)):
        for name, constraint in part.get("arg_constraints", {}).items():
            if "." in name:
                for argument, bounds in constraint.items():
                    yield (*path, "arg_constraints", name, argument), bounds
            else:
                yield (*path, "arg_constraints", name), constraint


def conditions(pack: Json) -> Iterator[tuple[Path, Json]]:
    for path, rule in rules(pack):
        yield (*path, "if"), rule["if"]
    for path, gate in gates(pack):
        if "when" in gate:
            yield (*path, "when"), gate["when"]
    for path, guardrail in guardrails(pack):
        if isinstance(guardrail, dict) and "when" in guardrail:
            yield (*path, "when"), guardrail["when"]


def intents(pack: Json) -> list[str]:
    return [target["intent"] for target in pack["evaluation_layer"]["eval_targets"]]


def tools(pack: Json) -> dict[str, str]:
    """Map each declared capability to its approval mode."""
    return {
        f"{adapter['adapter_id']}.{name}": adapter.get("capability_specs", {})
        .get(name, {})
        .get("approval_mode", adapter["approval_mode"])
        for _, adapter in adapters(pack)
        for name in adapter["capabilities"]
    }


def _without(path: Path, names: list[Json]) -> Iterator[Edit]:
    """Yield the edits that drop one entry of a list, and the list itself with its last one."""
    for n in range(len(names)):
        rest = names[:n] + names[n + 1 :]
        yield Edit(path, rest or DROPPED)


def _gate_list(part: Json) -> list[str]:
    named = part.get("requires_approval_gate", [])
    return [named] if isinstance(named, str) else named


# --- gates ---


def drop_gate(pack: Json) -> Iterator[Edit]:
    for path, part in (*permissions(pack), *branches(pack)):
        yield from _without((*path, "requires_approval_gate"), _gate_list(part))


def exchange_gate(pack: Json) -> Iterator[Edit]:
    names = [gate["gate_id"] for _, gate in gates(pack)]
    for path, part in (*permissions(pack), *branches(pack)):
        named = _gate_list(part)
        for n in range(len(named)):
            for other in names:
                if other not in named:
                    yield Edit((*path, "requires_approval_gate"), [*named[:n], other, *named[n + 1 :]])


def lower_quorum(pack: Json) -> Iterator[Edit]:
    for path, gate in gates(pack):
        for approvers in range(1, gate.get("approvers", 1)):
            yield Edit((*path, "approvers"), approvers)


def lengthen_approval(pack: Json) -> Iterator[Edit]:
    for path, gate in gates(pack):
        for seconds in (gate["ttl_seconds"] + 1, gate["ttl_seconds"] * 2, LONGEST):
            yield Edit((*path, "ttl_seconds"), min(seconds, LONGEST))


def exchange_approver(pack: Json) -> Iterator[Edit]:
    for path, _ in gates(pack):
        for role in ("intern", "requester"):
            yield Edit((*path, "required_approver_role"), role)


def limit_gate(pack: Json) -> Iterator[Edit]:
    """Give a gate without a condition one, so that it is not always active."""
    for path, gate in gates(pack):
        if "when" not in gate:
            yield Edit((*path, "when"), {"==": [{"var": ["request.context.asks_nicely", False]}, False]})
            yield Edit((*path, "when"), {">": [{"var": ["request.context.amount", 0]}, 1_000_000]})


# --- rules and their branches ---


def drop_rule(pack: Json) -> Iterator[Edit]:
    for path, rule in rules(pack):
        siblings = pack["policy_layer"]["policy_bundles"][path[2]]["policy_dsl"]["rules"]
        if any(rule.get(name, {}).get("allow") is not True for name in ("then", "else")) and len(siblings) > 1:
            yield Edit(path, DROPPED)


def narrow_scope(pack: Json) -> Iterator[Edit]:
    """Let a rule that restricts apply to fewer requests."""
    for path, rule in rules(pack):
        if any(_restricts(rule.get(name, {})) for name in ("then", "else")):
            scope = rule["applies_to"]
            for key, value in (("role", "intern"), ("channel", "fax"), ("safety_mode", "network")):
                if key not in scope:
                    yield Edit((*path, "applies_to", key), value)
            if isinstance(scope.get("intent"), list):
                yield from _without((*path, "applies_to", "intent"), scope["intent"])


def drop_restriction(pack: Json) -> Iterator[Edit]:
    """Drop what a branch denies, prohibits or requires, whole or in part."""
    for path, branch in branches(pack):
        if branch.get("allow") is False:
            yield Edit((*path, "allow"), DROPPED)
            yield Edit((*path, "allow"), value=True)
        for name in ("prohibits", "requires"):
            yield from _without((*path, name), branch.get(name, []))
            if len(branch.get(name, ())) > 1:
                yield Edit((*path, name), DROPPED)
        if "approval_mode" in branch:
            yield Edit((*path, "approval_mode"), DROPPED)
            yield from (Edit((*path, "approval_mode"), mode) for mode in _below(branch["approval_mode"]))
    for path, rule in rules(pack):
        if _restricts(rule.get("else", {})):
            yield Edit((*path, "else"), DROPPED)


def exchange_prohibition(pack: Json) -> Iterator[Edit]:
    """Prohibit another tool than meant."""
    for path, branch in branches(pack):
        named = branch.get("prohibits", [])
        for n, name in enumerate(named):
            adapter = name.rpartition(".")[0]
            others = [tool for tool in tools(pack) if tool not in named and tool.startswith(f"{adapter}.")]
            for other in others[:3]:
                yield Edit((*path, "prohibits"), [*named[:n], other, *named[n + 1 :]])


def allow_more(pack: Json) -> Iterator[Edit]:
    for path, branch in branches(pack):
        if "allow" not in branch:
            yield Edit((*path, "allow"), value=True)


def add_allowing_rule(pack: Json) -> Iterator[Edit]:
    """Add a rule that allows: alone, or with a decision that can do more."""
    specs = sorted((spec for _, spec in decisions(pack)), key=lambda spec: MODES.index(spec["approval_mode"]))
    path = next(rules(pack))[0]
    count = len(pack["policy_layer"]["policy_bundles"][0]["policy_dsl"]["rules"])
    for intent in intents(pack):
        rule: Json = {
            "rule_id": "R_ADDED",
            "applies_to": {"intent": intent},
            "if": {"==": [{"var": "user.role"}, "intern"]},
            "then": {"allow": True},
            "rationale": "Added.",
        }
        bound = {rule.get("decision_binding") for _, rule in rules(pack) if intent in _intents_of(rule)}
        if all(spec["decision_key"] not in bound for spec in specs[-1:]):
            prohibits: Json = {"prohibits": [next(iter(tools(pack)))]}
            key = specs[-1]["decision_key"]
            yield Edit((*path[:-1], count), {**rule, "decision_binding": key})
            yield Edit((*path[:-1], count), {**rule, "then": prohibits, "decision_binding": key})


def exchange_decision(pack: Json) -> Iterator[Edit]:
    keys = [spec["decision_key"] for _, spec in decisions(pack)]
    for path, rule in rules(pack):
        for key in keys:
            if key != rule.get("decision_binding"):
                yield Edit((*path, "decision_binding"), key)


def _restricts(branch: Json) -> bool:
    return branch.get("allow") is False or bool(set(branch) - {"allow", "reason"})


def _intents_of(rule: Json) -> list[str]:
    named = rule["applies_to"].get("intent", [])
    return [named] if isinstance(named, str) else named


def _below(mode: str) -> list[str]:
    return MODES[: MODES.index(mode)]


def _above(mode: str) -> list[str]:
    return MODES[MODES.index(mode) + 1 :]


# --- arguments ---


def drop_bound(pack: Json) -> Iterator[Edit]:
    for path, constraint in constraints(pack):
        for name in constraint:
            if name != "unless_approved":
                yield Edit((*path, name), DROPPED)
        if len(constraint) > 1:
            yield Edit(path, DROPPED)


def loosen_bound(pack: Json) -> Iterator[Edit]:
    for path, constraint in constraints(pack):
        for name, sign in (("min", -1), ("max", 1)):
            bound = constraint.get(name)
            if isinstance(bound, int | float):
                for moved in (bound + sign, bound + sign * 2, bound + sign * (10 + abs(bound) * 9)):
                    yield Edit((*path, name), moved)
        if "enum" in constraint:
            yield Edit((*path, "enum"), [*constraint["enum"], "anything"])
            yield Edit((*path, "enum"), [*constraint["enum"][1:], "anything"])
        if "pattern" in constraint:
            pattern = constraint["pattern"]
            loosened = {pattern.removeprefix("^"), pattern.removesuffix("$"), "^.*$", f"{pattern}|^x"}
            loosened |= {re.sub(r"\{(\d+),(\d+)\}", r"{\1,400}", pattern)}
            yield from (Edit((*path, "pattern"), other) for other in sorted(loosened - {pattern}))
        if constraint.get("required") is True:
            yield Edit((*path, "required"), value=False)
        if "unless_approved" not in constraint and set(constraint) - {"required"}:
            yield Edit((*path, "unless_approved"), value=True)


def loosen_equality(pack: Json) -> Iterator[Edit]:
    """Let the request name the value that an argument must have, or give it a default."""
    for path, constraint in constraints(pack):
        for name in ("equals", "min", "max"):
            bound = constraint.get(name)
            if isinstance(bound, dict):
                fact = bound["var"] if isinstance(bound["var"], str) else bound["var"][0]
                default = 1_000_000 if name == "max" else 0 if name == "min" else "anybody"
                yield Edit((*path, name), {"var": f"request.context.{fact.rpartition('.')[2]}_claimed"})
                yield Edit((*path, name), {"var": [fact, default]})
            elif name == "equals" and bound is not None:
                yield Edit((*path, name), {"var": "request.context.claimed"})
                yield Edit((*path, name), "other" if isinstance(bound, str) else not bound)


def move_bound(pack: Json) -> Iterator[Edit]:
    """Bound another argument than meant: the tool never has it."""
    for path, part in (*permissions(pack), *branches(pack)):
        bounds = part.get("arg_constraints", {})
        for name, constraint in bounds.items():
            if "." not in name and name != "idempotency_key":
                rest = {other: value for other, value in bounds.items() if other != name}
                yield Edit((*path, "arg_constraints"), {**rest, f"{name}_x": constraint})
            elif "." in name:
                rest = {other: value for other, value in bounds.items() if other != name}
                adapter = name.rpartition(".")[0]
                others = [tool for tool in tools(pack) if tool.startswith(f"{adapter}.") and tool not in bounds]
                yield from (Edit((*path, "arg_constraints"), {**rest, tool: constraint}) for tool in others[:2])


# --- permissions and tools ---


def widen_permission(pack: Json) -> Iterator[Edit]:
    for path, permission in permissions(pack):
        if permission["allow"] is False:
            yield Edit((*path, "allow"), value=True)
            yield Edit(path, {**permission, "allow": True, "intents": intents(pack)[:1]})
        elif "intents" in permission:
            yield Edit((*path, "intents"), DROPPED)
            for intent in intents(pack):
                if intent not in permission["intents"]:
                    yield Edit((*path, "intents"), [*permission["intents"], intent])
                    yield Edit((*path, "intents"), [intent])


def add_permission(pack: Json) -> Iterator[Edit]:
    """Expose a capability that nothing exposes, or one more that an adapter is said to have."""
    listed = {f"{part['adapter_id']}.{part['capability']}" for _, part in permissions(pack)}
    count = len(listed)
    for path, adapter in adapters(pack):
        for n, capability in enumerate(("dump", "delete_all")):
            declared = Edit((*path, "capabilities"), [*adapter["capabilities"], capability])
            permission = {
                "permission_id": f"p_added_{n}",
                "adapter_id": adapter["adapter_id"],
                "capability": capability,
                "allow": True,
            }
            yield declared, Edit(("tooling_layer", "permissions", count), permission)  # type: ignore[misc]
    if listed != set(tools(pack)):
        for name in sorted(set(tools(pack)) - listed):
            adapter_id, _, capability = name.rpartition(".")
            permission = {"permission_id": "p", "adapter_id": adapter_id, "capability": capability, "allow": True}
            yield Edit(("tooling_layer", "permissions", count), permission)


def loosen_limit(pack: Json) -> Iterator[Edit]:
    for path, permission in permissions(pack):
        limits = permission.get("limits", [])
        yield from _without((*path, "limits"), limits)
        for n, limit in enumerate(limits):
            for name in ("max_calls", "max"):
                if name in limit:
                    for factor in (1, limit[name], 1000):
                        yield Edit((*path, "limits", n, name), limit[name] + factor)
            for period in ("60s", "10m"):
                if "period" in limit and limit["period"] != period:
                    yield Edit((*path, "limits", n, "period"), period)
            if limit["per"] == "tenant":
                yield Edit((*path, "limits", n, "per"), "user")
            if limit["per"] != "run":
                rest = {name: value for name, value in limit.items() if name != "period"}
                yield Edit((*path, "limits", n), {**rest, "per": "run"})


def understate_tool(pack: Json) -> Iterator[Edit]:
    """Say of a tool that it can do less than it can: ceilings, gates and intents no longer hold it."""
    for path, adapter in adapters(pack):
        for name in adapter["capabilities"]:
            mode = tools(pack)[f"{adapter['adapter_id']}.{name}"]
            for lower in _below(mode):
                yield Edit((*path, "capability_specs", name, "approval_mode"), lower)
        if not adapter.get("capability_specs"):
            yield from (Edit((*path, "approval_mode"), lower) for lower in _below(adapter["approval_mode"]))


def open_arguments(pack: Json) -> Iterator[Edit]:
    """Let a tool take other arguments than it is described with."""
    for path, adapter in adapters(pack):
        for name, spec in adapter.get("capability_specs", {}).items():
            arguments = spec.get("arguments")
            if arguments is not None:
                at = (*path, "capability_specs", name, "arguments")
                yield Edit(at, DROPPED)
                yield Edit((*at, "sudo"), {"type": "boolean"})
                for argument, form in arguments.items():
                    if form.get("required"):
                        yield Edit((*at, argument, "required"), value=False)


def unmask(pack: Json) -> Iterator[Edit]:
    """Redact less: a rule of the pack, or a mark in a schema."""
    redactions = pack["policy_layer"]["guardrails"].get("redaction_rules", [])
    yield from _without(("policy_layer", "guardrails", "redaction_rules"), redactions)
    for path, adapter in adapters(pack):
        for name, spec in adapter.get("capability_specs", {}).items():
            for at, mark in _marks(spec.get("output_schema", {}), (*path, "capability_specs", name, "output_schema")):
                yield Edit(at, DROPPED)
                yield Edit(at, value=False)
                yield Edit(at[:-1], {"type": "string"})
                if mark is not True:
                    yield Edit(at, "email" if mark != "email" else "phone")


def _marks(schema: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    for name, part in schema.items() if isinstance(schema, dict) else ():
        if name == "x-redact":
            yield (*path, name), part
        yield from _marks(part, (*path, name))


# --- decisions and evidence ---


def widen_decision(pack: Json) -> Iterator[Edit]:
    for path, spec in decisions(pack):
        yield from (Edit((*path, "approval_mode"), mode) for mode in _above(spec["approval_mode"]))
        for right in RIGHTS[RIGHTS.index(spec["decision_right"]) + 1 :]:
            yield Edit((*path, "decision_right"), right)
        if spec.get("on_deny") != "read":
            yield Edit((*path, "on_deny"), "read")
        if spec.get("challenge_required"):
            yield Edit((*path, "challenge_required"), DROPPED)
            yield Edit((*path, "challenge_required"), value=False)
        if "eligibility_rules" in spec:
            yield Edit((*path, "eligibility_rules"), DROPPED)
        yield Edit((*path, "allowed_outcomes"), [*spec["allowed_outcomes"], "waived"])


def weaken_evidence(pack: Json) -> Iterator[Edit]:
    """Require less evidence, or evidence that the request attests itself."""
    for path, spec in decisions(pack):
        names = spec["required_evidence"]
        for n in range(len(names)):
            if names[n] != "policy_eval":
                yield Edit((*path, "required_evidence"), names[:n] + names[n + 1 :])
                yield Edit((*path, "required_evidence"), [*names[:n], "attested", *names[n + 1 :]])
    for path, permission in permissions(pack):
        for n, name in enumerate(permission.get("produces", ())):
            produced = [*permission["produces"]]
            produced[n] = f"{name}_x"
            yield Edit((*path, "produces"), produced)
    for path, branch in branches(pack):
        names = branch.get("requires", [])
        for n in range(len(names)):
            yield Edit((*path, "requires"), [*names[:n], "policy_eval", *names[n + 1 :]])


DECLARED: tuple[Callable[[Json], Iterator[Any]], ...] = (
    lower_quorum,
    lengthen_approval,
    exchange_approver,
    add_permission,
    loosen_limit,
    understate_tool,
    open_arguments,
    unmask,
    widen_decision,
    weaken_evidence,
)
"""What breaks a promise by its form alone."""

DECIDED: tuple[Callable[[Json], Iterator[Any]], ...] = (
    drop_gate,
    exchange_gate,
    limit_gate,
    drop_rule,
    narrow_scope,
    drop_restriction,
    exchange_prohibition,
    allow_more,
    add_allowing_rule,
    exchange_decision,
    drop_bound,
    loosen_bound,
    loosen_equality,
    move_bound,
    widen_permission,
)
"""What widens only where no other rule, gate or bound holds the same: candidates."""


def mutations(pack: Json, operators: tuple[Callable[[Json], Iterator[Any]], ...]) -> Iterator[Mutation]:
    """Yield every mutation of a pack, in the order of the operators; none that leaves it as it is."""
    for operator in operators:
        for edit in operator(pack):
            mutation = Mutation(operator.__name__, (edit,) if isinstance(edit, Edit) else edit)
            if mutation.apply(pack) != pack:
                yield mutation
