"""What the gates look at: a pack whose form is right, its parts by id with their places, and its environment."""

from collections.abc import Iterable, Mapping

from contextplane.authoring.deciding import Deciding, Listed, by_id, with_places
from contextplane.authoring.kept import kept
from contextplane.authoring.surroundings import Surroundings
from contextplane.authoring.texts import Identify
from contextplane.model.canonical import Json
from contextplane.model.context_pack.decision_layer import DecisionSpec
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.context_pack.pack_meta import Tenant
from contextplane.model.context_pack.policy_layer import Effect, PolicyBundle, Rule
from contextplane.model.context_pack.task_layer import TaskTemplate
from contextplane.model.value import Value

__all__ = ["PlacedEffect", "PlacedRule", "Subject"]


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
        return frozenset(f"{one.adapter_id}.{one.capability}" for _, one in self.permissions if one.allow)

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
            "rule_id": ([one.rule for one in rules], [one.at for one in rules], "rule_id"),
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
    found = []
    for b, bundle in enumerate(pack.policy_layer.policy_bundles):
        for r, rule in enumerate(bundle.policy_dsl.rules):
            named = rule.applies_to.get("intent", ())
            intents = (named,) if isinstance(named, str) else named
            at = f"/policy_layer/policy_bundles/{b}/policy_dsl/rules/{r}"
            found.append(PlacedRule(rule=rule, bundle=bundle, at=at, intents=intents))
    return found


def _effects(rules: Iterable[PlacedRule]) -> list[PlacedEffect]:
    found = []
    for placed in rules:
        found.append(PlacedEffect(effect=placed.rule.then, of=placed, at=f"{placed.at}/then", branch=True))
        if placed.rule.otherwise is not None:
            found.append(PlacedEffect(effect=placed.rule.otherwise, of=placed, at=f"{placed.at}/else", branch=False))
    return found
