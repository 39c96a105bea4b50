"""A session with the registry of a store: reads it with the trusted keyring, and acts with a key."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from contextplane.app.registry.keys import KeyStore
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import IndexedObject
from contextplane.model.ids import Digest, PackRef, UnpinnedRef
from contextplane.model.json.canonical import Json
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.keys import Signer
from contextplane.ports.objects import Batch
from contextplane.registry.artifacts import Candidate, read_artifact
from contextplane.registry.errors import ArtifactUnknown
from contextplane.registry.first_format import refuse_unsealed
from contextplane.registry.open import OpenRegistry, open_registry
from contextplane.registry.pin_state import AliasNotFound
from contextplane.registry.reader import RegistryReader
from contextplane.registry.reports import EvaluationReport, GoldenCases, GoldenResult, ReleaseGates
from contextplane.registry.writer import AppendResult, PlannedChange, RegistryWriter
from contextplane.store.event_stream import commit_recorded
from contextplane.store.staged_changes import StagedChanges, StagedObjects, retry_conflicts
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM

if TYPE_CHECKING:
    from contextplane.trust.checkpoint import Checkpoint
    from contextplane.trust.merkle_log import VerifiedCheckpoint

__all__ = ["AppendResult", "ArtifactAmbiguous", "NameAmbiguous", "RegistrySession", "SignedBy", "retry_conflicts"]

_DIGEST = "sha256:"


class ArtifactAmbiguous(ContextPlaneError):
    """There are several drafts of one version, and the command does not name one of them."""

    code: ClassVar[str] = "artifact_ambiguous"
    family: ClassVar[Family] = "usage"


class NameAmbiguous(ContextPlaneError):
    """A name that is an alias for one version and an environment that pins another."""

    code: ClassVar[str] = "alias_ambiguous"
    family: ClassVar[Family] = "usage"


class _StoredGoldenCases:
    """Runs the golden cases that were stored with a version. The compiler is loaded only when they run."""

    def __init__(self, session: "RegistrySession") -> None:
        self._session = session

    def run(self, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> GoldenResult:
        from contextplane.app.token_counters import choose_counter
        from contextplane.evaluation.golden_release import run_published_cases

        with self._session.read() as reader:
            published = reader.version(ref).published
        report = self._session.platform.objects.get(Digest.parse(published.report)) if published is not None else None
        return run_published_cases(report, ref, value, catalogs, choose_counter)


class _NoEvaluations:
    def evaluate(self, ref: PackRef, environment: str) -> EvaluationReport | None:  # noqa: ARG002  there are no evaluations yet
        return None


class _StoredObjects:
    """The objects that one act stores: in files when it is committed, and known to it before."""

    def __init__(self, batch: Batch, staged: StagedObjects) -> None:
        self._batch = batch
        self._staged = staged
        self._recorded: list[IndexedObject] = []

    def put(self, data: bytes) -> None:
        indexed = IndexedObject(digest=self._batch.put(data), kind="blob", size=len(data), traced=True)
        self._recorded.append(indexed)
        if self._staged.lookup(indexed.digest) is None:
            self._staged.record(indexed)

    def commit(self, catalog: Catalog) -> None:
        """Make all of them durable. The batch stays open until the act is committed, which keeps them."""
        if self._recorded:
            commit_recorded(self._batch, catalog, self._record)

    def _record(self, tx: Transaction) -> None:
        for indexed in self._recorded:
            tx.objects.record(indexed)


class SignedBy(NamedTuple):
    """The signer of an act, and its reason."""

    signer: Signer
    reason: str


class RegistrySession:
    """The registry of one store. `golden` runs golden cases; `evaluations` has results of release gates."""

    def __init__(
        self, keys: KeyStore, golden: GoldenCases | None = None, evaluations: ReleaseGates | None = None
    ) -> None:
        self.keys = keys
        self.platform = keys.platform
        self.memory = keys.memory
        self.origin = keys.origin
        self.golden: GoldenCases = golden or _StoredGoldenCases(self)
        self.evaluations: ReleaseGates = evaluations or _NoEvaluations()
        self.newest: VerifiedCheckpoint | None = None
        """The newest checkpoint of the registry that was opened last for reading."""
        self._reader: RegistryReader | None = None
        self._objects: _StoredObjects

    @contextmanager
    def read(self) -> Iterator[RegistryReader]:
        """Read the registry as it is now, in one consistent view. A call within another one shares its view.

        Opening the registry verifies its log and newest checkpoint: a command that reads several things opens it once.
        """
        if self._reader is not None:
            yield self._reader
            return
        with self.open() as (_, opened, _):
            self.memory.remember(opened)
            self.newest = opened.newest
            with self._share_reader(opened.reader):
                yield opened.reader

    @contextmanager
    def open(self) -> Iterator[tuple[View, OpenRegistry, "Checkpoint | None"]]:
        """Open the registry in a view of its own; yield both, and what this client saw before."""
        seen, _ = self.memory.load(), self.keys.keyring
        with self.platform.catalog.read() as view:
            keys, seen = self.keys.follow_seen(view.streams, seen)
            with self.memory.name_file():
                opened = open_registry(
                    view,
                    keys,
                    self.keys.check,
                    origin=self.origin,
                    seen=seen,
                    root=self.memory.root,
                    voids=self.memory.voids,
                )
            yield view, opened, seen

    @contextmanager
    def _share_reader(self, reader: RegistryReader) -> Iterator[None]:
        """Let calls of `read` within the block use this reader."""
        self._reader = reader
        try:
            yield
        finally:
            self._reader = None

    @contextmanager
    def write(self, signer: Signer, stored: Sequence[bytes] = ()) -> Iterator[RegistryWriter]:
        """Write to the registry by one act. `stored`: objects that its events name; `store` takes more.

        The block decides and signs by one snapshot, while others may write. What it appended is committed after it;
        `StreamConflict` if the registry moved meanwhile. Objects that no event comes to name are garbage, and are
        collected later.
        """
        seen, known = self.memory.load(), self.keys.keyring
        refuse_unsealed(known)
        with self.platform.objects.batch() as batch:
            with self.platform.catalog.read() as view:
                staged = StagedChanges(view, unmoved=(KEYRING_STREAM,))
                self._objects = _StoredObjects(batch, staged.objects)
                for data in stored:
                    self.store(data)
                keys, seen = self.keys.follow_seen(view.streams, seen)
                with self.memory.name_file():
                    writer = RegistryWriter(
                        staged,
                        keys=keys,
                        check=self.keys.check,
                        signer=signer,
                        now=self.keys.clock,
                        origin=self.origin,
                        seen=seen,
                        root=self.memory.root,
                        voids=self.memory.voids,
                    )
                self.keys.behind = writer.behind
                with self._share_reader(writer.reader):
                    yield writer
            if staged.streams.staged:
                self._objects.commit(self.platform.catalog)
            staged.commit(self.platform.catalog)
        self.memory.save(writer.newest, writer.voids)

    def store(self, data: bytes) -> None:
        """Store an object that an event of the act names. Only within `write`."""
        self._objects.put(data)

    @retry_conflicts
    def act(self, signer: Signer, planned: Sequence[PlannedChange], stored: Sequence[bytes] = ()) -> AppendResult:
        """Append these events, with the objects that they name."""
        with self.write(signer, stored) as writer:
            return writer.append(planned)

    def artifact(self, digest: Digest) -> Candidate:
        """Read a stored artifact. Its bytes are verified by the digest."""
        return read_artifact(self.platform.objects.get(digest))

    def candidate_digest(self, target: str) -> Digest:
        """Return the digest of a recorded artifact: `sha256:...`, or `id@X.Y.Z` if that has a single draft."""
        if target.startswith(_DIGEST) and "@" not in target:
            return Digest.parse(target)
        digests = self.drafts_of(PackRef.parse(target))
        if not digests:
            raise ArtifactUnknown(
                "it is not recorded",
                at=target,
                hint="'ctx lint FILE --record' records it; 'ctx packs --drafts' lists drafts",
            )
        if len(digests) > 1:
            raise ArtifactAmbiguous(
                f"{len(digests)} different drafts of it are known",
                at=target,
                hint=f"name the bytes: {', '.join(str(digest) for digest in sorted(digests)[:3])}",
                details={"digests": [str(digest) for digest in sorted(digests)]},
            )
        return digests[0]

    def drafts_of(self, ref: PackRef) -> list[Digest]:
        """List the drafts of a version, without those that were withdrawn."""
        with self.read() as reader:
            return list(reader.candidates(ref))

    def named_version(self, text: str) -> PackRef:
        """Return the version that `id@X.Y.Z` or `id@ALIAS` names, or that `id@ENV` pins."""
        base_id, at, name = text.rpartition("@")
        try:
            return PackRef.parse(text)
        except UnpinnedRef as error:
            if not at or not name or not (name[0].isalpha() and base_id):
                error.hint = "write id@X.Y.Z, or id@NAME for an alias or an environment; 'ctx packs' lists them"
                raise
        with self.read() as reader:
            aliases = reader.aliases(base_id)
            alias = aliases.lookup(name)
            pinned = reader.pins(name, base_id).base
        if alias is not None and pinned is not None and alias != pinned:
            raise NameAmbiguous(
                f"as an alias it is {alias}, and the environment pins {pinned}", at=text, hint="write the version"
            )
        ref = alias or pinned
        if ref is None and name in aliases.doubtful:
            raise AliasNotFound(
                f"a key that is revoked called {base_id} {name!r}",
                at=text,
                hint=f"'ctx pin {name} VERSION --alias' sets it again",
            )
        if ref is None:
            raise AliasNotFound(
                f"{base_id} has no alias {name!r}, and no environment of that name pins it",
                at=text,
                hint="'ctx packs' lists versions, pins and aliases",
            )
        return ref
