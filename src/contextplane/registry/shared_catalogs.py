"""Decision catalogs that a pack is judged together with, because its rules are bound to decisions of them. Pure."""

from collections.abc import Sequence

from contextplane.authoring.gates.table import Report
from contextplane.authoring.surroundings import Surroundings
from contextplane.authoring.texts import Identify
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.decision_catalog import DecisionCatalog
from contextplane.model.ids import PackRef
from contextplane.registry.artifacts import Candidate
from contextplane.registry.changes import JudgedWith
from contextplane.registry.merging import Given, judged_together
from contextplane.registry.refusals import WrongKind

__all__ = ["given", "judged_with", "named", "refs_of"]


def given(pack: Candidate, catalogs: Sequence[Candidate]) -> tuple[Given, ...]:
    """One invocation of them all; what is no pack, or no catalog, is refused."""
    if not isinstance(pack.document, ContextPack):
        raise WrongKind("only a context pack is judged together with catalogs", at=str(pack.ref), hint="leave them out")
    found = [Given(document=pack.document, value=pack.value)]
    for one in catalogs:
        if not isinstance(one.document, DecisionCatalog):
            raise WrongKind("it is no decision catalog", at=str(one.ref), hint="name a decision catalog")
        found.append(Given(document=one.document, value=one.value))
    return tuple(found)


def judged_with(
    pack: Candidate, catalogs: Sequence[Candidate], surroundings: Surroundings | None, identify: Identify | None
) -> Report:
    """What every gate says of a pack together with catalogs."""
    return judged_together(given(pack, catalogs), surroundings, identify=identify)


def named(catalogs: Sequence[Candidate]) -> tuple[JudgedWith, ...]:
    """The catalogs, as they are put on record."""
    found = [JudgedWith(id=one.ref.pack_id, version=one.ref.version, digest=str(one.digest)) for one in catalogs]
    return tuple(sorted(found, key=lambda one: one.id))


def refs_of(catalogs: Sequence[JudgedWith]) -> tuple[PackRef, ...]:
    """The names of catalogs that are on record."""
    return tuple(PackRef(one.id, one.version) for one in catalogs)
