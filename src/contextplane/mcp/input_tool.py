"""The tool `input`: list, get, write, ttl and delete. It reads the arguments, calls the shelf once, and answers."""

from typing import TYPE_CHECKING, Any

import msgspec

from contextplane.handoff.refusals import HandoffInvalid
from contextplane.mcp.answers import Answer, done
from contextplane.mcp.rows import refuse_other_state, remaining, row_told

if TYPE_CHECKING:
    from contextplane.app.handoff import Desk
    from contextplane.handoff.kept import Written
    from contextplane.mcp.arguments import Arguments
    from contextplane.model.handoff import HandoffPack

__all__ = ["called"]

_REVISION = 2**53 - 1


def called(arguments: "Arguments", desk: "Desk") -> Answer:
    """The answer to one call."""
    return done(arguments.action, _ACTIONS[arguments.action](arguments, desk))


def _list(arguments: "Arguments", desk: "Desk") -> object:
    status, fresh, query = arguments.status(), arguments.freshness(), arguments.words("query")
    limit, offset = arguments.number("limit", low=0), arguments.number("offset", low=0)
    arguments.check()
    page = desk.reading.list(status=status, freshness=fresh, query=query, limit=limit, offset=offset or 0)
    now = desk.now()
    return {"count": len(page.rows), "total": page.total, "packs": [row_told(row, now) for row in page.rows]}


def _get(arguments: "Arguments", desk: "Desk") -> object:
    identity, wanted = arguments.needed_identity(), arguments.freshness()
    arguments.check()
    found, now = desk.reading.get(identity), desk.now()
    refuse_other_state(found.pack, wanted, now)
    return {**_pack(found.pack), "digest": str(found.digest), **remaining(found.pack.expires, now)}


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
    from contextplane.handoff.bounds import MAX_TTL_MINUTES

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


_ACTIONS = {"list": _list, "get": _get, "write": _write, "ttl": _ttl, "delete": _delete}
