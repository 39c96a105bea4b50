"""The values worth trying for the variables of an expression: one for each way in which it can tell them apart."""

import itertools
from collections.abc import Iterator, Sequence

from contextplane.model.canonical import Json
from contextplane.policy.logic import variables
from contextplane.policy.operators import COMPARING, operation

__all__ = ["HUGE", "PERHAPS_A_TIME", "Uses", "path_of"]

HUGE = 2.0**50
"""From here on, the number next to another is not told apart from it."""

_STRICT = frozenset({"===", "!=="})
_EQUAL = frozenset({"==", "===", "!=", "!=="})
_FALSE_ENOUGH: tuple[Json, ...] = (0, "")
"""Where only the truth of a value counts, these are where it turns."""

_OTHER_TEXT = "\u0001other"
_NEXT = "\0"
"""Added to a text it gives the one that follows: nothing lies between the two."""

_EVERY_KIND: tuple[Json, ...] = (None, "", _NEXT, _OTHER_TEXT, True, False, "true", "false", [], [0])
"""One value of each kind that the engine treats in its own way; every list and every object is as one of the lists."""

_DECIDING = frozenset({"and", "or", "!", "!!", "if", "?:"})

PERHAPS_A_TIME = frozenset("0123456789+-.P ")
"""How a text begins that the engine may take for a number, a date or a duration: compared as such, not as text."""

_AFTER_NUMBERS = ":"
"""What begins with this or more stands, as text, after every text that spells a number."""


class Uses:
    """Which variables there are, and which constants each of them meets."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.complete = True
        self.tests: dict[str, list[Json]] = {}
        """For each variable the parts that read it and nothing else; when complete, all else follows from them."""
        self._constants: dict[str, list[Json]] = {}
        self._exact: set[str] = set()
        """The variables whose kind of value can decide, not only what it is equal to."""

    def see(self, expression: Json) -> None:
        """Note one part in a place where only its truth counts."""
        operator, operands = operation(expression)
        if not operator:
            if isinstance(expression, dict | list):
                self._give_up([expression])
        elif operator == "var":
            self._meet(expression, expression, _FALSE_ENOUGH, exact=True)
        elif operator in _DECIDING:
            for one in operands:
                self.see(one)
        elif operator in COMPARING:
            self._compare(expression, operands, exact=operator in _STRICT, ordered=operator not in _EQUAL)
        elif operator == "in" and len(operands) == 2:  # noqa: PLR2004
            self._within(expression, operands[0], operands[1])
        elif operator == "missing" and len(operands) == 1 and isinstance(operands[0], str) and operands[0]:
            self._meet(expression, {"var": operands[0]}, (), exact=True)
        else:
            self._give_up([expression])

    def every_kind(self, path: str) -> list[Json]:
        """One value for each way in which this variable can turn out, and more: of every kind, whatever it meets."""
        met = self._constants[path]
        numbers = sorted({0.0, 1.0} | {number for one in met if (number := _as_number(one)) is not None})
        texts = sorted({one for one in met if isinstance(one, str) and one})
        values: list[Json] = [*_around(numbers)]
        values += [text for one in texts for text in (one, one + _NEXT)]
        return [*values, *_EVERY_KIND, *(_spelled(number, texts) for number in _around(numbers))]

    def candidates(self, path: str) -> list[Json]:
        """The values that are most likely to tell something, where not everything can be tried."""
        met, exact = self._constants[path], path in self._exact
        numbers = sorted({number for one in met if (number := _as_number(one)) is not None})
        texts = sorted({one for one in met if isinstance(one, str) and one})
        values: list[Json] = [*_around(numbers), None, ""]
        values += [text for one in texts for text in (one, one + _NEXT)]
        if texts or exact or not numbers:
            values.append(_OTHER_TEXT)
        if exact or not numbers or any(isinstance(one, bool) for one in met):
            values += [True, False]
        if exact:
            values += [_spelled(number, texts) for number in _around(numbers)]
            values.append([])
        return values

    def complete_with(self, paths: Sequence[str]) -> bool:
        """Whether what is tried is all there is. Of a path within another, not every state of both is tried."""
        nested = any(longer.startswith(f"{path}.") for path, longer in itertools.permutations(paths, 2))
        return self.complete and not nested

    def _compare(self, whole: Json, operands: list[Json], *, exact: bool, ordered: bool) -> None:
        constants = [one for one in operands if not isinstance(one, dict | list)]
        texts = [one for one in constants if isinstance(one, str) and one]
        if not exact and any(one[0] in PERHAPS_A_TIME or (ordered and one < _AFTER_NUMBERS) for one in texts):
            self.complete = False
        for one in operands:
            if path_of(one) is not None:
                self._meet(whole, one, constants, exact=exact)
            elif isinstance(one, dict | list):
                # What it is compared with is worth trying all the same.
                self._give_up([one, *constants])
        if sum(isinstance(one, dict) for one in operands) > 1:
            self.complete = False  # two variables against each other: what lies between them is not tried

    def _within(self, whole: Json, needle: Json, hay: Json) -> None:
        if (
            path_of(needle) is not None
            and isinstance(hay, list)
            and not any(isinstance(one, dict | list) for one in hay)
        ):
            self._meet(whole, needle, hay, exact=True)
        else:
            self._give_up([needle, hay])

    def _meet(self, whole: Json, variable: Json, constants: Sequence[Json], *, exact: bool) -> None:
        path = path_of(variable)
        if path is None:
            self._give_up([variable])
            return
        if any(isinstance(one, int | float) and abs(one) >= HUGE for one in constants):
            self.complete = False
        self.paths.add(path)
        self.tests.setdefault(path, []).append(whole)
        self._constants.setdefault(path, []).extend(constants)
        if exact:
            self._exact.add(path)

    def _give_up(self, operands: Sequence[Json]) -> None:
        """Somewhere below are variables whose values are used in a way that is not followed."""
        self.complete = False
        todo = list(operands)
        constants: list[Json] = []
        while todo:
            one = todo.pop()
            if isinstance(one, dict):
                todo += one.values()
            elif isinstance(one, list):
                todo += one
            else:
                constants.append(one)
        for path in sorted(path for part in operands for path in variables(part) if path):
            self._meet(operands[0], {"var": path}, constants, exact=True)


def path_of(value: Json) -> str | None:
    """The path of `{"var": "a.b"}`, None for anything else: a default or a computed path is not followed."""
    if not isinstance(value, dict) or len(value) != 1 or "var" not in value:
        return None
    given = value["var"]
    given = given[0] if isinstance(given, list) and len(given) == 1 else given
    return given if isinstance(given, str) and given else None


def _as_number(value: Json) -> float | None:
    """The number that the engine may take a constant for; None for a text that is none."""
    if isinstance(value, str):
        try:
            number = float(value or 0)
        except ValueError:
            return None
        return number if abs(number) < HUGE else None
    return float(value or 0) if isinstance(value, bool | int | float | None) else None


def _spelled(number: float, taken: Sequence[str]) -> str:
    """A number as text, in a way that is none of the constants."""
    text = f"{number:.1f}" if number.is_integer() else repr(number)
    while text in taken:
        text += "0"
    return text


def _around(numbers: Sequence[float]) -> Iterator[float]:
    """Each number, one between each two, and one beyond either end."""
    if not numbers:
        return
    yield numbers[0] - 1
    for low, high in itertools.pairwise(numbers):
        yield low
        yield (low + high) / 2
    yield numbers[-1]
    yield numbers[-1] + 1
