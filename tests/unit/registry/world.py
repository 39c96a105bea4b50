"""A registry in a real catalog, people with real keys, and a clock that only moves when it is told to."""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from msgspec.structs import replace

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.adapters.sqlite.connection import MEMORY
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import ArtifactKind
from contextplane.model.catalog import IndexedObject
from contextplane.model.ids import Digest, PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, StreamsView
from contextplane.ports.keys import Signer
from contextplane.registry.artifact_state import REVIEW_ROLES
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.events import Change, Drafted, Linted, Pinned, Pins, Published, Review, Signed, Verdict
from contextplane.registry.log import next_keyring_entry
from contextplane.registry.open import open_registry
from contextplane.registry.publish import plan_publication
from contextplane.registry.reader import RegistryReader
from contextplane.registry.resign import resign_after_keyring_change
from contextplane.registry.streams import (
    REGISTRY,
    VERSIONS,
    artifact_stream,
    origin_of,
    pins_stream,
    version_stream,
    versions_of,
)
from contextplane.registry.writer import AppendResult, PlannedChange, RegistryWriter
from contextplane.trust.keyring import TrustedKeys, sign_change
from contextplane.trust.keyring_events import Change as KeyChange
from contextplane.trust.keyring_events import KeyTrust
from contextplane.trust.keyring_stream import append_change, follow_keyring
from tests.unit.trust.world import CHECK, key_of, trust

__all__ = ["ISSUER", "ORIGIN", "PEOPLE", "STORE", "Registry", "predecessor", "recorded"]

_TEMPLATES: dict[type["Registry"], "Registry"] = {}
"""Registries in which nothing happened yet, by class: to sign and check it all takes longer than a copy."""

ISSUER = "acme"
STORE = "0123456789abcdef"
ORIGIN = origin_of(STORE)
PEOPLE: dict[str, tuple[str, ...]] = {
    "root": ("owner",),
    "author": ("log",),
    "arch": ("architecture", "log"),
    "sec": ("log", "security"),
    "dat": ("data", "log"),
    "eva": ("evaluation", "log", "support_ops"),
    "pub": ("log", "publisher"),
    "ops": ("environment:dev", "environment:prod", "environment:staging", "log", "operator"),
}


def recorded(data: bytes) -> IndexedObject:
    return IndexedObject(digest=Digest.of(data), kind="blob", size=len(data), traced=True)


def _with_claims(reader: RegistryReader, planned: Sequence[PlannedChange]) -> list[PlannedChange]:
    """The changes, and before each publication the claim to its id, as everybody makes it who publishes."""
    changes: list[PlannedChange] = []
    for plan in planned:
        if isinstance(plan.change, Published) and plan.stream.startswith(VERSIONS):
            ref = PackRef.parse(plan.stream.removeprefix(VERSIONS))
            changes += plan_publication(reader.name(ref.pack_id), ref, plan.change, plan.reason)
        else:
            changes.append(plan)
    return changes


def predecessor(streams: StreamsView, ref: PackRef) -> PackRef | None:
    """The highest published version below a number."""
    below = [version for version in versions_of(streams, ref.pack_id) if version.release < ref.release]
    return below[-1] if below else None


