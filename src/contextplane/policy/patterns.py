"""Regular expressions that a pack may hold: those whose matching takes time in proportion to the text. Pure.

They are matched by an engine that never goes back. Other programs that read the same pack match them with engines that
do, so what would take those for ever is refused as well.
"""

import re
from functools import lru_cache

from contextplane.policy.pattern_characters import Characters, linear
from contextplane.policy.pattern_turns import Automaton, Part

__all__ = ["LONGEST", "pattern_matches", "pattern_problem"]

LONGEST = 1_000

# Not compiled here: few packs hold a pattern with a group that is repeated.
_PIECES = (
    r"(?P<flags>\(\?[A-Za-z-]+\))|(?P<open>\((?:\?(?:[:=!>]|<[=!]|P?<[^>]+>|[A-Za-z-]+:))?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<times>[*+?]|\{\s*(?P<least>[0-9]+)\s*(?P<comma>,)?\s*(?P<most>[0-9]+)?\s*\})[?+]?"
    r"|(?P<edge>[$^]|\\[bB](?:\{[a-z-]+\})?|\\[Az])"
    r"|(?P<atom>\\[pPxu]\{[^}]*\}|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\[pPc][A-Za-z]|\\."
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\])"
)
_FLAG = r"(?<!\\)(?:\\\\)*\(\?[A-Za-z]*{}[A-Za-z-]*[:)]"


class _Group:
    """What stands between two parentheses, as far as it was read."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._branches: list[Part] = []
        self._read = self._last = automaton.empty()

    def add(self, part: Part) -> None:
        self._last = part

    def settle(self) -> None:
        """What was added last is not repeated any more."""
        self._read, self._last = self._automaton.after(self._read, self._last), self._automaton.empty()

    def repeat(self, least: int, most: int | None) -> None:
        self._last = self._automaton.repeated(self._last, least, most)

    def branch(self) -> None:
        self.settle()
        self._branches.append(self._read)
        self._read = self._automaton.empty()

    def close(self) -> Part:
        self.branch()
        whole, *others = self._branches
        for other in others:
            whole = self._automaton.either(whole, other)
        return whole


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern is refused; None when it is not."""
    if len(pattern) > LONGEST:
        return f"is longer than {LONGEST} characters"
    if re.search(_FLAG.format("x"), pattern):
        return "is laid out with the flag x, which other engines do not read"
    if ambiguous := _repeats_ambiguously(pattern):
        return f"repeats {ambiguous}, so that one text can be matched in countless ways"
    if linear(pattern) is None:
        return "is no regular expression of the engine that matches it: no references back, nothing that looks around"
    return None


def pattern_matches(pattern: str, text: str) -> bool:
    """Whether a pattern that has no problem is found in a text."""
    engine = linear(pattern)
    return engine is not None and engine.is_valid(text)


@lru_cache(maxsize=512)
def _repeats_ambiguously(pattern: str) -> str | None:
    """What is repeated, if nothing tells where one turn ends, or by which branch it is one."""
    if ")*" not in pattern and ")+" not in pattern and "){" not in pattern:
        return None
    automaton, lines = Automaton(Characters(pattern)), re.search(_FLAG.format("m"), pattern)
    groups = [_Group(automaton)]
    for token in re.finditer(_PIECES, pattern, re.DOTALL):
        here = groups[-1]
        if token["times"]:
            here.repeat(*_counted(token))
        elif token["open"]:
            here.settle()
            groups.append(_Group(automaton))
        elif token["bar"]:
            here.branch()
        elif token["atom"] or token["edge"]:
            here.settle()
            ends = token["edge"] == "$" and not lines
            here.add(automaton.atom(token["atom"]) if token["atom"] else automaton.end() if ends else automaton.empty())
        elif token["close"] and len(groups) > 1:
            groups.pop()
            groups[-1].add(here.close())
        if automaton.ambiguity:
            break
    return automaton.ambiguity


def _counted(token: re.Match[str]) -> tuple[int, int | None]:
    """How often at least and at most; None is without end."""
    if token["times"] in {"*", "+", "?"}:
        return int(token["times"] == "+"), 1 if token["times"] == "?" else None
    least = int(token["least"])
    if token["most"]:
        return least, int(token["most"])
    return least, None if token["comma"] else least
