"""The integrity gate: every name that one part of a pack uses is declared by another, exactly once.

Also: a list of names holds each name once, the default timezone and currency exist, and the pack says which versions it
needs, so that a runtime that is too old fails closed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from contextplane.authoring.evidence import ACTING_MODES, least_tools, needs_no_tool, obtainable_evidence, producers
from contextplane.authoring.iso_codes import RELEASE, currencies, timezones
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import DecisionDocument, Subject, enumerate_places, id_place
from contextplane.model.context_pack import RUNTIME_CONTRACT, DecisionSpec
from contextplane.model.suggestion import did_you_mean
from contextplane.model.terms import at_most
from contextplane.model.version_range import RangeInvalid, VersionRange

if TYPE_CHECKING:
    from contextplane.model.pack_layers import Permission

__all__ = ["DECISION_LAWS", "LAWS", "undeclared_name"]


def undeclared_name(at: str, what: str, name: str, known: Iterable[str]) -> Violation:
    """Return the violation for an undeclared name, with the nearest declared one."""
    return Violation(at=at, cause=f"{what} {name!r} is not declared", cure=did_you_mean(name, known, "declare it"))


def decision_bindings_resolve(subject: Subject) -> Iterator[Violation]:
    """Every decision_binding of a rule names a decision of decision_layer."""
    for placed in subject.rules:
        name = placed.rule.decision_binding
        if name is not None and name not in subject.decisions:
            yield undeclared_name(f"{placed.at}/decision_binding", "the decision", name, subject.decisions)


def rule_gates_resolve(subject: Subject) -> Iterator[Violation]:
    """Every approval gate that a rule requires is declared in approval_gates."""
    for placed in subject.effects:
        if placed.effect.requires_approval_gate is not None:
            yield from _undeclared_gates(placed.at, placed.effect.requires_approval_gate, subject)


def permission_gates_resolve(subject: Subject) -> Iterator[Violation]:
    """Every approval gate that a permission requires is declared in approval_gates."""
    for at, permission in subject.permissions:
        if permission.requires_approval_gate is not None:
            yield from _undeclared_gates(at, permission.requires_approval_gate, subject)


def _undeclared_gates(at: str, named: str | tuple[str, ...], subject: Subject) -> Iterator[Violation]:
    place = f"{at}/requires_approval_gate"
    placed = [(place, named)] if isinstance(named, str) else enumerate_places(place, named)
    for name_at, name in placed:
        if name not in subject.gates:
            yield undeclared_name(name_at, "the approval gate", name, subject.gates)


def permissions_name_an_adapter(subject: Subject) -> Iterator[Violation]:
    """Every permission is for an adapter of the registry."""
    for at, permission in subject.permissions:
        if permission.adapter_id not in subject.adapters:
            yield undeclared_name(f"{at}/adapter_id", "the adapter", permission.adapter_id, subject.adapters)


def permissions_name_a_capability(subject: Subject) -> Iterator[Violation]:
    """Every permission is for a capability that its adapter declares."""
    for at, permission in subject.permissions:
        _, adapter = subject.adapters.get(permission.adapter_id, ("", None))
        if adapter is not None and permission.capability not in adapter.capabilities:
            what = f"of {adapter.adapter_id} the capability"
            yield undeclared_name(f"{at}/capability", what, permission.capability, adapter.capabilities)


def prohibitions_name_a_capability(subject: Subject) -> Iterator[Violation]:
    """Every capability that a rule prohibits is declared by an adapter: policy makes no capabilities."""
    declared = {f"{a.adapter_id}.{c}" for _, a in subject.adapters.values() for c in a.capabilities}
    for placed in subject.prohibiting_effects:
        for n, name in enumerate(placed.effect.prohibits):
            if name not in declared:
                yield undeclared_name(f"{placed.at}/prohibits/{n}", "the capability", name, declared)


def capability_specs_name_a_capability(subject: Subject) -> Iterator[Violation]:
    """Every entry of capability_specs, and any reversal_op in it, is a declared capability of its adapter."""
    for placed in subject.capability_specs:
        declared, reversal = placed.adapter.capabilities, placed.spec.reversal_op
        if placed.capability not in declared:
            yield undeclared_name(placed.at, "the capability", placed.capability, declared)
        if reversal is not None and reversal not in declared:
            yield undeclared_name(f"{placed.at}/reversal_op", "the capability", reversal, declared)


def required_evidence_can_be_had(subject: Subject) -> Iterator[Violation]:
    """All required evidence can be satisfied before the decision: by tools, policy, request or graph."""
    for at, spec in subject.decisions.values():
        for n, name in enumerate(spec.required_evidence):
            if problem := _unobtainable_evidence(subject, f"{at}/required_evidence/{n}", name, spec):
                yield problem


def _unobtainable_evidence(subject: Subject, at: str, name: str, spec: DecisionSpec | None) -> Violation | None:
    """Return why evidence cannot be had before a decision; None when it can."""
    if needs_no_tool(subject, name):
        return None
    tool = subject.compute_once(least_tools).get(name)
    if tool is None:
        cause = f"nothing can satisfy {name!r}: no tool, no fact of the request that a condition reads, no entity"
        return Violation(
            at=at,
            cause=cause,
            cure=did_you_mean(name, obtainable_evidence(subject), "let a permission name it in produces"),
        )
    if spec is None or tool[1] not in ACTING_MODES or not at_most(spec.approval_mode, tool[1]):
        return None
    cause = f"only {tool[0]} gives {name!r}, and that is called when the decision has been made, which authorises it"
    return Violation(at=at, cause=cause, cure="let a tool that reads produce it, or put it into the request")


def rule_requirements_can_be_had(subject: Subject) -> Iterator[Violation]:
    """Every name that a rule requires is evidence that its decision requires, or that can be satisfied."""
    for placed in subject.effects:
        for n, name in enumerate(placed.effect.requires):
            _, spec = subject.decisions.get(placed.of.rule.decision_binding or "", ("", None))
            if spec is not None and name in spec.required_evidence:
                continue
            if problem := _unobtainable_evidence(subject, f"{placed.at}/requires/{n}", name, spec):
                yield problem


def no_rule_prohibits_what_it_needs(subject: Subject) -> Iterator[Violation]:
    """No rule that lets a run go on prohibits every tool for evidence that it or its decision requires."""
    for placed in subject.prohibiting_effects:
        if placed.effect.allow is False:
            continue
        prohibited = frozenset(placed.effect.prohibits)
        _, spec = subject.decisions.get(placed.of.rule.decision_binding or "", ("", None))
        needed = (*placed.effect.requires, *(spec.required_evidence if spec is not None else ()))
        for name in dict.fromkeys(needed):
            tools = subject.compute_once(producers).get(name, frozenset())
            if tools and tools <= prohibited:
                yield Violation(
                    at=f"{placed.at}/prohibits",
                    cause=f"{placed.of.rule.rule_id} prohibits all that gives {name!r}, which the decision waits for",
                    cure="deny there, or leave one of the tools that give it",
                )


def ids_are_unique(subject: DecisionDocument) -> Iterator[Violation]:
    """No two parts of one kind have the same id."""
    for kind, id_list in subject.ids.items():
        parts, _, field = id_list
        if len(parts) < 2:  # noqa: PLR2004  it is no list of one
            continue
        # Only a guardrail may be a text, which is its id.
        ids = (
            list(map(attrgetter(field), parts))
            if field
            else [part if isinstance(part, str) else part.id for part in parts]
        )
        if len(set(ids)) < len(ids):
            seen: dict[str, int] = {}
            for n, name in enumerate(ids):
                first = seen.setdefault(name, n)
                if first != n:
                    cause = f"the {kind} {name!r} is already at {id_place(id_list, first)}"
                    yield Violation(at=id_place(id_list, n), cause=cause, cure="give each its own")


def one_permission_per_capability(subject: Subject) -> Iterator[Violation]:
    """No two permissions are for the same capability and intent, so that it is clear which of them holds."""
    seen: dict[tuple[str, str], list[tuple[str, Permission]]] = {}
    for at, permission in subject.permissions:
        earlier = seen.setdefault((permission.adapter_id, permission.capability), [])
        for place, other in earlier:
            if not other.intents or not permission.intents or set(other.intents) & set(permission.intents):
                yield Violation(
                    at=f"{at}/capability",
                    cause=f"{permission.adapter_id}.{permission.capability} already has a permission at {place}",
                    cure="keep one permission per capability, or give each its own intents",
                )
                break
        earlier.append((at, permission))


def task_templates_resolve(subject: DecisionDocument) -> Iterator[Violation]:
    """Every step of a task template calls a permitted capability, and depends on earlier steps only."""
    permitted = subject.permitted_tools if subject.templates else None
    for at, template in subject.templates:
        if template.decision_key not in subject.decisions:
            yield undeclared_name(f"{at}/decision_key", "the decision", template.decision_key, subject.decisions)
        earlier: dict[str, None] = {}
        for s, step in enumerate(template.steps):
            if permitted is not None and step.tool not in permitted:
                cause = f"no permission allows {step.tool!r}"
                yield Violation(
                    at=f"{at}/steps/{s}/tool", cause=cause, cure=did_you_mean(step.tool, permitted, "permit it")
                )
            if step.id in earlier:
                yield Violation(
                    at=f"{at}/steps/{s}/id", cause=f"the step {step.id!r} is there twice", cure="rename one"
                )
            for d, name in enumerate(step.depends_on):
                if name not in earlier:
                    cause = f"no earlier step is called {name!r}"
                    cure = did_you_mean(name, earlier, "put that step before this one")
                    yield Violation(at=f"{at}/steps/{s}/depends_on/{d}", cause=cause, cure=cure)
            earlier[step.id] = None


DECISION_LAWS: tuple[Law[DecisionDocument], ...] = (
    Law(gate="integrity", code="id_repeated", check=ids_are_unique),
    Law(gate="integrity", code="task_template_unresolved", check=task_templates_resolve, about="templates"),
)
"""The laws that hold for a decision catalog as well."""

_REFERENCE_LAWS: tuple[Law[Subject], ...] = (
    *DECISION_LAWS,
    Law(gate="integrity", code="decision_binding_unknown", check=decision_bindings_resolve),
    Law(gate="integrity", code="rule_gate_unknown", check=rule_gates_resolve),
    Law(gate="integrity", code="permission_gate_unknown", check=permission_gates_resolve),
    Law(gate="integrity", code="permission_adapter_unknown", check=permissions_name_an_adapter),
    Law(gate="integrity", code="permission_capability_unknown", check=permissions_name_a_capability),
    Law(
        gate="integrity", code="prohibition_unknown", check=prohibitions_name_a_capability, about="prohibiting_effects"
    ),
    Law(
        gate="integrity",
        code="capability_spec_unknown",
        check=capability_specs_name_a_capability,
        about="capability_specs",
    ),
    Law(gate="integrity", code="required_evidence_unobtainable", check=required_evidence_can_be_had),
    Law(gate="integrity", code="rule_requirement_unobtainable", check=rule_requirements_can_be_had),
    Law(
        gate="integrity", code="evidence_prohibited", check=no_rule_prohibits_what_it_needs, about="prohibiting_effects"
    ),
    Law(gate="integrity", code="permission_repeated", check=one_permission_per_capability),
)


# --- lists of names ---


def no_list_repeats_a_name(subject: Subject) -> Iterator[Violation]:
    """No list of names holds the same one twice: what was meant instead is missing."""
    for at, field, names in (*_name_lists(subject), *_tool_lists(subject), *_rule_lists(subject)):
        if len(set(names)) < len(names):
            seen: dict[str, int] = {}
            for n, name in enumerate(names):
                first = seen.setdefault(name, n)
                if first != n:
                    cause = f"{name!r} is already at {at}/{field}/{first}"
                    yield Violation(at=f"{at}/{field}/{n}", cause=cause, cure="remove it, or correct it")


NameList = tuple[str, str, Sequence[str]]
"""The place of a part, a field of it, and the names in that field."""


def _name_lists(subject: Subject) -> list[NameList]:
    """Return the lists of names about knowledge, memory and decisions."""
    pack, refs = subject.pack, subject.pack.intelligence_refs
    at, tenant = subject.tenant
    lists: list[NameList] = [
        (at, "shared_with", tenant.shared_with),
        ("/intelligence_refs/ontology", "entity_types", refs.entity_types),
        ("/intelligence_refs/identity_layer", "ceid_namespaces", refs.ceid_namespaces),
        ("/intelligence_refs", "embedding_keys", refs.embedding_keys),
        ("/policy_layer/guardrails", "redaction_rules", pack.policy_layer.guardrails.redaction_rules),
    ]
    if refs.ontology:
        lists.append(("/intelligence_refs/ontology", "relationship_types", refs.ontology.relationship_types))
    if pack.memory_layer:
        classes = pack.memory_layer.memory_policy.write_classes_allowed
        lists.append(("/memory_layer/memory_policy", "write_classes_allowed", classes))
    for at, spec in subject.decisions.values():
        lists.append((at, "required_evidence", spec.required_evidence))
        lists.append((at, "allowed_outcomes", spec.allowed_outcomes))
    return lists


def _tool_lists(subject: Subject) -> Iterator[NameList]:
    """Yield the lists of adapters, permissions and task templates that hold several names."""
    for at, adapter in subject.adapters.values():
        if len(adapter.capabilities) > 1:
            yield at, "capabilities", adapter.capabilities
    for at, permission in subject.permissions:
        if len(permission.produces) > 1:
            yield at, "produces", permission.produces
        if isinstance(permission.requires_approval_gate, tuple):
            yield at, "requires_approval_gate", permission.requires_approval_gate
    for at, template in subject.templates:
        for s, step in enumerate(template.steps):
            if len(step.depends_on) > 1:
                yield f"{at}/steps/{s}", "depends_on", step.depends_on


def _rule_lists(subject: Subject) -> Iterator[NameList]:
    """Yield the lists of rules that hold several names. A single name is no list."""
    for placed in subject.rules:
        for key, named in placed.rule.applies_to.items():
            if not isinstance(named, str) and len(named) > 1:
                yield f"{placed.at}/applies_to", key, named
    for effect in subject.effects:
        if len(effect.effect.requires) > 1:
            yield effect.at, "requires", effect.effect.requires
        if len(effect.effect.prohibits) > 1:
            yield effect.at, "prohibits", effect.effect.prohibits
        if isinstance(effect.effect.requires_approval_gate, tuple):
            yield effect.at, "requires_approval_gate", effect.effect.requires_approval_gate


_LIST_LAWS: tuple[Law[Subject], ...] = (Law(gate="integrity", code="entry_repeated", check=no_list_repeats_a_name),)


# --- defaults of the environment ---

# Not here: the schema checks that a language has the form of BCP 47. A region is an id: some are countries, others
# places of a provider, such as ap-south-1.
_DEFAULTS_AT = "/pack_meta/environment_defaults"


def defaults_are_known(subject: Subject) -> Iterator[Violation]:
    """The timezone by default is one of IANA's, and the currency one of ISO 4217."""
    defaults = subject.pack.pack_meta.environment_defaults
    if defaults.timezone not in timezones():
        cause = f"{defaults.timezone!r} is no timezone of the IANA database {RELEASE}"
        yield Violation(
            at=f"{_DEFAULTS_AT}/timezone",
            cause=cause,
            cure=did_you_mean(defaults.timezone, timezones(), "correct it"),
        )
    if defaults.currency not in currencies():
        cause = f"{defaults.currency!r} is no currency of ISO 4217"
        yield Violation(
            at=f"{_DEFAULTS_AT}/currency",
            cause=cause,
            cure=did_you_mean(defaults.currency, currencies(), "correct it"),
        )


