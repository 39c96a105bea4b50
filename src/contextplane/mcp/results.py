"""Results of tools: a text, structured content where it is asked for, and errors as clients know them.

Many clients show a model the structured content in place of the text, so the answer of `output` has none by default:
markdown as JSON is longer, and harder to read. The text has a limit, and the whole encoded answer another one. Before
that is exceeded, the structured content is left out, and `left_out` says so.
"""

import msgspec

from contextplane.app.handoff.contract import HandoffInvalid, HandoffRefusal
from contextplane.errors import ContextPlaneError
from contextplane.model.json.canonical import SORTED
from contextplane.model.value import Value

__all__ = ["MAX_ANSWER", "MAX_TEXT", "Answer", "error_answer", "json_answer", "markdown_answer", "to_result"]

MAX_TEXT = 10 << 20
"""The longest text of a result, in bytes."""

MAX_ANSWER = 24 << 20
"""The most bytes of text and structured content together, encoded. A text alone at most doubles."""

_INVALID = "invalid data: "
_WIDEST = 6  # bytes that one character may need in JSON
_SHOWN = 200


class Answer(Value, frozen=True):
    """The text of a result, and its structured content as JSON.

    `shorter` takes the place of structured content that is too large.
    """

    text: str
    structured: bytes | None = None
    shorter: bytes | None = None
    is_error: bool = False


def json_answer(action: str, payload: object) -> Answer:
    """The answer of `input`: compact JSON with sorted keys, and the same as structured content."""
    data = SORTED.encode({"action": action, "payload": payload})
    return Answer(text=data.decode(), structured=data, shorter=_without_payload(action))


def markdown_answer(text: str, action: str, payload: object, *, structured: bool) -> Answer:
    """The answer of `output`: markdown, and, if `structured`, the data as structured content."""
    if not structured:
        return Answer(text=text)
    data = SORTED.encode({"action": action, "payload": payload})
    return Answer(text=text, structured=data, shorter=_without_payload(action))


def _without_payload(action: str) -> bytes:
    return SORTED.encode({"action": action, "left_out": ["payload"]})


def error_answer(error: ContextPlaneError | OSError, request_id: str, *, structured: bool) -> Answer:
    """An error in the form that clients know. One for invalid data always has details."""
    kind, code, message, details = _parts(error)
    answer: dict[str, object] = {
        "error": True,
        "kind": kind,
        "code": code,
        "message": message,
        "request_id": request_id[:_SHOWN],
    }
    if details:
        answer["details"] = details
    data = SORTED.encode(answer)
    return Answer(text=data.decode(), structured=data if structured else None, is_error=True)


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


def to_result(answer: Answer, request_id: str) -> dict[str, object]:
    """The result of `tools/call`. An answer that is too large becomes an error."""
    if _may_pass(answer):
        answer = _within(answer, request_id)
    result: dict[str, object] = {"content": [{"type": "text", "text": answer.text}]}
    if answer.structured is not None:
        result["structuredContent"] = msgspec.Raw(answer.structured)
    return {**result, "isError": True} if answer.is_error else result


def _may_pass(answer: Answer) -> bool:
    """Whether the answer may exceed a limit, so that it is worth measuring. Most are far below."""
    return len(answer.text) * _WIDEST + len(answer.structured or b"") > MAX_TEXT


def _within(answer: Answer, request_id: str) -> Answer:
    """The answer with as much structured content as fits; an error if its text is too large."""
    size = len(answer.text.encode())
    room = MAX_ANSWER - len(SORTED.encode(answer.text))
    fits = len(answer.structured or b"") <= room
    if size <= MAX_TEXT and (fits or answer.shorter is not None):
        return answer if fits else msgspec.structs.replace(answer, structured=answer.shorter)
    details = {
        "size_bytes": size,
        "max_bytes": MAX_TEXT,
        "carried_out": not answer.is_error,
        "guidance": "to see the answer ask for less of it: limit, contains, another profile",
    }
    refusal = HandoffInvalid("tool output too large", details=details)
    return error_answer(refusal, request_id, structured=answer.structured is not None)
