"""Prints keys: `ctx keys list` and `public`, and the label of a key."""

import os
from argparse import Namespace
from collections.abc import Mapping

from contextplane.app.registry.key_changes import TrustedKeys
from contextplane.app.registry.keys import KeyStore
from contextplane.app.registry.local_keys import keys_without_store, public_pem
from contextplane.cli.exit import OK
from contextplane.cli.keys.session import local_principal
from contextplane.cli.output import CommandOutput, clean, format_second, quantity
from contextplane.cli.store import store_session
from contextplane.model.keys import Issuer, TrustedKey
from contextplane.model.timestamp import Timestamp

__all__ = ["key_label", "list_keys", "owners_text", "print_public_key", "witnesses_text"]

_SHOWN = 16
_COLOR = {"valid": "green", "not_yet_valid": "yellow", "expired": "red", "revoked": "red"}


def print_public_key(args: Namespace, output: CommandOutput) -> int:
    """Print the public key of the key that would sign. A store is opened only for a key that is in one."""
    principal = local_principal(args)
    is_elsewhere = (principal.external_signer or principal.signing_key) if args.key is None else os.sep in args.key
    if is_elsewhere:
        keys = keys_without_store(principal.passphrase, principal.signing_key, principal.external_signer)
        public = public_pem(keys.signer(args.key))
    else:
        with store_session(output, principal, following=False) as session:
            public = public_pem(session.keys.signer(args.key))
    output.entry(public.key_id, public.pem.rstrip())
    output.note(f"the id of this key is {public.key_id}")
    output.answer(public)
    return OK


def list_keys(key_store: KeyStore, output: CommandOutput) -> int:
    keyring, local, names, now = key_store.keyring, key_store.local_names(), key_store.names(), key_store.now
    known = {key.key.key_id: None for issuer in keyring.issuers for key in issuer.keys}
    good = {key.key.key_id for issuer in keyring.issuers for key in issuer.keys if key.state_at(now) == "valid"}
    others = [key_id for key_id in local if key_id not in known]
    if output.quiet:
        for key_id in (*known, *others):  # a key of several issuers is one key
            output.entry(key_id, key_id)
    else:
        widest = max(map(len, names.values()), default=1)
        for issuer in keyring.issuers:
            output.line(f"{clean(issuer.name)}: {_threshold_text(issuer, now)}")
            for key in issuer.keys:
                output.line(_line(key, clean(names.get(key.key.key_id, "-")), widest, now, output))
        if keyring.owner_threshold > 1:
            output.line(f"keyring: {owners_text(keyring)}")
        if keyring.witnesses:
            output.line(f"registry: {witnesses_text(keyring)}")
        if others:
            output.line("stored here, not trusted:")
        for key_id in others:
            output.line(f"  {key_id[:_SHOWN]}  {local[key_id]}")
        if not (keyring.issuers or others):
            output.line("No keys. 'ctx keys new NAME --issuer ISSUER' makes the first.")
    output.answer(
        {
            "issuers": [_issuer_json(issuer, names, now) for issuer in keyring.issuers],
            "here": [{"name": name, "key_id": key_id, "trusted": key_id in good} for key_id, name in local.items()],
            "as_of": str(keyring.as_of) if keyring.seq else None,
            "owner_threshold": keyring.owner_threshold,
            "witnesses": keyring.witnesses,
            "owners": len(keyring.people_of(keyring.lasting_owners())),
        }
    )
    return OK


def owners_text(keyring: TrustedKeys) -> str:
    """Return how many owners must agree to a change, and of how many people. Linked keys are one person."""
    owners = len(keyring.people_of(keyring.lasting_owners()))
    return f"{keyring.owner_threshold} of {quantity(owners, 'owner')} must agree to a change of the keyring"


def witnesses_text(keyring: TrustedKeys) -> str:
    """Return how many witnesses must cosign the newest checkpoint."""
    number = {0: "No witness", 1: "1 witness"}.get(keyring.witnesses, f"{keyring.witnesses} witnesses")
    return f"{number} must cosign the newest checkpoint for new runs"


def _threshold_text(issuer: Issuer, now: Timestamp) -> str:
    """Return how many keys must sign, and of how many that can."""
    good, every = sum(key.state_at(now) == "valid" for key in issuer.keys), len(issuer.keys)
    if good == every:
        return f"{issuer.threshold} of {quantity(every, 'key')} must sign"
    return f"{quantity(issuer.threshold, 'key')} must sign; {good} of {every} {'is' if good == 1 else 'are'} valid now"


def _line(key: TrustedKey, name: str, widest: int, now: Timestamp, output: CommandOutput) -> str:
    """Return the id, the name, the state, the validity and the roles of a key."""
    state = key.state_at(now)
    until = f" until {format_second(key.valid_until)}" if key.valid_until else ""
    why = f"  revoked from {format_second(key.revoked_from)} on: {clean(key.reason)}" if key.revoked_from else ""
    roles = ", ".join(map(clean, key.roles)) or "no role"
    shown = output.paint(_COLOR[state], f"{state.replace('_', ' '):<7}")
    validity = f"from {format_second(key.valid_from)}{until}"
    return f"  {key.key.key_id[:_SHOWN]}  {name:<{widest}}  {shown}  {validity}  {roles}{why}"


def _issuer_json(issuer: Issuer, names: dict[str, str], now: Timestamp) -> dict[str, object]:
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


def key_label(key_id: str, names: Mapping[str, str]) -> str:
    """Return the label of a key: the beginning of its id, and its name in the keyring, or its local name."""
    name = names.get(key_id)
    return f"{key_id[:_SHOWN]} {clean(name)}" if name else key_id[:_SHOWN]
