"""Comparing conditions by what they do: whether a restriction now holds in more cases, in fewer, or in others."""

from collections.abc import Iterator, Mapping

from contextplane.authoring.comparing import Comparer, Sides, Told
from contextplane.authoring.keyed import Tree, part_at, plain
from contextplane.model.canonical import Json
from contextplane.policy.solving import Outcome, follows, solve_outcomes

__all__ = ["condition_of_rule", "restriction_when", "restricts", "right_when"]

_RESTRICTIONS = ("requires", "prohibits", "approval_mode", "requires_approval_gate", "arg_constraints")


def restricts(effect: Tree) -> bool:
    """Whether a `then` or an `else` takes something away."""
    if not isinstance(effect, Mapping):
        return False
    return effect.get("allow") is False or any(effect.get(name) for name in _RESTRICTIONS)


def condition_of_rule(sides: Sides) -> Iterator[Told]:
    """The `if` of a rule: more cases for a branch that restricts is stricter, fewer is looser.

    What the branches did before counts: what became of them is a difference of its own.
    """
    rule = part_at(sides.before, sides.way[:-1])
    then, otherwise = (restricts(part_at(rule, (name,))) for name in ("then", "else"))
    more, fewer = _cases(sides.old, sides.new)
    name = sides.way[-2]
    if more and fewer:
        yield Told(effect="metadata", words=f"the condition of {name} is written in another way")
    elif then != otherwise and (more or fewer):
        stricter = more if then else fewer
        words = f"{name} restricts {'more' if stricter else 'fewer'} cases"
        yield Told(effect="narrows" if stricter else "widens", words=words)
    else:
        yield Told(effect="changes", words=f"the condition of {name} covers other cases")


def restriction_when(what: str, *, absent: bool) -> Comparer:
    """A condition under which something restricts; `absent`: what holds where there is none."""
    return _when(what, absent=absent, more_is_stricter=True)


def right_when(what: str, *, absent: bool) -> Comparer:
    """A condition under which something is permitted."""
    return _when(what, absent=absent, more_is_stricter=False)


def _when(what: str, *, absent: bool, more_is_stricter: bool) -> Comparer:
    def compare(sides: Sides) -> Iterator[Told]:
        old, new = (absent if side is None else side for side in (sides.old, sides.new))
        more, fewer = _cases(old, new)
        name = f"{what} {sides.way[-2]}"
        if more and fewer:
            yield Told(effect="metadata", words=f"the condition of {name} is written in another way")
        elif more or fewer:
            yield Told(
                effect="narrows" if more is more_is_stricter else "widens",
                words=f"{name} holds in {'more' if more else 'fewer'} cases",
            )
        else:
            yield Told(effect="changes", words=f"the condition of {name} covers other cases")

    return compare


def _cases(old: Tree, new: Tree) -> tuple[bool, bool]:
    """Whether the new condition holds wherever the old one did, and the other way round. Not both: not proved."""
    before, after = plain(old), plain(new)
    return _implies(before, after), _implies(after, before)


def _implies(one: Json, other: Json) -> bool:
    """A proof that the other holds wherever the one does, and is not plainly false where the one fails."""
    errs, does_not_hold = frozenset[Outcome]({None}), frozenset[Outcome]({False})
    if not follows((one, True), (other, True)):
        return False
    return solve_outcomes([(one, errs), (other, does_not_hold)]).answer == "no"
