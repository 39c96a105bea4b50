"""A clock that was hours ahead stops nobody. Nobody builds on a time years ahead, and an owner takes it back."""

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.app.registry.audit import audit_registry, renew_checkpoint
from contextplane.app.registry.pins import set_protection
from contextplane.app.registry.resolve import load_for_replay, resolve_request
from contextplane.model.ids import PackRef
from contextplane.model.keys import OWNER
from contextplane.model.timestamp import Timestamp
from contextplane.registry.resolution import ResolveRequest
from contextplane.registry.streams import CHECKPOINTS, environment_stream, pins_stream
from contextplane.trust.checkpoint import Checkpoint, NoteUnsigned, signed_checkpoint
from contextplane.trust.clock import MAX_AHEAD
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.keyring_events import KeyRevocation
from tests.unit.registry.desk import ISSUER, PACK, Clock, Office, code, office, version
from tests.unit.registry.releases import HERE
from tests.unit.registry.tampering import Stolen
from tests.unit.trust.world import key_of

REF = PackRef.parse(PACK)
HOURS = timedelta(hours=20)
YEAR = timedelta(days=365)
AHEAD = "clock_went_backwards"


def set_clock(here: Office, by: timedelta) -> None:
    clock = here.desk.platform.clock
    assert isinstance(clock, Clock)
    clock.moment += by


def pin_ahead(here: Office, by: timedelta) -> Office:
    """Somebody pins with a clock that is ahead; then it is right again."""
    here.release()
    set_clock(here, by)
    here.pin("prod", PACK)
    set_clock(here, -by)
    return here


@pytest.fixture
def ahead(here: Office) -> Office:
    return pin_ahead(here, HOURS)


@pytest.fixture
def far_ahead(here: Office) -> Office:
    return pin_ahead(here, YEAR)


def sign_anew(here: Office, by: str) -> None:
    renew_checkpoint(here.desk, audit_registry(here.desk, lambda _size, _events: None), key_of(by))


def resolve(here: Office, max_age: int | None = None) -> object:
    request = ResolveRequest(refs=(REF,), tenant=ISSUER, environment="prod", purpose="new_traffic")
    return resolve_request(here.desk, request, HERE, max_age=max_age)


def times(here: Office) -> list[Timestamp]:
    with here.desk.read() as reader:
        streams = [pins_stream(environment, "ctxpack.support") for environment in ("prod", "staging", "dev")]
        return [event.at for stream in streams for event in reader.history(stream)]


def test_acts_go_on_one_after_the_other_and_all_of_it_stays_sound(ahead: Office) -> None:
    assert ahead.pin("staging", PACK).appended is not None
    assert ahead.desk.keys.behind == pytest.approx(HOURS.total_seconds(), abs=60)
    ahead.pin("dev", PACK)
    first, second, third = times(ahead)
    assert first < second < third < Timestamp(seconds=first.seconds + 1, nanos=0)
    assert audit_registry(ahead.desk, lambda _size, _events: None).sound
    set_clock(ahead, 2 * HOURS)
    ahead.release(version("2.0.0"))
    assert ahead.desk.keys.behind == 0


def revoke_somebody(here: Office) -> None:
    key = key_of(f"somebody {here.desk.keys.keyring.seq}").public_key
    here.change_keys(here.desk.keys.key_trust(key, ISSUER))
    here.desk.keys.revoke(key.key_id, "lost", key_of("root"))


