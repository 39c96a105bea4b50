"""The published JSON Schemas: the forms of the types, with a description of every member.

A type says what its members are in its docstring, in a line for each: the name in backquotes, a colon, the text. The
schema of an execution log is written out here, because a log is read by hand; a test compares the reader with it.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import NamedTuple

import msgspec

from contextplane.app.handoff.contract import READ_ONLY
from contextplane.authoring.gates.schema import SCHEMAS, schema_of
from contextplane.compiler.case import CompileCase
from contextplane.evaluation.case_table import CaseTable
from contextplane.mcp.schemas import DOCUMENT, Schema, text
from contextplane.model.context_pack import Moment
from contextplane.model.invoke import InvokeRequest
from contextplane.model.value import Value

__all__ = ["PUBLISHED", "PublishedSchema", "member_texts", "undescribed_members"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_CONDITIONS = {"not", "if", "then", "else"}
"""Keywords whose schemas describe no member, but narrow one that is described elsewhere."""

_MEMBER = re.compile(r"^`(\w+)`: ")


class PublishedSchema(NamedTuple):
    """A kind of document: its name in files, its title, a line about it, and what makes its schema."""

    name: str
    title: str
    description: str
    make: Callable[[], Schema]

    @property
    def file(self) -> str:
        return f"{self.name}.schema.json"

    def render(self) -> Schema:
        """Return the whole schema, with its dialect and its name."""
        head = {"$schema": _DIALECT, "$id": f"urn:contextplane:{self.name}"}
        schema = {key: value for key, value in self.make().items() if key not in head}
        return {**head, **schema, "title": self.title, "description": self.description}


# --- descriptions of members ---


def member_texts(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its text, and the text of each member."""
    text: list[str] = []
    members: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(docstring).splitlines():
        if match := _MEMBER.match(line):
            name = match[1]
            members[name] = line[match.end() :]
        elif name and line:
            members[name] += f" {line}"
        elif line or not name:
            text.append(line)
        else:
            name = ""
    return "\n".join(text).strip(), members


def _types_by_name() -> dict[str, type[Value]]:
    def below(cls: type[Value]) -> Iterator[type[Value]]:
        for child in cls.__subclasses__():
            yield child
            yield from below(child)

    return {cls.__name__: cls for cls in below(Value) if cls.__module__.startswith("contextplane.")}


def _describe(schema: Schema) -> Schema:
    """Add the texts of the docstrings to the definitions of a schema."""
    types = _types_by_name()
    for name, definition in schema["$defs"].items():
        cls = types[name]
        text, members = member_texts(cls.__doc__ or "")
        definition["description"] = text
        encoded = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
        for field, member in members.items():
            if encoded[field] not in definition["properties"]:
                continue  # on the wire, further claims have no name of their own
            part = definition["properties"][encoded[field]]
            # The text of the type (an id, a version) tells the form; that of the member tells the meaning.
            part["description"] = " ".join(filter(None, (member, part.get("description"))))
    return schema


def undescribed_members(schema: Schema) -> Iterator[str]:
    """Yield the places of members that have no description, in the whole schema."""

    def walk(part: object, at: str) -> Iterator[str]:
        if isinstance(part, dict):
            properties = part.get("properties")
            if isinstance(properties, dict):
                for name, member in properties.items():
                    if not (isinstance(member, dict) and member.get("description")):
                        yield f"{at}/properties/{name}"
            for key in part.keys() - _CONDITIONS:
                yield from walk(part[key], f"{at}/{key}")
        elif isinstance(part, list):
            for n, value in enumerate(part):
                yield from walk(value, f"{at}/{n}")

    yield from walk(schema, "")


# --- schemas of types ---


def _of_type(document: type[msgspec.Struct]) -> Schema:
    copy: Schema = msgspec.json.decode(msgspec.json.encode(schema_of(document)))
    return _describe(copy)


