"""`ctx keys new|trust|rotate|revoke`: from options to one signed change of the keyring.

Roles that somebody types. Those of ctx itself are known; whoever owns a decision may be called anything.
"""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from contextplane.app.registry.keys import KeyDesk, name_of
from contextplane.cli.exit import OK
from contextplane.cli.keys.show import called
from contextplane.cli.output import Screen, clean
from contextplane.cli.parser import Usage
from contextplane.model.keys import OWNER
from contextplane.model.timestamp import Timestamp
from contextplane.ports.keys import Signer
from contextplane.registry.artifact_state import FOUR
from contextplane.registry.authority import OPERATOR, PUBLISHER
from contextplane.trust.clock import LAST_MOMENT
from contextplane.trust.dsse import encoded
from contextplane.trust.keyring import Change, KeyRotation, ThresholdChange, TrustedKeys
from contextplane.trust.tenancy import tenant_role

__all__ = ["ROLES", "change_keys", "make_key", "owner_roles", "owner_roles_told", "refuse_empty_tenant"]

ROLES = (OWNER, PUBLISHER, OPERATOR, *FOUR)
"""What ctx itself asks for. A pack may ask for any other, as the owner_role of a decision."""

_TENANT = tenant_role("")
_CLOSE = 0.75


def refuse_empty_tenant(roles: Iterable[str]) -> None:
    """A right to speak for a tenant names the tenant."""
    if _TENANT in roles:
        raise Usage(f"argument --role: {_TENANT} names no tenant", hint=f"write {tenant_role('TENANT_ID')}")


def owner_roles(roles: Iterable[str]) -> list[str]:
    """Those that ctx itself does not ask for."""
    return [role for role in roles if role not in ROLES and not role.startswith(_TENANT)]


def owner_roles_told(roles: Iterable[str]) -> Iterator[str]:
    """Of each of them, what it is good for, and what was perhaps meant."""
    from difflib import get_close_matches

    for role in owner_roles(roles):
        near = get_close_matches(role.lower(), ROLES, n=1, cutoff=_CLOSE)
        meant = f" Did you mean {near[0]}?" if near else ""
        yield f"{clean(role)} counts only where it is the owner_role of a decision.{meant}"


_SHOWN = 16
_OVERLAP_DAYS, _DAY = 30, 86_400


def make_key(desk: KeyDesk, args: Namespace, screen: Screen) -> int:
    made = desk.make(args.names[0], args.issuer)
    line = f"Made key {made.key_id[:_SHOWN]}. Its public half, to be handed on: {clean(made.public)}"
    screen.entry(made.key_id, line)
    if made.trusted:
        screen.say(f"It owns this keyring, and signs for {clean(args.issuer)}.")
    else:
        screen.say(
            f"Nobody trusts it yet. An owner does: ctx keys trust {made.name} --issuer ISSUER --role ROLE --key OWNER"
        )
    screen.answer(made)
    return OK


def change_keys(desk: KeyDesk, args: Namespace, screen: Screen) -> int:
    key_id, change = _CHANGES[args.what](desk, args)
    signer = desk.signer(args.key)
    keyring = change(signer)
    names = desk.names()
    by = f"signed by {called(signer.public_key.key_id, names)}"
    for line in _said(args, called(key_id, names), key_id, keyring):
        screen.say(f"{line}, {by}.")
    for line in owner_roles_told(args.role or ()):
        screen.say(line)
    if args.what == "trust":
        for other in _namesakes(key_id, names):
            screen.note(f"key {called(other, names)} has the same name; ids tell them apart")
    later = args.what == "revoke" and args.since is not None and args.since > keyring.as_of
    if later:
        screen.warn(
            "until then the key signs; after it, until the keyring is changed once more, it can put an act before it"
            " (revoke it without --from to end it at once)"
        )
    _tell_sealing(desk, screen, ended=args.what == "revoke" and not later)
    for issuer in keyring.issuers:
        able = sum(key.state_at(keyring.as_of) == "valid" for key in issuer.keys)
        if able < issuer.threshold:
            screen.note(f"{clean(issuer.name)} needs {issuer.threshold} signatures and has {able} good keys now")
    answer = {"key_id": key_id, "signed_by": signer.public_key.key_id, "events": keyring.seq}
    signed = None if desk.sealing is None else desk.sealing.refusal is None
    screen.answer({**answer, "owner_roles": owner_roles(args.role or ()), "registry_signed": signed})
    return OK


