"""Judges a proposal of a change of the keyring: whether it fits, and who approved it.

These are rules over values. `TrustedKeys.after` decides whether the change is made. What is judged here lets owners see
beforehand what it will decide.
"""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.keys import SignatureCheck
from contextplane.trust.dsse import Signature, decode_base64
from contextplane.trust.keyring import EventOfOtherStore, NotAnOwner, TrustedKeys, apply_change
from contextplane.trust.keyring_events import OwnerApproval, Proposal, proposal_envelope, proposal_message

__all__ = ["ProposalChanged", "ProposalOutdated", "ProposalReview", "review_proposal"]


class ProposalOutdated(ContextPlaneError):
    """A proposal for an earlier keyring: it was made already, or another change came first."""

    code: ClassVar[str] = "keyring_proposal_outdated"
    family: ClassVar[Family] = "refused"


class ProposalChanged(ContextPlaneError):
    """A proposal with a signature of an owner that does not hold: it was changed after it was signed."""

    code: ClassVar[str] = "keyring_proposal_changed"
    family: ClassVar[Family] = "untrusted"


class ProposalReview(Value, frozen=True):
    """A proposal that fits a keyring, with approvals of owners only.

    `before` and `after`: the keyring without the change and with it, at `at`. Owners of both may approve.
    """

    proposal: Proposal
    approvals: tuple[OwnerApproval, ...]
    before: TrustedKeys
    after: TrustedKeys
    at: Timestamp

    @property
    def signers(self) -> frozenset[str]:
        """The ids of the keys that approved it."""
        return frozenset(approval.by for approval in self.approvals)

    @property
    def missing(self) -> int:
        """How many more people must approve it."""
        return self.people_missing(())

    def people_missing(self, key_ids: tuple[str, ...]) -> int:
        """How many more people must approve it if these keys do, too."""
        signers = self.signers | {*key_ids}
        agreed = self.before.people_of(signers & _owner_ids(self.before, self.at))
        missing = self.before.owner_threshold - len(agreed)
        if self.after.owner_threshold > 1:
            remaining = self.after.people_of(signers & _owner_ids(self.after, self.at))
            missing = max(missing, self.after.owner_threshold - len(remaining))
        return max(missing, 0)

    def check_owner(self, key_id: str) -> None:
        """Refuse a key that owns the keyring neither before the change nor after it."""
        if key_id not in _owner_ids(self.before, self.at) | _owner_ids(self.after, self.at):
            raise NotAnOwner(
                "not a key of an owner of this keyring", at=key_id[:16], hint="'ctx keys list' shows who that is"
            )

    def approvals_beside(self, submitter: str, keys: TrustedKeys) -> tuple[OwnerApproval, ...]:
        """The approvals for an event that a key submits. Refused if the keyring has changed since."""
        _check_current(self.proposal, keys)
        return tuple(approval for approval in self.approvals if approval.by != submitter)

    def to_bytes(self) -> bytes:
        """Encode the proposal with its approvals, to pass it on."""
        signatures = tuple(
            Signature(key_id=approval.by, value=decode_base64(approval.signature, at="/signatures"))
            for approval in self.approvals
        )
        return proposal_envelope(self.proposal, signatures).to_bytes()


def review_proposal(
    proposal: Proposal, approvals: tuple[OwnerApproval, ...], *, keys: TrustedKeys, at: Timestamp, check: SignatureCheck
) -> ProposalReview:
    """Judge a proposal by the keyring at a time. Everything in it that would not count is refused.

    Without approvals, it is about to be proposed.
    """
    # (1) for this store, and the end of its keyring, (2) a change that can be made, (3) which leaves enough owners
    _check_current(proposal, keys)
    after = apply_change(keys, proposal.change, at)
    after.check_lasting_owners()
    review = ProposalReview(
        proposal=proposal, approvals=tuple(dict.fromkeys(approvals)), before=keys, after=after, at=at
    )
    # (4) each approval is by the owner that it names, and for these bytes
    message = proposal_message(proposal)
    owners = {key.key_id: key for key in (*keys.owners_at(at), *after.owners_at(at))}
    for approval in review.approvals:
        review.check_owner(approval.by)
        if not check.holds(owners[approval.by], decode_base64(approval.signature, at="/signatures"), message):
            raise ProposalChanged(
                f"the signature of key {approval.by[:16]} does not hold",
                at="/signatures",
                hint="it was changed after it was signed; ask for a new proposal",
            )
    return review


def _check_current(proposal: Proposal, keys: TrustedKeys) -> None:
    """Refuse a proposal that is not for the next change of this keyring."""
    if proposal.origin != keys.origin:
        raise EventOfOtherStore(
            f"it was made for {proposal.origin[:120] or 'no store'}, not for {keys.origin}",
            hint="use the store that it was proposed in",
        )
    if (proposal.seq, proposal.previous) != (keys.seq + 1, keys.head):
        raise ProposalOutdated(
            f"it is for change {proposal.seq} of the keyring, which has {keys.seq} changes now"
            if proposal.seq <= keys.seq
            else f"it is for change {proposal.seq} after another history than this one",
            hint="'ctx keys list' shows the keyring; if the change is still needed, propose it again",
        )


def _owner_ids(keys: TrustedKeys, at: Timestamp) -> frozenset[str]:
    return frozenset(key.key_id for key in keys.owners_at(at))
