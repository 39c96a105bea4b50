"""Keeping the index in step with the packs that are registered, by us or by another program that shares the store.

It only ever adds. An entry that is gone was removed by nobody who tells: a check reports it, a rebuild accepts it.

Recording what an execution pack reaches, so that it is kept; and trying again where that was not possible before.

What the index says of an execution pack: its line in the list, and the text that can be found in it.

What whoever registers a pack knows of it already, and need not be found out again.

Objects of which some were put by ourselves a moment ago: what we still hold of them need not be read again.

What of a pack is searched, for those who index it and for those who tell what was left out.
"""

from codecs import getincrementaldecoder
from collections.abc import Collection, Iterator, Mapping

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import PackRow, Recorded, TextPart
from contextplane.model.execution.manifest import (
    EXECUTION_PACK,
    MANIFEST_MOST,
    MENTION,
    Manifest,
    ManifestRefs,
    read_manifest,
    references,
)
from contextplane.model.ids import Digest
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, CatalogReadOnly, Transaction
from contextplane.ports.objects import ObjectReader, Objects, StorageFull
from contextplane.ports.pack_entries import ExecutionEntries
from contextplane.store.find import MARK, PACKS

__all__ = [
    "LEFT_OUT",
    "NOTHING",
    "PIECE",
    "SEARCHED",
    "UNREAD",
    "AtHand",
    "Known",
    "Texts",
    "described",
    "follow",
    "index_entries",
    "index_registered",
    "read_manifest_bytes",
    "trace",
    "unread",
]


class Known(Value, frozen=True):
    """Contents that are recorded, and manifests that were read: what they say, and what they refer to."""

    recorded: Collection[Digest] = ()
    manifests: Mapping[Digest, Manifest] = {}
    refs: Mapping[Digest, ManifestRefs] = {}


NOTHING = Known()


def trace(tx: Transaction, pack: Digest, objects: ObjectReader, known: Known = NOTHING) -> None:
    """Record a manifest, its contents (those that are not recorded already), and its line of parents.

    A manifest that cannot be read, or not wholly understood, is recorded as untraced: what it refers to is unknown, and
    nothing may be collected while it is.
    """
    todo = [pack]
    while todo:
        digest = todo.pop()
        before = tx.objects.recorded(digest)
        if before is None or before.kind != EXECUTION_PACK or not before.traced:
            todo += _traced(tx, digest, objects, known)


def read_manifest_bytes(digest: Digest, objects: ObjectReader) -> bytes | None:
    """The bytes of something that may be a manifest; None when they cannot be read, or are too many for one."""
    try:
        return objects.get(digest) if objects.size(digest) <= MANIFEST_MOST else None
    except ContextPlaneError:
        return None


def _traced(tx: Transaction, digest: Digest, objects: ObjectReader, known: Known) -> list[Digest]:
    """Record one manifest and what it names; return its parent, which is a manifest itself."""
    manifest = read_manifest_bytes(digest, objects)
    refs = known.refs.get(digest) or (references(manifest) if manifest is not None else None)
    whole = refs is not None and not refs.unreadable
    size = len(manifest) if manifest is not None else 0
    tx.objects.record(Recorded(digest=digest, kind=EXECUTION_PACK, size=size, traced=whole))
    if refs is None:
        return []
    named = [*refs.found, *((MENTION, mention) for mention in refs.mentions if objects.has(mention))]
    tx.objects.link_all(digest, named)
    contents = [target for role, target in named if role != "parent" and target not in known.recorded]
    tx.objects.record_blobs(_present(contents, objects))
    return [target for role, target in named if role == "parent"]


def _present(digests: Collection[Digest], objects: ObjectReader) -> Iterator[tuple[Digest, int]]:
    """Those that are there, with their sizes; a check tells of the others."""
    for digest in digests:
        try:
            yield digest, objects.size(digest)
        except ContextPlaneError:
            continue


SEARCHED = 1 << 20
"""How much of one content: its first mebibyte."""

LEFT_OUT = "texts/left_out"
"""The mark that is set when there is content that goes on behind it, or is not text."""

UNREAD = "texts/unread/"
"""The prefix of the marks of contents that could not be read when their pack was indexed: `<pack>/<content>`, in hex.

Once such a content can be read again, the index is behind.
"""


def unread(pack: Digest) -> str:
    """The prefix of those of one pack."""
    return f"{UNREAD}{pack.hex}/"


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
    yield from (output.name for output in manifest.outputs)


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


def follow(catalog: Catalog, entries: ExecutionEntries, objects: Objects) -> None:
    """Index the packs that came."""
    state = entries.state()
    listed = set(entries.names())
    with catalog.read() as view:
        known = set(view.packs.digests())
        marked = view.marks.get(MARK)
    if listed <= known and state in {None, marked}:
        return
    try:
        with catalog.write(survives="crash") as tx:
            index_entries(tx, sorted(listed - known), entries, objects)
            if state is not None:
                tx.marks.put(MARK, state)
    except (CatalogReadOnly, StorageFull):
        if not listed <= known:
            raise  # the answer would be a wrong one; without the mark we only look again next time


def index_registered(
    tx: Transaction, pack: Digest, entries: ExecutionEntries, objects: ObjectReader, known: Known = NOTHING
) -> None:
    """Index a pack whose objects are all stored, unless all of it is indexed.

    When its manifest or one of its texts could not be read then, it is indexed anew.
    """
    row = tx.packs.row(pack)
    if row is not None and not row.problem and next(tx.marks.names(unread(pack)), None) is None:
        return
    if row is not None:
        tx.marks.drop(unread(pack))
    index_entries(tx, [pack], entries, objects, known)


def index_entries(
    tx: Transaction,
    packs: list[Digest],
    entries: ExecutionEntries,
    objects: ObjectReader,
    known: Known = NOTHING,
) -> None:
    """Make each pack a root, record what it reaches, and put it into the list and the text index."""
    for digest in packs:
        tx.objects.keep(PACKS + digest.hex, digest)
        trace(tx, digest, objects, known)
        manifest = known.manifests.get(digest) or read_manifest_bytes(digest, objects)
        row, read = described(digest, manifest, Timestamp.of(entries.added_at(digest)))
        tx.packs.add(row)
        if read is not None:
            texts = Texts(read, objects)
            tx.texts.add(digest, texts)
            if texts.left_out:
                tx.marks.put(LEFT_OUT, "yes")
            for content in texts.unread:
                tx.marks.put(unread(digest) + content.hex, "yes")


class AtHand:
    """An `ObjectReader`. `sizes`: of everything that was put; `contents`: the bytes of some of it."""

    def __init__(self, objects: ObjectReader, *, sizes: Mapping[Digest, int], contents: Mapping[Digest, bytes]) -> None:
        self._objects = objects
        self._sizes = sizes
        self._contents = contents

    def has(self, digest: Digest) -> bool:
        return digest in self._sizes or self._objects.has(digest)

    def size(self, digest: Digest) -> int:
        size = self._sizes.get(digest)
        return self._objects.size(digest) if size is None else size

    def get(self, digest: Digest) -> bytes:
        data = self._contents.get(digest)
        return self._objects.get(digest) if data is None else data

    def stream(self, digest: Digest) -> Iterator[bytes]:
        data = self._contents.get(digest)
        return self._objects.stream(digest) if data is None else iter((data,))
