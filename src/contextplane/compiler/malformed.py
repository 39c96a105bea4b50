"""What is wrong with an input that is not of its form: all of it, each with its place and a way out.

A request holds what people say and know. So a wrong value is repeated only where it is a short plain word, as one that
was meant to be the name of something is; of any other it is told what kind of value it is.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from contextplane.authoring.gates.schema import form_problems, said_by_types
from contextplane.authoring.unspoken import looks_secret, without_secrets
from contextplane.compiler.refusals import InputInvalid, InputProblem
from contextplane.model.canonical import Json
from contextplane.model.context_pack.terms import APPROVAL_MODES

__all__ = ["invalid", "problems_of", "said_by", "told"]

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,23}")
_NUMBER = re.compile(r"-?[0-9]{1,6}(?:\.[0-9]{1,3})?")
_LADDER = f"the ceiling is one of {', '.join(APPROVAL_MODES)}, from the lowest up"
_MOST = 50


def problems_of(value: Json, form: type[msgspec.Struct], at: str = "") -> tuple[InputProblem, ...]:
    """Everything in which a value is not of its form; nothing when it is, or when it is no JSON."""
    try:
        return tuple(_problems(value, form, at))
    except (TypeError, ValueError, RecursionError):
        return ()


def _problems(value: Json, form: type[msgspec.Struct], at: str) -> Iterator[InputProblem]:
    for _, one in form_problems(value, form, told):
        place = without_secrets(at + one.at, is_pointer=True)
        hint = _LADDER if one.at == "/safety_mode" else one.cure
        yield InputProblem(at=place, message=without_secrets(one.cause), hint=hint)


def said_by(error: msgspec.ValidationError) -> InputProblem:
    """The one thing that the types say, for what only they refuse."""
    said = said_by_types(error)
    return InputProblem(at=without_secrets(said.at, is_pointer=True), message=said.cause, hint=said.cure)


def invalid(problems: Iterable[InputProblem], name: str) -> InputInvalid:
    """The refusal of an input, with its first problem in front and all of them in its details; of very many, the first.

    `name` is what the input is called.
    """
    found = tuple(islice(problems, _MOST + 1))
    first, *more = found
    count = f"; and {len(more)} more" if more else ""
    if len(found) > _MOST:
        found = (*found[:_MOST], InputProblem(at="", message="and more than these", hint="mend these first"))
        count = f"; and at least {_MOST} more"
    return InputInvalid(first.message + count, at=f"{name}#{first.at}", hint=first.hint, problems=found)


def told(value: object) -> str:
    """A value in a message."""
    if isinstance(value, str):
        return f"'{value}'" if _WORD.fullmatch(value) and not looks_secret(value) else "this text"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return str(value) if _NUMBER.fullmatch(str(value)) else "this number"
    return "a list" if isinstance(value, list) else "an object"
