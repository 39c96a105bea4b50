"""Why a document of others is not of its form: every field that is not of its type, by its JSON Pointer.

It is asked only about what was refused, so that people read our words and not those of a library. It decides nothing.
"""

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from msgspec.structs import fields

from contextplane.model.pointer import pointer
from contextplane.model.problems import Problem, type_name
from contextplane.model.value import Value

__all__ = ["form_problems"]

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
