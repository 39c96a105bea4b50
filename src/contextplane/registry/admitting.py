"""One published document, admitted for a use: steps 1 to 6 and 8 of a resolution, the same for every kind.

    1-6  the envelope, its statement and its signatures         trust/verify.py
    8    it was linted, reviewed and signed before              vouching.py
         the registry's state allows this use                   here

Before them, the registry says which bytes were published under the name; after (6), the bytes must say the same of
themselves.

Keys are judged by what is known of them now. A replay is of what was used, so what was good by the keyring of its
publication is replayed and marked; what was not good even then is refused for every use.
"""

from typing import ClassVar

import msgspec
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import FORMS, Artifact, issuer_of
from contextplane.model.canonical import Json
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.json_text import parse
from contextplane.model.value import Value
from contextplane.ports.keyring import Keyring
from contextplane.registry.artifacts import Candidate
from contextplane.registry.changes import Published
from contextplane.registry.events import Happened
from contextplane.registry.lifecycle import Stage
from contextplane.registry.refusals import VersionDeprecated, VersionRevoked, VersionUnknown
from contextplane.registry.resolved import Mark, Used
from contextplane.registry.shelf import Shelf
from contextplane.registry.streams import version_stream
from contextplane.registry.version import Use, VersionState
from contextplane.registry.vouching import vouched
from contextplane.trust.refusals import Untrusted
from contextplane.trust.signatures import Grounds
from contextplane.trust.verify import Verified, verify

__all__ = ["Admitted", "ArtifactMismatch", "PublicationDoubtful", "admitted"]


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
    for one in events:
        state = state.after_event(one)
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
