"""Numbers that a country gives to a person, told by their check digits and by the words beside them.

A row of nine or ten digits is most often something else, and by chance one in eleven keeps the check digit: such a row
counts only beside its name. What is written in a way of its own counts anywhere.
"""

import re
from collections.abc import Callable, Iterator

from contextplane.model.value import Value
from contextplane.policy.expressions import Expression, expression

__all__ = ["SHAPES", "national_numbers"]

_ALONE = r"(?<![0-9A-Za-z])(?<![0-9][ .-])(?:{})(?![0-9A-Za-z])"
_NEAR, _SEEN = 24, 80
"""So far from a number its name stands at most, with no other number between; so much is looked at for it."""

_ELEVEN, _TEN = 11, 10

# No first letter D, F, I, Q, U or V, no second O; some pairs are given to nobody.
_PREFIX = r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]"


class _Number(Value, frozen=True):
    """A kind of number: how it stands anywhere, how it stands beside its name, and whether it is one."""

    kind: str
    anywhere: Expression | None
    beside: Expression
    name: Expression
    is_one: Callable[[str], bool]


def _is_cpf(digits: str) -> bool:
    """Brazil: two check digits, each over all that stand before it."""
    return len(set(digits)) > 1 and all(
        int(digits[end]) == -sum(int(one) * (end + 1 - n) for n, one in enumerate(digits[:end])) % _ELEVEN % _TEN
        for end in (9, 10)
    )


def _is_nhs(digits: str) -> bool:
    """England and its neighbours: the ten digits, each times its place from behind, come to a multiple of eleven."""
    return len(set(digits)) > 1 and not sum(int(one) * (_TEN - n) for n, one in enumerate(digits)) % _ELEVEN


def _is_bsn(digits: str) -> bool:
    """The Netherlands: the same of nine, and the last one is taken off."""
    weighed = sum(int(one) * (9 - n) for n, one in enumerate(digits[:-1])) - int(digits[-1])
    return len(set(digits)) > 1 and not weighed % _ELEVEN


_NUMBERS = (
    _Number(
        kind="CPF of a taxpayer",
        anywhere=expression(_ALONE.format(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}")),
        beside=expression(_ALONE.format(r"[0-9]{3}[ .]?[0-9]{3}[ .]?[0-9]{3}[ .-]?[0-9]{2}")),
        name=expression(r"\bcpf\b|\bcadastro de pessoas? f[i\u00ed]sicas?\b", re.IGNORECASE),
        is_one=_is_cpf,
    ),
    _Number(
        kind="National Insurance number",
        anywhere=expression(_ALONE.format(_PREFIX + r"(?:(?: [0-9]{2}){3} |(?:-[0-9]{2}){3}-)[A-D]")),
        beside=expression(_ALONE.format(_PREFIX + r"[ -]?(?:[0-9]{2}[ -]?){3}[A-D]"), re.IGNORECASE),
        name=expression(r"\bnino\b|\bnational insurance\b|\bNI (?:number|no\b)", re.IGNORECASE),
        is_one=lambda _: True,
    ),
    _Number(
        kind="NHS number",
        anywhere=None,
        beside=expression(_ALONE.format(r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}")),
        name=expression(r"\bnhs\b", re.IGNORECASE),
        is_one=_is_nhs,
    ),
    _Number(
        kind="citizen service number",
        anywhere=None,
        beside=expression(_ALONE.format(r"[0-9]{3}[ .]?[0-9]{3}[ .]?[0-9]{3}|[0-9]{4}[ .][0-9]{2}[ .][0-9]{3}")),
        name=expression(r"\bbsn\b|\bburgerservicenummer\b|\bsofi-?nummer\b|\bcitizen service number\b", re.IGNORECASE),
        is_one=_is_bsn,
    ),
)
SHAPES = tuple(number.beside for number in _NUMBERS)
"""Where one of them may stand."""


def national_numbers(text: str, *, name: str = "") -> Iterator[str]:
    """The kinds of numbers of persons that a text holds. `name` is that of the field which the text is the value of."""
    said = name.replace("_", " ").replace("-", " ")
    for number in _NUMBERS:
        if any(map(number.is_one, _digits(number, text, named=bool(number.name().search(said))))):
            yield number.kind


def _digits(number: _Number, text: str, *, named: bool) -> Iterator[str]:
    """The digits of all that has the form of a number, and stands in its own way, or beside its name."""
    if number.anywhere is not None:
        yield from map(_only_digits, number.anywhere().findall(text))
    if named or number.name().search(text):
        yield from (_only_digits(one[0]) for one in number.beside().finditer(text) if named or _beside(number, one))


def _beside(number: _Number, match: re.Match[str]) -> bool:
    """Whether the name of a number stands before it or after it."""
    before = match.string[max(0, match.start() - _SEEN) : match.start()]
    after = match.string[match.end() : match.end() + _SEEN]
    between = [before[one.end() :] for one in number.name().finditer(before)]
    between += [after[: one.start()] for one in number.name().finditer(after)]
    return any(len(gap) <= _NEAR and not any(map(str.isdigit, gap)) for gap in between)


def _only_digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))
