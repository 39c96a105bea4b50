"""Admission of one published document for a use: steps 1 to 6 and 8 of a resolution, for every kind.

    1-6  the envelope, its statement and its signatures         trust/verify.py
    8    it was linted, reviewed and signed before              check_provenance
         what its publisher claims holds                        claims.py, rejudge.py
         the registry's state allows this use                   admit

Before these steps, the registry says which bytes were published under the name. After (6), the bytes must say the same
of themselves.

Keys are judged by the newest keyring. A replay repeats what was used: a document that was good by the keyring of its
publication is replayed and marked; one that was not good even then is refused for every use.

Provenance: a program that follows the rules publishes only bytes that were linted, reviewed and signed before. A reader
cannot know which program wrote an event, so it checks the history of the digest up to the publication, by its place in
the log:

    a  the bytes were recorded as what they were published as
    b  the version before, with which they were compared, was published before
    c  every required role approved them, no rejection stood, and exactly this envelope was signed

Claims: gates, number and owner of the id are judged again, once for each publication. A replay marks a document whose
gates or number fail, because they may have been good when it was published.
"""

from functools import partial
from itertools import takewhile
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import FORMS, Artifact, issuer_of
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.value import Value
from contextplane.ports.keys import Keyring
from contextplane.registry.artifact_state import ArtifactState, Stage, is_allowed
from contextplane.registry.artifacts import Candidate
from contextplane.registry.claims import (
    ClaimsJudgement,
    PublicationGatesFailed,
    PublicationVersionWrong,
    collect_claims,
)
from contextplane.registry.errors import VersionDeprecated, VersionRevoked, VersionUnknown
from contextplane.registry.events import Published
from contextplane.registry.resolution import Mark, RegistrySnapshot, ResolvedDocument
from contextplane.registry.reviews import ReviewIncomplete, ReviewRejected, check_reviews, needed_roles
from contextplane.registry.streams import artifact_stream, version_stream
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.registry.version_state import Use, VersionState
from contextplane.trust.errors import Untrusted
from contextplane.trust.verify import TrustContext, VerifiedArtifact, verify

__all__ = [
    "AdmittedDocument",
    "ArtifactMismatch",
    "Provenance",
    "PublicationDoubtful",
    "PublicationUnreviewed",
    "admit",
    "check_provenance",
]


class PublicationUnreviewed(ContextPlaneError):
    """A version that was published without having been linted, reviewed and signed as it must be."""

    code: ClassVar[str] = "publication_unreviewed"
    family: ClassVar[Family] = "untrusted"


class Provenance(Value, frozen=True):
    """The events before a publication that it depends on.

    `before`: the version that it was compared with. `doubts`: why they would not suffice by the newest keyring; empty
    if they would.
    """

    events: tuple[VerifiedEvent, ...]
    before: Candidate | None = None
    doubts: str = ""


def check_provenance(
    version: VersionState, document: Candidate, snapshot: RegistrySnapshot, keyring: int
) -> Provenance:
    """Return the events that a publication depends on, or refuse it.

    `keyring`: the number of keyring changes at the publication.
    """
    published = version.publication
    history = snapshot.history(artifact_stream(version.digest))
    events = tuple(takewhile(lambda event: event.event.entry < version.entry, history))
    state = ArtifactState(digest=version.digest)
    for event in events:
        state = state.after_event(event)
    state = state.after_rotations(partial(snapshot.rotated_keys, seq=keyring))
    # (a) recorded as what it was published as
    if (state.ref, state.kind, state.issuer) != (version.ref, published.kind, published.issuer):
        raise _unreviewed_error(
            version, f"before that, it is not recorded as this {published.kind} of {published.issuer}"
        )
    # (b) compared with a version that was there
    compared, before = _compared_version(version, snapshot)
    # (c) approved and signed: by the keyring of its publication, or by the newest
    needed = needed_roles(document, before)
    missing = _missing_step(state.ignoring_revocations, published, needed)
    if missing and _missing_step(state, published, needed):
        raise _unreviewed_error(version, missing)
    return Provenance(events=(*events, *compared), before=before, doubts=_review_problem(state, needed))


def _compared_version(
    version: VersionState, snapshot: RegistrySnapshot
) -> tuple[tuple[VerifiedEvent, ...], Candidate | None]:
    """The version that the publication names as the one before it, and the event that published that."""
    after = version.publication.after
    if not after:
        return (), None
    ref = PackRef.parse(f"{version.ref.pack_id}@{after}")
    # Its first event suffices, however many followed.
    event = next(iter(snapshot.history(version_stream(ref))), None)
    change = event.change if event is not None else None
    if (
        event is None
        or not isinstance(change, Published)
        or event.event.entry >= version.entry
        or ref.release >= version.ref.release
    ):
        raise _unreviewed_error(version, f"it was compared with {ref}, which was not there before it")
    data = snapshot.object(Digest.parse(change.digest))
    if Digest.of(data) != Digest.parse(change.digest):
        raise _unreviewed_error(version, f"it was compared with {ref}, whose bytes are others now")
    try:
        value = parse(data).value
        document = msgspec.convert(value, FORMS[change.kind])
    except (JsonRefused, msgspec.ValidationError) as error:
        raise _unreviewed_error(version, f"it was compared with {ref}, which cannot be read: {error}") from error
    return (event,), Candidate(kind=change.kind, document=document, value=value, data=data)


