"""Where a name of required evidence can come from, so that no decision waits for something that nothing can give."""

import re
from collections.abc import Mapping

from contextplane.authoring.conditions import facts_read
from contextplane.authoring.subject import Subject

__all__ = ["POLICY_EVAL", "snake", "sources"]

POLICY_EVAL = "policy_eval"
"""The name that the policy engine itself satisfies."""

_REQUEST = "request.context."
_ADAPTER = "adp_"
_WITHIN_A_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def sources(subject: Subject) -> Mapping[str, str]:
    """Every name that something can satisfy, with what does: the policy engine, the request, the graph, or a tool."""
    found = {POLICY_EVAL: "the policy engine"}
    found |= {
        path.removeprefix(_REQUEST): "the request" for path in subject.once(facts_read) if path.startswith(_REQUEST)
    }
    found |= {snake(entity): "the knowledge graph" for entity in subject.pack.intelligence_refs.ontology.entity_types}
    for _, permission in subject.permissions:
        if permission.allow:
            tool = f"{permission.adapter_id}.{permission.capability}"
            names = permission.produces or (_spelled(permission.adapter_id, permission.capability),)
            found |= dict.fromkeys(names, f"the tool {tool}")
    return found


def snake(name: str) -> str:
    """`OrderLine` is `order_line` where it names a kind of evidence or a namespace."""
    return _WITHIN_A_WORD.sub("_", name).lower()


def _spelled(adapter_id: str, capability: str) -> str:
    """`adp_orders.lookup` spells `order_lookup`: without `adp_`, singular, joined."""
    thing = adapter_id.removeprefix(_ADAPTER)
    singular = thing[:-1] if thing.endswith("s") and not thing.endswith("ss") else thing
    return f"{singular}_{capability}"
