"""JSON text to a value, strictly: what two readers could understand differently is refused.

It accepts or refuses; why and where, `json_explain.py` finds out. Bytes that others stored are verified as they are,
and do not have to pass here.
"""

from collections.abc import Callable
from itertools import chain
from typing import Any, cast

import msgspec

from contextplane.model.json.canonical import SORTED, Json, settled, survey
from contextplane.model.json.errors import MAX_DEPTH, JsonRefused
from contextplane.model.value import Value

__all__ = ["Parsed", "decoded", "parse", "repeats_a_key"]

_EXACT = 2.0**53  # below it, a float without a fraction is that integer
_LONG = b"0" * 16  # an integer beyond 2^53-1 has at least as many digits
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")


class Parsed(Value, frozen=True, kw_only=True):
    """A document that was read strictly, and its canonical form. Only `parse` makes one.

    In `value` every float without a fraction below 2^53 is an `int`. `canonical` is made from the text: a change to
    `value` does not reach it.
    """

    value: Json
    canonical: bytes


def parse(data: bytes) -> Parsed:
    """Read one JSON document in UTF-8. Each kind of refusal is an error class, with its place in `at` and `details`."""
    floats: list[float] = []
    try:
        value = msgspec.json.Decoder(float_hook=_normal(floats)).decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _refusal(data, str(error)) from error
    if not _is_shallow(value, data.count(b"[") + data.count(b"{")):
        raise _refusal(data, "the nesting is too deep")
    if _LONG in data.translate(_DIGITS_TO_ZERO) and survey(value) is None:
        raise _refusal(data, "an integer is out of range")
    # A repeated key is gone when decoded, so that fewer strings come out than stood in the text.
    encoded = SORTED.encode(value)
    if _quotes(data) != _quotes(encoded):
        raise _refusal(data, "a key is repeated")
    canonical = settled(encoded, floats)
    if canonical is None:
        raise _refusal(data, "a float is out of range")
    return Parsed(value=cast("Json", value), canonical=canonical)


def decoded(data: bytes) -> Json:
    """What a text that `parse` refuses seems to say, of a repeated key the last value; null if it cannot be told."""
    try:
        return cast("Json", msgspec.json.Decoder(float_hook=_normal([])).decode(data))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _normal(floats: list[float]) -> Callable[[str], int | float]:
    """Makes a number of its digits: an `int` where it is one. Those that stay floats are noted."""

    def normal(text: str) -> int | float:
        number = float(text)
        if number.is_integer() and abs(number) < _EXACT:
            return int(number)
        floats.append(number)
        return number

    return normal


def repeats_a_key(data: bytes, value: object) -> bool:
    """Whether an object of a valid JSON text has a key twice. `value`: what the text was decoded to."""
    return _quotes(data) != _quotes(SORTED.encode(value))


def _is_shallow(value: object, brackets: int) -> bool:
    """Whether a value from a text with so many opening brackets, those in strings included, is within MAX_DEPTH.

    It goes down level by level, until the brackets left would not reach too deep if each stood inside the one before.
    """
    level: list[Any] = [value]
    for depth in range(1, MAX_DEPTH + 1):
        brackets -= len(level)
        if not level or brackets <= MAX_DEPTH - depth:
            return True
        parts = chain.from_iterable(node.values() if type(node) is dict else node for node in level)
        level = [part for part in parts if type(part) is dict or type(part) is list]
    return not level


def _quotes(text: bytes) -> int:
    """How many quotes of a valid JSON text begin or end a string."""
    if b"\\" in text:
        # Pairs first, so that the quote after an escaped backslash is not taken for an escaped quote.
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    return text.count(b'"')


def _refusal(data: bytes, reason: str) -> JsonRefused:
    """Why `data` is refused; in general terms if the explainer, against its law, finds nothing."""
    # Here and not above: it is needed for nothing but a refusal.
    from contextplane.model.json.explain import explain  # noqa: PLC0415

    try:
        explain(data)
    except JsonRefused as problem:
        return problem
    return JsonRefused(f"not read as JSON: {reason}")
