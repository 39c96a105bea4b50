"""Several owners must agree: what counts as agreement, and every way to pretend it."""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.ports.keys import Signer
from contextplane.trust.dsse import make_envelope
from contextplane.trust.keyring import TrustedKeys, make_proposal, sign_change
from contextplane.trust.keyring_events import (
    PROPOSAL,
    Change,
    OwnerApproval,
    OwnerThreshold,
    Proposal,
    read_proposal,
    sign_proposal,
)
from contextplane.trust.owner_proposal import ProposalReview, review_proposal
from tests.support.cases import cases
from tests.unit.trust.world import CHECK, day, key_of, revoke, rotate, trust

ORIGIN = "contextplane.registry/store_0123456789abcdef"
ALICE, BOB, CAROL, MALLORY = map(key_of, ("alice", "bob", "carol", "mallory"))
NEW_ALICE = key_of("new alice")


def after(
    keys: TrustedKeys, change: Change, by: Signer, approvers: Sequence[Signer] = (), *, at: int = 3
) -> TrustedKeys:
    """Make a change that these owners approved."""
    proposal = make_proposal(keys, change)
    approvals = tuple(sign_proposal(proposal, approver) for approver in approvers)
    return keys.after(sign_change(keys, change, at=day(at), signer=by, approvals=approvals), CHECK)


def owners(threshold: int = 2, *others: Signer) -> TrustedKeys:
    """A keyring of alice, bob and others, of whom as many must agree."""
    keys = TrustedKeys(origin=ORIGIN)
    keys = after(keys, trust(ALICE, "acme", "owner"), ALICE, at=1)
    for other in (BOB, *others):
        keys = after(keys, trust(other, "acme", "owner"), ALICE, at=2)
    return keys if threshold == 1 else after(keys, OwnerThreshold(threshold=threshold), ALICE, [BOB, *others])


def code_of(keys: TrustedKeys, change: Change, by: Signer, approvers: Sequence[Signer] = (), *, at: int = 5) -> str:
    """The code with which a change is refused."""
    with pytest.raises(ContextPlaneError) as error:
        after(keys, change, by, approvers, at=at)
    return error.value.code


SECURITY = trust(CAROL, "acme", "security")


def test_a_change_takes_as_many_owners_as_the_keyring_asks_for() -> None:
    keys = owners()
    assert code_of(keys, SECURITY, ALICE) == "keyring_owners_too_few"
    for by, approver in ((ALICE, BOB), (BOB, ALICE)):
        changed = after(keys, SECURITY, by, [approver])
        assert changed.issuers_of(CAROL.public_key.key_id) == ("acme",)


def test_a_threshold_is_raised_only_by_as_many_owners_as_it_will_take() -> None:
    keys, two = owners(1), OwnerThreshold(threshold=2)
    assert code_of(keys, two, ALICE) == "keyring_owners_too_few"
    assert code_of(keys, two, ALICE, [MALLORY]) == "keyring_owners_too_few"
    assert after(keys, two, ALICE, [BOB]).owner_threshold == 2
    assert code_of(keys, OwnerThreshold(threshold=3), ALICE, [BOB]) == "keyring_owners_too_few"
    assert code_of(owners(), OwnerThreshold(threshold=1), BOB) == "keyring_owners_too_few"
    assert after(owners(), OwnerThreshold(threshold=1), BOB, [ALICE]).owner_threshold == 1


@cases(
    ("by", "approvers", "code"),
    [
        (ALICE, [ALICE], "keyring_owners_too_few"),
        (ALICE, [ALICE, ALICE, ALICE], "keyring_owners_too_few"),
        (ALICE, [MALLORY], "keyring_owners_too_few"),
        (MALLORY, [ALICE], "keyring_owners_too_few"),
        (MALLORY, [MALLORY, CAROL], "keyring_not_an_owner"),
        (CAROL, [ALICE], "keyring_owners_too_few"),
        (MALLORY, [ALICE, BOB], "keyring_not_an_owner"),
    ],
    ids=[
        "one owner twice",
        "one owner four times",
        "a stranger approves",
        "a stranger submits what one owner approved",
        "two strangers",
        "a trusted key that is no owner submits",
        "a stranger submits what enough owners approved, and writes its time",
    ],
)
def test_no_signature_but_that_of_another_owner_counts(by: Signer, approvers: list[Signer], code: str) -> None:
    keys = after(owners(), SECURITY, ALICE, [BOB])
    assert code_of(keys, trust(MALLORY, "acme", "publisher"), by, approvers) == code


def test_two_keys_of_one_person_are_one_owner() -> None:
    keys = after(owners(), rotate(ALICE, NEW_ALICE, since=day(3), old_until=day(20)), ALICE, [BOB])
    assert code_of(keys, SECURITY, ALICE, [NEW_ALICE]) == "keyring_owners_too_few"
    assert after(keys, SECURITY, NEW_ALICE, [BOB]).seq == keys.seq + 1


def test_a_new_key_of_an_owner_shows_that_it_can_sign_before_the_old_one_is_gone() -> None:
    keys, at_once = owners(), rotate(ALICE, NEW_ALICE, since=day(3), old_until=day(3))
    assert code_of(keys, at_once, ALICE, [BOB]) == "keyring_owners_too_few"
    assert after(keys, at_once, NEW_ALICE, [ALICE, BOB], at=5).seq == keys.seq + 1


