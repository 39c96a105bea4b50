"""Bytes come out of verification only when a trusted, good key of their issuer signed exactly them, and enough did.

Each attack ends in its own code.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.errors import ContextPlaneError
from contextplane.model.keys import PublicKey
from contextplane.model.timestamp import Timestamp
from contextplane.trust.dsse import IN_TOTO, Envelope, encode_base64, make_envelope
from contextplane.trust.errors import ThresholdNotMet
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.verify import CachedSignatureCheck, sign, verify
from tests.support.cases import cases
from tests.unit.trust.world import (
    CHECK,
    PACK,
    day,
    key_of,
    keyring,
    revoke,
    rotate,
    statement,
    threshold,
    trust,
    trust_context,
)

ALICE, BOB, CAROL, MALLORY = map(key_of, ("alice", "bob", "carol", "mallory"))
KEYS = keyring(
    trust(ALICE, "acme", since=day(2), until=day(20)), trust(BOB, "acme", since=day(2)), trust(CAROL, "globex")
)
TWO = keyring(threshold("acme", 2), keys=KEYS)


def code(envelope: bytes, keys: TrustedKeys = KEYS, *, now: int = 10, data: bytes = PACK, seen: int = 0) -> str:
    """How verification for acme ends: `ok`, or the code of the refusal."""
    grounded = trust_context(keys, day(now), day(seen) if seen else None)
    try:
        verified = verify(envelope, data, issuer="acme", trust_context=grounded)
    except ContextPlaneError as error:
        return error.code if error.family == "untrusted" else f"{error.family}: {error.code}"
    assert verified.data == data
    return "ok"


def with_signatures(envelope: bytes, *signatures: dict[str, str]) -> bytes:
    return json.dumps({**json.loads(envelope), "signatures": list(signatures)}).encode()


def test_what_its_issuer_signed_comes_out() -> None:
    verified = verify(sign(statement(), ALICE), PACK, issuer="acme", trust_context=trust_context(KEYS, day(10)))
    assert (verified.data, verified.statement) == (PACK, statement())
    assert verified.signed_by == (ALICE.public_key.key_id,)


@cases(
    ("envelope", "expected"),
    [
        (sign(statement()), "signature_missing"),
        (sign(statement(), MALLORY), "signature_key_unknown"),
        (sign(statement(), CAROL), "signature_key_of_other_issuer"),
        (sign(statement(b"other"), ALICE), "statement_digest_mismatch"),
        (sign(statement(issuer="globex"), ALICE), "statement_issuer_mismatch"),
        (make_envelope("application/json", statement().to_bytes(), ALICE).to_bytes(), "envelope_payload_type_wrong"),
        (make_envelope(IN_TOTO, b"{}", ALICE).to_bytes(), "statement_invalid"),
        (b"{}", "envelope_invalid"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_attack_ends_in_its_own_code(envelope: bytes, expected: str) -> None:
    assert code(envelope) == expected


def test_bytes_that_were_changed_after_signing_are_refused() -> None:
    assert code(sign(statement(), ALICE), data=PACK + b" ") == "statement_digest_mismatch"


def test_a_signature_over_other_bytes_is_refused() -> None:
    signature = json.loads(sign(statement(b"other"), ALICE))["signatures"][0]
    assert code(with_signatures(sign(statement()), signature)) == "signature_invalid"


def test_a_signature_of_the_payload_alone_is_refused_because_it_does_not_cover_the_type() -> None:
    signature = {"keyid": ALICE.public_key.key_id, "sig": encode_base64(ALICE.sign(statement().to_bytes()))}
    assert code(with_signatures(sign(statement()), signature)) == "signature_invalid"


def test_a_signature_that_was_made_as_another_type_is_refused() -> None:
    """The swap in the other direction: an event of the keyring, passed off as a statement."""
    other = make_envelope("application/vnd.contextplane.keyring+json", statement().to_bytes(), ALICE)
    assert code(Envelope(**{**as_fields(other), "payload_type": IN_TOTO}).to_bytes()) == "signature_invalid"  # type: ignore[arg-type]


def as_fields(envelope: Envelope) -> dict[str, object]:
    return {"payload": envelope.payload, "signatures": envelope.signatures}


def test_a_wrong_hint_neither_helps_nor_harms() -> None:
    good = json.loads(sign(statement(), ALICE))["signatures"][0]["sig"]
    bad = json.loads(sign(statement(), MALLORY))["signatures"][0]["sig"]
    unsigned = sign(statement())
    assert code(with_signatures(unsigned, {"sig": good})) == "ok"
    assert code(with_signatures(unsigned, {"sig": good, "keyid": "of another tool"})) == "ok"
    assert code(with_signatures(unsigned, {"sig": bad, "keyid": ALICE.public_key.key_id})) == "signature_invalid"
    assert code(with_signatures(unsigned, {"sig": bad})) == "signature_key_unknown"


def test_an_issuer_without_any_key_signs_nothing() -> None:
    with pytest.raises(ContextPlaneError) as refused:
        verify(
            sign(statement(issuer="nobody"), ALICE), PACK, issuer="nobody", trust_context=trust_context(KEYS, day(10))
        )
    assert refused.value.code == "signature_key_unknown"


@cases(
    ("now", "expected"),
    [
        (1, "signature_key_not_yet_valid"),
        (2, "ok"),
        (19, "ok"),
        (20, "signature_key_expired"),
        (31, "signature_key_expired"),
    ],
)
def test_a_key_is_good_from_its_first_moment_and_no_more_at_its_last(now: int, expected: str) -> None:
    assert code(sign(statement(), ALICE), now=now) == expected


def test_a_trusted_time_within_the_window_outlives_the_key() -> None:
    assert code(sign(statement(), ALICE), now=25, seen=10) == "ok"
    assert code(sign(statement(), ALICE), now=25, seen=21) == "signature_key_expired"
    assert code(sign(statement(), ALICE), now=25, seen=1) == "signature_key_not_yet_valid"


def test_a_revoked_key_is_refused_and_what_it_signed_before_passes_only_by_a_trusted_time() -> None:
    keys = keyring(revoke(ALICE, day(10)), keys=KEYS, at=day(11))
    envelope = sign(statement(), ALICE)
    assert code(envelope, keys, now=12) == "signature_key_revoked"
    assert code(envelope, keys, now=12, seen=9) == "ok"
    assert code(envelope, keys, now=12, seen=10) == "signature_key_revoked"
    assert code(sign(statement(), BOB), keys, now=12) == "ok"


def test_a_clock_that_went_backwards_brings_no_key_back() -> None:
    keys = keyring(revoke(ALICE, day(10)), keys=KEYS, at=day(11))
    envelope = sign(statement(), ALICE)
    assert code(envelope, keys, now=5) == "signature_key_revoked"
    assert code(envelope, keys, now=5, seen=13) == "signature_key_revoked"


def test_a_key_that_has_ended_by_what_is_on_record_is_at_its_end_whatever_the_clock_shows() -> None:
    ended = keyring(trust(ALICE, "acme", until=day(9)), trust(BOB, "acme"), at=day(11))
    assert code(sign(statement(), ALICE), ended, now=5) == "signature_key_expired"
    assert code(sign(statement(), BOB), ended, now=5) == "ok"


def test_one_of_two_needed_signatures_is_not_enough_and_two_are() -> None:
    assert code(sign(statement(), ALICE), TWO) == "signature_threshold_not_met"
    assert code(sign(statement(), ALICE, BOB), TWO) == "ok"
    assert code(sign(statement(), ALICE, MALLORY), TWO) == "signature_threshold_not_met"
    assert code(sign(statement(), ALICE, CAROL), TWO) == "signature_threshold_not_met"


def test_the_same_key_twice_counts_once() -> None:
    once = json.loads(sign(statement(), ALICE))["signatures"][0]
    for second in (once, {**once, "keyid": "another name"}, {"sig": once["sig"]}):
        assert code(with_signatures(sign(statement()), once, second), TWO) == "signature_threshold_not_met"


def test_a_threshold_is_not_met_by_a_key_out_of_its_time() -> None:
    assert code(sign(statement(), ALICE, BOB), TWO, now=20) == "signature_threshold_not_met"


def test_a_refused_threshold_says_why_each_signature_did_not_count() -> None:
    with pytest.raises(ContextPlaneError) as refused:
        verify(sign(statement(), ALICE, MALLORY), PACK, issuer="acme", trust_context=trust_context(TWO, day(10)))
    assert refused.value.details["needed"] == 2
    assert refused.value.details["signed_by"] == [ALICE.public_key.key_id]
    assert [error["code"] for error in refused.value.details["refused"]] == ["signature_key_unknown"]  # type: ignore[attr-defined]


def test_signatures_of_others_do_no_harm_to_enough_good_ones() -> None:
    assert code(sign(statement(), MALLORY, ALICE, CAROL)) == "ok"


@cases("now", range(10, 20))
def test_rotation_has_no_gap(now: int) -> None:
    """At every moment of it, the old key, or the new one, or both are good; and a pack signed by both always passes."""
    keys = keyring(rotate(BOB, MALLORY, since=day(12), old_until=day(15)), keys=KEYS)
    old, new = (code(sign(statement(), key), keys, now=now) for key in (BOB, MALLORY))
    assert old == ("ok" if now < 15 else "signature_key_expired")
    assert new == ("ok" if now >= 12 else "signature_key_not_yet_valid")
    assert code(sign(statement(), BOB, MALLORY), keys, now=now) == "ok"


def test_the_time_is_the_callers() -> None:
    late = Timestamp.parse("2099-01-01T00:00:00Z")
    assert verify(sign(statement(), BOB), PACK, issuer="acme", trust_context=trust_context(KEYS, late)).data == PACK


SIGNERS = (ALICE, BOB)
MESSAGES = (b"", b"a", b"b")
SIGNATURES = [signer.sign(message) for signer in SIGNERS for message in MESSAGES]
ASKED = st.tuples(
    st.sampled_from([signer.public_key for signer in SIGNERS]), st.sampled_from(SIGNATURES), st.sampled_from(MESSAGES)
)


@given(st.lists(ASKED, max_size=30), st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_a_check_that_remembers_answers_as_the_one_behind_it(
    asked: list[tuple[PublicKey, bytes, bytes]], capacity: int
) -> None:
    cached = CachedSignatureCheck(CHECK, capacity)
    for key, signature, message in asked:
        assert cached.holds(key, signature, message) is CHECK.holds(key, signature, message)


def test_a_signature_that_does_not_hold_is_not_remembered() -> None:
    class Wavering:
        """Says no, then yes."""

        answers = iter((False, True))

        def holds(self, key: PublicKey, signature: bytes, message: bytes) -> bool:  # noqa: ARG002  it does not look
            return next(self.answers)

    cached = CachedSignatureCheck(Wavering())
    assert [cached.holds(ALICE.public_key, b"s", b"m") for _ in range(3)] == [False, True, True]


def test_one_person_with_two_keys_counts_once() -> None:
    keys = keyring(
        trust(ALICE, "acme"),
        trust(BOB, "acme"),
        threshold("acme", 2),
        rotate(ALICE, key_of("alice2"), since=day(2), old_until=day(20)),
        at=day(2),
    )
    both = sign(statement(), ALICE, key_of("alice2"))
    with pytest.raises(ThresholdNotMet, match="by 1 of the 2 people"):
        verify(both, PACK, issuer="acme", trust_context=trust_context(keys, day(3)))
    two = verify(sign(statement(), ALICE, BOB), PACK, issuer="acme", trust_context=trust_context(keys, day(3)))
    assert len(two.signed_by) == 2
