"""The two tools, as `tools/list` tells them. Top-level schemas stay plain objects: many clients take nothing else."""

from typing import Any

from contextplane.handoff.bounds import MAX_TTL_MINUTES
from contextplane.mcp.schemas import (
    DOCUMENT,
    ERROR,
    FRESHNESS,
    LEFT_OUT,
    PACK,
    PACK_ROW,
    STATUS,
    Schema,
    closed,
    maybe,
    text,
    whole,
)

__all__ = ["TOOLS"]

_IDENTITY = {
    "id": maybe(text("The pack: its id, pk_ and eight of a-z2-7. Wins over name.")),
    "name": maybe(text("The pack, by its name. A finalized one is preferred, then the one updated last.")),
}


def _choice(choices: tuple[str, ...], description: str) -> Schema:
    return maybe(text(description, enum=list(choices)))


_FILTER = {
    "status": _choice(STATUS, "list: only packs of this status."),
    "freshness": _choice(
        FRESHNESS,
        "list: only packs in this state; expired ones are hidden unless asked for. get, read: refuse a pack in another "
        "state.",
    ),
    "query": maybe(text("list: a text that title, name or brief contains, whatever its case.")),
}


def _number(description: str, low: int, high: int | None = None) -> Schema:
    return maybe(whole(description, low, high))


INPUT: dict[str, Any] = {
    "name": "input",
    "title": "Write and manage handoff packs",
    "description": (
        "Manage handoff packs: findings for another agent, anchored to lines of code. "
        "list: which there are. get (id or name): the whole pack as JSON. "
        "write (document): a new pack; with id or name and expected_revision it replaces that one. "
        "ttl (id or name, expected_revision, one of ttl_minutes and extend_minutes): how long it lives. "
        "delete (id or name). To change a pack: get it, edit it, write it back. "
        'Example: {"action":"write","document":{"title":"Login bug","sections":[{"key":"findings",'
        '"title":"Findings","refs":[{"key":"token-check","path":"src/auth.py","line_start":10,'
        '"line_end":24,"why":"expiry is ignored"}]}]}}'
    ),
    "inputSchema": closed(
        {
            "action": _choice(("list", "get", "write", "ttl", "delete"), "What to do; list when omitted."),
            **_IDENTITY,
            "document": maybe(DOCUMENT),
            "expected_revision": _number("write (update) and ttl: the revision that you read. Required there.", 1),
            "validate_only": {"type": "boolean", "description": "write: check everything, store nothing."},
            "ttl_minutes": _number("ttl: the new lifetime, from now.", 1, MAX_TTL_MINUTES),
            "extend_minutes": _number("ttl: added to the deadline.", 1, MAX_TTL_MINUTES),
            **_FILTER,
            "limit": _number("list: at most so many, at least 0.", 0),
            "offset": _number("list: leave out so many first.", 0),
        }
    ),
    "outputSchema": closed(
        {
            "action": text("What was done."),
            "payload": {
                "description": "get, write and ttl: the pack. list and delete: as named.",
                "anyOf": [
                    PACK,
                    closed(
                        {
                            "count": {"type": "integer", "description": "How many are here."},
                            "total": {"type": "integer", "description": "How many there are."},
                            "packs": {"type": "array", "items": PACK_ROW},
                        },
                        required=("count", "total", "packs"),
                    ),
                    closed({"id": text("The pack."), "deleted": {"type": "boolean"}}, required=("id", "deleted")),
                ],
            },
            "left_out": LEFT_OUT,
            **ERROR,
        }
    ),
    "annotations": {
        "title": "Write and manage handoff packs",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": False,
    },
}

OUTPUT: dict[str, Any] = {
    "name": "output",
    "title": "Read handoff packs",
    "description": (
        "Read handoff packs as markdown. list: which there are. read (id or name): one bounded page; "
        "profile orchestrator (default, 6 chunks) and executor (12) are compact, reviewer has all, with the code. "
        "The LEGEND tells has_more and next_page_token; send that as page_token for the next page."
    ),
    "inputSchema": closed(
        {
            "action": _choice(("list", "read"), "What to do; when omitted, read if id or name is given, else list."),
            **_IDENTITY,
            **_FILTER,
            "status": _choice(STATUS, "list: only packs of this status. read: refuse a pack of another one."),
            "profile": _choice(("orchestrator", "reviewer", "executor"), "read: how much is shown."),
            "contains": maybe(text("read: only chunks with this text, whatever its case.")),
            "page_token": maybe(text("read: next_page_token of the page before; for the first page leave it out.")),
            "limit": _number("read: at most so many chunks, at least 1. list: at most so many packs, at least 0.", 0),
            "offset": _number("Leave out so many first; not together with page_token.", 0),
        }
    ),
    "outputSchema": closed(
        {
            "action": text("What was done."),
            "markdown": text("The text content once more."),
            "payload": {"type": "object", "description": "read: the LEGEND and the chunks; list: the packs."},
            "left_out": LEFT_OUT,
            **ERROR,
        }
    ),
    "annotations": {
        "title": "Read handoff packs",
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    },
}

TOOLS = (INPUT, OUTPUT)
