"""A published version with its proofs in one file, `registry-bundle.v1`, which other stores verify.

A bundle holds what resolving the version in some environments reads of a registry, and nothing else:

    checkpoint    the newest checkpoint, as it was signed
    streams       events by stream: the keyring, the version, its digest, other versions of its id, the newest pins
    heads         nodes of the tree over the ends of streams, which a reader finds by their hashes
    tree          nodes of the Merkle tree over the log, for inclusion and consistency proofs
    objects       artifacts, envelopes and reports, which a reader finds by their digests

`BundleView` serves these as a catalog would, so that the reader of the registry verifies every event unchanged. What a
bundle leaves out is missed: each stream must end where the signed tree says, absent streams and the list of all
versions of an id are proved by the same tree, and each event by its path to the root of the log.

A client of the registry itself also proves that no entry of the log is missing from the signed ends. A bundle has too
few entries for that. So its reader trusts the keys that may sign checkpoints not to leave an event out, or the
witnesses of the registry, whose cosignatures are in the bundle.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import StoredEvent
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Document, Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.admit import AdmittedDocument, admit
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.claims import ClaimsJudgement
from contextplane.registry.events import Published, kind_of, read_event
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.open import OpenRegistry
from contextplane.registry.pin_state import PinState, ref_of
from contextplane.registry.reader import RegistryReader
from contextplane.registry.resolution import CatalogSnapshot, RegistrySnapshot, prove_event
from contextplane.registry.stream_heads import HeadNodesView, StreamHeads, node_name
from contextplane.registry.streams import (
    CHECKPOINTS,
    COSIGNATURES,
    LOG,
    SUBJECTS,
    TREE,
    environment_stream,
    pins_stream,
    version_stream,
)
from contextplane.trust.dsse import Base64Refused, decode_base64, encode_base64
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.keyring_stream import follow_keyring
from contextplane.trust.merkle import StreamTree, consistency_proof, level_name
from contextplane.trust.merkle_log import VerifiedCheckpoint
from contextplane.trust.verify import TrustContext

if TYPE_CHECKING:
    from contextplane.registry.verified_event import VerifiedEvent

__all__ = [
    "FORMAT",
    "MAX_BUNDLE_BYTES",
    "BundleIncomplete",
    "BundleInvalid",
    "BundleRecorder",
    "BundleView",
    "MirroredRelease",
    "OpenBundle",
    "RegistryBundle",
    "bundle_bytes",
    "open_bundle",
    "parse_bundle",
    "read_release",
]

FORMAT: Literal["registry-bundle.v1"] = "registry-bundle.v1"
MAX_BUNDLE_BYTES = 64 * 1024 * 1024
_MOST_ENVIRONMENTS = 64
_HINT = "ask for a new file: 'ctx export id@X.Y.Z -o FILE' in the store that has it"
_BASE64 = "base64:"
_LEVEL = re.compile(re.escape(f"tree/{TREE}/") + r"([0-9]{2})")
_KINDS = {KEYRING_STREAM: "keyring_changed", LOG: "entry", COSIGNATURES: "cosignature"}


class BundleInvalid(ContextPlaneError):
    """Bytes that are not a bundle in its one form."""

    code: ClassVar[str] = "bundle_invalid"
    family: ClassVar[Family] = "refused"


class BundleIncomplete(ContextPlaneError):
    """A bundle without an object that its events name."""

    code: ClassVar[str] = "bundle_incomplete"
    family: ClassVar[Family] = "untrusted"


class BundleStream(Document, frozen=True):
    """Events of a stream, from the one after number `after` to its end: their bodies, as they are stored.

    A signer of the log can put bytes into a stream that are no text. They are in base64, after `base64:`.
    """

    after: Annotated[int, Meta(ge=0)]
    events: tuple[str, ...]


class BundleNode(Document, frozen=True):
    """A node of the tree over the log."""

    hash: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    index: Annotated[int, Meta(ge=0)]
    level: Annotated[int, Meta(ge=0, le=63)]


class RegistryBundle(Document, frozen=True):
    """The content of a bundle. Nothing in it is verified, and no name in it is used as a path.

    `since`: the size of an earlier log, from which `tree` has a consistency proof; 0: none. `streams`: by name.
    `objects`: in base64.
    """

    checkpoint: str
    environments: Annotated[tuple[str, ...], Meta(max_length=_MOST_ENVIRONMENTS)]
    format: Literal["registry-bundle.v1"]
    heads: tuple[str, ...]
    objects: tuple[str, ...]
    origin: Annotated[str, Meta(min_length=1, max_length=256)]
    ref: Annotated[str, Meta(max_length=256)]
    since: Annotated[int, Meta(ge=0)]
    streams: dict[str, BundleStream]
    tree: tuple[BundleNode, ...]

    @property
    def version(self) -> PackRef:
        return PackRef.parse(self.ref)


_decoder = msgspec.json.Decoder(RegistryBundle)


def bundle_bytes(bundle: RegistryBundle) -> bytes:
    """The one form of a bundle: canonical JSON."""
    value: Json = msgspec.to_builtins(bundle)
    return canonical(value)


def parse_bundle(data: bytes) -> RegistryBundle:
    """Parse a bundle, or refuse bytes that are not exactly the form of one."""
    if len(data) > MAX_BUNDLE_BYTES:
        raise BundleInvalid(f"{len(data)} bytes", hint=f"a bundle has at most {MAX_BUNDLE_BYTES}")
    try:
        bundle = _decoder.decode(data)
        is_canonical = bundle_bytes(bundle) == data
    except (msgspec.DecodeError, UnicodeError, RecursionError, ContextPlaneError) as error:
        raise BundleInvalid(f"not a bundle: {error}", hint=_HINT) from error
    lists: tuple[Sequence[str | BundleNode], ...] = (bundle.environments, bundle.heads, bundle.objects, bundle.tree)
    if not is_canonical or any(list(members) != sorted(set(members), key=_order) for members in lists):
        raise BundleInvalid("not in the one form that is written", hint="canonical JSON, each list sorted")
    try:
        str(bundle.version)
    except ContextPlaneError as error:
        raise BundleInvalid(f"not a version: {error.message}", hint=_HINT) from error
    return bundle


def _order(member: str | BundleNode) -> tuple[int, int, str]:
    return (0, 0, member) if isinstance(member, str) else (member.level, member.index, member.hash)


# --- writing ----------------------------------------------------------------------------------------------------------


class BundleRecorder:
    """Serves a registry and remembers what was read: `bundle` is made of that.

    It is a view of streams and of nodes. `fetch`: returns the bytes of an object.
    """

    def __init__(self, streams: StreamsView, nodes: HeadNodesView, fetch: Callable[[Digest], bytes]) -> None:
        self._streams = streams
        self._nodes = nodes
        self._fetch = fetch
        self._read_after = {KEYRING_STREAM: 0}
        self._heads: set[str] = set()
        self._tree: dict[tuple[int, int], str] = {}
        self._objects: dict[Digest, bytes] = {}

    def head(self, stream: str) -> int:
        return self._streams.head(stream)

    def read(self, stream: str, *, after: int = 0) -> Iterator[StoredEvent]:
        level = _LEVEL.fullmatch(stream)
        if level is None:
            self._read_after[stream] = min(after, self._read_after.get(stream, after))
        for event in self._streams.read(stream, after=after):
            if level is not None:
                self._tree[int(level[1]), event.seq - 1] = event.body[1:-1].decode()
            yield event

    def names(self, prefix: str = "") -> Iterator[str]:
        return self._streams.names(prefix)

    def get(self, name: str) -> str | None:
        text = self._nodes.get(name)
        if text is not None:
            self._heads.add(text)
        return text

    def object(self, digest: Digest) -> bytes:
        if digest not in self._objects:
            self._objects[digest] = self._fetch(digest)
        return self._objects[digest]

    def bundle(
        self, ref: PackRef, environments: tuple[str, ...], newest: VerifiedCheckpoint, since: int
    ) -> RegistryBundle:
        """The bundle of everything that was read so far."""
        streams = {
            name: BundleStream(
                after=after, events=tuple(_body_text(event.body) for event in self._streams.read(name, after=after))
            )
            for name, after in sorted(self._read_after.items())
            if name in {LOG, KEYRING_STREAM, COSIGNATURES} or name.startswith(SUBJECTS)
        }
        nodes = [BundleNode(level=level, index=index, hash=text) for (level, index), text in self._tree.items()]
        return RegistryBundle(
            checkpoint=newest.note.decode(),
            environments=tuple(sorted(set(environments))),
            format=FORMAT,
            heads=tuple(sorted(self._heads)),
            objects=tuple(sorted(map(encode_base64, self._objects.values()))),
            origin=newest.checkpoint.origin,
            ref=str(ref),
            since=since,
            streams={name: stream for name, stream in streams.items() if stream.events},
            tree=tuple(sorted(nodes, key=_order)),
        )


def _body_text(body: bytes) -> str:
    """The body of an event as a bundle has it."""
    with suppress(UnicodeDecodeError):
        text = body.decode()
        if not text.startswith(_BASE64):
            return text
    return _BASE64 + encode_base64(body)


# --- reading ----------------------------------------------------------------------------------------------------------


class BundleView:
    """Serves the content of a bundle as the streams, the nodes and the objects of a catalog."""

    def __init__(self, bundle: RegistryBundle) -> None:
        self._streams: dict[str, tuple[int, Sequence[bytes]]] = {
            name: (stream.after, [_read_body(text) for text in stream.events])
            for name, stream in bundle.streams.items()
        }
        self._streams[CHECKPOINTS] = (0, [canonical(bundle.checkpoint)])
        self._nodes = {node_name(hashlib.sha256(text.encode()).digest()): text for text in bundle.heads}
        self._tree = {(level_name(TREE, node.level), node.index): node.hash for node in bundle.tree}
        objects = [_decode(text, "an object", at="/objects") for text in bundle.objects]
        self._objects = {Digest.of(data): data for data in objects}

    def head(self, stream: str) -> int:
        before, bodies = self._streams.get(stream, (0, ()))
        return before + len(bodies)

    def read(self, stream: str, *, after: int = 0) -> Iterator[StoredEvent]:
        node = self._tree.get((stream, after))
        if node is not None:
            yield StoredEvent(stream=stream, seq=after + 1, kind="node", body=canonical(node))
            return
        before, bodies = self._streams.get(stream, (0, ()))
        for seq, body in enumerate(bodies, before + 1):
            if seq > after:
                yield StoredEvent(stream=stream, seq=seq, kind=_KINDS.get(stream) or _kind_in(body), body=body)

    def names(self, prefix: str = "") -> Iterator[str]:
        return iter(sorted(name for name in self._streams if name.startswith(prefix)))

    def get(self, name: str) -> str | None:
        return self._nodes.get(name)

    def object(self, digest: Digest) -> bytes:
        if digest not in self._objects:
            raise BundleIncomplete("an object is missing", at=str(digest), hint=_HINT)
        return self._objects[digest]


def _read_body(text: str) -> bytes:
    """The body of an event, whose text must be the one that is written for it."""
    if not text.startswith(_BASE64):
        return text.encode()
    body = _decode(text.removeprefix(_BASE64), "an event", at="/streams")
    if _body_text(body) != text:
        raise BundleInvalid("an event that is text is in base64", hint=_HINT)
    return body


def _decode(text: str, what: str, *, at: str) -> bytes:
    try:
        return decode_base64(text, at=at)
    except Base64Refused as error:
        raise BundleInvalid(f"{what} is not base64", hint=_HINT) from error


def _kind_in(body: bytes) -> str:
    """The kind of an event by its body. Empty if it is no event; its reader refuses it."""
    with suppress(ContextPlaneError):
        return kind_of(read_event(body)[1].change)
    return ""


class OpenBundle(Value, frozen=True):
    """A bundle whose checkpoint and keyring are verified, but not trusted yet, and its content to read.

    `keyring`: the events of the keyring, in order. A trust root must vouch for them.
    """

    bundle: RegistryBundle
    keys: TrustedKeys
    newest: VerifiedCheckpoint
    opened: OpenRegistry
    view: BundleView
    keyring: tuple[bytes, ...]

    @property
    def snapshot(self) -> RegistrySnapshot:
        return CatalogSnapshot(self.opened, self.view.object)

    def consistency(self, old: int) -> tuple[bytes, ...]:
        """The consistency proof from the first `old` entries of the log, as far as the bundle has it."""
        return consistency_proof(StreamTree(self.view, TREE), old, self.newest.checkpoint.size)


def open_bundle(bundle: RegistryBundle, check: SignatureCheck) -> OpenBundle:
    """Open a bundle whose checkpoint is signed under its keyring, by a key that may sign the log.

    Whether that is the keyring of a store that the user trusts, `bundle_trust.py` decides.
    """
    view = BundleView(bundle)
    keyring = bundle.streams.get(KEYRING_STREAM)
    if keyring is None or keyring.after:
        raise BundleInvalid("its keyring is not there from the first event on", hint=_HINT)
    bodies = tuple(event.body for event in view.read(KEYRING_STREAM))
    keys = follow_keyring(view, TrustedKeys(origin=bundle.origin), check)
    keyrings = KeyringHistory(keys, bodies)
    newest = REGISTRY_LOG.newest_checkpoint(view, keyrings, check, bundle.origin)
    REGISTRY_LOG.check_keyring(newest, keys)
    if newest is None or newest.is_first_format:
        raise BundleInvalid("its checkpoint has the first format", hint="an owner seals the store it is from")
    reader = RegistryReader(view, keyrings, check, StreamHeads(view, newest.heads), log=newest.checkpoint)
    return OpenBundle(
        bundle=bundle,
        keys=keys,
        newest=newest,
        opened=OpenRegistry(reader=reader, newest=newest),
        view=view,
        keyring=bodies,
    )


class MirroredRelease(Value, frozen=True):
    """A version as a replay gets it, and which of the environments pin it."""

    admitted: AdmittedDocument
    published: Published
    pinned_in: tuple[str, ...]


def read_release(
    ref: PackRef,
    environments: tuple[str, ...],
    *,
    snapshot: RegistrySnapshot,
    trust_context: TrustContext,
    judgement: ClaimsJudgement,
) -> MirroredRelease:
    """Read and verify everything that a run or a replay of a version reads in these environments.

    Who writes a bundle and who receives it call this: the one to record what is read, the other to miss nothing.
    """

    def admit_version(name: PackRef) -> AdmittedDocument:
        admitted = admit(name, "replay", snapshot=snapshot, trust_context=trust_context, judgement=judgement)
        events.extend(admitted.events)
        return admitted

    events: list[VerifiedEvent] = []
    admitted = admit_version(ref)
    published = _publication(ref, snapshot)
    catalogs = [PackRef(catalog.id, catalog.version) for catalog in published.catalogs]
    for catalog in catalogs:
        admit_version(catalog)
    pinned_in: list[str] = []
    for environment in environments:
        snapshot.last(environment_stream(environment))
        for document in (ref, *catalogs):
            event = snapshot.last(pins_stream(environment, document.pack_id))
            if event is None:
                continue
            events.append(event)
            pins = PinState(environment=environment, base_id=document.pack_id).after_event(event).pins
            if document == ref and pins.base is not None and ref_of(pins.base) == ref:
                pinned_in.append(environment)
            for overlay in pins.overlays:
                admit_version(ref_of(overlay))
    newest = snapshot.newest()
    snapshot.witnesses()  # a run asks for them
    if newest is not None:
        for event in events:
            prove_event(event, newest.checkpoint, snapshot)
    return MirroredRelease(admitted=admitted, published=published, pinned_in=tuple(pinned_in))


def _publication(ref: PackRef, snapshot: RegistrySnapshot) -> Published:
    """The publication of a version that was admitted: its first event."""
    change = next(iter(snapshot.history(version_stream(ref)))).change
    if not isinstance(change, Published):
        raise BundleInvalid("its first event is no publication", at=str(ref))
    return change