def test_an_approval_counts_for_no_other_change_place_or_store() -> None:
    keys = owners()
    earlier = owners(1)
    elsewhere = replace(keys, origin="contextplane.registry/store_fedcba9876543210")
    for proposal in (
        make_proposal(keys, trust(CAROL, "acme", "data")),
        make_proposal(earlier, SECURITY),
        make_proposal(elsewhere, SECURITY),
    ):
        approval = sign_proposal(proposal, BOB)
        body = sign_change(keys, SECURITY, at=day(5), signer=ALICE, approvals=(approval,))
        with pytest.raises(ContextPlaneError) as error:
            keys.after(body, CHECK)
        assert error.value.code == "keyring_owners_too_few"


def test_a_revoked_owner_neither_approves_nor_stops_the_others() -> None:
    keys = owners(2, CAROL)
    gone = after(keys, revoke(CAROL, day(4)), ALICE, [BOB], at=5)
    assert code_of(gone, SECURITY, ALICE, [CAROL], at=6) == "keyring_owners_too_few"
    assert code_of(gone, revoke(BOB, day(6)), ALICE, [BOB], at=6) == "keyring_owners_too_few"
    assert code_of(gone, trust(BOB, "acme", "owner", until=day(20)), ALICE, [BOB], at=6) == "keyring_without_owner"


# --- the review of a proposal -----------------------------------------------------------------------------------------


ROTATED = after(owners(1), rotate(ALICE, NEW_ALICE, since=day(3), old_until=day(20)), ALICE)
"""One of two owners has two keys, and one owner suffices."""


def review(
    keys: TrustedKeys, change: Change | Proposal, *signers: Signer, approvals: tuple[OwnerApproval, ...] = ()
) -> ProposalReview:
    proposal = change if isinstance(change, Proposal) else make_proposal(keys, change)
    signed = tuple(sign_proposal(proposal, signer) for signer in signers)
    return review_proposal(proposal, (*signed, *approvals), keys=keys, at=day(5), check=CHECK)


@cases(
    ("keys", "change", "signers", "missing"),
    [
        (owners(1), SECURITY, [], 1),
        (owners(1), SECURITY, [ALICE], 0),
        (owners(), SECURITY, [ALICE], 1),
        (owners(), SECURITY, [ALICE, ALICE], 1),
        (owners(), SECURITY, [ALICE, BOB], 0),
        (owners(1), OwnerThreshold(threshold=2), [ALICE], 1),
        (owners(2, CAROL), OwnerThreshold(threshold=3), [ALICE, BOB], 1),
        (ROTATED, OwnerThreshold(threshold=2), [ALICE, NEW_ALICE], 1),
        (owners(), rotate(ALICE, NEW_ALICE, since=day(3), old_until=day(3)), [ALICE, BOB], 1),
        (owners(), rotate(ALICE, NEW_ALICE, since=day(3), old_until=day(3)), [ALICE, BOB, NEW_ALICE], 0),
        (owners(), rotate(ALICE, NEW_ALICE, since=day(3), old_until=day(9)), [ALICE, NEW_ALICE], 1),
    ],
)
def test_the_review_counts_what_the_keyring_will_accept(
    keys: TrustedKeys, change: Change, signers: list[Signer], missing: int
) -> None:
    judged = review(keys, change, *signers)
    assert judged.missing == missing
    if signers:
        by, *others = reversed(signers)
        if missing:
            assert code_of(keys, change, by, others) == "keyring_owners_too_few"
        else:
            assert after(keys, change, by, others, at=5).seq == keys.seq + 1
    assert read_proposal(judged.to_bytes()) == (judged.proposal, judged.approvals)


def test_what_would_not_count_is_refused_by_the_review() -> None:
    keys = owners()
    proposal = make_proposal(keys, SECURITY)
    stolen = sign_proposal(make_proposal(keys, trust(MALLORY, "acme", "security")), ALICE)
    renamed = replace(sign_proposal(proposal, MALLORY), by=BOB.public_key.key_id)
    made = after(keys, SECURITY, ALICE, [BOB], at=4)
    refusals: list[tuple[str, Callable[[], ProposalReview]]] = [
        ("keyring_not_an_owner", lambda: review(keys, SECURITY, ALICE, MALLORY)),
        ("keyring_proposal_changed", lambda: review(keys, SECURITY, approvals=(stolen,))),
        ("keyring_proposal_changed", lambda: review(keys, SECURITY, ALICE, approvals=(renamed,))),
        ("keyring_proposal_outdated", lambda: review(made, proposal, ALICE)),
        ("keyring_proposal_outdated", lambda: review(keys, replace(proposal, previous="0" * 64), ALICE)),
        ("keyring_proposal_outdated", lambda: review(keys, replace(proposal, seq=proposal.seq + 1), ALICE)),
        ("event_of_other_store", lambda: review(keys, replace(proposal, origin="x"), ALICE)),
        ("keyring_without_owner", lambda: review(keys, revoke(BOB, day(4)), ALICE)),
        ("key_not_trusted", lambda: review(keys, revoke(MALLORY, day(4)), ALICE)),
    ]
    for code, act in refusals:
        with pytest.raises(ContextPlaneError) as error:
            act()
        assert error.value.code == code
    with pytest.raises(ContextPlaneError, match="change 4 of the keyring"):
        review(keys, SECURITY, ALICE).approvals_beside(BOB.public_key.key_id, made)


def test_a_file_that_is_no_proposal_is_refused() -> None:
    for body, code in (
        (b"{}", "envelope_invalid"),
        (make_envelope(PROPOSAL, b"{}", ALICE).to_bytes(), "keyring_event_invalid"),
        (sign_change(owners(), SECURITY, at=day(5), signer=ALICE), "envelope_payload_type_wrong"),
    ):
        with pytest.raises(ContextPlaneError) as error:
            read_proposal(body)
        assert error.value.code == code
