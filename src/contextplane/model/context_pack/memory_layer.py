"""`memory_layer`: how long memories live, which may be proposed, and when one is promoted."""

from typing import Annotated, Literal

from msgspec import Meta

from contextplane.model.context_pack.terms import Duration
from contextplane.model.value import Document

__all__ = ["ConsentGating", "MemoryLayer", "MemoryPolicy", "PromotionThresholds", "TierTtls", "WriteClass"]

WriteClass = Literal["evidence_link", "preference", "decision_outcome", "correction"]


class TierTtls(Document, frozen=True):
    """How long a memory of each tier lives."""

    working: Duration
    episodic: Duration
    semantic: Duration
    durable: Duration


class ConsentGating(Document, frozen=True):
    """Personal data is not written back unless the pack says so."""

    pii_write_back_allowed: bool = False


class MemoryPolicy(Document, frozen=True):
    tier_ttls: TierTtls
    write_classes_allowed: tuple[WriteClass, ...]
    consent_gating: ConsentGating


class PromotionThresholds(Document, frozen=True):
    """From this confidence on a candidate is promoted without a reviewer."""

    auto_promote_confidence: Annotated[float, Meta(ge=0, le=1)]


class MemoryLayer(Document, frozen=True):
    """Only promoted memory is recalled; a write is a proposal."""

    memory_policy: MemoryPolicy
    promotion_thresholds: PromotionThresholds
