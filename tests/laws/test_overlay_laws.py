"""An accepted overlay lets no run do more: whatever the overlay changes, and whatever the request.

Each overlay is judged by the engines that decide runs: those of the pack, and of the pack with the overlay.
"""

import copy
from collections import Counter
from collections.abc import Iterable
from functools import cache
from math import inf
from typing import Any

import msgspec
import pytest

from contextplane.authoring.overlay.resolved_view import resolve_view
from contextplane.compiler.evidence import is_classified_above
from contextplane.compiler.view import PackView
from contextplane.errors import ContextPlaneError
from contextplane.model.arguments import CallLimit
from contextplane.model.artifact import Overlay, OverlayChange
from contextplane.model.context_pack import ContextPack
from contextplane.model.terms import APPROVAL_MODES, DataClassification
from contextplane.policy.approval_gates import active_gates
from contextplane.policy.arguments import violations
from contextplane.policy.bounds import permission_references
from contextplane.policy.engine import PolicyProgram
from contextplane.policy.facts import Facts, FactsRefused
from contextplane.policy.tool_surface import ToolProgram
from tests.support.overlay_cases import (
    REMOVED,
    DrawnChange,
    constants_by_path,
    drawn_changes,
    drawn_request,
    limit_changes,
    narrowing_changes,
)
from tests.support.policy_cases import Dice, drawn_facts, drawn_policy, drawn_tooling, seeded
from tests.support.samples import PROFILE
from tests.unit.authoring.packs import EXAMPLE

Json = Any

OVERLAYS, SHARDS = (125, 16) if PROFILE == "laws" else (30, 3)
"""In every run 90 overlays; in `make laws` 2,000."""

REQUESTS = 100
CLASSES: tuple[DataClassification, ...] = ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED")
CALLS: tuple[dict[str, Json], ...] = (
    *(
        {"amount": amount, "amount_inr": amount, "key": "k", "idempotency_key": "k"}
        for amount in (-1, 0, 1, 99, 100, 101, 4999, 50_001)
    ),
    {"amount": 1, "amount_inr": 1},
    {"amount": "INR", "key": "INR", "amount_inr": "INR", "idempotency_key": "INR", "fresh": 20},
    {"amount": 12, "key": 1, "fresh": 60},
    {},
)


class Allowance(msgspec.Struct, frozen=True):
    """What one run may do. `calls`: each call that it may make, and the gates that the call waits for.

    `limits`: the most of each thing that is counted, by the tool and what is counted together.
    """

    allowed: bool
    modes: dict[str, int]
    calls: dict[tuple[str, int], frozenset[str]]
    gates: dict[str, tuple[int, int]]
    limits: dict[tuple[str | None, ...], float]
    requires: frozenset[str]
    attestable: frozenset[str]
    triggered: frozenset[str]
    admitted: frozenset[str]
    redacted: frozenset[str]

    def excess(self, other: "Allowance") -> str:
        """What this run may do that the other may not; "" for nothing."""
        more = {
            "it is allowed": self.allowed and not other.allowed,
            "a tool is surfaced, or needs less": any(
                mode < other.modes.get(tool, len(APPROVAL_MODES)) for tool, mode in self.modes.items()
            ),
            "a call is possible, or waits for less": any(
                call not in other.calls or not other.calls[call] <= gates for call, gates in self.calls.items()
            ),
            "an approval is easier, or holds longer": any(
                self.gates[gate][0] < other.gates[gate][0] or self.gates[gate][1] > other.gates[gate][1]
                for gate in self.gates.keys() & other.gates.keys()
            ),
            "a tool may be called more often, or for more": any(
                self.limits.get(counted, inf) > most
                for counted, most in other.limits.items()
                if counted[0] in self.modes
            ),
            "a guardrail is not triggered": not other.triggered <= self.triggered,
            "less evidence is required": self.allowed and not other.requires <= self.requires,
            "a request attests more evidence itself": not self.attestable
            <= other.attestable | (self.requires - other.requires),
            "more is admitted": not self.admitted <= other.admitted,
            "less is redacted": not other.redacted <= self.redacted,
        }
        return "; ".join(what for what, is_so in more.items() if is_so)


