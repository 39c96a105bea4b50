"""The artifacts that are signed, published and pinned, each named `id@X.Y.Z`.

Three kinds: the ContextPack; the Overlay, declared changes to a pack for one environment, which may only constrain; and
the DecisionCatalog, intents, plans and typed decisions that several packs share. Beside them stands the description of
the environment that they are judged for.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from contextplane.model.context_pack import ContextPack, DecisionSpec, Language, TaskTemplate, Tenant
from contextplane.model.ids import PackRef
from contextplane.model.terms import ApprovalMode, Identifier, Names, Semver, Sentence
from contextplane.model.value import Document

__all__ = [
    "FORMS",
    "Artifact",
    "ArtifactKind",
    "DecisionCatalog",
    "EnvironmentDescription",
    "Intent",
    "Overlay",
    "OverlayChange",
    "issuer_of",
]


class OverlayChange(Document, frozen=True, omit_defaults=True):
    """One change: `value` replaces or adds what stands at `at`, `remove` takes it away.

    `at` is a JSON Pointer in which the entries of lists are named by their ids:
    `/policy_layer/approval_gates/GATE_FINANCE_APPROVAL/ttl_seconds`, `/tooling_layer/permissions/adp_orders.lookup`.
    A text in a plain list is its own name: `/policy_layer/guardrails/redaction_rules/aadhaar`.

    `at`: The place of the change in the pack, a JSON Pointer by ids.
    `value`: What replaces or is added at that place.
    `remove`: Whether the part at that place is removed.
    `why`: Why the environment needs the change, for reviewers.
    """

    at: Annotated[str, Meta(pattern=r"^(/[^/]+)+\Z", max_length=1024)]
    value: Any | UnsetType = UNSET
    remove: bool = False
    why: Sentence | None = None


class Overlay(Document, frozen=True, omit_defaults=True):
    """Overlays of one environment are applied by ascending `order`, ties by id.

    `overlay_id`: The id of the overlay.
    `overlay_version`: Its version. The same version never changes.
    `base_pack_id`: The pack that it changes.
    `environment`: The environment that it is for.
    `order`: Its position among the overlays of the environment.
    `issuer`: The authority that answers for it.
    `changes`: The changes, applied in their order. None may widen what the pack allows.
    """

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


class Intent(Document, frozen=True, omit_defaults=True):
    """Something that is asked for. `risk_class` is the most that serving it can do.

    Without `accepted_channels` every channel is accepted, without `locale_support` every locale.

    `intent_id`: The id of the intent, which requests name.
    `version`: The version of the intent.
    `owner_role`: The role that answers for it.
    `description`: What is asked for, in a sentence or two.
    `risk_class`: The most that serving it can do.
    `accepted_channels`: The channels that it is accepted from.
    `locale_support`: The locales that it is served in.
    `eligible_task_templates`: The plans that may serve it.
    """

    intent_id: Identifier
    version: Semver
    owner_role: Identifier
    description: Sentence
    risk_class: ApprovalMode
    accepted_channels: Names = ()
    locale_support: tuple[Language, ...] = ()
    eligible_task_templates: Names = ()


class DecisionCatalog(Document, frozen=True, omit_defaults=True):
    """Closed at every level, signed and pinned like a pack. It adds to a pack, and never takes the place of a part.

    `catalog_id`: The id of the catalog.
    `catalog_version`: Its version. The same version never changes.
    `issuer`: The authority that answers for it.
    `tenant`: Whose catalog it is.
    `decision_specs`: The decisions that packs may end in.
    `intents`: The intents that packs may serve.
    `task_templates`: The plans that packs may follow.
    """

    catalog_id: Identifier
    catalog_version: Semver
    issuer: Identifier
    tenant: Tenant
    decision_specs: Annotated[tuple[DecisionSpec, ...], Meta(min_length=1)]
    intents: tuple[Intent, ...] = ()
    task_templates: tuple[TaskTemplate, ...] = ()

    @property
    def ref(self) -> PackRef:
        return PackRef(self.catalog_id, self.catalog_version)


ArtifactKind = Literal["context_pack", "overlay", "decision_catalog"]
Artifact = ContextPack | Overlay | DecisionCatalog

FORMS: Mapping[ArtifactKind, type[Artifact]] = MappingProxyType(
    {"context_pack": ContextPack, "overlay": Overlay, "decision_catalog": DecisionCatalog}
)
"""The document type of each kind."""


def issuer_of(artifact: Artifact) -> str:
    """The issuer, who answers for the artifact."""
    return artifact.contract_meta.issuer if isinstance(artifact, ContextPack) else artifact.issuer


class EnvironmentDescription(Document, frozen=True):
    """An environment as its operators describe it. A field that is None is not described.

    `endpoints` are the entries of the endpoint registry, `roles` the roles that are assigned, `ontologies` the versions
    that are present (`ont.support@1.0.0`), `snapshots` the aliases and snapshots of the graph that the tenant may read
    (`alias:prod`), `approval_ceiling` the highest approval mode of any tool there.

    `endpoints`: The entries of its endpoint registry.
    `roles`: The roles that are assigned there.
    `ontologies`: The ontologies that are present, such as ont.support@1.0.0.
    `snapshots`: The aliases and snapshots of the graph that the tenant may read, such as alias:prod.
    `tenants`: The tenants that it serves.
    `approval_ceiling`: The highest approval mode of any tool there.
    """

    endpoints: tuple[str, ...] | None = None
    roles: tuple[str, ...] | None = None
    ontologies: tuple[str, ...] | None = None
    snapshots: tuple[str, ...] | None = None
    tenants: tuple[str, ...] | None = None
    approval_ceiling: ApprovalMode | None = None