def _said(args: Namespace, who: str, key_id: str, keyring: TrustedKeys) -> Iterator[str]:
    """What holds now of the key, for each issuer that has it."""
    for issuer in keyring.issuers:
        key = issuer.key(key_id)
        if key is None:
            continue
        roles = (
            f"in the {'roles' if len(key.roles) > 1 else 'role'} {', '.join(key.roles)}"
            if key.roles
            else "without a role"
        )
        told = {
            "trust": f"is trusted for {clean(issuer.name)} {clean(roles)}",
            "rotate": f"takes the place of {clean(args.names[0])} for {clean(issuer.name)} {clean(roles)}",
            "revoke": f"is revoked for {clean(issuer.name)} from {key.revoked_from} on",
        }
        yield f"Key {who} {told[args.what]}"


def _namesakes(key_id: str, names: Mapping[str, str]) -> list[str]:
    name = names.get(key_id)
    return [other for other in names if other != key_id and names[other] == name]


def _tell_sealing(desk: KeyDesk, screen: Screen, *, ended: bool) -> None:
    """What the registry is after a change: signed anew, or why it is not. `ended`: a key is revoked by now."""
    if desk.sealing is None:
        return
    refusal = desk.sealing.refusal
    if refusal is None:
        if ended:
            screen.say("The registry is signed anew: nothing that this key signs from now on passes for an older act.")
        return
    screen.warn(
        f"the registry could not be signed anew ({refusal.code}: {clean(refusal.message)}):"
        " 'ctx verify --registry' tells how it stands, and with --sign a trusted key signs it"
    )


_Made = tuple[str, Callable[[Signer], TrustedKeys]]
"""Which key a change is about, and making it."""


def _trust(desk: KeyDesk, args: Namespace) -> _Made:
    refuse_empty_tenant(args.role or ())
    key, name = desk.public(args.names[0]), name_of(args.names[0])
    issuer = desk.keyring.issuer(args.issuer)
    known = None if issuer is None else issuer.key(key.key_id)
    roles, since, until = args.role, args.since, args.until
    if known is not None:  # what is not named stays as it is
        roles, since, until = roles or known.roles, since or known.valid_from, until or known.valid_until
        name = name or known.name
    changes: list[Change] = [desk.trusting(key, args.issuer, roles=roles or (), since=since, until=until, name=name)]
    if args.threshold is not None:
        changes.append(ThresholdChange(issuer=args.issuer, threshold=args.threshold))
    return key.key_id, partial(desk.change, changes)


def _rotate(desk: KeyDesk, args: Namespace) -> _Made:
    old, new = desk.known_id(args.names[0]), desk.public(args.names[1])
    days = _OVERLAP_DAYS if args.overlap is None else args.overlap
    now = desk.now
    change = KeyRotation(
        old=old,
        key=encoded(new.raw),
        valid_from=str(now),
        old_until=str(min(Timestamp(seconds=now.seconds + days * _DAY, nanos=now.nanos), max(now, LAST_MOMENT))),
        name=name_of(args.names[1]),
    )
    return new.key_id, partial(desk.change, [change])


def _revoke(desk: KeyDesk, args: Namespace) -> _Made:
    key_id = desk.known_id(args.names[0])
    return key_id, partial(desk.revoke, key_id, args.reason, since=args.since)


_CHANGES = {"trust": _trust, "rotate": _rotate, "revoke": _revoke}
