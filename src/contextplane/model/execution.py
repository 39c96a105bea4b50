"""What an execution pack's manifest refers to. Read leniently: others wrote manifests too, and their bytes count.

Nothing here decides what a run was; it only finds what must not be collected, and errs on the side of keeping.
"""

from collections.abc import Iterator, Sequence

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.value import Value

__all__ = [
    "EXECUTION_PACK",
    "MANIFEST_MOST",
    "MENTION",
    "ManifestRefs",
    "digests_in",
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