def _missing_step(state: ArtifactState, published: Published, needed: tuple[str, ...]) -> str:
    """Describe what a digest lacks to be published; empty if it lacks nothing."""
    unapproved = _review_problem(state, needed)
    if unapproved:
        return unapproved
    if not is_allowed("published", state.stage):
        return f"it was {state.stage}, and not signed"
    if state.envelope != published.envelope:
        return "another envelope was signed than the one that was published"
    if state.catalogs != published.catalogs:
        return "it was linted together with other catalogs"
    recorded = {(approval.role, approval.key_id) for approval in state.approvals}
    claimed = next((approval for approval in published.approvals if (approval.role, approval.by) not in recorded), None)
    return "" if claimed is None else f"key {claimed.by[:16]} did not approve it as {claimed.role}"


def _review_problem(state: ArtifactState, needed: tuple[str, ...]) -> str:
    try:
        check_reviews(state, needed)
    except (ReviewRejected, ReviewIncomplete) as error:
        return error.message
    return ""


def _unreviewed_error(version: VersionState, why: str) -> PublicationUnreviewed:
    return PublicationUnreviewed(
        f"it was published without having come that far: {why}",
        at=str(version.ref),
        hint="a publisher bypassed the reviews; see 'ctx verify --registry'",
    )


class ArtifactMismatch(ContextPlaneError):
    """Bytes that are not what the registry published under this name.

    They differ, or are of another kind, name or issuer.
    """

    code: ClassVar[str] = "artifact_mismatch"
    family: ClassVar[Family] = "untrusted"


class PublicationDoubtful(ContextPlaneError):
    """A version that was published or approved by a key that, by the newest keyring, was revoked then."""

    code: ClassVar[str] = "publication_doubtful"
    family: ClassVar[Family] = "untrusted"


_WITHDRAWN: dict[Stage, tuple[type[ContextPlaneError], Mark]] = {
    "deprecated": (VersionDeprecated, "deprecated, for replay only"),
    "revoked": (VersionRevoked, "revoked, for replay only"),
}


_KEY_MARKS: dict[str, Mark] = {
    "revoked": "signed by a key that is revoked",
    "expired": "signed by a key whose time was changed since",
    "not_yet_valid": "signed by a key whose time was changed since",
}


_CLAIM_MARKS: dict[str, Mark] = {
    PublicationGatesFailed.code: "it does not pass the gates of this runtime",
    PublicationVersionWrong.code: "its number does not cover its change",
}


class AdmittedDocument(Value, frozen=True):
    """A document that passed steps 1 to 6 and 8, and the events that prove it. Step 7 needs its tenant.

    `keyring`: the number of keyring changes at its publication. `alone`: it passed its gates without catalogs.
    `tenant`: whose operators may pin it, as its publication says; empty: its issuer's.
    `judged`: the key of its publication if every claim of it was judged now and holds. `failed`: those that do not
    hold, for a replay.
    """

    document: Artifact
    value: Json
    verified: VerifiedArtifact
    resolved: ResolvedDocument
    events: tuple[VerifiedEvent, ...]
    keyring: int
    alone: bool
    tenant: str = ""
    judged: str = ""
    failed: tuple[ContextPlaneError, ...] = ()

    def with_mark(self, mark: Mark) -> "AdmittedDocument":
        """Add a mark."""
        return replace(self, resolved=replace(self.resolved, marks=(*self.resolved.marks, mark)))


