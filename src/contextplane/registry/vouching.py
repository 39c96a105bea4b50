"""What a publication stands on: the same bytes were linted, reviewed and signed before it, by those who had to.

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

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import FORMS
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.json_text import parse
from contextplane.model.value import Value
from contextplane.registry.artifacts import Candidate
from contextplane.registry.changes import Published
from contextplane.registry.events import Happened
from contextplane.registry.lifecycle import ArtifactState, allowed
from contextplane.registry.reviewing import (
    ReviewIncomplete,
    ReviewRejected,
    check_reviews,
    needed_roles,
)
from contextplane.registry.shelf import Shelf
from contextplane.registry.streams import artifact_stream, version_stream
from contextplane.registry.version import VersionState

__all__ = ["PublicationUnreviewed", "Vouched", "vouched"]


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
    for one in events:
        state = state.after_event(one)
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
    given = {(one.role, one.key_id) for one in state.approvals}
    named = next((one for one in published.approvals if (one.role, one.by) not in given), None)
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
