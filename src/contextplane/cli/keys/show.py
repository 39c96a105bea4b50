"""`ctx keys list`: who is trusted, and which keys are here.

How a key is told to people: the beginning of its id, and what it is called.
"""

from collections.abc import Mapping

from contextplane.app.registry.keys import KeyDesk
from contextplane.cli.exit import OK
from contextplane.cli.output import Screen, clean, counted, second
from contextplane.model.keys import Issuer, TrustedKey
from contextplane.model.timestamp import Timestamp

__all__ = ["called", "list_keys"]

_SHOWN = 16
_COLOR = {"valid": "green", "not_yet_valid": "yellow", "expired": "red", "revoked": "red"}


def list_keys(desk: KeyDesk, screen: Screen) -> int:
    keyring, local, names, now = desk.keyring, desk.local(), desk.names(), desk.now
    known = {key.key.key_id: None for issuer in keyring.issuers for key in issuer.keys}
    good = {key.key.key_id for issuer in keyring.issuers for key in issuer.keys if key.state_at(now) == "valid"}
    others = [key_id for key_id in local if key_id not in known]
    if screen.quiet:
        for key_id in (*known, *others):  # one of several issuers is one key
            screen.entry(key_id, key_id)
    else:
        widest = max(map(len, names.values()), default=1)
        for issuer in keyring.issuers:
            screen.say(f"{clean(issuer.name)}: {_needed(issuer, now)}")
            for key in issuer.keys:
                screen.say(_line(key, clean(names.get(key.key.key_id, "-")), widest, now, screen))
        if others:
            screen.say("here, and trusted by nobody:")
        for key_id in others:
            screen.say(f"  {key_id[:_SHOWN]}  {local[key_id]}")
        if not (keyring.issuers or others):
            screen.say("No keys. 'ctx keys new NAME --issuer ISSUER' makes the first.")
    screen.answer(
        {
            "issuers": [_told(issuer, names, now) for issuer in keyring.issuers],
            "here": [{"name": name, "key_id": key_id, "trusted": key_id in good} for key_id, name in local.items()],
            "as_of": str(keyring.as_of) if keyring.seq else None,
        }
    )
    return OK


def _needed(issuer: Issuer, now: Timestamp) -> str:
    """How many must sign, and of how many that could."""
    good, every = sum(key.state_at(now) == "valid" for key in issuer.keys), len(issuer.keys)
    if good == every:
        return f"{issuer.threshold} of {counted(every, 'key')} must sign"
    return f"{counted(issuer.threshold, 'key')} must sign; {good} of {every} {'is' if good == 1 else 'are'} valid now"


def _line(key: TrustedKey, name: str, widest: int, now: Timestamp, screen: Screen) -> str:
    """Which key, whether it is good, from when until when, and what for. Times are told to the second."""
    state = key.state_at(now)
    until = f" until {second(key.valid_until)}" if key.valid_until else ""
    why = f"  revoked from {second(key.revoked_from)} on: {clean(key.reason)}" if key.revoked_from else ""
    roles = ", ".join(map(clean, key.roles)) or "no role"
    shown = screen.paint(_COLOR[state], f"{state.replace('_', ' '):<7}")
    return f"  {key.key.key_id[:_SHOWN]}  {name:<{widest}}  {shown}  from {second(key.valid_from)}{until}  {roles}{why}"


def _told(issuer: Issuer, names: dict[str, str], now: Timestamp) -> dict[str, object]:
    return {
        "issuer": issuer.name,
        "threshold": issuer.threshold,
        "keys": [
            {
                "key_id": key.key.key_id,
                "public_key": key.key.raw,
                "name": names.get(key.key.key_id),
                "roles": key.roles,
                "state": key.state_at(now),
                "valid_from": str(key.valid_from),
                "valid_until": str(key.valid_until) if key.valid_until else None,
                "revoked_from": str(key.revoked_from) if key.revoked_from else None,
                "reason": key.reason or None,
            }
            for key in issuer.keys
        ],
    }


def called(key_id: str, names: Mapping[str, str]) -> str:
    """The id decides; the name is what whoever trusted the key wrote down, or what it is called here."""
    name = names.get(key_id)
    return f"{key_id[:_SHOWN]} {clean(name)}" if name else key_id[:_SHOWN]