class Registry:
    """One registry. Time passes a second with every act. A catalog that it makes itself is closed along with it.

    `template`: make it from nothing. Other registries in memory begin as copies of the template of their class.
    """

    catalog: Catalog

    def __init__(self, catalog: Catalog | None = None, *, path: str = MEMORY, template: bool = False) -> None:
        self.seconds = 0
        self.copied = catalog is None and path == MEMORY and not template
        if self.copied:
            kind = type(self)
            if kind not in _TEMPLATES:
                _TEMPLATES[kind] = kind(template=True)
            self.take(_TEMPLATES[kind])
        elif catalog is None:
            self._own(SqliteCatalog.create(path, STORE)[0])
            for name, roles in PEOPLE.items():
                self.keyring_change(trust(key_of(name), ISSUER, *roles))
        else:
            self.catalog = catalog
        self.began = self.seconds

    def take(self, other: "Registry") -> None:
        """Become as another one is, with a catalog of its own."""
        assert isinstance(other.catalog, SqliteCatalog)
        self._own(other.catalog.copy())
        self.seconds = other.seconds

    def _own(self, catalog: SqliteCatalog) -> None:
        self.catalog = catalog
        weakref.finalize(self, catalog.close)

    @property
    def now(self) -> Timestamp:
        return Timestamp(seconds=Timestamp.parse("2030-02-01T00:00:00Z").seconds + self.seconds, nanos=0)

    def keyring_change(
        self, change: KeyChange, *, seal: bool = True, log: bool = True, entry: int | None = None
    ) -> None:
        """Change the keyring, and sign the registry anew where that is possible. `seal`: as everybody does by now.

        `log`: whoever is trusted may sign the log. `entry`: the place that the change names, if it is another one.
        """
        self.seconds += 1
        if log and isinstance(change, KeyTrust):
            change = replace(change, roles=tuple(sorted({*change.roles, "log"})))
        root = key_of("root")
        with self.catalog.write() as tx:
            keys = follow_keyring(tx.streams, TrustedKeys(origin=ORIGIN), CHECK)
            place = next_keyring_entry(tx.streams, keys) if entry is None else entry
            body = sign_change(keys, change, at=self.now, signer=root, entry=place)
            after = append_change(tx.streams, keys, body, CHECK)
            if seal:
                with suppress(ContextPlaneError):
                    resign_after_keyring_change(
                        tx,
                        before=keys,
                        after=after,
                        check=CHECK,
                        signer=root,
                        now=self.now,
                        origin=ORIGIN,
                        seen=None,
                    )

    @contextmanager
    def reading(self) -> Iterator[RegistryReader]:
        with self.catalog.read() as view:
            keys = follow_keyring(view.streams, TrustedKeys(origin=ORIGIN), CHECK)
            yield RegistryReader(view.streams, KeyringHistory.of(view.streams, keys), CHECK)

    @contextmanager
    def opened(self) -> Iterator[RegistryReader]:
        """Read it as a client does who looks for the first time."""
        with self.catalog.read() as view:
            keys = follow_keyring(view.streams, TrustedKeys(origin=ORIGIN), CHECK)
            yield open_registry(view, keys, CHECK, origin=ORIGIN, seen=None).reader

    def act(self, by: str | Signer, *planned: PlannedChange, objects: tuple[bytes, ...] = ()) -> AppendResult:
        self.seconds += 1
        signer = key_of(by) if isinstance(by, str) else by
        with self.catalog.write() as tx:
            keys = follow_keyring(tx.streams, TrustedKeys(origin=ORIGIN), CHECK)
            writer = RegistryWriter(tx, keys=keys, check=CHECK, signer=signer, now=self.now, origin=ORIGIN)
            return writer.append(_with_claims(writer.reader, planned), [recorded(object_) for object_ in objects])

    def on_artifact(self, by: str, data: bytes, change: Change, *objects: bytes) -> AppendResult:
        plan = PlannedChange(stream=artifact_stream(Digest.of(data)), change=change, reason="as it should be")
        return self.act(by, plan, objects=objects)

    def on_version(self, by: str, ref: str, change: Change, *objects: bytes) -> AppendResult:
        plan = PlannedChange(stream=version_stream(PackRef.parse(ref)), change=change, reason="as it should be")
        return self.act(by, plan, objects=objects)

    def draft(self, data: bytes, ref: str = "refunds@1.0.0", *, kind: ArtifactKind = "context_pack") -> None:
        base, _, version = ref.partition("@")
        self.on_artifact("author", data, Drafted(kind=kind, id=base, version=version, issuer=ISSUER), data)

    def lint(self, data: bytes, *roles: str) -> None:
        report = b"report of " + data
        self.on_artifact("author", data, Linted(report=str(Digest.of(report)), roles=roles, after=""), report)

    def review(self, by: str, data: bytes, role: str, verdict: Verdict = "approve") -> None:
        self.on_artifact(by, data, Review(role=role, verdict=verdict))

    def review_all(self, data: bytes) -> None:
        for by, role in zip(("arch", "sec", "dat", "eva"), REVIEW_ROLES, strict=True):
            self.review(by, data, role)

    def sign(self, data: bytes, by: str = "pub", *, threshold: int = 1) -> None:
        envelope = b"envelope of " + data
        change = Signed(envelope=str(Digest.of(envelope)), threshold=threshold)
        self.on_artifact(by, data, change, envelope)

    def publish(self, data: bytes, ref: str = "refunds@1.0.0", *, by: str = "pub", walk: bool = True) -> AppendResult:
        """Publish some bytes, walking all the way up to there first."""
        if walk:
            self.draft(data, ref)
            self.lint(data)
            self.review_all(data)
            self.sign(data)
        with self.catalog.read() as view:
            before = predecessor(view.streams, PackRef.parse(ref))
        change = Published(
            digest=str(Digest.of(data)),
            kind="context_pack",
            issuer=ISSUER,
            envelope=str(Digest.of(b"envelope of " + data)),
            report=str(Digest.of(b"report of " + data)),
            golden="not_run",
            after="" if before is None else before.version,
        )
        return self.on_version(by, ref, change)

    def pin(self, environment: str, ref: str, data: bytes, *, by: str = "ops") -> AppendResult:
        base, _, version = ref.partition("@")
        change = Pinned(kind="context_pack", id=base, version=version, digest=str(Digest.of(data)), pins=Pins())
        return self.act(by, PlannedChange(stream=pins_stream(environment, base), change=change, reason="go"))

    def streams(self) -> dict[str, list[tuple[int, str, bytes]]]:
        """Everything that the registry's streams hold."""
        with self.catalog.read() as view:
            names = [*view.streams.names(REGISTRY), *view.streams.names("tree/")]
            return {name: [(event.seq, event.kind, event.body) for event in view.streams.read(name)] for name in names}

    def tamper(self, stream: str, seq: int, body: bytes) -> None:
        """Change a stored event behind the registry's back."""
        with self.catalog.write() as tx:
            database = tx.streams._db  # type: ignore[attr-defined]
            guards = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'event'")
            for (guard,) in guards.fetchall():
                database.execute(f"DROP TRIGGER {guard}")
            database.execute("UPDATE event SET body = ? WHERE stream = ? AND seq = ?", (body, stream, seq))
