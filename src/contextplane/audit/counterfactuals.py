"""What could be otherwise in a request: the changes that are worth trying when one asks what would flip something.

They come from the pack itself: the constants that its rules compare with, the roles and intents that it names, the
ladder of modes, the labels of its guardrails, the sizes of its blocks. Each is one knob.
"""

from collections.abc import Iterator

from contextplane.authoring.evidence import POLICY_EVAL
from contextplane.compiler.overrides import ABSENT, Knob, KnobInvalid, conditions_of, fact_at, labels_of, value_at
from contextplane.compiler.report import Item
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.model.terms import APPROVAL_MODES
from contextplane.policy.facts import MATCHED
from contextplane.policy.logic.solver import Uses

__all__ = ["changes_worth_trying"]

_OTHER = "other"
_UNTYPED = object()
_MODE = "/run_context/safety_mode"
_BUDGET = "/run_context/run_budget"
_PIECES = {"evidence": "evidence_ref", "memories": "memory_ref"}


def changes_worth_trying(
    pack: ContextPack, intents: frozenset[str], value: Json, compiled: CompiledContext, item: Item
) -> tuple[Knob, ...]:
    """Every change, the likeliest first, and none that leaves its value as it is."""
    found: dict[tuple[str, str], Knob] = {}
    over = not item.inside and item.words.startswith("over_")
    for size in (
        *(_sizes(compiled, item) if over else ()),
        *_required(pack, item),
        *_pieces(value, item),
        *_modes(value),
        *_facts(pack, value),
        *_labels(pack),
        *_named(pack, intents),
        *_sizes(compiled, item),
    ):
        now = value_at(value, size.at)
        if now is ABSENT:
            now = None
        if now != size.value or type(now) is not type(size.value):
            found.setdefault((size.at, size.words), size)
    return tuple(found.values())


def _modes(value: Json) -> Iterator[Knob]:
    """The ladder, the nearest steps first."""
    now = value_at(value, _MODE)
    here = APPROVAL_MODES.index(now) if now in APPROVAL_MODES else 0
    for mode in sorted(APPROVAL_MODES, key=lambda one: abs(APPROVAL_MODES.index(one) - here)):
        yield Knob(name="safety_mode", at=_MODE, value=mode)


def _facts(pack: ContextPack, value: Json) -> Iterator[Knob]:
    """Each fact that a condition reads, and each value at which one can turn; the nearest to the present one first."""
    uses = _uses(pack)
    for path, at in _places(uses):
        now = value_at(value, at)
        tried = [plain for candidate in uses.candidates(path) if (plain := _plain(candidate)) is not _UNTYPED]
        for one in sorted(tried, key=lambda one: _distance(now, one)):
            yield Knob(name=path, at=at, value=one)


def _uses(pack: ContextPack) -> Uses:
    uses = Uses()
    for condition in conditions_of(pack):
        uses.see(condition)
    return uses


def _places(uses: Uses) -> Iterator[tuple[str, str]]:
    """Each fact by its name, and where it stands; what is no fact no request can hold."""
    for path in sorted(uses.paths):
        try:
            yield path, fact_at(path)
        except KnobInvalid:
            continue


def _plain(value: Json) -> object:
    """A value that a person would type; null takes a fact away. One that only an engine tells apart is none."""
    if isinstance(value, str):
        if value.startswith("\u0001"):
            return _OTHER
        return value if value and value.isprintable() else _UNTYPED
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return _UNTYPED if isinstance(value, list | dict) else value


def _distance(now: object, one: object) -> tuple[bool, bool, float]:
    """The same kind of value first, then the nearest number; to take it away comes last."""
    is_number = isinstance(now, int | float) and isinstance(one, int | float)
    apart = abs(now - one) if isinstance(now, int | float) and isinstance(one, int | float) and is_number else 0.0
    return (one is None, type(now) is not type(one), apart)


def _labels(pack: ContextPack) -> Iterator[Knob]:
    for label in labels_of(pack):
        name = f"request.context.{label}"
        yield Knob(name=name, at=fact_at(name), value=True)
        yield Knob(name=name, at=fact_at(name), value=None)
    yield Knob(name="request.context.signals", at="/request/input/context/signals", value=None)


