"""What a tool answers: a text, the same for machines beside it, and errors in the one shape that clients know.

The text has its limit, and the whole answer, encoded, has another one. What the structured content only repeats is left
out before that is passed, and `left_out` names it then.
"""

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffInvalid, HandoffRefusal
from contextplane.model.json.canonical import SORTED
from contextplane.model.value import Value

__all__ = ["MAX_ANSWER", "MAX_TEXT", "Answer", "done", "failed", "shown_as", "told"]

MAX_TEXT = 10 << 20
"""The longest text of a result, in bytes."""

MAX_ANSWER = 24 << 20
"""The most that text and structured content may have together as they go out. A text alone at most doubles."""

_INVALID = "invalid data: "
_WIDEST = 6  # bytes that one character may need in JSON
_SHOWN = 200


class Answer(Value, frozen=True):
    """The text of a result, and its structured content as JSON; `shorter`: the same with less of what repeats it."""

    text: str
    structured: bytes
    shorter: tuple[bytes, ...] = ()
    is_error: bool = False


def done(action: str, payload: object) -> Answer:
    """The answer of `input`: compact JSON with sorted keys, and the same as structured content."""
    data = SORTED.encode({"action": action, "payload": payload})
    return Answer(text=data.decode(), structured=data, shorter=(_without(action, "payload"),))


def shown_as(text: str, action: str, payload: object) -> Answer:
    """The answer of `output`: the text is markdown and nothing else.

    Some clients show a model the structured content alone, so that it has the markdown as well.
    """
    structured = SORTED.encode({"action": action, "markdown": text, "payload": payload})
    shorter: tuple[bytes, ...] = ()
    if _may_pass(text, structured):
        shorter = (_without(action, "markdown", payload=payload), _without(action, "markdown", "payload"))
    return Answer(text=text, structured=structured, shorter=shorter)


def _without(action: str, *left_out: str, **told: object) -> bytes:
    return SORTED.encode({"action": action, "left_out": left_out, **told})


def failed(error: ContextPlaneError | OSError, request_id: str) -> Answer:
    """An error as clients know it. What is invalid always has details."""
    kind, code, message, details = _parts(error)
    answer: dict[str, object] = {
        "error": True,
        "kind": kind,
        "code": code,
        "message": message,
        "request_id": request_id[:_SHOWN] or None,
    }
    if details:
        answer["details"] = details
    data = SORTED.encode(answer)
    return Answer(text=data.decode(), structured=data, is_error=True)


def _parts(error: ContextPlaneError | OSError) -> tuple[str, str, str, dict[str, object]]:
    if not isinstance(error, ContextPlaneError):
        return "io_error", "io_error", f"io error: {error.strerror or type(error).__name__}", {"reason": "io_error"}
    message = f"{error.at}: {error.message}" if error.at and error.at not in error.message else error.message
    if not isinstance(error, HandoffRefusal):
        way_out = {"hint": error.hint} if error.hint else {}
        return "io_error", "io_error", message, {"reason": error.code, **way_out, **error.details}
    kind, code = error.answer
    details = error.details
    if code == "invalid_data":
        message = message if message.startswith(_INVALID) else _INVALID + message
        details = details or {"guidance": error.hint or "see tools/list for the schema"}
    return kind, code, message, details


def told(answer: Answer, request_id: str) -> dict[str, object]:
    """The result of `tools/call`. One that is too large is an error instead."""
    if _may_pass(answer.text, answer.structured):
        answer = _within(answer, request_id)
    result: dict[str, object] = {
        "content": [{"type": "text", "text": answer.text}],
        "structuredContent": msgspec.Raw(answer.structured),
    }
    return {**result, "isError": True} if answer.is_error else result


def _may_pass(text: str, structured: bytes) -> bool:
    """Whether it is worth measuring: most answers are far below every limit."""
    return len(text) * _WIDEST + len(structured) > MAX_TEXT


def _within(answer: Answer, request_id: str) -> Answer:
    """The answer, with no more structured content than there is room for beside its text."""
    size = len(answer.text.encode())
    room = MAX_ANSWER - len(SORTED.encode(answer.text))
    fitting = next((data for data in (answer.structured, *answer.shorter) if len(data) <= room), None)
    if fitting is not None and size <= MAX_TEXT:
        return msgspec.structs.replace(answer, structured=fitting)
    details = {
        "size_bytes": size,
        "max_bytes": MAX_TEXT,
        "carried_out": not answer.is_error,
        "guidance": "to see the answer ask for less of it: limit, contains, another profile",
    }
    return failed(HandoffInvalid("tool output too large", details=details), request_id)
