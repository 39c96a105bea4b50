"""The two tools as `tools/list` describes them, with JSON Schemas of their arguments and answers.

The reader in `handoff/document.py` decides what is valid; a test compares it with the schema. The schemas use the forms
that every client maps to the dialect of its model:

- a member has one `type`, or is `anyOf` of one type and null, with nothing beside it;
- the values of an `enum` are texts;
- `required` is only next to `properties`;
- an input schema has no `additionalProperties` and no read-only members.

So a schema permits more than the server accepts: an unknown member is refused by the server.
"""

from typing import Any, TypeAlias

from contextplane.app.handoff.contract import MAX_SPAN, MAX_TTL_MINUTES, NAME_BYTES, PATH_BYTES

__all__ = [
    "DOCUMENT",
    "ERROR",
    "FRESHNESS",
    "LEFT_OUT",
    "PACK",
    "PACK_ROW",
    "STATUS",
    "TOOLS",
    "Schema",
    "integer",
    "nullable",
    "object_schema",
    "text",
]

Schema: TypeAlias = dict[str, Any]

STATUS = ("draft", "finalized")
FRESHNESS = ("fresh", "expiring_soon", "expired")
_KEY_FORM = r"^\s*[a-z0-9][a-z0-9_-]{1,63}\s*$"


def text(description: str, **more: object) -> Schema:
    return {"type": "string", "description": description, **more}


def object_schema(
    properties: Schema, description: str = "", *, required: tuple[str, ...] = (), closed: bool = False
) -> Schema:
    """The schema of an object with these members. `closed`: and no other, which only answers can promise."""
    schema: Schema = {"type": "object", "properties": properties}
    schema |= {"description": description} if description else {}
    schema |= {"required": list(required)} if required else {}
    return {**schema, "additionalProperties": False} if closed else schema


def nullable(schema: Schema) -> Schema:
    """The schema, or null, which counts as left out.

    Nothing stands beside `anyOf`, and the description is in its first branch: Vertex AI takes no other form, and
    google-genai drops a description beside it.
    """
    return {"anyOf": [schema, {"type": "null"}]}


def _nullable_text(description: str) -> Schema:
    return nullable(text(description))


def integer(description: str, low: int, high: int | None = None) -> Schema:
    schema: Schema = {"type": "integer", "minimum": low, "description": description}
    return schema if high is None else {**schema, "maximum": high}


def _choice(choices: tuple[str, ...], description: str) -> Schema:
    return nullable(text(description, enum=list(choices)))