_DEFAULT_LAWS: tuple[Law[Subject], ...] = (
    # The lists grow old: a name that they lack is a warning, and refuses nothing.
    Law(gate="integrity", code="environment_default_unknown", check=defaults_are_known, severity="warning"),
)


# --- compatibility ---

_REQUIRES = "/contract_meta/compatibility/requires"
_NEEDED = ("runtime", "ontology")
_CONTRACT = 1


@lru_cache(256)
def _version(text: str) -> tuple[int, int, int]:
    major, minor, patch = map(int, text.split("."))
    return major, minor, patch


_RUNTIME = _version(RUNTIME_CONTRACT)


def requirements_are_explicit(subject: Subject) -> Iterator[Violation]:
    """compatibility.requires names a range of versions for the runtime, and one for the pack's ontology."""
    for name in _NEEDED if subject.pack.intelligence_refs.ontology else _NEEDED[:1]:
        if name not in subject.pack.contract_meta.compatibility.requires:
            yield Violation(at=_REQUIRES, cause=f"nothing is required of the {name}", cure=f'add "{name}": ">=1.0.0"')


def requirements_are_ranges(subject: Subject) -> Iterator[Violation]:
    """Every entry of compatibility.requires is a range that some versions are in and others are not."""
    for name, error in subject.compute_once(_ranges).items():
        if isinstance(error, RangeInvalid):
            yield Violation(at=f"{_REQUIRES}/{name}", cause=error.message, cure=error.hint or "write >=1.0.0")


