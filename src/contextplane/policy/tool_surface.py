"""The tool surface: which capabilities a run may use, and for all others why not.

Surfaced is what the registry declares and a permission allows, unless policy prohibits it or it is above the run's
ceiling. When the intent is denied, only tools that read are left. Every candidate is either surfaced or omitted with
all of its reasons, in document order.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Self

from contextplane.model.arguments import placed_constraints
from contextplane.model.json.canonical import canonical
from contextplane.model.pack_layers import Adapter, Permission, ToolingLayer
from contextplane.model.terms import APPROVAL_MODES, ApprovalMode, at_most
from contextplane.model.value import Value
from contextplane.policy.bounds import DeclaredBound, DeclaredBounds, permission_references
from contextplane.policy.decision import ArgumentBound, PolicyDecision
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

__all__ = ["OmittedTool", "Reason", "ReasonKind", "Surface", "SurfacedTool", "ToolProgram"]

ReasonKind = Literal[
    "not_in_registry", "not_permitted", "permission_denies", "prohibited", "above_ceiling", "intent_denied"
]
_READS: ApprovalMode = "read_only"


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


class _Candidate:
    """A capability with everything about it that no request can change."""

    def __init__(
        self, adapter: Adapter | None, capability: str, permissions: Sequence[tuple[str, Permission]], at: str
    ) -> None:
        self.adapter_id = permissions[0][1].adapter_id if adapter is None else adapter.adapter_id
        self.capability = capability
        self.id = f"{self.adapter_id}.{capability}"
        self.at = at
        self.mode: ApprovalMode = APPROVAL_MODES[-1] if adapter is None else adapter.mode_of(capability)
        self.always_out = tuple(_outside(adapter, permissions, self.id))
        allowing = [(place, permission) for place, permission in permissions if permission.allow]
        self.permission_ids = tuple(permission.permission_id for _, permission in allowing)
        self.gate_ids = tuple(dict.fromkeys(gate for _, permission in allowing for gate in permission.gate_ids))
        self.bounds = DeclaredBounds(
            DeclaredBound(placed, origin=f"permission:{permission.permission_id}", at=f"{place}{placed.at}")
            for place, permission in allowing
            for placed in placed_constraints(permission.arg_constraints)
        )
        self.produces = tuple(dict.fromkeys(name for _, permission in allowing for name in permission.produces))

    def reasons(
        self, decision: PolicyDecision, prohibited: Mapping[str, list[str]], ceiling: ApprovalMode
    ) -> Iterator[Reason]:
        """Every reason to omit it, in the order in which the surface is computed."""
        yield from self.always_out
        if self.id in prohibited:
            rules = tuple(prohibited[self.id])
            yield Reason(kind="prohibited", by=rules, message=f"prohibited by {', '.join(rules)}")
        if not at_most(self.mode, ceiling):
            yield Reason(
                kind="above_ceiling", by=(ceiling,), message=f"is {self.mode}, and the run's ceiling is {ceiling}"
            )
        if not decision.allowed and self.mode != _READS:
            by = tuple(denial.by for denial in decision.denials if denial.by)
            yield Reason(kind="intent_denied", by=by, message="the intent is denied, so only what reads is left")

    def surface_tool(self, decision: PolicyDecision) -> SurfacedTool:
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
                *(bound for bound in decision.arg_constraints if bound.capability in (None, self.id)),
            ),
            produces=self.produces,
            at=self.at,
        )


class ToolProgram:
    """The tooling layer of one pack, prepared for many requests."""

    def __init__(self, layer: ToolingLayer) -> None:
        self._candidates = tuple(_candidates(layer))

    @classmethod
    def of(cls, layer: ToolingLayer, policy: PolicyProgram) -> Self:
        """Prepare a tooling layer, or refuse it with all of its problems."""
        canonical(layer)
        refuse_all(tuple(_problems(layer, policy)))
        if not policy.references.issuperset(permission_references(layer)):
            raise ValueError("the policy was compiled without the facts that permissions refer to")
        return cls(layer)

    def surface(self, decision: PolicyDecision, ceiling: ApprovalMode) -> Surface:
        """The capabilities that a run under this decision and ceiling may use, and the omitted ones."""
        tools: list[SurfacedTool] = []
        left_out: list[OmittedTool] = []
        prohibited: dict[str, list[str]] = {}
        for effect in decision.effects if decision.prohibits else ():
            for name in effect.effect.prohibits:
                rules = prohibited.setdefault(name, [])
                rules += [] if effect.rule_id in rules else [effect.rule_id]
        for candidate in self._candidates:
            reasons = tuple(candidate.reasons(decision, prohibited, ceiling))
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
                tools.append(candidate.surface_tool(decision))
        return Surface(tools=tuple(tools), left_out=tuple(left_out))


def _candidates(layer: ToolingLayer) -> Iterator[_Candidate]:
    """The capabilities that adapters declare, in document order; then those that only permissions name."""
    granted: dict[tuple[str, str], list[tuple[str, Permission]]] = {}
    for n, permission in enumerate(layer.permissions):
        granted.setdefault((permission.adapter_id, permission.capability), []).append(
            (f"/tooling_layer/permissions/{n}", permission)
        )
    for n, adapter in enumerate(layer.adapter_registry):
        for c, capability in enumerate(adapter.capabilities):
            permissions = granted.pop((adapter.adapter_id, capability), [])
            yield _Candidate(adapter, capability, permissions, f"/tooling_layer/adapter_registry/{n}/capabilities/{c}")
    for (_, capability), permissions in granted.items():
        yield _Candidate(None, capability, permissions, permissions[0][0])


def _outside(adapter: Adapter | None, permissions: Sequence[tuple[str, Permission]], name: str) -> Iterator[Reason]:
    """The reasons that keep a capability out of every surface."""
    if adapter is None:
        yield Reason(kind="not_in_registry", by=(), message=f"no adapter declares {name}")
    if not permissions:
        yield Reason(kind="not_permitted", by=(), message=f"no permission names {name}")
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
