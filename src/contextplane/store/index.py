"""Indexing execution packs: their roots and edges, their rows in the list, and their searchable texts.

Packs may be registered by another program that shares the store, so the index catches up with the entries. It only ever
adds: an entry that is gone is reported by a check, and accepted by a rebuild.
"""

from codecs import getincrementaldecoder
from collections.abc import Collection, Iterator, Mapping

import msgspec

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import IndexedObject, PackRow, TextPart
from contextplane.model.execution.manifest import Manifest, read_manifest
from contextplane.model.execution.references import (
    EXECUTION_PACK,
    MAX_MANIFEST_BYTES,
    MENTION,
    ManifestRefs,
    find_references,
)
from contextplane.model.ids import Digest
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import Catalog, CatalogReadOnly, Transaction
from contextplane.ports.objects import ObjectReader, Objects, StorageFull
from contextplane.ports.pack_entries import ExecutionEntries
from contextplane.store.find import INDEXED_MARK, LEFT_OUT, PACKS, SEARCHED, unread_prefix

__all__ = [
    "NO_HINTS",
    "PIECE",
    "CachedObjectReader",
    "IndexHints",
    "PackTexts",
    "catch_up",
    "describe_pack",
    "index_entries",
    "index_registered",
    "read_manifest_bytes",
    "trace",
]


PIECE = 16 << 10
"""The largest text in the index, in bytes."""

_WORD = 256


class IndexHints(Value, frozen=True):
    """What the caller knows already: recorded contents, and manifests with their references."""

    recorded: Collection[Digest] = ()
    manifests: Mapping[Digest, Manifest] = {}
    refs: Mapping[Digest, ManifestRefs] = {}


NO_HINTS = IndexHints()


class CachedObjectReader:
    """Serves just-written objects from memory, everything else from the store. An `ObjectReader`.

    `sizes`: of all objects that were written; `contents`: the bytes of some of them.
    """

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


def catch_up(catalog: Catalog, entries: ExecutionEntries, objects: Objects) -> None:
    """Index the packs that were registered since the index last caught up."""
    state = entries.state()
    listed = set(entries.names())
    with catalog.read() as view:
        indexed = set(view.packs.digests())
        marked = view.marks.get(INDEXED_MARK)
    if listed <= indexed and state in {None, marked}:
        return
    try:
        with catalog.write(survives="crash") as tx:
            index_entries(tx, sorted(listed - indexed), entries, objects)
            if state is not None:
                tx.marks.put(INDEXED_MARK, state)
    except (CatalogReadOnly, StorageFull):
        if not listed <= indexed:
            raise  # answers would be wrong; without the mark the next call only compares again


def index_registered(
    tx: Transaction, pack: Digest, entries: ExecutionEntries, objects: ObjectReader, hints: IndexHints = NO_HINTS
) -> None:
    """Index a pack whose objects are all stored, unless it is fully indexed already.

    When its manifest or one of its texts could not be read before, it is indexed again.
    """
    row = tx.packs.row(pack)
    if row is not None and not row.problem and next(tx.marks.names(unread_prefix(pack)), None) is None:
        return
    if row is not None:
        tx.marks.drop(unread_prefix(pack))
    index_entries(tx, [pack], entries, objects, hints)


def index_entries(
    tx: Transaction,
    packs: list[Digest],
    entries: ExecutionEntries,
    objects: ObjectReader,
    hints: IndexHints = NO_HINTS,
) -> None:
    """Make each pack a root, trace it, and add it to the list and the text index."""
    for digest in packs:
        tx.objects.keep(PACKS + digest.hex, digest)
        trace(tx, digest, objects, hints)
        manifest = hints.manifests.get(digest) or read_manifest_bytes(digest, objects)
        row, parsed = describe_pack(digest, manifest, Timestamp.of(entries.registration_time(digest)))
        tx.packs.add(row)
        if parsed is not None:
            texts = PackTexts(parsed, objects)
            tx.texts.add(digest, texts)
            if texts.left_out:
                tx.marks.put(LEFT_OUT, "yes")
            for content in texts.unread:
                tx.marks.put(unread_prefix(digest) + content.hex, "yes")


# --- edges ------------------------------------------------------------------------------------------------------------


def trace(tx: Transaction, pack: Digest, objects: ObjectReader, hints: IndexHints = NO_HINTS) -> None:
    """Record a manifest, its contents (those that are not recorded already), and its line of parents.

    A manifest that cannot be read, or not be understood in full, is recorded as untraced: its references are unknown,
    and nothing may be collected until they are known.
    """
    todo = [pack]
    while todo:
        digest = todo.pop()
        before = tx.objects.lookup(digest)
        if before is None or before.kind != EXECUTION_PACK or not before.traced:
            todo += _trace_manifest(tx, digest, objects, hints)