class Runs:
    """A pack that is ready to decide."""

    def __init__(self, value: Json) -> None:
        self.pack = pack = msgspec.convert(value, type=ContextPack)
        maxima = {spec.decision_key: spec.approval_mode for spec in pack.decision_layer.decision_specs}
        references = frozenset(permission_references(pack.tooling_layer))
        self.policy = PolicyProgram.of(pack.policy_layer, maxima=maxima, references=references)
        self.tools = ToolProgram.of(pack.tooling_layer, self.policy)
        self.view = PackView(pack, ontologies=())

    def allowance(self, facts: Facts) -> Allowance:
        decision = self.policy.decide(facts)
        surface = self.tools.surface(decision, facts.safety_mode, self.view.intent(facts.intent).reach)
        active = active_gates(self.policy, decision, surface, facts).active
        calls: dict[tuple[str, int], frozenset[str]] = {}
        for tool in surface.tools:
            gates = frozenset(gate.gate_id for gate in active if tool.capability_id in gate.capabilities)
            for n, arguments in enumerate(CALLS):
                changes = tool.declared_mode != "read_only"
                if not violations(tool.bounds, arguments, approved=bool(gates), changes=changes):
                    calls[tool.capability_id, n] = gates
        ceiling = self.pack.pack_meta.data_classification
        requires = frozenset({*decision.requires, *self.view.intent(facts.intent).required_evidence})
        return Allowance(
            allowed=decision.allowed,
            modes={tool.capability_id: APPROVAL_MODES.index(tool.effective_mode) for tool in surface.tools},
            calls=calls,
            gates={gate.gate_id: (gate.gate.approvers, gate.gate.ttl_seconds) for gate in active},
            limits=most_by_limit((tool.capability_id, entry.limit) for tool in surface.tools for entry in tool.limits),
            requires=requires,
            attestable=requires - self.view.evidence_producers.names,
            triggered=frozenset(guardrail.id for guardrail in decision.guardrails.triggered),
            admitted=frozenset(level for level in CLASSES if not is_classified_above(level, ceiling)),
            redacted=frozenset(self.pack.policy_layer.guardrails.redaction_rules),
        )


def most_by_limit(limits: Iterable[tuple[str, CallLimit]]) -> dict[tuple[str | None, ...], float]:
    """The most of each thing that the limits of these tools count: of two limits, the lower one holds."""
    lowest: dict[tuple[str | None, ...], float] = {}
    for tool, limit in limits:
        counted = (tool, limit.per, limit.period, limit.sum_of)
        most = limit.max if limit.max_calls is None else limit.max_calls
        lowest[counted] = min(lowest.get(counted, inf), most or inf)
    return lowest


@cache
def base_pack(number: int) -> Json:
    """The full example, or the example with a drawn policy and drawn tools."""
    pack = copy.deepcopy(EXAMPLE)
    if number % 5 == 0:
        return pack
    dice = seeded(number)
    policy, maxima = drawn_policy(dice)
    policy["guardrails"]["redaction_rules"] = ["email"]
    spec = pack["decision_layer"]["decision_specs"][0]
    specs = [
        {
            **spec,
            "decision_key": key,
            "approval_mode": mode,
            "on_deny": dice.pick(["none", "read"]),
            "required_evidence": dice.some(["order_lookup", "payment_issue", "mail_send", "identity"], 3)
            or ["identity"],
        }
        for key, mode in maxima.items()
    ]
    tooling = drawn_tooling(dice)
    named = {(permission["adapter_id"], permission["capability"]): permission for permission in tooling["permissions"]}
    for permission in named.values():
        if dice.chance(40):
            permission["arg_constraints"] = {"amount": {"max": 100, "unless_approved": dice.chance(40)}}
    pack["policy_layer"] = policy
    pack["tooling_layer"] = {**tooling, "permissions": list(named.values())}
    pack["decision_layer"]["decision_specs"] = specs or [spec]
    return pack


