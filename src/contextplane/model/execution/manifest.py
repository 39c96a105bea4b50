"""An execution pack's manifest: what one run consists of, by reference.

Ours are canonical JSON. Those that others stored are read as they are: unknown fields are ignored here and kept in the
bytes, which are what the hash is of.

What an execution pack's manifest refers to. Read leniently: others wrote manifests too, and their bytes count.

Nothing here decides what a run was; it only finds what must not be collected, and errs on the side of keeping.

The contents of an execution pack by what a reference calls them: `steps/3`, `outputs/report.md`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import SORTED, Json, canonical
from contextplane.model.json.errors import JsonRefused
from contextplane.model.problems import Problem, form_problems
from contextplane.model.value import Value

__all__ = [
    "EXECUTION_PACK",
    "MANIFEST_MOST",
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
    "entry_of",
    "filled_in",
    "manifest_bytes",
    "read_manifest",
    "references",
    "references_of",
    "same_but_hash",
]

EXECUTION_PACK = "execution_pack"
"""The kind under which a manifest is recorded."""

MENTION = "mention"
"""The role of a digest that stands anywhere else in a manifest, in a step's parameters for example."""

MANIFEST_MOST = 64 << 20
"""A larger object is no manifest: reading it whole would be a way to bring us down."""

_VERSION = "0.1"
_LISTS = (("prompts", "content_ref"), ("inputs", "content_ref"), ("steps", "output_ref"), ("outputs", "content_ref"))
_SHOWN = 100
_SORTED = msgspec.json.Encoder(order="sorted")


class ManifestRefs(Value, frozen=True):
    """What a manifest refers to.

    `found`: the objects that it consists of, each in its role. `mentions`: other digests in it, which may name objects
    of this store. `unreadable`: what stands in a reference's place and is none, or a shape that we do not know; while
    there is any, what the manifest refers to is not wholly known.
    """

    found: tuple[tuple[str, Digest], ...]
    mentions: tuple[Digest, ...]
    unreadable: tuple[tuple[str, str], ...]


def references(manifest: bytes) -> ManifestRefs | None:
    """The references of a manifest, in the order in which it names them; None when the bytes are no manifest at all."""
    try:
        value = msgspec.json.decode(manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(value, dict) or "version" not in value or "steps" not in value:
        return None
    found: dict[tuple[str, Digest], None] = {}
    unreadable: list[tuple[str, str]] = []
    if value["version"] != _VERSION:
        unreadable.append(("version", repr(value["version"])[:_SHOWN]))
    named = 0
    for role, text in _named(value):
        digest = _digest(text)
        if digest is not None:
            named += 1
            found[role, digest] = None
        elif text is not None and text != "":
            unreadable.append((role, repr(text)[:_SHOWN]))
    if manifest.count(b"sha256:") == named:
        return ManifestRefs(found=tuple(found), mentions=(), unreadable=tuple(unreadable))
    meant = {digest for _, digest in found}
    known = {text for _, text in _named(value) if isinstance(text, str)}
    others = (text for text in _texts(value) if text.startswith("sha256:") and text not in known)
    mentions = dict.fromkeys(digest for digest in map(_digest, others) if digest is not None and digest not in meant)
    return ManifestRefs(found=tuple(found), mentions=tuple(mentions), unreadable=tuple(unreadable))


def references_of(named: Sequence[tuple[str, Digest]], manifest: bytes) -> ManifestRefs | None:
    """What `references` finds in a manifest of our own, for whoever wrote it and knows what it names, in its order."""
    if manifest.count(b"sha256:") != len(named):
        return references(manifest)
    return ManifestRefs(found=tuple(dict.fromkeys(named)), mentions=(), unreadable=())


def digests_in(value: object) -> Iterator[Digest]:
    """Every digest that stands in a part of a manifest, in no particular order."""
    return (digest for digest in map(_digest, _texts(value)) if digest is not None)


def same_but_hash(entry: bytes, manifest: bytes, digest: Digest) -> bool:
    """Whether a registry entry is the manifest with its own hash filled in, or the bare digest that others write."""
    if entry.strip() == str(digest).encode():
        return True
    try:
        copy, original = msgspec.json.decode(entry), msgspec.json.decode(manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(original, dict) and _SORTED.encode(copy) == _SORTED.encode({**original, "hash": str(digest)})


def _named(value: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Every (role, text) that the manifest has where its form puts a reference."""
    yield "system_prompt", value.get("system_prompt")
    for field, key in _LISTS:
        entries = value.get(field)
        for entry in entries if isinstance(entries, list) else () if entries is None else (entries,):
            yield field, entry.get(key) if isinstance(entry, dict) and isinstance(entries, list) else entry
    yield "parent", value.get("parent")


def _texts(value: object) -> Iterator[str]:
    """Every string of a document, wherever it stands."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, str):
            yield one


def _digest(text: object) -> Digest | None:
    """A digest as others write it: upper case names the same bytes."""
    if not isinstance(text, str) or not text.startswith("sha256:"):
        return None
    try:
        return Digest.parse(text.lower())
    except ContextPlaneError:
        return None


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
    told = "; ".join(
        f"{problem.at}: {problem.message}" if problem.at else problem.message for problem in problems[:_TOLD]
    )
    more = f"; and {len(problems) - _TOLD:,} more" if len(problems) > _TOLD else ""
    return ManifestInvalid(
        f"not a manifest: {told}{more}",
        at=f"#{problems[0].at}",
        hint=_HINT,
        details={"problems": [{"at": problem.at, "message": problem.message} for problem in problems]},
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


def contents_of(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Every content as it stands in the manifest, in the order of a run: its part, and its reference if it has one."""
    yield "system_prompt", manifest.system_prompt
    yield from ((f"prompts/{n}", prompt.content_ref) for n, prompt in enumerate(manifest.prompts))
    yield from ((f"inputs/{one.name}", one.content_ref) for one in manifest.inputs)
    yield from ((f"steps/{n}", step.output_ref) for n, step in enumerate(manifest.steps))
    yield from ((f"outputs/{output.name}", output.content_ref) for output in manifest.outputs)
