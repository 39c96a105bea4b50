"""One published document, admitted for a use: steps 1 to 6 and 8 of a resolution, the same for every kind.

    1-6  the envelope, its statement and its signatures         trust/verify.py
    8    it was linted, reviewed and signed before              vouching.py
         the registry's state allows this use                   here

Before them, the registry says which bytes were published under the name; after (6), the bytes must say the same of
themselves.

Keys are judged by what is known of them now. A replay is of what was used, so what was good by the keyring of its
publication is replayed and marked; what was not good even then is refused for every use.

What a publication stands on: the same bytes were linted, reviewed and signed before it, by those who had to.

A program that follows the rules publishes nothing else. Whoever reads cannot know which program wrote, so he looks at
the life of the digest up to the publication, by its place in the log:

    a  they were recorded as what they were published as
    b  the version before, with which they were compared, was published before
    c  everybody whom that needs approved them, nobody's rejection stood, and this very envelope was signed

Whether `after` is really the version before takes a look at all versions; a full verification does that.
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
from contextplane.registry.artifact_state import ArtifactState, Stage, allowed
from contextplane.registry.artifacts import Candidate
from contextplane.registry.errors import VersionDeprecated, VersionRevoked, VersionUnknown
from contextplane.registry.events import Happened, Published
from contextplane.registry.resolution import Mark, Shelf, Used
from contextplane.registry.reviews import ReviewIncomplete, ReviewRejected, check_reviews, needed_roles
from contextplane.registry.streams import artifact_stream, version_stream
from contextplane.registry.version_state import Use, VersionState
from contextplane.trust.errors import Untrusted
from contextplane.trust.verify import Grounds, Verified, verify

__all__ = [
    "Admitted",
    "ArtifactMismatch",
    "PublicationDoubtful",
    "PublicationUnreviewed",
    "Vouched",
    "admitted",
    "vouched",
]


class PublicationUnreviewed(ContextPlaneError):
    """A version that was published without having been linted, reviewed and signed as it must be."""

    code: ClassVar[str] = "publication_unreviewed"
    family: ClassVar[Family] = "untrusted"


class Vouched(Value, frozen=True):
    """The events before a publication that it stands on. `doubts`: why they would not do, by what is known now."""

    events: tuple[Happened, ...]
    doubts: str = ""


def vouched(version: VersionState, document: Candidate, shelf: Shelf, keyring: int) -> Vouched:
    """The events that a published document stands on, or a refusal. `keyring`: the one that it was published under."""
    published = version.entry_of
    history = shelf.history(artifact_stream(version.digest))
    events = tuple(takewhile(lambda one: one.event.entry < version.entry, history))
    state = ArtifactState(digest=version.digest)
    for event in events:
        state = state.after_event(event)
    state = state.as_known(partial(shelf.kin, seq=keyring))
    # (a) recorded as what it was published as
    if (state.ref, state.kind, state.issuer) != (version.ref, published.kind, published.issuer):
        raise _unreviewed(version, f"before that, nobody recorded it as this {published.kind} of {published.issuer}")
    # (b) compared with a version that was there
    compared, before = _compared(version, shelf)
    # (c) approved and signed: when it was published, and by what is known of keys now
    needed = needed_roles(document, before)
    lacking = _lacking(state.as_it_was, published, needed)
    if lacking and _lacking(state, published, needed):
        raise _unreviewed(version, lacking)
    return Vouched(events=(*events, *compared), doubts=_unapproved(state, needed))


def _compared(version: VersionState, shelf: Shelf) -> tuple[tuple[Happened, ...], Candidate | None]:
    """The version before, as the publication names it, and the event that says that it was there."""
    after = version.entry_of.after
    if not after:
        return (), None
    ref = PackRef.parse(f"{version.ref.pack_id}@{after}")
    # One event says it all, however much happened to that version since.
    event = next(iter(shelf.history(version_stream(ref))), None)
    change = event.change if event is not None else None
    if (
        event is None
        or not isinstance(change, Published)
        or event.event.entry >= version.entry
        or ref.release >= version.ref.release
    ):
        raise _unreviewed(version, f"it was compared with {ref}, which was not there before it")
    data = shelf.object(Digest.parse(change.digest))
    if Digest.of(data) != Digest.parse(change.digest):
        raise _unreviewed(version, f"it was compared with {ref}, whose bytes are others now")
    try:
        value = parse(data).value
        document = msgspec.convert(value, FORMS[change.kind])
    except (JsonRefused, msgspec.ValidationError) as error:
        raise _unreviewed(version, f"it was compared with {ref}, which cannot be read: {error}") from error
    return (event,), Candidate(kind=change.kind, document=document, value=value, data=data)


def _lacking(state: ArtifactState, published: Published, needed: tuple[str, ...]) -> str:
    """What a digest lacked to be published; nothing, when it lacked nothing."""
    unapproved = _unapproved(state, needed)
    if unapproved:
        return unapproved
    if not allowed("published", state.stage):
        return f"it was {state.stage}, and not signed"
    if state.envelope != published.envelope:
        return "another envelope was signed than the one that was published"
    if state.catalogs != published.catalogs:
        return "it was linted together with other catalogs"
    given = {(approval.role, approval.key_id) for approval in state.approvals}
    named = next((approval for approval in published.approvals if (approval.role, approval.by) not in given), None)
    return "" if named is None else f"key {named.by[:16]} did not approve it as {named.role}"


def _unapproved(state: ArtifactState, needed: tuple[str, ...]) -> str:
    try:
        check_reviews(state, needed)
    except (ReviewRejected, ReviewIncomplete) as error:
        return error.message
    return ""


def _unreviewed(version: VersionState, why: str) -> PublicationUnreviewed:
    return PublicationUnreviewed(
        f"it was published without having come that far: {why}",
        at=str(version.ref),
        hint="a publisher went round the reviews; 'ctx verify --registry' tells more",
    )


class ArtifactMismatch(ContextPlaneError):
    """Bytes that are not what the registry published under this name: others, of another kind, name or issuer."""

    code: ClassVar[str] = "artifact_mismatch"
    family: ClassVar[Family] = "untrusted"


class PublicationDoubtful(ContextPlaneError):
    """A version that was published or approved by a key which, as is known now, was not to be trusted then."""

    code: ClassVar[str] = "publication_doubtful"
    family: ClassVar[Family] = "untrusted"


_ENDED: dict[Stage, tuple[type[ContextPlaneError], Mark]] = {
    "deprecated": (VersionDeprecated, "deprecated, for replay only"),
    "revoked": (VersionRevoked, "revoked, for replay only"),
}


_SIGNED_BY: dict[str, Mark] = {
    "revoked": "signed by a key that is revoked",
    "expired": "signed by a key whose time was changed since",
    "not_yet_valid": "signed by a key whose time was changed since",
}


class Admitted(Value, frozen=True):
    """A document that passed (1) to (6) and (8), and the events that say so. (7) takes its tenant, and comes next.

    `keyring`: after how many changes of the keyring it was published. `alone`: it passed its gates without catalogs.
    """

    document: Artifact
    value: Json
    verified: Verified
    used: Used
    events: tuple[Happened, ...]
    keyring: int
    alone: bool

    def marked(self, mark: Mark) -> "Admitted":
        """The same, with one more thing to know of it."""
        return replace(self, used=replace(self.used, marks=(*self.used.marks, mark)))


def admitted(ref: PackRef, use: Use, *, shelf: Shelf, grounds: Grounds) -> Admitted:
    """The document of a version, or a refusal with a code of its own."""
    state, events = _state(ref, shelf)
    published, keyring = state.entry_of, events[0].event.keyring
    # (1) to (6): the issuer signed exactly the bytes that were published. Publication is when that was seen.
    data = shelf.object(state.digest)
    if Digest.of(data) != state.digest:
        raise ArtifactMismatch(f"other bytes than {state.digest}", at=str(ref), hint="the store is damaged: ctx fsck")
    envelope = shelf.object(Digest.parse(published.envelope))
    signed: tuple[Mark, ...] = ()
    try:
        witnessed = None if state.doubtful else state.published_at
        verified = verify(envelope, data, issuer=published.issuer, grounds=replace(grounds, witnessed=witnessed))
    except Untrusted:
        if use == "new_traffic":
            raise
        then = replace(grounds, keyring=shelf.keyring(keyring), witnessed=state.published_at)
        verified = verify(envelope, data, issuer=published.issuer, grounds=then)
        signed = _since(state, verified, grounds.keyring)
    document, value = _read(ref, published, verified)
    # (8) how it came to be published, and the registry's state
    candidate = Candidate(kind=published.kind, document=document, value=value, data=data)
    stands_on = vouched(state, candidate, shelf, keyring)
    marks = (*signed, *_allowed(state, use, stands_on.doubts))
    used = Used(ref=ref, kind=published.kind, digest=state.digest, signed_by=verified.signed_by, marks=marks)
    events = (*stands_on.events, *events)
    return Admitted(
        document=document,
        value=value,
        verified=verified,
        used=used,
        events=events,
        keyring=keyring,
        alone=not published.catalogs,
    )


def _state(ref: PackRef, shelf: Shelf) -> tuple[VersionState, tuple[Happened, ...]]:
    events = tuple(shelf.history(version_stream(ref)))
    state = VersionState(ref=ref)
    for event in events:
        state = state.after_event(event)
    if not state.is_published:
        raise VersionUnknown(
            "it was never published: no draft is ever run", at=str(ref), hint="'ctx packs' lists what is published"
        )
    return state, events


def _since(state: VersionState, verified: Verified, keyring: Keyring) -> tuple[Mark, ...]:
    """What became of the keys that signed it, so that they would not be enough for new traffic."""
    issuer, at = keyring.issuer(verified.statement.issuer), state.published_at
    if issuer is None or at is None:
        return ()
    keys = [key for one in verified.signed_by if (key := issuer.key(one)) is not None]
    marks = [_SIGNED_BY[now] for key in keys if (now := key.state_at(at)) in _SIGNED_BY]
    if len(keys) < issuer.threshold:
        marks.append("signed by fewer keys than are needed now")
    return tuple(dict.fromkeys(marks))


def _read(ref: PackRef, published: Published, verified: Verified) -> tuple[Artifact, Json]:
    """The document in the verified bytes, if it is the one that was asked for."""
    try:
        value = parse(verified.data).value
        document = msgspec.convert(value, FORMS[published.kind])
    except (JsonRefused, msgspec.ValidationError) as error:
        raise ArtifactMismatch(f"not a {published.kind}: {error}", at=str(ref), hint="use a newer runtime") from error
    said = (str(document.ref), verified.statement.name, verified.statement.kind, issuer_of(document))
    if said != (str(ref), str(ref), published.kind, published.issuer):
        raise ArtifactMismatch(
            f"it says of itself: {document.ref} of {issuer_of(document)}; its envelope: "
            f"{verified.statement.name[:80]}, a {verified.statement.kind[:40]}",
            at=str(ref),
            hint="it was published under a name that is not its own",
        )
    return document, value


def _allowed(state: VersionState, use: Use, doubts: str) -> tuple[Mark, ...]:
    """(8) Refuse a use that the state does not allow; else what whoever uses it must know."""
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
        refusal, mark = _ENDED[state.stage]
        if use == "new_traffic":
            raise refusal(f"{state.stage}: {state.reason}", at=str(state.ref), hint="it can only be replayed")
        marks.append(mark)
    return tuple(marks)
