"""`ctx keys new|trust|rotate|revoke`: from options to one signed change of the keyring.

A role may have any name: decisions name the roles of their owners. A typed role that `ctx` itself does not ask for is
noted, because it may be a mistake.
"""

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping

from contextplane.app.registry.key_changes import (
    OVERLAP_DAYS,
    ROLES,
    PlannedKeyChange,
    TrustedKeys,
    environment_role,
    plan_revocation,
    plan_rotation,
    plan_thresholds,
    plan_trust,
    tenant_role,
)
from contextplane.app.registry.keys import KeyStore, confirmed_until
from contextplane.app.registry.local_keys import create_standalone_key
from contextplane.cli.exit import OK
from contextplane.cli.keys.session import PassphraseSource
from contextplane.cli.keys.show import key_label, owners_text, witnesses_text
from contextplane.cli.output import CommandOutput, clean, format_second
from contextplane.cli.parser import Usage
from contextplane.model.keys import LOG, OWNER, WITNESS
from contextplane.model.suggestion import closest_name
from contextplane.model.timestamp import Timestamp

__all__ = [
    "change_keys",
    "make_key",
    "make_standalone_key",
    "owner_role_notes",
    "plan_change",
    "print_resigning",
    "print_unconfirmed",
]

_TENANT = tenant_role("")
_ENVIRONMENT = environment_role("")
_SHOWN = 16
_CLOSE = 0.75


def _reject_empty_tenant(roles: Iterable[str]) -> None:
    """Refuse a role for a tenant that does not name the tenant."""
    if _TENANT in roles:
        raise Usage(f"argument --role: {_TENANT} names no tenant", hint=f"write {tenant_role('TENANT_ID')}")
    if _ENVIRONMENT in roles:
        raise Usage(f"argument --role: {_ENVIRONMENT} names no environment", hint=f"write {environment_role('NAME')}")


def _owner_roles(roles: Iterable[str]) -> list[str]:
    """Return the roles that `ctx` itself does not ask for."""
    return [role for role in roles if role not in ROLES and not role.startswith((_TENANT, _ENVIRONMENT))]


def owner_role_notes(roles: Iterable[str]) -> Iterator[str]:
    """Yield a note for each role that `ctx` itself does not ask for: its use, and what was perhaps meant."""
    for role in _owner_roles(roles):
        near = closest_name(role.lower(), ROLES, cutoff=_CLOSE)
        meant = f" Did you mean {near}?" if near else ""
        yield f"{clean(role)} counts only where it is the owner_role of a decision.{meant}"


def make_key(key_store: KeyStore, args: Namespace, output: CommandOutput) -> int:
    made = key_store.create_key(args.names[0], args.issuer)
    line = f"Made key {made.key_id[:_SHOWN]}. Public key: {clean(made.public)}"
    output.entry(made.key_id, line)
    if made.trusted:
        output.line(f"It owns this keyring, and signs for {clean(args.issuer)}.")
    else:
        trust = f"ctx keys trust {made.name} --issuer ISSUER --role ROLE --key OWNER"
        output.line(f"It is not trusted yet. An owner trusts it with: {trust}")
    output.answer(made)
    return OK


def make_standalone_key(args: Namespace, output: CommandOutput) -> int:
    """Make a key in a file of its own. No store is opened."""
    made = create_standalone_key(args.names[0], args.output, PassphraseSource(args.passphrase_fd, twice=True))
    output.entry(made.key_id, f"Made key {clean(made.name)} in {clean(made.private)}. Keep this file to yourself.")
    output.line(f"Send {clean(made.public)} to an owner of the store, and the id of the key by another way:")
    output.line(f"  {made.key_id}")
    output.line("The owner compares the id, and trusts the key with:")
    output.line(f"  ctx keys trust ./{clean(os.path.basename(made.public))} --issuer ISSUER --role ROLE --key OWNER")
    output.line(f"Then you sign with: --key {clean(_key_argument(args.output))}")
    output.answer(made)
    return OK


def _key_argument(path: str) -> str:
    """Return a path as `--key` takes it: with a separator, or it would be a name."""
    return path if os.sep in path else os.path.join(os.curdir, path)


