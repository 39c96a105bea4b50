"""`evaluation_layer`: what success is, per intent, and which regressions stop a release."""

from typing import Annotated, Literal

from msgspec import Meta

from contextplane.model.context_pack.terms import Identifier
from contextplane.model.value import Document

__all__ = ["EvalTarget", "EvaluationLayer", "Metric", "ReleaseGate"]

Metric = Literal["policy", "utility", "latency_p99_ms", "safety", "economics_cents_per_decision"]
Score = Annotated[float, Meta(ge=0, le=1)]


class EvalTarget(Document, frozen=True):
    """The scores that runs of one intent must reach."""

    intent: Identifier
    policy: Score
    utility: Score
    latency_p99_ms: Annotated[int, Meta(ge=1)]
    safety: Score
    economics_cents_per_decision: Annotated[float, Meta(ge=0)]


class ReleaseGate(Document, frozen=True):
    """How much worse one metric may become."""

    metric: Metric
    max_delta: Annotated[float, Meta(ge=0)]


class EvaluationLayer(Document, frozen=True):
    eval_targets: Annotated[tuple[EvalTarget, ...], Meta(min_length=1)]
    release_gates: Annotated[tuple[ReleaseGate, ...], Meta(min_length=1)]
