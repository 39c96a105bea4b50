"""JSON text to a value, strictly: a text that two readers could understand differently is refused.

It accepts or refuses; `explain.py` finds out why and where. Stored bytes of others are verified as they are and do not
have to pass here.
"""

from collections.abc import Callable
from typing import cast

import msgspec

from contextplane.model.json.canonical import SORTED, Json, collect_floats, to_rfc8785
from contextplane.model.json.errors import JsonRefused, is_shallow
from contextplane.model.value import Value

__all__ = ["Parsed", "decode_leniently", "has_duplicate_key", "parse"]

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
    """Parse one JSON document in UTF-8.

    Each kind of refusal is an error class, with its place in `at` and `details`.
    """
    floats: list[float] = []
    try:
        value = msgspec.json.Decoder(float_hook=_float_hook(floats)).decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise _refusal(data, str(error)) from error
    if not is_shallow(value, data):
        raise _refusal(data, "the nesting is too deep")
    if _LONG in data.translate(_DIGITS_TO_ZERO) and collect_floats(value) is None:
        raise _refusal(data, "an integer is out of range")
    # Decoding drops a repeated key, so that the value has fewer strings than the text.
    encoded = SORTED.encode(value)
    if _quotes(data) != _quotes(encoded):
        raise _refusal(data, "a key is repeated")
    canonical = to_rfc8785(encoded, floats)
    if canonical is None:
        raise _refusal(data, "a float is out of range")
    return Parsed(value=cast("Json", value), canonical=canonical)


def decode_leniently(data: bytes) -> Json:
    """A best-effort value of a text that `parse` refuses; None if there is none.

    Of a repeated key the last value counts.
    """
    try:
        return cast("Json", msgspec.json.Decoder(float_hook=_float_hook([])).decode(data))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _float_hook(floats: list[float]) -> Callable[[str], int | float]:
    """A hook that turns digits into a number, an `int` where possible, and collects the floats."""

    def normal(text: str) -> int | float:
        number = float(text)
        if number.is_integer() and abs(number) < _EXACT:
            return int(number)
        floats.append(number)
        return number

    return normal


def has_duplicate_key(data: bytes, value: object) -> bool:
    """Whether an object of a valid JSON text has a key twice. `value`: the decoded text."""
    return _quotes(data) != _quotes(SORTED.encode(value))


def _quotes(text: bytes) -> int:
    """The number of quotes in a valid JSON text that begin or end a string."""
    if b"\\" in text:
        # Pairs first, so that the quote after an escaped backslash is not taken for an escaped quote.
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    return text.count(b'"')


def _refusal(data: bytes, reason: str) -> JsonRefused:
    """The error for a refused text; in general terms if the explainer, against its law, finds nothing."""
    # Imported here: only a refusal needs it.
    from contextplane.model.json.explain import explain  # noqa: PLC0415

    try:
        explain(data)
    except JsonRefused as problem:
        return problem
    return JsonRefused(f"not read as JSON: {reason}")
