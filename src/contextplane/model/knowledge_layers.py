"""What a pack knows and remembers: ontology, graph, identities and memory. Each may be left out.

Docstrings of documents are descriptions in the published schema.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from contextplane.model.terms import Duration, Identifier, Names, Semver
from contextplane.model.value import Document

__all__ = [
    "ConsentGating",
    "IdentityLayer",
    "IntelligenceRefs",
    "KnowledgeGraph",
    "MemoryLayer",
    "MemoryPolicy",
    "Ontology",
    "PromotionThresholds",
    "TierTtls",
    "WriteClass",
]


PinRule = Annotated[
    str,
    Meta(pattern=r"^(alias|snapshot):[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z", description="alias:<name> or snapshot:<id>"),
]


class Ontology(Document, frozen=True):
    """Which entities and relationships there are, in exactly one version.

    `namespace`: The id of the ontology.
    `version`: Its version.
    `entity_types`: The types of entities that the pack uses.
    `relationship_types`: The types of relationships that the pack uses.
    """

    namespace: Identifier
    version: Semver
    entity_types: Annotated[Names, Meta(min_length=1)]
    relationship_types: Names = ()


class KnowledgeGraph(Document, frozen=True):
    """Which snapshot is read. A live read may follow an alias; a replay is given the snapshot it led to.

    `snapshot_pin_rule`: The snapshot or alias of the graph that runs read.
    """

    snapshot_pin_rule: PinRule


class IdentityLayer(Document, frozen=True):
    """The namespaces in which subjects have an identity of their own.

    `ceid_namespaces`: The namespaces of identities that the pack may read.
    """

    ceid_namespaces: Annotated[Names, Meta(min_length=1)]


class IntelligenceRefs(Document, frozen=True):
    """Each part may be left out: a run without `knowledge_graph` reads no graph.

    `embedding_keys` name their versions, because retrieval can alter a decision.

    `ontology`: What the words of the pack mean.
    `knowledge_graph`: The graph that runs read.
    `identity_layer`: Whose identities runs may read.
    `embedding_keys`: The indexes that retrieval may use, each in its version.
    """

    ontology: Ontology | UnsetType = UNSET
    knowledge_graph: KnowledgeGraph | UnsetType = UNSET
    identity_layer: IdentityLayer | UnsetType = UNSET
    embedding_keys: Names = ()

    @property
    def pinned_ontology(self) -> str | None:
        """The ontology in its version, `ont.support@1.0.0`; None if there is none."""
        return f"{self.ontology.namespace}@{self.ontology.version}" if self.ontology else None

    @property
    def entity_types(self) -> Names:
        return self.ontology.entity_types if self.ontology else ()

    @property
    def snapshot_pin_rule(self) -> str | None:
        return self.knowledge_graph.snapshot_pin_rule if self.knowledge_graph else None

    @property
    def ceid_namespaces(self) -> Names:
        return self.identity_layer.ceid_namespaces if self.identity_layer else ()


WriteClass = Literal["evidence_link", "preference", "decision_outcome", "correction"]


class TierTtls(Document, frozen=True):
    """How long a memory of each tier lives.

    `working`: How long working memory lives.
    `episodic`: How long memory of episodes lives.
    `semantic`: How long memory of facts lives.
    `durable`: How long durable memory lives.
    """

    working: Duration
    episodic: Duration
    semantic: Duration
    durable: Duration


class ConsentGating(Document, frozen=True):
    """Personal data is not written back unless the pack says so.

    `pii_write_back_allowed`: Whether personal data may be remembered.
    """

    pii_write_back_allowed: bool = False


class MemoryPolicy(Document, frozen=True):
    """What may be remembered, and for how long.

    `tier_ttls`: How long memory lives, by tier.
    `write_classes_allowed`: What kinds of memory a run may propose.
    `consent_gating`: When personal data may be remembered.
    """

    tier_ttls: TierTtls
    write_classes_allowed: tuple[WriteClass, ...]
    consent_gating: ConsentGating


class PromotionThresholds(Document, frozen=True):
    """From this confidence on a candidate is promoted without a reviewer.

    `auto_promote_confidence`: The confidence from which a candidate is promoted without a reviewer.
    """

    auto_promote_confidence: Annotated[float, Meta(ge=0, le=1)]


class MemoryLayer(Document, frozen=True):
    """Only promoted memory is recalled; a write is a proposal.

    `memory_policy`: What is remembered, and for how long.
    `promotion_thresholds`: When a memory is promoted.
    """

    memory_policy: MemoryPolicy
    promotion_thresholds: PromotionThresholds
