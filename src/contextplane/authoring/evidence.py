"""The sources of required evidence: the policy engine, the request, the knowledge graph, or a tool.

No decision may wait for evidence that nothing can give.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Self

import msgspec

from contextplane.authoring.conditions import facts_read
from contextplane.authoring.subject import Subject
from contextplane.model.context_pack import ContextPack
from contextplane.model.pack_layers import Permission
from contextplane.model.terms import ApprovalMode, at_most
from contextplane.model.value import Value

__all__ = [
    "ACTING_MODES",
    "POLICY_EVAL",
    "EvidenceProducers",
    "attestable_names",
    "default_evidence_name",
    "evidence_names",
    "least_tools",
    "needs_no_tool",
    "obtainable_evidence",
    "producers",
    "singular",
    "snake_case",
]

POLICY_EVAL = "policy_eval"
"""The name that the policy engine itself satisfies."""

_REQUEST = "request.context."
_ADAPTER = "adp_"
_CACHE_SIZE = 1024
"""How many names are cached: the same ones are asked for again and again."""

_WITHIN_A_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
ACTING_MODES: frozenset[ApprovalMode] = frozenset({"local_write", "delegated", "destructive"})
"""Evidence from a tool of such a mode exists only after it acted. A network call may only read data elsewhere."""

_NO_PLURAL = ("ss", "us", "is", "news", "series", "species", "alias", "atlas", "bias", "canvas", "lens")
"""Endings of singular words that end in s: an address, a status, an analysis."""

_VOWELS = frozenset("aeiouyAEIOUY")
_LONGER_PLURAL = ("sses", "shes", "xes", "nches", "rches", "tches")
_AFTER_VOWEL = ("auses", "ouses")
"""In clauses and warehouses the s belongs to the word, in statuses it does not."""


def obtainable_evidence(subject: Subject) -> frozenset[str]:
    """Return every name that the policy engine, the request, the graph, or a tool can satisfy."""
    facts = [path.removeprefix(_REQUEST) for path in subject.compute_once(facts_read) if path.startswith(_REQUEST)]
    return subject.compute_once(_entities).union([POLICY_EVAL], facts, subject.compute_once(least_tools))


def producers(subject: Subject) -> Mapping[str, frozenset[str]]:
    """Map each name that only tools can satisfy to all tools that do."""
    tools_by_name: dict[str, set[str]] = {}
    for _, permission in subject.permissions:
        for name in evidence_names(permission) if permission.allow else ():
            tools_by_name.setdefault(name, set()).add(f"{permission.adapter_id}.{permission.capability}")
    return {name: frozenset(tools) for name, tools in tools_by_name.items() if not needs_no_tool(subject, name)}


def evidence_names(permission: Permission) -> tuple[str, ...]:
    """Return the names of evidence that the result of a permitted tool is."""
    return permission.produces or (default_evidence_name(permission.adapter_id, permission.capability),)


def least_tools(subject: Subject) -> Mapping[str, tuple[str, ApprovalMode]]:
    """Map each name that tools satisfy to the tool with the lowest approval mode, and that mode."""
    least: dict[str, tuple[str, ApprovalMode]] = {}
    for _, permission in subject.permissions:
        if permission.allow:
            adapter = subject.adapters.get(permission.adapter_id)
            mode: ApprovalMode = "read_only" if adapter is None else adapter[1].mode_of(permission.capability)
            for name in evidence_names(permission):
                if name not in least or (least[name][1] in ACTING_MODES and at_most(mode, least[name][1])):
                    least[name] = (f"{permission.adapter_id}.{permission.capability}", mode)
    return least


def needs_no_tool(subject: Subject, name: str) -> bool:
    """Whether the policy engine, the request or the knowledge graph satisfies a name, without a tool."""
    return (
        name == POLICY_EVAL or name in subject.compute_once(_entities) or name in subject.compute_once(attestable_names)
    )


def attestable_names(subject: Subject) -> frozenset[str]:
    """Return the names that a true value in the request satisfies, if a condition reads it.

    Not a name that a tool gives, even one that is denied: no request takes its place.
    """
    facts = [path.removeprefix(_REQUEST) for path in subject.compute_once(facts_read) if path.startswith(_REQUEST)]
    names_of_tools = [name for _, permission in subject.permissions for name in evidence_names(permission)]
    return frozenset(facts).difference(names_of_tools, subject.compute_once(_entities), (POLICY_EVAL,))


def _entities(subject: Subject) -> frozenset[str]:
    refs = subject.pack.intelligence_refs
    return frozenset(map(snake_case, refs.entity_types if refs.knowledge_graph else ()))


@lru_cache(_CACHE_SIZE)
def snake_case(name: str) -> str:
    """Return the snake case of a name: `order_line` for the entity type `OrderLine`."""
    return _WITHIN_A_WORD.sub("_", name).lower()


@lru_cache(_CACHE_SIZE)
def default_evidence_name(adapter_id: str, capability: str) -> str:
    """Return the evidence that a tool gives by default: `order_lookup` for `adp_orders.lookup`."""
    return f"{singular(adapter_id.removeprefix(_ADAPTER))}_{capability}"


def singular(thing: str) -> str:
    """Return the singular of a name in small letters: `order` of `orders`, `policy` of `policies`.

    A word without a vowel, such as sms, is an abbreviation and has no plural.
    """
    if thing[-1:] != "s" or thing.endswith(_NO_PLURAL) or _VOWELS.isdisjoint(thing.rpartition("_")[2]):
        return thing
    if thing.endswith("ies") and len(thing) > len("pies"):
        return f"{thing[:-3]}y"
    longer = thing.endswith(_LONGER_PLURAL) or (thing.endswith("uses") and not thing.endswith(_AFTER_VOWEL))
    return thing[:-2] if longer and thing != "uses" else thing[:-1]


# --- who produces the evidence of a pack ---


class EvidenceProducers(Value, frozen=True):
    """The producers of a pack.

    `tools`: the permitted tools that produce each name. `names`: every name that something produces, also a tool that
    is denied: a denial lets no request take its place. `by_tool`: the names that each tool produces and that a decision
    or a rule requires, sorted. `declared`: the names that each tool produces, also a denied one.
    """

    tools: Mapping[str, tuple[str, ...]]
    names: frozenset[str]
    by_tool: Mapping[str, tuple[str, ...]]
    declared: Mapping[str, frozenset[str]]

    def may_be_result(self, name: str, tool: str) -> bool:
        """Whether a result of this tool, or of an adapter, can be the evidence of a name.

        A tool that the pack does not know can only be the source of what no tool of the pack produces.
        """
        named = [names for known, names in self.declared.items() if tool in (known, known.rpartition(".")[0])]
        if named:
            return any(name in names for names in named)
        return not any(name in names for names in self.declared.values())

    @classmethod
    def of_pack(cls, pack: ContextPack) -> Self:
        tools: dict[str, dict[str, None]] = {}
        permissions = pack.tooling_layer.permissions
        for permission in permissions:
            for name in evidence_names(permission) if permission.allow else ():
                tools.setdefault(name, {})[f"{permission.adapter_id}.{permission.capability}"] = None
        declared: dict[str, set[str]] = {}
        for permission in permissions:
            tool = f"{permission.adapter_id}.{permission.capability}"
            declared.setdefault(tool, set()).update(evidence_names(permission))
        by_tool: dict[str, list[str]] = {}
        for name in sorted(set(_required_names(pack))):
            for tool in tools.get(name, ()):
                by_tool.setdefault(tool, []).append(name)
        ontology = pack.intelligence_refs.ontology
        entities = () if isinstance(ontology, msgspec.UnsetType) else map(snake_case, ontology.entity_types)
        return cls(
            tools={name: tuple(producers) for name, producers in tools.items()},
            names=frozenset({POLICY_EVAL, *entities}.union(*map(evidence_names, permissions))),
            by_tool={tool: tuple(names) for tool, names in by_tool.items()},
            declared={tool: frozenset(names) for tool, names in declared.items()},
        )


def _required_names(pack: ContextPack) -> Iterator[str]:
    for spec in pack.decision_layer.decision_specs:
        yield from spec.required_evidence
    for bundle in pack.policy_layer.policy_bundles:
        for rule in bundle.policy_dsl.rules:
            yield from rule.then.requires
            yield from rule.otherwise.requires if rule.otherwise is not None else ()
