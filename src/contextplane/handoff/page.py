"""Pages of a pack: the requested part, how much each profile shows, and the list of packs."""

from collections.abc import Iterable
from typing import Literal

from contextplane.handoff.freshness import freshness
from contextplane.handoff.markdown import one_line
from contextplane.model.catalog import HandoffRow
from contextplane.model.handoff import Status
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = ["PROFILES", "PageArguments", "PageQuery", "Profile", "ProfileRule", "first_page", "list_markdown"]

Profile = Literal["orchestrator", "reviewer", "executor"]


class ProfileRule(Value, frozen=True):
    """How much a profile shows. `compact`: without code. `limit`: chunks per page by default."""

    compact: bool
    limit: int | None


PROFILES: dict[Profile, ProfileRule] = {
    "orchestrator": ProfileRule(compact=True, limit=6),
    "executor": ProfileRule(compact=True, limit=12),
    "reviewer": ProfileRule(compact=False, limit=None),
}


class PageArguments(Value, frozen=True):
    """The arguments of a request for a page; None for each that was left out."""

    profile: Profile | None = None
    limit: int | None = None
    offset: int | None = None
    contains: str | None = None
    status: Status | None = None

    @property
    def needle(self) -> str | None:
        """The text to search for; None when it is blank."""
        return (self.contains or "").strip() or None


class PageQuery(Value, frozen=True):
    """A page of a pack: `limit` chunks from `offset` on, of those that contain a text.

    Without a limit that of the profile counts.
    """

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
        """The most chunks on the page, None for all."""
        return PROFILES[self.profile].limit if self.limit is None else self.limit

    @property
    def paged(self) -> bool:
        """Whether the LEGEND shows the paging fields."""
        return self.most is not None or self.offset > 0


def first_page(arguments: PageArguments) -> PageQuery:
    """The query of a request without a page token."""
    return PageQuery(
        profile=arguments.profile or "orchestrator",
        limit=arguments.limit,
        offset=arguments.offset or 0,
        contains=arguments.needle,
        status=arguments.status,
    )


def list_markdown(rows: Iterable[HandoffRow], now: Timestamp) -> str:
    """The list of packs as `output list` shows it: one line for each."""
    lines = [_line(row, now) for row in rows]
    return "# Context packs\n\n" + "".join(lines) if lines else "No context packs found."


def _line(row: HandoffRow, now: Timestamp) -> str:
    fresh = freshness(row.expires, now)
    title = one_line(row.title or row.name or "") or "Untitled"
    warning = f" [warning: {fresh.warning}]" if fresh.warning else ""
    expires = str(row.expires).removesuffix("Z") + "+00:00"
    # The fields of the reference server come first and in its form, for clients that parse its lines.
    return (
        f"- `{row.id}` \u2014 {title} (revision `{row.revision}`, ttl `{fresh.human}`, freshness `{fresh.state}`)"
        f"{warning} (status `{row.status}`, expires_at `{expires}`)\n"
    )
