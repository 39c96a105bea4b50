"""What the index says of an execution pack: its line in the list, and the text that can be found in it."""

from codecs import getincrementaldecoder
from collections.abc import Iterator

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.manifest import Manifest, read_manifest
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.ports.objects import ObjectReader
from contextplane.ports.pack_index import PackRow, TextPart
from contextplane.store.searched import SEARCHED

__all__ = ["PIECE", "Texts", "described"]

_WORD = 256

PIECE = 16 << 10
"""No larger text is stored in the index."""


def described(digest: Digest, manifest: bytes | Manifest | None, packed: Timestamp) -> tuple[PackRow, Manifest | None]:
    """The line of a pack. One whose manifest says nothing we understand has a line, too, with the problem in it."""
    if manifest is None:
        return PackRow(digest=digest, created=NO_TIME, packed=packed, problem="its manifest cannot be read"), None
    try:
        read = read_manifest(manifest) if isinstance(manifest, bytes) else manifest
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


class Texts:
    """Everything in a pack that can be searched, in pieces: metadata, prompts, parameters, contents that are text.

    Once all of it was read: `left_out`: some content is not text, or goes on behind its first mebibyte; `unread`: those
    that could not be read, because they are damaged.
    """

    def __init__(self, manifest: Manifest, objects: ObjectReader) -> None:
        self._manifest = manifest
        self._objects = objects
        self.left_out = False
        self.unread: set[Digest] = set()

    def __iter__(self) -> Iterator[TextPart]:
        manifest = self._manifest
        yield from _pieces("metadata", "\n".join(_metadata(manifest)))
        yield from self._content("system_prompt", manifest.system_prompt)
        for n, prompt in enumerate(manifest.prompts):
            yield from self._content(f"prompts/{n}", prompt.content_ref)
        for n, step in enumerate(manifest.steps):
            if step.parameters:
                yield from _pieces(f"steps/{n}/parameters", " ".join(_words(step.parameters)))
            if step.output_ref:
                yield from self._content(f"steps/{n}", step.output_ref)
        for output in manifest.outputs:
            yield from self._content(f"outputs/{output.name}", output.content_ref)

    def _content(self, part: str, ref: str) -> Iterator[TextPart]:
        data = b""
        try:
            digest = Digest.parse(ref)
        except ContextPlaneError:
            self.left_out = True  # a check tells of it
            return
        try:
            for chunk in self._objects.stream(digest):
                data += chunk
                if len(data) > SEARCHED:
                    self.left_out = True
                    break
            # What is cut off may end within a character.
            cut = len(data) > SEARCHED
            text = getincrementaldecoder("utf-8")().decode(data[:SEARCHED], final=False) if cut else data.decode()
        except ContextPlaneError:
            self.unread.add(digest)  # other verbs say what is wrong with it
            return
        except UnicodeDecodeError:
            self.left_out = True
            return
        if "\0" in text:
            self.left_out = True
            return
        yield from _pieces(part, text)


def _metadata(manifest: Manifest) -> Iterator[str]:
    yield manifest.model.identifier
    yield f"{manifest.environment.os} {manifest.environment.runtime}"
    yield from (f"{tool} {version}" for tool, version in sorted((manifest.environment.tool_versions or {}).items()))
    yield from sorted({f"{step.type} {step.tool}" for step in manifest.steps})
    yield from (one.name for one in manifest.inputs)
    yield from (one.name for one in manifest.outputs)


def _words(value: object) -> Iterator[str]:
    """The names and values in some parameters, in order, and not as JSON: it writes a line break as a letter.

    Not recursive: what others stored may be deeper than our stack.
    """
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            todo += [part for key in sorted(one, reverse=True) for part in (one[key], f"{key}:")]
        elif isinstance(one, list):
            todo += reversed(one)
        else:
            yield one if isinstance(one, str) else msgspec.json.encode(one).decode()


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
