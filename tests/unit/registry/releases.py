"""A registry with real packs, catalogs and overlays in it, signed and published; and ways to ask it for them."""

import json
from collections.abc import Callable, Container, Iterable
from functools import cache
from typing import Any, NamedTuple, cast

import msgspec

from contextplane.adapters.sqlite.connection import MEMORY
from contextplane.authoring.gates.table import Report
from contextplane.errors import ContextPlaneError
from contextplane.model.artifact import FORMS, ArtifactKind, Overlay, issuer_of
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.timestamp import Timestamp
from contextplane.ports.keys import Keyring
from contextplane.ports.objects import ObjectNotFound
from contextplane.registry.artifact_state import REQUIRED_REVIEWS
from contextplane.registry.artifacts import ArtifactInvalid, candidate
from contextplane.registry.claims import ClaimsJudgement
from contextplane.registry.cosignatures import Witnesses
from contextplane.registry.events import (
    Approval,
    CatalogReference,
    Drafted,
    Linted,
    Pinned,
    Pins,
    Published,
    Signed,
)
from contextplane.registry.name_state import KindTaken, NameState, NameTaken
from contextplane.registry.open import open_registry
from contextplane.registry.rejudge import judge_publication
from contextplane.registry.reports import gates_report
from contextplane.registry.resolution import CatalogSnapshot, RegistrySnapshot, Resolution, ResolveRequest
from contextplane.registry.resolve import ResolveContext, resolve
from contextplane.registry.reviews import needed_roles
from contextplane.registry.streams import pins_stream, version_stream
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.registry.version_state import Use
from contextplane.registry.writer import PlannedChange
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.compatibility import RuntimeCapabilities
from contextplane.trust.dsse import Statement
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import follow_keyring
from contextplane.trust.merkle_log import VerifiedCheckpoint
from contextplane.trust.verify import TrustContext, sign
from tests.unit.authoring.changes import NARROWING, overlay
from tests.unit.authoring.packs import CASES, EXAMPLE
from tests.unit.registry.backdating import slip_change
from tests.unit.registry.world import ORIGIN, PEOPLE, Registry, predecessor
from tests.unit.trust.world import CHECK, day, key_of, trust

__all__ = ["CATALOG", "HERE", "OVERLAY", "PACK", "TENANT", "Bent", "Releases", "Walk", "envelope_of"]

TENANT = "tenant_acme_prod"
HERE = RuntimeCapabilities(ontologies=("ont.support@1.0.0",))
PACK = PackRef.parse("ctxpack.support@1.0.0")
CATALOG: dict[str, Any] = json.loads((CASES.parent / "decision_catalog" / "support.json").read_text(encoding="utf-8"))
OVERLAY: dict[str, Any] = {**msgspec.to_builtins(overlay(NARROWING[0])), "environment": "prod"}

Envelope = Callable[[Statement], bytes]


def envelope_of(*signers: str) -> Envelope:
    return lambda statement: sign(statement, *map(key_of, signers))


class Walk(NamedTuple):
    """How a document came to be published. As it stands here, in order; each field is a way round something.

    `reviews`: who approves in which role; None: everybody who has to. `late`: all of it after the publication. The
    others: what the events say.
    """

    draft: bool = True
    author: str = "author"
    kind: ArtifactKind | None = None
    issuer: str = ""
    name: str = ""
    lint: bool = True
    reviews: tuple[tuple[str, str], ...] | None = None
    signed: bool = True
    envelope: bytes = b""
    threshold: int = 1
    after: str | None = None
    approvals: tuple[Approval, ...] = ()
    catalogs: tuple[CatalogReference, ...] = ()
    signer: str = ""
    report: bytes = b""
    late: bool = False


IN_ORDER = Walk()
REVIEWERS = {"architecture": "arch", "security": "sec", "data": "dat", "evaluation": "eva", "support_ops": "eva"}


def _report_of(name: PackRef, data: bytes, catalogs: tuple[CatalogReference, ...]) -> bytes:
    return gates_report(name, Digest.of(data), Report(findings=()), catalogs=catalogs)


