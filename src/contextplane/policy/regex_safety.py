"""Regular expressions that a pack may hold: those whose matching takes time in proportion to the text. Pure.

They are matched by an engine that never goes back. Other programs that read the same pack match them with engines that
do, so what would take those for ever is refused as well.

Whether what a regular expression repeats can match one text in two ways. Pure.

A pattern is read as an automaton whose states are its characters. What is repeated is ambiguous when two ways part from
one state, match the same characters, and meet again. Then the number of ways doubles with every time that this happens.

Which characters the parts of a regular expression match, as the engine that matches it says. Pure.
"""

import re
from collections import defaultdict
from functools import lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING

from contextplane.model.value import Value

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["LONGEST", "Automaton", "Characters", "Part", "linear", "pattern_matches", "pattern_problem"]

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


_STATES = 1_000
"""What is repeated a number of times is written out that often, up to so many states."""
_STEPS = 20_000
"""How far two ways are followed through one pattern. No usual one comes near."""
_CHOICE, _LEFT_OUT, _COUNTED, _ENDLESS = range(4)
_WORDS = (
    "a choice between branches that begin alike",
    "something of which a part may be left out",
    "something that is itself repeated",
    "something that is itself repeated",
)
_FEW = (4, 4, 4, 3)
"""A group of each kind that is repeated more often than this is as bad as one that is repeated without end."""


class Part(Value, frozen=True):
    """A part of a pattern: where its states and their steps begin, and how it begins and ends."""

    states: int
    steps: int
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    """A state stands here as often as there are ways to it, at most twice for each empty part between."""
    empty: int = 1
    """In how many ways it matches no character at all; two stands for more."""
    varies: int = _CHOICE


class Automaton:
    """The states of one pattern in their order, and the steps between them. Parts are added from left to right."""

    def __init__(self, characters: Characters) -> None:
        self._characters = characters
        self._atoms: list[str] = []
        self._steps: list[tuple[int, int]] = []
        self._left = _STEPS
        self.ambiguity: str | None = None
        """What was found to be repeated although it is ambiguous."""

    def empty(self) -> Part:
        """A part that matches no character."""
        return Part(len(self._atoms), len(self._steps))

    def end(self) -> Part:
        """The end of the text. Nothing follows it, so it is no part of any way that is gone more than once."""
        return Part(len(self._atoms), len(self._steps), empty=0)

    def atom(self, atom: str) -> Part:
        """A part that matches one character."""
        at = len(self._atoms)
        self._atoms.append(atom)
        return Part(at, len(self._steps), (at,), (at,), 0)

    def after(self, part: Part, other: Part) -> Part:
        """One part and then another."""
        self._steps += product(part.last, other.first)
        return Part(
            *(part.states, part.steps),
            part.first + other.first * part.empty,
            other.last + part.last * other.empty,
            min(2, part.empty * other.empty),
            max(part.varies, other.varies),
        )

    def either(self, part: Part, other: Part) -> Part:
        """One part or another."""
        ways = min(2, part.empty + other.empty)
        varies = max(part.varies, other.varies)
        return Part(part.states, part.steps, part.first + other.first, part.last + other.last, ways, varies)

    def repeated(self, part: Part, least: int, most: int | None) -> Part:
        """The part that was added last, so many times; None is without end."""
        size = len(self._atoms) - part.states
        varies = max(part.varies, _kind(least, most))
        group = size > 1 or part.empty or len(self._steps) > part.steps
        if most is None or (most > _FEW[part.varies] and group) or most * size + part.states > _STATES:
            self._loop(part)
            whole = part if least else self.either(part, self.empty())
        else:
            whole = self._written_out(part, least, most)
        return Part(part.states, part.steps, whole.first, whole.last, whole.empty, varies)

    def _written_out(self, part: Part, least: int, most: int) -> Part:
        turns = [part, *self._copies(part, most - 1)]
        whole = self.empty()
        # From the right, and each turn that may be left out with all that follow: so there is one way to each number.
        for number in range(most, 0, -1):
            whole = self.after(turns[number - 1], whole)
            if number > least:
                whole = self.either(whole, self.empty())
        return whole

    def _copies(self, part: Part, number: int) -> list[Part]:
        atoms, steps, copies = self._atoms[part.states :], self._steps[part.steps :], []
        for _ in range(number):
            by = len(self._atoms) - part.states
            first, last = (tuple(state + by for state in states) for states in (part.first, part.last))
            copies.append(Part(len(self._atoms), len(self._steps), first, last, part.empty))
            self._atoms += atoms
            self._steps += [(one + by, other + by) for one, other in steps]
        return copies

    def _loop(self, part: Part) -> None:
        self._steps += product(part.last, part.first)
        # Turns that match nothing can stand anywhere in any number.
        if self.ambiguity is None and (part.empty or self._is_ambiguous(self._steps[part.steps :])):
            self.ambiguity = _WORDS[part.varies]

    def _is_ambiguous(self, steps: list[tuple[int, int]]) -> bool:
        """Whether two ways part and meet again. From any state of what is repeated there is a way to any other."""
        after: defaultdict[int, list[int]] = defaultdict(list)
        for one, other in steps:
            after[one].append(other)
        # Where a step stands twice, the two ways have met already.
        waiting = [pair for states in after.values() for pair in self._alike(combinations(states, 2))]
        seen = set(waiting)
        while waiting and self._left > 0:
            one, other = waiting.pop()
            for pair in self._alike(product(after[one], after[other])):
                if pair[0] == pair[1]:
                    return True
                if pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)
        return self._left <= 0

    def _alike(self, pairs: "combinations[tuple[int, int]] | product[tuple[int, int]]") -> list[tuple[int, int]]:
        """Those pairs of states that one character can lead to, the lower one first."""
        found = []
        for one, other in pairs:
            self._left -= 1
            if self._left <= 0:
                break
            if self._characters.overlap(self._atoms[one], self._atoms[other]):
                found.append((min(one, other), max(one, other)))
        return found


def _kind(least: int, most: int | None) -> int:
    if least == most:
        return _CHOICE
    return _ENDLESS if most is None else _LEFT_OUT if most == 1 else _COUNTED


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
