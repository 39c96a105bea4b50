"""Regular expressions that a pack may hold: those whose matching takes time in proportion to the text. Pure.

They are matched by an engine that never goes back. Other programs that read the same pack match them with engines that
do, so what would take those for ever is refused as well.
"""

import re
from functools import lru_cache
from itertools import combinations
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


_WITHOUT_WIDTH = frozenset({"^", "$", r"\b", r"\B", r"\A", r"\z"})
_TRIED = "".join(map(chr, (9, 10, *range(32, 127)))) + "\xa0\xe9\u03a9\u0436\u0663\u4e2d\u2028\U0001f600"
"""Characters of every kind that classes tell apart."""


class _Group:
    """What stands between two parentheses: its characters in order, and whether their number is left open."""

    def __init__(self, flags: str) -> None:
        self._flags = flags
        self.atoms: list[str] = []
        self.sure: list[bool] = []
        """For each of them, whether it stands there exactly once in any case."""
        self.there: list[bool] = []
        """For each of them, whether it stands there at least once in any case."""
        self.open_ended = False
        self.starts = [0]
        """Where each of its branches begins."""
        self.overlaps = False
        """Whether a group within it has branches that one text can be matched by in two ways."""

    @property
    def branches(self) -> bool:
        return len(self.starts) > 1

    def take(self, inner: "_Group") -> None:
        """What a group within it holds, it holds too."""
        self.atoms += inner.atoms
        self.sure += [one and not inner.branches for one in inner.sure]
        self.there += [one and not inner.branches for one in inner.there]
        self.open_ended |= inner.open_ended
        self.overlaps |= inner.has_overlaps

    def repeat(self, atoms: int, *, varies: bool, perhaps: bool) -> None:
        """So many of its last atoms are repeated, or left out."""
        if atoms:
            self.sure[-atoms:] = [False] * atoms
            self.there[-atoms:] = [one and not perhaps for one in self.there[-atoms:]]
        self.open_ended |= varies

    @property
    def ambiguity(self) -> str | None:
        """What makes it ambiguous where one turn of it follows another; None where nothing does."""
        if self.open_ended and (self._flags or not self.has_marked_turns):
            return "something that is itself repeated"
        return "a choice between branches that begin alike" if self.has_overlaps else None

    @property
    def has_overlaps(self) -> bool:
        """Whether two of its branches, or of those of a group within it, are not told apart by how they begin."""
        ends = [*self.starts[1:], len(self.atoms)]
        pairs = combinations([range(*one) for one in zip(self.starts, ends, strict=True)], 2)
        return self.overlaps or not all(self._are_told_apart(one, other) for one, other in pairs)

    def _are_told_apart(self, one: range, other: range) -> bool:
        for here, there in zip(one, other, strict=False):
            atoms = self.atoms[here], self.atoms[there]
            if not (self.there[here] and self.there[there]) or not _WITHOUT_WIDTH.isdisjoint(atoms):
                return False
            if _matched(atoms[0], self._flags).isdisjoint(_matched(atoms[1], self._flags)):
                return True
            if not (self.sure[here] and self.sure[there]):
                return False
        return False

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
    perhaps: bool


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern is refused; None when it is not."""
    if len(pattern) > LONGEST:
        return f"is longer than {LONGEST} characters"
    if ambiguous := _repeats_ambiguously(pattern):
        return f"repeats {ambiguous}, so that one text can be matched in countless ways"
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


def _repeats_ambiguously(pattern: str) -> str | None:
    """What is repeated, if nothing tells where one turn ends and its length is open, or by which branch it is one."""
    if ")*" not in pattern and ")+" not in pattern and "){" not in pattern:
        return None
    flags = "is" if re.search(_FLAGS, pattern) else ""
    groups = [_Group(flags)]
    closed: _Group | None = None
    for token in re.finditer(_PIECES, pattern, re.DOTALL):
        here = groups[-1]
        if token["times"] or token["perhaps"]:
            count = _counted(token)
            if closed is not None and count.often and (ambiguous := closed.ambiguity):
                return ambiguous
            here.repeat(1 if closed is None else len(closed.atoms), varies=count.varies, perhaps=count.perhaps)
        elif token["open"]:
            groups.append(_Group(flags))
        elif token["bar"]:
            here.starts.append(len(here.atoms))
        elif token["atom"]:
            here.atoms.append(token["atom"])
            here.sure.append(True)
            here.there.append(True)
        closed = None
        if token["close"] and len(groups) > 1:
            closed = groups.pop()
            groups[-1].take(closed)
    return None


def _counted(token: re.Match[str]) -> _Counted:
    if token["perhaps"]:
        return _Counted(varies=False, often=False, perhaps=True)
    if token["least"] is None:
        return _Counted(varies=True, often=True, perhaps=token["times"] == "*")
    endless, perhaps = bool(token["comma"]), not int(token["least"])
    if token["most"] is None:
        return _Counted(varies=endless, often=endless or int(token["least"]) > _MANY, perhaps=perhaps)
    return _Counted(varies=token["least"] != token["most"], often=int(token["most"]) > _MANY, perhaps=perhaps)


@lru_cache(maxsize=512)
def _matched(atom: str, flags: str) -> frozenset[str]:
    """The characters that it matches, of those that are tried."""
    engine = _linear(f"^(?{flags}:{atom})$")
    return frozenset(one for one in _TRIED if engine is None or engine.is_valid(one))


def _may_match(atom: str, character: str) -> bool:
    engine = _linear(f"^(?:{atom})$")
    return engine is None or engine.is_valid(character)
