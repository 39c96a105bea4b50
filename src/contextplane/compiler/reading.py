"""Reading the inputs of a compile from plain data, as files and envelopes hold them."""

import re
from typing import Any

import msgspec

from contextplane.compiler.refusals import InputInvalid
from contextplane.model.evidence import Evidence, EvidenceInput
from contextplane.model.invoke import InvokeRequest
from contextplane.model.memory import Memory
from contextplane.model.pointer import pointer
from contextplane.model.run_context import RunContext, claims_lifted

__all__ = ["read_evidence", "read_memories", "read_request", "read_run_context"]

_PLACE = re.compile(r"^(?P<cause>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def read_run_context(value: Any) -> RunContext:  # noqa: ANN401  plain data
    found: RunContext = _read(_lifted(value), RunContext, "run_context")
    return found


def read_request(value: Any) -> InvokeRequest:  # noqa: ANN401  plain data
    found: InvokeRequest = _read(_lifted(value), InvokeRequest, "request")
    return found


def read_evidence(value: Any) -> tuple[EvidenceInput, ...]:  # noqa: ANN401  plain data
    """A list of typed evidence, and of plain texts as older callers give them."""
    found: tuple[EvidenceInput, ...] = _read(value, tuple[Evidence | str, ...], "evidence")
    return found


def read_memories(value: Any) -> tuple[Memory, ...]:  # noqa: ANN401  plain data
    found: tuple[Memory, ...] = _read(value, tuple[Memory, ...], "memories")
    return found


def _lifted(value: Any) -> Any:  # noqa: ANN401  plain data
    if isinstance(value, dict) and "user" in value:
        return {**value, "user": claims_lifted(value["user"])}
    return value


def _read(value: Any, form: Any, name: str) -> Any:  # noqa: ANN401  plain data, and what an annotation is
    try:
        return msgspec.convert(value, type=form)
    except msgspec.ValidationError as error:
        match = _PLACE.fullmatch(str(error))
        cause, path = (match["cause"], match["path"] or "") if match else (str(error), "")
        steps = [one or two for one, two in _STEP.findall(path)]
        raise InputInvalid(cause, at=f"{name}#{pointer(steps)}", hint="correct it") from error
    except UnicodeEncodeError as error:
        raise InputInvalid("a text holds half of a character", at=f"{name}#", hint="write it as UTF-8") from error
