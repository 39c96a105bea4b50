"""Stage `budget`: keeps the blocks that fit. A block is kept whole, or omitted and listed.

Two blocks that every compiled context has are made here: the business from the pack, the session from the request. The
texts around the blocks are fixed: they count against the total, and are never dropped.
"""

from collections.abc import Iterable, Mapping
from typing import assert_never

from msgspec.structs import replace

from contextplane.compiler.draft import BudgetPart, Draft, Inputs
from contextplane.compiler.errors import BudgetInvalid, describe_value
from contextplane.compiler.instructions import count_fixed_tokens, write_prompt
from contextplane.compiler.prompt import data_block, instruction_block
from contextplane.compiler.quotation import quote, quote_json
from contextplane.model.compiled_context import BUCKETS, Bucket, BudgetReport, ContextBlock, EnvironmentValue, Omission
from contextplane.model.invoke import RunBudget
from contextplane.model.json.pointer import pointer

__all__ = ["NEVER_DROPPED", "business_block", "fit_budget", "session_block"]


def business_block(inputs: Inputs) -> ContextBlock:
    """The block of the business text. It depends on the pack only, not on the request."""
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
    """The block of the request's context and environment, without its message."""
    invoke_input = inputs.request.input
    # The defaults of the pack are in its own text.
    facts = {name: setting.value for name, setting in environment.items() if setting.source != "pack"}
    if invoke_input.channel is not None:
        facts["channel"] = invoke_input.channel
    if inputs.run_context.user.role is not None:
        facts["user role"] = inputs.run_context.user.role
    parts = [f"{name} {quote(value)}" for name, value in facts.items()]
    if invoke_input.context:
        parts.append(f"context {quote_json(invoke_input.context)}")
    return data_block(
        "session",
        "session",
        ", ".join(parts),
        inputs.tokens,
        classification=inputs.view.pack.pack_meta.data_classification,
        refs=("request",),
    )


NEVER_DROPPED = frozenset({"biz_summary"})
"""The business block holds the non-negotiables, which always reach the model."""

_BUCKET_NAMES = frozenset(BUCKETS)
_OVER_BUCKET, _OVER_TOTAL = "over_budget", "over_total_budget"


def fit_budget(draft: Draft) -> Draft:
    """Keep or omit every block. Within a bucket the first blocks that fit are kept.

    Then, if all together and the fixed text exceed the total, the last blocks of the lowest priority are omitted first.
    """
    allotted = _bucket_tokens(draft.inputs.run_context.run_budget)
    omitted: list[Omission] = []
    kept: list[ContextBlock] = []
    for bucket in BUCKETS:
        room = allotted[bucket]
        for block in _candidates(draft, bucket):
            size = block.tokens or 0
            if size <= room or block.block_id in NEVER_DROPPED:
                kept.append(block)
                room -= size
            else:
                omitted.append(_omission(block, _OVER_BUCKET))
    total = draft.inputs.run_context.run_budget.total_tokens
    hidden = _hidden_tools(omitted)
    prompt = write_prompt(draft, hidden)
    fixed = count_fixed_tokens(prompt, draft.inputs.tokens)
    kept, over = _fit_total(kept, total - fixed)
    omitted += [_omission(block, _OVER_TOTAL) for block in over]
    if more := _hidden_tools(omitted) - hidden:
        prompt = write_prompt(draft, hidden | more)
        fixed = count_fixed_tokens(prompt, draft.inputs.tokens)
    part = BudgetPart(
        kept=tuple(block.block_id for block in kept),
        report=_report(allotted, kept, omitted, fixed=fixed, total=total),
        fixed_tokens=fixed,
        omitted=tuple(omitted),
    )
    return replace(draft, prompt=replace(prompt, context_blocks=tuple(kept)), budget=part)


def _bucket_tokens(budget: RunBudget) -> dict[Bucket, int]:
    """The tokens of each bucket. A budget that does not name exactly the six buckets is refused."""
    _refuse_invalid_budget(budget)
    return {name: budget.bucket_tokens[name] for name in BUCKETS}


