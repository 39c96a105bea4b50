"""Compiling from a published version, as a run in an environment would be given it."""

from contextplane.app.compile_case import CompileCase
from contextplane.app.compiling import PackSource
from contextplane.app.registry import RegistryDesk
from contextplane.app.registry_resolving import resolved
from contextplane.model.context_ledger import Lineage
from contextplane.model.ids import PackRef
from contextplane.registry.resolved import Asked
from contextplane.trust.compatibility import Present

__all__ = ["from_registry"]


def from_registry(
    desk: RegistryDesk, ref: PackRef, case: CompileCase, environment: str, *, max_age: int | None
) -> PackSource:
    """A published version, verified, with what is pinned in an environment, as a run there would be given it."""
    # In the order of their names, as with a file: in which order a request names its catalogs changes nothing.
    others = sorted((PackRef.parse(one) for one in case.request.context_pack_refs if one != str(ref)), key=str)
    asked = Asked(
        refs=(ref, *others), tenant=case.run_context.tenant_id, environment=environment, purpose="new_traffic"
    )
    found = resolved(desk, asked, Present(ontologies=case.environment.ontologies), max_age=max_age)
    lineage = tuple(Lineage(ref=str(one.ref), digest=str(one.digest)) for one in found.lineage)
    return PackSource(found.view, lineage, lambda at: f"{ref}#{at}")
