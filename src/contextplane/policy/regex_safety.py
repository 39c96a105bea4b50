"""Regular expressions that a pack may contain: those that match in linear time. Pure.

They are matched by an engine that never backtracks. Other programs that read the same pack use engines that do, so
patterns that would take those for ever are refused as well.

To find these, a pattern is read as an automaton whose states are its characters. A repeated part is ambiguous when two
ways part from one state, match the same characters, and meet again: then the number of ways doubles with every
repetition.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING

from contextplane.model.value import Value

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = [
    "MAX_PATTERN_LENGTH",
    "Automaton",
    "Characters",
    "Fragment",
    "LazyPattern",
    "lazy_regex",
    "linear_engine",
    "pattern_matches",
    "pattern_problem",
]

# --- Characters that parts of a pattern match ---

_SAMPLE = "".join(map(chr, range(128))) + "\xa0\xe9\u03a9\u0436\u0663\u4e2d\u2028\U0001f600"
"""Sample characters of every kind that classes distinguish."""
_PROPERTIES = range(128, 0x20000, 61)
"""Further samples for patterns with Unicode properties: one character of nearly every script."""
_SURROGATES = range(0xD800, 0xE000)
_ESCAPED = r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xu]\{([0-9A-Fa-f]{1,6})\})"
_WIDE = {"w": r"\p{L}\p{M}\p{N}", "d": r"\p{Nd}"}
_FLAGS = r"\(\?[A-Za-z-]+[:)]"


class Characters:
    """Tells which parts of one pattern can match the same character.

    Two classes that share a character share one at the end of a range, beside it, or among the samples of every kind. A
    part that matches no sample may match anything.
    """

    def __init__(self, pattern: str) -> None:
        # With flags, a letter may match another one. They are applied to the whole pattern, which is close enough.
        self._flags = "is" if re.search(_FLAGS, pattern) else ""
        self._tried = _sample_characters(pattern)
        self._overlaps: dict[tuple[str, str], bool] = {}

    def overlap(self, first: str, second: str) -> bool:
        """Whether there may be a character that both parts match."""
        if (known := self._overlaps.get((first, second))) is None:
            matched = [_matching_characters(atom, self._flags, self._tried) for atom in (first, second)]
            known = self._overlaps[first, second] = not matched[0].isdisjoint(matched[1])
        return known


@lru_cache(maxsize=512)
def linear_engine(pattern: str) -> "jsonschema_rs.Draft202012Validator | None":
    """The linear-time engine of a pattern; None where the pattern is not one of its expressions."""
    # Imported here: it is slow to load, and few packs have a pattern.
    import jsonschema_rs  # noqa: PLC0415

    try:
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except jsonschema_rs.ValidationError:
        return None


@lru_cache(maxsize=512)
def _matching_characters(atom: str, flags: str, samples: str) -> frozenset[str]:
    """The sample characters that an atom matches; all, when it matches none."""
    engines = [linear_engine(f"^(?{flags}:{reading})$") for reading in {atom, _wide(atom)}]
    matching = frozenset(
        character for character in samples if any(engine is None or engine.is_valid(character) for engine in engines)
    )
    return matching or frozenset(samples)


def _wide(atom: str) -> str:
    """The atom as engines read it whose letters and digits are those of all scripts."""
    wide = re.sub(r"\\(.)", lambda escape: _WIDE.get(escape[1], "") + escape[0], atom, flags=re.DOTALL)
    return wide if wide == atom or atom[0] == "[" else f"[{wide}]"


def _sample_characters(pattern: str) -> str:
    own = {ord(code) for code in pattern if not code.isascii()}
    own |= {int("".join(digits), 16) for digits in re.findall(_ESCAPED, pattern)}
    near = {code + step for code in own for step in (-1, 0, 1)}
    if re.search(r"\\[pP]", pattern):
        near.update(_PROPERTIES)
    return _SAMPLE + "".join(chr(code) for code in sorted(near) if 128 <= code <= 0x10FFFF and code not in _SURROGATES)  # noqa: PLR2004


# --- The automaton of a pattern ---

_STATES = 1_000
"""A counted repetition is unrolled, up to this many states."""
_STEPS = 20_000
"""The steps of the search for two ways through one pattern. No usual one comes near."""
_CHOICE, _LEFT_OUT, _COUNTED, _ENDLESS = range(4)
_WORDS = (
    "a choice between branches that begin alike",
    "something of which a part may be left out",
    "something that is itself repeated",
    "something that is itself repeated",
)
_FEW = (4, 4, 4, 3)
"""For each kind of group, more repetitions than this are as bad as an unlimited number."""


class Fragment(Value, frozen=True):
    """A fragment of an automaton: where its states and steps begin, and how it begins and ends."""

    states: int
    steps: int
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    """A state occurs here once for each way to it, at most twice for each empty part between."""
    empty: int = 1
    """The number of ways in which it matches the empty text; two stands for more."""
    varies: int = _CHOICE


class Automaton:
    """The states of one pattern in order, and the steps between them.

    Fragments are added from left to right.
    """

    def __init__(self, characters: Characters) -> None:
        self._characters = characters
        self._atoms: list[str] = []
        self._steps: list[tuple[int, int]] = []
        self._left = _STEPS
        self.ambiguity: str | None = None
        """The ambiguous part that is repeated, in words; None while there is none."""

    def empty(self) -> Fragment:
        """A fragment that matches no character."""
        return Fragment(len(self._atoms), len(self._steps))

    def end(self) -> Fragment:
        """The end of the text. Nothing follows it, so it is part of no way that is taken more than once."""
        return Fragment(len(self._atoms), len(self._steps), empty=0)

    def atom(self, atom: str) -> Fragment:
        """A fragment that matches one character."""
        at = len(self._atoms)
        self._atoms.append(atom)
        return Fragment(at, len(self._steps), (at,), (at,), 0)

    def concat(self, part: Fragment, other: Fragment) -> Fragment:
        """One fragment followed by another."""
        self._steps += product(part.last, other.first)
        return Fragment(
            *(part.states, part.steps),
            part.first + other.first * part.empty,
            other.last + part.last * other.empty,
            min(2, part.empty * other.empty),
            max(part.varies, other.varies),
        )

    def alternate(self, part: Fragment, other: Fragment) -> Fragment:
        """One fragment or another."""
        ways = min(2, part.empty + other.empty)
        varies = max(part.varies, other.varies)
        return Fragment(part.states, part.steps, part.first + other.first, part.last + other.last, ways, varies)

    def repeat(self, part: Fragment, least: int, most: int | None) -> Fragment:
        """The fragment that was added last, repeated. `most` is None for no limit."""
        size = len(self._atoms) - part.states
        varies = max(part.varies, _kind(least, most))
        group = size > 1 or part.empty or len(self._steps) > part.steps
        if most is None or (most > _FEW[part.varies] and group) or most * size + part.states > _STATES:
            self._loop(part)
            whole = part if least else self.alternate(part, self.empty())
        else:
            whole = self._unroll(part, least, most)
        return Fragment(part.states, part.steps, whole.first, whole.last, whole.empty, varies)

    def _unroll(self, part: Fragment, least: int, most: int) -> Fragment:
        turns = [part, *self._copies(part, most - 1)]
        whole = self.empty()
        # From the right, and an optional turn is left out with all that follow: one way to each number of turns.
        for number in range(most, 0, -1):
            whole = self.concat(turns[number - 1], whole)
            if number > least:
                whole = self.alternate(whole, self.empty())
        return whole

    def _copies(self, part: Fragment, number: int) -> list[Fragment]:
        atoms, steps, copies = self._atoms[part.states :], self._steps[part.steps :], []
        for _ in range(number):
            by = len(self._atoms) - part.states
            first, last = (tuple(state + by for state in states) for states in (part.first, part.last))
            copies.append(Fragment(len(self._atoms), len(self._steps), first, last, part.empty))
            self._atoms += atoms
            self._steps += [(source + by, target + by) for source, target in steps]
        return copies

    def _loop(self, part: Fragment) -> None:
        self._steps += product(part.last, part.first)
        # Turns that match nothing can occur anywhere, any number of times.
        if self.ambiguity is None and (part.empty or self._is_ambiguous(self._steps[part.steps :])):
            self.ambiguity = _WORDS[part.varies]

    def _is_ambiguous(self, steps: list[tuple[int, int]]) -> bool:
        """Whether two ways part and meet again.

        From any state of what is repeated there is a way to any other.
        """
        after: defaultdict[int, list[int]] = defaultdict(list)
        for first, second in steps:
            after[first].append(second)
        # Where a step occurs twice, the two ways have met already.
        waiting = [pair for states in after.values() for pair in self._alike(combinations(states, 2))]
        seen = set(waiting)
        while waiting and self._left > 0:
            first, second = waiting.pop()
            for pair in self._alike(product(after[first], after[second])):
                if pair[0] == pair[1]:
                    return True
                if pair not in seen:
                    seen.add(pair)
                    waiting.append(pair)
        return self._left <= 0

    def _alike(self, pairs: "combinations[tuple[int, int]] | product[tuple[int, int]]") -> list[tuple[int, int]]:
        """The pairs of states that one character can lead to, the lower one first."""
        pairs_alike = []
        for first, second in pairs:
            self._left -= 1
            if self._left <= 0:
                break
            if self._characters.overlap(self._atoms[first], self._atoms[second]):
                pairs_alike.append((min(first, second), max(first, second)))
        return pairs_alike


def _kind(least: int, most: int | None) -> int:
    if least == most:
        return _CHOICE
    return _ENDLESS if most is None else _LEFT_OUT if most == 1 else _COUNTED


# --- Patterns ---

MAX_PATTERN_LENGTH = 1_000

# Not compiled at import: few packs have a pattern with a repeated group.
_PIECES = (
    r"(?P<flags>\(\?[A-Za-z-]+\))|(?P<open>\((?:\?(?:[:=!>]|<[=!]|P?<[^>]+>|[A-Za-z-]+:))?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<times>[*+?]|\{\s*(?P<least>[0-9]+)\s*(?P<comma>,)?\s*(?P<most>[0-9]+)?\s*\})[?+]?"
    r"|(?P<edge>[$^]|\\[bB](?:\{[a-z-]+\})?|\\[Az])"
    r"|(?P<atom>\\[pPxu]\{[^}]*\}|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\[pPc][A-Za-z]|\\."
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\])"
)
_FLAG = r"(?<!\\)(?:\\\\)*\(\?[A-Za-z]*{}[A-Za-z-]*[:)]"


class _Group:
    """The content of a parenthesis, as far as it was read."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._branches: list[Fragment] = []
        self._read = self._last = automaton.empty()

    def add(self, part: Fragment) -> None:
        self._last = part

    def commit(self) -> None:
        """Commit the last fragment: a quantifier that follows no longer applies to it."""
        self._read, self._last = self._automaton.concat(self._read, self._last), self._automaton.empty()

    def repeat(self, least: int, most: int | None) -> None:
        self._last = self._automaton.repeat(self._last, least, most)

    def branch(self) -> None:
        self.commit()
        self._branches.append(self._read)
        self._read = self._automaton.empty()

    def close(self) -> Fragment:
        self.branch()
        whole, *others = self._branches
        for other in others:
            whole = self._automaton.alternate(whole, other)
        return whole


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern is refused; None when it is not."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"is longer than {MAX_PATTERN_LENGTH} characters"
    if re.search(_FLAG.format("x"), pattern):
        return "is laid out with the flag x, which other engines do not read"
    if ambiguous := _repeats_ambiguously(pattern):
        return f"repeats {ambiguous}, so that one text can be matched in countless ways"
    if linear_engine(pattern) is None:
        return "is no regular expression of the engine that matches it: no references back, nothing that looks around"
    return None


