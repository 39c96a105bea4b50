"""Resolutions that are kept for a while, so that the next run of the same pack does not pay for one again.

A kept resolution is handed out while its pack's `ttl_seconds` last. Within that time a caller chooses what he needs:

- with `state`, the resolution is the one of exactly this state of registry and keyring: a revocation, a new pin, a
  revoked key are noticed at once, for the price of asking for two numbers (`state_number`);
- without it, nothing is asked: what happened since is noticed when the time is over, at the latest.

A refusal is never kept, and it drops what was kept before. The bytes behind a name never change, so a TTL is about how
soon a new state is seen, and about nothing else. The clock is handed in.
"""

from collections.abc import Callable

from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.streams import StreamsView
from contextplane.registry.resolved import Asked, Resolved
from contextplane.registry.streams import LOG
from contextplane.trust.keyring_stream import STREAM

__all__ = ["ResolutionCache", "StateNumber", "state_number"]

_MOST = 1024


class StateNumber(Value, frozen=True):
    """Which state something was resolved in: how many entries the log had, and how many changes the keyring."""

    entries: int
    keyring: int


def state_number(streams: StreamsView) -> StateNumber:
    """Which state a catalog is in: two look-ups, whatever its size."""
    return StateNumber(entries=streams.head(LOG), keyring=streams.head(STREAM))


class _Kept(Value, frozen=True):
    resolved: Resolved
    state: StateNumber
    since: Timestamp
    until: Timestamp


class ResolutionCache:
    """At most `most` resolutions; of more, the one that was resolved first goes."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: dict[Asked, _Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, asked: Asked, now: Timestamp, state: StateNumber | None = None) -> Resolved | None:
        """What was resolved for this question, if it is still fresh, and of this state where one is given."""
        kept = self._kept.get(asked)
        # A clock that shows an earlier time than when it was resolved says nothing of how old it is.
        if kept is None or not kept.since <= now < kept.until or (state is not None and state != kept.state):
            return None
        return kept.resolved

    def resolved(
        self,
        asked: Asked,
        now: Timestamp,
        resolve: Callable[[], tuple[Resolved, StateNumber]],
        state: StateNumber | None = None,
    ) -> Resolved:
        """The same, and where there is none, what `resolve` says with the state in which it says so."""
        found = self.get(asked, now, state)
        if found is not None:
            return found
        self._kept.pop(asked, None)
        fresh, of_state = resolve()
        until = Timestamp(seconds=now.seconds + fresh.ttl_seconds, nanos=now.nanos)
        while len(self._kept) >= self._most:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[asked] = _Kept(resolved=fresh, state=of_state, since=now, until=until)
        return fresh
