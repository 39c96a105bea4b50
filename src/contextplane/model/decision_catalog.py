"""The DecisionCatalog `catalog_id@X.Y.Z`: intents, plans and typed decisions that several packs share."""

from typing import Annotated

from msgspec import Meta

from contextplane.model.context_pack.decision_layer import DecisionSpec
from contextplane.model.context_pack.pack_meta import Language, Tenant
from contextplane.model.context_pack.task_layer import TaskTemplate
from contextplane.model.context_pack.terms import ApprovalMode, Identifier, Names, Semver, Sentence
from contextplane.model.ids import PackRef
from contextplane.model.value import Document

__all__ = ["DecisionCatalog", "Intent"]


class Intent(Document, frozen=True, omit_defaults=True):
    """Something that is asked for. `risk_class` is the most that serving it can do.

    Without `accepted_channels` every channel is accepted, without `locale_support` every locale.
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
    """Closed at every level, signed and pinned like a pack. It adds to a pack, and never takes the place of a part."""

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
