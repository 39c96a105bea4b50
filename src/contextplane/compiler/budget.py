"""Stage `budget`: which blocks fit. A block is kept whole or not at all, and what does not fit is listed."""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from contextplane.compiler.draft import BudgetPart, Draft
from contextplane.compiler.malformed import told
from contextplane.compiler.refusals import BudgetInvalid
from contextplane.compiler.standing import business_block, session_block
from contextplane.model.compiled_context import BudgetReport, Omission
from contextplane.model.context_block import BUCKETS, Bucket, ContextBlock
from contextplane.model.pointer import pointer
from contextplane.model.run_context import RunBudget

__all__ = ["NEVER_DROPPED", "budget"]

NEVER_DROPPED = frozenset({"biz_summary"})
"""It holds the non-negotiables, which always reach the model."""

_OVER_BUCKET, _OVER_TOTAL = "over_budget", "over_total_budget"


def budget(draft: Draft) -> Draft:
    """Every block is kept, or omitted with its size. Within a bucket the first blocks that fit are kept.

    Then, should all together exceed the total, the last blocks of the lowest priority go first.
    """
    allotted = _allotted(draft.inputs.run_context.run_budget)
    candidates = _candidates(draft)
    omitted: list[Omission] = []
    kept: list[ContextBlock] = []
    for bucket in BUCKETS:
        room = allotted[bucket]
        for one in candidates[bucket]:
            size = one.tokens or 0
            if size <= room or one.block_id in NEVER_DROPPED:
                kept.append(one)
                room -= size
            else:
                omitted.append(_omission(one, _OVER_BUCKET))
    kept, over = _within(kept, draft.inputs.run_context.run_budget.total_tokens)
    omitted += [_omission(one, _OVER_TOTAL) for one in over]
    part = BudgetPart(
        kept=tuple(one.block_id for one in kept), report=_report(allotted, kept, omitted), omitted=tuple(omitted)
    )
    return replace(draft, blocks=tuple(kept), budget=part)


def _allotted(given: RunBudget) -> dict[Bucket, int]:
    """The tokens of each bucket; a budget that does not speak of exactly the six is refused."""
    wrong = [name for name in given.bucket_tokens if name not in BUCKETS]
    if wrong:
        raise _invalid("/bucket_tokens" + pointer(wrong[:1]), f"there is no bucket {told(wrong[0])}")
    for name in BUCKETS:
        if name not in given.bucket_tokens:
            raise _invalid("/bucket_tokens", f"nothing is said of the bucket {name}")
    for place, tokens in (("/total_tokens", given.total_tokens), *_placed(given.bucket_tokens)):
        if type(tokens) is not int or tokens < 0:
            raise _invalid(place, f"{told(tokens)} is no number of tokens")
    return {name: given.bucket_tokens[name] for name in BUCKETS}


def _placed(tokens: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    return ((f"/bucket_tokens/{name}", given) for name, given in tokens.items())


def _invalid(at: str, message: str) -> BudgetInvalid:
    return BudgetInvalid(
        message, at=f"run_context#/run_budget{at}", hint=f"allot 0 or more tokens to each of {', '.join(BUCKETS)}"
    )


def _candidates(draft: Draft) -> dict[Bucket, tuple[ContextBlock, ...]]:
    return {
        "business": (business_block(draft.inputs),),
        "policy": draft.policy.blocks,
        "tool": draft.tools.blocks,
        "evidence": draft.evidence.blocks,
        "memory": draft.memory.blocks,
        "session": (session_block(draft.inputs, draft.scope.environment),),
    }


def _within(blocks: list[ContextBlock], total: int) -> tuple[list[ContextBlock], list[ContextBlock]]:
    """What fits the total, and what does not. The blocks stand by descending priority."""
    used = sum(one.tokens or 0 for one in blocks)
    over: list[ContextBlock] = []
    kept: list[ContextBlock] = []
    for one in reversed(blocks):
        if used > total and one.block_id not in NEVER_DROPPED:
            used -= one.tokens or 0
            over.append(one)
        else:
            kept.append(one)
    return kept[::-1], over[::-1]


def _omission(one: ContextBlock, reason: str) -> Omission:
    return Omission(
        kind="block",
        id=one.block_id,
        stage="budget",
        reason=reason,
        bucket=one.bucket,
        tokens=one.tokens,
        priority=one.priority,
        source_refs=one.provenance_refs,
    )


def _report(allotted: dict[Bucket, int], kept: list[ContextBlock], omitted: list[Omission]) -> BudgetReport:
    used: dict[Bucket, int] = dict.fromkeys(BUCKETS, 0)
    for one in kept:
        used[one.bucket] += one.tokens or 0
    dropped: dict[Bucket, list[str]] = {}
    for gone in omitted:
        if gone.bucket is not None:
            dropped.setdefault(gone.bucket, []).append(gone.id)
    exceeded = Counter(f"{one.bucket} bucket" if one.reason == _OVER_BUCKET else "the total" for one in omitted)
    warnings = [
        f"{what} exceeded budget; dropped {count} low-priority block{'s' if count > 1 else ''}"
        for what, count in exceeded.items()
    ]
    warnings += [
        f"{bucket} bucket exceeded budget; kept a block that is never dropped"
        for bucket in BUCKETS
        if used[bucket] > allotted[bucket]
    ]
    return BudgetReport(
        tokens_allocated=allotted,
        tokens_used_at_compile=sum(used.values()),
        tokens_used_by_bucket=used,
        bucket_truncations=dict.fromkeys(dropped, True),
        dropped_block_ids={bucket: tuple(ids) for bucket, ids in dropped.items()},
        warnings=tuple(warnings),
    )
