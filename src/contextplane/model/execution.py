"""What an execution pack's manifest refers to. Read leniently: others wrote manifests too, and their bytes count."""

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.value import Value

__all__ = ["EXECUTION_PACK", "ManifestRefs", "references", "same_but_hash"]

EXECUTION_PACK = "execution_pack"
"""The kind under which a manifest is recorded."""

_LISTS = (("prompts", "content_ref"), ("inputs", "content_ref"), ("steps", "output_ref"), ("outputs", "content_ref"))


class ManifestRefs(Value, frozen=True):
    """The objects that a manifest refers to, each in its role; and what stands in a reference's place and is none."""

    found: tuple[tuple[str, Digest], ...]
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
    for role, text in _named(value):
        if text in {"", None}:
            continue
        try:
            found[role, Digest.parse(str(text))] = None
        except ContextPlaneError:
            unreadable.append((role, str(text)[:100]))
    return ManifestRefs(found=tuple(found), unreadable=tuple(unreadable))


def _named(value: dict[str, object]) -> list[tuple[str, object]]:
    """Every (role, text) that the manifest has where its form puts a reference."""
    named: list[tuple[str, object]] = [("system_prompt", value.get("system_prompt"))]
    for field, key in _LISTS:
        entries = value.get(field)
        if isinstance(entries, list):
            named += [(field, entry.get(key)) for entry in entries if isinstance(entry, dict)]
    named.append(("parent", value.get("parent")))
    return named


def same_but_hash(entry: bytes, manifest: bytes, digest: Digest) -> bool:
    """Whether a registry entry is the manifest with its own hash filled in, or the bare digest that others write."""
    if entry.strip() == str(digest).encode():
        return True
    try:
        copy, original = msgspec.json.decode(entry), msgspec.json.decode(manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(original, dict) and copy == {**original, "hash": str(digest)}
