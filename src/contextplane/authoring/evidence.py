"""Where a name of required evidence can come from, so that no decision waits for something that nothing can give."""

import re
from collections.abc import Mapping
from functools import lru_cache

from contextplane.authoring.conditions import facts_read
from contextplane.authoring.subject import Subject
from contextplane.model.context_pack import Permission
from contextplane.model.terms import ApprovalMode, at_most

__all__ = [
    "ACTING",
    "POLICY_EVAL",
    "from_tools",
    "givers",
    "is_given",
    "singular",
    "snake",
    "sources",
    "spelled",
]

POLICY_EVAL = "policy_eval"
"""The name that the policy engine itself satisfies."""

_REQUEST = "request.context."
_ADAPTER = "adp_"
_REMEMBERED = 1024
"""How many names are remembered: the same ones come again and again."""

_WITHIN_A_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
ACTING: frozenset[ApprovalMode] = frozenset({"local_write", "delegated", "destructive"})
"""What such a tool gives is there when it has acted. A network call may be a reading of somebody else's data."""

_NO_PLURAL = ("ss", "us", "is", "news", "series", "species", "alias", "atlas", "bias", "canvas", "lens")
"""How words end that end in s and mean one of their kind: an address, a status, an analysis."""

_VOWELS = frozenset("aeiouyAEIOUY")
_LONGER_PLURAL = ("sses", "shes", "xes", "nches", "rches", "tches")
_AFTER_VOWEL = ("auses", "ouses")
"""Of clauses and of warehouses the s is a part, of statuses it is not."""


def sources(subject: Subject) -> frozenset[str]:
    """Every name that something can satisfy: the policy engine, the request, the graph, or a tool."""
    asked = [path.removeprefix(_REQUEST) for path in subject.once(facts_read) if path.startswith(_REQUEST)]
    return subject.once(_entities).union([POLICY_EVAL], asked, subject.once(from_tools))


def givers(subject: Subject) -> Mapping[str, frozenset[str]]:
    """The names that only tools can satisfy: each with all that do."""
    found: dict[str, set[str]] = {}
    for _, permission in subject.permissions:
        for name in _given_by(permission) if permission.allow else ():
            found.setdefault(name, set()).add(f"{permission.adapter_id}.{permission.capability}")
    return {name: frozenset(tools) for name, tools in found.items() if not is_given(subject, name)}


def _given_by(permission: Permission) -> tuple[str, ...]:
    return permission.produces or (spelled(permission.adapter_id, permission.capability),)


def from_tools(subject: Subject) -> Mapping[str, tuple[str, ApprovalMode]]:
    """The names that tools satisfy: each with the one that does least, and its mode."""
    found: dict[str, tuple[str, ApprovalMode]] = {}
    for _, permission in subject.permissions:
        if permission.allow:
            known = subject.adapters.get(permission.adapter_id)
            mode: ApprovalMode = "read_only" if known is None else known[1].approval_mode
            for name in _given_by(permission):
                if name not in found or (found[name][1] in ACTING and at_most(mode, found[name][1])):
                    found[name] = (f"{permission.adapter_id}.{permission.capability}", mode)
    return found


def is_given(subject: Subject, name: str) -> bool:
    """Whether the policy engine, the request or the knowledge graph satisfies a name, and no tool has to be called."""
    return name == POLICY_EVAL or _REQUEST + name in subject.once(facts_read) or name in subject.once(_entities)


def _entities(subject: Subject) -> frozenset[str]:
    return frozenset(map(snake, subject.pack.intelligence_refs.ontology.entity_types))


@lru_cache(_REMEMBERED)
def snake(name: str) -> str:
    """`OrderLine` is `order_line` where it names a kind of evidence or a namespace."""
    return _WITHIN_A_WORD.sub("_", name).lower()


def spelled(adapter_id: str, capability: str) -> str:
    """`adp_orders.lookup` spells `order_lookup`: without `adp_`, singular, joined."""
    return f"{singular(adapter_id.removeprefix(_ADAPTER))}_{capability}"


@lru_cache(_REMEMBERED)
def singular(thing: str) -> str:
    """One of what a name in small letters means more of: `order` of `orders`, `policy` of `policies`.

    A word without a vowel, such as sms, is an abbreviation and means one.
    """
    if thing[-1:] != "s" or thing.endswith(_NO_PLURAL) or _VOWELS.isdisjoint(thing.rpartition("_")[2]):
        return thing
    if thing.endswith("ies") and len(thing) > len("pies"):
        return f"{thing[:-3]}y"
    longer = thing.endswith(_LONGER_PLURAL) or (thing.endswith("uses") and not thing.endswith(_AFTER_VOWEL))
    return thing[:-2] if longer and thing != "uses" else thing[:-1]
