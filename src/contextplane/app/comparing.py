"""Comparing two context packs that authors have in files."""

from typing import ClassVar

from contextplane.app.linting import author_file, linted
from contextplane.authoring.author_file import AuthorFile
from contextplane.authoring.comparison import Comparison, Side, comparison
from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack.pack import ContextPack

__all__ = ["NotAContextPack", "packs_compared", "side"]

_OF_A_LOG = frozenset({"model", "system_prompt", "prompts", "steps", "outputs"})


class NotAContextPack(ContextPlaneError):
    """A file that has not the form of a context pack, where one is to be compared."""

    code: ClassVar[str] = "not_a_context_pack"
    family: ClassVar[Family] = "refused"


def packs_compared(old: str, new: str) -> Comparison:
    """What changed from the pack in one file to that in another."""
    before, after = author_file(old), author_file(new)
    return comparison(side(before, old), side(after, new), linted(after).report)


def side(file: AuthorFile, path: str) -> Side:
    """The pack in a file. A file that holds anything else is refused, with the first of what is wrong with it."""
    found = typed_or_problems(file.value, ContextPack)
    if isinstance(found, ContextPack):
        return Side(value=file.value, pack=found)
    if isinstance(file.value, dict) and not _OF_A_LOG.isdisjoint(file.value):
        raise NotAContextPack(
            "it looks like the log of a run",
            at=path,
            hint="'ctx pack' makes an execution pack of a log; 'ctx diff' compares two of those by their hashes",
        )
    place = file.place(found[0].at)
    raise NotAContextPack(
        f"not a context pack: {found[0].cause}",
        at=f"{path}:{place.line}:{place.column}",
        hint="'ctx lint' lists everything that is wrong with its form",
    )
