"""Reading an execution pack back: its manifest, verified, and its contents by what they are called."""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution import MANIFEST_MOST
from contextplane.model.ids import Digest
from contextplane.model.manifest import Manifest, ManifestInvalid, read_manifest
from contextplane.model.value import Value
from contextplane.ports.objects import Objects

__all__ = ["LoadedPack", "NoSuchPart", "load", "part_digest"]

_DIGITS = 9


class NoSuchPart(ContextPlaneError):
    """An execution pack has no part of this name."""

    code: ClassVar[str] = "execution_pack_part_not_found"
    family: ClassVar[Family] = "not_found"


class LoadedPack(Value, frozen=True):
    """A pack whose bytes match its name. `raw` is what is stored, `manifest` what it says."""

    digest: Digest
    raw: bytes
    manifest: Manifest


def load(digest: Digest, objects: Objects) -> LoadedPack:
    """The pack of this digest. Tampered bytes are `object_corrupt`, absent ones `object_not_found`."""
    if objects.size(digest) > MANIFEST_MOST:
        raise ManifestInvalid("larger than any manifest", at=f"ctx://{digest.hex}")
    raw = objects.get(digest)
    try:
        return LoadedPack(digest=digest, raw=raw, manifest=read_manifest(raw))
    except ContextPlaneError as error:
        raise error.under(f"ctx://{digest.hex}") from None


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
        found = {one.name: one.content_ref for one in manifest.outputs}.get(name)
    if not found:
        raise NoSuchPart(
            "no such part" if found is None else "this step had no output",
            at=f"ctx://{pack.digest.hex}:{selector}",
            hint="'ctx show' lists them: system_prompt, prompts/N, inputs/NAME, steps/N, outputs/NAME",
        )
    return Digest.parse(found)


def _number(text: str) -> int:
    """A place in a list; one that no list has for what is no number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else 10**_DIGITS
