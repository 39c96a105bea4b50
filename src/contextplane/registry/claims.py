"""The claims of a publication, with everything that they are judged by. It judges nothing itself.

A publisher claims that a document passed its gates, that its number covers the change since the version before it, and
that its id is the publisher's. A reader cannot know which program wrote that, so it judges every claim again:

    judge_publication    over the values that are collected here     rejudge.py
    collect_claims       reads them from a snapshot                  here
    newest_publication   the version before, by number and log       here
    PublicationAudit     collects them in the order of the log       here

A client judges each publication once by the gates of one version of this package, and remembers that
(`ClaimsJudgement`).
"""

from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import ClassVar, Protocol

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import FORMS, Overlay
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.value import Value
from contextplane.registry.artifacts import Candidate
from contextplane.registry.events import CatalogReference, Published
from contextplane.registry.name_state import NameState
from contextplane.registry.resolution import RegistrySnapshot
from contextplane.registry.streams import VERSIONS, version_stream
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.registry.version_state import VersionState

__all__ = [
    "ClaimsJudge",
    "ClaimsJudgement",
    "PublicationAudit",
    "PublicationClaims",
    "PublicationGatesFailed",
    "PublicationReportWrong",
    "PublicationVersionWrong",
    "PublishedVersions",
    "check_predecessor",
    "collect_claims",
    "collect_errors",
    "newest_publication",
    "published_ref",
    "read_document",
]


class PublicationGatesFailed(ContextPlaneError):
    """A published version that does not pass the gates of this runtime. `details.findings` lists why.

    Its publisher bypassed the gates, or it was published before a law that it breaks.
    """

    code: ClassVar[str] = "publication_gates_failed"
    family: ClassVar[Family] = "untrusted"


class PublicationVersionWrong(ContextPlaneError):
    """A published version whose number does not cover its change.

    Or it was compared with another version than the one before it.
    """

    code: ClassVar[str] = "publication_version_wrong"
    family: ClassVar[Family] = "untrusted"


class PublicationReportWrong(ContextPlaneError):
    """A published version whose stored report or signed statement is about something else, or says less."""

    code: ClassVar[str] = "publication_report_wrong"
    family: ClassVar[Family] = "untrusted"


class PublicationClaims(Value, frozen=True):
    """A publication, and what its claims are judged by.

    `name`: the owner of its id. `entry`: its place in the log. `previous`: the number of the version before it by the
    log, "" if there was none. `before`: the document of the version that it names as the one before. `catalogs`: those
    that it names. `base`: for an overlay, the newest version of its pack at that time.
    """

    ref: PackRef
    published: Published
    artifact: Candidate
    envelope: bytes
    report: bytes
    name: NameState
    entry: int
    previous: str = ""
    before: Candidate | None = None
    catalogs: tuple[Candidate, ...] = ()
    base: Candidate | None = None


class ClaimsJudge(Protocol):
    """Judges the claims of a publication. The implementation has the gates, and may load them late."""

    def __call__(self, claims: PublicationClaims, /) -> tuple[ContextPlaneError, ...]:
        """Return an error for every claim that does not hold."""
        ...


class ClaimsJudgement(Value, frozen=True):
    """How a client judges publications, and those that it judged before.

    `gates`: the version of the gates. `judged`: the keys of publications of which every claim holds.
    """

    judge: ClaimsJudge
    gates: str
    judged: Container[str] = frozenset()

    def key(self, publication: str) -> str:
        """The key under which a client remembers a publication. `publication`: the digest of its event.

        The event names the bytes, their report, the version before and the place in the log.
        """
        return f"{self.gates}:{publication}"


class PublishedVersions(Protocol):
    """The part of a reader or a snapshot with which the publications of an id are looked up."""

    def history(self, stream: str) -> Iterable[VerifiedEvent]: ...

    def name(self, base_id: str) -> NameState: ...