def overlay(changes: list[DrawnChange]) -> Overlay:
    return Overlay(
        overlay_id="ov.drawn",
        overlay_version="1.0.0",
        base_pack_id="ctxpack.support",
        environment="staging",
        order=0,
        issuer="tenant_acme_prod",
        changes=tuple(
            OverlayChange(at=at, remove=True) if value is REMOVED else OverlayChange(at=at, value=value)
            for at, value in changes
        ),
    )


def accepted(pack: Json, changes: list[DrawnChange]) -> Json | None:
    """The pack with the overlay; None when that is refused, or is no pack that can run."""
    try:
        value = resolve_view(pack, [overlay(changes)]).value
        Runs(value)
    except (ContextPlaneError, msgspec.ValidationError):
        return None
    return value


def requests(dice: Dice, documents: Json) -> list[Facts]:
    paths = constants_by_path(documents)
    drawn: list[Facts] = []
    while len(drawn) < REQUESTS:
        facts = drawn_facts(dice)
        if dice.chance(60):
            facts["intent"] = facts["request"]["intent"] = "support.refund"
        try:
            drawn.append(Facts.of(**drawn_request(dice, facts, paths)))
        except FactsRefused:
            continue
    return drawn


def excess(dice: Dice, pack: Json, value: Json) -> str:
    """What some request may do with the overlay and not without it; "" for nothing."""
    before, after = Runs(pack), Runs(value)
    layers = [[document["policy_layer"], document["decision_layer"]["decision_specs"]] for document in (pack, value)]
    for facts in requests(dice, layers):
        more = after.allowance(facts).excess(before.allowance(facts))
        if more:
            return f"{more}: {facts.data}"
    return ""


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_accepted_overlay_lets_any_run_do_more(shard: int) -> None:
    verdicts = Counter[bool]()
    for n in range(OVERLAYS):
        seed = shard * 10_000 + n
        dice, pack = seeded(seed), base_pack(seed)
        changes = drawn_changes(dice, pack)
        value = accepted(pack, changes)
        verdicts[value is not None] += 1
        if value is not None:
            assert not excess(dice, pack, value), (seed, changes)
    assert verdicts[True] >= OVERLAYS // 20, "refusing everything proves nothing"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_most_plain_narrowings_are_accepted(shard: int) -> None:
    taken = 0
    for n in range(OVERLAYS):
        seed = shard * 10_000 + n
        dice, pack = seeded(seed), base_pack(seed)
        value = accepted(pack, narrowing_changes(dice, pack))
        if value is not None:
            taken += 1
            assert not excess(dice, pack, value), seed
    assert taken >= OVERLAYS * 0.8


def test_no_accepted_overlay_raises_a_limit_of_calls() -> None:
    verdicts = Counter[bool]()
    for seed in range(OVERLAYS * 4):
        dice, pack = seeded(seed), base_pack(seed)
        changes = limit_changes(dice, pack)
        value = accepted(pack, changes)
        verdicts[value is not None] += 1
        if value is not None:
            before, after = (most_by_limit(permitted(document)) for document in (pack, value))
            assert all(after.get(counted, inf) <= most for counted, most in before.items()), (seed, changes)
    assert min(verdicts[True], verdicts[False]) >= OVERLAYS // 2


def permitted(document: Json) -> list[tuple[str, CallLimit]]:
    permissions = msgspec.convert(document, type=ContextPack).tooling_layer.permissions
    return [
        (f"{permission.adapter_id}.{permission.capability}", limit)
        for permission in permissions
        for limit in permission.limits
    ]
