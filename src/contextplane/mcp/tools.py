"""`tools/call`: which tool, with which arguments; what it refuses is a result that says so, not a protocol error.

The tool `input`: list, get, write, ttl and delete. It reads the arguments, calls the shelf once, and answers.

The tool `output`: list and read, as markdown. It reads the arguments, asks the shelf, and renders one page.

A pack as both tools list it, and how fresh it must be to be read.
"""

from typing import TYPE_CHECKING, Any, cast

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.handoff.errors import HandoffInvalid, HandoffRefusal, HandoffStateMismatch
from contextplane.handoff.freshness import FreshnessState, freshness
from contextplane.handoff.page import PROFILES, PageArguments, PageQuery, Profile, first_page
from contextplane.mcp.arguments import arguments_of
from contextplane.mcp.protocol import INVALID_PARAMS, Request, RequestRefused
from contextplane.mcp.results import Answer, done, failed, shown_as, told
from contextplane.model.catalog import HandoffRow
from contextplane.model.handoff import HandoffPack
from contextplane.model.json.canonical import Json
from contextplane.model.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextplane.app.handoff.store import Desk
    from contextplane.handoff.reader import Found, Written
    from contextplane.handoff.render import Rendered
    from contextplane.mcp.arguments import Arguments

__all__ = ["call", "call_input", "call_output", "page_of", "refuse_other_state", "remaining", "row_told"]


def row_told(row: HandoffRow, now: Timestamp) -> dict[str, object]:
    """One pack of a list."""
    return {
        "id": row.id.text,
        "name": row.name,
        "title": row.title,
        "status": row.status,
        "revision": row.revision,
        "updated_at": str(row.updated),
        "expires_at": str(row.expires),
        **remaining(row.expires, now),
    }


def remaining(expires: Timestamp, now: Timestamp) -> dict[str, object]:
    """How long a pack is still good for."""
    state = freshness(expires, now)
    return {
        "ttl_remaining_seconds": state.seconds,
        "ttl_remaining_human": state.human,
        "ttl_remaining": state.human,
        "freshness_state": state.state,
    }


def refuse_other_state(pack: HandoffPack, wanted: FreshnessState | None, now: Timestamp) -> None:
    """Refuse a pack that is in another state than the one that was asked for."""
    state = freshness(pack.expires, now).state
    if wanted is not None and state != wanted:
        raise HandoffStateMismatch(
            f"the pack is {state}, and {wanted} was asked for",
            at=pack.id,
            details={"id": pack.id, "freshness_state": state, "requested_freshness": wanted},
        )


_REVISION = 2**53 - 1


def call_input(arguments: "Arguments", desk: "Desk") -> Answer:
    """The answer to one call."""
    return done(arguments.action, _ACTIONS[arguments.action](arguments, desk))


def _list_packs(arguments: "Arguments", desk: "Desk") -> object:
    status, fresh, query = arguments.status(), arguments.freshness(), arguments.words("query")
    limit, offset = arguments.number("limit", low=0), arguments.number("offset", low=0)
    arguments.check()
    page = desk.reading.list(status=status, freshness=fresh, query=query, limit=limit, offset=offset or 0)
    now = desk.now()
    return {"count": len(page.rows), "total": page.total, "packs": [row_told(row, now) for row in page.rows]}


def _get(arguments: "Arguments", desk: "Desk") -> object:
    identity, wanted = arguments.needed_identity(), arguments.freshness()
    arguments.check()
    pack, now = desk.reading.get(identity), desk.now()
    refuse_other_state(pack.pack, wanted, now)
    return {**_pack(pack.pack), "digest": str(pack.digest), **remaining(pack.pack.expires, now)}


def _pack(pack: "HandoffPack") -> dict[str, Any]:
    return msgspec.structs.asdict(pack)


def _write(arguments: "Arguments", desk: "Desk") -> object:
    from contextplane.handoff.document import read_document

    given = arguments.value("document")
    if given is None:
        arguments.missing("document", required_type="object", guidance="send the whole pack as one object")
    identity = arguments.identity()
    expected = arguments.number("expected_revision", low=1, high=_REVISION)
    validate_only = arguments.flag("validate_only")
    arguments.check()
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
    document = read_document(given)
    written = desk.shelf.write(document, identity=identity, expected_revision=expected, validate_only=validate_only)
    return _written(written, is_new=identity is None)


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


def _written(written: "Written", *, is_new: bool) -> object:
    """The resulting pack. One that was only checked says so, and a new one has no id then."""
    told = _pack(written.pack)
    if written.moved:
        told["moved_refs"] = written.moved
    if written.unanchored:
        told["unanchored_refs"] = written.unanchored
    if written.stored:
        return {**told, "digest": str(written.digest)}
    return {**told, "validated_only": True, **({"id": None} if is_new else {})}


