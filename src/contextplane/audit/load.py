"""Reading an execution pack back: its manifest, verified, and its contents by what they are called."""

from collections.abc import Iterator
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution.manifest import MANIFEST_MOST, Manifest, ManifestInvalid, read_manifest
from contextplane.model.ids import Digest, InvalidId
from contextplane.model.json.canonical import SORTED
from contextplane.model.value import Value
from contextplane.ports.objects import ObjectNotFound, Objects
from contextplane.store.damage import short, telling

__all__ = ["LoadedPack", "ManifestMissing", "NoSuchPart", "load", "part", "part_digest"]

_DIGITS = 9
_SHOWN = 80
_NAMED, _LISTED = 12, 1000


class NoSuchPart(ContextPlaneError):
    """An execution pack has no part of this name."""

    code: ClassVar[str] = "execution_pack_part_not_found"
    family: ClassVar[Family] = "not_found"


class ManifestMissing(ObjectNotFound):
    """An execution pack is known here, and the bytes of its manifest are gone."""

    code: ClassVar[str] = "manifest_missing"


class LoadedPack(Value, frozen=True):
    """A pack whose bytes match its name. `raw` is what is stored, `manifest` what it says."""

    digest: Digest
    raw: bytes
    manifest: Manifest


def load(digest: Digest, objects: Objects) -> LoadedPack:
    """The pack of this digest, known here. Tampered bytes are `object_corrupt`, absent ones `manifest_missing`."""
    with telling(short(digest), "it is registered, but its manifest", digest):
        try:
            size = objects.size(digest)
        except ObjectNotFound as error:
            raise ManifestMissing(error.message, at=error.at) from error
    if size > MANIFEST_MOST:
        raise ManifestInvalid("larger than any manifest", at=f"ctx://{digest.hex}")
    with telling(short(digest), "its manifest", digest):
        raw = objects.get(digest)
    try:
        return LoadedPack(digest=digest, raw=raw, manifest=read_manifest(raw))
    except ContextPlaneError as error:
        raise error.under(f"ctx://{digest.hex}") from None


def part(pack: LoadedPack, selector: str) -> Digest | bytes:
    """What `part_digest` names; or the parameters of a step, `steps/3/parameters`, which is JSON and no object."""
    steps = pack.manifest.steps
    number = _number(selector.removeprefix("steps/").removesuffix("/parameters"))
    if number < len(steps) and selector == f"steps/{number}/parameters" and steps[number].parameters is not None:
        return SORTED.encode(steps[number].parameters)
    return part_digest(pack, selector)


def part_digest(pack: LoadedPack, selector: str) -> Digest:
    """The content that a selector names: `system_prompt`, `prompts/0`, `inputs/NAME`, `steps/3`, `outputs/NAME`.

    A step is named by its place in the list. Of several inputs or outputs of one name, the last one counts.
    """
    kind, _, name = selector.partition("/")
    manifest = pack.manifest
    found: str | None = None
    if selector == "system_prompt":
        found = manifest.system_prompt
    elif kind == "prompts" and _number(name) < len(manifest.prompts):
        found = manifest.prompts[int(name)].content_ref
    elif kind == "steps" and _number(name) < len(manifest.steps):
        found = manifest.steps[int(name)].output_ref
    elif kind == "inputs":
        found = {one.name: one.content_ref for one in manifest.inputs}.get(name)
    elif kind == "outputs":
        found = {output.name: output.content_ref for output in manifest.outputs}.get(name)
    if not found:
        raise _no_such_part(pack, selector, "no such part" if found is None else "this step had no output")
    try:
        return Digest.parse(found)
    except InvalidId as error:
        place = f"ctx://{pack.digest.hex}:{selector}"
        raise ManifestInvalid(
            f"its manifest refers to nothing there: {found[:_SHOWN]!r}", at=place, hint="'ctx show --json' shows it"
        ) from error


def _no_such_part(pack: LoadedPack, selector: str, message: str) -> NoSuchPart:
    """Told with the parts that there are, those of the same kind first."""
    kind = selector.partition("/")[0]
    parts = sorted(dict.fromkeys(_parts(pack.manifest)), key=lambda part: not part.startswith(f"{kind}/"))
    more = f" and {len(parts) - _NAMED:,} more, see 'ctx show'" if len(parts) > _NAMED else ""
    return NoSuchPart(
        message,
        at=f"ctx://{pack.digest.hex}:{selector}",
        hint=f"it has {', '.join(parts[:_NAMED])}{more}",
        details={"parts": parts[:_LISTED], "more": len(parts) > _LISTED},
    )


def _parts(manifest: Manifest) -> Iterator[str]:
    yield "system_prompt"
    yield from (f"prompts/{n}" for n in range(len(manifest.prompts)))
    yield from (f"inputs/{one.name}" for one in manifest.inputs)
    for n, step in enumerate(manifest.steps):
        if step.output_ref:
            yield f"steps/{n}"
        if step.parameters is not None:
            yield f"steps/{n}/parameters"
    yield from (f"outputs/{output.name}" for output in manifest.outputs)


def _number(text: str) -> int:
    """A place in a list; one that no list has for what is no number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else 10**_DIGITS
