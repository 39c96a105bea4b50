"""Reads an OpenAPI description, 3.0 or 3.1, into a draft: a capability for each operation.

The mode follows the method, to the higher side: GET and HEAD read, POST, PUT and PATCH go over the network, DELETE is
destructive. References within the document are resolved; where they go in circles, they are cut.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from contextplane.app.packs.service import ServiceAdapter, ServiceCapability, ServiceDraft, identifier, sentence
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.json.canonical import Json
from contextplane.model.terms import ApprovalMode

__all__ = ["OpenApiUnusable", "draft_from_openapi"]

_MODES: dict[str, ApprovalMode] = {
    "get": "read_only",
    "head": "read_only",
    "options": "read_only",
    "post": "network",
    "put": "network",
    "patch": "network",
    "delete": "destructive",
}
_OF_PATH = frozenset({"parameters", "summary", "description", "servers", "$ref"})
_OF_TRANSPORT = frozenset({"accept", "content-type", "authorization"})
_NOT_SCHEMA = frozenset({"example", "discriminator", "xml", "externalDocs", "nullable"})
"""Keywords of OpenAPI that a JSON Schema does not have, or has in another form."""

_NOT_TAKEN = {
    "webhooks": "the service calls those, not the agent",
    "security": "credentials belong into the endpoint registry",
    "servers": "addresses belong into the endpoint registry",
}
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_DEEPEST = 40
_MOST_PARTS = 5_000
"""How many parts the schemas of an operation have at most: references written out may grow without bound."""


class OpenApiUnusable(ContextPlaneError):
    """The document is no OpenAPI description of version 3.0 or 3.1, or it describes no operation."""

    code: ClassVar[str] = "openapi_unusable"
    family: ClassVar[Family] = "refused"


def draft_from_openapi(document: Json, *, at: str) -> ServiceDraft:
    """Draft the adapter of a service from its OpenAPI description."""
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith(("3.0", "3.1")):
        old = isinstance(document, dict) and "swagger" in document
        raise OpenApiUnusable(
            "this is Swagger 2.0, not OpenAPI 3" if old else "this is no OpenAPI description of version 3.0 or 3.1",
            at=at,
            hint="convert it to OpenAPI 3.0 or 3.1" if old else "its member openapi must begin with 3.0 or 3.1",
        )
    info = document.get("info")
    title = sentence(info.get("title") if isinstance(info, dict) else "", "service")
    name = identifier(title.lower(), longest=40)
    reader = _Reader(document)
    capabilities = tuple(reader.capabilities())
    if not capabilities:
        raise OpenApiUnusable("it describes no operation", at=f"{at}#/paths", hint="name a document with paths")
    adapter = ServiceAdapter(name=name, type="OPENAPI", capabilities=capabilities)
    return ServiceDraft(name=name, title=title, adapters=(adapter,), left_out=tuple(dict.fromkeys(reader.left_out)))


class _Reader:
    """Reads the operations of a document, and notes what it leaves out."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._names: list[str] = []
        self._parts = 0
        self.left_out = [f"{key}: {why}" for key, why in _NOT_TAKEN.items() if document.get(key)]
        if isinstance(document.get("components"), dict) and document["components"].get("securitySchemes"):
            self.left_out.append(f"components.securitySchemes: {_NOT_TAKEN['security']}")

    def capabilities(self) -> Iterator[ServiceCapability]:
        """Yield a capability for each operation, in the order of the document."""
        paths = self._document.get("paths")
        for path, entry in paths.items() if isinstance(paths, dict) else ():
            item = self._resolve(entry, f"{path}")
            if not isinstance(item, dict):
                self.left_out.append(f"{path}: it is no object")
                continue
            shared = item.get("parameters")
            for method, operation in item.items():
                if method in _MODES and isinstance(operation, dict):
                    yield self._capability(path, method, operation, shared if isinstance(shared, list) else [])
                elif method not in _OF_PATH and not method.startswith("x-"):
                    self.left_out.append(f"{method.upper()} {path}: a method that is not taken over")

    def _capability(self, path: str, method: str, operation: dict[str, Any], shared: list[Any]) -> ServiceCapability:
        origin = f"{method.upper()} {path}"
        self._parts = 0
        own_name = operation.get("operationId")
        name = identifier(own_name if isinstance(own_name, str) else f"{method} {path}", self._names)
        self._names.append(name)
        notes = ["it is deprecated"] if operation.get("deprecated") is True else []
        if isinstance(own_name, str) and name != own_name:
            notes.append(f"its operationId is {own_name[:100]}")
        own = operation.get("parameters")
        properties, required, header = self._parameters([*shared, *(own if isinstance(own, list) else [])], origin)
        if "requestBody" in operation:
            body = self._body(operation["requestBody"], origin)
            if body is None:
                notes.append("its body is not taken over, so it cannot be called like this")
            else:
                schema, is_required = body
                properties["body"] = schema
                required += ["body"] if is_required else []
        self.left_out += [f"{origin}: {key}" for key in ("callbacks", "security", "servers") if operation.get(key)]
        return ServiceCapability(
            name=name,
            origin=origin,
            approval_mode=_MODES[method],
            description=sentence(operation.get("summary"), operation.get("description")),
            input_schema={
                "type": "object",
                "properties": properties,
                **({"required": required} if required else {}),
                "additionalProperties": False,
            },
            idempotency_header=header,
            notes=tuple(notes),
        )

    def _parameters(self, entries: list[Any], origin: str) -> tuple[dict[str, Any], list[str], str | None]:
        """Return the schema of each parameter, the names of the required ones, and the idempotency header."""
        merged: dict[tuple[str, str], dict[str, Any]] = {}
        for entry in entries:
            parameter = self._resolve(entry, origin)
            if isinstance(parameter, dict) and isinstance(parameter.get("name"), str):
                merged[parameter["name"], str(parameter.get("in"))] = parameter  # that of an operation comes last
            else:
                self.left_out.append(f"{origin}: a parameter without a name")
        properties: dict[str, Any] = {}
        required: list[str] = []
        header = None
        for (name, place), parameter in merged.items():
            if place == "cookie" or (place == "header" and name.lower() in _OF_TRANSPORT):
                self.left_out.append(f"{origin}: the {place} {name}, which is for the runtime")
                continue
            if place == "header" and name.lower() == "idempotency-key":
                header = name
                continue
            argument = name if name not in properties else identifier(f"{place}_{name}", properties)
            properties[argument] = self._parameter_schema(parameter, origin)
            if parameter.get("required") is True or place == "path":
                required.append(argument)
        return properties, required, header

    def _parameter_schema(self, parameter: dict[str, Any], origin: str) -> dict[str, Any]:
        schema = parameter.get("schema")
        content = parameter.get("content")
        if schema is None and isinstance(content, dict) and content:
            first = next(iter(content.values()))
            schema = first.get("schema") if isinstance(first, dict) else None
        plain = self._schema(schema if schema is not None else {}, origin)
        words = sentence(parameter.get("description"), plain.get("description"))
        return {**plain, **({"description": words} if words else {})}

    def _body(self, entry: object, origin: str) -> tuple[dict[str, Any], bool] | None:
        """Return the schema of a body, and whether it is required; None for one that cannot be taken over."""
        body = self._resolve(entry, origin)
        body = body if isinstance(body, dict) else {}
        content = body.get("content")
        content = content if isinstance(content, dict) else {}
        for media_type, media in content.items():
            base = media_type.partition(";")[0].strip().lower()
            if (base.endswith(("/json", "+json")) or base in _FORMS) and isinstance(media, dict):
                self.left_out += [f"{origin}: a body of {other}" for other in content if other != media_type]
                return self._schema(media.get("schema", {}), origin), body.get("required") is True
        self.left_out.append(f"{origin}: its body ({', '.join(content) or 'no content'})")
        return None

    # --- references and schemas ---

    def _resolve(self, value: object, origin: str) -> object:
        """Follow a reference within the document, at most 40 times."""
        for _ in range(_DEEPEST):
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                return value
            value = self._target(value["$ref"], origin)
        self.left_out.append(f"{origin}: a reference that leads to itself")
        return None

    def _target(self, ref: str, origin: str) -> object:
        if not ref.startswith("#/"):
            self.left_out.append(f"{origin}: the reference {ref[:200]}, which leads out of the document")
            return None
        part: Any = self._document
        for step in ref[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            part = part.get(key) if isinstance(part, dict) else None
            if part is None:
                self.left_out.append(f"{origin}: the reference {ref[:200]}, which leads nowhere")
                return None
        return part

    def _schema(self, value: object, origin: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return a JSON Schema with its references written out. A circle is cut, and accepts any object there."""
        if not isinstance(value, dict):
            return {} if value is not False else {"not": {}}
        self._parts += 1
        if self._parts > _MOST_PARTS:
            self.left_out.append(
                f"{origin}: what its schemas have beyond {_MOST_PARTS:,} parts; anything is accepted there"
            )
            return {}
        ref = value.get("$ref")
        if isinstance(ref, str):
            if ref in above or len(above) >= _DEEPEST:
                self.left_out.append(f"{origin}: what {ref[:200]} holds within itself; any object is accepted there")
                return {"type": "object"}
            beside = {key: part for key, part in value.items() if key != "$ref"}
            target = self._schema(self._target(ref, origin) or {}, origin, (*above, ref))
            return {**target, **self._schema(beside, origin, above)} if beside else target
        schema = {key: self._keyword(key, part, origin, above) for key, part in value.items() if _is_kept(key)}
        if "discriminator" in value:
            self.left_out.append(f"{origin}: a discriminator")
        return _modern(value, schema)

    def _keyword(self, key: str, part: Any, origin: str, above: tuple[str, ...]) -> Any:  # noqa: ANN401  any JSON
        if key in {"properties", "patternProperties", "$defs", "dependentSchemas"} and isinstance(part, dict):
            return {name: self._schema(schema, origin, above) for name, schema in part.items()}
        if key in {"allOf", "anyOf", "oneOf", "prefixItems"} and isinstance(part, list):
            return [self._schema(schema, origin, above) for schema in part]
        if key in {"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"}:
            return part if isinstance(part, bool) else self._schema(part, origin, above)
        return part


def _is_kept(key: str) -> bool:
    return key not in _NOT_SCHEMA and not key.startswith("x-")


def _modern(value: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of OpenAPI 3.0 in the form of JSON Schema: `nullable`, and bounds that are excluded."""
    if value.get("nullable") is True and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    for bound in ("minimum", "maximum"):
        excluded = f"exclusive{bound.capitalize()}"
        if isinstance(schema.get(excluded), bool) and schema.pop(excluded) and bound in schema:
            schema[excluded] = schema.pop(bound)
    return schema
