"""Completes a command line: the words after `ctx`, of which the last may be unfinished.

The script of a shell asks with `ctx __complete WORD...` and prints what it is told: a candidate on each line, with its
meaning after a tab; `:files` and `:folders` mean that the shell completes paths itself. A defect here is silent: a
shell shows nothing rather than an error between the words that a person types.
"""

from argparse import Action
from collections.abc import Iterator

from contextplane.cli.parser import Verb, parser_of

__all__ = ["complete"]

_FILES, _FOLDERS = ":files", ":folders"
_PACKS = (_FILES, "versions")
_RUNS = ("runs", "handoffs", "versions")
_KINDS: dict[str, tuple[str, ...]] = {
    "FILE": (_FILES,),
    "LOG": (_FILES,),
    "SOURCE": (_FILES,),
    "PATH": (_FILES,),
    "DIR": (_FOLDERS,),
    "FOLDER": (_FOLDERS,),
    "PACK": _PACKS,
    "CATALOG": _PACKS,
    "OLD": _PACKS,
    "TARGET": _PACKS,
    "ENV": ("environments",),
    "VERSION": ("versions",),
    "KEY": ("keys",),
    "NAME|FILE": ("keys", _FILES),
    "REF": _RUNS,
    "REF|FILE": (*_RUNS, _FILES),
    "A": (*_RUNS, _FILES),
    "B": (*_RUNS, _FILES),
    "DRAFT|RECORDING": ("drafts", "recordings", _FILES),
    "CODE": ("codes",),
}
"""What the value of an argument may be, by its name in the help."""

_KINDS_OF_VERB: dict[tuple[str, str], tuple[str, ...]] = {
    ("init", "folder"): (_FOLDERS,),
    ("schema", "name"): ("schemas",),
    ("lint", "explain"): ("codes",),
    ("packs", "id"): ("ids",),
    ("promote", "pack"): ("ids",),
    ("rollback", "pack"): ("ids",),
    ("unpin", "pack"): ("ids",),
    ("unpin", "overlay"): ("ids",),
    ("handoff", "ref"): ("handoffs", _FILES),
    ("handoff", "update"): ("handoffs",),
    ("golden", "pack"): _PACKS,
    ("compile", "pack"): (*_PACKS, "ids"),
    ("why", "pack"): (*_PACKS, "ids"),
}
"""The same for an argument of one verb."""


def complete(words: list[str], verbs: tuple[Verb, ...]) -> Iterator[str]:
    """Yield the candidates for the last word, each with its meaning after a tab where there is one."""
    *before, current = words or [""]
    while before and before[0] in {"--json", "--quiet", "--no-color", "help"}:
        before.pop(0)
    if not before:
        yield from (f"{verb.name}\t{verb.summary}" for verb in verbs if verb.name.startswith(current))
        return
    verb = next((verb for verb in verbs if verb.name == before[0]), None)
    if verb is not None:
        yield from _Line(verb, before[1:]).candidates(current)


class _Line:
    """The words of a verb before the unfinished one: an option that waits, or the next argument."""

    def __init__(self, verb: Verb, words: list[str]) -> None:
        self._verb = verb.name
        actions = parser_of(verb)._actions  # noqa: SLF001  argparse has no other way to ask
        self._options = {text: action for action in actions for text in action.option_strings}
        self._arguments = [action for action in actions if not action.option_strings]
        self._used: set[str] = set()
        self._waiting: Action | None = None
        self._is_plain = False
        self._more = 0
        for word in words:
            self._read(word)

    def _read(self, word: str) -> None:
        if self._waiting is not None:
            self._waiting = self._waiting if self._more > 0 else None
            self._more -= 1
        elif self._is_plain or not word.startswith("-") or word == "-":
            if self._arguments and self._arguments[0].nargs not in ("*", "+"):
                del self._arguments[0]
        elif word == "--":
            self._is_plain = True
        else:
            action = self._options.get(word.partition("=")[0])
            self._used.add(action.dest if action else "")
            self._waiting = action if action is not None and action.nargs != 0 and "=" not in word else None
            self._more = action.nargs - 1 if action is not None and isinstance(action.nargs, int) else 0

    def candidates(self, current: str) -> Iterator[str]:
        """Yield what the unfinished word may become."""
        name, equals, value = current.partition("=")
        if self._waiting is not None:
            yield from self._values(self._waiting, current)
        elif not self._is_plain and equals and name in self._options:
            yield from (
                candidate if candidate.startswith(":") else f"{name}={candidate}"
                for candidate in self._values(self._options[name], value)
            )
        elif not self._is_plain and current.startswith("-"):
            for text, action in self._options.items():
                repeatable = type(action).__name__ == "_AppendAction"
                if text.startswith(current) and (repeatable or action.dest not in self._used):
                    yield f"{text}\t{action.help}"
        elif self._arguments:
            yield from self._values(self._arguments[0], current)

    def _values(self, action: Action, current: str) -> Iterator[str]:
        if action.choices:
            yield from (str(choice) for choice in action.choices if str(choice).startswith(current))
            return
        metavar = action.metavar
        if isinstance(metavar, tuple):
            metavar = metavar[len(metavar) - 1 - max(self._more, 0)]
        if (self._verb, metavar) == ("new", "KIND"):
            yield from (kind for kind in ("openapi", "mcp") if kind.startswith(current))
        for kind in _KINDS_OF_VERB.get((self._verb, action.dest), _KINDS.get(metavar or "", ())):
            if kind in {_FILES, _FOLDERS}:
                yield kind
            else:
                yield from self._names(kind, current)

    def _names(self, kind: str, current: str) -> list[str]:
        from contextplane.app.names import names_of
        from contextplane.app.settings import from_environment

        return names_of(kind, current, from_environment())
