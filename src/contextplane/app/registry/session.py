"""The registry of a store, put to use: reading it by the keyring that is trusted, and acting in it with a key.

Published decision catalogs by their names, for whoever judges a pack together with them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, NamedTuple

from contextplane.app.registry.keys import KeyDesk
from contextplane.app.registry.memory import RegistryMemory
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Recorded
from contextplane.model.ids import Digest, PackRef, UnpinnedRef
from contextplane.model.json.canonical import Json
from contextplane.ports.keys import Signer
from contextplane.registry.artifacts import Candidate, read_artifact
from contextplane.registry.errors import ArtifactUnknown
from contextplane.registry.open import check_continuity, open_registry
from contextplane.registry.pin_state import AliasNotFound
from contextplane.registry.reader import Reader
from contextplane.registry.reports import Evaluated, Golden, GoldenCases, ReleaseGates
from contextplane.registry.streams import origin_of
from contextplane.registry.writer import Appended, Planned, Writer, draft_root
from contextplane.trust.keyring_stream import followed

__all__ = ["ArtifactAmbiguous", "By", "NameAmbiguous", "RegistryDesk"]

_DIGEST = "sha256:"


class ArtifactAmbiguous(ContextPlaneError):
    """Several drafts of one version are known, and it was not said which bytes are meant."""

    code: ClassVar[str] = "artifact_ambiguous"
    family: ClassVar[Family] = "usage"


class NameAmbiguous(ContextPlaneError):
    """A name that is an alias for one version and an environment that pins another."""

    code: ClassVar[str] = "alias_ambiguous"
    family: ClassVar[Family] = "usage"


class _KeptCases:
    """The golden cases that were kept with a version. Whoever never runs them does not load the compiler."""

    def __init__(self, desk: "RegistryDesk") -> None:
        self._desk = desk

    def run(self, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> Golden:
        from contextplane.evaluation.golden_release import kept_cases

        with self._desk.reading() as reader:
            published = reader.version(ref).published
        report = self._desk.platform.objects.get(Digest.parse(published.report)) if published is not None else None
        return kept_cases(report, ref, value, catalogs)


class _NoEvaluations:
    def evaluated(self, ref: PackRef, environment: str) -> Evaluated | None:  # noqa: ARG002  nobody evaluates yet
        return None


class By(NamedTuple):
    """Who acts, and why."""

    signer: Signer
    reason: str


class RegistryDesk:
    """One store's registry. `golden` and `evaluations` are those who run cases and judge runs."""

    def __init__(
        self, keys: KeyDesk, golden: GoldenCases | None = None, evaluations: ReleaseGates | None = None
    ) -> None:
        self.keys = keys
        self.platform = keys.platform
        self.memory = RegistryMemory(keys.files)
        self.origin = origin_of(keys.platform.store_id)
        self.golden: GoldenCases = golden or _KeptCases(self)
        self.evaluations: ReleaseGates = evaluations or _NoEvaluations()

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """The registry as it is now, in one consistent view."""
        seen, known = self.memory.recalled(), self.keys.keyring
        with self.platform.catalog.read() as view:
            keys = followed(view.streams, known, self.keys.check)
            opened = open_registry(view, keys, self.keys.check, origin=self.origin, seen=seen)
            self.memory.keep(opened.standing)
            yield opened.reader

    @contextmanager
    def writing(self, signer: Signer, stored: Sequence[bytes] = ()) -> Iterator[Writer]:
        """Act in the registry, in one transaction, with objects that are stored before and kept by what refers to them.

        What is left over when nothing comes to refer to them is collected some day.
        """
        seen, known = self.memory.recalled(), self.keys.keyring
        with self.platform.objects.batch() as batch:
            recorded = [Recorded(digest=batch.put(data), kind="blob", size=len(data), traced=True) for data in stored]
            if recorded:
                # Before they are visible: what a killed process leaves behind is then known, and can be collected.
                with self.platform.catalog.write(survives="crash") as tx:
                    for one in recorded:
                        tx.objects.record(one)
                batch.commit()
            with self.platform.catalog.write() as tx:
                keys = followed(tx.streams, known, self.keys.check)
                writer = Writer(
                    tx, keys=keys, check=self.keys.check, signer=signer, now=self.keys.clock, origin=self.origin
                )
                check_continuity(tx.streams, writer.standing, seen)
                writer.reader.seen = seen
                self.keys.behind = writer.behind
                yield writer
        self.memory.keep(writer.standing)

    def act(self, signer: Signer, planned: Sequence[Planned], stored: Sequence[bytes] = ()) -> Appended:
        """Append these events, with the objects that they name."""
        with self.writing(signer, stored) as writer:
            return writer.append(planned)

    def artifact(self, digest: Digest) -> Candidate:
        """A stored artifact; its bytes are what its digest says."""
        return read_artifact(self.platform.objects.get(digest))

    def candidate_digest(self, target: str) -> Digest:
        """The digest of an artifact that was recorded: `sha256:...`, or `id@X.Y.Z` when that has one draft only."""
        if target.startswith(_DIGEST) and "@" not in target:
            return Digest.parse(target)
        ref = PackRef.parse(target)
        with self.platform.catalog.read() as view:
            digests = [digest for _, digest in view.objects.roots(draft_root(ref))]
        if not digests:
            raise ArtifactUnknown("nobody recorded it", at=target, hint="'ctx lint FILE --record' does")
        if len(digests) > 1:
            raise ArtifactAmbiguous(
                f"{len(digests)} different drafts of it are known",
                at=target,
                hint=f"name the bytes: {', '.join(str(digest) for digest in sorted(digests)[:3])}",
                details={"digests": [str(digest) for digest in sorted(digests)]},
            )
        return digests[0]

    def named_version(self, text: str) -> PackRef:
        """A version by what people call it: `id@X.Y.Z`, `id@ALIAS`, or `id@ENV` for what is pinned there."""
        base_id, at, name = text.rpartition("@")
        try:
            return PackRef.parse(text)
        except UnpinnedRef as error:
            if not at or not name or not (name[0].isalpha() and base_id):
                error.hint = "write id@X.Y.Z, or id@NAME for an alias or an environment; 'ctx packs' lists them"
                raise
        with self.reading() as reader:
            aliases = reader.aliases(base_id)
            alias = aliases.named(name)
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
                hint=f"'ctx pin {name} VERSION --alias' names it anew",
            )
        if ref is None:
            raise AliasNotFound(
                f"{base_id} has no alias {name!r}, and no environment of that name pins it",
                at=text,
                hint="'ctx packs' lists versions, pins and aliases",
            )
        return ref