def read_manifest_bytes(digest: Digest, objects: ObjectReader) -> bytes | None:
    """The bytes of an object that may be a manifest; None when it cannot be read, or is too large for one."""
    try:
        return objects.get(digest) if objects.size(digest) <= MAX_MANIFEST_BYTES else None
    except ContextPlaneError:
        return None


def _trace_manifest(tx: Transaction, digest: Digest, objects: ObjectReader, hints: IndexHints) -> list[Digest]:
    """Record one manifest and its references; return its parent, if any, which must be traced too."""
    manifest = read_manifest_bytes(digest, objects)
    refs = hints.refs.get(digest) or (find_references(manifest) if manifest is not None else None)
    whole = refs is not None and not refs.unreadable
    size = len(manifest) if manifest is not None else 0
    tx.objects.record(IndexedObject(digest=digest, kind=EXECUTION_PACK, size=size, traced=whole))
    if refs is None:
        return []
    named = [*refs.objects, *((MENTION, mention) for mention in refs.mentions if objects.has(mention))]
    tx.objects.link_all(digest, named)
    contents = [target for role, target in named if role != "parent" and target not in hints.recorded]
    tx.objects.record_blobs(_sizes_of(contents, objects))
    return [target for role, target in named if role == "parent"]


def _sizes_of(digests: Collection[Digest], objects: ObjectReader) -> Iterator[tuple[Digest, int]]:
    """The objects that exist, with their sizes; a check reports the others."""
    for digest in digests:
        try:
            yield digest, objects.size(digest)
        except ContextPlaneError:
            continue


# --- rows and texts ---------------------------------------------------------------------------------------------------


def describe_pack(
    digest: Digest, manifest: bytes | Manifest | None, packed: Timestamp
) -> tuple[PackRow, Manifest | None]:
    """The row of a pack in the list, and its manifest.

    A pack whose manifest is not understood has a row too, with the problem in it, and None as its manifest.
    """
    if manifest is None:
        return PackRow(digest=digest, created=NO_TIME, packed=packed, problem="its manifest cannot be read"), None
    try:
        parsed = read_manifest(manifest) if isinstance(manifest, bytes) else manifest
    except ContextPlaneError as error:
        return PackRow(digest=digest, created=NO_TIME, packed=packed, problem=error.message), None
    row = PackRow(
        digest=digest,
        created=_parse_time(parsed.created),
        packed=packed,
        model=parsed.model.identifier,
        steps=len(parsed.steps),
        parent=_parse_digest(parsed.parent),
        tools=tuple(sorted({step.tool for step in parsed.steps if step.tool})),
    )
    return row, parsed


def _parse_digest(text: str) -> Digest | None:
    try:
        return Digest.parse(text)
    except ContextPlaneError:
        return None


def _parse_time(text: str) -> Timestamp:
    try:
        return Timestamp.parse(text)
    except ContextPlaneError:
        return NO_TIME


class PackTexts:
    """The searchable texts of a pack, in pieces: metadata, prompts, parameters, contents that are text.

    After iteration, `left_out`: some content is not text or longer than a mebibyte; `unread`: damaged contents.
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
                yield from _pieces(f"steps/{n}/parameters", " ".join(_parameter_words(step.parameters)))
            if step.output_ref:
                yield from self._content(f"steps/{n}", step.output_ref)
        for output in manifest.outputs:
            yield from self._content(f"outputs/{output.name}", output.content_ref)

    def _content(self, part: str, ref: str) -> Iterator[TextPart]:
        data = b""
        try:
            digest = Digest.parse(ref)
        except ContextPlaneError:
            self.left_out = True  # a check reports it
            return
        try:
            for chunk in self._objects.stream(digest):
                data += chunk
                if len(data) > SEARCHED:
                    self.left_out = True
                    break
            # The cut may be within a character.
            cut = len(data) > SEARCHED
            text = getincrementaldecoder("utf-8")().decode(data[:SEARCHED], final=False) if cut else data.decode()
        except ContextPlaneError:
            self.unread.add(digest)  # other verbs report the damage
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
    yield from (entry.name for entry in manifest.inputs)
    yield from (output.name for output in manifest.outputs)


def _parameter_words(value: object) -> Iterator[str]:
    """The names and values in parameters, in order.

    Not as JSON, which writes a line break as a letter. Not recursive: parameters that others stored may be deeper than
    our stack.
    """
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            todo += [part for key in sorted(item, reverse=True) for part in (item[key], f"{key}:")]
        elif isinstance(item, list):
            todo += reversed(item)
        else:
            yield item if isinstance(item, str) else msgspec.json.encode(item).decode()


def _pieces(part: str, text: str) -> Iterator[TextPart]:
    """Split a text into pieces of at most 16 KiB of UTF-8: a character has at most four bytes."""
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
