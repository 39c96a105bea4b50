"""`ctx keys propose|approve`: changes of the keyring to which several owners must agree."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from contextplane.app.registry.key_changes import (
    Change,
    KeyRevocation,
    KeyRotation,
    KeyTrust,
    OwnerThreshold,
    ThresholdChange,
    TrustedKeys,
    WitnessThreshold,
    changed_key,
)
from contextplane.app.registry.keys import KeyStore
from contextplane.app.registry.proposals import (
    ProposalReview,
    approve,
    propose,
    read_proposal_file,
    write_proposal_file,
)
from contextplane.cli.exit import OK
from contextplane.cli.keys.change import owner_role_notes, plan_change, print_resigning, print_unconfirmed
from contextplane.cli.keys.show import key_label
from contextplane.cli.output import CommandOutput, clean, format_second, quantity
from contextplane.cli.registry.confirmation import confirm, print_lines
from contextplane.model.keys import TrustedKey
from contextplane.model.timestamp import Timestamp

__all__ = ["approve_change", "propose_change"]


def propose_change(key_store: KeyStore, args: Namespace, output: CommandOutput) -> int:
    """Write a proposal of a change instead of making it."""
    planned = plan_change(key_store, args)
    signer = key_store.signer(args.key)
    review = propose(key_store, planned, signer)
    write_proposal_file(review, args.output, new=True)
    print_lines(_review_lines(review, key_store.names()), output)
    path = clean(args.output)
    if review.missing:
        output.line(f"Wrote {path}. {_missing_text(review.missing)}: ctx keys approve {path} --key OWNER")
    else:
        output.line(f"Wrote {path}. One owner suffices: ctx keys approve {path} --key OWNER makes the change.")
    output.answer(_review_json(review, args.output))
    return OK


def approve_change(key_store: KeyStore, args: Namespace, output: CommandOutput) -> int:
    """Show a proposal, ask, and add a signature to it. The last signature that is needed makes the change."""
    path = args.names[0]
    review, names = read_proposal_file(key_store, path), key_store.names()
    lines = tuple(_review_lines(review, names))
    unshown = confirm("Approve this change of the keyring?", lines, args, output)
    signer = key_store.signer(args.key)
    key_id = signer.public_key.key_id
    outcome = approve(key_store, review, signer)
    by = key_label(key_id, names)
    if isinstance(outcome, TrustedKeys):
        print_lines(unshown, output)
        output.line(f"Approved by {by}. The change is made: it is number {outcome.seq} of the keyring.")
        change = review.proposal.change
        print_resigning(key_store, output, ended=isinstance(change, KeyRevocation))
        if isinstance(change, KeyRevocation) and change.from_entry is not None:
            print_unconfirmed(key_store, change.key_id, Timestamp.parse(change.revoked_from), output)
        signed = None if key_store.resigner is None else key_store.resigner.refusal is None
        approved = sorted({*review.signers, key_id})
        made = {"made": True, "missing": 0, "approved_by": approved, "registry_signed": signed}
        output.answer({**_review_json(review, path), **made})
        return OK
    if outcome != review:
        write_proposal_file(outcome, path, new=False)
    print_lines(unshown, output)
    already = " already" if outcome == review else ""
    output.line(
        f"Approved by {by}{already}. {_missing_text(outcome.missing)}: ctx keys approve {clean(path)} --key OWNER"
    )
    if already == "" and outcome.missing == review.missing:
        output.note("this key belongs to a person who approved already, and who counts once")
    output.answer(_review_json(outcome, path))
    return OK


def _missing_text(missing: int) -> str:
    return f"{quantity(missing, 'more owner')} must approve it"


def _review_json(review: ProposalReview, path: str) -> dict[str, object]:
    return {
        "file": path,
        "origin": review.proposal.origin,
        "number": review.proposal.seq,
        "change": msgspec.to_builtins(review.proposal.change),
        "key_id": changed_key(review.proposal.change),
        "approved_by": sorted(review.signers),
        "missing": review.missing,
        "made": False,
        "registry_signed": None,
    }


def _review_lines(review: ProposalReview, names: Mapping[str, str]) -> Iterator[str]:
    """Yield what a proposal would change, and who approved it."""
    proposal, key_id = review.proposal, changed_key(review.proposal.change)
    yield f"change      {_change_text(proposal.change, names)}"
    if key_id is not None:
        yield f"key         {key_id}"
    yield from _detail_lines(proposal.change, review.before)
    yield f"for         change {proposal.seq} of the keyring of {clean(proposal.origin)}"
    approvers = ", ".join(key_label(approval.by, names) for approval in review.approvals)
    yield f"approved by {approvers}"


def _change_text(change: Change, names: Mapping[str, str]) -> str:  # noqa: PLR0911  one for each change
    match change:
        case KeyTrust():
            return f"trust key {clean(change.name) or 'without a name'} for {clean(change.issuer)}"
        case KeyRotation():
            new = clean(change.name) or "a key without a name"
            return f"replace key {key_label(change.old, names)} by {new}"
        case KeyRevocation():
            since = format_second(Timestamp.parse(change.revoked_from))
            return f"revoke key {key_label(change.key_id, names)} from {since} on: {clean(change.reason)}"
        case ThresholdChange():
            return f"{quantity(change.threshold, 'key')} of {clean(change.issuer)} must sign"
        case OwnerThreshold():
            return f"{quantity(change.threshold, 'owner')} must agree to a change of the keyring"
        case WitnessThreshold():
            number = "1 witness" if change.witnesses == 1 else f"{change.witnesses} witnesses"
            return f"{number} must cosign the newest checkpoint"
        case _:
            return "seal the store in the present format"


def _detail_lines(change: Change, before: TrustedKeys) -> Iterator[str]:
    if isinstance(change, KeyTrust):
        issuer = before.issuer(change.issuer)
        known = None if issuer is None else issuer.key(changed_key(change) or "")
        if issuer is None:
            yield f"issuer      {clean(change.issuer)}, which has no key yet"
        yield f"roles       {_roles_text(change.roles)}{_roles_before(known, change.roles)}"
        yield from (f"            {note}" for note in owner_role_notes(change.roles))
        yield f"valid       {_validity_text(change.valid_from, change.valid_until)}"
    elif isinstance(change, KeyRotation):
        for issuer in before.issuers:
            if (old := issuer.key(change.old)) is not None:
                yield f"roles       {_roles_text(old.roles)} for {clean(issuer.name)}"
        yield f"valid       {_validity_text(change.valid_from, change.valid_until)}"
        yield f"old key     until {format_second(Timestamp.parse(change.old_until))}"
    elif isinstance(change, KeyRevocation) and change.from_entry is not None:
        yield f"events      from entry {change.from_entry} of the log on, with any time"


def _roles_text(roles: Sequence[str]) -> str:
    return ", ".join(map(clean, sorted(roles))) or "none"


def _roles_before(known: TrustedKey | None, roles: Sequence[str]) -> str:
    if known is None or {*known.roles} == {*roles}:
        return ""
    return f" (now: {_roles_text(known.roles)})"


def _validity_text(since: str, until: str | None) -> str:
    end = "" if until is None else f" until {format_second(Timestamp.parse(until))}"
    return f"from {format_second(Timestamp.parse(since))}{end}"
