"""What a check finds."""

from collections.abc import Callable, Iterator
from typing import Literal

from contextplane.model.value import Value
from contextplane.ports.catalog import View

__all__ = ["DAMAGE", "Comparison", "Finding", "State"]

State = Literal["missing", "corrupt", "index", "orphaned", "foreign", "unreadable", "absent"]

DAMAGE: frozenset[State] = frozenset({"missing", "corrupt", "index", "unreadable"})
"""What makes a store unsound, or leaves that open. Orphaned objects take room, foreign things take none of ours, and
what was never here is nothing that was lost."""


class Finding(Value, frozen=True):
    """One thing that is not as it should be.

    `missing`: something refers to it and it is not there. `corrupt`: it is there and is not what it says.
    `unreadable`: it is there, and nobody could look what it is. `orphaned`: it is whole and nothing refers to it.
    `foreign`: it is not ours. `index`: the index says otherwise than the objects. `absent`: a run is a fork of it, and
    it was never here. `ref`: the run, or the part of one, that it is of, as it can be typed: `ctx://<64 hex>:steps/3`.
    """

    state: State
    what: str
    why: str
    needed_by: tuple[str, ...] = ()
    ref: str | None = None


Comparison = Callable[[View], Iterator[Finding]]
"""What another room compares of its own part of the index."""