def _list(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


# --- documents --------------------------------------------------------------------------------------------------------

_KEY = text("2 to 64 of a-z 0-9 _ -, unique beside its siblings.", pattern=_KEY_FORM)

_REF = object_schema(
    {
        "key": _KEY,
        "path": text(f"File below the source root, such as src/app.py; without '..', up to {PATH_BYTES} bytes."),
        "line_start": nullable(integer("First line of the code, counted from 1.", 1)),
        "line_end": nullable(integer(f"Last line, included; at most {MAX_SPAN} lines.", 1)),
        "title": _nullable_text("What is there."),
        "why": _nullable_text("Why it matters."),
        "group": _nullable_text("Refs of one group are shown together."),
    },
    "A finding's place in the code: key, path, line_start and line_end (or lines, as get returns them).",
    required=("key", "path"),
)
_DIAGRAM = object_schema(
    {
        "key": _KEY,
        "title": text("Its heading."),
        "mermaid": text("The drawing, in mermaid."),
        "why": _nullable_text("Why it matters."),
    },
    "A mermaid drawing.",
    required=("key", "title", "mermaid"),
)
_SECTION = object_schema(
    {
        "key": {**_KEY, "description": "2 to 64 of a-z 0-9 _ -, unique. Finalizing needs scope, findings and qa."},
        "title": text("Its heading; may be empty."),
        "description": _nullable_text("Free markdown."),
        "refs": _list(_REF, "Places in the code."),
        "diagrams": _list(_DIAGRAM, "Drawings."),
    },
    "One part of the pack.",
    required=("key", "title"),
)
_low, _high = NAME_BYTES

DOCUMENT: Schema = object_schema(
    {
        "name": _nullable_text(
            f"A name to find it by, {_low} to {_high} bytes, unique, not like an id; cannot be changed."
        ),
        "title": _nullable_text("The heading."),
        "brief": _nullable_text("The scope in a sentence or two."),
        "tags": _list({"type": "string"}, "Free words."),
        "ttl_minutes": nullable(
            integer(
                "Lifetime from now. A new pack has seven days by default; an update without it keeps the deadline.",
                1,
                MAX_TTL_MINUTES,
            )
        ),
        "status": text(
            "draft when omitted. finalized needs scope and findings with content, a section qa with a verdict "
            "('verdict: pass'), and refs that lead to existing lines.",
            enum=list(STATUS),
        ),
        "sections": _list(_SECTION, "The content, all of it: a write replaces the whole pack."),
    },
    "The whole content of the pack. What get or write returned can be sent back as it is.",
    required=("sections",),
)

# --- answers ----------------------------------------------------------------------------------------------------------

_TIMES = {
    "expires_at": text("RFC 3339, UTC."),
    "ttl_remaining_seconds": {"type": "integer", "minimum": 0},
    "ttl_remaining_human": text("expired, <1m, 5m, 23h, 4d."),
    "ttl_remaining": text("The same."),
    "freshness_state": {"type": "string", "enum": list(FRESHNESS)},
}

_NULLABLE: Schema = nullable({"type": "string"})

PACK_ROW: Schema = object_schema(
    {
        "id": _NULLABLE,
        "name": _NULLABLE,
        "title": _NULLABLE,
        "status": {"type": "string", "enum": list(STATUS)},
        "revision": {"type": "integer", "minimum": 1},
        "updated_at": text("RFC 3339, UTC."),
        **_TIMES,
    },
    required=("id", "name", "title", "status", "revision", "updated_at", "expires_at"),
)

_PLACE = {"section_key": text("Its section."), "ref_key": text("The ref.")}

PACK: Schema = object_schema(
    {
        **PACK_ROW["properties"],
        "schema_version": {"type": "integer"},
        "brief": _NULLABLE,
        "tags": {"type": "array", "items": {"type": "string"}},
        "created_at": text("RFC 3339, UTC."),
        "sections": _list(
            object_schema(
                {
                    "key": text("Its key."),
                    "title": text("Its heading."),
                    "refs": _list(object_schema({"key": text("Its key.")}), "As they were written."),
                    "diagrams": _list(object_schema({"key": text("Its key.")}), "As they were written."),
                },
                required=("key", "title", "refs", "diagrams"),
            ),
            "The content.",
        ),
        "digest": text("SHA-256 of the stored revision."),
        "provenance": object_schema(
            {
                "client": text("The program that wrote it."),
                "user": text("The user of the system."),
                "commit": text("The commit that was checked out."),
                "branch": text("Its branch."),
                "dirty": {"type": "boolean", "description": "Whether files differed from the commit."},
            }
        ),
        "validated_only": {"type": "boolean", "description": "True: nothing was stored; a new pack has no id."},
        "moved_refs": _list(object_schema(_PLACE), "Refs whose lines stand elsewhere now."),
        "unanchored_refs": _list(
            object_schema({**_PLACE, "reason": text("Why.")}, required=("section_key", "ref_key", "reason")),
            "Refs of a draft whose lines are not there: they cannot be followed when the code changes.",
        ),
    },
    required=(*PACK_ROW["required"], "schema_version", "brief", "tags", "created_at", "sections"),
)

LEFT_OUT: Schema = _list(
    {"type": "string"}, "There when the answer would be too large: what is only in the text content."
)

ERROR: Schema = {
    "error": {"type": "boolean", "description": "True, and only there, when the call failed."},
    "kind": text("validation, not_found, conflict, invalid_state, io_error, ..."),
    "code": text("invalid_data, not_found, ambiguous, revision_conflict, finalize_validation, ..."),
    "message": text("For people."),
    "request_id": text("The id of the request, as text."),
    "details": {"type": "object", "description": "Guidance for machines: what was wrong, what is allowed instead."},
}


# --- tools ------------------------------------------------------------------------------------------------------------

_IDENTITY = {
    "id": nullable(text("The pack: its id, pk_ and eight of a-z2-7. Wins over name.")),
    "name": nullable(text("The pack, by its name. A finalized one is preferred, then the one updated last.")),
}


_FILTER = {
    "status": _choice(STATUS, "list: only packs of this status."),
    "freshness": _choice(
        FRESHNESS,
        "list: only packs in this state; expired ones are hidden unless asked for. get, read: refuse a pack in another "
        "state.",
    ),
    "query": nullable(text("list: a text that title, name, brief or tags contain, in any case.")),
}


def _flag(description: str) -> Schema:
    return nullable({"type": "boolean", "description": description})


def _number(description: str, low: int, high: int | None = None) -> Schema:
    return nullable(integer(description, low, high))


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
    "inputSchema": object_schema(
        {
            "action": _choice(("list", "get", "write", "ttl", "delete"), "What to do; list when omitted."),
            **_IDENTITY,
            "document": nullable(DOCUMENT),
            "expected_revision": _number("write (update) and ttl: the revision that you read. Required there.", 1),
            "validate_only": _flag("write: check everything, store nothing."),
            "ttl_minutes": _number("ttl: the new lifetime, from now.", 1, MAX_TTL_MINUTES),
            "extend_minutes": _number("ttl: added to the deadline.", 1, MAX_TTL_MINUTES),
            **_FILTER,
            "limit": _number("list: at most so many, at least 0.", 0),
            "offset": _number("list: leave out so many first.", 0),
        }
    ),
    "outputSchema": object_schema(
        {
            "action": text("What was done."),
            "payload": {
                "anyOf": [
                    PACK,
                    object_schema(
                        {
                            "count": {"type": "integer", "description": "How many are here."},
                            "total": {"type": "integer", "description": "How many there are."},
                            "packs": {"type": "array", "items": PACK_ROW},
                        },
                        required=("count", "total", "packs"),
                        closed=True,
                    ),
                    object_schema(
                        {"id": text("The pack."), "deleted": {"type": "boolean"}},
                        required=("id", "deleted"),
                        closed=True,
                    ),
                ],
            },
            "left_out": LEFT_OUT,
            **ERROR,
        },
        closed=True,
    ),
    "annotations": {
        "title": "Write and manage handoff packs",
        "readOnlyHint": False,
        # A write adds a revision, and a deleted pack stays readable until it is collected: nothing is destroyed.
        "destructiveHint": False,
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
    "inputSchema": object_schema(
        {
            "action": _choice(("list", "read"), "What to do; when omitted, read if id or name is given, else list."),
            **_IDENTITY,
            **_FILTER,
            "status": _choice(STATUS, "list: only packs of this status. read: refuse a pack of another one."),
            "profile": _choice(("orchestrator", "reviewer", "executor"), "read: how much is shown."),
            "contains": nullable(text("read: only chunks with this text, whatever its case.")),
            "page_token": nullable(text("read: next_page_token of the page before; for the first page leave it out.")),
            "limit": _number("read: at most so many chunks, at least 1. list: at most so many packs, at least 0.", 0),
            "offset": _number("Leave out so many first; not together with page_token.", 0),
            "structured": _flag("Return the data beside the text, as structured content. For programs."),
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
