"""The manifest of an execution pack: what one run consists of, by reference.

Manifests that we write are canonical JSON. Those that others stored are read as they are: unknown fields are ignored
here and stay in the bytes, which the hash is of. `find_references` decides what must not be collected, so it errs on
the side of keeping.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import SORTED, Json, canonical
from contextplane.model.json.errors import JsonRefused, is_shallow
from contextplane.model.problems import Problem, form_problems
from contextplane.model.value import Value

__all__ = [
    "EXECUTION_PACK",
    "MAX_MANIFEST_BYTES",
    "MENTION",
    "VERSION",
    "Environment",
    "Input",
    "Manifest",
    "ManifestInvalid",
    "ManifestRefs",
    "Model",
    "Output",
    "Prompt",
    "Step",
    "contents_of",
    "digests_in",
    "fill_in_hash",
    "find_references",
    "is_entry_of",
    "manifest_bytes",
    "own_references",
    "read_manifest",
    "registry_entry",
]

VERSION = "0.1"
"""The version of the manifest format."""

EXECUTION_PACK = "execution_pack"
"""The kind under which a manifest is recorded."""

MENTION = "mention"
"""The role of a digest anywhere else in a manifest, such as in a step's parameters."""

MAX_MANIFEST_BYTES = 64 << 20
"""A larger object is no manifest: reading it into memory could exhaust it."""


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

_MAX_QUOTED = 100
_LISTS = (("prompts", "content_ref"), ("inputs", "content_ref"), ("steps", "output_ref"), ("outputs", "content_ref"))


class ManifestRefs(Value, frozen=True):
    """The objects that a manifest refers to.

    `objects`: the objects that it consists of, each with its role. `mentions`: other digests in it, which may name
    objects of this store. `unreadable`: values in the place of a reference that are none, or an unknown shape; while
    there is any, the references of the manifest are not completely known.
    """

    objects: tuple[tuple[str, Digest], ...]
    mentions: tuple[Digest, ...]
    unreadable: tuple[tuple[str, str], ...]


def find_references(manifest: bytes) -> ManifestRefs | None:
    """The references of a manifest, in its order; None when the bytes are no manifest at all."""
    try:
        value = msgspec.json.decode(manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(value, dict) or "version" not in value or "steps" not in value or not is_shallow(value, manifest):
        return None
    objects: dict[tuple[str, Digest], None] = {}
    unreadable: list[tuple[str, str]] = []
    if value["version"] != VERSION:
        unreadable.append(("version", repr(value["version"])[:_MAX_QUOTED]))
    reference_count = 0
    for role, text in _reference_fields(value):
        digest = _digest(text)
        if digest is not None:
            reference_count += 1
            objects[role, digest] = None
        elif text is not None and text != "":
            unreadable.append((role, repr(text)[:_MAX_QUOTED]))
    if manifest.count(b"sha256:") == reference_count:
        return ManifestRefs(objects=tuple(objects), mentions=(), unreadable=tuple(unreadable))
    own = {digest for _, digest in objects}
    known = {text for _, text in _reference_fields(value) if isinstance(text, str)}
    others = (text for text in _texts(value) if text.startswith("sha256:") and text not in known)
    mentions = dict.fromkeys(digest for digest in map(_digest, others) if digest is not None and digest not in own)
    return ManifestRefs(objects=tuple(objects), mentions=tuple(mentions), unreadable=tuple(unreadable))


def own_references(references: Sequence[tuple[str, Digest]], manifest: bytes) -> ManifestRefs | None:
    """The same result for a manifest that we just wrote: its references are given, in order."""
    if manifest.count(b"sha256:") != len(references):
        return find_references(manifest)
    return ManifestRefs(objects=tuple(dict.fromkeys(references)), mentions=(), unreadable=())


def digests_in(value: object) -> Iterator[Digest]:
    """Every digest in a part of a manifest, in no particular order."""
    return (digest for digest in map(_digest, _texts(value)) if digest is not None)


def is_entry_of(entry: bytes, manifest: bytes, digest: Digest) -> bool:
    """Whether a registry entry is the manifest with its hash filled in, or the bare digest.

    Other programs write the bare digest.
    """
    if entry.strip() == str(digest).encode():
        return True
    try:
        copy, original = msgspec.json.decode(entry), msgspec.json.decode(manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(original, dict) and SORTED.encode(copy) == SORTED.encode({**original, "hash": str(digest)})


def _reference_fields(value: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Every (role, value) at a place where the form of a manifest has a reference."""
    yield "system_prompt", value.get("system_prompt")
    for field, key in _LISTS:
        entries = value.get(field)
        for entry in entries if isinstance(entries, list) else () if entries is None else (entries,):
            yield field, entry.get(key) if isinstance(entry, dict) and isinstance(entries, list) else entry
    yield "parent", value.get("parent")


def _texts(value: object) -> Iterator[str]:
    """Every string of a document, at any depth."""
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            todo += node.values()
        elif isinstance(node, list):
            todo += node
        elif isinstance(node, str):
            yield node


def _digest(text: object) -> Digest | None:
    """A digest as others write it: upper case names the same bytes."""
    if not isinstance(text, str) or not text.startswith("sha256:"):
        return None
    try:
        return Digest.parse(text.lower())
    except ContextPlaneError:
        return None
