"""What is known of the environment that a pack is meant for. What is not known is never taken for granted."""

from contextplane.model.terms import ApprovalMode
from contextplane.model.value import Document

__all__ = ["Surroundings"]


class Surroundings(Document, frozen=True):
    """An environment as its operators describe it. None: nobody said, so what depends on it cannot be told.

    `endpoints` are the entries of the endpoint registry, `roles` those that somebody holds, `ontologies` the versions
    that are present (`ont.support@1.0.0`), `snapshots` the aliases and snapshots of the graph that the tenant may read
    (`alias:prod`), `approval_ceiling` the most that any tool may do there.
    """

    endpoints: tuple[str, ...] | None = None
    roles: tuple[str, ...] | None = None
    ontologies: tuple[str, ...] | None = None
    snapshots: tuple[str, ...] | None = None
    tenants: tuple[str, ...] | None = None
    approval_ceiling: ApprovalMode | None = None
