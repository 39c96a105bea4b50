"""Whether what a regular expression repeats can match one text in two ways. Pure.

A pattern is read as an automaton whose states are its characters. What is repeated is ambiguous when two ways part from
one state, match the same characters, and meet again. Then the number of ways doubles with every time that this happens.
"""

from collections import defaultdict
from itertools import combinations, product

from contextplane.model.value import Value
from contextplane.policy.pattern_characters import Characters

__all__ = ["Automaton", "Part"]

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

    def after(self, one: Part, other: Part) -> Part:
        """One part and then another."""
        self._steps += product(one.last, other.first)
        return Part(
            *(one.states, one.steps),
            one.first + other.first * one.empty,
            other.last + one.last * other.empty,
            min(2, one.empty * other.empty),
            max(one.varies, other.varies),
        )

    def either(self, one: Part, other: Part) -> Part:
        """One part or another."""
        ways = min(2, one.empty + other.empty)
        varies = max(one.varies, other.varies)
        return Part(one.states, one.steps, one.first + other.first, one.last + other.last, ways, varies)

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
