"""A published version, with the decision catalogs on record for it, as something that can be compiled."""

from collections.abc import Sequence

import msgspec

from contextplane.compiler.source import PackSource
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.registry.artifacts import Candidate, candidate, lineage_of
from contextplane.registry.merge import given, put_together

__all__ = ["from_value"]


def from_value(value: Json, catalogs: Sequence[Candidate] = ()) -> PackSource:
    """A pack that passed every gate already, as a registry holds it, with the catalogs that it is on record with."""
    together = value
    if catalogs:
        together = put_together(given(candidate(value), catalogs))
    pack = msgspec.convert(together, type=ContextPack)
    own = Lineage(ref=str(pack.ref), digest=str(Digest.of(canonical(value))))
    return PackSource(pack, (own, *lineage_of(catalogs)), lambda at: f"{pack.ref}#{at}")
