"""Makes a source to compile from out of a published version and its decision catalogs."""

from collections.abc import Callable, Sequence

import msgspec

from contextplane.compiler.source import PackSource
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.tokens import Tokens
from contextplane.registry.artifacts import Candidate, candidate, lineage_of
from contextplane.registry.merge import combine_documents, merge_inputs

__all__ = ["ChooseCounter", "pack_source"]

ChooseCounter = Callable[[ContextPack], Tokens]
"""Loads the token counter that a pack names. An exact one needs a table, which is read outside of here."""


def pack_source(
    value: Json, catalogs: Sequence[Candidate] = (), choose_counter: ChooseCounter | None = None
) -> PackSource:
    """The source of a published pack, which passed every gate already, with its recorded catalogs.

    Without `choose_counter`, a pack that counts exactly cannot be compiled.
    """
    combined = value
    if catalogs:
        combined = combine_documents(merge_inputs(candidate(value), catalogs))
    pack = msgspec.convert(combined, type=ContextPack)
    own = Lineage(ref=str(pack.ref), digest=str(Digest.of(canonical(value))))
    tokens = None if choose_counter is None else choose_counter(pack)
    return PackSource(pack, (own, *lineage_of(catalogs)), lambda at: f"{pack.ref}#{at}", tokens)
