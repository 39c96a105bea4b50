"""What the gates look at: a pack whose form is right, its parts by id with their places, and its environment.

What laws about decisions and plans look at, in a pack and in a catalog alike.

What the gates look at in a decision catalog whose form is right.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

from contextplane.authoring.environment import Surroundings
from contextplane.authoring.texts import Identify, Texts, kept
from contextplane.model.artifact import DecisionCatalog, Intent
from contextplane.model.context_pack import ContextPack, DecisionSpec, Effect, PolicyBundle, Rule, TaskTemplate, Tenant
from contextplane.model.json.canonical import Json
from contextplane.model.value import Value

__all__ = [
    "CatalogSubject",
    "Deciding",
    "Listed",
    "PlacedEffect",
    "PlacedRule",
    "Subject",
    "by_id",
    "place_in",
    "with_places",
]

T = TypeVar("T")
Placed = tuple[tuple[str, T], ...]
"""Parts, each with its JSON Pointer before it."""

Listed = tuple[Sequence[Any], str | Sequence[str], str]
"""Parts, the list that they stand in or the place of each, and the field that holds the id.

Without a field, a part is its own id, or has it in `id`; then the place of the part is told.
"""

_NOWHERE = Surroundings()
"""An environment of which nothing is known."""


class Deciding(Texts, ABC):
    """A document with typed decisions, and with plans that lead to them. `value` is it as it was written."""

    ASKS: ClassVar[tuple[str, ...]] = Surroundings.__struct_fields__
    """What must be known of the environment before all laws about it can be told."""

    def __init__(
        self, value: Json, surroundings: Surroundings | None = None, *, identify: Identify | None = None
    ) -> None:
        super().__init__(value, identify=identify)
        self.surroundings = surroundings or _NOWHERE
        self._made: dict[object, Any] = {}

    def once(self, make: Callable[[Self], T]) -> T:
        """What a function makes of this subject; however many laws ask for it, it is made once."""
        found: T | None = self._made.get(make)
        if found is None:
            found = self._made[make] = make(self)
        return found

    @property
    @abstractmethod
    def tenant(self) -> tuple[str, Tenant]:
        """Whose document it is, with the place that says so."""

    @property
    @abstractmethod
    def decisions(self) -> Mapping[str, tuple[str, DecisionSpec]]:
        """Decisions by key, each with its place; of two with one key, the first."""

    @property
    @abstractmethod
    def templates(self) -> Placed[TaskTemplate]: ...

    @property
    @abstractmethod
    def permitted(self) -> frozenset[str] | None:
        """The tools that a plan may call. None: each pack that the plan comes to says so for itself."""

    @property
    @abstractmethod
    def roles(self) -> Placed[str]:
        """Every role that somebody must hold."""

    @property
    @abstractmethod
    def ids(self) -> Mapping[str, Listed]:
        """The parts of each kind that have an id."""


def with_places(at: str, parts: Iterable[T]) -> Iterator[tuple[str, T]]:
    """The parts of a list, each with its place."""
    return ((f"{at}/{n}", one) for n, one in enumerate(parts))


def place_in(found: Listed, n: int) -> str:
    """Where the id of the n-th of some parts stands."""
    _, at, field = found
    place = f"{at}/{n}" if isinstance(at, str) else at[n]
    return f"{place}/{field}" if field else place


def by_id(at: str, parts: Iterable[T], identity: Callable[[T], str]) -> dict[str, tuple[str, T]]:
    """The parts of a list by their ids, each with its place; of two with one id, the first."""
    found: dict[str, tuple[str, T]] = {}
    for n, one in enumerate(parts):
        found.setdefault(identity(one), (f"{at}/{n}", one))
    return found


class PlacedRule(Value, frozen=True):
    """A rule, the bundle it is of, its JSON Pointer, and the intents it applies to; none: to every one."""

    rule: Rule
    bundle: PolicyBundle
    at: str
    intents: tuple[str, ...]


class PlacedEffect(Value, frozen=True):
    """The `then` or the `else` of a rule, with its JSON Pointer."""

    effect: Effect
    of: PlacedRule
    at: str
    branch: bool


class Subject(Deciding):
    """A pack to be judged. `value` is the document as it was written; `pack` the same, typed.

    `gates` and `adapters` are by id, each with its place; of two with one id, the first.
    """

    def __init__(
        self,
        pack: ContextPack,
        value: Json,
        surroundings: Surroundings | None = None,
        *,
        identify: Identify | None = None,
    ) -> None:
        super().__init__(value, surroundings, identify=identify)
        self.pack = pack
        # What almost every law asks for is there from the beginning.
        tooling, gates = pack.tooling_layer, pack.policy_layer.approval_gates
        self.rules = tuple(_rules(pack))
        self.effects = tuple(_effects(self.rules))
        self.gates = by_id("/policy_layer/approval_gates", gates, lambda gate: gate.gate_id)
        self.adapters = by_id(
            "/tooling_layer/adapter_registry", tooling.adapter_registry, lambda adapter: adapter.adapter_id
        )
        self.permissions = tuple(with_places("/tooling_layer/permissions", tooling.permissions))

    @property
    def tenant(self) -> tuple[str, Tenant]:
        return "/pack_meta/tenant", self.pack.pack_meta.tenant

    @kept
    def decisions(self) -> Mapping[str, tuple[str, DecisionSpec]]:
        specs = self.pack.decision_layer.decision_specs
        return by_id("/decision_layer/decision_specs", specs, lambda spec: spec.decision_key)

    @kept
    def intents(self) -> Mapping[str, str]:
        """Every intent that the pack names, with the first place that names it."""
        found: dict[str, str] = {}
        for placed in self.rules:
            for intent in placed.intents:
                found.setdefault(intent, f"{placed.at}/applies_to/intent")
        for at, template in self.templates:
            found.setdefault(template.intent, f"{at}/intent")
        for n, target in enumerate(self.pack.evaluation_layer.eval_targets):
            found.setdefault(target.intent, f"/evaluation_layer/eval_targets/{n}/intent")
        return found

    @kept
    def templates(self) -> tuple[tuple[str, TaskTemplate], ...]:
        return tuple(with_places("/task_layer/task_templates", self.pack.task_layer.task_templates))

    @kept
    def permitted(self) -> frozenset[str] | None:
        return frozenset(
            f"{permission.adapter_id}.{permission.capability}" for _, permission in self.permissions if permission.allow
        )

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        owners = [(f"{at}/owner_role", spec.owner_role) for at, spec in self.decisions.values()]
        approvers = [(f"{at}/required_approver_role", gate.required_approver_role) for at, gate in self.gates.values()]
        return (*owners, *approvers)

    @property
    def ids(self) -> Mapping[str, Listed]:
        policy, tooling, evaluation = self.pack.policy_layer, self.pack.tooling_layer, self.pack.evaluation_layer
        guardrails, rules = policy.guardrails, self.rules
        return {
            "bundle_id": (policy.policy_bundles, "/policy_layer/policy_bundles", "bundle_id"),
            "rule_id": ([rule.rule for rule in rules], [rule.at for rule in rules], "rule_id"),
            "gate_id": (policy.approval_gates, "/policy_layer/approval_gates", "gate_id"),
            "refusal": (guardrails.must_refuse, "/policy_layer/guardrails/must_refuse", ""),
            "escalation": (guardrails.must_escalate, "/policy_layer/guardrails/must_escalate", ""),
            "adapter_id": (tooling.adapter_registry, "/tooling_layer/adapter_registry", "adapter_id"),
            "permission_id": (tooling.permissions, "/tooling_layer/permissions", "permission_id"),
            "decision_key": (
                self.pack.decision_layer.decision_specs,
                "/decision_layer/decision_specs",
                "decision_key",
            ),
            "target for": (evaluation.eval_targets, "/evaluation_layer/eval_targets", "intent"),
            "release gate for": (evaluation.release_gates, "/evaluation_layer/release_gates", "metric"),
            "template_id": (self.pack.task_layer.task_templates, "/task_layer/task_templates", "template_id"),
        }


def _rules(pack: ContextPack) -> list[PlacedRule]:
    placed_rules = []
    for b, bundle in enumerate(pack.policy_layer.policy_bundles):
        for r, rule in enumerate(bundle.policy_dsl.rules):
            named = rule.applies_to.get("intent", ())
            intents = (named,) if isinstance(named, str) else named
            at = f"/policy_layer/policy_bundles/{b}/policy_dsl/rules/{r}"
            placed_rules.append(PlacedRule(rule=rule, bundle=bundle, at=at, intents=intents))
    return placed_rules


def _effects(rules: Iterable[PlacedRule]) -> list[PlacedEffect]:
    placed_effects = []
    for placed in rules:
        placed_effects.append(PlacedEffect(effect=placed.rule.then, of=placed, at=f"{placed.at}/then", branch=True))
        if placed.rule.otherwise is not None:
            placed_effects.append(
                PlacedEffect(effect=placed.rule.otherwise, of=placed, at=f"{placed.at}/else", branch=False)
            )
    return placed_effects


class CatalogSubject(Deciding):
    """A catalog to be judged. `value` is the document as it was written; `catalog` the same, typed."""

    ASKS: ClassVar[tuple[str, ...]] = ("roles", "tenants")

    def __init__(
        self,
        catalog: DecisionCatalog,
        value: Json,
        surroundings: Surroundings | None = None,
        *,
        identify: Identify | None = None,
    ) -> None:
        super().__init__(value, surroundings, identify=identify)
        self.catalog = catalog

    @property
    def tenant(self) -> tuple[str, Tenant]:
        return "/tenant", self.catalog.tenant

    @cached_property
    def decisions(self) -> Mapping[str, tuple[str, DecisionSpec]]:
        return by_id("/decision_specs", self.catalog.decision_specs, lambda spec: spec.decision_key)

    @cached_property
    def templates(self) -> tuple[tuple[str, TaskTemplate], ...]:
        return tuple(with_places("/task_templates", self.catalog.task_templates))

    @property
    def permitted(self) -> frozenset[str] | None:
        return None

    @cached_property
    def intents(self) -> Mapping[str, tuple[str, Intent]]:
        """Intents by id, each with its place; of two with one id, the first."""
        return by_id("/intents", self.catalog.intents, lambda intent: intent.intent_id)

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        decisions = [(f"{at}/owner_role", spec.owner_role) for at, spec in self.decisions.values()]
        return (*decisions, *((f"{at}/owner_role", intent.owner_role) for at, intent in self.intents.values()))

    @property
    def ids(self) -> Mapping[str, Listed]:
        catalog = self.catalog
        return {
            "decision_key": (catalog.decision_specs, "/decision_specs", "decision_key"),
            "template_id": (catalog.task_templates, "/task_templates", "template_id"),
            "intent_id": (catalog.intents, "/intents", "intent_id"),
        }
