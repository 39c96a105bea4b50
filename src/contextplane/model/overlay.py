"""The Overlay `overlay_id@X.Y.Z`: declared changes to a pack for one environment. It may only constrain."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from contextplane.model.context_pack.terms import Identifier, Semver, Sentence
from contextplane.model.ids import PackRef
from contextplane.model.value import Document

__all__ = ["Overlay", "OverlayChange"]


class OverlayChange(Document, frozen=True, omit_defaults=True):
    """One change: `value` replaces or adds what stands at `at`, `remove` takes it away.

    `at` is a JSON Pointer in which the entries of lists are named by their ids:
    `/policy_layer/approval_gates/GATE_FINANCE_APPROVAL/ttl_seconds`, `/tooling_layer/permissions/adp_orders.lookup`.
    A text in a plain list is its own name: `/policy_layer/guardrails/redaction_rules/aadhaar`.
    """

    at: Annotated[str, Meta(pattern=r"^(/[^/]+)+\Z", max_length=1024)]
    value: Any | UnsetType = UNSET
    remove: bool = False
    why: Sentence | None = None


class Overlay(Document, frozen=True, omit_defaults=True):
    """Overlays of one environment are applied by ascending `order`, ties by id."""

    overlay_id: Identifier
    overlay_version: Semver
    base_pack_id: Identifier
    environment: Identifier
    order: Annotated[int, Meta(ge=0, le=1_000_000)]
    issuer: Identifier
    changes: Annotated[tuple[OverlayChange, ...], Meta(min_length=1)]

    @property
    def ref(self) -> PackRef:
        return PackRef(self.overlay_id, self.overlay_version)