class Releases(Registry):
    """The registry of `tenant_acme_prod`. What is released is published, and `pin_here` pins it in `prod`."""

    def __init__(self, path: str = MEMORY, *, template: bool = False) -> None:
        super().__init__(path=path, template=template)
        self.kept: dict[Digest, bytes] = {}
        if self.copied:
            return
        people = {**PEOPLE, "signer": (), "short": ()}
        for name, roles in people.items():
            until = Timestamp.parse("2030-02-01T01:00:00Z") if name == "short" else None
            self.keyring_change(trust(key_of(name), TENANT, *roles, until=until))
        self.keyring_change(trust(key_of("stranger"), "tenant_globex", since=day(1)))
        for name in ("arch", "sec", "dat", "eva"):
            self.keyring_change(trust(key_of(name), "tenant_globex", *PEOPLE[name]))

    def release(  # noqa: PLR0913  what a release consists of
        self,
        value: Any = EXAMPLE,  # noqa: ANN401  any JSON
        kind: ArtifactKind = "context_pack",
        *,
        envelope: Envelope | None = None,
        ref: PackRef | None = None,
        by: str = "pub",
        issuer: str = "",
        walk: Walk = IN_ORDER,
    ) -> PackRef:
        """Publish a document as it is, signed by its issuer; or otherwise, where that is what is tried."""
        document = msgspec.convert(value, FORMS[kind])
        name = ref or document.ref
        data = canonical(cast("Json", value))
        issuer = issuer or issuer_of(document)
        return self.publish_bytes(data, name, kind, envelope=envelope, by=by, issuer=issuer, walk=walk)

    def publish_bytes(  # noqa: PLR0913  what a release consists of
        self,
        data: bytes,
        name: PackRef,
        kind: ArtifactKind = "context_pack",
        *,
        envelope: Envelope | None = None,
        by: str = "pub",
        issuer: str = TENANT,
        walk: Walk = IN_ORDER,
    ) -> PackRef:
        """Publish bytes, whatever they are, walking all the way up to there first."""
        statement = Statement(name=str(name), kind=kind, issuer=issuer, digest=Digest.of(data))
        sealed = (envelope or envelope_of("signer"))(statement)
        report = walk.report or _report_of(name, data, walk.catalogs)
        walk = walk._replace(report=report)
        self.kept |= {Digest.of(data): data for data in (data, sealed, report)}
        with self.catalog.read() as view:
            before = predecessor(view.streams, name)
        after = "" if before is None else before.version
        drafted = Drafted(kind=kind, id=name.pack_id, version=name.version, issuer=issuer)
        signer = walk.signer or ("signer" if issuer == TENANT else by)
        if not walk.late:
            self._walk(walk, data, drafted, sealed, signer)
        change = Published(
            digest=str(Digest.of(data)),
            kind=kind,
            issuer=issuer,
            envelope=str(Digest.of(sealed)),
            report=str(Digest.of(report)),
            golden="not_run",
            after=after if walk.after is None else walk.after,
            approvals=walk.approvals,
            catalogs=walk.catalogs,
        )
        try:
            self.on_version(by, str(name), change, data, sealed, report)
        except (NameTaken, KindTaken):
            slip_change(self, by, version_stream(name), change)  # past every rule
        if walk.late:
            self._walk(walk, data, drafted, sealed, signer)
        return name

    def _walk(self, walk: Walk, data: bytes, drafted: Drafted, sealed: bytes, signer: str) -> None:
        """Draft, lint, review, sign: each as far as it is gone."""
        base, _, version = walk.name.partition("@")
        drafted = Drafted(
            kind=walk.kind or drafted.kind,
            id=base or drafted.id,
            version=version or drafted.version,
            issuer=walk.issuer or drafted.issuer,
        )
        if walk.draft:
            self.on_artifact(walk.author, data, drafted, data)
        if walk.lint:
            linted = Linted(report=str(Digest.of(walk.report)), roles=(), after="")
            self.on_artifact(walk.author, data, linted, walk.report)
        for by, role in self._reviewers(drafted.kind, data) if walk.reviews is None else walk.reviews:
            self.review(by, data, role)
        if walk.signed:
            envelope = walk.envelope or sealed
            self.on_artifact(
                signer, data, Signed(envelope=str(Digest.of(envelope)), threshold=walk.threshold), envelope
            )

    def _reviewers(self, kind: ArtifactKind, data: bytes) -> list[tuple[str, str]]:
        """Everybody who has to review a document. Who evaluates owns decisions as well, and counts for both."""
        try:
            roles = needed_roles(candidate(json.loads(data)), None)
        except (ArtifactInvalid, json.JSONDecodeError):
            roles = REQUIRED_REVIEWS[kind]
        for role in roles:
            if role not in REVIEWERS:
                self.keyring_change(trust(key_of(role), TENANT, role))
        reviewers: dict[str, str] = {}
        for role in (*REQUIRED_REVIEWS[kind], *roles):
            reviewers.setdefault(REVIEWERS.get(role, role), role)
        return list(reviewers.items())

    def pin_here(self, ref: PackRef, base_id: str = "", *, by: str = "ops", digest: str = "") -> None:
        """Pin a version in `prod`; an overlay, under the id of its base."""
        with self.opened() as reader:
            state = reader.version(ref)
        change = Pinned(
            kind=state.kind, id=ref.pack_id, version=ref.version, digest=digest or str(state.digest), pins=Pins()
        )
        stream = pins_stream("prod", base_id or ref.pack_id)
        self.act(by, PlannedChange(stream=stream, change=change, reason="go"))

    def with_example(self) -> "Releases":
        if type(self) is Releases and self.copied and self.seconds == self.began:  # nothing happened yet
            example = _example()
            self.take(example)
            self.kept |= example.kept
        else:
            self.pin_here(self.release())
        return self

    def with_catalog(self, value: dict[str, Any] = CATALOG) -> PackRef:
        ref = self.release(value, "decision_catalog")
        self.pin_here(ref)
        return ref

    def with_overlay(self, value: dict[str, Any] = OVERLAY) -> PackRef:
        ref = self.release(value, "overlay")
        self.pin_here(ref, msgspec.convert(value, Overlay).base_pack_id)
        return ref

    def fetch(self, digest: Digest) -> bytes:
        if digest not in self.kept:
            raise ObjectNotFound("not in the store", at=str(digest))
        return self.kept[digest]

    def resolve(  # noqa: PLR0913  what is asked, and by whom
        self,
        *refs: PackRef,
        purpose: Use = "new_traffic",
        tenant: str = TENANT,
        environment: str = "prod",
        overlays: tuple[PackRef, ...] = (),
        capabilities: RuntimeCapabilities = HERE,
        seen: Checkpoint | None = None,
        max_age: int | None = None,
        judged: Container[str] = frozenset(),
        later: int = 0,
        bend: Callable[[RegistrySnapshot], RegistrySnapshot] = lambda snapshot: snapshot,
    ) -> Resolution:
        request = ResolveRequest(
            refs=refs or (PACK,), tenant=tenant, environment=environment, purpose=purpose, overlays=overlays
        )
        with self.catalog.read() as view:
            keys = follow_keyring(view.streams, TrustedKeys(origin=ORIGIN), CHECK)
            opened = open_registry(view, keys, CHECK, origin=ORIGIN, seen=None)
            now = Timestamp(seconds=self.now.seconds + later, nanos=0)
            context = ResolveContext(
                trust_context=TrustContext(keyring=keys, check=CHECK, now=now),
                capabilities=capabilities,
                judgement=ClaimsJudgement(judge=judge_publication, gates="1", judged=judged),
                seen=seen,
                max_age=max_age,
            )
            return resolve(request, bend(CatalogSnapshot(opened, self.fetch)), context)

    def ends(self, *refs: PackRef, **request: Any) -> str:  # noqa: ANN401  as `resolve` takes them
        """How a resolution ends: `ok`, or the code of the refusal."""
        try:
            self.resolve(*refs, **request)
        except ContextPlaneError as error:
            return error.code
        return "ok"


