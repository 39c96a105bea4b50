"""The canonical form against the fastest sorted encoder, on a document of the size of a context pack."""

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from bench.measure import Row, measure_in_turns
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical, collect_floats, to_rfc8785
from contextplane.model.json.parse import parse

__all__ = ["canonical_rows"]

_ROUNDS = 15
_TIMES = 400


def canonical_rows() -> Iterator[Row]:
    document = _document()
    text = msgspec.json.encode(document)
    parsed = parse(text)
    sort = msgspec.json.Encoder(order="sorted").encode
    decode = msgspec.json.Decoder().decode
    floats = collect_floats(parsed.value) or []
    works = [
        _repeat(partial(sort, document)),
        # The extra cost in `parse`: the sorted encoding, and correcting the floats that parsing has collected.
        _repeat(lambda: to_rfc8785(sort(parsed.value), floats)),
        _repeat(partial(canonical, document)),
        _repeat(partial(parse, text)),
        _repeat(partial(decode, text)),
    ]
    plain, parsed_value, any_value, parsing, decoding = measure_in_turns(works, rounds=_ROUNDS)
    size = f"{len(text) / 1000:.1f} KB, sorted encode {_us(plain)}"
    against = "sorted msgspec encode"
    yield Row(
        "canonical bytes, parsed value", against, parsed_value / plain, "<= 2", parsed_value / plain <= 2, f"{size}"
    )
    yield Row("canonical bytes, any value", against, any_value / plain, "<= 8", any_value / plain <= 8, _us(any_value))
    both = plain + decoding
    figures = f"{_us(parsing)}, decode {_us(decoding)}"
    yield Row(
        "strict parse with canonical bytes", "decode + sorted encode", parsing / both, "-", kept=True, figures=figures
    )


def _repeat(work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(_TIMES):
            work()

    return run


def _us(seconds: float) -> str:
    return f"{seconds / _TIMES * 1e6:.1f} us"


def _document() -> dict[str, object]:
    """Return a document of about 12 KB like ours: names, digests, rules, some numbers."""
    rules = [
        {
            "rule_id": f"R_REFUND_{n}",
            "applies_to": {"intent": "support.refund", "channel": "app_chat"},
            "if": {
                "and": [{"==": [{"var": "user.role"}, "support_agent"]}, {">": [{"var": "request.amount"}, 3000 + n]}]
            },
            "then": {"allow": True, "approval_mode": "destructive", "requires_approval_gate": "GATE_FINANCE_APPROVAL"},
            "rationale": "High-value refunds require the approval of finance.",
            "evidence": [str(Digest.of(b"%d" % n)), f"kg:order:ord_{n}#snapshot_kg_2026_05_03"],
            "weight": 0.95 - n / 1000,
        }
        for n in range(26)
    ]
    return {"pack_id": "ctxpack.support", "pack_version": "1.0.0", "rules": rules, "ttl_seconds": 86400}