def _of_inputs(document: type[msgspec.Struct]) -> Schema:
    """Return the schema of what a caller sends: claims without a field of their own stand beside the others."""
    made = msgspec.json.schema(document, schema_hook=_moment)
    schema: Schema = msgspec.json.decode(msgspec.json.encode(made).replace(rb"\\Z", b"$"))
    del schema["$defs"]["UserClaims"]["properties"]["further"]
    schema["$defs"]["UserClaims"]["additionalProperties"] = True
    schema["$defs"][document.__name__]["additionalProperties"] = False
    schema["$defs"].pop("Timestamp", None)
    text = msgspec.json.encode(schema).replace(b'{"$ref":"#/$defs/Timestamp"}', msgspec.json.encode(_MOMENT))
    return _describe(msgspec.json.decode(text))


def _moment(_type: type) -> Schema:
    return _MOMENT


_MOMENT: Schema = {
    **msgspec.json.schema(Moment),
    "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,64})?(Z|[+-][0-9]{2}:[0-9]{2})$",
}


# --- forms for editors: closed, and a member that may be null has two types ---


def closed_object(properties: Schema, *, required: tuple[str, ...] = (), **more: object) -> Schema:
    """Return the schema of an object with these members and no other."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False, **more}
    return {**schema, "required": list(required)} if required else schema


def nullable(schema: Schema) -> Schema:
    """Return the schema, or null, which counts as left out."""
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **choices}


def _for_editors(schema: Schema) -> Schema:
    """Return a schema of the tools in the forms for editors."""
    match schema:
        case {"anyOf": [value, {"type": "null"}]}:
            return nullable(_for_editors(value))
        case {"type": "object", "properties": members}:
            return {
                **schema,
                "properties": {name: _for_editors(member) for name, member in members.items()},
                "additionalProperties": False,
            }
        case {"items": items}:
            return {**schema, "items": _for_editors(items)}
    return schema


def _read_only(whence: str) -> Schema:
    return {"description": f"Read-only, from {whence}; ignored.", "readOnly": True}


_LINES = closed_object(
    {
        "start": {"type": "integer", "minimum": 1, "description": "First line."},
        "end": {"type": "integer", "minimum": 1, "description": "Last line, included."},
    },
    required=("start", "end"),
    description="The same range in the form that get returns; instead of line_start and line_end.",
)


def _handoff_document() -> Schema:
    """Return the schema of a document: what a reader accepts, null and the fields of answers of `get` included."""
    schema = _for_editors(DOCUMENT)
    members = schema["properties"]
    members |= {name: nullable(members[name]) for name in ("tags", "status")}
    members |= {name: _read_only("an answer") for name in READ_ONLY}
    parts = members["sections"]["items"]["properties"]
    ref = parts["refs"]["items"]
    parts |= {name: nullable(parts[name]) for name in ("refs", "diagrams")}
    ref["properties"]["anchor"] = _read_only("get")
    ref["properties"]["lines"] = nullable(_LINES)
    ref["anyOf"] = [{"required": ["line_start", "line_end"]}, {"required": ["lines"]}]
    return schema


# --- the execution log ---


def _free(description: str) -> Schema:
    return nullable({"type": "object", "description": description})


def _listed(items: Schema, description: str) -> Schema:
    return nullable({"type": "array", "items": items, "description": description})


def _time(description: str) -> Schema:
    return nullable({**_MOMENT, "description": f"{description} {_MOMENT['description']}"})


def _file(of: str, *, named: bool) -> Schema:
    forms = {
        "content": nullable(text(f"The {of}, as text.")),
        "content_base64": nullable(text(f"The {of}, in base64, for bytes that are no text.")),
        "path": nullable(text(f"A file that holds the {of}, below the folder of the log.")),
    }
    if not named:
        forms["handoff"] = nullable(text("A revision of a handoff pack that the run read: pk_<id>@<revision>."))
    name = text(f"The name of the {of}.", minLength=1) if named else nullable(text(f"The name of the {of}."))
    present = {key: {"not": {"type": "null"}} for key in forms}
    twice = [
        {"not": {"type": "object", "required": [a, b], "properties": {a: present[a], b: present[b]}}}
        for a, b in combinations(forms, 2)
    ]
    return closed_object(
        {"name": name, **forms},
        required=("name",) if named else (),
        allOf=twice,
        description=f"An {of} of the run. Only one member may hold its content.",
    )


def _execution_log() -> Schema:
    step = closed_object(
        {
            "index": nullable({"type": "integer", "description": "The number of the step; by default its position."}),
            "type": text("What the step is, such as tool_call. A step of type reasoning needs no tool.", minLength=1),
            "tool": nullable(text("The tool that was called. Required unless the type is reasoning.")),
            "parameters": _free("The arguments of the call."),
            "output": nullable(text("What the step gave, as text.")),
            "deterministic": nullable(
                {"type": "boolean", "description": "Whether the same call gives the same output; false by default."}
            ),
            "timestamp": _time("When the step ended."),
        },
        required=("type",),
        description="A step of the run: a call of a tool, or reasoning.",
    )
    step["if"] = {"properties": {"type": {"const": "reasoning"}}}
    step["else"] = {"required": ["tool"], "properties": {"tool": {"type": "string", "minLength": 1}}}
    prompt = closed_object(
        {"role": nullable(text("Who speaks, such as user.")), "content": nullable(text("What is said."))},
        description="A message of the conversation.",
    )
    model = closed_object(
        {
            "identifier": text("The model, as its provider names it.", minLength=1),
            "parameters": _free("What the model was called with, such as its temperature."),
        },
        required=("identifier",),
        description="The model that ran.",
    )
    environment = closed_object(
        {
            "os": text("The operating system.", minLength=1),
            "runtime": text("What ran the agent, such as python-3.12.", minLength=1),
            "tool_versions": nullable(
                {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "The version of each tool, by its name.",
                }
            ),
        },
        required=("os", "runtime"),
        description="Where the run took place.",
    )
    return closed_object(
        {
            "created": _time("When the run ended; by default the time of its newest step."),
            "model": model,
            "system_prompt": text("The system prompt of the run.", minLength=1),
            "prompts": _listed(nullable(prompt), "The messages, in their order."),
            "inputs": _listed(nullable(_file("input", named=False)), "What the run read, in its order."),
            "steps": _listed(step, "What the run did, in its order."),
            "outputs": _listed(_file("output", named=True), "What the run made."),
            "environment": environment,
        },
        required=("model", "system_prompt", "environment"),
    )


# --- the table ---

_ABOUT = {
    "context-pack.v2": (
        "Context pack",
        "The contract of an agent, in up to eleven layers; ctx lint checks it.",
    ),
    "overlay.v1": ("Overlay", "Changes to a pack for one environment, which may only constrain; ctx lint checks it."),
    "decision-catalog.v1": ("Decision catalog", "Intents, plans and decisions that packs share; ctx lint checks it."),
    "environment.v1": ("Environment", "The description of an environment; ctx lint --environment reads it."),
    "compiled-context.v1": ("Compiled context", "What a model sees and may do; ctx compile --json prints it."),
}

PUBLISHED: tuple[PublishedSchema, ...] = (
    *(
        PublishedSchema(name, *_ABOUT[name], partial(_of_type, document))
        for name, document in ((file.removesuffix(".schema.json"), document) for file, document in SCHEMAS.items())
    ),
    PublishedSchema(
        "compile-case.v1",
        "Compile case",
        "A request with all that is compiled with it; ctx compile --request reads it.",
        partial(_of_inputs, CompileCase),
    ),
    PublishedSchema(
        "invoke-request.v1",
        "Invoke request",
        "The bare invokeAgent envelope; ctx compile --request reads it too.",
        partial(_of_inputs, InvokeRequest),
    ),
    PublishedSchema(
        "test-table.v1",
        "Table of tests",
        "Requests in a few lines each, with what must come of them; ctx test runs it.",
        partial(_of_type, CaseTable),
    ),
    PublishedSchema(
        "execution-log.v1",
        "Execution log",
        "A run as an agent loop logs it; ctx pack stores it.",
        _execution_log,
    ),
    PublishedSchema(
        "handoff-document.v1",
        "Handoff document",
        "What an agent passes on to another one; the MCP tool input writes it.",
        _handoff_document,
    ),
)
"""Every schema that is published, each in a file of its own."""
