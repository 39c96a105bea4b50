"""The subjects of the gates: a pack or a decision catalog of valid form, with the place of each part.

A subject holds its document twice, as JSON and typed, and the description of its environment. It only gives access:
every judgement is a law of a gate.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

from contextplane.authoring.texts import DocumentTexts, Identify, lazy_property
from contextplane.model.arguments import BoundName, FactReference, PlacedConstraint, placed_constraints
from contextplane.model.artifact import DecisionCatalog, EnvironmentDescription, Intent
from contextplane.model.context_pack import ContextPack, DecisionSpec, TaskTemplate, Tenant
from contextplane.model.json.canonical import Json
from contextplane.model.pack_layers import (
    Adapter,
    CapabilitySpec,
    Effect,
    Guardrail,
    JsonSchema,
    Permission,
    PolicyBundle,
    RequestFacts,
    Rule,
)
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode
from contextplane.model.value import Value

__all__ = [
    "CatalogSubject",
    "DecisionDocument",
    "ExposedTool",
    "IdList",
    "PlacedEffect",
    "PlacedRule",
    "PlacedSpec",
    "Subject",
    "enumerate_places",
    "first_by_id",
    "id_place",
]

T = TypeVar("T")
Placed = tuple[tuple[str, T], ...]
"""Parts, each with its JSON Pointer before it."""

IdList = tuple[Sequence[Any], str | Sequence[str], str]
"""Parts, the list that they stand in or the place of each, and the field that holds the id.

