"""The canonical form against the fastest sorted encoder, on a document of the size of a context pack."""

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from bench.measure import Row, in_turns
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical, settled, survey
from contextplane.model.json.parse import parse

__all__ = ["canonical_form"]

_ROUNDS = 15
_TIMES = 400


def canonical_form() -> Iterator[Row]:
    document = _document()
    text = msgspec.json.encode(document)
    parsed = parse(text)
    sort = msgspec.json.Encoder(order="sorted").encode
    decode = msgspec.json.Decoder().decode
    floats = survey(parsed.value) or []
    works = [
        _often(partial(sort, document)),
        # What `parse` pays for it: the sorted encoding, and putting its floats right, which parsing has collected.
        _often(lambda: settled(sort(parsed.value), floats)),
        _often(partial(canonical, document)),
        _often(partial(parse, text)),
        _often(partial(decode, text)),
    ]
    plain, kept, scanned, parsing, decoding = in_turns(works, rounds=_ROUNDS)
    size = f"{len(text) / 1000:.1f} KB, sorted encode {_us(plain)}"
    against = "sorted msgspec encode"
    yield Row("canonical bytes, parsed value", against, kept / plain, "<= 2", kept / plain <= 2, f"{size}")
    yield Row("canonical bytes, any value", against, scanned / plain, "<= 8", scanned / plain <= 8, _us(scanned))
    both = plain + decoding
    figures = f"{_us(parsing)}, decode {_us(decoding)}"
    yield Row(
        "strict parse with canonical bytes", "decode + sorted encode", parsing / both, "-", kept=True, figures=figures
    )


def _often(work: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(_TIMES):
            work()

    return run


def _us(seconds: float) -> str:
    return f"{seconds / _TIMES * 1e6:.1f} us"


def _document() -> dict[str, object]:
    """A document of about 12 KB with what documents of ours are full of: names, digests, rules, some numbers."""
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
