"""JSON as Go's encoding/json writes it: the bytes of the reference program, not RFC 8785.

Compact, `<`, `>` and `&` escaped, every other character as it is. Numbers are doubles, plain between 1e-6 and 1e21.
"""

from collections.abc import Mapping
from decimal import Decimal

__all__ = ["go_json"]

_ESCAPED = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_AS_CODE = frozenset("<>&\u2028\u2029")
_FIRST_PRINTED = " "
_PLAIN_FROM, _PLAIN_BELOW = 1e-6, 1e21


def go_json(value: object, *, sort: bool = True) -> bytes:
    """`sort`: as a generic value, keys in code point order. Otherwise as a struct, in the order given."""
    return _text(value, sort=sort).encode()


def _text(value: object, *, sort: bool) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int | float):
        return _number(float(value))
    if isinstance(value, Mapping):
        # Maps are sorted always, structs never; only what is free-form is a map.
        items = sorted(value.items()) if sort else value.items()
        inner = ((key, _text(part, sort=sort or key in {"parameters", "tool_versions"})) for key, part in items)
        return "{" + ",".join(f"{_string(key)}:{text}" for key, text in inner) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_text(part, sort=sort) for part in value) + "]"
    raise TypeError(f"not JSON: {type(value).__name__}")


def _string(text: str) -> str:
    return '"' + "".join(map(_character, text)) + '"'


def _character(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    return f"\\u{ord(character):04x}" if character < _FIRST_PRINTED or character in _AS_CODE else character


def _number(number: float) -> str:
    if number == 0:
        return "-0" if str(number).startswith("-") else "0"
    exact = Decimal(repr(number)).normalize()
    if _PLAIN_FROM <= abs(number) < _PLAIN_BELOW:
        return format(exact, "f")
    sign, digits, _ = exact.as_tuple()
    mantissa = "".join(map(str, digits))
    point = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
    power = exact.adjusted()
    return f"{'-' * sign}{mantissa[0]}{point}e{f'+{power:02d}' if power > 0 else power}"