def _named(pack: ContextPack, intents: frozenset[str]) -> Iterator[Knob]:
    """What `applies_to` names, and every intent that the pack knows."""
    for bundle in pack.policy_layer.policy_bundles:
        for rule in bundle.policy_dsl.rules:
            for key, wanted in rule.applies_to.items():
                for one in (wanted,) if isinstance(wanted, str) else wanted:
                    if key not in {"intent", "tenant_id"}:
                        yield Knob(name=MATCHED[key], at=fact_at(MATCHED[key]), value=one)
                        yield Knob(name=MATCHED[key], at=fact_at(MATCHED[key]), value=_OTHER)
    for intent in sorted(intents):
        yield Knob(name="intent", at=fact_at("intent"), value=intent)


def _required(pack: ContextPack, item: Item) -> Iterator[Knob]:
    """A true value answers any name; what cannot be evaluated leaves policy without an answer."""
    if item.kind == "requirement":
        name = f"request.context.{item.id}"
        yield Knob(name=name, at=fact_at(name), value=True)
        yield Knob(name=name, at=fact_at(name), value=None)
        if item.id == POLICY_EVAL and item.inside:
            yield from (Knob(name=path, at=at, value=_OTHER) for path, at in _places(_uses(pack)))


def _sizes(compiled: CompiledContext, item: Item) -> Iterator[Knob]:
    """Budgets in which all that was dropped would fit, and those in which nothing does; that of the item first."""
    report = compiled.budget_report
    dropped = dict.fromkeys(report.tokens_allocated, 0)
    for omission in compiled.manifests.omission_manifest:
        if omission.bucket is not None and omission.tokens is not None:
            dropped[omission.bucket] += omission.tokens
    whole = report.tokens_used_at_compile + sum(dropped.values())
    buckets = sorted(report.tokens_used_by_bucket.items(), key=lambda one: one[0] != item.kind)
    for n, (bucket, used) in enumerate(buckets):
        yield _bucket(bucket, used + dropped[bucket])
        if item.inside:
            yield _bucket(bucket, 0)
        if not n:
            for total in (whole, 0) if item.inside else (whole,):
                yield Knob(name="run.budget.total_tokens", at=f"{_BUDGET}/total_tokens", value=total)


def _bucket(bucket: str, tokens: int) -> Knob:
    at = f"{_BUDGET}/bucket_tokens/{bucket}"
    return Knob(name=f"run.budget.bucket_tokens.{bucket}", at=at, value=tokens)


def _pieces(value: Json, item: Item) -> Iterator[Knob]:
    """What is said of the piece itself, or of those of the required type: its trust, its state, its time, its place."""
    if not isinstance(value, dict):
        return
    for part, key in _PIECES.items():
        pieces = value.get(part)
        for n, one in enumerate(pieces if isinstance(pieces, list) else ()):
            ref = one.get(key) if isinstance(one, dict) else one
            if ref == item.id or (isinstance(one, dict) and one.get("type") == item.id):
                yield from _about(f"/{part}/{n}", one, str(ref))


def _about(at: str, piece: Json, ref: str) -> Iterator[Knob]:
    if "#snapshot_" in ref:
        snapshot = ref.partition("#snapshot_")[2]
        yield Knob(name="/environment/snapshot", at="/environment/snapshot", value=snapshot)
        yield Knob(name="/environment/snapshot", at="/environment/snapshot", value=None)
    if not isinstance(piece, dict):
        return
    told = {"trust": ("verified", "untrusted"), "state": ("promoted", "candidate"), "classification": ("PUBLIC",)}
    for name, values in told.items():
        if name in piece or name == "classification":
            yield from (Knob(name=f"{at}/{name}", at=f"{at}/{name}", value=value) for value in values)
    freshness = piece.get("freshness")
    times = freshness if isinstance(freshness, dict) else piece
    for name in ("observed_at", "expires_at"):
        if isinstance(times.get(name), str):
            yield Knob(name="/as_of", at="/as_of", value=times[name])
    yield Knob(name="/as_of", at="/as_of", value=None)
