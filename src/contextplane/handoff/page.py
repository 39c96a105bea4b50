"""Which part of a pack a reader asks for, and how much of it each kind of reader gets.

Page tokens: where a read goes on, signed with a key of the store, good for one revision of one pack and one query.

A token is base64url of a few numbers, the text that was searched for, and 80 bits of an HMAC over all of it.

The list of packs as markdown: one line for each.
"""

import base64
import binascii
import hmac
from collections.abc import Iterable
from typing import Literal

from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.freshness import freshness
from contextplane.handoff.markdown import one_line
from contextplane.model.catalog import HandoffRow
from contextplane.model.handoff import Status
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

__all__ = [
    "PROFILES",
    "PageArguments",
    "PageQuery",
    "Profile",
    "ProfileRule",
    "first_page",
    "issue",
    "listed",
    "redeem",
]

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


_PURPOSE = b"contextplane handoff page 1\0"
_MAC = 10
_PROFILES: tuple[Profile, ...] = tuple(PROFILES)
_STATUSES: tuple[Status | None, ...] = (None, "draft", "finalized")
_ID_BYTES = 5
_START_AGAIN = "read the first page again, without page_token"


class _Claim(Value, frozen=True):
    """What a token says."""

    pack_id: str
    revision: int
    query: PageQuery


def issue(key: bytes, query: PageQuery, *, pack_id: str, revision: int, next_offset: int) -> str:
    """The token that goes on with the query at that offset."""
    kind = _PROFILES.index(query.profile) * len(_STATUSES) + _STATUSES.index(query.status)
    payload = bytes([kind]) + base64.b32decode(pack_id.removeprefix("pk_").upper())
    payload += _number(revision) + _number(query.most or 0) + _number(next_offset)
    payload += (query.contains or "").encode()
    return base64.urlsafe_b64encode(payload + _mac(key, payload)).rstrip(b"=").decode()


def redeem(key: bytes, token: str, *, pack_id: str, revision: int, given: PageArguments) -> PageQuery:
    """The query of a token of ours. What is given beside it must be what the token says; what is not comes from it."""
    if given.offset is not None:
        raise _refused("provide either 'offset' or 'page_token', not both", "leave out offset: the token holds it")
    claim = _opened(key, token)
    if claim.pack_id != pack_id:
        raise _refused("pack id mismatch", "use the token with the pack whose page gave it")
    if claim.revision != revision:
        raise _refused(f"pack revision changed: {claim.revision} is now {revision}", _START_AGAIN)
    query = claim.query
    told = {
        "profile": (given.profile, query.profile),
        "limit": (given.limit, query.limit),
        "contains": (given.needle, query.contains),
        "status": (given.status, query.status),
    }
    other = [name for name, (now, then) in told.items() if now is not None and now != then]
    if other:
        guidance = f"give {', '.join(other)} as on the first page or not at all, or {_START_AGAIN}"
        raise _refused(f"request fingerprint mismatch: {', '.join(other)}", guidance)
    return query


def _opened(key: bytes, token: str) -> _Claim:
    """What a token says, once its signature agrees; nothing is read before."""
    try:
        data = base64.b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refused("malformed", _START_AGAIN) from error
    payload, mac = data[:-_MAC], data[-_MAC:]
    if not payload or not hmac.compare_digest(mac, _mac(key, payload)):
        raise _refused("not issued by this store, or altered", "use next_page_token of the LEGEND as it is")
    profile, status = divmod(payload[0], len(_STATUSES))
    name = base64.b32encode(payload[1 : 1 + _ID_BYTES]).decode().lower()
    revision, at = _read_number(payload, 1 + _ID_BYTES)
    limit, at = _read_number(payload, at)
    offset, at = _read_number(payload, at)
    query = PageQuery(
        profile=_PROFILES[profile],
        limit=limit or None,
        offset=offset,
        contains=payload[at:].decode() or None,
        status=_STATUSES[status],
    )
    return _Claim(pack_id=f"pk_{name}", revision=revision, query=query)


def _mac(key: bytes, payload: bytes) -> bytes:
    return hmac.digest(key, _PURPOSE + payload, "sha256")[:_MAC]


def _number(value: int) -> bytes:
    """Seven bits a byte, the low ones first; the eighth says that more follow."""
    found = bytearray()
    while value >> 7:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def _refused(reason: str, guidance: str) -> HandoffInvalid:
    return HandoffInvalid(
        f"invalid data: invalid_page_token: {reason}",
        hint=guidance,
        details={"field": "page_token", "reason": reason, "guidance": guidance},
    )


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
