"""Telling the store how long its packs are served after their deadline, so that nobody collects them before."""

from contextplane.model.handoff_grace import GRACE_STREAM, MOST_GRACE_SECONDS, grace_body, longest_grace
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Catalog, Transaction, View
from contextplane.ports.streams import Event

__all__ = ["tell_grace"]


def tell_grace(catalog: Catalog, seconds: int, now: Timestamp) -> None:
    """Write down a grace time that is longer than any that was told before; a shorter one changes nothing."""
    seconds = min(seconds, MOST_GRACE_SECONDS)
    with catalog.read() as view:
        if seconds <= _longest(view):
            return
    with catalog.write() as tx:
        if seconds > _longest(tx):
            event = Event(kind="longer", body=grace_body(seconds, now))
            tx.streams.append(GRACE_STREAM, tx.streams.head(GRACE_STREAM), [event])


def _longest(view: View | Transaction) -> int:
    return longest_grace(event.body for event in view.streams.read(GRACE_STREAM))
