"""An execution pack's manifest: what one run consists of, by reference.

Ours are canonical JSON. Those that others stored are read as they are: unknown fields are ignored here and kept in the
bytes, which are what the hash is of.
"""

from typing import Any, ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import SORTED, Json, JsonRefused, canonical
from contextplane.model.execution import MANIFEST_MOST
from contextplane.model.ids import Digest
from contextplane.model.value import Value

__all__ = [
    "VERSION",
    "Environment",
    "Input",
    "Manifest",
    "ManifestInvalid",
    "Model",
    "Output",
    "Prompt",
    "Step",
    "filled_in",
    "manifest_bytes",
    "read_manifest",
]

VERSION = "0.1"


class ManifestInvalid(ContextPlaneError):
    """The bytes of an execution pack are whole, and are no manifest."""

    code: ClassVar[str] = "manifest_invalid"
    family: ClassVar[Family] = "refused"


class Model(Value, frozen=True):
    identifier: str = ""
    parameters: dict[str, Any] | None = None


class Prompt(Value, frozen=True):
    content_ref: str
    role: str = ""


class Input(Value, frozen=True):
    content_ref: str
    name: str = ""
    size: int = 0


class Step(Value, frozen=True):
    """One action. `output_ref` is empty when it had no output; `tool` may be only when it is reasoning."""

    index: int = 0
    type: str = ""
    tool: str = ""
    parameters: dict[str, Any] | None = None
    output_ref: str = ""
    deterministic: bool = False
    timestamp: str = ""


class Output(Value, frozen=True):
    content_ref: str
    name: str = ""


class Environment(Value, frozen=True):
    os: str = ""
    runtime: str = ""
    tool_versions: dict[str, str] | None = None


class Manifest(Value, frozen=True):
    """The fields of the specification, and no others. `hash` is empty in what is stored: it cannot contain itself."""

    created: str
    model: Model
    system_prompt: str
    environment: Environment
    version: str = VERSION
    hash: str = ""
    prompts: tuple[Prompt, ...] = ()
    inputs: tuple[Input, ...] = ()
    steps: tuple[Step, ...] = ()
    outputs: tuple[Output, ...] = ()
    parent: str = ""


def read_manifest(data: bytes) -> Manifest:
    """Read a stored manifest leniently: unknown fields are passed over, lists that are null are empty."""
    try:
        value = msgspec.json.decode(data)
        return msgspec.convert(_without_nulls(value), Manifest)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestInvalid(f"not a manifest: {error}", hint="'ctx cat' shows its bytes") from error


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  whatever others wrote
    """A null leaves a field as it is; a whole float is that integer. Free-form parameters stay as they are."""
    if isinstance(value, dict):
        free = ("parameters", "tool_versions")
        kept = {key: one for key, one in value.items() if one is not None}
        return {key: one if key in free else _without_nulls(one) for key, one in kept.items()}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value if one is not None]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def manifest_bytes(manifest: Manifest) -> bytes:
    """What is stored and hashed: canonical, `hash` empty, `parent` only when there is one."""
    fields: dict[str, Json] = msgspec.to_builtins(manifest)
    fields["hash"] = ""
    if not manifest.parent:
        del fields["parent"]
    data = canonical(fields)
    if len(data) > MANIFEST_MOST:
        raise ManifestInvalid(
            f"a manifest of {len(data):,} bytes: at most {MANIFEST_MOST:,} are read back",
            hint="put large parameters into contents",
        )
    return data


def filled_in(data: bytes, digest: Digest) -> bytes:
    """A stored manifest with its own hash filled in: what people are shown, and what the registry entry holds.

    Canonical where it can be; others stored numbers that have no canonical form.
    """
    fields = msgspec.json.decode(data)
    if not isinstance(fields, dict):
        return data
    fields["hash"] = str(digest)
    try:
        return canonical(fields)
    except JsonRefused:
        return SORTED.encode(fields)
