"""Reading a document that people write: what is wrong is noted with its place, and all of it is told together.

Why a document of others is not of its form: every field that is not of its type, by its JSON Pointer.

It is asked only about what was refused, so that people read our words and not those of a library. It decides nothing.
"""

from collections.abc import Iterable, Iterator
from types import NoneType, UnionType
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from msgspec.structs import fields

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.pointer import pointer, shown
from contextplane.model.value import Value

__all__ = ["DocumentInvalid", "NotingReader", "Problem", "elsewhere", "form_problems", "told_with", "type_name"]

T = TypeVar("T")

_NAMES = {str: "text", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}
_TOLD = 9


class Problem(Value, frozen=True):
    """One thing that is wrong with a document: its JSON Pointer, and what."""

    at: str
    message: str


class DocumentInvalid(ContextPlaneError):
    """A document that is not of its form. `details.problems` lists everything that is wrong with it."""

    code: ClassVar[str] = "document_invalid"
    family: ClassVar[Family] = "refused"
    way_out: ClassVar[str] = "mend what is named"
    whole_list: ClassVar[str] = "--json lists them all"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first, *more = problems
        also = "".join(f"; {shown(problem.at)}: {problem.message}" for problem in more[:_TOLD])
        cut = f"; and {len(more) - _TOLD} more" if len(more) > _TOLD else ""
        super().__init__(
            f"{first.message}{also}{cut}",
            at=first.at,
            hint=f"{self.way_out}; {self.whole_list}" if cut else self.way_out,
            details={"problems": [{"at": problem.at, "message": problem.message} for problem in problems]},
        )
        self.problems = problems

    @property
    def place(self) -> str | None:
        return self.at and shown(self.at)


def elsewhere(found: Iterable[Problem], named: Iterable[str]) -> Iterator[Problem]:
    """Problems of places that are neither named already nor below one that is: what stands there is not known."""
    known = {at.rstrip("/") for at in named}
    for problem in found:
        parts = problem.at.split("/")
        if known.isdisjoint("/".join(parts[:length]) for length in range(1, len(parts) + 1)):
            yield problem


def told_with(error: JsonRefused, found: Iterable[Problem]) -> JsonRefused:
    """What is wrong with a text as JSON, told with what else is wrong with the document."""
    more = elsewhere(found, [other.at or "" for other in (error, *error.others)])
    others = [*error.others, *(JsonRefused(problem.message, at=problem.at) for problem in more)]
    return error.together(others) if others else error


class NotingReader:
    """Reads values, and notes what is wrong instead of stopping. What it returns counts only when nothing was noted."""

    DOCUMENT: ClassVar[str] = "document"

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._mistyped: set[str] = set()

    def _list(self, top: dict[str, Json], key: str) -> list[tuple[Json, str]]:
        return [(one, f"/{key}/{n}") for n, one in enumerate(self._typed(top, key, "", list) or [])]

    def _object(self, value: Json, at: str, known: tuple[str, ...]) -> dict[str, Json]:
        if not isinstance(value, dict):
            if value is not None or not at:  # of one that is missing, what it must hold is told
                self._mistype(at, "an object", value)
            return {}
        for key in sorted([key for key in value if key not in known]):
            self._note(at + pointer([key]), f"is not a field of a {self.DOCUMENT} (known here: {', '.join(known)})")
        return value

    def _typed(self, entry: dict[str, Json], key: str, at: str, kind: type[T]) -> T | None:
        value = entry.get(key)
        if value is None or type(value) is kind:
            return value
        self._mistype(f"{at}/{key}", _NAMES[kind], value)
        return None

    def _mistype(self, at: str, wanted: str, value: object) -> None:
        self._note(at, f"must be {wanted}, not {type_name(value)}")
        self._mistyped.add(at)

    def _note(self, at: str, message: str) -> None:
        """Note a problem. What has the wrong type is not missing as well, and neither are its parts."""
        if self._mistyped.isdisjoint((at, at.rpartition("/")[0], "")):
            self.problems.append(Problem(at=at or "/", message=message))


def type_name(value: object) -> str:
    """What a value is, in the words of the messages."""
    if value is None:
        return "null"
    return "a number" if isinstance(value, float) else _NAMES.get(type(value), "text")


_WANTED: dict[object, str] = {str: "text", int: "an integer", bool: "true or false"}


def form_problems(value: object, form: Any, at: str = "") -> Iterator[Problem]:  # noqa: ANN401  what an annotation is
    """What is wrong with `value` as a `form`, in the order of the form's fields. Not empty if it was refused."""
    if isinstance(form, UnionType):
        (form,) = (one for one in get_args(form) if one is not NoneType)
        if value is None:
            return
    if isinstance(form, type) and issubclass(form, Value):
        yield from _object(value, form, at)
    elif get_origin(form) is tuple:
        yield from _list(value, get_args(form)[0], at)
    elif get_origin(form) is dict:
        yield from _map(value, get_args(form)[1], at)
    elif form in _WANTED and type(value) is not form:
        yield _mistyped(at, _WANTED[form], value)


def _object(value: object, form: type[Value], at: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _mistyped(at, "an object", value)
        return
    for field in fields(form):
        if field.name in value:
            yield from form_problems(value[field.name], field.type, f"{at}/{field.name}")
        elif field.required:
            yield Problem(at=f"{at}/{field.name}", message="is missing")


def _list(value: object, form: Any, at: str) -> Iterator[Problem]:  # noqa: ANN401
    if not isinstance(value, list):
        yield _mistyped(at, "a list", value)
        return
    for n, one in enumerate(value):
        yield from form_problems(one, form, f"{at}/{n}")


def _map(value: object, form: Any, at: str) -> Iterator[Problem]:  # noqa: ANN401
    if not isinstance(value, dict):
        yield _mistyped(at, "an object", value)
        return
    for key, one in value.items():
        yield from form_problems(one, form, at + pointer([key]))


def _mistyped(at: str, wanted: str, value: object) -> Problem:
    return Problem(at=at or "/", message=f"must be {wanted}, not {type_name(value)}")
