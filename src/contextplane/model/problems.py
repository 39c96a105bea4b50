"""Problems of a document: collected with their places while it is read, and reported together.

`ProblemCollector` is the base of every reader that does so. `form_problems` explains why a decoder of a library refused
a document, in our words: it is called after the refusal, and decides nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, ClassVar, TypeVar, get_args, get_origin

from msgspec.structs import fields

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.pointer import abbreviate_place, pointer
from contextplane.model.value import Value

__all__ = [
    "DocumentInvalid",
    "DocumentReader",
    "Problem",
    "ProblemCollector",
    "form_problems",
    "merge_problems",
    "problems_elsewhere",
    "type_name",
]

T = TypeVar("T")

_NAMES = {str: "text", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}
_MAX_LISTED = 9


class Problem(Value, frozen=True):
    """One thing that is wrong with a document: its place and a message.

    `details`: guidance for machines.
    """

    at: str
    message: str
    details: Mapping[str, object] = {}


class DocumentInvalid(ContextPlaneError):
    """A document that is not of its form. `details.problems` lists everything that is wrong with it."""

    code: ClassVar[str] = "document_invalid"
    family: ClassVar[Family] = "refused"
    way_out: ClassVar[str] = "fix the problems that are named"
    whole_list: ClassVar[str] = "--json lists them all"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        first, *more = problems
        also = "".join(f"; {abbreviate_place(problem.at)}: {problem.message}" for problem in more[:_MAX_LISTED])
        cut = f"; and {len(more) - _MAX_LISTED} more" if len(more) > _MAX_LISTED else ""
        super().__init__(
            f"{first.message}{also}{cut}",
            at=first.at,
            hint=f"{self.way_out}; {self.whole_list}" if cut else self.way_out,
            details={"problems": [{"at": problem.at, "message": problem.message} for problem in problems]},
        )
        self.problems = problems

    @property
    def place(self) -> str | None:
        return self.at and abbreviate_place(self.at)


def problems_elsewhere(problems: Iterable[Problem], places: Iterable[str]) -> Iterator[Problem]:
    """Problems whose place is neither one of the named places nor below one.

    What stands at or below a named place is not known.
    """
    known = {at.rstrip("/") for at in places}
    for problem in problems:
        parts = problem.at.split("/")
        if known.isdisjoint("/".join(parts[:length]) for length in range(1, len(parts) + 1)):
            yield problem


def merge_problems(error: JsonRefused, problems: Iterable[Problem]) -> JsonRefused:
    """A JSON error that also lists the other problems of the document."""
    more = problems_elsewhere(problems, [other.at or "" for other in (error, *error.others)])
    others = [*error.others, *(JsonRefused(problem.message, at=problem.at) for problem in more)]
    return error.together(others) if others else error


class ProblemCollector:
    """Collects problems, each with its place, so that a reader reports all of them at once.

    What a reader built on it returns counts only while `problems` is empty.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def note(self, at: str, message: str, **details: object) -> None:
        """Add a problem. `details`: guidance for machines, beside the message for people."""
        self.problems.append(Problem(at=at, message=message, details=details))


class DocumentReader(ProblemCollector):
    """Reads the fields of a document, whose places are JSON Pointers. `DOCUMENT`: what messages call it."""

    DOCUMENT: ClassVar[str] = "document"

    def __init__(self) -> None:
        super().__init__()
        self._mistyped: set[str] = set()

    def note(self, at: str, message: str, **details: object) -> None:
        """Add a problem. What has the wrong type is not missing as well, and neither are its parts."""
        if self._mistyped.isdisjoint((at, at.rpartition("/")[0], "")):
            super().note(at or "/", message, **details)

    def _list(self, top: dict[str, Json], key: str) -> list[tuple[Json, str]]:
        return [(item, f"/{key}/{n}") for n, item in enumerate(self._typed_field(top, key, "", list) or [])]

    def _object(self, value: Json, at: str, known: tuple[str, ...]) -> dict[str, Json]:
        if not isinstance(value, dict):
            if value is not None or not at:  # of one that is missing, the fields that it must have are reported
                self._note_mistyped(at, "an object", value)
            return {}
        for key in sorted([key for key in value if key not in known]):
            self.note(at + pointer([key]), f"is not a field of a {self.DOCUMENT} (known here: {', '.join(known)})")
        return value

    def _typed_field(self, entry: dict[str, Json], key: str, at: str, kind: type[T]) -> T | None:
        value = entry.get(key)
        if value is None or type(value) is kind:
            return value
        self._note_mistyped(f"{at}/{key}", _NAMES[kind], value)
        return None

    def _note_mistyped(self, at: str, expected: str, value: object) -> None:
        self.note(at, f"must be {expected}, not {type_name(value)}")
        self._mistyped.add(at)


def type_name(value: object) -> str:
    """The type of a value, in the words of messages."""
    if value is None:
        return "null"
    return "a number" if isinstance(value, float) else _NAMES.get(type(value), "text")


# --- Explaining a refusal of a decoder ---

_EXPECTED: dict[object, str] = {str: "text", int: "an integer", bool: "true or false"}


def form_problems(value: object, form: Any, at: str = "") -> Iterator[Problem]:  # noqa: ANN401  what an annotation is
    """Problems of `value` as a `form`, in the order of the form's fields. Not empty if it was refused."""
    if isinstance(form, UnionType):
        (form,) = (member for member in get_args(form) if member is not NoneType)
        if value is None:
            return
    if isinstance(form, type) and issubclass(form, Value):
        yield from _object(value, form, at)
    elif get_origin(form) is tuple:
        yield from _list(value, get_args(form)[0], at)
    elif get_origin(form) is dict:
        yield from _map(value, get_args(form)[1], at)
    elif form in _EXPECTED and type(value) is not form:
        yield _type_problem(at, _EXPECTED[form], value)


def _object(value: object, form: type[Value], at: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _type_problem(at, "an object", value)
        return
    for field in fields(form):
        if field.name in value:
            yield from form_problems(value[field.name], field.type, f"{at}/{field.name}")
        elif field.required:
            yield Problem(at=f"{at}/{field.name}", message="is missing")


def _list(value: object, form: Any, at: str) -> Iterator[Problem]:  # noqa: ANN401
    if not isinstance(value, list):
        yield _type_problem(at, "a list", value)
        return
    for n, element in enumerate(value):
        yield from form_problems(element, form, f"{at}/{n}")


def _map(value: object, form: Any, at: str) -> Iterator[Problem]:  # noqa: ANN401
    if not isinstance(value, dict):
        yield _type_problem(at, "an object", value)
        return
    for key, part in value.items():
        yield from form_problems(part, form, at + pointer([key]))


def _type_problem(at: str, expected: str, value: object) -> Problem:
    return Problem(at=at or "/", message=f"must be {expected}, not {type_name(value)}")
