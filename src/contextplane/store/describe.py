"""What the index says of an execution pack: its line in the list, and the text that can be found in it."""

from collections.abc import Iterator

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.manifest import Manifest, read_manifest
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.ports.objects import Objects
from contextplane.ports.pack_index import PackRow, TextPart

_SORTED = msgspec.json.Encoder(order="sorted")  # not the canonical form: others' numbers may have none

__all__ = ["PIECE", "SEARCHED", "described", "texts"]

SEARCHED = 1 << 20
"""How much of one content is searched: its first mebibyte."""

_WORD = 256

PIECE = 16 << 10
"""No larger text is stored in the index."""


def described(digest: Digest, manifest: bytes | None, packed: Timestamp) -> tuple[PackRow, Manifest | None]:
    """The line of a pack. One whose manifest says nothing we understand has a line, too, with the problem in it."""
    if manifest is None:
        return PackRow(digest=digest, created=NO_TIME, packed=packed, problem="its manifest cannot be read"), None
    try:
        read = read_manifest(manifest)
    except ContextPlaneError as error:
        return PackRow(digest=digest, created=NO_TIME, packed=packed, problem=error.message), None
    row = PackRow(
        digest=digest,
        created=_time(read.created),
        packed=packed,
        model=read.model.identifier,
        steps=len(read.steps),
        parent=_digest(read.parent),
        tools=tuple(sorted({step.tool for step in read.steps if step.tool})),
    )
    return row, read


def texts(manifest: Manifest, objects: Objects) -> Iterator[TextPart]:
    """Everything in a pack that can be searched, in pieces: metadata, prompts, parameters, contents that are text."""
    yield from _pieces("metadata", "\n".join(_metadata(manifest)))
    yield from _content("system_prompt", manifest.system_prompt, objects)
    for n, prompt in enumerate(manifest.prompts):
        yield from _content(f"prompts/{n}", prompt.content_ref, objects)
    for n, step in enumerate(manifest.steps):
        if step.parameters:
            yield from _pieces(f"steps/{n}/parameters", _SORTED.encode(step.parameters).decode())
        yield from _content(f"steps/{n}", step.output_ref, objects)
    for output in manifest.outputs:
        yield from _content(f"outputs/{output.name}", output.content_ref, objects)


def _metadata(manifest: Manifest) -> Iterator[str]:
    yield manifest.model.identifier
    yield f"{manifest.environment.os} {manifest.environment.runtime}"
    yield from (f"{tool} {version}" for tool, version in sorted((manifest.environment.tool_versions or {}).items()))
    yield from sorted({f"{step.type} {step.tool}" for step in manifest.steps})
    yield from (one.name for one in manifest.inputs)
    yield from (one.name for one in manifest.outputs)


def _content(part: str, ref: str, objects: Objects) -> Iterator[TextPart]:
    digest = _digest(ref)
    if digest is None:
        return
    data = bytearray()
    try:
        for chunk in objects.stream(digest):
            data += chunk
            if len(data) >= SEARCHED:
                break
        text = bytes(data[:SEARCHED]).decode(errors="ignore" if len(data) >= SEARCHED else "strict")
    except (ContextPlaneError, UnicodeDecodeError):
        return  # damaged, or not text: other verbs say so
    yield from _pieces(part, text)


def _pieces(part: str, text: str) -> Iterator[TextPart]:
    """Pieces of at most 16 KiB of UTF-8: a character has at most four bytes."""
    size = PIECE // 4 if not text.isascii() else PIECE
    start = 0
    while start < len(text):
        end = min(start + size, len(text))
        if end < len(text):
            # Between two words, where there is a space not far from the end.
            end = max(text.rfind(" ", end - _WORD, end), text.rfind("\n", end - _WORD, end), start) + 1 or end
            end = end if end > start + 1 else min(start + size, len(text))
        yield TextPart(part=part, text=text[start:end])
        start = end


def _digest(text: str) -> Digest | None:
    try:
        return Digest.parse(text)
    except ContextPlaneError:
        return None


def _time(text: str) -> Timestamp:
    try:
        return Timestamp.parse(text)
    except ContextPlaneError:
        return NO_TIME
