"""Loads an execution pack: its manifest, verified, and its contents by selector."""

from collections.abc import Iterator
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution.manifest import Manifest, ManifestInvalid, read_manifest
from contextplane.model.execution.references import MAX_MANIFEST_BYTES
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.json.canonical import SORTED
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectNotFound, Objects
from contextplane.store.damage import damage_context, short_ref

__all__ = ["LoadedPack", "ManifestMissing", "NoSuchPart", "find_part", "load_pack", "part_digest"]

_DIGITS = 9
_REF_LENGTH = 80
_NAMED_PARTS, _LISTED_PARTS = 12, 1000


class NoSuchPart(ContextPlaneError):
    """An execution pack has no part of this name."""

    code: ClassVar[str] = "execution_pack_part_not_found"
    family: ClassVar[Family] = "not_found"


class ManifestMissing(ObjectNotFound):
    """An execution pack is known here, and the bytes of its manifest are gone."""

    code: ClassVar[str] = "manifest_missing"


class LoadedPack(Value, frozen=True):
    """A pack whose bytes match its digest. `raw`: the stored bytes; `manifest`: the parsed manifest."""

    digest: Digest
    raw: bytes
    manifest: Manifest


def load_pack(digest: Digest, objects: Objects) -> LoadedPack:
    """Load a registered pack. Tampered bytes raise `object_corrupt`, absent ones `manifest_missing`."""
    with damage_context(short_ref(digest), "it is registered, but its manifest", digest):
        try:
            size = objects.size(digest)
        except ObjectNotFound as error:
            raise ManifestMissing(error.message, at=error.at) from error
    if size > MAX_MANIFEST_BYTES:
        raise ManifestInvalid("larger than any manifest", at=f"ctx://{digest.hex}")
    with damage_context(short_ref(digest), "its manifest", digest):
        raw = objects.get(digest)
    try:
        return LoadedPack(digest=digest, raw=raw, manifest=read_manifest(raw))
    except ContextPlaneError as error:
        raise error.under(f"ctx://{digest.hex}") from None


def find_part(pack: LoadedPack, selector: str) -> Digest | bytes:
    """The digest of a part, or the JSON of a step's parameters (`steps/3/parameters`), which is no object."""
    steps = pack.manifest.steps
    number = _index(selector.removeprefix("steps/").removesuffix("/parameters"))
    if number < len(steps) and selector == f"steps/{number}/parameters" and steps[number].parameters is not None:
        return SORTED.encode(steps[number].parameters)
    return part_digest(pack, selector)


def part_digest(pack: LoadedPack, selector: str) -> Digest:
    """The digest of a part: `system_prompt`, `prompts/0`, `inputs/NAME`, `steps/3` or `outputs/NAME`.

    A step is named by its position in the list. Of several inputs or outputs of the same name, the last counts.
    """
    kind, _, name = selector.partition("/")
    manifest = pack.manifest
    ref: str | None = None
    if selector == "system_prompt":
        ref = manifest.system_prompt
    elif kind == "prompts" and _index(name) < len(manifest.prompts):
        ref = manifest.prompts[int(name)].content_ref
    elif kind == "steps" and _index(name) < len(manifest.steps):
        ref = manifest.steps[int(name)].output_ref
    elif kind == "inputs":
        ref = {entry.name: entry.content_ref for entry in manifest.inputs}.get(name)
    elif kind == "outputs":
        ref = {output.name: output.content_ref for output in manifest.outputs}.get(name)
    if not ref:
        raise _missing_part_error(pack, selector, "no such part" if ref is None else "this step had no output")
    try:
        return Digest.parse(ref)
    except InvalidId as error:
        place = f"ctx://{pack.digest.hex}:{selector}"
        raise ManifestInvalid(
            f"its manifest refers to nothing there: {ref[:_REF_LENGTH]!r}", at=place, hint="'ctx show --json' shows it"
        ) from error


def _missing_part_error(pack: LoadedPack, selector: str, message: str) -> NoSuchPart:
    """The error for a missing part. It lists the parts that exist, those of the same kind first."""
    kind = selector.partition("/")[0]
    parts = sorted(dict.fromkeys(_part_names(pack.manifest)), key=lambda part: not part.startswith(f"{kind}/"))
    more = f" and {len(parts) - _NAMED_PARTS:,} more, see 'ctx show'" if len(parts) > _NAMED_PARTS else ""
    return NoSuchPart(
        message,
        at=f"ctx://{pack.digest.hex}:{selector}",
        hint=f"it has {', '.join(parts[:_NAMED_PARTS])}{more}",
        details={"parts": parts[:_LISTED_PARTS], "more": len(parts) > _LISTED_PARTS},
    )


def _part_names(manifest: Manifest) -> Iterator[str]:
    yield "system_prompt"
    yield from (f"prompts/{n}" for n in range(len(manifest.prompts)))
    yield from (f"inputs/{entry.name}" for entry in manifest.inputs)
    for n, step in enumerate(manifest.steps):
        if step.output_ref:
            yield f"steps/{n}"
        if step.parameters is not None:
            yield f"steps/{n}/parameters"
    yield from (f"outputs/{output.name}" for output in manifest.outputs)


def _index(text: str) -> int:
    """The index that a text names; for a text that is no number, an index that no list has."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else 10**_DIGITS
