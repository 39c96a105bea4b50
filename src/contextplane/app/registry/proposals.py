"""Proposals of changes of the keyring, for keyrings where several owners must agree.

A proposal is a file that owners pass on. The owner whose approval is the last that is needed makes the change. So no
file ever holds all the approvals that a change takes.
"""

import os
from typing import ClassVar

from msgspec.structs import replace

from contextplane.adapters.files.disk import Disk, write_atomically
from contextplane.app.registry.key_changes import PlannedKeyChange
from contextplane.app.registry.keys import KeyChangeInvalid, KeyStore, act_time, check_changes, planned_changes
from contextplane.errors import ContextPlaneError, Family
from contextplane.ports.keys import Signer
from contextplane.registry.first_format import StoreNotSealed
from contextplane.trust.dsse import MAX_ENVELOPE
from contextplane.trust.keyring import NotAnOwner, TrustedKeys, make_proposal
from contextplane.trust.keyring_events import read_proposal, sign_proposal
from contextplane.trust.owner_proposal import ProposalReview, review_proposal

__all__ = [
    "ProposalNotRead",
    "ProposalNotWritten",
    "ProposalReview",
    "approve",
    "propose",
    "read_proposal_file",
    "write_proposal_file",
]


class ProposalNotRead(ContextPlaneError):
    """The file of a proposal cannot be read."""

    code: ClassVar[str] = "keyring_proposal_not_read"
    family: ClassVar[Family] = "not_found"


class ProposalNotWritten(ContextPlaneError):
    """The file for a proposal is there already, or cannot be written."""

    code: ClassVar[str] = "keyring_proposal_not_written"
    family: ClassVar[Family] = "conflict"


def propose(keys: KeyStore, planned: PlannedKeyChange, signer: Signer) -> ProposalReview:
    """Propose one change, with the approval of its proposer. Nothing is written.

    The times and places in the change are those of the proposal: a revocation is from now on, whenever it is made.
    """
    keyring, changes = keys.keyring, planned_changes(keys, planned.changes)
    if len(changes) != 1:
        raise KeyChangeInvalid(f"{len(changes)} changes in one proposal", hint="propose them one after the other")
    check_changes(changes)
    if keyring.seq and keyring.sealed is None:
        raise StoreNotSealed(
            "it has the first format, which knows no proposals",
            hint="an owner seals it: ctx verify --registry --sign --key OWNER",
        )
    proposal = make_proposal(keyring, changes[0])
    review = review_proposal(proposal, (), keys=keyring, at=act_time(keys, changes), check=keys.check)
    return _add_approval(review, signer)


def read_proposal_file(keys: KeyStore, path: str) -> ProposalReview:
    """Read a proposal and judge it by the keyring of now."""
    try:
        with open(path, "rb") as file:
            body = file.read(MAX_ENVELOPE + 1)
    except OSError as error:
        raise ProposalNotRead(
            error.strerror or str(error), at=path, hint="name the file that 'ctx keys propose' wrote"
        ) from error
    proposal, approvals = read_proposal(body)
    if not approvals:
        raise NotAnOwner("no owner proposed it", at=path, hint="'ctx keys propose' makes a signed proposal")
    return review_proposal(
        proposal, approvals, keys=keys.keyring, at=act_time(keys, [proposal.change]), check=keys.check
    )


def approve(keys: KeyStore, review: ProposalReview, signer: Signer) -> ProposalReview | TrustedKeys:
    """Approve a proposal. If enough owners agree then, make the change and return the new keyring.

    Else return the proposal with this approval.
    """
    key_id = signer.public_key.key_id
    review.check_owner(key_id)
    if review.people_missing((key_id,)):
        return _add_approval(review, signer)
    return keys.submit(review, signer)


def write_proposal_file(review: ProposalReview, path: str, *, new: bool) -> None:
    """Write a proposal, whole or not at all. With `new`, no file is replaced."""
    try:
        write_atomically(os.path.abspath(path), review.to_bytes() + b"\n", disk=Disk(), new=new)
    except OSError as error:
        raise ProposalNotWritten(error.strerror or str(error), at=path, hint="name a new file") from error


def _add_approval(review: ProposalReview, signer: Signer) -> ProposalReview:
    review.check_owner(signer.public_key.key_id)
    approval = sign_proposal(review.proposal, signer)
    if approval in review.approvals:
        return review
    return replace(review, approvals=(*review.approvals, approval))
