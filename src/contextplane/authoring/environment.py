"""The description of the environment that a pack is meant for. Unknown is never taken for granted."""

from contextplane.model.terms import ApprovalMode
from contextplane.model.value import Document

__all__ = ["EnvironmentDescription"]


class EnvironmentDescription(Document, frozen=True):
    """An environment as its operators describe it. A field that is None is not described.

    `endpoints` are the entries of the endpoint registry, `roles` the roles that are assigned, `ontologies` the versions
    that are present (`ont.support@1.0.0`), `snapshots` the aliases and snapshots of the graph that the tenant may read
    (`alias:prod`), `approval_ceiling` the highest approval mode of any tool there.
    """

    endpoints: tuple[str, ...] | None = None
    roles: tuple[str, ...] | None = None
    ontologies: tuple[str, ...] | None = None
    snapshots: tuple[str, ...] | None = None
    tenants: tuple[str, ...] | None = None
    approval_ceiling: ApprovalMode | None = None