def _ttl(arguments: "Arguments", desk: "Desk") -> object:
    from contextplane.handoff.document import MAX_TTL_MINUTES

    identity = arguments.needed_identity()
    expected = arguments.number("expected_revision", low=1, high=_REVISION)
    fields = ("ttl_minutes", "extend_minutes")
    ttl, extend = (arguments.number(name, low=1, high=MAX_TTL_MINUTES) for name in fields)
    arguments.check()
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
    written = desk.shelf.ttl(identity, expected_revision=expected, ttl_minutes=ttl, extend_minutes=extend)
    return _written(written, is_new=False)


def _delete(arguments: "Arguments", desk: "Desk") -> object:
    identity = arguments.needed_identity()
    arguments.check()
    deleted = desk.shelf.delete(identity)
    return {"id": deleted.id.text, "deleted": deleted.deleted}


_ACTIONS = {"list": _list_packs, "get": _get, "write": _write, "ttl": _ttl, "delete": _delete}


def call_output(arguments: "Arguments", desk: "Desk") -> Answer:
    """The answer to one call."""
    return _read(arguments, desk) if arguments.action == "read" else _list_page(arguments, desk)


def _list_page(arguments: "Arguments", desk: "Desk") -> Answer:
    from contextplane.handoff.page import listed

    status, fresh, query = arguments.status(), arguments.freshness(), arguments.words("query")
    limit, offset = arguments.number("limit", low=0), arguments.number("offset", low=0)
    arguments.check()
    page = desk.reading.list(status=status, freshness=fresh, query=query, limit=limit, offset=offset or 0)
    now = desk.now()
    packs = [row_told(row, now) for row in page.rows]
    return shown_as(listed(page.rows, now), "list", {"count": len(packs), "total": page.total, "packs": packs})


def _read(arguments: "Arguments", desk: "Desk") -> Answer:
    identity = arguments.needed_identity()
    token = arguments.token()
    page_arguments = PageArguments(
        profile=cast("Profile | None", arguments.choice("profile", tuple(PROFILES))),
        limit=arguments.number("limit", low=1),
        offset=arguments.number("offset", low=0),
        contains=arguments.words("contains"),
        status=arguments.status(),
    )
    wanted = arguments.freshness()
    arguments.check()
    found = desk.reading.get(identity)
    refuse_other_state(found.pack, wanted, desk.now())
    if token is None:
        query = first_page(page_arguments)
    else:
        from contextplane.handoff.page_token import redeem

        pack = found.pack
        query = redeem(desk.reading.page_key(), token, pack_id=pack.id, revision=pack.revision, given=page_arguments)
    page = page_of(found, query, desk)
    return shown_as(page.text, "read", page.structured)


def page_of(found: "Found", query: PageQuery, desk: "Desk") -> "Rendered":
    """One page of a pack that was found, if it has the status that is asked for."""
    from contextplane.handoff.render import rendered

    pack = found.pack
    if query.status is not None and pack.status != query.status:
        raise HandoffStateMismatch(
            f"the pack is {pack.status}, and {query.status} was asked for",
            at=pack.id,
            details={"id": pack.id, "status": pack.status, "requested_status": query.status},
        )

    def token(offset: int) -> str:
        from contextplane.handoff.page_token import issue

        key = desk.reading.page_key()
        return issue(key, query, pack_id=pack.id, revision=pack.revision, next_offset=offset)

    return rendered(pack, query, now=desk.now(), selected_by=found.selected_by, look=desk.reader().look, token=token)


_TOOLS = ("input", "output")


def call(request: Request, *, desk: "Callable[[], Desk]", rest: "Callable[[], None]") -> object:
    """The result of one call. `desk` opens the store; `rest` closes it, so that the next call opens it anew."""
    name, arguments = request.params.get("name"), request.params.get("arguments")
    if name not in _TOOLS:
        raise RequestRefused(
            f"invalid params: unknown tool {str(name)[:80]!r}", number=INVALID_PARAMS, data={"tools": [*_TOOLS]}
        )
    if arguments is not None and type(arguments) is not dict:
        raise RequestRefused("invalid params: arguments must be an object", number=INVALID_PARAMS)
    try:
        answer = _called(str(name), arguments or {}, desk)
    except HandoffRefusal as error:
        answer = failed(error, request.name)
    except (ContextPlaneError, OSError) as error:
        rest()
        answer = failed(error, request.name)
    return told(answer, request.name)


def _called(tool: str, given: dict[str, Json], desk: "Callable[[], Desk]") -> Answer:
    arguments = arguments_of(tool, given)
    return call_input(arguments, desk()) if tool == "input" else call_output(arguments, desk())
