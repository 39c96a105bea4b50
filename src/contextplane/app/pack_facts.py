"""What a pack looks at in a request: the facts that its conditions read, and the names that it looks up."""

from collections.abc import Iterator

from contextplane.app.knobs import KnobInvalid, fact_at
from contextplane.model.canonical import Json
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.context_pack.policy_layer import Guardrail
from contextplane.model.run_context import UserClaims
from contextplane.policy.facts import MATCHED
from contextplane.policy.logic import variables

__all__ = ["conditions_of", "known_places", "labels_of"]

_LOOKED_UP = ("signals", "timezone", "currency", "region")
"""Members of `request.context` that every compile looks at."""


def conditions_of(pack: ContextPack) -> Iterator[Json]:
    """Every condition that decides something when a context is compiled."""
    layer = pack.policy_layer
    for bundle in layer.policy_bundles:
        yield from (rule.condition for rule in bundle.policy_dsl.rules)
    yield from (gate.when for gate in layer.approval_gates if gate.when is not None)
    for one in (*layer.guardrails.must_refuse, *layer.guardrails.must_escalate):
        if isinstance(one, Guardrail) and one.when is not None:
            yield one.when


def labels_of(pack: ContextPack) -> tuple[str, ...]:
    """The labels of all guardrails."""
    rails = pack.policy_layer.guardrails
    return tuple(one.id if isinstance(one, Guardrail) else one for one in (*rails.must_refuse, *rails.must_escalate))


def known_places(pack: ContextPack) -> frozenset[str]:
    """The places in a case that this pack looks at."""
    read = {path for one in conditions_of(pack) for path in variables(one)} | set(MATCHED.values())
    required = {name for spec in pack.decision_layer.decision_specs for name in spec.required_evidence}
    context = {f"request.context.{name}" for name in (*_LOOKED_UP, *labels_of(pack), *required)}
    claims = {f"user.{name}" for name in UserClaims.__struct_fields__ if name != "further"}
    return frozenset(_places(read | context | claims))


def _places(names: set[str]) -> Iterator[str]:
    for name in names:
        try:
            yield fact_at(name)
        except KnobInvalid:
            continue  # no fact, so that no request can hold it
