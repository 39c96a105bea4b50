"""An execution pack's manifest: what one run consists of, by reference.

Ours are canonical JSON. Those that others stored are read as they are: unknown fields are ignored here and kept in the
bytes, which are what the hash is of.
"""

import re
from typing import Any, ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.canonical import SORTED, Json, canonical
from contextplane.model.execution import MANIFEST_MOST
from contextplane.model.form_problems import form_problems
from contextplane.model.ids import Digest
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.problems import Problem
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
    "entry_of",
    "filled_in",
    "manifest_bytes",
    "read_manifest",
]

VERSION = "0.1"

_EMPTY_HASH = b'"hash":""'
_FREE = frozenset({"parameters", "tool_versions"})
_REFS = frozenset({"content_ref", "output_ref", "system_prompt", "parent"})
_DIGEST_LENGTH = len("sha256:") + 64
_HINT = "'ctx cat' shows its bytes"
_TOLD = 10


class ManifestInvalid(ContextPlaneError):
    """The bytes of an execution pack are whole, and are no manifest."""

    code: ClassVar[str] = "manifest_invalid"
    family: ClassVar[Family] = "refused"

    @property
    def place(self) -> str | None:
        """The pack: where in it something is wrong is told in the message, of each problem."""
        return self.at.partition("#")[0] if self.at and "problems" in self.details else self.at


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


_UPPER_CASE = re.compile(rb'"sha256:[0-9a-f]*[A-F]')
_decoder = msgspec.json.Decoder(Manifest)


def read_manifest(data: bytes) -> Manifest:
    """Read a stored manifest leniently: unknown fields are passed over, lists that are null are empty."""
    try:
        if not _UPPER_CASE.search(data):
            return _decoder.decode(data)  # as we write them ourselves
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # another's form, or none: the slow way tells
    try:
        value = _settled(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestInvalid("not a manifest: its bytes are not JSON", hint=_HINT) from error
    try:
        return msgspec.convert(value, Manifest)
    except msgspec.ValidationError as error:
        raise _explained(tuple(form_problems(value, Manifest))) from error


def _explained(problems: tuple[Problem, ...]) -> ManifestInvalid:
    """Each with its place, in the message: a list shows that and nothing else of an error."""
    told = "; ".join(f"{one.at}: {one.message}" if one.at else one.message for one in problems[:_TOLD])
    more = f"; and {len(problems) - _TOLD:,} more" if len(problems) > _TOLD else ""
    return ManifestInvalid(
        f"not a manifest: {told}{more}",
        at=f"#{problems[0].at}",
        hint=_HINT,
        details={"problems": [{"at": one.at, "message": one.message} for one in problems]},
    )


def _settled(value: Any) -> Any:  # noqa: ANN401  whatever others wrote
    """What others wrote, as we write it; free-form parameters stay as they are.

    A null leaves a field as it is, a whole float is that integer, and a digest in upper case names the same bytes.
    """
    if isinstance(value, dict):
        return {
            key: one if key in _FREE else one.lower() if key in _REFS and _is_digest(one) else _settled(one)
            for key, one in value.items()
            if one is not None
        }
    if isinstance(value, list):
        return [_settled(one) for one in value if one is not None]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and len(text) == _DIGEST_LENGTH and text.startswith("sha256:")


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


class _Hash(msgspec.Struct, frozen=True):
    hash: str


def entry_of(data: bytes, digest: Digest) -> bytes:
    """What the registry entry of a stored manifest holds: the same bytes with its own hash filled in."""
    filled = data.replace(_EMPTY_HASH, b'"hash":"%b"' % str(digest).encode(), 1)
    try:
        if msgspec.json.decode(filled, type=_Hash).hash == str(digest):
            return filled
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # not as we write them, or another field of this name stands before it
    return filled_in(data, digest)


def filled_in(data: bytes, digest: Digest) -> bytes:
    """A stored manifest with its own hash filled in: what people are shown.

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