def newest_publication(
    registry: PublishedVersions,
    versions: Iterable[PackRef],
    *,
    below: PackRef | None = None,
    entry: int | None = None,
) -> VerifiedEvent | None:
    """The publication of the highest of some versions; `below` a number, before an `entry` of the log.

    Publications by others than the owner of the id are void in this format, and passed over in the first one. Nearly
    always it is the first that is read, however many versions there are.
    """
    candidates = (ref for ref in versions if below is None or ref.release < below.release)
    for ref in sorted(candidates, key=lambda ref: ref.release, reverse=True):
        # The publication is the first event of its stream that counts, however many followed.
        event = next(iter(registry.history(version_stream(ref))), None)
        if event is None or not isinstance(event.change, Published):
            continue
        name = registry.name(ref.pack_id)
        is_owned = (event.change.issuer, event.change.kind) == (name.issuer, name.kind)
        if is_owned and (entry is None or event.event.entry < entry):
            return event
    return None


def published_ref(event: VerifiedEvent) -> PackRef:
    """The version whose stream an event is in."""
    return PackRef.parse(event.event.subject.removeprefix(VERSIONS))


def check_predecessor(ref: PackRef, published: Published, previous: str) -> None:
    """Refuse a comparison with another than the version before.

    That version decides how large the step is and who must review it.
    """
    if published.after != previous:
        raise PublicationVersionWrong(
            f"compared with {published.after or 'nothing'}, and {previous or 'nothing'} was before it", at=str(ref)
        )


def collect_errors(*checks: Callable[[], None]) -> tuple[ContextPlaneError, ...]:
    """Run every check; return the errors of those that refuse."""
    errors: list[ContextPlaneError] = []
    for check in checks:
        try:
            check()
        except ContextPlaneError as error:
            errors.append(error)
    return tuple(errors)


def collect_claims(
    version: VersionState, artifact: Candidate, before: Candidate | None, envelope: bytes, snapshot: RegistrySnapshot
) -> PublicationClaims:
    """Collect what the claims of a publication are judged by, or refuse it if that cannot be read.

    It reads one publication beside this one, and one of the pack that an overlay is for.
    """
    published, base_id = version.publication, version.ref.pack_id
    previous = newest_publication(snapshot, snapshot.versions(base_id), below=version.ref, entry=version.entry)
    return PublicationClaims(
        ref=version.ref,
        published=published,
        artifact=artifact,
        envelope=envelope,
        report=snapshot.object(Digest.parse(published.report)),
        name=snapshot.name(base_id),
        entry=version.entry,
        previous="" if previous is None else published_ref(previous).version,
        before=before,
        catalogs=tuple(_named_catalog(version, reference, snapshot) for reference in published.catalogs),
        base=_base_pack(version, artifact, snapshot),
    )


def _named_catalog(version: VersionState, reference: CatalogReference, snapshot: RegistrySnapshot) -> Candidate:
    """A catalog that a publication names. It must have been published before, with these bytes."""
    ref = PackRef(reference.id, reference.version)
    event = next(iter(snapshot.history(version_stream(ref))), None)
    change = event.change if event is not None else None
    if (
        event is None
        or not isinstance(change, Published)
        or change.digest != reference.digest
        or event.event.entry >= version.entry
    ):
        raise _unpublished_catalog_error(version.ref, ref)
    return read_document(change, snapshot.object, at=ref)


def _unpublished_catalog_error(ref: PackRef, catalog: PackRef) -> PublicationGatesFailed:
    """The error for a publication that names a catalog which is not there."""
    return PublicationGatesFailed(
        f"it was judged together with {catalog}, which was not published like that before it", at=str(ref)
    )


def _base_pack(version: VersionState, artifact: Candidate, snapshot: RegistrySnapshot) -> Candidate | None:
    """The pack that an overlay was judged with: its newest version then."""
    if not isinstance(artifact.document, Overlay):
        return None
    newest = newest_publication(snapshot, snapshot.versions(artifact.document.base_pack_id), entry=version.entry)
    change = newest.change if newest is not None else None
    return (
        read_document(change, snapshot.object, at=published_ref(newest))
        if newest is not None and isinstance(change, Published)
        else None
    )


def read_document(change: Published, fetch: Callable[[Digest], bytes], *, at: PackRef) -> Candidate:
    """Read the document of another publication, with which one is compared or judged."""
    data = fetch(Digest.parse(change.digest))
    if Digest.of(data) != Digest.parse(change.digest):
        raise PublicationReportWrong(f"{at} has other bytes now", at=str(at), hint="the store is damaged: ctx fsck")
    try:
        value = parse(data).value
        document = msgspec.convert(value, FORMS[change.kind])
    except (JsonRefused, msgspec.ValidationError) as error:
        raise PublicationReportWrong(f"{at} cannot be read: {error}", at=str(at), hint="use a newer runtime") from error
    return Candidate(kind=change.kind, document=document, value=value, data=data)