class Bent:
    """A snapshot of which some answers are wrong."""

    def __init__(self, snapshot: RegistrySnapshot, **answers: Any) -> None:  # noqa: ANN401  any answer
        self._snapshot = snapshot
        self._answers = answers

    def history(self, stream: str) -> Iterable[VerifiedEvent]:
        events = self._snapshot.history(stream)
        return self._answers["history"](list(events)) if "history" in self._answers else events

    def last(self, stream: str) -> VerifiedEvent | None:
        return self._snapshot.last(stream)

    def versions(self, base_id: str) -> Iterable[PackRef]:
        return self._snapshot.versions(base_id)

    def name(self, base_id: str) -> NameState:
        return self._snapshot.name(base_id)

    def object(self, digest: Digest) -> bytes:
        data = self._snapshot.object(digest)
        return self._answers["object"](data) if "object" in self._answers else data

    def past_keyring(self, seq: int) -> Keyring:
        return self._snapshot.past_keyring(seq)

    def rotated_keys(self, key_id: str, seq: int) -> frozenset[str]:
        return self._snapshot.rotated_keys(key_id, seq)

    def newest(self) -> VerifiedCheckpoint | None:
        newest = self._snapshot.newest()
        return self._answers["newest"](newest) if "newest" in self._answers else newest

    def witnesses(self) -> Witnesses:
        return self._snapshot.witnesses()

    def inclusion(self, entry: int, size: int) -> tuple[bytes, ...]:
        path = self._snapshot.inclusion(entry, size)
        return self._answers["inclusion"](path) if "inclusion" in self._answers else path

    def consistency(self, old: int, size: int) -> tuple[bytes, ...]:
        path = self._snapshot.consistency(old, size)
        return self._answers["consistency"](path) if "consistency" in self._answers else path


@cache
def _example() -> Releases:
    """Return a registry in which the example is published and pinned, made once and copied by others."""
    releases = Releases()
    releases.pin_here(releases.release())
    return releases
