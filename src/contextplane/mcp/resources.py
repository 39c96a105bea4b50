"""Read-only resources: handoff packs as a reviewer sees them, and the recorded runs.

`ctx://handoff/pk_...` is a pack, `ctx://executions` the list of runs, `ctx://executions/<hash>` one manifest.
"""

from typing import TYPE_CHECKING

from contextplane.app.handoff.contract import HandoffNotFound, freshness
from contextplane.app.handoff.page import PageQuery, one_line, render_selected, shorten
from contextplane.errors import ContextPlaneError
from contextplane.mcp.protocol import INTERNAL, INVALID_PARAMS, Request, RequestRefused
from contextplane.mcp.results import MAX_TEXT

if TYPE_CHECKING:
    from contextplane.app.handoff.session import HandoffSession
    from contextplane.app.platform import Platform
    from contextplane.model.catalog import HandoffRow
    from contextplane.model.timestamp import Timestamp

__all__ = ["TEMPLATES", "list_resources", "read_resource", "unavailable"]

_PAGE = 50
_HANDOFF, _EXECUTIONS = "ctx://handoff/", "ctx://executions"
_MARKDOWN, _JSON = "text/markdown", "application/json"
_NOT_FOUND = -32002  # until 2025-11-25; since then the params are invalid
_SHOWN, _CURSOR = 200, 8

TEMPLATES = (
    {
        "uriTemplate": _HANDOFF + "{id}",
        "name": "handoff",
        "title": "A handoff pack, in full",
        "description": "The newest revision of a pack as markdown, with its code. The id is pk_ and eight of a-z2-7.",
        "mimeType": _MARKDOWN,
    },
    {
        "uriTemplate": _EXECUTIONS + "/{hash}",
        "name": "execution",
        "title": "An execution pack",
        "description": "The manifest of one recorded run, as JSON. The hash is that of its ctx:// reference.",
        "mimeType": _JSON,
    },
)


def list_resources(request: Request, handoffs: "HandoffSession") -> object:
    """A page of the available packs, newest first. The first page begins with the recorded runs, if any."""
    offset = _offset(request)
    page = handoffs.pack_reader.list(limit=_PAGE, offset=offset)
    now = handoffs.now()
    resources = [_resource(row, now) for row in page.rows]
    if offset == 0 and handoffs.platform is not None and _newest(handoffs.platform, 1):
        resources.insert(0, _EXECUTIONS_RESOURCE)
    seen = offset + len(page.rows)
    return {"resources": resources, **({"nextCursor": str(seen)} if page.rows and seen < page.total else {})}


_EXECUTIONS_RESOURCE = {
    "uri": _EXECUTIONS,
    "name": "executions",
    "title": "Execution packs",
    "description": "The newest recorded runs of agents, as JSON: reference, time, model, number of steps.",
    "mimeType": _JSON,
}


def _offset(request: Request) -> int:
    cursor = request.params.get("cursor")
    if cursor is None:
        return 0
    if type(cursor) is str and cursor.isascii() and cursor.isdecimal() and len(cursor) < _CURSOR:
        return int(cursor)
    raise RequestRefused("invalid params: not a cursor of ours", number=INVALID_PARAMS)


def _resource(row: "HandoffRow", now: "Timestamp") -> dict[str, str]:
    state = freshness(row.expires, now)
    name = one_line(row.name or "")
    return {
        "uri": f"{_HANDOFF}{row.id}",
        "name": name or row.id.text,
        "title": shorten(row.title or "") or name or "Untitled",
        "description": f"{row.status}, revision {row.revision}, {state.state}, {state.human} left",
        "mimeType": _MARKDOWN,
    }


def read_resource(request: Request, handoffs: "HandoffSession") -> object:
    """The contents of one resource."""
    uri = request.params.get("uri")
    if type(uri) is not str:
        raise RequestRefused("invalid params: uri must be text", number=INVALID_PARAMS)
    try:
        kind, text = _contents(uri, handoffs)
    except (HandoffNotFound, LookupError) as error:
        number = INVALID_PARAMS if request.modern else _NOT_FOUND
        raise RequestRefused("resource not found", number=number, data={"uri": uri[:_SHOWN]}) from error
    if len(text.encode()) > MAX_TEXT:
        raise RequestRefused("the resource is too large: read it in pages with tool output", number=INTERNAL)
    return {"contents": [{"uri": uri, "mimeType": kind, "text": text}]}


def unavailable(error: ContextPlaneError | OSError) -> RequestRefused:
    """The error for a store or a pack that cannot be used: the reason, and the way out."""
    data: dict[str, object] = {"reason": "io_error"}
    if isinstance(error, ContextPlaneError):
        data = {"reason": error.code, **({"hint": error.hint} if error.hint else {}), **error.details}
    return RequestRefused(f"the resource cannot be read: {error}", number=INTERNAL, data=data)


def _contents(uri: str, handoffs: "HandoffSession") -> tuple[str, str]:
    """The type and the text of a resource; `LookupError` when there is none."""
    from contextplane.app.handoff.session import as_id

    name = uri.removeprefix(_HANDOFF)
    if name != uri and as_id(name):
        page = render_selected(handoffs, handoffs.pack_reader.get(name), PageQuery(profile="reviewer"))
        return _MARKDOWN, page.text
    handoffs.pack_reader  # noqa: B018  it opens the store, if there is one
    if handoffs.platform is None or not uri.startswith(_EXECUTIONS):
        raise LookupError(uri)
    if uri == _EXECUTIONS:
        return _JSON, _executions_json(handoffs.platform)
    return _JSON, _manifest(uri.removeprefix(f"{_EXECUTIONS}/"), handoffs.platform)


def _newest(platform: "Platform", limit: int) -> list[dict[str, object]]:
    from contextplane.app.platform import ensure_index_current
    from contextplane.model.catalog import PackFilter

    ensure_index_current(platform)
    with platform.catalog.read() as view:
        rows = view.packs.page(PackFilter(), limit)
    return [
        {
            "ref": f"ctx://{row.digest.hex}",
            "uri": f"{_EXECUTIONS}/{row.digest.hex}",
            "created": str(row.created),
            "model": row.model,
            "steps": row.steps,
            "tools": row.tools,
            "parent": f"ctx://{row.parent.hex}" if row.parent else None,
        }
        for row in rows
    ]


def _executions_json(platform: "Platform") -> str:
    from contextplane.model.json.canonical import SORTED

    rows = _newest(platform, _PAGE + 1)
    if not rows:
        raise LookupError(_EXECUTIONS)
    return SORTED.encode({"executions": rows[:_PAGE], "more": len(rows) > _PAGE}).decode()


def _manifest(name: str, platform: "Platform") -> str:
    from contextplane.app.execution.load import load_registered
    from contextplane.model.execution.manifest import fill_in_hash
    from contextplane.model.ids import ExecutionRef, InvalidId

    try:
        digest = ExecutionRef.parse(f"ctx://{name}").digest
    except InvalidId as error:
        raise LookupError(name) from error
    with platform.catalog.read() as view:
        if view.packs.row(digest) is None:
            raise LookupError(name)
    pack = load_registered(platform, digest)
    return fill_in_hash(pack.raw, pack.digest).decode()
