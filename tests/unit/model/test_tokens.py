"""The token counters that need no table, held against recorded counts of real ones."""

import json
import math
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from contextplane.model.tokens import CALIBRATED1, OFFLINE
from tests.support.cases import cases

SAMPLES: list[dict[str, Any]] = json.loads((Path(__file__).resolve().parents[2] / "cases" / "tokens.json").read_bytes())


@cases("sample", SAMPLES, ids=lambda sample: sample["name"])
def test_the_calibrated_counter_is_within_15_percent_of_the_real_one(sample: dict[str, Any]) -> None:
    counted, real = CALIBRATED1.count(sample["text"]), sample["o200k_base"]
    assert abs(counted / real - 1) <= 0.15, f"{counted} instead of {real}"


@cases(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("Hello, world!", 4),
        ("x" * 8000, 1000),
        ("\u0416" * 4000, 1000),
        ("\U0001f600" * 10, 16),
        (" " * 1000, 31),
        ("\n" * 1000, 125),
    ],
)
def test_what_the_calibrated_counter_counts_never_changes(text: str, tokens: int) -> None:
    """Its name is in the hash of every compiled context: other counts need another name."""
    assert CALIBRATED1.count(text) == tokens


WEIGHTS = {
    "a": 45, "A": 270, "0": 200, " ": 31, "n": 50, "p": 100, " a": 911, "pa": 1545, "0a": 1005, "Aa": 1072, "na": 1292,
    " 0": 1677, "p0": 1678, "a0": 851, "A0": 2999, "n ": 818, " p": 705, "p ": 298,
}  # fmt: skip
ASCII_TEXTS = st.one_of(st.text(st.characters(max_codepoint=127)), st.text("aZ0 .\n"))


@given(ASCII_TEXTS)
@example("\na\n")
@example("\n a")
def test_the_calibrated_counter_adds_the_weights_of_all_classes_and_pairs(text: str) -> None:
    kinds = "".join(
        "a"
        if c.islower()
        else "A"
        if c.isupper()
        else "0"
        if c.isdigit()
        else " "
        if c in " \t"
        else "n"
        if c in "\n\r"
        else "p"
        for c in text
    )
    thousandths = sum(weight * kinds.count(kind) for kind, weight in WEIGHTS.items())
    least = len(kinds) - kinds.count(" ")
    assert CALIBRATED1.count(text) == max(math.ceil(thousandths / 1000), math.ceil(least / 8))


@given(st.text(), st.text())
def test_a_longer_text_has_no_fewer_tokens_and_no_text_passes_for_much_shorter(first: str, second: str) -> None:
    counted = CALIBRATED1.count(first)
    assert counted <= CALIBRATED1.count(first + second)
    blanks = first.count(" ") + first.count("\t")
    assert counted * 8 >= len(first.encode()) - blanks


def test_counters_are_known_by_their_names() -> None:
    assert {name: counter.name for name, counter in OFFLINE.items()} == {
        "approx4": "approx4",
        "calibrated1": "calibrated1",
    }
