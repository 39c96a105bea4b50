"""Candidate overrides for a counterfactual search: changes of a request that may flip an item.

They come from the pack: the constants and the other facts that its rules compare with, the roles and intents that it
names, the ladder of modes, the labels of its guardrails, the sizes of its blocks.
"""

from collections.abc import Iterator

from contextplane.authoring.evidence import POLICY_EVAL
from contextplane.compiler.overrides import (
    ABSENT,
    Override,
    OverrideInvalid,
    fact_pointer,
    guardrail_labels,
    pack_conditions,
    value_at,
)
from contextplane.compiler.report import ContextItem
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.terms import APPROVAL_MODES
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.policy.clock import LOCAL_CLOCK, clock_facts
from contextplane.policy.facts import SCOPE_FACTS
from contextplane.policy.logic.expression import Expression, LogicFailed, compile_expression, variables
from contextplane.policy.logic.solver import VariableUses
from contextplane.policy.logic.strict import operation
from contextplane.policy.redaction.redactor import Redactor

__all__ = ["candidate_overrides"]

_OTHER = "other"
_NOT_TYPEABLE = object()
_MODE = "/run_context/safety_mode"
_BUDGET = "/run_context/run_budget"
_AS_OF = "/as_of"
_COMPARISONS = frozenset({"==", "===", "!=", "!==", "<", "<=", ">", ">="})
_TWO = 2
_DAY, _WEEK = 24, 168
"""In hours."""

_REFERENCE_KEYS = {"evidence": "evidence_ref", "memories": "memory_ref"}


def candidate_overrides(
    view: PackView, value: Json, compiled: CompiledContext, item: ContextItem
) -> tuple[Override, ...]:
    """Every candidate, the likeliest first. Overrides that change nothing are left out."""
    pack = view.pack
    candidates: dict[tuple[str, str], Override] = {}
    over_budget = not item.inside and item.words.startswith("over_")
    for override in (
        *(_budget_overrides(compiled, item) if over_budget else ()),
        *_requirement_overrides(pack, item),
        *_piece_overrides(value, item),
        *_mode_overrides(value),
        *_peer_overrides(pack, value, view.redactor),
        *_fact_overrides(pack, value),
        *_clock_overrides(pack, value),
        *_label_overrides(pack),
        *_scope_overrides(pack, view.known_intents),
        *_budget_overrides(compiled, item),
    ):
        now = value_at(value, override.at)
        if now is ABSENT:
            now = None
        if now != override.value or type(now) is not type(override.value):
            candidates.setdefault((override.at, override.words), override)
    return tuple(candidates.values())


def _mode_overrides(value: Json) -> Iterator[Override]:
    """Yield the ladder of modes, the nearest steps first."""
    now = value_at(value, _MODE)
    here = APPROVAL_MODES.index(now) if now in APPROVAL_MODES else 0
    for mode in sorted(APPROVAL_MODES, key=lambda mode: abs(APPROVAL_MODES.index(mode) - here)):
        yield Override(name="safety_mode", at=_MODE, value=mode)


def _fact_overrides(pack: ContextPack, value: Json) -> Iterator[Override]:
    """Yield each value at which a condition can change, for each fact that one reads; the nearest first."""
    uses = _uses(pack)
    for path, at in _places(uses):
        now = value_at(value, at)
        typeable = (_typeable_value(candidate) for candidate in uses.candidates(path))
        values = [candidate for candidate in typeable if candidate is not _NOT_TYPEABLE]
        for candidate in sorted(values, key=lambda candidate: _distance(now, candidate)):
            yield Override(name=path, at=at, value=candidate)


def _peer_overrides(pack: ContextPack, value: Json, redactor: Redactor) -> Iterator[Override]:
    """Yield for two compared facts the value of each for the other, unless a redaction hides it."""
    for first, second in dict.fromkeys(
        pair for condition in pack_conditions(pack) for pair in _list_compared(condition)
    ):
        try:
            places = {path: fact_pointer(path) for path in (first, second)}
        except OverrideInvalid:
            continue
        for path, peer in ((first, second), (second, first)):
            now = value_at(value, places[peer])
            if not isinstance(now, str | int | float):
                continue
            if all(redactor.mask_member(name.split("."), now).value == now for name in places):
                yield Override(name=path, at=places[path], value=now)