def admit(
    ref: PackRef, use: Use, *, snapshot: RegistrySnapshot, trust_context: TrustContext, judgement: ClaimsJudgement
) -> AdmittedDocument:
    """Return the document of a version for a use, or refuse it with a code of its own."""
    state, events = _published_version(ref, snapshot)
    published, keyring = state.publication, events[0].event.keyring
    # (1) to (6): the issuer signed exactly the bytes that were published. The publication witnessed that.
    data = snapshot.object(state.digest)
    if Digest.of(data) != state.digest:
        raise ArtifactMismatch(f"other bytes than {state.digest}", at=str(ref), hint="the store is damaged: ctx fsck")
    envelope = snapshot.object(Digest.parse(published.envelope))
    key_marks: tuple[Mark, ...] = ()
    try:
        witnessed = None if state.doubtful else state.published_at
        verified = verify(
            envelope, data, issuer=published.issuer, trust_context=replace(trust_context, witnessed=witnessed)
        )
    except Untrusted:
        if use == "new_traffic":
            raise
        then = replace(trust_context, keyring=snapshot.past_keyring(keyring), witnessed=state.published_at)
        verified = verify(envelope, data, issuer=published.issuer, trust_context=then)
        key_marks = _key_marks(state, verified, trust_context.keyring)
    document, value = _parse_document(ref, published, verified)
    # (8) how it came to be published, and the registry's state
    candidate = Candidate(kind=published.kind, document=document, value=value, data=data)
    provenance = check_provenance(state, candidate, snapshot, keyring)
    marks = (*key_marks, *_check_use(state, use, provenance.doubts))
    key, failed = judgement.key(state.first), tuple[ContextPlaneError, ...]()
    is_known = key in judgement.judged
    if not is_known:
        failed = judgement.judge(collect_claims(state, candidate, provenance.before, envelope, snapshot))
        marks = (*marks, *_claim_marks(failed, use))
    resolved = ResolvedDocument(
        ref=ref, kind=published.kind, digest=state.digest, signed_by=verified.signed_by, marks=marks
    )
    events = (*provenance.events, *events)
    return AdmittedDocument(
        document=document,
        value=value,
        verified=verified,
        resolved=resolved,
        events=events,
        keyring=keyring,
        alone=not published.catalogs,
        tenant=published.tenant,
        judged="" if is_known or failed else key,
        failed=failed,
    )


def _claim_marks(failed: tuple[ContextPlaneError, ...], use: Use) -> tuple[Mark, ...]:
    """(8) Refuse false claims. For a replay, return marks for those that may have been true once."""
    for error in failed:
        if use == "new_traffic" or error.code not in _CLAIM_MARKS:
            raise error
    return tuple(dict.fromkeys(_CLAIM_MARKS[error.code] for error in failed))


def _published_version(ref: PackRef, snapshot: RegistrySnapshot) -> tuple[VersionState, tuple[VerifiedEvent, ...]]:
    events = tuple(snapshot.history(version_stream(ref)))
    state = VersionState(ref=ref)
    for event in events:
        state = state.after_event(event)
    if not state.is_published:
        raise VersionUnknown(
            "it was never published, and a draft is never run", at=str(ref), hint="'ctx packs' lists what is published"
        )
    return state, events


def _key_marks(state: VersionState, verified: VerifiedArtifact, keyring: Keyring) -> tuple[Mark, ...]:
    """Marks for keys that signed it and would not suffice for new traffic any more."""
    issuer, at = keyring.issuer(verified.statement.issuer), state.published_at
    if issuer is None or at is None:
        return ()
    keys = [key for key_id in verified.signed_by if (key := issuer.key(key_id)) is not None]
    marks = [_KEY_MARKS[now] for key in keys if (now := key.state_at(at)) in _KEY_MARKS]
    if len(keys) < issuer.threshold:
        marks.append("signed by fewer keys than are needed now")
    return tuple(dict.fromkeys(marks))


def _parse_document(ref: PackRef, published: Published, verified: VerifiedArtifact) -> tuple[Artifact, Json]:
    """Parse the document in the verified bytes, and refuse it unless it is the one requested."""
    try:
        value = parse(verified.data).value
        document = msgspec.convert(value, FORMS[published.kind])
    except (JsonRefused, msgspec.ValidationError) as error:
        raise ArtifactMismatch(f"not a {published.kind}: {error}", at=str(ref), hint="use a newer runtime") from error
    identity = (str(document.ref), verified.statement.name, verified.statement.kind, issuer_of(document))
    if identity != (str(ref), str(ref), published.kind, published.issuer):
        raise ArtifactMismatch(
            f"its contents: {document.ref} of {issuer_of(document)}; its envelope: "
            f"{verified.statement.name[:80]}, a {verified.statement.kind[:40]}",
            at=str(ref),
            hint="it was published under a name that is not its own",
        )
    return document, value


def _check_use(state: VersionState, use: Use, doubts: str) -> tuple[Mark, ...]:
    """(8) Refuse a use that the state does not allow; otherwise return the marks for its user."""
    marks: list[Mark] = []
    if doubts:
        if use == "new_traffic":
            raise PublicationDoubtful(
                f"a key that is revoked approved it, and without that it is {doubts}",
                at=str(state.ref),
                hint="publish a new version",
            )
        marks.append("approved by a key that is revoked")
    if state.doubtful:
        if use == "new_traffic":
            raise PublicationDoubtful(
                "it was published by a key that is revoked", at=str(state.ref), hint="publish a new version"
            )
        marks.append("published by a key that is revoked")
    if state.stage != "published":
        refusal, mark = _WITHDRAWN[state.stage]
        if use == "new_traffic":
            raise refusal(f"{state.stage}: {state.reason}", at=str(state.ref), hint="it can only be replayed")
        marks.append(mark)
    return tuple(marks)
