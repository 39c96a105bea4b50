"""What prompts share and cost in tokens: no times, the same figures everywhere.

Tokens are counted exactly where tiktoken and its table of o200k_base are there (TIKTOKEN_CACHE_DIR), and estimated
elsewhere; the rows say which.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from bench.measure import Row
from contextplane.app.token_counters import load_counter
from contextplane.compiler.prompt import prompt_text
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.tokens import APPROX4, CALIBRATED1, Tokens
from tests.support.pack_tables import TEAMS
from tests.unit.compiler.prompt_cases import (
    PROMPTS,
    cached_shares,
    common_length,
    compiled_prompts,
    draw_helpdesk,
    draw_refunds,
    draw_team,
)

__all__ = ["prompt_rows"]

_SAMPLES = Path(__file__).parent.parent / "tests" / "cases" / "tokens.json"
_REQUESTS = 200


def prompt_rows() -> Iterator[Row]:
    """Yield the common beginning of prompts, their cost beside hand-written ones, and the error of the estimate."""
    yield from _share_rows("the shipped pack", draw_refunds)
    yield from _share_rows("a helpdesk with 19 tools", draw_helpdesk)
    for name in TEAMS:
        yield from _share_rows(f"the team's pack {name}", partial(draw_team, name))
    tokens = _counter()
    for name, context in compiled_prompts().items():
        compiled = tokens.count(prompt_text(context.compiled_prompt))
        written = tokens.count((PROMPTS / f"{name}.txt").read_text(encoding="utf-8"))
        ratio = compiled / written
        figures = f"{compiled:,} and {written:,} tokens by {tokens.name}"
        yield Row(f"the prompt of {name}", "hand-written, same facts", ratio, "<= 1.6", ratio <= 1.6, figures)
    yield _fence_row(tokens)
    for sample in json.loads(_SAMPLES.read_bytes()):
        real = sample["o200k_base"]
        ratio, crude = CALIBRATED1.count(sample["text"]) / real, APPROX4.count(sample["text"]) / real
        kept, figures = abs(ratio - 1) <= 0.15, f"{real} tokens; approx4 {crude:.2f}"
        yield Row(f"calibrated1 of {sample['name']}", "o200k_base", ratio, "1 +- 0.15", kept, figures)


def _share_rows(what: str, draw: Callable[[int, int], list[CompiledContext]]) -> Iterator[Row]:
    texts = [prompt_text(context.compiled_prompt) for context in draw(_REQUESTS, 15)]
    lengths = f"{sum(map(len, texts)) / len(texts):,.0f} characters"
    cached = cached_shares(texts)
    share = sum(cached) / len(cached)
    yield Row(f"{_REQUESTS} requests, {what}: shared", "with any earlier one", share, ">= 0.8", share >= 0.8, lengths)
    last = [common_length(earlier, text) / len(text) for earlier, text in pairwise(texts)]
    share = sum(last) / len(last)
    yield Row("the same", "with the one before", share, "-", share > 0, lengths)


def _fence_row(tokens: Tokens) -> Row:
    context = compiled_prompts()["evidence"]
    blocks = [block for block in context.compiled_prompt.context_blocks if block.bucket == "evidence"]
    bare = "\n".join(" ".join([*block.provenance_refs, block.evidence_type or "", block.content]) for block in blocks)
    shown = prompt_text(context.compiled_prompt).partition("<data ")[2].partition("[request]")[0]
    each = (tokens.count(f"<data {shown}</data 0000>\n") - tokens.count(bare)) / len(blocks)
    figures = f"{len(blocks)} pieces, by {tokens.name}"
    return Row(
        "fence, number and trust of a piece", "8 tokens", each / 8, "<= 1", each <= 8, f"{each:.1f} tokens; {figures}"
    )


def _counter() -> Tokens:
    try:
        return load_counter("o200k_base")
    except ContextPlaneError:
        return CALIBRATED1