def pattern_matches(pattern: str, text: str) -> bool:
    """Whether a pattern that has no problem is found in a text."""
    engine = linear_engine(pattern)
    return engine is not None and engine.is_valid(text)


@lru_cache(maxsize=512)
def _repeats_ambiguously(pattern: str) -> str | None:
    """What the pattern repeats ambiguously, in words; None when nothing."""
    if ")*" not in pattern and ")+" not in pattern and "){" not in pattern:
        return None
    automaton, lines = Automaton(Characters(pattern)), re.search(_FLAG.format("m"), pattern)
    groups = [_Group(automaton)]
    for token in re.finditer(_PIECES, pattern, re.DOTALL):
        here = groups[-1]
        if token["times"]:
            here.repeat(*_repeat_bounds(token))
        elif token["open"]:
            here.commit()
            groups.append(_Group(automaton))
        elif token["bar"]:
            here.branch()
        elif token["atom"] or token["edge"]:
            here.commit()
            ends = token["edge"] == "$" and not lines
            here.add(automaton.atom(token["atom"]) if token["atom"] else automaton.end() if ends else automaton.empty())
        elif token["close"] and len(groups) > 1:
            groups.pop()
            groups[-1].add(here.close())
        if automaton.ambiguity:
            break
    return automaton.ambiguity


def _repeat_bounds(token: re.Match[str]) -> tuple[int, int | None]:
    """The least and the most repetitions of a quantifier; None for no limit."""
    if token["times"] in {"*", "+", "?"}:
        return int(token["times"] == "+"), 1 if token["times"] == "?" else None
    least = int(token["least"])
    if token["most"]:
        return least, int(token["most"])
    return least, None if token["comma"] else least


LazyPattern = Callable[[], re.Pattern[str]]


def lazy_regex(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> LazyPattern:
    """A function that compiles the pattern on its first call and returns it."""
    return cache(lambda: re.compile(pattern, flags))
