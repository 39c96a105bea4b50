"""`tools/call`: the tools `input` and `output`.

`input` lists, gets, writes and deletes packs and sets their ttl; `output` lists and reads them as markdown. Each reads
its arguments, makes one call to the repository of handoff packs, and answers. A call that is refused is a result with
an error, not an error of the protocol.
"""

from typing import TYPE_CHECKING, Any, cast

import msgspec

from contextplane.app.handoff.contract import (
    MAX_TTL_MINUTES,
    FreshnessState,
    HandoffInvalid,
    HandoffRefusal,
    HandoffStateMismatch,
    decoded_text,
    freshness,
    read_document,
)
from contextplane.app.handoff.session import lifetime_payload, row_payload
from contextplane.errors import ContextPlaneError
from contextplane.mcp.arguments import read_arguments
from contextplane.mcp.protocol import INVALID_PARAMS, Request, RequestRefused
from contextplane.mcp.results import Answer, error_answer, json_answer, markdown_answer, to_result
from contextplane.model.handoff import HandoffPack
from contextplane.model.json.canonical import Json
from contextplane.model.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextplane.app.handoff.page import Profile
    from contextplane.app.handoff.session import HandoffSession, WriteResult
    from contextplane.mcp.arguments import Arguments

__all__ = ["call", "call_input", "call_output", "require_freshness"]


# --- payloads of both tools -------------------------------------------------------------------------------------------


def require_freshness(pack: HandoffPack, expected: FreshnessState | None, now: Timestamp) -> None:
    """Raise `HandoffStateMismatch` for a pack that is in another state than the requested one."""
    state = freshness(pack.expires, now).state
    if expected is not None and state != expected:
        raise HandoffStateMismatch(
            f"the pack is {state}, and {expected} was asked for",
            at=pack.id,
            details={"id": pack.id, "freshness_state": state, "requested_freshness": expected},
        )


# --- the tool input ---------------------------------------------------------------------------------------------------

_MAX_REVISION = 2**53 - 1


def call_input(arguments: "Arguments", handoffs: "HandoffSession") -> Answer:
    """The answer to one call of `input`."""
    return json_answer(arguments.action, _ACTIONS[arguments.action](arguments, handoffs))


def _list_packs(arguments: "Arguments", handoffs: "HandoffSession") -> object:
    status, fresh, query = arguments.status(), arguments.freshness(), arguments.words("query")
    limit, offset = arguments.number("limit", low=0), arguments.number("offset", low=0)
    arguments.raise_problems()
    page = handoffs.pack_reader.list(status=status, freshness=fresh, query=query, limit=limit, offset=offset or 0)
    now = handoffs.now()
    return {"count": len(page.rows), "total": page.total, "packs": [row_payload(row, now) for row in page.rows]}


def _get(arguments: "Arguments", handoffs: "HandoffSession") -> object:
    identity, expected = arguments.require_identity(), arguments.freshness()
    arguments.raise_problems()
    selected, now = handoffs.pack_reader.get(identity), handoffs.now()
    require_freshness(selected.pack, expected, now)
    lifetime = lifetime_payload(selected.pack.expires, now)
    return {**_pack(selected.pack), "digest": str(selected.digest), **lifetime}


def _pack(pack: "HandoffPack") -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(pack).items() if value is not msgspec.UNSET}


def _write(arguments: "Arguments", handoffs: "HandoffSession") -> object:
    value = arguments.value("document")
    if value is None:
        arguments.note_missing("document", required_type="object", guidance="send the whole pack as one object")
    identity = arguments.identity()
    expected = arguments.number("expected_revision", low=1, high=_MAX_REVISION)
    validate_only = arguments.flag("validate_only")
    arguments.raise_problems()
    if identity is not None and expected is None:
        raise _no_revision("write", "for a new pack leave out id and name here; its name is document.name")
    if identity is None and expected is not None:
        raise HandoffInvalid(
            "expected_revision is for an update: name the pack with id or name, or leave it out for a new one",
            details={
                "tool": "input",
                "action": "write",
                "required_fields": ["id", "name"],
                "mutually_interchangeable": ["id", "name"],
                "unsupported_field": "expected_revision",
            },
        )
    document = read_document(value, handoffs.source_place())
    result = handoffs.repository.write(
        document, identity=identity, expected_revision=expected, validate_only=validate_only
    )
    return _write_payload(result, is_new=identity is None)


def _no_revision(action: str, *also: str) -> HandoffInvalid:
    return HandoffInvalid(
        f"{action} needs expected_revision",
        details={
            "tool": "input",
            "action": action,
            "required_fields": ["expected_revision"],
            "guidance": ["call input get for the current revision", "send it as expected_revision", *also],
        },
    )


def _write_payload(result: "WriteResult", *, is_new: bool) -> object:
    """The resulting pack. If it was only checked it says so, and a new one has no id."""
    payload = _pack(result.pack)
    if result.moved:
        payload["moved_refs"] = result.moved
    if result.unanchored:
        payload["unanchored_refs"] = result.unanchored
    if result.stored:
        return {**payload, "digest": str(result.digest)}
    return {**payload, "validated_only": True, **({"id": None} if is_new else {})}


