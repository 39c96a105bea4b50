"""A trust root: what may be typed, and which keyrings it accepts."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.ports.keys import Signer
from contextplane.trust.checkpoint import Checkpoint, signed_checkpoint
from contextplane.trust.dsse import Envelope
from contextplane.trust.keyring import TrustedKeys, make_proposal, sign_change
from contextplane.trust.keyring_events import (
    KEYRING,
    Change,
    OwnerApproval,
    OwnerThreshold,
    StoreSealed,
    read_keyring_event,
    sign_keyring_event,
    sign_proposal,
)
from contextplane.trust.trust_root import TrustRoot, TrustRootMismatch, check_root, merge_trust_roots, parse_trust_root
from tests.support.cases import cases
from tests.unit.trust.world import CHECK, day, key_of, revoke, rotate, trust

ROOT, ALICE, BOB, MALLORY = map(key_of, ("root", "alice", "bob", "mallory"))
ORIGIN = "contextplane.registry/store_0123456789abcdef"
CHECKPOINT = Checkpoint(origin=ORIGIN, size=3, root=bytes(32), time=day(3))
A, B = "a" * 64, "b" * 64


# --- what may be typed ------------------------------------------------------------------------------------------------


def no_file(path: str) -> bytes:
    raise FileNotFoundError(path)


@cases("text", [A, f"{A},{B}", f" {B}  {A}\n", f"{A} {B},, {A}"])
def test_ids_of_keys_are_separated_by_commas_or_spaces(text: str) -> None:
    assert parse_trust_root(text, no_file) == TrustRoot(key_ids=(A, B) if B in text else (A,))


UNCLEAR = ["", " \n", ",", A[:16], A[1:], A.upper(), f"{A},{B[1:]}", f"{A} none", f"sha256:{A}", "none", "a\0b"]


@cases("text", UNCLEAR)
def test_what_is_unclear_is_refused(text: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        parse_trust_root(text, open_file)
    assert refused.value.code == "trust_root_invalid"
    assert refused.value.hint


def open_file(path: str) -> bytes:
    return Path(path).read_bytes()


@cases("data", [signed_checkpoint(CHECKPOINT, ROOT), CHECKPOINT.text.encode()])
def test_a_file_holds_a_checkpoint(data: bytes) -> None:
    paths = []

    def read_file(path: str) -> bytes:
        paths.append(path)
        return data

    assert parse_trust_root("my notes/good, and new.ckpt", read_file) == TrustRoot(checkpoint=CHECKPOINT)
    assert paths == ["my notes/good, and new.ckpt"]


OTHER_FILES = {
    "nothing": b"",
    "a key": b"-----BEGIN PUBLIC KEY-----\n",
    "not text": b"\xff",
    "too large": CHECKPOINT.text.encode() + b"\n" * (1 << 16),
    "two": signed_checkpoint(CHECKPOINT, ROOT) * 2,
    "an unknown line": CHECKPOINT.text.encode() + b"more\n",
    "no last newline": CHECKPOINT.text.encode()[:-1],
}


@cases("name", OTHER_FILES)
def test_a_file_with_anything_else_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        parse_trust_root("x.ckpt", lambda _: OTHER_FILES[name])
    assert (refused.value.code, refused.value.at) == ("trust_root_invalid", "x.ckpt")


def test_roots_are_combined_and_stored_as_texts() -> None:
    keys, log = TrustRoot(key_ids=(B, A)), TrustRoot(checkpoint=CHECKPOINT)
    both = merge_trust_roots([log, keys, log])
    assert both == TrustRoot(key_ids=(A, B), checkpoint=CHECKPOINT)
    for root in (merge_trust_roots([keys]), log, both):
        assert TrustRoot.from_entries(root.entries) == root
    newer = TrustRoot(checkpoint=replace(CHECKPOINT, size=4))
    for refused in ([log, newer], []):
        with pytest.raises(ContextPlaneError, match=r"two checkpoints|empty"):
            merge_trust_roots(refused)
    for entries in ((), ("",), (A, "not a checkpoint")):
        with pytest.raises(ContextPlaneError) as error:
            TrustRoot.from_entries(entries)
        assert error.value.code == "trust_root_invalid"


# --- which keyrings it accepts ----------------------------------------------------------------------------------------

Step = tuple[Signer, Change] | tuple[Signer, Change, Sequence[Signer]]


def keyring_of(*steps: Step, origin: str = ORIGIN) -> list[bytes]:
    """The events of a keyring that readers accept."""
    keys, bodies = TrustedKeys(origin=origin), []
    for number, (signer, change, *approvers) in enumerate(steps, 1):
        proposal = make_proposal(keys, change)
        approvals = tuple(sign_proposal(proposal, approver) for group in approvers for approver in group)
        bodies.append(sign_change(keys, change, at=day(number), signer=signer, approvals=approvals))
        keys = keys.after(bodies[-1], CHECK)
    return bodies


def is_accepted(bodies: Sequence[bytes], *signers: Signer, checkpoint: Checkpoint | None = None) -> bool:
    key_ids = tuple(signer.public_key.key_id for signer in signers)
    try:
        check_root(TrustRoot(key_ids=key_ids, checkpoint=checkpoint), bodies, CHECK)
    except TrustRootMismatch as error:
        return error.hint is None
    return True


FOUNDED = (ROOT, trust(ROOT, "home", "owner"))


def test_the_founder_and_every_later_signer_vouches_for_the_keyring() -> None:
    bodies = keyring_of(
        FOUNDED,
        (ROOT, trust(ALICE, "home", "owner")),
        (ALICE, trust(BOB, "acme", "publisher")),
        (ROOT, trust(MALLORY, "acme", "publisher")),
    )
    assert is_accepted(bodies, ROOT)
    assert is_accepted(bodies, ALICE)
    assert is_accepted(bodies, MALLORY, ALICE)
    assert is_accepted(bodies[:1], ROOT)
    assert not is_accepted(bodies[:2], ALICE)
    assert not is_accepted(bodies, BOB, MALLORY)


def test_a_key_that_was_rotated_in_vouches_once_it_signed() -> None:
    bodies = keyring_of(
        FOUNDED,
        (ROOT, rotate(ROOT, ALICE, since=day(1), old_until=day(2))),
        (ALICE, trust(BOB, "acme", "publisher")),
        (ALICE, revoke(ROOT, day(4))),
    )
    assert not is_accepted(bodies[:2], ALICE)
    assert is_accepted(bodies, ALICE)
    assert is_accepted(bodies, ROOT)  # what it signed before its revocation stays signed


def test_an_owner_who_approved_a_change_vouches_as_well() -> None:
    bodies = keyring_of(
        FOUNDED,
        (ROOT, trust(ALICE, "home", "owner")),
        (ROOT, OwnerThreshold(threshold=2), [ALICE]),
        (ROOT, trust(BOB, "acme", "publisher"), [ALICE]),
    )
    assert is_accepted(bodies, ALICE)
    assert not is_accepted(bodies[:2], ALICE)


def test_a_keyring_of_another_founder_that_merely_trusts_the_root_key_is_refused() -> None:
    assert not is_accepted(
        keyring_of((MALLORY, trust(MALLORY, "home", "owner")), (MALLORY, trust(ROOT, "home", "owner"))), ROOT
    )
    assert not is_accepted(
        keyring_of(
            (MALLORY, trust(MALLORY, "home", "owner")),
            (MALLORY, rotate(MALLORY, ROOT, since=day(1), old_until=day(9))),
            (MALLORY, trust(BOB, "acme", "publisher")),
        ),
        ROOT,
    )


def test_an_event_that_the_root_key_signed_elsewhere_vouches_for_nothing_here() -> None:
    genuine = keyring_of(FOUNDED, (ROOT, trust(ALICE, "acme", "publisher")))
    forged = keyring_of((MALLORY, trust(MALLORY, "home", "owner")), (MALLORY, trust(ROOT, "home", "owner")))
    for planted in (genuine[0], genuine[1]):
        assert not is_accepted([*forged, planted], ROOT)
        assert not is_accepted([forged[0], planted], ROOT)
    assert not is_accepted(genuine[1:], ROOT)


def test_a_signature_that_is_moved_or_renamed_vouches_for_nothing() -> None:
    genuine = keyring_of(FOUNDED)
    forged = keyring_of((MALLORY, trust(MALLORY, "home", "owner")), (MALLORY, trust(ROOT, "home", "owner")))
    theirs, ours = (Envelope.parse(body, payload_type=KEYRING) for body in (forged[1], genuine[0]))
    with_ours = replace(theirs, signatures=(*theirs.signatures, *ours.signatures)).to_bytes()
    assert not is_accepted([forged[0], with_ours], ROOT)
    named = replace(theirs.signatures[0], key_id=ROOT.public_key.key_id)
    assert not is_accepted([forged[0], replace(theirs, signatures=(named,)).to_bytes()], ROOT)


def test_an_approval_of_another_proposal_vouches_for_nothing() -> None:
    """The root key approved a change of its own keyring; the approval is put into an event of another."""
    own = TrustedKeys(origin=ORIGIN).after(keyring_of(FOUNDED)[0], CHECK)
    approval = sign_proposal(make_proposal(own, trust(BOB, "acme", "publisher")), ROOT)
    forged = keyring_of((MALLORY, trust(MALLORY, "home", "owner")), (MALLORY, trust(ROOT, "home", "owner")))
    event = read_keyring_event(Envelope.parse(forged[1], payload_type=KEYRING).payload)
    for stolen in (approval, OwnerApproval(by=ROOT.public_key.key_id, signature="")):
        body = sign_keyring_event(replace(event, approvals=(stolen,)), MALLORY)
        assert not is_accepted([forged[0], body], ROOT)


def test_a_root_without_keys_and_a_keyring_without_events_are_no_reason_to_refuse() -> None:
    forged = keyring_of((MALLORY, trust(MALLORY, "home", "owner")))
    assert is_accepted(forged, checkpoint=CHECKPOINT)
    assert is_accepted([], ROOT)
    assert not is_accepted(forged, ROOT, checkpoint=CHECKPOINT)


def test_events_of_the_first_format_vouch_for_nothing_once_a_keyring_is_sealed() -> None:
    """They name no store: those of another one could have been copied before the seal."""
    first = [(ROOT, trust(ROOT, "acme", "owner")), (ROOT, trust(MALLORY, "acme", "owner"))]
    keys, bodies = TrustedKeys(), []
    for number, (signer, change) in enumerate(first, 1):
        bodies.append(sign_change(keys, change, at=day(number), signer=signer))
        keys = keys.after(bodies[-1], CHECK)
    assert is_accepted(bodies, ROOT)
    keys = replace(keys, origin=ORIGIN)
    sealed = sign_change(keys, StoreSealed(entries=0), at=day(3), signer=MALLORY)
    assert keys.after(sealed, CHECK).sealed == 0
    assert not is_accepted([*bodies, sealed], ROOT)
    assert is_accepted([*bodies, sealed], MALLORY)
