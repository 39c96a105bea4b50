"""The manifest of an execution pack: what one run consists of, by reference.

Manifests that we write are canonical JSON. Those that others stored are read as they are: unknown fields are ignored
here and stay in the bytes, which the hash is of. `find_references` decides what must not be collected, so it errs on
the side of keeping.
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution.references import MAX_MANIFEST_BYTES, VERSION
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import SORTED, Json, canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.problems import Problem, form_problems
from contextplane.model.value import Value

__all__ = [
    "Environment",
    "Input",
    "Manifest",
    "ManifestInvalid",
    "Model",
    "Output",
    "Prompt",
    "Step",
    "contents_of",
    "fill_in_hash",
    "manifest_bytes",
    "read_manifest",
    "registry_entry",
]


_EMPTY_HASH = b'"hash":""'
_FREE = frozenset({"parameters", "tool_versions"})
_REFS = frozenset({"content_ref", "output_ref", "system_prompt", "parent"})
_DIGEST_LENGTH = len("sha256:") + 64
_HINT = "'ctx cat' shows its bytes"
_MAX_LISTED = 10


class ManifestInvalid(ContextPlaneError):
    """The bytes of an execution pack are whole, and are no manifest."""

    code: ClassVar[str] = "manifest_invalid"
    family: ClassVar[Family] = "refused"

    @property
    def place(self) -> str | None:
        """Only the pack: each problem's place is in the message."""
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
    """One action. `output_ref` is empty without an output; only reasoning has an empty `tool`."""

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
    """The fields of the specification and no others. `hash` is empty in the stored form.

    A manifest cannot contain its own hash.
    """

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
    """Parse a stored manifest leniently: unknown fields are ignored, lists that are null are empty."""
    try:
        if not _UPPER_CASE.search(data):
            return _decoder.decode(data)  # as we write them ourselves
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # written by others, or no manifest: the slow path tells
    try:
        value = _normalize(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestInvalid("not a manifest: its bytes are not JSON", hint=_HINT) from error
    try:
        return msgspec.convert(value, Manifest)
    except msgspec.ValidationError as error:
        raise _invalid_manifest(tuple(form_problems(value, Manifest))) from error


def _invalid_manifest(problems: tuple[Problem, ...]) -> ManifestInvalid:
    """The error, with the place of each problem in its message: lists show nothing else of an error."""
    listed = "; ".join(
        f"{problem.at}: {problem.message}" if problem.at else problem.message for problem in problems[:_MAX_LISTED]
    )
    more = f"; and {len(problems) - _MAX_LISTED:,} more" if len(problems) > _MAX_LISTED else ""
    return ManifestInvalid(
        f"not a manifest: {listed}{more}",
        at=f"#{problems[0].at}",
        hint=_HINT,
        details={"problems": [{"at": problem.at, "message": problem.message} for problem in problems]},
    )


def _normalize(value: Any) -> Any:  # noqa: ANN401  any JSON value
    """Bring the values of other writers to the form of our own; free-form parameters stay.

    A null field is left out, a whole float becomes an integer, and a digest in upper case is lowered: it names the same
    bytes.
    """
    if isinstance(value, dict):
        return {
            key: part if key in _FREE else part.lower() if key in _REFS and _is_digest(part) else _normalize(part)
            for key, part in value.items()
            if part is not None
        }
    if isinstance(value, list):
        return [_normalize(part) for part in value if part is not None]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_digest(text: object) -> bool:
    return isinstance(text, str) and len(text) == _DIGEST_LENGTH and text.startswith("sha256:")


def manifest_bytes(manifest: Manifest) -> bytes:
    """The bytes that are stored and hashed: canonical, `hash` empty, `parent` only when there is one."""
    fields: dict[str, Json] = msgspec.to_builtins(manifest)
    fields["hash"] = ""
    if not manifest.parent:
        del fields["parent"]
    data = canonical(fields)
    if len(data) > MAX_MANIFEST_BYTES:
        raise ManifestInvalid(
            f"a manifest of {len(data):,} bytes: at most {MAX_MANIFEST_BYTES:,} are read back",
            hint="put large parameters into contents",
        )
    return data


class _Hash(msgspec.Struct, frozen=True):
    hash: str


def registry_entry(data: bytes, digest: Digest) -> bytes:
    """The content of the registry entry of a stored manifest: the same bytes with its hash filled in."""
    filled = data.replace(_EMPTY_HASH, b'"hash":"%b"' % str(digest).encode(), 1)
    try:
        if msgspec.json.decode(filled, type=_Hash).hash == str(digest):
            return filled
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # not as we write them, or another field of this name comes first
    return fill_in_hash(data, digest)


def fill_in_hash(data: bytes, digest: Digest) -> bytes:
    """A stored manifest with its own hash filled in, as it is shown to people.

    Canonical where possible; others stored numbers that have no canonical form.
    """
    fields = msgspec.json.decode(data)
    if not isinstance(fields, dict):
        return data
    fields["hash"] = str(digest)
    try:
        return canonical(fields)
    except JsonRefused:
        return SORTED.encode(fields)


def contents_of(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Every content of a manifest in the order of a run: its part, and its reference or ""."""
    yield "system_prompt", manifest.system_prompt
    yield from ((f"prompts/{n}", prompt.content_ref) for n, prompt in enumerate(manifest.prompts))
    yield from ((f"inputs/{input_file.name}", input_file.content_ref) for input_file in manifest.inputs)
    yield from ((f"steps/{n}", step.output_ref) for n, step in enumerate(manifest.steps))
    yield from ((f"outputs/{output.name}", output.content_ref) for output in manifest.outputs)


# --- The references of a manifest ---
