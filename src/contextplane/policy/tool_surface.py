"""The tool surface: which capabilities a run may use, and for all others why not.

Surfaced is what the registry declares and a permission allows for the intent, unless policy prohibits it, it is above
the run's ceiling or above what the decisions of the intent can use. When the intent is denied, nothing is left, unless
its decisions ask for reading. Every candidate is either surfaced or omitted with all of its reasons, in document order.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Self

from contextplane.model.arguments import placed_constraints
from contextplane.model.context_pack import DecisionSpec
from contextplane.model.json.canonical import canonical
from contextplane.model.pack_layers import Adapter, Permission, ToolingLayer
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode, OnDeny, at_most
from contextplane.model.value import Value
from contextplane.policy.bounds import DeclaredBound, DeclaredBounds, permission_references
from contextplane.policy.decision import ArgumentBound, PolicyDecision, ToolLimit
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.validation import (
    GateUnknown,
    ModeAboveAdapter,
    PolicyProblem,
    ScopeUnclear,
    duplicate_ids,
    pattern_problems,
    refuse_all,
)

__all__ = [
    "IntentReach",
    "OmittedTool",
    "Reason",
    "ReasonKind",
    "Surface",
    "SurfacedTool",
    "ToolProgram",
]

ReasonKind = Literal[
    "not_in_registry",
    "not_permitted",
    "not_for_intent",
    "permission_denies",
    "prohibited",
    "above_ceiling",
    "beyond_decisions",
    "intent_denied",
]
_READS: ApprovalMode = "read_only"
_CACHE_SIZE = 256


class IntentReach(Value, frozen=True):
    """What the decisions of an intent can use at most, and what stays of it when the intent is denied."""

    mode: ApprovalMode
    on_deny: OnDeny
    decisions: tuple[str, ...]

    @classmethod
    def of_decisions(cls, specs: Sequence[DecisionSpec]) -> Self:
        """The reach of the decisions that an intent may end in.

        It is that of the highest, and reading if there is none. A decision that only proposes or recommends reaches
        reading. Tools stay when every decision asks for it.
        """
        return cls(
            mode=max((spec.reach for spec in specs), key=APPROVAL_MODES.index, default=_READS),
            on_deny="read" if specs and all(spec.on_deny == "read" for spec in specs) else "none",
            decisions=tuple(spec.decision_key for spec in specs),
        )


class SurfacedTool(Value, frozen=True):
    """A capability that this run may use.

    `declared_mode` is the most it can do; `effective_mode` is what policy chose.
    """

    adapter_id: str
    capability: str
    declared_mode: ApprovalMode
    effective_mode: ApprovalMode
    permission_ids: tuple[str, ...]
    gate_ids: tuple[str, ...]
    bounds: tuple[ArgumentBound, ...]
    produces: tuple[str, ...]
    limits: tuple[ToolLimit, ...]
    at: str

    @property
    def capability_id(self) -> str:
        return f"{self.adapter_id}.{self.capability}"


class Reason(Value, frozen=True):
    """Why a capability is not surfaced; `by` names the rules, permissions or mode responsible."""

    kind: ReasonKind
    by: tuple[str, ...]
    message: str


class OmittedTool(Value, frozen=True):
    """A candidate that is not surfaced, with every reason: all of them must go to surface it."""

    adapter_id: str
    capability: str
    reasons: tuple[Reason, ...]
    at: str

    @property
    def capability_id(self) -> str:
        return f"{self.adapter_id}.{self.capability}"


class Surface(Value, frozen=True):
    """Every candidate is in one of the two: what the registry declares and what permissions name."""

    tools: tuple[SurfacedTool, ...]
    left_out: tuple[OmittedTool, ...]

    @property
    def gate_ids(self) -> frozenset[str]:
        """The approval gates that a surfaced tool names."""
        return frozenset([name for tool in self.tools for name in tool.gate_ids])


class _KeptSurface(NamedTuple):
    """A surface of the cache, with the objects whose identity is in its key.

    Because they are kept, no other object can have the identity of one of them as long as the entry is there.
    """

    surface: Surface
    outcome: tuple[object, ...]


class _Limits(NamedTuple):
    """What limits the surface of one run. `denied_by`: what denies the intent; None if it is allowed.

    `ends_run`: a guardrail was triggered. `prohibitable`: the tools that some rule of the intent prohibits.
    `gateable`: the gates that some rule of the intent requires, and none in effect.
    """

    prohibited: Mapping[str, list[str]]
    ceiling: ApprovalMode
    reach: IntentReach
    denied_by: tuple[str, ...] | None
    ends_run: bool
    prohibitable: frozenset[str]
    gateable: frozenset[str]


class _DeclaredTool(NamedTuple):
    """A capability that an adapter declares or a permission names, with all of its permissions."""

    adapter: Adapter | None
    adapter_id: str
    capability: str
    permissions: Sequence[tuple[str, Permission]]
    at: str


class _Candidate:
    """A capability with everything about it that no request of one intent can change."""

    def __init__(self, declared: _DeclaredTool, intent: str | None) -> None:
        adapter = declared.adapter
        permissions = [placed for placed in declared.permissions if _is_for(placed[1], intent)]
        self.adapter_id, self.capability, self.at = declared.adapter_id, declared.capability, declared.at
        self.id = f"{self.adapter_id}.{self.capability}"
        self.mode: ApprovalMode = APPROVAL_MODES[-1] if adapter is None else adapter.mode_of(self.capability)
        self.always_out = tuple(_outside(declared, permissions, self.id))
        allowing = [(place, permission) for place, permission in permissions if permission.allow]
        self.permission_ids = tuple(permission.permission_id for _, permission in allowing)
        self.gate_ids = tuple(dict.fromkeys(gate for _, permission in allowing for gate in permission.gate_ids))
        self.bounds = DeclaredBounds(
            DeclaredBound(placed, origin=f"permission:{permission.permission_id}", at=f"{place}{placed.at}")
            for place, permission in allowing
            for placed in placed_constraints(permission.arg_constraints)
        )
        self.limits = tuple(
            ToolLimit(limit=limit, origin=f"permission:{permission.permission_id}")
            for _, permission in allowing
            for limit in permission.limits
        )
        self.produces = tuple(dict.fromkeys(name for _, permission in allowing for name in permission.produces))

    def reasons(self, limits: _Limits) -> Iterator[Reason]:
        """Every reason to omit it, in the order in which the surface is computed."""
        yield from self.always_out
        if self.id in limits.prohibited:
            rules = tuple(limits.prohibited[self.id])
            yield Reason(kind="prohibited", by=rules, message=f"prohibited by {', '.join(rules)}")
        ceiling, reach = limits.ceiling, limits.reach
        if not at_most(self.mode, ceiling):
            yield Reason(
                kind="above_ceiling", by=(ceiling,), message=f"is {self.mode}, and the run's ceiling is {ceiling}"
            )
        if not at_most(self.mode, reach.mode):
            most = f"the most that a decision of the intent can use is {reach.mode}"
            message = f"is {self.mode}, and {most if reach.decisions else 'no decision is bound to the intent'}"
            yield Reason(kind="beyond_decisions", by=reach.decisions, message=message)
        if limits.denied_by is not None and (why := self._kept_from_denied(limits)):
            yield Reason(kind="intent_denied", by=limits.denied_by, message=f"the intent is denied, and {why}")

    def _kept_from_denied(self, limits: _Limits) -> str | None:
        """Why it does not stay when the intent is denied; None if it stays."""
        if limits.ends_run:
            return "nothing stays after a guardrail was triggered"
        if limits.reach.on_deny == "none":
            return "its decisions do not all say on_deny: read"
        if self.mode != _READS:
            return "only tools that read stay"
        if self.id in limits.prohibitable:
            return "a rule could prohibit this tool"
        return None if limits.gateable.isdisjoint(self.gate_ids) else "a rule could require an approval of its calls"

    def surface_tool(self, decision: PolicyDecision, rule_bounds: Sequence[ArgumentBound]) -> SurfacedTool:
        requested = decision.effective_approval_mode
        return SurfacedTool(
            adapter_id=self.adapter_id,
            capability=self.capability,
            declared_mode=self.mode,
            effective_mode=requested if requested is not None and at_most(requested, self.mode) else self.mode,
            permission_ids=self.permission_ids,
            gate_ids=self.gate_ids,
            bounds=(
                *self.bounds.resolve(decision.fact_values),
                *(bound for bound in rule_bounds if bound.capability in (None, self.id)),
            ),
            produces=self.produces,
            limits=self.limits,
            at=self.at,
        )


class ToolProgram:
    """The tooling layer of one pack, prepared for many requests."""

    def __init__(self, layer: ToolingLayer, policy: PolicyProgram) -> None:
        self._policy = policy
        self._declared = tuple(_declared_tools(layer))
        self._scoped = frozenset(intent for permission in layer.permissions for intent in permission.intents)
        self._by_intent: dict[str | None, tuple[_Candidate, ...]] = {}
        self._surfaces: dict[Hashable, _KeptSurface] = {}

    @classmethod
    def of(cls, layer: ToolingLayer, policy: PolicyProgram) -> Self:
        """Prepare a tooling layer, or refuse it with all of its problems."""
        canonical(layer)
        refuse_all(tuple(_problems(layer, policy)))
        if not policy.references.issuperset(permission_references(layer)):
            raise ValueError("the policy was compiled without the facts that permissions refer to")
        return cls(layer, policy)

    def surface(self, decision: PolicyDecision, ceiling: ApprovalMode, reach: IntentReach) -> Surface:
        """The capabilities that a run under this decision and ceiling may use, and the omitted ones.

        `reach` is what the decisions of its intent can use.
        """
        if decision.fact_values:
            return self._build_surface(decision, ceiling, reach)
        # All else that a surface depends on: what takes effect, and which rules do not apply. These tuples are the same
        # objects for all requests in which the rules come to the same.
        outcome = (decision.effects, decision.idle, decision.arg_constraints)
        denied_by = None if decision.allowed else tuple([denial.by for denial in decision.denials])
        ends_run = bool(decision.guardrails.triggered)
        mode = decision.effective_approval_mode
        key = (decision.intent, ceiling, reach, mode, decision.allowed, denied_by, ends_run, *map(id, outcome))
        kept = self._surfaces.get(key)
        if kept is None:
            if len(self._surfaces) >= _CACHE_SIZE:
                self._surfaces.clear()
            kept = self._surfaces[key] = _KeptSurface(self._build_surface(decision, ceiling, reach), outcome)
        return kept.surface

    def _build_surface(self, decision: PolicyDecision, ceiling: ApprovalMode, reach: IntentReach) -> Surface:
        tools: list[SurfacedTool] = []
        left_out: list[OmittedTool] = []
        limits = self._limits(decision, ceiling, reach)
        bounds = decision.arg_constraints if decision.allowed else self._policy.bounds_after_denial(decision)
        for candidate in self._candidates(decision.intent):
            reasons = tuple(candidate.reasons(limits))
            if reasons:
                left_out.append(
                    OmittedTool(
                        adapter_id=candidate.adapter_id,
                        capability=candidate.capability,
                        reasons=reasons,
                        at=candidate.at,
                    )
                )
            else:
                tools.append(candidate.surface_tool(decision, bounds))
        return Surface(tools=tuple(tools), left_out=tuple(left_out))

    def _limits(self, decision: PolicyDecision, ceiling: ApprovalMode, reach: IntentReach) -> _Limits:
        prohibited: dict[str, list[str]] = {}
        for effect in decision.effects if decision.prohibits else ():
            for name in effect.effect.prohibits:
                rules = prohibited.setdefault(name, [])
                rules += [] if effect.rule_id in rules else [effect.rule_id]
        return _Limits(
            prohibited=prohibited,
            ceiling=ceiling,
            reach=reach,
            denied_by=None if decision.allowed else tuple(denial.by for denial in decision.denials if denial.by),
            ends_run=bool(decision.guardrails.triggered),
            prohibitable=frozenset() if decision.allowed else self._policy.prohibitable(decision.intent),
            gateable=frozenset()
            if decision.allowed
            else self._policy.gates_after_denial(decision.intent).difference(decision.requires_approval_gates),
        )

    def _candidates(self, intent: str) -> tuple[_Candidate, ...]:
        # Intents that no permission names share one entry: a caller may invent any number of them.
        key = intent if intent in self._scoped else None
        candidates = self._by_intent.get(key)
        if candidates is None:
            candidates = self._by_intent[key] = tuple(_Candidate(declared, key) for declared in self._declared)
        return candidates


def _declared_tools(layer: ToolingLayer) -> Iterator[_DeclaredTool]:
    """The capabilities that adapters declare, in document order; then those that only permissions name."""
    granted: dict[tuple[str, str], list[tuple[str, Permission]]] = {}
    for n, permission in enumerate(layer.permissions):
        granted.setdefault((permission.adapter_id, permission.capability), []).append(
            (f"/tooling_layer/permissions/{n}", permission)
        )
    for n, adapter in enumerate(layer.adapter_registry):
        for c, capability in enumerate(adapter.capabilities):
            permissions = granted.pop((adapter.adapter_id, capability), [])
            at = f"/tooling_layer/adapter_registry/{n}/capabilities/{c}"
            yield _DeclaredTool(adapter, adapter.adapter_id, capability, permissions, at)
    for (adapter_id, capability), permissions in granted.items():
        yield _DeclaredTool(None, adapter_id, capability, permissions, permissions[0][0])


def _is_for(permission: Permission, intent: str | None) -> bool:
    return not permission.intents or intent in permission.intents


def _outside(declared: _DeclaredTool, permissions: Sequence[tuple[str, Permission]], name: str) -> Iterator[Reason]:
    """The reasons that keep a capability out of every surface of the intent."""
    if declared.adapter is None:
        yield Reason(kind="not_in_registry", by=(), message=f"no adapter declares {name}")
    if not declared.permissions:
        yield Reason(kind="not_permitted", by=(), message=f"no permission names {name}")
    elif not permissions:
        others = tuple(permission.permission_id for _, permission in declared.permissions)
        yield Reason(kind="not_for_intent", by=others, message=f"{', '.join(others)} is for other intents")
    denying = tuple(permission.permission_id for _, permission in permissions if not permission.allow)
    if denying:
        yield Reason(kind="permission_denies", by=denying, message=f"denied by {', '.join(denying)}")


def _problems(layer: ToolingLayer, policy: PolicyProgram) -> Iterator[PolicyProblem]:
    registry = layer.adapter_registry
    declared = {f"{adapter.adapter_id}.{name}" for adapter in registry for name in adapter.capabilities}
    for at, name in policy.general_arguments:
        if name in declared:
            yield PolicyProblem(
                refusal=ScopeUnclear,
                at=at,
                message=f"{name} is a capability, and is constrained as if it were an argument",
                hint="under a capability, name its arguments, and the constraint of each",
            )
    yield from duplicate_ids(
        "/tooling_layer/adapter_registry", "adapter_id", [adapter.adapter_id for adapter in registry]
    )
    for n, adapter in enumerate(registry):
        capabilities = list(adapter.capabilities)
        yield from duplicate_ids(f"/tooling_layer/adapter_registry/{n}/capabilities", "", capabilities)
        for name, spec in adapter.capability_specs.items():
            if spec.approval_mode is not None and not at_most(spec.approval_mode, adapter.approval_mode):
                yield PolicyProblem(
                    refusal=ModeAboveAdapter,
                    at=f"/tooling_layer/adapter_registry/{n}/capability_specs/{name}/approval_mode",
                    message=f"{adapter.adapter_id}.{name} is {spec.approval_mode}, above its adapter",
                    hint=f"the adapter is {adapter.approval_mode}: lower the one, or raise the other",
                )
    for n, permission in enumerate(layer.permissions):
        at = f"/tooling_layer/permissions/{n}"
        for gate in (name for name in permission.gate_ids if name not in policy.gates):
            message, hint = f"nobody declared the approval gate {gate}", "declare it in approval_gates"
            yield PolicyProblem(refusal=GateUnknown, at=f"{at}/requires_approval_gate", message=message, hint=hint)
        yield from pattern_problems(at, permission.arg_constraints)