def _list_compared(condition: Json) -> Iterator[tuple[str, str]]:
    """Yield the paths of each two facts that are compared with each other."""
    operator, operands = operation(condition)
    read = [names for name, names in map(operation, operands) if name == "var"]
    paths = [names[0] for names in read if names and isinstance(names[0], str)]
    if operator in _COMPARISONS and len(paths) == len(operands) == _TWO:
        yield paths[0], paths[1]
    for operand in operands:
        yield from _list_compared(operand)


def _clock_overrides(pack: ContextPack, value: Json) -> Iterator[Override]:
    """Yield a moment for each combination of what conditions say of the clock; the next ones first."""
    uses, timezone = _uses(pack), pack.pack_meta.environment_defaults.timezone
    tests = [compile_expression(test) for condition in pack_conditions(pack) for test in _clock_tests(condition)]
    seen: set[tuple[bool | None, ...]] = set()
    for moment in _moments(pack, uses, value) if tests else ():
        facts: dict[str, Json] = {"run": clock_facts(moment, timezone)}
        outcomes = tuple(_outcome(test, facts) for test in tests)
        if outcomes not in seen:
            seen.add(outcomes)
            yield Override(name="run.as_of", at=_AS_OF, value=str(moment))


def _clock_tests(condition: Json) -> Iterator[Json]:
    """Yield the parts of a condition that read the local clock, and nothing else."""
    paths = variables(condition)
    if paths and paths <= LOCAL_CLOCK:
        yield condition
    elif not paths.isdisjoint(LOCAL_CLOCK):
        for part in operation(condition)[1]:
            yield from _clock_tests(part)


def _moments(pack: ContextPack, uses: VariableUses, value: Json) -> Iterator[Timestamp]:
    """Yield each hour of the week from the moment of the case, then those around each named date."""
    dates = uses.candidates("run.date") if "run.date" in uses.paths else []
    for start in (value_at(value, _AS_OF), pack.contract_meta.created_at, *dates):
        try:
            text = start if isinstance(start, str) else ""
            moment = Timestamp.parse(text if "T" in text else f"{text}T00:00:00Z")
        except InvalidTimestamp:
            continue
        hours = range(_WEEK) if "T" in text else range(-_DAY, 2 * _DAY)
        yield from (Timestamp(seconds=max(0, moment.seconds + hour * 3600), nanos=0) for hour in hours)


def _outcome(test: Expression, facts: dict[str, Json]) -> bool | None:
    try:
        return test.holds(facts)
    except LogicFailed:
        return None


def _uses(pack: ContextPack) -> VariableUses:
    uses = VariableUses()
    for condition in pack_conditions(pack):
        uses.add(condition)
    return uses


def _places(uses: VariableUses) -> Iterator[tuple[str, str]]:
    """Yield the name and the place of each fact. A path that is no fact cannot be in a request."""
    for path in sorted(uses.paths):
        try:
            yield path, fact_pointer(path)
        except OverrideInvalid:
            continue


def _typeable_value(value: Json) -> object:
    """The value as a person would type it; null removes a fact. `_NOT_TYPEABLE` if no person would."""
    if isinstance(value, str):
        if value.startswith("\u0001"):
            return _OTHER
        return value if value and value.isprintable() else _NOT_TYPEABLE
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return _NOT_TYPEABLE if isinstance(value, list | dict) else value


def _distance(now: object, candidate: object) -> tuple[bool, bool, float]:
    """The sort key of a candidate: the same type first, then the nearest number; null is last."""
    distance = abs(now - candidate) if isinstance(now, int | float) and isinstance(candidate, int | float) else 0.0
    return (candidate is None, type(now) is not type(candidate), distance)


def _label_overrides(pack: ContextPack) -> Iterator[Override]:
    for label in guardrail_labels(pack):
        name = f"request.context.{label}"
        yield Override(name=name, at=fact_pointer(name), value=True)
        yield Override(name=name, at=fact_pointer(name), value=None)
    yield Override(name="request.context.signals", at="/request/input/context/signals", value=None)