def _ttl(arguments: "Arguments", handoffs: "HandoffSession") -> object:
    identity = arguments.require_identity()
    expected = arguments.number("expected_revision", low=1, high=_MAX_REVISION)
    fields = ("ttl_minutes", "extend_minutes")
    ttl, extend = (arguments.number(name, low=1, high=MAX_TTL_MINUTES) for name in fields)
    arguments.raise_problems()
    provided = [name for name, value in zip(fields, (ttl, extend), strict=True) if value is not None]
    if len(provided) != 1:
        raise HandoffInvalid(
            "ttl takes exactly one of ttl_minutes and extend_minutes",
            details={
                "tool": "input",
                "action": "ttl",
                "required_fields": list(fields),
                "required_mode": "exactly_one_of",
                "provided_fields": provided,
            },
        )
    if expected is None:
        raise _no_revision("ttl")
    result = handoffs.repository.ttl(identity, expected_revision=expected, ttl_minutes=ttl, extend_minutes=extend)
    return _write_payload(result, is_new=False)


def _delete(arguments: "Arguments", handoffs: "HandoffSession") -> object:
    identity = arguments.require_identity()
    arguments.raise_problems()
    result = handoffs.repository.delete(identity)
    return {"id": result.id.text, "deleted": result.deleted}


_ACTIONS = {"list": _list_packs, "get": _get, "write": _write, "ttl": _ttl, "delete": _delete}


# --- the tool output --------------------------------------------------------------------------------------------------


def call_output(arguments: "Arguments", handoffs: "HandoffSession") -> Answer:
    """The answer to one call of `output`."""
    return _read(arguments, handoffs) if arguments.action == "read" else _list_page(arguments, handoffs)


def _list_page(arguments: "Arguments", handoffs: "HandoffSession") -> Answer:
    from contextplane.app.handoff.page import list_markdown

    status, fresh, query = arguments.status(), arguments.freshness(), arguments.words("query")
    limit, offset = arguments.number("limit", low=0), arguments.number("offset", low=0)
    structured = arguments.flag("structured")
    arguments.raise_problems()
    page = handoffs.pack_reader.list(status=status, freshness=fresh, query=query, limit=limit, offset=offset or 0)
    now = handoffs.now()
    packs = [row_payload(row, now) for row in page.rows]
    data = {"count": len(packs), "total": page.total, "packs": packs}
    return markdown_answer(list_markdown(page.rows, now), "list", data, structured=structured)


def _read(arguments: "Arguments", handoffs: "HandoffSession") -> Answer:
    from contextplane.app.handoff.page import PROFILES, PageArguments, page_query, render_selected

    identity = arguments.require_identity()
    token = arguments.token()
    page_arguments = PageArguments(
        profile=cast("Profile | None", arguments.choice("profile", tuple(PROFILES), exact=True)),
        limit=arguments.number("limit", low=1),
        offset=arguments.number("offset", low=0),
        contains=arguments.words("contains"),
        status=arguments.status(),
    )
    expected, structured = arguments.freshness(), arguments.flag("structured")
    arguments.raise_problems()
    selected = handoffs.pack_reader.get(identity)
    require_freshness(selected.pack, expected, handoffs.now())
    query = page_query(handoffs, selected, page_arguments, token)
    page = render_selected(handoffs, selected, query)
    return markdown_answer(page.text, "read", page.structured, structured=structured)


# --- tools/call -------------------------------------------------------------------------------------------------------

_TOOLS = ("input", "output")


def call(request: Request, *, handoffs: "Callable[[], HandoffSession]", close_store: "Callable[[], None]") -> object:
    """The result of one call. `handoffs` opens the store; `close_store` makes the next call open it again."""
    name, arguments = request.params.get("name"), decoded_text(request.params.get("arguments"), dict)
    if name not in _TOOLS:
        raise RequestRefused(
            f"invalid params: unknown tool {str(name)[:80]!r}", number=INVALID_PARAMS, data={"tools": [*_TOOLS]}
        )
    if arguments is not None and type(arguments) is not dict:
        raise RequestRefused("invalid params: arguments must be an object", number=INVALID_PARAMS)
    values = arguments or {}
    structured = name == "input" or values.get("structured") is True
    try:
        answer = _call(str(name), values, handoffs)
    except HandoffRefusal as error:
        answer = error_answer(error, request.name, structured=structured)
    except (ContextPlaneError, OSError) as error:
        close_store()
        answer = error_answer(error, request.name, structured=structured)
    return to_result(answer, request.name)


def _call(tool: str, values: dict[str, Json], handoffs: "Callable[[], HandoffSession]") -> Answer:
    arguments = read_arguments(tool, values)
    return call_input(arguments, handoffs()) if tool == "input" else call_output(arguments, handoffs())