class PublicationAudit:
    """Judges every publication of a registry again, one after the other in the order of the log.

    `fetch`: returns the bytes of an object. `judge`: judges the claims. Without them, only what the events say is
    judged: owner and predecessor. Judging takes longer than all other checks of an event. `earlier`: returns the
    publications of an id from before the first one that is judged, in the order of the log; by default there are none.
    """

    def __init__(
        self,
        fetch: Callable[[Digest], bytes] | None = None,
        judge: ClaimsJudge | None = None,
        earlier: Callable[[str], Iterable[tuple[PackRef, Published]]] = lambda _base_id: (),
    ) -> None:
        self._fetch = fetch
        self._judge = judge
        self._earlier = earlier
        self._names: dict[str, list[tuple[PackRef, Published]]] = {}

    def check(self, ref: PackRef, change: Published, name: NameState, entry: int) -> tuple[ContextPlaneError, ...]:
        """Return an error for every claim of the next publication that does not hold.

        `name`: the owner of its id. `entry`: its place in the log.
        """
        publications = self._publications(ref.pack_id)
        before = self._newest(ref.pack_id, below=ref)
        publications.append((ref, change))
        previous = "" if before is None else before[0].version
        if self._fetch is not None and self._judge is not None:
            try:
                claims = self._claims(ref, change, previous=previous, name=name, entry=entry, fetch=self._fetch)
            except ContextPlaneError as error:
                return (error,)
            return self._judge(claims)
        return collect_errors(
            partial(name.check_owner, change.issuer, change.kind, at=str(ref)),
            partial(check_predecessor, ref, change, previous),
        )

    def _claims(  # noqa: PLR0913  what is judged
        self,
        ref: PackRef,
        change: Published,
        *,
        previous: str,
        name: NameState,
        entry: int,
        fetch: Callable[[Digest], bytes],
    ) -> PublicationClaims:
        artifact = read_document(change, fetch, at=ref)
        after = self._publication(PackRef(ref.pack_id, change.after)) if change.after else None
        base = self._newest(artifact.document.base_pack_id) if isinstance(artifact.document, Overlay) else None
        return PublicationClaims(
            ref=ref,
            published=change,
            artifact=artifact,
            envelope=fetch(Digest.parse(change.envelope)),
            report=fetch(Digest.parse(change.report)),
            name=name,
            entry=entry,
            previous=previous,
            before=read_document(after, fetch, at=PackRef(ref.pack_id, change.after)) if after is not None else None,
            catalogs=tuple(self._catalog(ref, reference, fetch) for reference in change.catalogs),
            base=read_document(base[1], fetch, at=base[0]) if base is not None else None,
        )

    def _catalog(self, ref: PackRef, reference: CatalogReference, fetch: Callable[[Digest], bytes]) -> Candidate:
        name = PackRef(reference.id, reference.version)
        published = self._publication(name)
        if published is None or published.digest != reference.digest:
            raise _unpublished_catalog_error(ref, name)
        return read_document(published, fetch, at=name)

    def _publications(self, base_id: str) -> list[tuple[PackRef, Published]]:
        """All publications of an id so far."""
        if base_id not in self._names:
            self._names[base_id] = list(self._earlier(base_id))
        return self._names[base_id]

    def _publication(self, ref: PackRef) -> Published | None:
        return next((change for other, change in self._publications(ref.pack_id) if other == ref), None)

    def _newest(self, base_id: str, *, below: PackRef | None = None) -> tuple[PackRef, Published] | None:
        """The highest version of an id so far that the owner of the id published."""
        publications = self._publications(base_id)
        owned = [
            (ref, change)
            for ref, change in publications
            if (change.issuer, change.kind) == (publications[0][1].issuer, publications[0][1].kind)
            and (below is None or ref.release < below.release)
        ]
        return max(owned, key=lambda publication: publication[0].release, default=None)
