"""Which part of a pack a reader asks for, and how much of it each kind of reader gets.

Page tokens: where a read goes on, signed with a key of the store, good for one revision of one pack and one query.

A token is base64url of a few numbers, the text that was searched for, and 80 bits of an HMAC over all of it.

The list of packs as markdown: one line for each.
"""

from collections.abc import Iterable
from typing import Literal

from contextplane.handoff.freshness import freshness
from contextplane.handoff.markdown import one_line
from contextplane.model.catalog import HandoffRow
from contextplane.model.handoff import Status
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = ["PROFILES", "PageArguments", "PageQuery", "Profile", "ProfileRule", "first_page", "listed"]

Profile = Literal["orchestrator", "reviewer", "executor"]


class ProfileRule(Value, frozen=True):
    """What a profile shows: compact without code, and at most `limit` chunks where nothing else is asked for."""

    compact: bool
    limit: int | None


PROFILES: dict[Profile, ProfileRule] = {
    "orchestrator": ProfileRule(compact=True, limit=6),
    "executor": ProfileRule(compact=True, limit=12),
    "reviewer": ProfileRule(compact=False, limit=None),
}


class PageArguments(Value, frozen=True):
    """What the caller said of the page; None is what was not said."""

    profile: Profile | None = None
    limit: int | None = None
    offset: int | None = None
    contains: str | None = None
    status: Status | None = None

    @property
    def needle(self) -> str | None:
        """The text that is searched for; blanks search for nothing."""
        return (self.contains or "").strip() or None


class PageQuery(Value, frozen=True):
    """A page of a pack: `limit` chunks from `offset` on, of those that contain a text. No limit is the profile's."""

    profile: Profile = "orchestrator"
    limit: int | None = None
    offset: int = 0
    contains: str | None = None
    status: Status | None = None

    @property
    def compact(self) -> bool:
        return PROFILES[self.profile].compact

    @property
    def most(self) -> int | None:
        """How many chunks the page may have, None for all."""
        return PROFILES[self.profile].limit if self.limit is None else self.limit

    @property
    def paged(self) -> bool:
        """Whether the page says that it is one."""
        return self.most is not None or self.offset > 0


def first_page(given: PageArguments) -> PageQuery:
    """The page that is asked for without a page token."""
    return PageQuery(
        profile=given.profile or "orchestrator",
        limit=given.limit,
        offset=given.offset or 0,
        contains=given.needle,
        status=given.status,
    )


_PROFILES: tuple[Profile, ...] = tuple(PROFILES)
_STATUSES: tuple[Status | None, ...] = (None, "draft", "finalized")


def listed(rows: Iterable[HandoffRow], now: Timestamp) -> str:
    """What `output list` shows."""
    lines = [_line(row, now) for row in rows]
    return "# Context packs\n\n" + "".join(lines) if lines else "No context packs found."


def _line(row: HandoffRow, now: Timestamp) -> str:
    fresh = freshness(row.expires, now)
    called = one_line(row.title or row.name or "") or "Untitled"
    warning = f" [warning: {fresh.warning}]" if fresh.warning else ""
    expires = str(row.expires).removesuffix("Z") + "+00:00"
    # What the reference server tells comes first and as it tells it, for whoever takes its lines apart.
    return (
        f"- `{row.id}` \u2014 {called} (revision `{row.revision}`, ttl `{fresh.human}`, freshness `{fresh.state}`)"
        f"{warning} (status `{row.status}`, expires_at `{expires}`)\n"
    )