ACTS: dict[str, Callable[[Office], object]] = {
    "open": lambda here: set_protection(here.desk, "dev", protected=False, by=here.by("ops")),
    "protect": lambda here: set_protection(here.desk, "dev", protected=True, by=here.by("ops")),
    "trust": lambda here: here.trust("newcomer"),
    "revoke": revoke_somebody,
    "sign": lambda here: renew_checkpoint(
        here.desk, audit_registry(here.desk, lambda _size, _events: None), key_of("ops")
    ),
}


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(sorted(ACTS)), st.integers(-(10**6), 10**6)), max_size=6))
def test_whatever_clocks_show_all_that_is_written_can_be_read_and_is_sound(acts: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, office(Path(folder)) as here:
        ACTS["open"](here)
        for act, seconds in acts:
            set_clock(here, timedelta(seconds=seconds))
            try:
                ACTS[act](here)
            except ClockWentBackwards:
                assert seconds < -MAX_AHEAD
                set_clock(here, timedelta(seconds=-seconds))
                ACTS[act](here)
        assert audit_registry(here.desk, lambda _size, _events: None).problems == ()
        with here.desk.read() as reader:
            times = [event.at for event in reader.history(environment_stream("dev"))]
    assert times == sorted(set(times))


def test_a_change_of_the_keyring_comes_after_what_was_done_under_the_one_before_it(ahead: Office) -> None:
    ahead.trust("newcomer", "operator")
    assert ahead.desk.keys.keyring.as_of > times(ahead)[0]
    assert ahead.base("prod") == PACK  # by an event that stays readable
    ahead.pin("staging", PACK, by="newcomer")
    assert audit_registry(ahead.desk, lambda _size, _events: None).sound


def test_a_revocation_parts_what_was_signed_before_it_from_what_comes_after(ahead: Office) -> None:
    ahead.pin("staging", PACK)
    desk = ahead.desk.keys
    lost = KeyRevocation(key_id=key_of("ops").public_key.key_id, revoked_from=str(desk.now), reason="lost")
    ahead.change_keys(lost)
    with ahead.desk.read() as reader:
        before = list(reader.history(pins_stream("staging", "ctxpack.support")))
    assert [event.by.revoked for event in before] == [False]
    assert code(lambda: ahead.pin("dev", PACK)) == "registry_signer_untrusted"


def test_a_key_has_ended_when_its_end_is_on_record_though_the_clock_is_before_it(ahead: Office) -> None:
    now = ahead.desk.platform.clock.now()
    since, until = Timestamp.of(now), Timestamp.of(now + HOURS / 2)
    trusting = ahead.desk.keys.key_trust
    ahead.change_keys(trusting(key_of("ops").public_key, ISSUER, roles=("operator",), since=since, until=until))
    assert code(lambda: ahead.pin("dev", PACK)) == "registry_signer_untrusted"


def test_a_record_that_is_a_day_ahead_is_continued(here: Office) -> None:
    pin_ahead(here, timedelta(hours=23, minutes=50))
    here.pin("dev", PACK)
    here.trust("newcomer")


def test_a_record_that_is_more_than_a_day_ahead_is_not_continued(here: Office) -> None:
    pin_ahead(here, timedelta(hours=24, minutes=10))
    assert code(lambda: here.pin("dev", PACK)) == AHEAD
    assert code(lambda: here.trust("newcomer")) == AHEAD


def test_nobody_builds_on_a_record_that_is_years_ahead(far_ahead: Office) -> None:
    before = far_ahead.streams()
    for act in ACTS.values():
        assert code(partial(act, far_ahead)) == AHEAD
    assert code(lambda: far_ahead.pin("staging", PACK)) == AHEAD
    assert far_ahead.streams() == before
    assert audit_registry(far_ahead.desk, lambda _size, _events: None).sound
    set_clock(far_ahead, YEAR)
    far_ahead.pin("staging", PACK)


def revoke(here: Office, name: str, since: Timestamp | None = None) -> None:
    here.desk.keys.revoke(key_of(name).public_key.key_id, "its clock", key_of("root"), since=since)
    here.desk.keys.__dict__.pop("keyring", None)


LAST = datetime(9999, 12, 31, 23, 59, 58, 999_999, tzinfo=UTC)
"""A second before the last moment: by the next look the clock is there."""


@pytest.mark.parametrize("late", [datetime(2031, 1, 1, tzinfo=UTC), LAST])
def test_an_owner_takes_a_time_of_the_future_back_and_the_others_go_on_by_their_clocks(
    here: Office, late: datetime
) -> None:
    here.release()
    here.pin("staging", PACK)
    clock = here.desk.platform.clock
    assert isinstance(clock, Clock)
    right, clock.moment = clock.moment, late
    here.pin("prod", PACK)
    clock.moment = right
    before = here.streams()
    assert code(lambda: revoke(here, "ops")) == AHEAD  # it would be from then on
    assert here.streams() == before
    revoke(here, "ops", Timestamp.of(right + timedelta(milliseconds=500)))
    assert here.desk.keys.keyring.as_of < Timestamp.of(right + timedelta(hours=1))
    with pytest.raises(NoteUnsigned) as closed:
        here.pin("dev", PACK)
    assert closed.value.details == {"renewable": True}
    assert code(lambda: sign_anew(here, "ops")) == "registry_signer_untrusted"
    sign_anew(here, "pub")
    assert code(lambda: here.pin("dev", PACK)) == "registry_signer_untrusted"
    assert code(lambda: resolve(here)) == "pin_doubtful"  # until it is pinned again
    here.trust("newcomer", "operator")
    here.pin("prod", PACK, by="newcomer")
    assert resolve(here, max_age=3600)
    assert here.base("staging") == PACK
    here.release(version("2.0.0"))
    result = audit_registry(here.desk, lambda _size, _events: None)
    assert (result.problems, result.by_revoked) == ((), 1)
    assert result.as_of < Timestamp.of(right + timedelta(hours=1))


def test_who_saw_a_time_that_was_taken_back_goes_on(here: Office) -> None:
    here.release()
    before, memory = here.desk.keys.clock, Path(here.desk.platform.client_state.path)
    set_clock(here, YEAR)
    here.pin("prod", PACK)
    set_clock(here, -YEAR)
    saw = memory.read_bytes()
    revoke(here, "ops", since=before)
    sign_anew(here, "pub")
    for look in (lambda: here.base("staging"), lambda: here.record(version("2.0.0")), lambda: here.trust("newcomer")):
        memory.write_bytes(saw)
        look()
    memory.write_bytes(saw)
    assert audit_registry(here.desk, lambda _size, _events: None).sound


def test_by_a_clock_that_is_years_behind_no_key_is_revoked(here: Office) -> None:
    """Otherwise the revocation would be dated before all that was done since, and nobody could read that."""
    here.release()
    set_clock(here, timedelta(days=60))
    here.pin("prod", PACK)
    here.record(version("2.0.0"))
    set_clock(here, -2 * YEAR)
    assert code(lambda: revoke(here, "ops")) == AHEAD
    assert code(lambda: revoke(here, "ops", here.desk.keys.clock)) == AHEAD


def test_what_the_owners_put_on_record_is_continued_whatever_the_clock_shows(here: Office) -> None:
    """Nothing takes a change of the keyring back: who refuses to go on after it could never act again."""
    here.trust("second", OWNER)
    here.release()
    set_clock(here, YEAR)
    here.trust("newcomer", "operator")
    set_clock(here, -YEAR)
    here.pin("prod", PACK, by="newcomer")
    here.trust("another", "operator")
    assert here.desk.keys.behind == pytest.approx(YEAR.total_seconds(), abs=60)
    assert code(lambda: resolve(here)) == AHEAD


def open_far_ahead(here: Office, by: str) -> None:
    set_clock(here, YEAR)
    set_protection(here.desk, "test", protected=False, by=here.by(by))
    set_clock(here, -YEAR)


def test_the_time_of_the_only_owner_is_continued_because_nothing_takes_it_back(here: Office) -> None:
    open_far_ahead(here, "root")
    assert code(lambda: revoke(here, "root", since=here.desk.keys.clock)) == "keyring_without_owner"
    ACTS["open"](here)
    here.trust("second", OWNER)
    assert here.desk.keys.keyring.as_of > Timestamp.of(here.clock.now() + YEAR / 2)
    assert audit_registry(here.desk, lambda _size, _events: None).sound


def test_the_time_of_one_of_two_owners_is_taken_back_by_the_other(here: Office) -> None:
    here.trust("second", OWNER)
    before = here.desk.keys.clock
    open_far_ahead(here, "second")
    assert code(lambda: ACTS["open"](here)) == AHEAD
    revoke(here, "second", since=before)
    sign_anew(here, "root")
    ACTS["open"](here)
    assert here.desk.keys.behind == 0


def test_new_traffic_goes_on_for_a_day_and_by_the_age_that_somebody_asks_for(ahead: Office) -> None:
    assert resolve(ahead)
    assert resolve(ahead, max_age=10**9)
    assert code(lambda: resolve(ahead, max_age=86_400)) == AHEAD
    assert load_for_replay(ahead.desk, REF).marks == ()
    set_clock(ahead, HOURS - timedelta(seconds=30))  # as clocks may differ
    assert resolve(ahead, max_age=60)


def test_new_traffic_takes_no_checkpoint_of_next_year_where_an_environment_is_protected(far_ahead: Office) -> None:
    assert code(lambda: resolve(far_ahead)) == AHEAD
    assert code(lambda: resolve(far_ahead, max_age=10**9)) == AHEAD
    assert load_for_replay(far_ahead.desk, REF).marks == ()


def forge_checkpoint(here: Office, late: Timestamp) -> None:
    forged = Checkpoint(origin=here.desk.origin, size=9, root=b"0" * 32, time=late, heads=b"0" * 32)
    note = signed_checkpoint(forged, key_of("mallory"))
    Stolen(Path(here.desk.platform.home.catalog)).add(CHECKPOINTS, "checkpoint", msgspec.json.encode(note.decode()))


def test_a_checkpoint_that_nobody_signed_whom_we_trusted_moves_no_time(here: Office) -> None:
    here.record()
    late = Timestamp.parse("2090-01-01T00:00:00Z")
    forge_checkpoint(here, late)
    here.trust("newcomer")
    assert here.desk.keys.keyring.as_of < late


def test_such_a_checkpoint_hides_no_time_that_is_on_record_either(ahead: Office) -> None:
    last = times(ahead)[0]
    forge_checkpoint(ahead, Timestamp.parse("2020-01-01T00:00:00Z"))
    ahead.trust("newcomer")
    assert ahead.desk.keys.keyring.as_of > last