def _scope_overrides(pack: ContextPack, intents: frozenset[str]) -> Iterator[Override]:
    """Yield the values that `applies_to` names, and every intent that the pack knows."""
    for bundle in pack.policy_layer.policy_bundles:
        for rule in bundle.policy_dsl.rules:
            for key, scope in rule.applies_to.items():
                for value in (scope,) if isinstance(scope, str) else scope:
                    if key not in {"intent", "tenant_id"}:
                        yield Override(name=SCOPE_FACTS[key], at=fact_pointer(SCOPE_FACTS[key]), value=value)
                        yield Override(name=SCOPE_FACTS[key], at=fact_pointer(SCOPE_FACTS[key]), value=_OTHER)
    for intent in sorted(intents):
        yield Override(name="intent", at=fact_pointer("intent"), value=intent)


def _requirement_overrides(pack: ContextPack, item: ContextItem) -> Iterator[Override]:
    """Yield values for a required name: true answers any name; a failing condition unanswers policy."""
    if item.kind == "requirement":
        name = f"request.context.{item.id}"
        yield Override(name=name, at=fact_pointer(name), value=True)
        yield Override(name=name, at=fact_pointer(name), value=None)
        if item.id == POLICY_EVAL and item.inside:
            yield from (Override(name=path, at=at, value=_OTHER) for path, at in _places(_uses(pack)))


def _budget_overrides(compiled: CompiledContext, item: ContextItem) -> Iterator[Override]:
    """Yield budgets in which all dropped blocks fit, and empty ones; the bucket of the item first."""
    report = compiled.budget_report
    dropped = dict.fromkeys(report.tokens_allocated, 0)
    for omission in compiled.manifests.omission_manifest:
        if omission.bucket is not None and omission.tokens is not None:
            dropped[omission.bucket] += omission.tokens
    whole = report.tokens_used_at_compile + sum(dropped.values())
    buckets = sorted(report.tokens_used_by_bucket.items(), key=lambda bucket: bucket[0] != item.kind)
    for n, (bucket, used) in enumerate(buckets):
        yield _bucket_override(bucket, used + dropped[bucket])
        if item.inside:
            yield _bucket_override(bucket, 0)
        if not n:
            for total in (whole, 0) if item.inside else (whole,):
                yield Override(name="run.budget.total_tokens", at=f"{_BUDGET}/total_tokens", value=total)


def _bucket_override(bucket: str, tokens: int) -> Override:
    at = f"{_BUDGET}/bucket_tokens/{bucket}"
    return Override(name=f"run.budget.bucket_tokens.{bucket}", at=at, value=tokens)


def _piece_overrides(value: Json, item: ContextItem) -> Iterator[Override]:
    """Yield changes of the piece, or of pieces of the required type: trust, state, time and snapshot."""
    if not isinstance(value, dict):
        return
    for part, key in _REFERENCE_KEYS.items():
        pieces = value.get(part)
        for n, piece in enumerate(pieces if isinstance(pieces, list) else ()):
            ref = piece.get(key) if isinstance(piece, dict) else piece
            if ref == item.id or (isinstance(piece, dict) and piece.get("type") == item.id):
                yield from _overrides_of_piece(f"/{part}/{n}", piece, str(ref))


def _overrides_of_piece(at: str, piece: Json, ref: str) -> Iterator[Override]:
    if "#snapshot_" in ref:
        snapshot = ref.partition("#snapshot_")[2]
        yield Override(name="/environment/snapshot", at="/environment/snapshot", value=snapshot)
        yield Override(name="/environment/snapshot", at="/environment/snapshot", value=None)
    if not isinstance(piece, dict):
        return
    fields = {"trust": ("verified", "untrusted"), "state": ("promoted", "candidate"), "classification": ("PUBLIC",)}
    for name, values in fields.items():
        if name in piece or name == "classification":
            yield from (Override(name=f"{at}/{name}", at=f"{at}/{name}", value=value) for value in values)
    freshness = piece.get("freshness")
    times = freshness if isinstance(freshness, dict) else piece
    for name in ("observed_at", "expires_at"):
        if isinstance(times.get(name), str):
            yield Override(name="/as_of", at="/as_of", value=times[name])
    yield Override(name="/as_of", at="/as_of", value=None)
