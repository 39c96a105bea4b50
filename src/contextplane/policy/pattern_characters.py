"""Which characters the parts of a regular expression match, as the engine that matches it says. Pure."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["Characters", "linear"]

_TRIED = "".join(map(chr, range(128))) + "\xa0\xe9\u03a9\u0436\u0663\u4e2d\u2028\U0001f600"
"""Characters of every kind that classes tell apart."""
_PROPERTIES = range(128, 0x20000, 61)
"""Where properties are named, one character of nearly every script is tried too."""
_SURROGATES = range(0xD800, 0xE000)
_ESCAPED = r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xu]\{([0-9A-Fa-f]{1,6})\})"
_WIDE = {"w": r"\p{L}\p{M}\p{N}", "d": r"\p{Nd}"}
_FLAGS = r"\(\?[A-Za-z-]+[:)]"


class Characters:
    """What can tell the parts of one pattern apart.

    Two classes that share a character share one at the end of a range, or beside it, or one of a kind that is tried.
    A part that matches nothing that is tried may match anything.
    """

    def __init__(self, pattern: str) -> None:
        # With flags, a letter may match another one. Which part they hold for makes no difference worth the telling.
        self._flags = "is" if re.search(_FLAGS, pattern) else ""
        self._tried = _tried(pattern)
        self._overlaps: dict[tuple[str, str], bool] = {}

    def overlap(self, one: str, other: str) -> bool:
        """Whether there may be a character that both parts match."""
        if (known := self._overlaps.get((one, other))) is None:
            matched = [_matched(atom, self._flags, self._tried) for atom in (one, other)]
            known = self._overlaps[one, other] = not matched[0].isdisjoint(matched[1])
        return known


@lru_cache(maxsize=512)
def linear(pattern: str) -> "jsonschema_rs.Draft202012Validator | None":
    """The engine that takes time in proportion to the text; None where the pattern is none of its expressions."""
    # Here and not above: it is slow to load, and few packs hold a pattern.
    import jsonschema_rs  # noqa: PLC0415

    try:
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except jsonschema_rs.ValidationError:
        return None


@lru_cache(maxsize=512)
def _matched(atom: str, flags: str, tried: str) -> frozenset[str]:
    """The characters that it matches, of those that are tried."""
    engines = [linear(f"^(?{flags}:{reading})$") for reading in {atom, _wide(atom)}]
    found = frozenset(one for one in tried if any(engine is None or engine.is_valid(one) for engine in engines))
    return found or frozenset(tried)


def _wide(atom: str) -> str:
    """As it is read by those engines whose letters and digits are those of all scripts."""
    wide = re.sub(r"\\(.)", lambda escape: _WIDE.get(escape[1], "") + escape[0], atom, flags=re.DOTALL)
    return wide if wide == atom or atom[0] == "[" else f"[{wide}]"


def _tried(pattern: str) -> str:
    own = {ord(one) for one in pattern if not one.isascii()}
    own |= {int("".join(digits), 16) for digits in re.findall(_ESCAPED, pattern)}
    near = {one + step for one in own for step in (-1, 0, 1)}
    if re.search(r"\\[pP]", pattern):
        near.update(_PROPERTIES)
    return _TRIED + "".join(chr(one) for one in sorted(near) if 128 <= one <= 0x10FFFF and one not in _SURROGATES)  # noqa: PLR2004
