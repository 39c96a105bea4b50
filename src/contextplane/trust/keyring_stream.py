"""The keyring in the catalog: the stream `trust/keyring`, folded from the state that this client knew.

A client stores the keyring that it knows outside of the catalog. So only new events are verified, and a stream that
lost or changed its past is noticed.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.catalog import Event, StoredEvent
from contextplane.model.ids import Digest
from contextplane.ports.catalog import Streams, StreamsView
from contextplane.ports.keys import SignatureCheck
from contextplane.store.event_stream import EventStream, Folded
from contextplane.trust.keyring import TrustedKeys

__all__ = ["STREAM", "KeyringRewritten", "KeyringRolledBack", "append_change", "follow_keyring"]

STREAM = "trust/keyring"
_KIND = "keyring_changed"
_HINT = "the catalog was replaced; restore it from a copy"


class KeyringRolledBack(ContextPlaneError):
    """The catalog's keyring has fewer events than this client has seen. A revocation may be missing."""

    code: ClassVar[str] = "keyring_rolled_back"
    family: ClassVar[Family] = "untrusted"


class KeyringRewritten(ContextPlaneError):
    """The catalog's keyring is not the one that this client has seen."""

    code: ClassVar[str] = "keyring_rewritten"
    family: ClassVar[Family] = "untrusted"


def follow_keyring(streams: StreamsView, known: TrustedKeys, check: SignatureCheck) -> TrustedKeys:
    """Fold the new events of the stream onto the known keyring. A refused event refuses the whole."""
    stream: EventStream[StoredEvent, TrustedKeys] = EventStream(
        name=STREAM, initial=TrustedKeys(), decode=lambda stored: stored, evolve=partial(_apply_events, check=check)
    )
    end = stream.advance(Folded(state=known, seq=known.seq, digest=known.head), _new_events(streams, known))
    if streams.head(STREAM) < known.seq:
        raise KeyringRolledBack(
            f"{streams.head(STREAM)} events, and {known.seq} were seen before", at=STREAM, hint=_HINT
        )
    return end.state


def append_change(streams: Streams, keys: TrustedKeys, body: bytes, check: SignatureCheck) -> TrustedKeys:
    """Append a signed change that this keyring allows, and return the keyring after it."""
    after = keys.after(body, check)
    streams.append(STREAM, keys.seq, [Event(kind=_KIND, body=body)])
    return after


def _new_events(streams: StreamsView, known: TrustedKeys) -> Iterator[StoredEvent]:
    # The last known event is read again, because its digest stands for all before it.
    for event in streams.read(STREAM, after=max(known.seq - 1, 0)):
        if event.seq > known.seq:
            yield event
        elif Digest.of(event.body).hex != known.head:
            raise KeyringRewritten(f"event {event.seq} is another one than before", at=STREAM, hint=_HINT)


def _apply_events(keys: TrustedKeys, events: Iterable[StoredEvent], check: SignatureCheck) -> TrustedKeys:
    for event in events:
        try:
            keys = keys.after(event.body, check)
        except ContextPlaneError as error:
            raise error.under(f"{STREAM}@{event.seq}") from None
    return keys
