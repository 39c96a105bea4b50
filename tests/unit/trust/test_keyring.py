"""A keyring is a fold over events, each signed by an owner and bound to the one before it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event
from contextplane.model.timestamp import Timestamp
from contextplane.ports.keys import Signer
from contextplane.trust.keyring import TrustedKeys, sign_change
from contextplane.trust.keyring_events import (
    Change,
    KeyringEvent,
    KeyringEventInvalid,
    sign_keyring_event,
)
from contextplane.trust.keyring_stream import STREAM, append_change, follow_keyring
from tests.support.cases import cases
from tests.unit.trust.world import CHECK, day, key_of, keyring, memory_catalog, revoke, rotate, threshold, trust

ROOT, ALICE, BOB, MALLORY = map(key_of, ("root", "alice", "bob", "mallory"))


def refused(keys: TrustedKeys, change: Change, *, by: Signer = ROOT, at: int = 5) -> str:
    with pytest.raises(ContextPlaneError) as error:
        keys.after(sign_change(keys, change, at=day(at), signer=by), CHECK)
    return error.value.code


def test_the_first_key_trusts_itself_as_an_owner_and_nothing_else_can_be_first() -> None:
    keys = keyring()
    assert keys.issuers_of(ROOT.public_key.key_id) == ("home",)
    assert refused(TrustedKeys(), trust(ROOT, "home")) == "keyring_not_an_owner"
    assert refused(TrustedKeys(), trust(ROOT, "home", "owner"), by=MALLORY) == "keyring_not_an_owner"
    assert refused(TrustedKeys(), threshold("home", 1)) == "keyring_not_an_owner"


def test_only_an_owner_changes_it() -> None:
    keys = keyring(trust(ALICE, "acme", "security"))
    assert refused(keys, trust(MALLORY, "acme"), by=MALLORY) == "keyring_not_an_owner"
    assert refused(keys, trust(ALICE, "acme", "owner"), by=ALICE) == "keyring_not_an_owner"


def test_an_owner_out_of_its_time_or_revoked_changes_nothing_whatever_time_it_writes() -> None:
    keys = keyring(trust(ALICE, "acme", "owner", since=day(3), until=day(6)))
    assert refused(keys, trust(BOB, "acme"), by=ALICE, at=2) == "keyring_not_an_owner"
    assert refused(keys, trust(BOB, "acme"), by=ALICE, at=6) == "keyring_not_an_owner"
    gone = keyring(revoke(ALICE, day(5)), keys=keys, at=day(4))
    assert refused(gone, trust(BOB, "acme"), by=ALICE, at=4) == "keyring_not_an_owner"


def test_times_do_not_go_back() -> None:
    keys = keyring(trust(ALICE, "acme"), at=day(9))
    assert refused(keys, trust(BOB, "acme"), at=8) == "clock_went_backwards"


def test_an_event_that_an_owner_signed_for_another_history_is_refused() -> None:
    ours, theirs = keyring(trust(ALICE, "acme")), keyring(trust(BOB, "acme"))
    assert (ours.seq, ours.as_of) == (theirs.seq, theirs.as_of)
    with pytest.raises(ContextPlaneError) as error:
        ours.after(sign_change(theirs, trust(MALLORY, "acme"), at=day(5), signer=ROOT), CHECK)
    assert error.value.code == "keyring_event_invalid"


def test_an_owner_without_an_end_always_remains() -> None:
    keys = keyring()
    assert refused(keys, revoke(ROOT, day(9))) == "keyring_without_owner"
    assert refused(keys, trust(ROOT, "home", "owner", until=day(9))) == "keyring_without_owner"
    assert refused(keys, trust(ROOT, "home", "security")) == "keyring_without_owner"
    after = keyring(rotate(ROOT, ALICE, since=day(1), old_until=day(2)), keys=keys)
    assert after.issuer("home") == keyring(rotate(ROOT, ALICE, since=day(1), old_until=day(2))).issuer("home")


def test_a_revoked_key_never_comes_back_and_is_never_revoked_later() -> None:
    keys = keyring(trust(ALICE, "acme"), trust(ALICE, "globex"), revoke(ALICE, day(5)))
    for name in ("acme", "globex"):
        issuer = keys.issuer(name)
        assert issuer is not None
        assert issuer.keys[0].state_at(day(5)) == "revoked"
    assert refused(keys, trust(ALICE, "acme")) == "key_revoked_for_good"
    assert refused(keys, trust(ALICE, "third")) == "key_revoked_for_good"
    assert refused(keys, rotate(ROOT, ALICE, since=day(5), old_until=day(6))) == "key_revoked_for_good"
    assert refused(keys, revoke(ALICE, day(6))) == "key_revoked_for_good"
    earlier = keyring(revoke(ALICE, day(4)), keys=keys).issuer("acme")
    assert earlier is not None
    assert earlier.keys[0].revoked_from == day(4)


def test_a_key_is_revoked_for_events_from_a_place_on_whatever_their_times_are() -> None:
    keys = keyring(trust(ALICE, "acme"), trust(ALICE, "globex"), revoke(ALICE, day(5), 7))
    for issuer in keys.issuers[1:]:
        key = issuer.keys[0]
        assert [key.is_revoked_for(day(2), entry) for entry in (0, 6, 7, 8)] == [False, False, True, True]
        assert [key.is_revoked_for(at, 6) for at in (day(4), day(5), day(6))] == [False, True, True]
        assert key.state_at(day(4)) == "valid"  # what is no event of the log has only its time


@pytest.mark.parametrize(
    ("first", "second", "place"), [(7, 3, 3), (7, 9, 7), (7, None, 7), (None, 3, 3), (None, None, None), (7, 0, 0)]
)
def test_a_second_revocation_begins_at_no_later_place(first: int | None, second: int | None, place: int | None) -> None:
    keys = keyring(trust(ALICE, "acme"), revoke(ALICE, day(5), first), revoke(ALICE, day(5), second))
    issuer = keys.issuer("acme")
    assert issuer is not None
    assert issuer.keys[0].revoked_entry == place


def test_a_revocation_without_a_place_has_the_bytes_that_it_always_had() -> None:
    assert msgspec.to_builtins(revoke(ALICE, day(5))).keys() == {"change", "key_id", "revoked_from", "reason"}
    assert msgspec.to_builtins(revoke(ALICE, day(5), 0))["from_entry"] == 0


@pytest.mark.parametrize(("known", "since"), [(day(1), day(1)), (day(9), day(3))])
def test_a_key_that_is_trusted_already_and_takes_over_another_was_good_before_that(
    known: Timestamp, since: Timestamp
) -> None:
    keys = keyring(trust(ALICE, "acme"), trust(BOB, "acme", since=known))
    after = keyring(rotate(ALICE, BOB, since=day(3), old_until=day(7)), keys=keys).issuer("acme")
    assert after is not None
    bob = after.key(BOB.public_key.key_id)
    assert bob is not None
    assert bob.valid_from == since


def test_a_rotation_may_end_the_new_key() -> None:
    endless = rotate(ALICE, BOB, since=day(3), old_until=day(7))
    keys = keyring(trust(ALICE, "acme", until=day(9)))
    for change, end in ((endless, None), (replace(endless, valid_until=str(day(9))), day(9))):
        after = keyring(change, keys=keys).issuer("acme")
        assert after is not None
        bob = after.key(BOB.public_key.key_id)
        assert bob is not None
        assert bob.valid_until == end
    assert refused(keys, replace(endless, valid_until=str(day(3)))) == "key_window_empty"


def test_a_new_key_takes_over_the_roles_of_the_old_one_wherever_that_is_trusted() -> None:
    keys = keyring(trust(ALICE, "acme", "security"), trust(ALICE, "globex", "data"), trust(BOB, "acme", "extra"))
    after = keyring(rotate(ALICE, BOB, since=day(3), old_until=day(7)), keys=keys)
    roles = {name: issuer.key(BOB.public_key.key_id) for name in ("acme", "globex") if (issuer := after.issuer(name))}
    assert {name: key.roles for name, key in roles.items() if key} == {
        "acme": ("extra", "security"),
        "globex": ("data",),
    }
    ended = after.issuer("acme")
    assert ended is not None
    old = ended.key(ALICE.public_key.key_id)
    assert old is not None
    assert (old.state_at(day(6)), old.state_at(day(7))) == ("valid", "expired")


@cases(
    ("change", "code"),
    [
        (revoke(MALLORY, day(5)), "key_not_trusted"),
        (rotate(MALLORY, BOB, since=day(5), old_until=day(6)), "key_not_trusted"),
        (rotate(ALICE, BOB, since=day(6), old_until=day(5)), "key_window_empty"),
        (rotate(ALICE, ALICE, since=day(5), old_until=day(6)), "key_rotated_into_itself"),
        (trust(BOB, "acme", since=day(6), until=day(6)), "key_window_empty"),
        (threshold("acme", 2), "threshold_unreachable"),
        (threshold("acme", 0), "threshold_unreachable"),
        (threshold("nobody", 1), "issuer_not_found"),
        (trust(BOB, "no such name"), "keyring_event_invalid"),
        (trust(BOB, "acme", "no such role"), "keyring_event_invalid"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(change: Change, code: str) -> None:
    assert refused(keyring(trust(ALICE, "acme")), change) == code


@given(st.lists(st.integers(min_value=0, max_value=5), min_size=1, max_size=8))
def test_whatever_happens_a_keyring_can_be_changed_again(steps: list[int]) -> None:
    """Every history that is allowed leaves an owner who can go on."""
    keys, owners = keyring(), [ROOT]
    for n, step in enumerate(steps):
        new = key_of(f"new {n}")
        choices: list[Change] = [
            trust(new, "acme", "owner"),
            rotate(owners[-1], new, since=day(1), old_until=day(1)),
            revoke(owners[0], day(1)),
            revoke(owners[-1], day(1)),
            trust(new, "acme", "owner", until=day(30)),
            trust(owners[-1], "home"),
        ]
        for signer in reversed(owners):
            try:
                keys = keys.after(sign_change(keys, choices[step], at=day(1), signer=signer), CHECK)
            except ContextPlaneError:
                continue
            owners += [new] * (step in {0, 1, 4})
            break
    assert any(is_owner(keys, owner) for owner in owners)


def is_owner(keys: TrustedKeys, signer: Signer) -> bool:
    try:
        keys.after(sign_change(keys, trust(key_of("further"), "acme"), at=day(1), signer=signer), CHECK)
    except ContextPlaneError:
        return False
    return True


def bodies(*changes: Change) -> list[bytes]:
    keys, events = TrustedKeys(), []
    for change in (trust(ROOT, "home", "owner"), *changes):
        events.append(sign_change(keys, change, at=day(1), signer=ROOT))
        keys = keys.after(events[-1], CHECK)
    return events


def fold(events: list[bytes], known: TrustedKeys | None = None) -> TrustedKeys:
    """What a client that knew this much makes of a stream with these events."""
    with memory_catalog() as catalog:
        with catalog.write() as tx:
            tx.streams.append(STREAM, 0, [Event(kind="keyring_changed", body=body) for body in events])
        with catalog.read() as view:
            return follow_keyring(view.streams, known or TrustedKeys(), CHECK)


EVENTS = bodies(trust(ALICE, "acme"), trust(BOB, "acme"), revoke(ALICE, day(4)))


def test_folding_from_where_a_client_stood_gives_the_same_as_from_the_beginning() -> None:
    whole = fold(EVENTS)
    for n in range(len(EVENTS) + 1):
        assert fold(EVENTS, fold(EVENTS[:n])) == whole


def test_a_client_that_is_up_to_date_checks_no_signature() -> None:
    class Never:
        def holds(self, *_: object) -> bool:
            raise AssertionError

    with memory_catalog() as catalog, catalog.write() as tx:
        keys = TrustedKeys()
        for body in EVENTS:
            keys = append_change(tx.streams, keys, body, CHECK)
        assert follow_keyring(tx.streams, keys, Never()) == keys


@pytest.mark.parametrize(
    ("events", "code"),
    [
        (EVENTS[:3], "keyring_rolled_back"),
        ([], "keyring_rolled_back"),
        (
            [*EVENTS[:3], bodies(trust(ALICE, "acme"), trust(BOB, "acme"), trust(MALLORY, "acme"))[3]],
            "keyring_rewritten",
        ),
    ],
    ids=["truncated", "emptied", "exchanged"],
)
def test_a_client_notices_a_past_that_is_gone_or_another(events: list[bytes], code: str) -> None:
    with pytest.raises(ContextPlaneError) as error:
        fold(events, fold(EVENTS))
    assert error.value.code == code


@cases(
    "events",
    [
        [EVENTS[0], EVENTS[2], EVENTS[1], EVENTS[3]],
        [EVENTS[0], EVENTS[1], EVENTS[3]],
        [EVENTS[0], EVENTS[1], EVENTS[1]],
        EVENTS[1:],
    ],
    ids=["reordered", "one left out", "repeated", "beheaded"],
)
def test_a_stream_with_a_broken_chain_is_refused(events: list[bytes]) -> None:
    with pytest.raises(ContextPlaneError) as error:
        fold(events)
    assert error.value.code == "keyring_event_invalid"


@given(st.integers(min_value=0, max_value=len(EVENTS) - 1), st.data())
def test_no_bit_of_an_event_can_be_changed(which: int, data: st.DataObject) -> None:
    body = bytearray(EVENTS[which])
    at = data.draw(st.integers(min_value=0, max_value=len(body) - 1))
    body[at] ^= 1 << data.draw(st.integers(min_value=0, max_value=7))
    events = [*EVENTS[:which], bytes(body), *EVENTS[which + 1 :]]
    try:
        fold(events)
    except ContextPlaneError:
        return
    # A hint is not signed: the fold may pass, but then it says the same, and a client that knows better notices.
    assert fold(events).issuers == fold(EVENTS).issuers


def test_an_event_of_no_time_is_no_event_whoever_signed_it() -> None:
    keys = keyring()
    event = KeyringEvent(seq=2, previous=keys.head, at="yesterday", change=trust(key_of("bob"), "acme"))
    with pytest.raises(KeyringEventInvalid):
        keys.after(sign_keyring_event(event, key_of("root")), CHECK)
