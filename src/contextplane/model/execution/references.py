"""The references of a manifest to objects: all that an index and a collector need of it."""

from collections.abc import Iterator, Sequence

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.json.errors import is_shallow
from contextplane.model.value import Value

__all__ = [
    "EXECUTION_PACK",
    "MAX_MANIFEST_BYTES",
    "MENTION",
    "VERSION",
    "ManifestRefs",
    "digests_in",
    "find_references",
    "is_entry_of",
    "own_references",
]


_SORTED = msgspec.json.Encoder(order="sorted")  # and not that of `canonical`, which every start would load
VERSION = "0.1"
"""The version of the manifest format."""


EXECUTION_PACK = "execution_pack"
"""The kind under which a manifest is recorded."""


MENTION = "mention"
"""The role of a digest anywhere else in a manifest, such as in a step's parameters."""


MAX_MANIFEST_BYTES = 64 << 20
"""A larger object is no manifest: reading it into memory could exhaust it."""


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
    return isinstance(original, dict) and _SORTED.encode(copy) == _SORTED.encode({**original, "hash": str(digest)})


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