def change_keys(key_store: KeyStore, args: Namespace, output: CommandOutput) -> int:
    key_id, changes = plan_change(key_store, args)
    signer = key_store.signer(args.key)
    keyring = key_store.apply(changes, signer)
    names = key_store.names()
    by = f"signed by {key_label(signer.public_key.key_id, names)}"
    for line in (*_change_lines(args, key_label(key_id, names), key_id, keyring), *_threshold_lines(args, keyring)):
        output.line(f"{line}, {by}.")
    for line in owner_role_notes(args.role or ()):
        output.line(line)
    if args.what == "trust" and key_id:
        if not _may_write(key_id, keyring):
            output.note("without the role log it can write nothing to the registry: add --role log")
        for other in _namesakes(key_id, names):
            output.note(f"key {key_label(other, names)} has the same name; use the ids")
    later = args.what == "revoke" and args.since is not None and args.since > keyring.as_of
    if later:
        output.warn(
            "until then the key can sign; after that, it can still backdate an act until the keyring changes again"
            " (revoke it without --from to end it at once)"
        )
    print_resigning(key_store, output, ended=args.what == "revoke" and not later)
    if args.what == "revoke" and args.since is not None and not later:
        print_unconfirmed(key_store, key_id, args.since, output)
    for issuer in keyring.issuers:
        able = sum(key.state_at(keyring.as_of) == "valid" for key in issuer.keys)
        if able < issuer.threshold:
            output.note(f"{clean(issuer.name)} needs {issuer.threshold} signatures and has {able} valid keys now")
    answer = {"key_id": key_id or None, "signed_by": signer.public_key.key_id, "events": keyring.seq}
    signed = None if key_store.resigner is None else key_store.resigner.refusal is None
    output.answer({**answer, "owner_roles": _owner_roles(args.role or ()), "registry_signed": signed})
    return OK


def _change_lines(args: Namespace, who: str, key_id: str, keyring: TrustedKeys) -> Iterator[str]:
    """Yield what holds now of the key, for each issuer that has it."""
    for issuer in keyring.issuers:
        key = issuer.key(key_id)
        if key is None:
            continue
        roles = (
            f"in the {'roles' if len(key.roles) > 1 else 'role'} {', '.join(key.roles)}"
            if key.roles
            else "without a role"
        )
        end = f" until {format_second(key.valid_until)}" if key.valid_until else ""
        changes = {
            "trust": f"is trusted for {clean(issuer.name)} {clean(roles)}{end}",
            "rotate": f"replaces {clean(args.names[0])} for {clean(issuer.name)} {clean(roles)}{end}",
            "revoke": f"is revoked for {clean(issuer.name)} from {key.revoked_from} on",
        }
        yield f"Key {who} {changes[args.what]}"


def _threshold_lines(args: Namespace, keyring: TrustedKeys) -> Iterator[str]:
    """Yield the numbers of owners and of witnesses that were set."""
    if args.owners is not None:
        yield owners_text(keyring)
    if args.witnesses is not None:
        yield witnesses_text(keyring)


def _may_write(key_id: str, keyring: TrustedKeys) -> bool:
    """Whether a key may sign the log, which every act needs, or is there for something else."""
    keys = (issuer.key(key_id) for issuer in keyring.issuers)
    return any({LOG, OWNER, WITNESS} & {*key.roles} for key in keys if key is not None)


def _namesakes(key_id: str, names: Mapping[str, str]) -> list[str]:
    name = names.get(key_id)
    return [other for other in names if other != key_id and names[other] == name]


def print_resigning(key_store: KeyStore, output: CommandOutput, *, ended: bool) -> None:
    """Print whether the registry was signed anew after a change. `ended`: a key is revoked by now."""
    if key_store.resigner is None:
        return
    refusal = key_store.resigner.refusal
    if refusal is None:
        if ended:
            output.line("The registry is signed again: this key can no longer backdate an act.")
        return
    output.warn(
        f"the registry could not be signed again ({refusal.code}: {clean(refusal.message)}):"
        " 'ctx verify --registry' shows its state, and with --sign a trusted key signs it"
    )


def print_unconfirmed(key_store: KeyStore, key_id: str, since: Timestamp, output: CommandOutput) -> None:
    """Warn if no other key confirms when the revoked key acted, before the time that it is revoked from."""
    until = confirmed_until(key_store, key_id, since)
    if until is not None:
        output.warn(
            f"what this key did after {until} stays valid, and no other key confirms when it was done:"
            f" if its holder does not know all of that, revoke it again with --from {until}"
        )


def plan_change(key_store: KeyStore, args: Namespace) -> PlannedKeyChange:
    """Plan the change that the options of `trust`, `rotate` or `revoke` describe."""
    match args.what:
        case "trust":
            _reject_empty_tenant(args.role or ())
            thresholds = plan_thresholds(owners=args.owners, witnesses=args.witnesses)
            if not args.names:
                return thresholds
            planned = plan_trust(
                key_store,
                args.names[0],
                args.issuer,
                roles=args.role,
                since=args.since,
                until=args.until,
                threshold=args.threshold,
                new_issuer=args.new_issuer is not None,
            )
            return PlannedKeyChange(
                planned.key_id, lambda moment: [*planned.changes(moment), *thresholds.changes(moment)]
            )
        case "rotate":
            old, new = args.names
            overlap = OVERLAP_DAYS if args.overlap is None else args.overlap
            return plan_rotation(key_store, old, new, overlap_days=overlap, until=args.until)
        case _:
            return plan_revocation(key_store, args.names[0], args.reason, since=args.since)
