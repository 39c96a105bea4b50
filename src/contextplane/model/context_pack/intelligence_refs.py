"""`intelligence_refs`: what pins the meaning of things: ontology, graph snapshot, identities, embeddings."""

from typing import Annotated

from msgspec import Meta

from contextplane.model.context_pack.terms import Identifier, Names, Semver
from contextplane.model.value import Document

__all__ = ["IdentityLayer", "IntelligenceRefs", "KnowledgeGraph", "Ontology"]

PinRule = Annotated[
    str,
    Meta(pattern=r"^(alias|snapshot):[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z", description="alias:<name> or snapshot:<id>"),
]


class Ontology(Document, frozen=True):
    """Which entities and relationships there are, in exactly one version."""

    namespace: Identifier
    version: Semver
    entity_types: Annotated[Names, Meta(min_length=1)]
    relationship_types: Names = ()


class KnowledgeGraph(Document, frozen=True):
    """Which snapshot is read. A live read may follow an alias; a replay is given the snapshot it led to."""

    snapshot_pin_rule: PinRule


class IdentityLayer(Document, frozen=True):
    """The namespaces in which subjects have an identity of their own."""

    ceid_namespaces: Annotated[Names, Meta(min_length=1)]


class IntelligenceRefs(Document, frozen=True):
    """`embedding_keys` are optional; each names its version, because retrieval can alter a decision."""

    ontology: Ontology
    knowledge_graph: KnowledgeGraph
    identity_layer: IdentityLayer
    embedding_keys: Names = ()
