"""What the gates look at: a pack whose form is right, its parts by id with their places, and its environment."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar, cast

from contextplane.authoring.surroundings import Surroundings
from contextplane.authoring.texts import Identify, Texts
from contextplane.model.canonical import Json
from contextplane.model.context_pack.decision_layer import DecisionSpec
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.context_pack.policy_layer import ApprovalGate, Effect, PolicyBundle, Rule
from contextplane.model.context_pack.tooling_layer import Adapter, Permission
from contextplane.model.value import Value

__all__ = ["PlacedEffect", "PlacedRule", "Subject"]

T = TypeVar("T")


class PlacedRule(Value, frozen=True):
    """A rule, the bundle it is of, and its JSON Pointer."""

    rule: Rule
    bundle: PolicyBundle
    at: str

    @property
    def intents(self) -> tuple[str, ...]:
        """The intents it applies to; none: to every one."""
        named = self.rule.applies_to.get("intent", ())
        return (named,) if isinstance(named, str) else named


class PlacedEffect(Value, frozen=True):
    """The `then` or the `else` of a rule, with its JSON Pointer."""

    effect: Effect
    of: PlacedRule
    at: str
    branch: bool


class Subject(Texts):
    """A pack to be judged. `value` is the document as it was written; `pack` the same, typed."""

    def __init__(
        self,
        pack: ContextPack,
        value: Json,
        surroundings: Surroundings | None = None,
        *,
        identify: Identify | None = None,
    ) -> None:
        super().__init__(value, identify=identify)
        self.pack = pack
        self.surroundings = surroundings or Surroundings()
        self._made: dict[object, object] = {}

    def once(self, make: Callable[["Subject"], T]) -> T:
        """What a function makes of this subject; however many laws ask for it, it is made once."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("T", self._made[make])

    @cached_property
    def rules(self) -> tuple[PlacedRule, ...]:
        return tuple(
            PlacedRule(rule=rule, bundle=bundle, at=f"/policy_layer/policy_bundles/{b}/policy_dsl/rules/{r}")
            for b, bundle in enumerate(self.pack.policy_layer.policy_bundles)
            for r, rule in enumerate(bundle.policy_dsl.rules)
        )

    @cached_property
    def effects(self) -> tuple[PlacedEffect, ...]:
        return tuple(
            PlacedEffect(effect=effect, of=placed, at=f"{placed.at}/{name}", branch=name == "then")
            for placed in self.rules
            for name, effect in (("then", placed.rule.then), ("else", placed.rule.otherwise))
            if effect is not None
        )

    @cached_property
    def gates(self) -> Mapping[str, tuple[str, ApprovalGate]]:
        """Approval gates by id, each with its place; of two with one id, the first."""
        return _by_id("/policy_layer/approval_gates", self.pack.policy_layer.approval_gates, lambda gate: gate.gate_id)

    @cached_property
    def adapters(self) -> Mapping[str, tuple[str, Adapter]]:
        registry = self.pack.tooling_layer.adapter_registry
        return _by_id("/tooling_layer/adapter_registry", registry, lambda adapter: adapter.adapter_id)

    @cached_property
    def permissions(self) -> tuple[tuple[str, Permission], ...]:
        return tuple(_placed("/tooling_layer/permissions", self.pack.tooling_layer.permissions))

    @cached_property
    def decisions(self) -> Mapping[str, tuple[str, DecisionSpec]]:
        specs = self.pack.decision_layer.decision_specs
        return _by_id("/decision_layer/decision_specs", specs, lambda spec: spec.decision_key)

    @cached_property
    def intents(self) -> Mapping[str, str]:
        """Every intent that the pack names, with the first place that names it."""
        found: dict[str, str] = {}
        for placed in self.rules:
            for intent in placed.intents:
                found.setdefault(intent, f"{placed.at}/applies_to/intent")
        for at, template in _placed("/task_layer/task_templates", self.pack.task_layer.task_templates):
            found.setdefault(template.intent, f"{at}/intent")
        for at, target in _placed("/evaluation_layer/eval_targets", self.pack.evaluation_layer.eval_targets):
            found.setdefault(target.intent, f"{at}/intent")
        return found


def _placed(at: str, parts: Iterable[T]) -> Iterator[tuple[str, T]]:
    return ((f"{at}/{n}", one) for n, one in enumerate(parts))


def _by_id(at: str, parts: Iterable[T], identity: Callable[[T], str]) -> dict[str, tuple[str, T]]:
    found: dict[str, tuple[str, T]] = {}
    for place, one in _placed(at, parts):
        found.setdefault(identity(one), (place, one))
    return found