def requirements_are_understood(subject: Subject) -> Iterator[Violation]:
    """compatibility.requires names only the runtime and the ontology: what is not understood is refused."""
    for name in subject.pack.contract_meta.compatibility.requires:
        if name not in _NEEDED:
            cause = f"{name[:60]!r} is required, which no runtime knows, so none would load the pack"
            yield Violation(at=f"{_REQUIRES}/{name}", cause=cause, cure=did_you_mean(name, _NEEDED, "take it out"))


def this_runtime_is_in_range(subject: Subject) -> Iterator[Violation]:
    """The runtime that judges is in the range of compatibility.requires: it would load no other pack."""
    admitted = subject.compute_once(_ranges).get("runtime")
    if isinstance(admitted, VersionRange) and _RUNTIME not in admitted:
        asked = subject.pack.contract_meta.compatibility.requires["runtime"]
        yield Violation(
            at=f"{_REQUIRES}/runtime",
            cause=f"this runtime has the contract {RUNTIME_CONTRACT}, which is not in {asked}: it refuses the pack",
            cure=f"write >={RUNTIME_CONTRACT}, or lint it with a ctx of the runtime that it is for",
        )


def the_pinned_ontology_is_in_range(subject: Subject) -> Iterator[Violation]:
    """The pinned version of the ontology is one that compatibility.requires admits."""
    ontology, admitted = subject.pack.intelligence_refs.ontology, subject.compute_once(_ranges).get("ontology")
    if not ontology:
        if admitted is not None:
            cause = "an ontology is required, and the pack pins none"
            yield Violation(at=f"{_REQUIRES}/ontology", cause=cause, cure="pin an ontology, or take the range out")
        return
    version = ontology.version
    if isinstance(admitted, VersionRange) and _version(version) not in admitted:
        asked = subject.pack.contract_meta.compatibility.requires["ontology"]
        yield Violation(
            at="/intelligence_refs/ontology/version",
            cause=f"{version} is not in {asked}, which compatibility.requires asks of the ontology",
            cure="change one of the two",
        )


