"""The two tools as `tools/list` describes them, with JSON Schemas of their arguments and answers.

The reader in `handoff/document.py` decides what is valid; a test compares it with the schema. Top-level schemas are
plain objects, because many clients accept nothing else.
"""

from typing import Any, TypeAlias

from contextplane.app.handoff.contract import MAX_SPAN, MAX_TTL_MINUTES, NAME_BYTES, PATH_BYTES, READ_ONLY

__all__ = [
    "DOCUMENT",
    "ERROR",
    "FRESHNESS",
    "ID_FORM",
    "LEFT_OUT",
    "PACK",
    "PACK_ROW",
    "STATUS",
    "TOOLS",
    "Schema",
    "closed_object",
    "integer",
    "nullable",
    "text",
]

Schema: TypeAlias = dict[str, Any]

STATUS = ("draft", "finalized")
FRESHNESS = ("fresh", "expiring_soon", "expired")
ID_FORM = "^pk_[a-z2-7]{8}$"
_KEY_FORM = r"^\s*[a-z0-9][a-z0-9_-]{1,63}\s*$"


def text(description: str, **more: object) -> Schema:
    return {"type": "string", "description": description, **more}


def closed_object(properties: Schema, *, required: tuple[str, ...] = (), **more: object) -> Schema:
    """The schema of an object with these members and no other."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False, **more}
    return {**schema, "required": list(required)} if required else schema


def nullable(schema: Schema) -> Schema:
    """The schema, or null, which counts as left out."""
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **choices}


def _nullable_text(description: str) -> Schema:
    return nullable(text(description))


def integer(description: str, low: int, high: int | None = None) -> Schema:
    schema: Schema = {"type": "integer", "minimum": low, "description": description}
    return schema if high is None else {**schema, "maximum": high}


def _list(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


# --- documents --------------------------------------------------------------------------------------------------------

_LINES = closed_object(
    {"start": integer("First line.", 1), "end": integer("Last line, included.", 1)},
    required=("start", "end"),
    description="The same range in the form that get returns; instead of line_start and line_end.",
)
_KEY = text("2 to 64 of a-z 0-9 _ -, unique beside its siblings.", pattern=_KEY_FORM)

_REF = closed_object(
    {
        "key": _KEY,
        "path": text(
            f"File below the source root, such as src/app.py; relative, without '..', up to {PATH_BYTES} bytes.",
            minLength=1,
        ),
        "line_start": nullable(integer("First line of the code, counted from 1.", 1)),
        "line_end": nullable(integer(f"Last line, included; at most {MAX_SPAN} lines.", 1)),
        "lines": nullable(_LINES),
        "title": _nullable_text("What is there."),
        "why": _nullable_text("Why it matters."),
        "group": _nullable_text("Refs of one group are shown together."),
        "anchor": {"description": "Read-only, from get; ignored.", "readOnly": True},
    },
    required=("key", "path"),
    anyOf=[{"required": ["line_start", "line_end"]}, {"required": ["lines"]}],
    description="A finding's place in the code: key, path and lines.",
)
_DIAGRAM = closed_object(
    {
        "key": _KEY,
        "title": text("Its heading."),
        "mermaid": text("The drawing, in mermaid."),
        "why": _nullable_text("Why it matters."),
    },
    required=("key", "title", "mermaid"),
    description="A mermaid drawing.",
)
_SECTION = closed_object(
    {
        "key": {**_KEY, "description": "2 to 64 of a-z 0-9 _ -, unique. Finalizing needs scope, findings and qa."},
        "title": text("Its heading; may be empty."),
        "description": _nullable_text("Free markdown."),
        "refs": nullable(_list(_REF, "Places in the code.")),
        "diagrams": nullable(_list(_DIAGRAM, "Drawings.")),
    },
    required=("key", "title"),
    description="One part of the pack.",
)
_low, _high = NAME_BYTES

DOCUMENT: Schema = closed_object(
    {
        "name": _nullable_text(
            f"A name to find it by, {_low} to {_high} bytes, unique, not like an id; cannot be changed."
        ),
        "title": _nullable_text("The heading."),
        "brief": _nullable_text("The scope in a sentence or two."),
        "tags": _list({"type": "string"}, "Free words."),
        "ttl_minutes": nullable(
            integer(
                "Lifetime from now. A new pack has 24 hours; an update without it keeps the deadline.",
                1,
                MAX_TTL_MINUTES,
            )
        ),
        "status": {
            "type": "string",
            "enum": list(STATUS),
            "description": "draft when omitted. finalized needs scope and findings with content, a section qa with a "
            "verdict ('verdict: pass'), and refs that lead to existing lines.",
        },
        "sections": _list(_SECTION, "The content, all of it: a write replaces the whole pack."),
        **{name: {"description": "Read-only, from an answer; ignored.", "readOnly": True} for name in READ_ONLY},
    },
    required=("sections",),
    description="The whole content of the pack. What get or write returned can be sent back as it is.",
)

# --- answers ----------------------------------------------------------------------------------------------------------

_TIMES = {
    "expires_at": text("RFC 3339, UTC."),
    "ttl_remaining_seconds": {"type": "integer", "minimum": 0},
    "ttl_remaining_human": text("expired, <1m, 5m, 23h, 4d."),
    "ttl_remaining": text("The same."),
    "freshness_state": {"type": "string", "enum": list(FRESHNESS)},
}

PACK_ROW: Schema = {
    "type": "object",
    "properties": {
        "id": {"type": ["string", "null"]},
        "name": {"type": ["string", "null"]},
        "title": {"type": ["string", "null"]},
        "status": {"type": "string", "enum": list(STATUS)},
        "revision": {"type": "integer", "minimum": 1},
        "updated_at": text("RFC 3339, UTC."),
        **_TIMES,
    },
    "required": ["id", "name", "title", "status", "revision", "updated_at", "expires_at"],
}

PACK: Schema = {
    "type": "object",
    "properties": {
        **PACK_ROW["properties"],
        "schema_version": {"type": "integer"},
        "brief": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "created_at": text("RFC 3339, UTC."),
        "sections": {"type": "array", "items": {"type": "object", "required": ["key", "title", "refs", "diagrams"]}},
        "digest": text("SHA-256 of the stored revision."),
        "validated_only": {"const": True, "description": "Nothing was stored; a new pack has no id."},
        "moved_refs": _list({"type": "object"}, "Refs whose lines stand elsewhere now."),
        "unanchored_refs": _list(
            closed_object(
                {"section_key": text("Its section."), "ref_key": text("The ref."), "reason": text("Why.")},
                required=("section_key", "ref_key", "reason"),
            ),
            "Refs of a draft whose lines are not there: they cannot be followed when the code changes.",
        ),
    },
    "required": [*PACK_ROW["required"], "schema_version", "brief", "tags", "created_at", "sections"],
}

LEFT_OUT: Schema = _list(
    {"type": "string"}, "There when the answer would be too large: what is only in the text content."
)

ERROR: Schema = {
    "error": {"const": True, "description": "There when the call failed."},
    "kind": text("validation, not_found, conflict, invalid_state, io_error, ..."),
    "code": text("invalid_data, not_found, ambiguous, revision_conflict, finalize_validation, ..."),
    "message": text("For people."),
    "request_id": {"type": ["string", "null"]},
    "details": {"type": "object", "description": "Guidance for machines: what was wrong, what is allowed instead."},
}


# --- tools ------------------------------------------------------------------------------------------------------------

_IDENTITY = {
    "id": nullable(text("The pack: its id, pk_ and eight of a-z2-7. Wins over name.")),
    "name": nullable(text("The pack, by its name. A finalized one is preferred, then the one updated last.")),
}


def _choice(choices: tuple[str, ...], description: str) -> Schema:
    return nullable(text(description, enum=list(choices)))


_FILTER = {
    "status": _choice(STATUS, "list: only packs of this status."),
    "freshness": _choice(
        FRESHNESS,
        "list: only packs in this state; expired ones are hidden unless asked for. get, read: refuse a pack in another "
        "state.",
    ),
    "query": nullable(text("list: a text that title, name or brief contains, whatever its case.")),
}


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
    "inputSchema": closed_object(
        {
            "action": _choice(("list", "get", "write", "ttl", "delete"), "What to do; list when omitted."),
            **_IDENTITY,
            "document": nullable(DOCUMENT),
            "expected_revision": _number("write (update) and ttl: the revision that you read. Required there.", 1),
            "validate_only": {"type": "boolean", "description": "write: check everything, store nothing."},
            "ttl_minutes": _number("ttl: the new lifetime, from now.", 1, MAX_TTL_MINUTES),
            "extend_minutes": _number("ttl: added to the deadline.", 1, MAX_TTL_MINUTES),
            **_FILTER,
            "limit": _number("list: at most so many, at least 0.", 0),
            "offset": _number("list: leave out so many first.", 0),
        }
    ),
    "outputSchema": closed_object(
        {
            "action": text("What was done."),
            "payload": {
                "description": "get, write and ttl: the pack. list and delete: as named.",
                "anyOf": [
                    PACK,
                    closed_object(
                        {
                            "count": {"type": "integer", "description": "How many are here."},
                            "total": {"type": "integer", "description": "How many there are."},
                            "packs": {"type": "array", "items": PACK_ROW},
                        },
                        required=("count", "total", "packs"),
                    ),
                    closed_object(
                        {"id": text("The pack."), "deleted": {"type": "boolean"}}, required=("id", "deleted")
                    ),
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
    "inputSchema": closed_object(
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
        }
    ),
    "outputSchema": closed_object(
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
