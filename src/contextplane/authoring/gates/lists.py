"""Lists of names: each name stands there once."""

from collections.abc import Iterator, Sequence

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Subject

__all__ = ["LAWS"]


def no_list_repeats_a_name(subject: Subject) -> Iterator[Broken]:
    """No list of names holds the same one twice: what was meant instead is missing."""
    for at, field, names in _lists(subject):
        if len(names) > 1 and len(set(names)) < len(names):
            seen: dict[str, int] = {}
            for n, name in enumerate(names):
                first = seen.setdefault(name, n)
                if first != n:
                    cause = f"{name!r} is already at {at}/{field}/{first}"
                    yield Broken(at=f"{at}/{field}/{n}", cause=cause, cure="take it out, or write what was meant")


def _lists(subject: Subject) -> Iterator[tuple[str, str, Sequence[str]]]:
    """The lists of names that there are: the part that each is in, its field, its names. One name is no list."""
    pack, refs = subject.pack, subject.pack.intelligence_refs
    at, tenant = subject.tenant
    yield at, "shared_with", tenant.shared_with
    yield "/intelligence_refs/ontology", "entity_types", refs.ontology.entity_types
    yield "/intelligence_refs/ontology", "relationship_types", refs.ontology.relationship_types
    yield "/intelligence_refs/identity_layer", "ceid_namespaces", refs.identity_layer.ceid_namespaces
    yield "/intelligence_refs", "embedding_keys", refs.embedding_keys
    yield "/policy_layer/guardrails", "redaction_rules", pack.policy_layer.guardrails.redaction_rules
    yield "/memory_layer/memory_policy", "write_classes_allowed", pack.memory_layer.memory_policy.write_classes_allowed
    yield from _of_tools(subject)
    yield from _of_rules(subject)
    for at, spec in subject.decisions.values():
        yield at, "required_evidence", spec.required_evidence
        yield at, "allowed_outcomes", spec.allowed_outcomes


def _of_tools(subject: Subject) -> Iterator[tuple[str, str, Sequence[str]]]:
    for at, adapter in subject.adapters.values():
        if len(adapter.capabilities) > 1:
            yield at, "capabilities", adapter.capabilities
    for at, permission in subject.permissions:
        if len(permission.produces) > 1:
            yield at, "produces", permission.produces
    for at, template in subject.templates:
        for s, step in enumerate(template.steps):
            if len(step.depends_on) > 1:
                yield f"{at}/steps/{s}", "depends_on", step.depends_on


def _of_rules(subject: Subject) -> Iterator[tuple[str, str, Sequence[str]]]:
    for placed in subject.rules:
        for key, named in placed.rule.applies_to.items():
            if not isinstance(named, str) and len(named) > 1:
                yield f"{placed.at}/applies_to", key, named
    for effect in subject.effects:
        if len(effect.effect.requires) > 1:
            yield effect.at, "requires", effect.effect.requires
        if len(effect.effect.prohibits) > 1:
            yield effect.at, "prohibits", effect.effect.prohibits


LAWS: tuple[Law[Subject], ...] = (Law(gate="integrity", code="entry_repeated", check=no_list_repeats_a_name),)
