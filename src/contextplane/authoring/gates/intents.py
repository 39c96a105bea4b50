"""The laws about what an intent is given: tools that its decisions can use, evidence that they need.

They belong to the integrity gate and the risk gate. The compiler surfaces to an intent only what its decisions can use;
these laws tell the author what that leaves out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from contextplane.authoring.evidence import attestable_names, evidence_names, producers
from contextplane.authoring.gates.integrity import undeclared_name
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import Subject
from contextplane.model.arguments import placed_constraints
from contextplane.model.context_pack import DecisionSpec
from contextplane.model.json.canonical import Json
from contextplane.model.pack_layers import Rule
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode, at_most
from contextplane.policy.logic.solver import path_of
from contextplane.policy.logic.strict import operation

if TYPE_CHECKING:
    from contextplane.model.pack_layers import Permission

__all__ = ["LAWS"]

_READS = APPROVAL_MODES[0]
_REQUESTER = ("user.", "agent.", "tenant_id")
"""How the facts begin that say who asks."""

_EQUALITY = frozenset({"==", "==="})


def _decisions_by_intent(subject: Subject) -> Mapping[str, Sequence[DecisionSpec]]:
    """Map each intent of the pack to the decisions that its rules and task templates lead to."""
    keys: dict[str, set[str | None]] = {intent: set() for intent in subject.intents}
    for placed in subject.rules:
        for intent in placed.intents or keys:
            keys[intent].add(placed.rule.decision_binding)
    for _, template in subject.templates:
        keys[template.intent].add(template.decision_key)
    return {
        intent: [spec for key, (_, spec) in subject.decisions.items() if key in bound] for intent, bound in keys.items()
    }


def _reach_by_intent(subject: Subject) -> Mapping[str, ApprovalMode]:
    """Map each intent of the pack to the most that a tool can do which one of its decisions uses."""
    reach: dict[str, ApprovalMode] = dict.fromkeys(subject.intents, _READS)
    modes = {key: spec.reach for key, (_, spec) in subject.decisions.items()}
    for placed in subject.rules:
        mode = modes.get(placed.rule.decision_binding or "", _READS)
        for intent in (placed.intents or reach) if mode != _READS else ():
            reach[intent] = mode if at_most(reach[intent], mode) else reach[intent]
    for _, template in subject.templates:
        mode = modes.get(template.decision_key, _READS)
        reach[template.intent] = mode if at_most(reach[template.intent], mode) else reach[template.intent]
    return reach


def permission_intents_resolve(subject: Subject) -> Iterator[Violation]:
    """Every intent that a permission is for is one that a rule, a task template or a target names."""
    for at, permission in subject.restricted_permissions:
        for n, intent in enumerate(permission.intents):
            if intent not in subject.intents:
                yield undeclared_name(f"{at}/intents/{n}", "the intent", intent, subject.intents)


def intents_can_use_their_tools(subject: Subject) -> Iterator[Violation]:
    """No intent is given a tool that writes and that none of its decisions can use."""
    reach = _reach_by_intent(subject)
    for tool in subject.writing_tools:
        intents = [intent for intent in tool.permission.intents or reach if intent in reach]
        beyond = [intent for intent in intents if not at_most(tool.mode, reach[intent])]
        if beyond:
            useful = [intent for intent in intents if intent not in beyond]
            other = f"write intents: [{', '.join(useful)}]" if useful else "remove the permission"
            yield Violation(
                at=tool.at,
                cause=f"{tool.capability_id} is {tool.mode}, and no decision of {', '.join(beyond)} can use it",
                cure=f"bind a rule of {beyond[0]} to a decision that executes, of mode {tool.mode}, or {other}",
            )


def evidence_is_produced_for_the_intent(subject: Subject) -> Iterator[Violation]:
    """Evidence that a decision requires of tools is produced by one whose permission is for its intents."""
    if not subject.restricted_permissions:
        return
    by_name: dict[str, list[Permission]] = {}
    for tool in subject.exposed_tools:
        for name in evidence_names(tool.permission):
            by_name.setdefault(name, []).append(tool.permission)
    only_tools = subject.compute_once(producers)
    for intent, specs in subject.compute_once(_decisions_by_intent).items():
        for spec in specs:
            for n, name in enumerate(spec.required_evidence):
                permissions = by_name.get(name, ()) if name in only_tools else ()
                if permissions and not _is_permitted(intent, permissions):
                    yield Violation(
                        at=f"{subject.decisions[spec.decision_key][0]}/required_evidence/{n}",
                        cause=f"{name!r} is needed for {intent}, and no tool that gives it is permitted there",
                        cure=f"add {intent} to the intents of {permissions[0].permission_id}",
                    )


def _is_permitted(intent: str, permissions: "Sequence[Permission]") -> bool:
    """Whether one of the permissions is for the intent. Without intents, a permission is for all of them."""
    return any(not permission.intents or intent in permission.intents for permission in permissions)


def steps_are_permitted_for_the_intent(subject: Subject) -> Iterator[Violation]:
    """Every step of a task template calls a tool whose permission is for the intent of the template."""
    if not subject.restricted_permissions:
        return
    scopes: dict[str, list[Permission]] = {}
    for tool in subject.exposed_tools:
        scopes.setdefault(tool.capability_id, []).append(tool.permission)
    for at, template in subject.templates:
        for s, step in enumerate(template.steps):
            permissions = scopes.get(step.tool, [])
            if permissions and not _is_permitted(template.intent, permissions):
                yield Violation(
                    at=f"{at}/steps/{s}/tool",
                    cause=f"{step.tool} is permitted, but not for {template.intent}",
                    cure=f"add {template.intent} to the intents of {permissions[0].permission_id}",
                )


def denied_requests_do_not_read_what_others_own(subject: Subject) -> Iterator[Violation]:
    """No decision says on_deny: read beside a rule about ownership: a denied request could still read."""
    # Tools stay only when every decision of the intent asks for it.
    open_intents = [
        (intent, specs)
        for intent, specs in subject.compute_once(_decisions_by_intent).items()
        if specs and all(spec.on_deny == "read" for spec in specs)
    ]
    for placed in subject.rules if open_intents else ():
        if not _is_about_ownership(placed.rule):
            continue
        intent_by_decision: dict[str, str] = {}
        for intent, specs in open_intents:
            for spec in specs if not placed.intents or intent in placed.intents else ():
                intent_by_decision.setdefault(spec.decision_key, intent)
        for key, intent in intent_by_decision.items():
            yield Violation(
                at=f"{subject.decisions[key][0]}/on_deny",
                cause=f"a denied {intent} keeps the tools that read, and {placed.rule.rule_id} is about who owns what",
                cure="remove on_deny, unless all that these tools read is open to every requester",
            )


def _is_about_ownership(rule: Rule) -> bool:
    """Whether a rule ties an argument, or a fact of the request, to a fact of the requester."""
    effects = (rule.then, rule.otherwise) if rule.otherwise is not None else (rule.then,)
    for effect in effects:
        for placed in placed_constraints(effect.arg_constraints) if effect.arg_constraints else ():
            if any(reference.path.startswith(_REQUESTER) for _, reference in placed.constraint.references):
                return True
    return _compares_with_requester(rule.condition)


def _compares_with_requester(expression: Json) -> bool:
    """Whether an expression asks if a fact equals one of the requester."""
    if isinstance(expression, list):
        return any(map(_compares_with_requester, expression))
    if not isinstance(expression, dict):
        return False
    operator, operands = operation(expression)
    paths = [path for path in map(path_of, operands) if path] if operator in _EQUALITY else []
    if len(paths) == len(operands) and sum(path.startswith(_REQUESTER) for path in paths) == 1:
        return True
    return any(map(_compares_with_requester, expression.values()))


def decisions_serve_intents_of_one_mode(subject: Subject) -> Iterator[Violation]:
    """No decision serves intents that ask for different approval modes: each can use what the highest can."""
    if len(subject.intents) == 1:
        return
    highest: dict[str, dict[str, ApprovalMode]] = {}
    for placed in subject.effects:
        key, mode = placed.of.rule.decision_binding, placed.effect.approval_mode
        if key is None or mode is None or key not in subject.decisions:
            continue
        modes = highest.setdefault(key, {})
        for intent in placed.of.intents or subject.intents:
            modes[intent] = mode if at_most(modes.get(intent, mode), mode) else modes[intent]
    for key, modes in highest.items():
        lowest, most = (choose(modes, key=lambda intent: APPROVAL_MODES.index(modes[intent])) for choose in (min, max))
        if modes[lowest] != modes[most]:
            yield Violation(
                at=f"{subject.decisions[key][0]}/approval_mode",
                cause=f"{key} serves {lowest}, which asks for {modes[lowest]}, and {most}, for {modes[most]}",
                cure=f"bind the rules of {lowest} to a decision of its own, of mode {modes[lowest]}",
            )


def evidence_is_not_attested_by_the_request(subject: Subject) -> Iterator[Violation]:
    """No required evidence rests on what the request says of itself."""
    attestable = subject.compute_once(attestable_names)
    for at, spec in subject.decisions.values() if attestable else ():
        for n, name in enumerate(spec.required_evidence):
            if name in attestable:
                yield Violation(
                    at=f"{at}/required_evidence/{n}",
                    cause=f"only the request attests {name!r}: request.context.{name} is enough",
                    cure="let a tool give it (produces), or accept that whoever fills in the request attests it",
                )


LAWS: tuple[Law[Subject], ...] = (
    Law(
        gate="integrity",
        code="permission_intent_unknown",
        check=permission_intents_resolve,
        about="restricted_permissions",
    ),
    Law(
        gate="integrity",
        code="evidence_not_for_intent",
        check=evidence_is_produced_for_the_intent,
        about="restricted_permissions",
    ),
    Law(
        gate="integrity",
        code="task_tool_not_for_intent",
        check=steps_are_permitted_for_the_intent,
        about="restricted_permissions",
    ),
    Law(
        gate="risk",
        code="denial_leaves_reading",
        check=denied_requests_do_not_read_what_others_own,
        severity="warning",
        about="decisions_read_on_deny",
    ),
    Law(gate="risk", code="decision_modes_differ", check=decisions_serve_intents_of_one_mode, severity="warning"),
    Law(
        gate="risk",
        code="tool_beyond_decisions",
        check=intents_can_use_their_tools,
        severity="warning",
        about="writing_tools",
    ),
    Law(
        gate="risk",
        code="evidence_attested_by_request",
        check=evidence_is_not_attested_by_the_request,
        severity="warning",
    ),
)