Without a field, a part is its own id, or has it in `id`; the place of the id is then that of the part.
"""


_UNKNOWN_ENVIRONMENT = EnvironmentDescription()
"""An environment without a description."""


class DecisionDocument(DocumentTexts, ABC):
    """A document with typed decisions and task templates. `value` is its JSON as written."""

    ENVIRONMENT_FIELDS: ClassVar[tuple[str, ...]] = EnvironmentDescription.__struct_fields__
    """The fields of the environment description that the laws about this document need."""

    def __init__(
        self, value: Json, environment: EnvironmentDescription | None = None, *, identify: Identify | None = None
    ) -> None:
        super().__init__(value, identify=identify)
        self.described_environment = environment
        self.environment = environment or _UNKNOWN_ENVIRONMENT
        self._results: dict[object, Any] = {}

    def compute_once(self, compute: Callable[[Self], T]) -> T:
        """Return what a function computes from this subject. It runs once, however many laws ask."""
        result: T | None = self._results.get(compute)
        if result is None:
            result = self._results[compute] = compute(self)
        return result

    @property
    @abstractmethod
    def tenant(self) -> tuple[str, Tenant]:
        """The tenant that owns the document, after its place."""

    @property
    @abstractmethod
    def decisions(self) -> Mapping[str, tuple[str, DecisionSpec]]:
        """Decisions by key, each after its place; of two with one key, the first."""

    @property
    @abstractmethod
    def templates(self) -> Placed[TaskTemplate]: ...

    @property
    @abstractmethod
    def permitted_tools(self) -> frozenset[str] | None:
        """The tools that a task template may call. None: it depends on the pack that uses the template."""

    @property
    @abstractmethod
    def roles(self) -> Placed[str]:
        """Every owner and approver role that the document names."""

    @property
    @abstractmethod
    def ids(self) -> Mapping[str, IdList]:
        """The parts with an id, by the name of the id in messages."""


def enumerate_places(at: str, parts: Iterable[T]) -> Iterator[tuple[str, T]]:
    """Yield the parts of the list at `at`, each after its place."""
    return ((f"{at}/{n}", part) for n, part in enumerate(parts))


def id_place(parts: IdList, n: int) -> str:
    """Return the place of the id of the n-th part."""
    _, at, field = parts
    place = f"{at}/{n}" if isinstance(at, str) else at[n]
    return f"{place}/{field}" if field else place


def first_by_id(at: str, parts: Iterable[T], identity: Callable[[T], str]) -> dict[str, tuple[str, T]]:
    """Map ids to the parts of the list at `at`, each after its place; of two with one id, the first."""
    placed: dict[str, tuple[str, T]] = {}
    for n, part in enumerate(parts):
        placed.setdefault(identity(part), (f"{at}/{n}", part))
    return placed


class PlacedRule(Value, frozen=True):
    """A rule, its bundle, its JSON Pointer, and the intents it applies to; none means every intent."""

    rule: Rule
    bundle: PolicyBundle
    at: str
    intents: tuple[str, ...]


class PlacedEffect(Value, frozen=True):
    """The `then` or the `else` of a rule, with its JSON Pointer. `branch`: it is the `then`."""

    effect: Effect
    of: PlacedRule
    at: str
    branch: bool


class PlacedSpec(Value, frozen=True):
    """The description of a capability, with its place, its adapter and its name."""

    at: str
    adapter: Adapter
    capability: str
    spec: CapabilitySpec

    @property
    def capability_id(self) -> str:
        return f"{self.adapter.adapter_id}.{self.capability}"


class ExposedTool(Value, frozen=True):
    """A capability that a permission exposes, with the place of the permission and what it can do."""

    at: str
    permission: Permission
    adapter: Adapter
    mode: ApprovalMode

    @property
    def capability_id(self) -> str:
        return f"{self.permission.adapter_id}.{self.permission.capability}"


class Subject(DecisionDocument):
    """A context pack of valid form. `value` is its JSON as written, `pack` the same, typed.

    `gates` and `adapters` are by id, each after its place; of two with one id, the first.
    """

    def __init__(
        self,
        pack: ContextPack,
        value: Json,
        environment: EnvironmentDescription | None = None,
        *,
        identify: Identify | None = None,
    ) -> None:
        super().__init__(value, environment, identify=identify)
        self.pack = pack
        # Computed at once, because almost every law reads them.
        tooling, gates = pack.tooling_layer, pack.policy_layer.approval_gates
        self.rules = tuple(_rules(pack))
        self.effects = tuple(_effects(self.rules))
        self.gates = first_by_id("/policy_layer/approval_gates", gates, lambda gate: gate.gate_id)
        self.adapters = first_by_id(
            "/tooling_layer/adapter_registry", tooling.adapter_registry, lambda adapter: adapter.adapter_id
        )
        self.permissions = tuple(enumerate_places("/tooling_layer/permissions", tooling.permissions))

    @lazy_property
    def constraints(self) -> tuple[tuple[str, PlacedConstraint], ...]:
        """The constraints on arguments, of permissions and then of rules, each after its place."""
        owners: list[tuple[str, Mapping[str, Any]]] = [
            (at, permission.arg_constraints) for at, permission in self.permissions if permission.arg_constraints
        ]
        owners += [
            (placed.at, placed.effect.arg_constraints) for placed in self.effects if placed.effect.arg_constraints
        ]
        return tuple(
            (at + placed.at, placed) for at, constraints in owners for placed in placed_constraints(constraints)
        )

    @lazy_property
    def capability_specs(self) -> tuple[PlacedSpec, ...]:
        """Every described capability of the registry."""
        return tuple(
            [
                PlacedSpec(at=f"{at}/capability_specs/{name}", adapter=adapter, capability=name, spec=spec)
                for at, adapter in self.adapters.values()
                for name, spec in adapter.capability_specs.items()
            ]
        )

    @lazy_property
    def capability_schemas(self) -> tuple[tuple[str, PlacedSpec, str, JsonSchema], ...]:
        """The schemas of the described capabilities, each with its place, its capability and its field."""
        return tuple(
            [
                (f"{placed.at}/{field}", placed, field, schema)
                for placed in self.capability_specs
                for field, schema in (
                    ("input_schema", placed.spec.input_schema),
                    ("output_schema", placed.spec.output_schema),
                )
                if schema
            ]
        )

    @lazy_property
    def references(self) -> tuple[tuple[str, PlacedConstraint, BoundName, FactReference], ...]:
        """The bounds of arguments that are the value of a fact, each with its constraint and its place."""
        return tuple(
            [
                (at, placed, name, reference)
                for at, placed in self.constraints
                for name, reference in placed.constraint.references
            ]
        )

    @property
    def request_facts(self) -> tuple[RequestFacts, ...]:
        """The facts that a caller must send, by intent; none where the pack declares none."""
        return self.pack.policy_layer.request_facts or ()

    @lazy_property
    def restricted_permissions(self) -> Placed[Permission]:
        """The permissions that are for some intents only."""
        return tuple([(at, permission) for at, permission in self.permissions if permission.intents])

    @lazy_property
    def limited_permissions(self) -> Placed[Permission]:
        """The permissions that limit how often a tool may be called, or how much it may do in all."""
        return tuple([(at, permission) for at, permission in self.permissions if permission.limits])

    @lazy_property
    def prohibiting_effects(self) -> tuple[PlacedEffect, ...]:
        """The branches of rules that prohibit capabilities."""
        return tuple([placed for placed in self.effects if placed.effect.prohibits])

    @lazy_property
    def conditional_guardrails(self) -> Placed[Guardrail]:
        """The guardrails that a condition triggers; the others wait for a signal of the caller."""
        guardrails = self.pack.policy_layer.guardrails
        return tuple(
            [
                (f"/policy_layer/guardrails/{field}/{n}", guardrail)
                for field, entries in (
                    ("must_refuse", guardrails.must_refuse),
                    ("must_escalate", guardrails.must_escalate),
                )
                for n, guardrail in enumerate(entries)
                if isinstance(guardrail, Guardrail) and guardrail.when is not None
            ]
        )

    @lazy_property
    def conditional_decisions(self) -> Placed[DecisionSpec]:
        """The decisions with eligibility rules."""
        return tuple([(at, spec) for at, spec in self.decisions.values() if spec.eligibility_rules is not None])

    @lazy_property
    def decisions_read_on_deny(self) -> Placed[DecisionSpec]:
        """The decisions that ask for reading when their intent is denied."""
        return tuple([(at, spec) for at, spec in self.decisions.values() if spec.on_deny == "read"])

    @lazy_property
    def exposed_tools(self) -> tuple[ExposedTool, ...]:
        """Every permission that exposes a capability of a declared adapter."""
        tools = []
        for at, permission in self.permissions:
            if permission.allow and permission.adapter_id in self.adapters:
                adapter = self.adapters[permission.adapter_id][1]
                mode = adapter.mode_of(permission.capability)
                tools.append(ExposedTool(at=at, permission=permission, adapter=adapter, mode=mode))
        return tuple(tools)

    @lazy_property
    def writing_tools(self) -> tuple[ExposedTool, ...]:
        """The exposed tools that can do more than read."""
        return tuple([tool for tool in self.exposed_tools if tool.mode != APPROVAL_MODES[0]])

    @property
    def tenant(self) -> tuple[str, Tenant]:
        return "/pack_meta/tenant", self.pack.pack_meta.tenant

    @lazy_property
    def decisions(self) -> Mapping[str, tuple[str, DecisionSpec]]:
        specs = self.pack.decision_layer.decision_specs
        return first_by_id("/decision_layer/decision_specs", specs, lambda spec: spec.decision_key)

    @lazy_property
    def intents(self) -> Mapping[str, str]:
        """Every intent that the pack names, with the first place that names it."""
        places: dict[str, str] = {}
        for placed in self.rules:
            for intent in placed.intents:
                places.setdefault(intent, f"{placed.at}/applies_to/intent")
        for at, template in self.templates:
            places.setdefault(template.intent, f"{at}/intent")
        for n, target in enumerate(self.pack.evaluation_layer.eval_targets):
            places.setdefault(target.intent, f"/evaluation_layer/eval_targets/{n}/intent")
        return places

    @lazy_property
    def templates(self) -> tuple[tuple[str, TaskTemplate], ...]:
        return tuple(enumerate_places("/task_layer/task_templates", self.pack.task_layer.task_templates))

    @lazy_property
    def permitted_tools(self) -> frozenset[str] | None:
        return frozenset(
            f"{permission.adapter_id}.{permission.capability}" for _, permission in self.permissions if permission.allow
        )

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        owners = [(f"{at}/owner_role", spec.owner_role) for at, spec in self.decisions.values()]
        approvers = [(f"{at}/required_approver_role", gate.required_approver_role) for at, gate in self.gates.values()]
        return (*owners, *approvers)

    @property
    def ids(self) -> Mapping[str, IdList]:
        policy, tooling, evaluation = self.pack.policy_layer, self.pack.tooling_layer, self.pack.evaluation_layer
        guardrails, rules = policy.guardrails, self.rules
        return {
            "bundle_id": (policy.policy_bundles, "/policy_layer/policy_bundles", "bundle_id"),
            "rule_id": ([rule.rule for rule in rules], [rule.at for rule in rules], "rule_id"),
            "gate_id": (policy.approval_gates, "/policy_layer/approval_gates", "gate_id"),
            "request facts for": (policy.request_facts or (), "/policy_layer/request_facts", "intent"),
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


class CatalogSubject(DecisionDocument):
    """A decision catalog of valid form. `value` is its JSON as written, `catalog` the same, typed."""

    ENVIRONMENT_FIELDS: ClassVar[tuple[str, ...]] = ("roles", "tenants")

    def __init__(
        self,
        catalog: DecisionCatalog,
        value: Json,
        environment: EnvironmentDescription | None = None,
        *,
        identify: Identify | None = None,
    ) -> None:
        super().__init__(value, environment, identify=identify)
        self.catalog = catalog

    @property
    def tenant(self) -> tuple[str, Tenant]:
        return "/tenant", self.catalog.tenant

    @cached_property
    def decisions(self) -> Mapping[str, tuple[str, DecisionSpec]]:
        return first_by_id("/decision_specs", self.catalog.decision_specs, lambda spec: spec.decision_key)

    @cached_property
    def templates(self) -> tuple[tuple[str, TaskTemplate], ...]:
        return tuple(enumerate_places("/task_templates", self.catalog.task_templates))

    @property
    def permitted_tools(self) -> frozenset[str] | None:
        return None

    @cached_property
    def intents(self) -> Mapping[str, tuple[str, Intent]]:
        """Intents by id, each after its place; of two with one id, the first."""
        return first_by_id("/intents", self.catalog.intents, lambda intent: intent.intent_id)

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        decisions = [(f"{at}/owner_role", spec.owner_role) for at, spec in self.decisions.values()]
        return (*decisions, *((f"{at}/owner_role", intent.owner_role) for at, intent in self.intents.values()))

    @property
    def ids(self) -> Mapping[str, IdList]:
        catalog = self.catalog
        return {
            "decision_key": (catalog.decision_specs, "/decision_specs", "decision_key"),
            "template_id": (catalog.task_templates, "/task_templates", "template_id"),
            "intent_id": (catalog.intents, "/intents", "intent_id"),
        }
