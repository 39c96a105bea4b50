"""Page tokens: signed claims of where a read goes on, good for one query on one revision of one pack.

A token is base64url of a few numbers, the text that was searched for, and 80 bits of an HMAC over all of it, with a key
of the store.
"""

import base64
import binascii
import hmac

from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.page import PROFILES, PageArguments, PageQuery, Profile
from contextplane.model.handoff import Status
from contextplane.model.value import Value

__all__ = ["issue", "redeem"]

# The order is that of the numbers in a token.
_PROFILES: tuple[Profile, ...] = tuple(PROFILES)
_STATUSES: tuple[Status | None, ...] = (None, "draft", "finalized")
_PURPOSE = b"contextplane handoff page 1\0"
_MAC = 10
_ID_BYTES = 5
_START_AGAIN = "read the first page again, without page_token"


class _Claim(Value, frozen=True):
    """The content of a token."""

    pack_id: str
    revision: int
    query: PageQuery


def issue(key: bytes, query: PageQuery, *, pack_id: str, revision: int, next_offset: int) -> str:
    """Issue the token that continues the query at `next_offset`."""
    kind = _PROFILES.index(query.profile) * len(_STATUSES) + _STATUSES.index(query.status)
    payload = bytes([kind]) + base64.b32decode(pack_id.removeprefix("pk_").upper())
    payload += _number(revision) + _number(query.most or 0) + _number(next_offset)
    payload += (query.contains or "").encode()
    return base64.urlsafe_b64encode(payload + _mac(key, payload)).rstrip(b"=").decode()


def redeem(key: bytes, token: str, *, pack_id: str, revision: int, arguments: PageArguments) -> PageQuery:
    """The query of a token of this store, or `HandoffInvalid`.

    Arguments beside the token must agree with it; those that are left out come from it.
    """
    if arguments.offset is not None:
        raise _token_refusal(
            "provide either 'offset' or 'page_token', not both", "leave out offset: the token holds it"
        )
    claim = _verify_claim(key, token)
    if claim.pack_id != pack_id:
        raise _token_refusal("pack id mismatch", "use the token with the pack whose page gave it")
    if claim.revision != revision:
        raise _token_refusal(f"pack revision changed: {claim.revision} is now {revision}", _START_AGAIN)
    query = claim.query
    pairs = {
        "profile": (arguments.profile, query.profile),
        "limit": (arguments.limit, query.limit),
        "contains": (arguments.needle, query.contains),
        "status": (arguments.status, query.status),
    }
    other = [name for name, (now, then) in pairs.items() if now is not None and now != then]
    if other:
        guidance = f"give {', '.join(other)} as on the first page or not at all, or {_START_AGAIN}"
        raise _token_refusal(f"request fingerprint mismatch: {', '.join(other)}", guidance)
    return query


def _verify_claim(key: bytes, token: str) -> _Claim:
    """The content of a token whose signature is valid; nothing is parsed before that is checked."""
    try:
        data = base64.b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _token_refusal("malformed", _START_AGAIN) from error
    payload, mac = data[:-_MAC], data[-_MAC:]
    if not payload or not hmac.compare_digest(mac, _mac(key, payload)):
        raise _token_refusal("not issued by this store, or altered", "use next_page_token of the LEGEND as it is")
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
    """A number in seven bits a byte, the low ones first; the eighth bit says that more follow."""
    encoded = bytearray()
    while value >> 7:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def _token_refusal(reason: str, guidance: str) -> HandoffInvalid:
    return HandoffInvalid(
        f"invalid data: invalid_page_token: {reason}",
        hint=guidance,
        details={"field": "page_token", "reason": reason, "guidance": guidance},
    )
