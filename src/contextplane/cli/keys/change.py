"""`ctx keys new|trust|rotate|revoke`: from options to one signed change of the keyring.

Roles that somebody types. Those of ctx itself are known; whoever owns a decision may be called anything.
"""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from contextplane.app.registry.keys import KeyStore, keyring_name
from contextplane.cli.exit import OK
from contextplane.cli.keys.show import key_label
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.parser import Usage
from contextplane.model.keys import OWNER
from contextplane.model.suggestion import closest_name
from contextplane.model.timestamp import Timestamp
from contextplane.ports.keys import Signer
from contextplane.registry.artifact_state import REVIEW_ROLES
from contextplane.registry.authority import OPERATOR, PUBLISHER
from contextplane.trust.clock import LAST_MOMENT
from contextplane.trust.dsse import encode_base64
from contextplane.trust.keyring import Change, KeyRotation, ThresholdChange, TrustedKeys
from contextplane.trust.tenancy import tenant_role

__all__ = ["ROLES", "change_keys", "make_key", "owner_roles", "owner_role_notes", "reject_empty_tenant"]

ROLES = (OWNER, PUBLISHER, OPERATOR, *REVIEW_ROLES)
"""What ctx itself asks for. A pack may ask for any other, as the owner_role of a decision."""

_TENANT = tenant_role("")
_CLOSE = 0.75


def reject_empty_tenant(roles: Iterable[str]) -> None:
    """A right to speak for a tenant names the tenant."""
    if _TENANT in roles:
        raise Usage(f"argument --role: {_TENANT} names no tenant", hint=f"write {tenant_role('TENANT_ID')}")


def owner_roles(roles: Iterable[str]) -> list[str]:
    """Those that ctx itself does not ask for."""
    return [role for role in roles if role not in ROLES and not role.startswith(_TENANT)]


def owner_role_notes(roles: Iterable[str]) -> Iterator[str]:
    """Of each of them, what it is good for, and what was perhaps meant."""
    for role in owner_roles(roles):
        near = closest_name(role.lower(), ROLES, cutoff=_CLOSE)
        meant = f" Did you mean {near}?" if near else ""
        yield f"{clean(role)} counts only where it is the owner_role of a decision.{meant}"


_SHOWN = 16
_OVERLAP_DAYS, _DAY = 30, 86_400


def make_key(key_store: KeyStore, args: Namespace, output: CommandOutput) -> int:
    made = key_store.create_key(args.names[0], args.issuer)
    line = f"Made key {made.key_id[:_SHOWN]}. Its public half, to be handed on: {clean(made.public)}"
    output.entry(made.key_id, line)
    if made.trusted:
        output.line(f"It owns this keyring, and signs for {clean(args.issuer)}.")
    else:
        output.line(
            f"Nobody trusts it yet. An owner does: ctx keys trust {made.name} --issuer ISSUER --role ROLE --key OWNER"
        )
    output.answer(made)
    return OK


def change_keys(key_store: KeyStore, args: Namespace, output: CommandOutput) -> int:
    key_id, change = _CHANGES[args.what](key_store, args)
    signer = key_store.signer(args.key)
    keyring = change(signer)
    names = key_store.names()
    by = f"signed by {key_label(signer.public_key.key_id, names)}"
    for line in _change_lines(args, key_label(key_id, names), key_id, keyring):
        output.line(f"{line}, {by}.")
    for line in owner_role_notes(args.role or ()):
        output.line(line)
    if args.what == "trust":
        for other in _namesakes(key_id, names):
            output.note(f"key {key_label(other, names)} has the same name; ids tell them apart")
    later = args.what == "revoke" and args.since is not None and args.since > keyring.as_of
    if later:
        output.warn(
            "until then the key signs; after it, until the keyring is changed once more, it can put an act before it"
            " (revoke it without --from to end it at once)"
        )
    _print_resigning(key_store, output, ended=args.what == "revoke" and not later)
    for issuer in keyring.issuers:
        able = sum(key.state_at(keyring.as_of) == "valid" for key in issuer.keys)
        if able < issuer.threshold:
            output.note(f"{clean(issuer.name)} needs {issuer.threshold} signatures and has {able} good keys now")
    answer = {"key_id": key_id, "signed_by": signer.public_key.key_id, "events": keyring.seq}
    signed = None if key_store.resigner is None else key_store.resigner.refusal is None
    output.answer({**answer, "owner_roles": owner_roles(args.role or ()), "registry_signed": signed})
    return OK


def _change_lines(args: Namespace, who: str, key_id: str, keyring: TrustedKeys) -> Iterator[str]:
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


def _print_resigning(key_store: KeyStore, output: CommandOutput, *, ended: bool) -> None:
    """What the registry is after a change: signed anew, or why it is not. `ended`: a key is revoked by now."""
    if key_store.resigner is None:
        return
    refusal = key_store.resigner.refusal
    if refusal is None:
        if ended:
            output.line("The registry is signed anew: nothing that this key signs from now on passes for an older act.")
        return
    output.warn(
        f"the registry could not be signed anew ({refusal.code}: {clean(refusal.message)}):"
        " 'ctx verify --registry' tells how it stands, and with --sign a trusted key signs it"
    )


_Made = tuple[str, Callable[[Signer], TrustedKeys]]
"""Which key a change is about, and making it."""


def _trust(key_store: KeyStore, args: Namespace) -> _Made:
    reject_empty_tenant(args.role or ())
    key, name = key_store.public(args.names[0]), keyring_name(args.names[0])
    issuer = key_store.keyring.issuer(args.issuer)
    known = None if issuer is None else issuer.key(key.key_id)
    roles, since, until = args.role, args.since, args.until
    if known is not None:  # what is not named stays as it is
        roles, since, until = roles or known.roles, since or known.valid_from, until or known.valid_until
        name = name or known.name
    changes: list[Change] = [key_store.key_trust(key, args.issuer, roles=roles or (), since=since, until=until, name=name)]
    if args.threshold is not None:
        changes.append(ThresholdChange(issuer=args.issuer, threshold=args.threshold))
    return key.key_id, partial(key_store.change, changes)


def _rotate(key_store: KeyStore, args: Namespace) -> _Made:
    old, new = key_store.trusted_id(args.names[0]), key_store.public(args.names[1])
    days = _OVERLAP_DAYS if args.overlap is None else args.overlap
    now = key_store.now
    change = KeyRotation(
        old=old,
        key=encode_base64(new.raw),
        valid_from=str(now),
        old_until=str(min(Timestamp(seconds=now.seconds + days * _DAY, nanos=now.nanos), max(now, LAST_MOMENT))),
        name=keyring_name(args.names[1]),
    )
    return new.key_id, partial(key_store.change, [change])


def _revoke(key_store: KeyStore, args: Namespace) -> _Made:
    key_id = key_store.trusted_id(args.names[0])
    return key_id, partial(key_store.revoke, key_id, args.reason, since=args.since)


_CHANGES = {"trust": _trust, "rotate": _rotate, "revoke": _revoke}
