"""Coverage of a pack by cases: which rules, guardrails and gates they made true, and which false."""

from collections.abc import Iterable, Iterator
from typing import Literal

from contextplane.compiler.draft import Draft
from contextplane.compiler.overrides import guardrail_labels
from contextplane.model.context_pack import ContextPack
from contextplane.model.value import Value

__all__ = ["Coverage", "CoveredItem", "measure_coverage"]

CoveredKind = Literal["rule", "guardrail", "gate"]


class CoveredItem(Value, frozen=True):
    """A rule, a guardrail or a gate, and how many cases made it true and false.

    True is: the condition of the rule held, the guardrail was triggered, the gate was active. `undecided`: cases in
    which a rule failed or missed a fact. `constant`: its condition is a constant, and has only one outcome.
    """

    kind: CoveredKind
    id: str
    true: int = 0
    false: int = 0
    undecided: int = 0
    constant: bool = False

    @property
    def outcomes(self) -> int:
        """How many outcomes it has."""
        return 1 if self.constant else 2

    @property
    def missing(self) -> tuple[str, ...]:
        """The outcomes that no case has, in words."""
        if not self.true and not self.false:
            return ("never decided",)
        if self.constant:
            return ()
        words = _WORDS[self.kind]
        return tuple(word for word, count in zip(words, (self.true, self.false), strict=True) if not count)


_WORDS: dict[CoveredKind, tuple[str, str]] = {
    "rule": ("never true", "never false"),
    "guardrail": ("never triggered", "always triggered"),
    "gate": ("never active", "always active"),
}


class Coverage(Value, frozen=True):
    """All rules, guardrails and gates of a pack, each with the cases that decided it."""

    pack: str
    items: tuple[CoveredItem, ...]

    @property
    def total(self) -> int:
        """How many outcomes there are: two of each item, one of a constant."""
        return sum(item.outcomes for item in self.items)

    @property
    def covered(self) -> int:
        return sum(min(item.outcomes, bool(item.true) + bool(item.false)) for item in self.items)

    @property
    def percent(self) -> int:
        """The part that is covered, rounded down: 100 is everything."""
        return 100 * self.covered // self.total if self.total else 100


def measure_coverage(pack: ContextPack, drafts: Iterable[Draft]) -> Coverage:
    """Measure which outcomes of a pack these compiled cases have."""
    counts = {key: [0, 0, 0] for key, _ in _all_items(pack)}
    for draft in drafts:
        for key, outcome in _outcomes(draft):
            if key in counts:
                counts[key][outcome] += 1
    return Coverage(
        pack=str(pack.ref),
        items=tuple(
            CoveredItem(
                kind=key[0],
                id=key[1],
                true=counts[key][_TRUE],
                false=counts[key][_FALSE],
                undecided=counts[key][_UNDECIDED],
                constant=constant,
            )
            for key, constant in _all_items(pack)
        ),
    )


_TRUE, _FALSE, _UNDECIDED = range(3)
_Key = tuple[CoveredKind, str]


def _all_items(pack: ContextPack) -> Iterator[tuple[_Key, bool]]:
    """Yield every rule, guardrail and gate, and whether its condition is a constant."""
    for bundle in pack.policy_layer.policy_bundles:
        for rule in bundle.policy_dsl.rules:
            yield ("rule", f"{bundle.bundle_id}#{rule.rule_id}"), isinstance(rule.condition, bool)
    for label in dict.fromkeys(guardrail_labels(pack)):
        yield ("guardrail", label), False
    for gate in pack.policy_layer.approval_gates:
        yield ("gate", gate.gate_id), False


def _outcomes(draft: Draft) -> Iterator[tuple[_Key, int]]:
    decision = draft.decision
    for effect in decision.effects:
        if effect.undecided is None:
            yield ("rule", f"{effect.bundle_id}#{effect.rule_id}"), _TRUE if effect.branch == "then" else _FALSE
    for rule in decision.idle:
        if rule.kind != "out_of_scope":
            outcome = _FALSE if rule.kind == "no_else" else _UNDECIDED
            yield ("rule", f"{rule.bundle_id}#{rule.rule_id}"), outcome
    for error in decision.errors:
        yield ("rule", f"{error.bundle_id}#{error.rule_id}"), _UNDECIDED
    verdict = decision.guardrails
    triggered = {guardrail.id for guardrail in verdict.triggered}
    for label in dict.fromkeys((*verdict.must_refuse, *verdict.must_escalate)):
        yield ("guardrail", label), _TRUE if label in triggered else _FALSE
    active = set(draft.assemble.controls.approval_gates_active)
    for gate in draft.inputs.view.pack.policy_layer.approval_gates:
        yield ("gate", gate.gate_id), _TRUE if gate.gate_id in active else _FALSE
