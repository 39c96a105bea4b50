"""Regular expressions that a pack may hold: those whose matching takes time in proportion to the text. Pure.

They are matched by an engine that never goes back. Other programs that read the same pack match them with engines that
do, so what would take those for ever is refused as well.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from contextplane.model.value import Value

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["LONGEST", "pattern_matches", "pattern_problem"]

LONGEST = 1_000
_MANY = 16
"""A part that is repeated up to so often is as bad as one that is repeated without end."""

# Not compiled here: few packs hold a pattern with a group that is repeated.
_PIECES = (
    r"(?P<flags>\(\?[A-Za-z-]+\))|(?P<open>\((?:\?(?:[:=!>]|<[=!]|P?<\w+>|[A-Za-z-]+:))?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<times>[*+]|\{(?P<least>[0-9]+)(?P<comma>,)?(?P<most>[0-9]+)?\})[?+]?|(?P<perhaps>\?)[?+]?"
    r"|(?P<atom>\\[pPxu]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|[^\\])"
)


_FLAGS = r"\(\?[A-Za-z-]+[:)]"
"""With flags, a letter may match another one."""


class _Group:
    """What stands between two parentheses: its characters in order, and whether their number is left open."""

    def __init__(self) -> None:
        self.atoms: list[str] = []
        self.sure: list[bool] = []
        """For each of them, whether it stands there exactly once in any case."""
        self.open_ended = False
        self.branches = False

    def take(self, inner: "_Group") -> None:
        """What a group within it holds, it holds too."""
        self.atoms += inner.atoms
        self.sure += [one and not inner.branches for one in inner.sure]
        self.open_ended |= inner.open_ended

    def repeat(self, atoms: int, *, varies: bool) -> None:
        """So many of its last atoms are repeated, or left out."""
        if atoms:
            self.sure[-atoms:] = [False] * atoms
        self.open_ended |= varies

    @property
    def has_marked_turns(self) -> bool:
        """Whether it begins or ends with a character that nothing else in it matches: so its turns are told apart."""
        return not self.branches and bool(self.atoms) and any(self.sure[at] and self._is_alone(at) for at in (0, -1))

    def _is_alone(self, at: int) -> bool:
        atom, others = self.atoms[at], [*self.atoms]
        del others[at]
        escaped = len(atom) == 2 and atom[0] == "\\" and not atom[1].isalnum()  # noqa: PLR2004
        plain = escaped or (len(atom) == 1 and atom not in ".^$")
        return plain and not any(_may_match(one, atom[-1]) for one in others)


class _Counted(Value, frozen=True):
    """How often something is repeated."""

    varies: bool
    often: bool


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern is refused; None when it is not."""
    if len(pattern) > LONGEST:
        return f"is longer than {LONGEST} characters"
    if _repeats_what_repeats(pattern):
        return "repeats something that is itself repeated, so that one text can be matched in countless ways"
    if _linear(pattern) is None:
        return "is no regular expression of the engine that matches it: no references back, nothing that looks around"
    return None


def pattern_matches(pattern: str, text: str) -> bool:
    """Whether a pattern that has no problem is found in a text."""
    engine = _linear(pattern)
    return engine is not None and engine.is_valid(text)


@lru_cache(maxsize=512)
def _linear(pattern: str) -> "jsonschema_rs.Draft202012Validator | None":
    # Here and not above: it is slow to load, and few packs hold a pattern.
    import jsonschema_rs  # noqa: PLC0415

    try:
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except jsonschema_rs.ValidationError:
        return None


def _repeats_what_repeats(pattern: str) -> bool:
    """Whether a group is repeated whose length is open, and nothing tells where one turn ends."""
    if ")*" not in pattern and ")+" not in pattern and "){" not in pattern:
        return False
    letter_by_letter = not re.search(_FLAGS, pattern)
    groups = [_Group()]
    closed: _Group | None = None
    for token in re.finditer(_PIECES, pattern, re.DOTALL):
        here = groups[-1]
        if token["times"] or token["perhaps"]:
            count = _counted(token)
            ambiguous = closed is not None and closed.open_ended and not (letter_by_letter and closed.has_marked_turns)
            if ambiguous and count.often:
                return True
            here.repeat(1 if closed is None else len(closed.atoms), varies=count.varies)
        elif token["open"]:
            groups.append(_Group())
        elif token["bar"]:
            here.branches = True
        elif token["atom"]:
            here.atoms.append(token["atom"])
            here.sure.append(True)
        closed = None
        if token["close"] and len(groups) > 1:
            closed = groups.pop()
            groups[-1].take(closed)
    return False


def _counted(token: re.Match[str]) -> _Counted:
    if token["perhaps"]:
        return _Counted(varies=False, often=False)
    if token["least"] is None:
        return _Counted(varies=True, often=True)
    if token["most"] is None:
        return _Counted(varies=bool(token["comma"]), often=bool(token["comma"]) or int(token["least"]) > _MANY)
    return _Counted(varies=token["least"] != token["most"], often=int(token["most"]) > _MANY)


def _may_match(atom: str, character: str) -> bool:
    engine = _linear(f"^(?:{atom})$")
    return engine is None or engine.is_valid(character)
