"""Hypothesis strategies for JSON values and JSON texts, rich in known edge cases.

They use no code of `model`: a strategy that asked it what is valid could not prove it wrong.
"""

from typing import TypeAlias

from hypothesis import strategies as st

__all__ = ["json_texts", "json_values", "mutate_texts", "python_values"]

Json: TypeAlias = "bool | int | float | str | list[Json] | tuple[Json, ...] | dict[str, Json] | None"
Strategy: TypeAlias = st.SearchStrategy[Json]

_MAX_INTEGER = 2**53 - 1
# Floats whose spelling differs between writers.
_EDGES = [0.0, -0.0, 1.0, 1e-7, 1e-6, 9.99e-6, 1e-5, 1e-4, 0.1, 0.5, 1e15, 4503599627370495.5, _MAX_INTEGER * 1.0]
_EDGES += [1e21, 1.5e22, 1e23, 5e-324, 1.7976931348623157e308, 333333333.33333329]
# Texts that look like a number, a key or a bracket.
_LOOKALIKES = ["sha256:1e5a", "1e5", ",1e5", "[1e5,", "[1.0,", "1.0.0", '":1.0', "-0.0", "[[{{", "]}", "\\", '\\"', '"']
_LOOKALIKES += ["a/b~c", ":", "9" * 16, "\x7f", "\x00\x1f\n"]
# U+10000 and beyond sorts before U+E000..U+FFFF in UTF-16, and after it in UTF-8 and by code point.
_ORDERED_BY_UNITS = ["\ud7ff", "\ue000", "\ufe0f", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff", "a", "\u00e9"]


def _texts() -> st.SearchStrategy[str]:
    pieces = st.sampled_from(_LOOKALIKES + _ORDERED_BY_UNITS) | st.characters(exclude_categories=["Cs"])
    return st.lists(pieces, max_size=4).map("".join)


def _floats() -> st.SearchStrategy[float]:
    """Draw floats whose canonical form can be read back: finite, and not from 2^53 up to 1e21."""
    sizes = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-1e-4, 1e-4) | st.floats(-1e6, 1e6)
    whole = st.integers(-_MAX_INTEGER, _MAX_INTEGER).map(float).filter(lambda number: abs(number) <= _MAX_INTEGER)
    wild = st.sampled_from(_EDGES) | sizes | whole
    return wild.filter(lambda number: not _MAX_INTEGER < abs(number) < 1e21)


def _trees(leaves: Strategy) -> Strategy:
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=5)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(_texts(), inner, max_size=5)
        ),
        max_leaves=20,
    )


def json_values() -> Strategy:
    """Draw values that have a canonical form."""
    return _trees(st.none() | st.booleans() | st.integers(-_MAX_INTEGER, _MAX_INTEGER) | _floats() | _texts())


def python_values() -> st.SearchStrategy[object]:
    """Draw values of which some have no canonical form, for laws that hold for any argument."""
    numbers = st.integers() | st.floats() | st.sampled_from([2**53, -(2**53), 2**64, 10**100, 2.0**53, 1e20])
    strange = st.binary(max_size=2) | st.sampled_from([{1}, {1: 2}, {None: 1}, "\ud800", {"\udfff": 1}, 1j, object])
    leaves = st.none() | st.booleans() | numbers | _texts() | st.text(max_size=3) | strange
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts(), inner, max_size=4), max_leaves=12
    )


def json_texts() -> st.SearchStrategy[bytes]:
    """Draw texts in the grammar of JSON, some of which a strict parser refuses.

    They have white space, escapes, odd numbers and repeated keys.
    """
    space = st.sampled_from(["", "", "", " ", "\n", "\t", "\r\n  "])
    scalars = st.sampled_from(["null", "true", "false"]) | _number_texts() | _string_texts()

    def containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        part = st.tuples(space, inner, space).map("".join)
        member = st.tuples(space, _string_texts(), space, st.just(":"), part).map("".join)
        array = st.tuples(st.just("["), st.lists(part, min_size=1, max_size=4).map(",".join), st.just("]"))
        mapping = st.tuples(st.just("{"), st.lists(member, min_size=1, max_size=4).map(",".join), st.just("}"))
        empty = st.tuples(st.sampled_from("[{"), space).map(lambda half: ("".join(half) + "]}"["[{".index(half[0])],))
        deep = st.tuples(st.integers(250, 260), inner).map(lambda pair: ("[" * pair[0], pair[1], "]" * pair[0]))
        return st.one_of(array, array, mapping, mapping, empty, deep).map("".join)

    texts = st.tuples(space, st.recursive(scalars, containers, max_leaves=12), space)
    return texts.map(lambda parts: "".join(parts).encode("utf-8"))


def mutate_texts(texts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Draw texts with a few bytes replaced, inserted or removed."""
    bits = [b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"0", b"-", b".", b"e", b"9" * 16, b"\\u", b"\\ud800"]
    bits += [b"\x00", b"\x1f", b"\x80", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xf0\x9f", b"\xff", b"NaN"]
    edits = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), st.sampled_from(bits)), min_size=1, max_size=3)
    return st.tuples(texts, edits).map(lambda drawn: _apply_edits(*drawn))


def _apply_edits(text: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for place, cut, inserted in edits:
        at = place % (len(text) + 1)
        text = text[:at] + inserted + text[at + cut :]
    return text


def _number_texts() -> st.SearchStrategy[str]:
    edges = ["0", "-0", "-0.0", "1.0", "1e5", "1E+2", "1e-7", "1e-6", "1e21", "1e20", "1e400", "-1e-400", "0e99999"]
    edges += ["9007199254740991", "9007199254740992", "-9007199254740991", "-9007199254740992", "9007199254740991.0"]
    edges += ["9007199254740992.0", "9007199254740991.4", "9007199254740991.5", "1" * 5000, "1" * 400 + ".5"]
    grammar = st.from_regex(r"\A-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?\Z")
    return st.sampled_from(edges) | grammar | _floats().map(repr) | st.integers().map(str)


def _string_texts() -> st.SearchStrategy[str]:
    escapes = [r"\"", r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t", r"\u0000", r"\u0022", r"\u005C", r"\u0061"]
    escapes += [r"\ud83d\ude00", r"\uD800\uDC00", r"\ue000", r"\ud800", r"\udc00", r"\ud800\u0061"]
    plain = ["a", "b", ":", ",", "[", "{", "]", "}", "1.0,", "1e5", "9" * 17, "\x7f", "\u00e9", "\ue000", "\U0001f600"]
    return st.lists(st.sampled_from(plain * 2 + escapes), max_size=3).map(lambda parts: f'"{"".join(parts)}"')
