"""Page tokens: signed claims of which page of which revision comes next."""

import base64
import binascii
import hmac

from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.page import _PROFILES, _STATUSES, PageArguments, PageQuery
from contextplane.model.value import Value

__all__ = ["issue", "redeem"]


_PURPOSE = b"contextplane handoff page 1\0"


_MAC = 10


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
    bytearray_ = bytearray()
    while value >> 7:
        bytearray_.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*bytearray_, value])


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
