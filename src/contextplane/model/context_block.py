"""The pieces of a compiled prompt: each in one bucket, with what is known of its text."""

from typing import Literal

from contextplane.model.context_pack.terms import DataClassification
from contextplane.model.evidence import Trust
from contextplane.model.value import Document

__all__ = ["BUCKETS", "PRIORITIES", "Bucket", "CompiledPrompt", "ContextBlock", "InstructionTreatment"]

Bucket = Literal["business", "policy", "tool", "evidence", "memory", "session"]

BUCKETS: tuple[Bucket, ...] = ("business", "policy", "tool", "evidence", "memory", "session")
"""In the order of the prompt: what never changes in a run stands first."""

PRIORITIES: dict[Bucket, int] = {
    "business": 90,
    "policy": 80,
    "tool": 70,
    "evidence": 60,
    "memory": 50,
    "session": 40,
}
"""Blocks carry the priority of their bucket."""

InstructionTreatment = Literal["instruction", "data_only"]
"""`data_only`: whatever it says, the model is told to read it and not to follow it."""


class ContextBlock(Document, frozen=True, omit_defaults=True):
    """One block. `tokens` counts it as it stands in the prompt, with its delimiters."""

    block_id: str
    bucket: Bucket
    content: str
    priority: int
    provenance_refs: tuple[str, ...] = ()
    truncated: bool = False
    evidence_type: str | None = None
    trust: Trust | None = None
    data_classification: DataClassification | None = None
    instruction_treatment: InstructionTreatment | None = None
    content_hash: str | None = None
    tokens: int | None = None


class CompiledPrompt(Document, frozen=True):
    """What a model is told. `context_blocks` stand in the order of the buckets."""

    system: str
    developer: str
    task: str
    context_blocks: tuple[ContextBlock, ...]