def _ranges(subject: Subject) -> Mapping[str, VersionRange | RangeInvalid]:
    """Map each requirement to its range, or to the error of parsing it."""
    ranges: dict[str, VersionRange | RangeInvalid] = {}
    for name, text in subject.pack.contract_meta.compatibility.requires.items():
        try:
            ranges[name] = VersionRange.parse(text)
        except RangeInvalid as error:
            ranges[name] = error
    return ranges


def the_contract_is_known(subject: Subject) -> Iterator[Violation]:
    """contract_version is one of the contract that this product reads: 1.Y.Z."""
    version = subject.pack.contract_meta.contract_version
    if int(version.partition(".")[0]) != _CONTRACT:
        yield Violation(
            at="/contract_meta/contract_version",
            cause=f"contract version {version} is not known here",
            cure=f"write {_CONTRACT}.0.0, or lint it with a version of ctx that knows it",
        )


def it_was_created_some_time(subject: Subject) -> Iterator[Violation]:
    """created_at is a moment that there was: a day of the calendar, an hour of the day."""
    try:
        datetime.fromisoformat(subject.pack.contract_meta.created_at)
    except ValueError:
        cause = f"there is no moment {subject.pack.contract_meta.created_at}"
        yield Violation(at="/contract_meta/created_at", cause=cause, cure="write it as 2026-05-09T00:00:00Z")


_COMPATIBILITY_LAWS: tuple[Law[Subject], ...] = (
    Law(gate="integrity", code="compatibility_unstated", check=requirements_are_explicit),
    Law(gate="integrity", code="compatibility_range_invalid", check=requirements_are_ranges),
    Law(gate="integrity", code="compatibility_unknown", check=requirements_are_understood),
    Law(gate="integrity", code="runtime_out_of_range", check=this_runtime_is_in_range),
    Law(gate="integrity", code="ontology_out_of_range", check=the_pinned_ontology_is_in_range),
    Law(gate="integrity", code="contract_version_unknown", check=the_contract_is_known),
    Law(gate="integrity", code="created_at_impossible", check=it_was_created_some_time),
)

LAWS: tuple[Law[Subject], ...] = (*_REFERENCE_LAWS, *_LIST_LAWS, *_COMPATIBILITY_LAWS, *_DEFAULT_LAWS)