def _refuse_invalid_budget(budget: RunBudget) -> None:
    if budget.bucket_tokens.keys() == _BUCKET_NAMES and all(
        [type(tokens) is int and tokens >= 0 for tokens in (budget.total_tokens, *budget.bucket_tokens.values())]  # noqa: C419  a list is faster
    ):
        return
    unknown = [name for name in budget.bucket_tokens if name not in BUCKETS]
    if unknown:
        raise _invalid("/bucket_tokens" + pointer(unknown[:1]), f"there is no bucket {describe_value(unknown[0])}")
    for name in BUCKETS:
        if name not in budget.bucket_tokens:
            raise _invalid("/bucket_tokens", f"nothing is said of the bucket {name}")
    for place, tokens in (("/total_tokens", budget.total_tokens), *_bucket_places(budget.bucket_tokens)):
        if type(tokens) is not int or tokens < 0:
            raise _invalid(place, f"{describe_value(tokens)} is no number of tokens")


def _bucket_places(bucket_tokens: Mapping[str, int]) -> Iterable[tuple[str, int]]:
    return ((f"/bucket_tokens/{name}", tokens) for name, tokens in bucket_tokens.items())


def _invalid(at: str, message: str) -> BudgetInvalid:
    return BudgetInvalid(
        message, at=f"run_context#/run_budget{at}", hint=f"allot 0 or more tokens to each of {', '.join(BUCKETS)}"
    )


def _candidates(draft: Draft, bucket: Bucket) -> tuple[ContextBlock, ...]:
    match bucket:
        case "business":
            return (business_block(draft.inputs),)
        case "policy":
            return draft.policy.blocks
        case "tool":
            return draft.tools.blocks
        case "evidence":
            return draft.evidence.blocks
        case "memory":
            return draft.memory.blocks
        case "session":
            return (session_block(draft.shown, draft.scope.environment),)
        case unreachable:
            assert_never(unreachable)


def _fit_total(blocks: list[ContextBlock], total: int) -> tuple[list[ContextBlock], list[ContextBlock]]:
    """Split blocks into those that fit the total and the others. They are sorted by descending priority."""
    used = sum(block.tokens or 0 for block in blocks)
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


def _hidden_tools(omitted: Iterable[Omission]) -> frozenset[str]:
    """The tools whose blocks are omitted. No other text names them."""
    return frozenset(ref for omission in omitted if omission.bucket == "tool" for ref in omission.source_refs)


def _report(
    allotted: dict[Bucket, int], kept: list[ContextBlock], omitted: list[Omission], *, fixed: int, total: int
) -> BudgetReport:
    used: dict[Bucket, int] = dict.fromkeys(BUCKETS, 0)
    for block in kept:
        used[block.bucket] += block.tokens or 0
    dropped: dict[Bucket, list[str]] = {}
    exceeded: dict[str, int] = {}
    for omission in omitted:
        if omission.bucket is not None:
            dropped.setdefault(omission.bucket, []).append(omission.id)
        what = f"{omission.bucket} bucket" if omission.reason == _OVER_BUCKET else "the total"
        exceeded[what] = exceeded.get(what, 0) + 1
    warnings = [
        f"{what} exceeded budget; dropped {count} low-priority block{'s' if count > 1 else ''}"
        for what, count in exceeded.items()
    ]
    warnings += [
        f"{bucket} bucket exceeded budget; kept a block that is never dropped"
        for bucket in BUCKETS
        if used[bucket] > allotted[bucket]
    ]
    if (whole := fixed + sum(used.values())) > total:
        warnings.append(f"the total is {total} tokens, and what is never dropped takes {whole}")
    return BudgetReport(
        tokens_allocated=allotted,
        tokens_used_at_compile=whole,
        tokens_used_by_bucket=used,
        bucket_truncations=dict.fromkeys(dropped, True),
        dropped_block_ids={bucket: tuple(ids) for bucket, ids in dropped.items()},
        warnings=tuple(warnings),
    )
