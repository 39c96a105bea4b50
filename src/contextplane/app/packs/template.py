"""Templates: a new context pack to begin from, and a request to compile it with."""

import os
from typing import ClassVar

import msgspec

from contextplane.adapters.files.disk import Disk, storage_errors, write_atomically
from contextplane.app.packs.files import is_yaml
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value
from contextplane.ports.objects import StorageFailed

__all__ = [
    "SCHEMA_PATH",
    "DraftedPack",
    "PackFileExists",
    "describe_request",
    "template_text",
    "write_request_template",
    "write_service_template",
    "write_table_template",
    "write_template",
]


_FOLDER = os.path.join(os.path.dirname(__file__), "starting_points")
_PACK, _REQUEST = "support_refund.yaml", "support_refund_request.yaml"
_TABLE = "support_refund.test.yaml"
_SCHEMA = "context-pack.v2.schema.json"

_MODE, _CEILING = "stream", "destructive"
_MODES = {
    "stream": "events are streamed to the caller while tools are called",
    "batch": "the caller gets one answer at the end",
    "long_running": "a durable session with progress events, kept alive by heartbeats for hours",
}
_DELEGATION = "It acts for a user, so run_context.user.delegation is required, and a claim needs tools:write"
_CEILINGS = {
    "read_only": "only tools that read are surfaced. No delegation is needed",
    "local_write": "tools up to local_write are surfaced. No delegation is needed",
    "network": "tools up to network are surfaced. No delegation is needed",
    "delegated": f"tools up to delegated are surfaced. {_DELEGATION}",
    "destructive": f"every tool that policy leaves may be surfaced. {_DELEGATION}",
}
"""What each mode and each ceiling implies, from the lowest up."""

SCHEMA_PATH = f".ctx-schemas/{_SCHEMA}"
"""The JSON Schema of packs, beside a YAML template: its first line names it, for editors."""


class PackFileExists(ContextPlaneError):
    """A new pack would replace a file that is there."""

    code: ClassVar[str] = "pack_file_exists"
    family: ClassVar[Family] = "conflict"


def template_text(*, as_yaml: bool, name: str = _PACK, mode: str = _MODE, safety_mode: str = _CEILING) -> bytes:
    """Return the text of the template pack, or of the request: with comments in YAML, without in JSON."""
    with open(os.path.join(_FOLDER, name), "rb") as file:
        text = file.read()
    if name == _REQUEST:
        text = text.replace(f"\n  mode: {_MODE} ".encode(), f"\n  mode: {mode} ".encode())
        text = text.replace(f"\n  safety_mode: {_CEILING} ".encode(), f"\n  safety_mode: {safety_mode} ".encode())
    if as_yaml:
        return text
    return _to_json(text)


def write_template(path: str) -> bool:
    """Write the template pack to a file, YAML or JSON by its extension; return whether the file is new.

    A file with any other text is never replaced. The copy of the schema beside a YAML file is: it is ours.
    """
    text = template_text(as_yaml=is_yaml(path))
    new = _is_new(path, text)
    if is_yaml(path):
        _write_schema(path)
    return _write(path, text, new=new)


def write_request_template(path: str, *, mode: str = _MODE, safety_mode: str = _CEILING) -> bool:
    """Write a request to compile the template pack with; return whether the file is new.

    `mode`: how the caller gets the answer. `safety_mode`: the ceiling of the run.
    """
    text = template_text(as_yaml=is_yaml(path), name=_REQUEST, mode=mode, safety_mode=safety_mode)
    return _write(path, text, new=_is_new(path, text))


def write_table_template(path: str) -> bool:
    """Write a table of tests for the template pack; return whether the file is new."""
    text = template_text(as_yaml=is_yaml(path), name=_TABLE)
    return _write(path, text, new=_is_new(path, text))


def _to_json(text: bytes) -> bytes:
    from contextplane.authoring.yaml_reader import read_yaml_file

    return msgspec.json.format(msgspec.json.encode(read_yaml_file(text).value), indent=2) + b"\n"


class DraftedPack(Value, frozen=True):
    """A pack that was drafted from a service: what was not taken over, and what lint says of it."""

    new: bool
    capabilities: int
    left_out: tuple[str, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]


def write_service_template(path: str, kind: str, source: str, *, trust_hints: bool = False) -> DraftedPack:
    """Write a pack that is drafted from a service, and lint it.

    `kind`: `openapi` with a description as its source, or `mcp` with the configuration of a client. The draft allows
    nothing until its author writes a rule.
    """
    from contextplane.adapters.system import SystemClock
    from contextplane.app.packs.files import read_author_file
    from contextplane.app.packs.lint import lint_file
    from contextplane.app.packs.service import render_pack

    document = read_author_file(source).value
    if kind == "mcp":
        from contextplane.app.packs.mcp_tools import draft_from_mcp

        draft = draft_from_mcp(document, at=source, trust_hints=trust_hints)
    else:
        from contextplane.app.packs.openapi import draft_from_openapi

        draft = draft_from_openapi(document, at=source)
    created = f"{SystemClock().now().date().isoformat()}T00:00:00Z"
    text = render_pack(draft, created=created, schema_path=SCHEMA_PATH).encode()
    data = text if is_yaml(path) else _to_json(text)
    new = _is_new(path, data)
    if is_yaml(path):
        _write_schema(path)
    _write(path, data, new=new)
    findings = [placed.finding for placed in lint_file(path).placed]
    return DraftedPack(
        new=new,
        capabilities=sum(len(adapter.capabilities) for adapter in draft.adapters),
        left_out=draft.left_out,
        errors=tuple(f"{finding.code}: {finding.at}" for finding in findings if finding.severity == "error"),
        warnings=tuple(f"{finding.code}: {finding.at}" for finding in findings if finding.severity == "warning"),
    )


def describe_request(mode: str, safety_mode: str) -> tuple[str, ...]:
    """Describe what a request with this mode and this ceiling implies for its run."""
    return (f"mode {mode}: {_MODES[mode]}", f"safety_mode {safety_mode}: {_CEILINGS[safety_mode]}")


def _is_new(path: str, text: bytes) -> bool:
    """Whether there is no such file. Refuses a file with other text, a folder, and a path into no folder."""
    if not os.path.lexists(path):
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            raise StorageFailed("there is no such folder", at=folder, hint="make the folder first")
        return True
    if os.path.isdir(path):
        raise PackFileExists("it is a folder", at=path, hint="name a file in it, such as refunds.yaml")
    if not _has_text(path, text):
        raise PackFileExists("the file exists, with other contents", at=path, hint="name another file")
    return False


def _write(path: str, text: bytes, *, new: bool) -> bool:
    if new:
        folder = os.path.dirname(os.path.abspath(path))
        with storage_errors(path):
            write_atomically(os.path.abspath(path), text, staging=folder, disk=Disk())
    return new


def _write_schema(path: str) -> None:
    """Write the schema of packs into the folder that the first line of the template at `path` names."""
    from importlib.resources import files

    text = files("contextplane").joinpath("schemas", _SCHEMA).read_bytes()
    schema = os.path.join(os.path.dirname(os.path.abspath(path)), SCHEMA_PATH)
    if _has_text(schema, text):
        return
    folder = os.path.dirname(schema)
    with storage_errors(schema):
        if not os.path.isdir(folder):
            os.mkdir(folder)
        write_atomically(schema, text, staging=folder, disk=Disk())


def _has_text(path: str, text: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(text) + 1) == text
    except OSError:
        return False
