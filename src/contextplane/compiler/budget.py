"""Stage `budget`: which blocks fit. A block is kept whole or not at all, and what does not fit is listed.

The two blocks that every compiled context has: the business from the pack, the session from the request.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from contextplane.compiler.draft import BudgetPart, Draft, Inputs
from contextplane.compiler.errors import BudgetInvalid, told
from contextplane.compiler.prompt import data_block, instruction_block
from contextplane.compiler.quoting import quoted, quoted_json
from contextplane.model.compiled_context import BUCKETS, Bucket, BudgetReport, ContextBlock, EnvironmentValue, Omission
from contextplane.model.invoke import RunBudget
from contextplane.model.json.pointer import pointer

__all__ = ["NEVER_DROPPED", "budget", "business_block", "session_block"]


def business_block(inputs: Inputs) -> ContextBlock:
    """What the business does and never does. Nothing of a single request stands in it."""
    pack = inputs.view.pack
    return instruction_block(
        "biz_summary",
        "business",
        inputs.view.business,
        inputs.tokens,
        classification=pack.pack_meta.data_classification,
        refs=(f"{inputs.view.ref}#business_context",),
    )


def session_block(inputs: Inputs, environment: dict[str, EnvironmentValue]) -> ContextBlock:
    """What the request says besides its message, and where it takes place."""
    invoke_input = inputs.request.input
    lines = [f"{name}: {quoted(environment_value.value)}" for name, environment_value in environment.items()]
    if invoke_input.channel is not None:
        lines.append(f"channel: {quoted(invoke_input.channel)}")
    if inputs.run_context.user.role is not None:
        lines.append(f"user role: {quoted(inputs.run_context.user.role)}")
    if invoke_input.context:
        lines.append(f"request context: {quoted_json(invoke_input.context)}")
    return data_block(
        "session",
        "session",
        "\n".join(lines),
        inputs.tokens,
        classification=inputs.view.pack.pack_meta.data_classification,
        refs=("request",),
    )


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
        for block in candidates[bucket]:
            size = block.tokens or 0
            if size <= room or block.block_id in NEVER_DROPPED:
                kept.append(block)
                room -= size
            else:
                omitted.append(_omission(block, _OVER_BUCKET))
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
    for block in reversed(blocks):
        if used > total and block.block_id not in NEVER_DROPPED:
            used -= block.tokens or 0
            over.append(block)
        else:
            kept.append(block)
    return kept[::-1], over[::-1]


def _omission(block: ContextBlock, reason: str) -> Omission:
    return Omission(
        kind="block",
        id=block.block_id,
        stage="budget",
        reason=reason,
        bucket=block.bucket,
        tokens=block.tokens,
        priority=block.priority,
        source_refs=block.provenance_refs,
    )


def _report(allotted: dict[Bucket, int], kept: list[ContextBlock], omitted: list[Omission]) -> BudgetReport:
    used: dict[Bucket, int] = dict.fromkeys(BUCKETS, 0)
    for block in kept:
        used[block.bucket] += block.tokens or 0
    dropped: dict[Bucket, list[str]] = {}
    for gone in omitted:
        if gone.bucket is not None:
            dropped.setdefault(gone.bucket, []).append(gone.id)
    exceeded = Counter(
        f"{omission.bucket} bucket" if omission.reason == _OVER_BUCKET else "the total" for omission in omitted
    )
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
