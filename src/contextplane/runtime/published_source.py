"""Makes a source to compile from out of a published version and its decision catalogs."""

from collections.abc import Sequence

import msgspec

from contextplane.compiler.source import PackSource
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.registry.artifacts import Candidate, candidate, lineage_of
from contextplane.registry.merge import combine_documents, merge_inputs

__all__ = ["pack_source"]


def pack_source(value: Json, catalogs: Sequence[Candidate] = ()) -> PackSource:
    """The source of a published pack, which passed every gate already, with its recorded catalogs."""
    combined = value
    if catalogs:
        combined = combine_documents(merge_inputs(candidate(value), catalogs))
    pack = msgspec.convert(combined, type=ContextPack)
    own = Lineage(ref=str(pack.ref), digest=str(Digest.of(canonical(value))))
    return PackSource(pack, (own, *lineage_of(catalogs)), lambda at: f"{pack.ref}#{at}")
