"""The ledger of a compiled context: what it was made from, stage by stage, and the hash of the whole."""

from typing import Literal

from msgspec import field

from contextplane.model.context_block import Bucket
from contextplane.model.value import Document

__all__ = [
    "ContextLedger",
    "DefaultSource",
    "EnvironmentValue",
    "IntelligenceScope",
    "LedgerBudget",
    "Lineage",
    "StageRecord",
]

DefaultSource = Literal["request", "run_context", "pack"]


class LedgerBudget(Document, frozen=True):
    tokens_used_at_compile: int
    truncated_buckets: tuple[Bucket, ...]


class Lineage(Document, frozen=True):
    """A document that the resolved view was made from, and its digest."""

    ref: str
    digest: str


class IntelligenceScope(Document, frozen=True):
    """What gives things their meaning in this run, and nothing else does."""

    ontology: str
    snapshot: str | None
    snapshot_pin_rule: str
    ceid_namespaces: tuple[str, ...]
    embedding_keys: tuple[str, ...]


class EnvironmentValue(Document, frozen=True):
    """Language, timezone, currency or region, and who said so."""

    value: str
    source: DefaultSource


class StageRecord(Document, frozen=True, omit_defaults=True):
    """The hash of what one stage produced, and what it noticed."""

    stage: str
    hash: str
    notes: tuple[str, ...] = ()


class ContextLedger(Document, frozen=True, omit_defaults=True):
    """`inputs` holds a digest of every input, so that a change of any of them moves the hash.

    `fixed_tokens` counts what stands in no bucket: system, developer and task.
    """

    pack_ref: str
    request_id: str
    policy_bundles: tuple[str, ...]
    tools: tuple[str, ...]
    evidence_refs: tuple[str, ...]
    memory_refs: tuple[str, ...]
    budget: LedgerBudget
    compiled_context_hash: str
    compiler_version: str | None = None
    token_counter: str | None = None
    fixed_tokens: int | None = None
    prefix_hash: str | None = None
    prefix_length: int | None = None
    lineage: tuple[Lineage, ...] = ()
    scope: IntelligenceScope | None = None
    environment: dict[str, EnvironmentValue] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    stages: tuple[StageRecord, ...] = ()
