"""The one canonical form of JSON: RFC 8785 bytes of a value, or an error that names the place.

It does not parse text (`parse.py` does) and does not hash (`Digest.of` does). msgspec's sorted encoder writes RFC 8785
except for some floats and for one mix of keys: `collect_floats` and `to_rfc8785` find those and correct them.
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from contextplane.model.json.errors import (
    MAX_DEPTH,
    FloatUnsafe,
    JsonRefused,
    NotFinite,
    NotJson,
    integer_unsafe,
    lone_surrogate,
    too_deep,
)
from contextplane.model.json.pointer import pointer

__all__ = ["MAX_INTEGER", "SORTED", "Json", "canonical", "collect_floats", "float_problem", "to_rfc8785"]

Json: TypeAlias = "bool | int | float | str | list[Json] | tuple[Json, ...] | dict[str, Json] | None"

MAX_INTEGER = 2**53 - 1
SORTED = msgspec.json.Encoder(order="sorted")

# The path to a node: the path to its parent, and one token. Pointers can be long, so only that of an error is built.
_Place: TypeAlias = "tuple[_Place, str | int] | None"

# RFC 8785 writes an exponent below _TINY, msgspec already below _SMALL. From _WIDE up to _HUGE, RFC 8785 writes an
# integer beyond MAX_INTEGER; from _HUGE on `e+` where msgspec writes `e`. A whole number has `.0` in msgspec only.
_TINY, _SMALL, _WIDE, _HUGE = 1e-6, 1e-5, 2.0**53, 1e21

# From a character beyond U+FFFF to the end of its string, which is a key if a colon follows. Possessive, hence linear.
_ASTRAL = re.compile(rb'[\xf0-\xf4][^"\\]*+(?:\\.[^"\\]*+)*+"(:?)')
_READ = msgspec.json.Decoder()


def canonical(value: object) -> bytes:
    """Encode JSON's own types, and `msgspec.Struct`s of them, as RFC 8785 bytes.

    Anything else is refused, with its place. `parse` accepts what this writes, and its canonical form is the same
    bytes.
    """
    # The encoder goes first: unlike `collect_floats`, it terminates on a value that contains itself.
    try:
        encoded = SORTED.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _refusal(value, str(error)) from error
    floats = collect_floats(value)
    result = None if floats is None else to_rfc8785(encoded, floats)
    if result is None:
        raise _refusal(value, "a node is refused")
    return result


def to_rfc8785(encoded: bytes, floats: Iterable[float]) -> bytes | None:
    """Turn what `SORTED` wrote for a value with these floats into RFC 8785 bytes.

    None if one of the floats is refused.
    """
    differing = [number for number in floats if number.is_integer() or not _is_plain(abs(number))]
    if differing:
        if any(map(float_problem, differing)):
            return None
        encoded = _without_fractions(encoded, differing) or SORTED.encode(_RESPELL.decode(encoded))
    return _encode_by_reference(_READ.decode(encoded)) if _needs_utf16_order(encoded) else encoded


def _encode_by_reference(value: Any) -> bytes:  # noqa: ANN401  any decoded value
    # Imported here: almost nothing needs it.
    import rfc8785  # noqa: PLC0415

    return rfc8785.dumps(value)


def collect_floats(value: object) -> list[float] | None:  # noqa: C901, PLR0912 - flat: a call per node would double its cost
    """The floats of an encoded value; None if its types, integers or depth are refused.

    Exact types only: a subclass may show the encoder one content and other readers another. The encoder has refused
    lone surrogates already, so strings are not searched.
    """
    floats: list[float] = []
    level: list[Any] = [(value,)]
    for _ in range(MAX_DEPTH + 1):
        deeper: list[Any] = []
        for node in level:
            if type(node) is dict:
                for key in node:
                    if type(key) is not str:
                        return None
                children = node.values()
            else:
                children = node
            for child in children:
                kind = type(child)
                if kind is str:
                    continue
                if kind is dict or kind is list or kind is tuple:
                    deeper.append(child)
                elif kind is int:
                    if not -MAX_INTEGER <= child <= MAX_INTEGER:
                        return None
                elif kind is float:
                    floats.append(child)
                elif isinstance(child, msgspec.Struct):
                    deeper.append([part for _, part in _fields(child)])
                elif kind is not bool and child is not None:
                    return None
        if not deeper:
            return floats
        level = deeper
    return None


def _without_fractions(encoded: bytes, differing: list[float]) -> bytes | None:
    """Cut `.0` off the differing floats, if all are whole numbers and no string looks like one.

    Each of them stands before a comma or a bracket. In rare strings so does something that is no float: then there are
    more such places than floats, and nothing is cut.
    """
    if any(abs(number) >= _WIDE or not number.is_integer() or _is_negative_zero(number) for number in differing):
        return None
    cut = encoded.replace(b".0,", b",").replace(b".0}", b"}").replace(b".0]", b"]")
    return cut if len(encoded) - len(cut) == len(b".0") * len(differing) else None


def _is_plain(size: float) -> bool:
    """Whether both encoders write a fraction of this size alike. False for NaN."""
    return size < _TINY or _SMALL <= size < _WIDE


def _is_negative_zero(number: float) -> bool:
    return number == 0 and math.copysign(1, number) < 0


def _respell(text: str) -> int | float | msgspec.Raw:
    number = float(text)
    if number.is_integer() and abs(number) < _WIDE:
        return int(number)
    return number if _is_plain(abs(number)) else msgspec.Raw(_encode_by_reference(number))


_RESPELL = msgspec.json.Decoder(float_hook=_respell)


def _needs_utf16_order(encoded: bytes) -> bool:
    """Whether keys may stand in another order than that of their UTF-16 units.

    msgspec sorts by code point. That differs only between a character beyond U+FFFF and one of U+E000..U+FFFF.
    """
    if encoded.isascii() or not (b"\xee" in encoded or b"\xef" in encoded):
        return False
    return b":" in _ASTRAL.findall(encoded)


def _fields(struct: msgspec.Struct) -> Iterator[tuple[str | int, object]]:
    config = struct.__struct_config__
    for index, field in enumerate(struct.__struct_fields__):
        part = getattr(struct, field)
        if part is not msgspec.UNSET:
            yield index if config.array_like else struct.__struct_encode_fields__[index], part
    # A tag is written too, and may be an integer beyond MAX_INTEGER.
    yield config.tag_field or "", config.tag


def _refusal(value: object, reason: str) -> JsonRefused:
    """The first problem in document order. Slow, and called only for a refusal."""
    todo: list[tuple[_Place, object, int]] = [(None, value, 1)]
    while todo:
        place, node, depth = todo.pop()
        problem = _problem(node, depth)
        if problem is not None:
            return problem.under(pointer(reversed([*_tokens(place)])))
        parts: list[tuple[_Place, object, int]] = [((place, token), part, depth + 1) for token, part in _parts(node)]
        todo.extend(reversed(parts))
    return JsonRefused(f"no canonical form: {reason}")


def _tokens(place: _Place) -> Iterator[str | int]:
    while place is not None:
        place, token = place
        yield token


def _parts(node: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(node, msgspec.Struct):
        return _fields(node)
    if isinstance(node, dict):
        return node.items()
    return enumerate(node) if isinstance(node, list | tuple) else ()


def _problem(node: object, depth: int) -> JsonRefused | None:  # noqa: PLR0911 - one line per type of JSON
    """The problem of this one node, or of one of its keys."""
    if type(node) is str:
        return _text_problem(node)
    if type(node) is int:
        return None if abs(node) <= MAX_INTEGER else integer_unsafe(f"an integer of {node.bit_length()} bits")
    if type(node) is float:
        return float_problem(node)
    if node is None or type(node) is bool:
        return None
    if not isinstance(node, msgspec.Struct) and type(node) not in {dict, list, tuple}:
        return NotJson(f"{type(node).__name__} is not a JSON type", hint="convert it to one")
    if depth > MAX_DEPTH:
        return too_deep()
    return next(filter(None, map(_key_problem, node)), None) if isinstance(node, dict) else None


def _key_problem(key: object) -> JsonRefused | None:
    if type(key) is str:
        return _text_problem(key)
    return NotJson(f"a key is {type(key).__name__}, not text", hint="write the key as text")


def _text_problem(text: str) -> JsonRefused | None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return lone_surrogate(f"\\u{ord(text[error.start]):04x}")
    return None


def float_problem(number: float) -> JsonRefused | None:
    """Why this float is refused; None if it is not."""
    if not math.isfinite(number):
        return NotFinite(f"{number!r} is not a JSON number", hint="write null, or leave the member out")
    if _WIDE <= abs(number) < _HUGE:
        return FloatUnsafe(f"{number!r} is an integer beyond 2^53-1 in canonical form", hint="write it as text")
    return None
