"""An act that is put into the past: by whoever has a key of then, and can write the catalog."""

from contextplane.model.catalog import Event
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog
from contextplane.registry.events import Change, EnvironmentOpened, RegistryEvent, kind_of, sign_event
from contextplane.registry.streams import LOG, environment_stream
from contextplane.store.event_stream import stream_head
from contextplane.trust.keyring_stream import STREAM as KEYRING
from contextplane.trust.merkle_log import LogEntry
from tests.support.forged_log import forge_log
from tests.unit.registry.world import ORIGIN, Registry
from tests.unit.trust.world import key_of

__all__ = ["backdated", "keyring_before", "slip_change", "slipped_in"]

OPENED = environment_stream("prod")


def backdated(
    catalog: Catalog, at: Timestamp, *, keyring: int, until: Timestamp | None = None, origin: str = ORIGIN
) -> None:
    """An act of an earlier time, under the keyring of then, in both trees and under a checkpoint of its own.

    `until`: the time of that checkpoint, if it is another one.
    """
    with catalog.read() as view:
        entry = view.streams.head(LOG)
    event = RegistryEvent(
        subject=OPENED,
        seq=1,
        previous="",
        entry=entry,
        keyring=keyring,
        at=str(at),
        reason="it was long ago",
        change=EnvironmentOpened(),
        origin=origin,
    )
    slipped_in(catalog, event, by="ops", until=until or at, origin=origin)


def slipped_in(catalog: Catalog, event: RegistryEvent, *, by: str, until: Timestamp, origin: str = ORIGIN) -> None:
    """An event as it is, in both trees and under a checkpoint, which nobody looked at before."""
    signer, body = key_of(by), sign_event(event, key_of(by))
    with catalog.write() as tx:
        tx.streams.append(event.subject, event.seq - 1, [Event(kind=kind_of(event.change), body=body)])
        entry = LogEntry(event=Digest.of(body).hex, seq=event.seq, stream=event.subject, previous=event.previous)
        forge_log(tx, [entry], signer=signer, at=until, origin=origin)


def slip_change(registry: Registry, by: str, stream: str, change: Change) -> None:
    """A change as if it were in order, made past every rule."""
    registry.seconds += 1
    with registry.catalog.read() as view:
        end, entry, keyring = stream_head(view.streams, stream), view.streams.head(LOG), view.streams.head(KEYRING)
    event = RegistryEvent(
        subject=stream,
        seq=1 if end is None else end.seq + 1,
        previous="" if end is None else end.digest,
        entry=entry,
        keyring=keyring,
        at=str(registry.now),
        reason="because I can",
        change=change,
        origin=ORIGIN,
    )
    slipped_in(registry.catalog, event, by=by, until=registry.now)


def keyring_before(catalog: Catalog) -> int:
    """The number of the keyring before its last change."""
    with catalog.read() as view:
        return view.streams.head(KEYRING) - 1
