"""A clock that was ahead stops nobody, and makes nothing pass that would not have passed before."""

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.app.registry.audit import audit_registry, renew_checkpoint
from contextplane.app.registry.pins import set_protection
from contextplane.app.registry.resolve import load_for_replay, resolve_request
from contextplane.model.ids import PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.registry.resolution import ResolveRequest
from contextplane.registry.streams import CHECKPOINTS, environment_stream, pins_stream
from contextplane.trust.checkpoint import Checkpoint, signed_checkpoint
from contextplane.trust.keyring_events import KeyRevocation
from tests.unit.registry.desk import ISSUER, PACK, Clock, Office, code, office, version
from tests.unit.registry.releases import HERE
from tests.unit.registry.tampering import Stolen
from tests.unit.trust.world import key_of

REF = PackRef.parse(PACK)
YEAR = timedelta(days=365)


def set_clock(here: Office, by: timedelta) -> None:
    clock = here.desk.platform.clock
    assert isinstance(clock, Clock)
    clock.moment += by


@pytest.fixture
def ahead(here: Office) -> Office:
    """Somebody pinned with a clock that was a year ahead; by now it is right again."""
    here.release()
    set_clock(here, YEAR)
    here.pin("prod", PACK)
    set_clock(here, -YEAR)
    return here


def resolve(here: Office, max_age: int | None = None) -> object:
    request = ResolveRequest(refs=(REF,), tenant=ISSUER, environment="prod", purpose="new_traffic")
    return resolve_request(here.desk, request, HERE, max_age=max_age)


def times(here: Office) -> list[Timestamp]:
    with here.desk.read() as reader:
        streams = [pins_stream(environment, "ctxpack.support") for environment in ("prod", "staging", "dev")]
        return [event.at for stream in streams for event in reader.history(stream)]


def test_acts_go_on_one_after_the_other_and_all_of_it_stays_sound(ahead: Office) -> None:
    assert ahead.pin("staging", PACK).appended is not None
    assert ahead.desk.keys.behind == pytest.approx(YEAR.total_seconds(), abs=60)
    ahead.pin("dev", PACK)
    first, second, third = times(ahead)
    assert first < second < third < Timestamp(seconds=first.seconds + 1, nanos=0)
    assert audit_registry(ahead.desk, lambda _size, _events: None).sound
    set_clock(ahead, 2 * YEAR)
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
    since, until = Timestamp.of(now), Timestamp.of(now + YEAR / 2)
    trusting = ahead.desk.keys.key_trust
    ahead.change_keys(trusting(key_of("ops").public_key, ISSUER, roles=("operator",), since=since, until=until))
    assert code(lambda: ahead.pin("dev", PACK)) == "registry_signer_untrusted"


@pytest.mark.parametrize("since", ["now", "clock"])
def test_whoever_puts_the_last_moment_on_record_is_revoked_and_the_others_go_on(here: Office, since: str) -> None:
    here.release()
    clock = here.desk.platform.clock
    assert isinstance(clock, Clock)
    right, clock.moment = clock.moment, datetime(9999, 12, 31, 23, 59, 58, 999_999, tzinfo=UTC)  # one second later now
    here.pin("prod", PACK)
    clock.moment = right
    since = str(getattr(here.desk.keys, since))
    here.change_keys(KeyRevocation(key_id=key_of("ops").public_key.key_id, revoked_from=since, reason="lost"))
    assert code(lambda: here.pin("dev", PACK)) == "note_unsigned"
    renew_checkpoint(here.desk, audit_registry(here.desk, lambda _size, _events: None), key_of("pub"))
    assert code(lambda: here.pin("dev", PACK)) == "registry_signer_untrusted"
    here.trust("newcomer", "operator")
    here.pin("staging", PACK, by="newcomer")
    here.release(version("2.0.0"))
    assert audit_registry(here.desk, lambda _size, _events: None).problems == ()


def test_new_traffic_goes_on_unless_somebody_asks_how_fresh_the_registry_is(ahead: Office) -> None:
    assert resolve(ahead)
    assert code(lambda: resolve(ahead, max_age=10**9)) == "clock_went_backwards"
    assert load_for_replay(ahead.desk, REF).marks == ()
    set_clock(ahead, YEAR - timedelta(seconds=30))  # as clocks may differ
    assert resolve(ahead, max_age=60)


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
