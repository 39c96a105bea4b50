"""What the gates look at in a decision catalog whose form is right."""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from contextplane.authoring.deciding import Deciding, Listed, by_id, with_places
from contextplane.authoring.surroundings import Surroundings
from contextplane.authoring.texts import Identify
from contextplane.model.canonical import Json
from contextplane.model.context_pack.decision_layer import DecisionSpec
from contextplane.model.context_pack.pack_meta import Tenant
from contextplane.model.context_pack.task_layer import TaskTemplate
from contextplane.model.decision_catalog import DecisionCatalog, Intent

__all__ = ["CatalogSubject"]


class CatalogSubject(Deciding):
    """A catalog to be judged. `value` is the document as it was written; `catalog` the same, typed."""

    ASKS: ClassVar[tuple[str, ...]] = ("roles", "tenants")

    def __init__(
        self,
        catalog: DecisionCatalog,
        value: Json,
        surroundings: Surroundings | None = None,
        *,
        identify: Identify | None = None,
    ) -> None:
        super().__init__(value, surroundings, identify=identify)
        self.catalog = catalog

    @property
    def tenant(self) -> tuple[str, Tenant]:
        return "/tenant", self.catalog.tenant

    @cached_property
    def decisions(self) -> Mapping[str, tuple[str, DecisionSpec]]:
        return by_id("/decision_specs", self.catalog.decision_specs, lambda spec: spec.decision_key)

    @cached_property
    def templates(self) -> tuple[tuple[str, TaskTemplate], ...]:
        return tuple(with_places("/task_templates", self.catalog.task_templates))

    @property
    def permitted(self) -> frozenset[str] | None:
        return None

    @cached_property
    def intents(self) -> Mapping[str, tuple[str, Intent]]:
        """Intents by id, each with its place; of two with one id, the first."""
        return by_id("/intents", self.catalog.intents, lambda intent: intent.intent_id)

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        decisions = [(f"{at}/owner_role", spec.owner_role) for at, spec in self.decisions.values()]
        return (*decisions, *((f"{at}/owner_role", intent.owner_role) for at, intent in self.intents.values()))

    @property
    def ids(self) -> Mapping[str, Listed]:
        catalog = self.catalog
        return {
            "decision_key": (catalog.decision_specs, "/decision_specs", "decision_key"),
            "template_id": (catalog.task_templates, "/task_templates", "template_id"),
            "intent_id": (catalog.intents, "/intents", "intent_id"),
        }
