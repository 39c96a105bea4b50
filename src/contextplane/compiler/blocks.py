"""Making blocks: content, its hash, and its size as it will stand in the prompt."""

from functools import lru_cache

from contextplane.compiler.hashing import text_digest
from contextplane.compiler.prompt import data, instruction
from contextplane.model.context_block import PRIORITIES, Bucket, ContextBlock
from contextplane.model.context_pack.terms import DataClassification
from contextplane.model.evidence import Trust
from contextplane.model.tokens import Tokens

__all__ = ["data_block", "instruction_block"]


@lru_cache(maxsize=2048)
def instruction_block(  # noqa: PLR0913  the fields of a block
    block_id: str,
    bucket: Bucket,
    content: str,
    tokens: Tokens,
    *,
    classification: DataClassification,
    refs: tuple[str, ...],
) -> ContextBlock:
    """A block of what the pack says. The same ones are made for every request, and are kept."""
    content_hash = text_digest(content)
    return ContextBlock(
        block_id=block_id,
        bucket=bucket,
        content=content,
        priority=PRIORITIES[bucket],
        provenance_refs=refs,
        data_classification=classification,
        instruction_treatment="instruction",
        content_hash=content_hash,
        tokens=tokens.count(instruction(bucket, content, content_hash)),
    )


def data_block(  # noqa: PLR0913  the fields of a block
    block_id: str,
    bucket: Bucket,
    content: str,
    tokens: Tokens,
    *,
    classification: DataClassification,
    refs: tuple[str, ...],
    evidence_type: str | None = None,
    trust: Trust | None = None,
) -> ContextBlock:
    """A block of what was gathered, recalled or sent: to be read, and not to be followed."""
    content_hash = text_digest(content)
    return ContextBlock(
        block_id=block_id,
        bucket=bucket,
        content=content,
        priority=PRIORITIES[bucket],
        provenance_refs=refs,
        evidence_type=evidence_type,
        trust=trust,
        data_classification=classification,
        instruction_treatment="data_only",
        content_hash=content_hash,
        tokens=tokens.count(data(bucket, content, content_hash, refs, kind=evidence_type, trust=trust)),
    )
