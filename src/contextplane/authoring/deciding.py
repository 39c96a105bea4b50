"""What laws about decisions and plans look at, in a pack and in a catalog alike."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

from contextplane.authoring.surroundings import Surroundings
from contextplane.authoring.texts import Identify, Texts
from contextplane.model.canonical import Json
from contextplane.model.context_pack.decision_layer import DecisionSpec
from contextplane.model.context_pack.pack_meta import Tenant
from contextplane.model.context_pack.task_layer import TaskTemplate

__all__ = ["Deciding", "Listed", "by_id", "place_in", "with_places"]

T = TypeVar("T")
Placed = tuple[tuple[str, T], ...]
"""Parts, each with its JSON Pointer before it."""

Listed = tuple[Sequence[Any], str | Sequence[str], str]
"""Parts, the list that they stand in or the place of each, and the field that holds the id.

Without a field, a part is its own id, or has it in `id`; then the place of the part is told.
"""

_NOWHERE = Surroundings()
"""An environment of which nothing is known."""


class Deciding(Texts, ABC):
    """A document with typed decisions, and with plans that lead to them. `value` is it as it was written."""

    ASKS: ClassVar[tuple[str, ...]] = Surroundings.__struct_fields__
    """What must be known of the environment before all laws about it can be told."""

    def __init__(
        self, value: Json, surroundings: Surroundings | None = None, *, identify: Identify | None = None
    ) -> None:
        super().__init__(value, identify=identify)
        self.surroundings = surroundings or _NOWHERE
        self._made: dict[object, Any] = {}

    def once(self, make: Callable[[Self], T]) -> T:
        """What a function makes of this subject; however many laws ask for it, it is made once."""
        found: T | None = self._made.get(make)
        if found is None:
            found = self._made[make] = make(self)
        return found

    @property
    @abstractmethod
    def tenant(self) -> tuple[str, Tenant]:
        """Whose document it is, with the place that says so."""

    @property
    @abstractmethod
    def decisions(self) -> Mapping[str, tuple[str, DecisionSpec]]:
        """Decisions by key, each with its place; of two with one key, the first."""

    @property
    @abstractmethod
    def templates(self) -> Placed[TaskTemplate]: ...

    @property
    @abstractmethod
    def permitted(self) -> frozenset[str] | None:
        """The tools that a plan may call. None: each pack that the plan comes to says so for itself."""

    @property
    @abstractmethod
    def roles(self) -> Placed[str]:
        """Every role that somebody must hold."""

    @property
    @abstractmethod
    def ids(self) -> Mapping[str, Listed]:
        """The parts of each kind that have an id."""


def with_places(at: str, parts: Iterable[T]) -> Iterator[tuple[str, T]]:
    """The parts of a list, each with its place."""
    return ((f"{at}/{n}", one) for n, one in enumerate(parts))


def place_in(found: Listed, n: int) -> str:
    """Where the id of the n-th of some parts stands."""
    _, at, field = found
    place = f"{at}/{n}" if isinstance(at, str) else at[n]
    return f"{place}/{field}" if field else place


def by_id(at: str, parts: Iterable[T], identity: Callable[[T], str]) -> dict[str, tuple[str, T]]:
    """The parts of a list by their ids, each with its place; of two with one id, the first."""
    found: dict[str, tuple[str, T]] = {}
    for n, one in enumerate(parts):
        found.setdefault(identity(one), (f"{at}/{n}", one))
    return found
