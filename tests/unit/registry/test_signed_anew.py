"""A change of the keyring signs the registry anew, in its own transaction, by the key that signs the change."""

from collections.abc import Callable
from pathlib import Path

import pytest

from contextplane.app.registry.audit import audit_registry, renew_checkpoint
from contextplane.app.registry.keys import confirmed_until
from contextplane.app.registry.pins import set_protection
from contextplane.model.keys import OWNER
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import CatalogFailed
from contextplane.registry.audit import AuditResult
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.streams import CHECKPOINTS, LOG
from contextplane.trust.checkpoint import Checkpoint, KeyringPosition
from contextplane.trust.clock import next_event_time
from contextplane.trust.keyring import TrustedKeys
from tests.unit.registry.backdating import backdated, keyring_before
from tests.unit.registry.desk import Office, code, version
from tests.unit.registry.tampering import Stolen
from tests.unit.trust.world import day, key_of

BEFORE = "checkpoint_before_revocation"
OPS = key_of("ops").public_key


def whole(here: Office) -> AuditResult:
    return audit_registry(here.desk, lambda _size, _events: None)


def open_dev(here: Office, by: str = "ops") -> None:
    set_protection(here.desk, "dev", protected=False, by=here.by(by))


def revoked_from(keys: TrustedKeys) -> Timestamp | None:
    (ops,) = (key for issuer in keys.issuers for key in issuer.keys if key.key == key_of("ops").public_key)
    return ops.revoked_from


def newest_of(here: Office) -> Checkpoint:
    newest = whole(here).newest
    assert newest is not None
    return newest.checkpoint


def test_without_a_time_a_key_is_revoked_from_the_moment_on_record_and_the_checkpoint_is_after_it(here: Office) -> None:
    open_dev(here)
    here.desk.keys.revoke(key_of("ops").public_key.key_id, "lost", key_of("root"))
    keys = here.desk.keys.keyring
    kept = here.desk.memory.load()
    assert kept == newest_of(here)
    assert kept.time is not None
    assert revoked_from(keys) == keys.as_of < kept.time
    assert here.desk.keys.resigner is not None
    assert here.desk.keys.resigner.refusal is None


def place_of(here: Office, since: Timestamp | None) -> int | None:
    """Revoke the key of `ops`, and return the place in the log from which on that holds."""
    here.desk.keys.revoke(key_of("ops").public_key.key_id, "lost", key_of("root"), since=since)
    (ops,) = (key for issuer in here.desk.keys.keyring.issuers for key in issuer.keys if key.key == OPS)
    return ops.revoked_entry


def test_a_revocation_holds_from_the_place_that_its_time_had_in_the_log(here: Office) -> None:
    open_dev(here)
    size = newest_of(here).size
    since = here.desk.keys.now
    assert confirmed_until(here.desk.keys, OPS.key_id, since) == confirmed_time(here, size - 1)
    here.record(version("7.0.0"))
    last = newest_of(here)
    assert last.time is not None
    assert confirmed_until(here.desk.keys, OPS.key_id, next_event_time(last.time, last.time)) is None
    assert place_of(here, since) == size < last.size
    assert place_of(here, day(1)) == 0  # before any checkpoint, and again


def confirmed_time(here: Office, size: int) -> Timestamp | None:
    """The time of the last checkpoint of this size."""
    with here.desk.platform.catalog.read() as view:
        checkpoints = [REGISTRY_LOG.claimed_checkpoint(stored.body) for stored in view.streams.read(CHECKPOINTS)]
    return [checkpoint.time for checkpoint in checkpoints if checkpoint.size == size][-1]


def test_a_revocation_from_now_on_leaves_what_is_in_the_log_and_one_for_later_names_no_place(here: Office) -> None:
    open_dev(here)
    size, now = newest_of(here).size, here.desk.keys.now
    assert place_of(here, Timestamp(seconds=now.seconds + 86_400, nanos=0)) is None
    assert place_of(here, None) == size + 1  # the first revocation is an entry


def test_where_nothing_was_ever_registered_the_keyring_is_signed_all_the_same(here: Office) -> None:
    here.desk.keys.revoke(key_of("ops").public_key.key_id, "lost", key_of("root"))
    assert here.desk.keys.resigner is not None
    assert here.desk.keys.resigner.refusal is None
    assert here.streams()[LOG] == here.desk.keys.keyring.seq


def test_who_revokes_his_own_key_leaves_it_to_another_to_sign(here: Office) -> None:
    here.trust("second", OWNER)
    open_dev(here)
    here.desk.keys.revoke(key_of("second").public_key.key_id, "lost", key_of("second"))
    assert here.desk.keys.resigner is not None
    assert here.desk.keys.resigner.refusal is not None
    assert here.desk.keys.resigner.refusal.code == "registry_signer_untrusted"
    assert code(lambda: open_dev(here)) == BEFORE
    assert code(lambda: here.base("prod")) == BEFORE
    assert code(lambda: renew_checkpoint(here.desk, whole(here), key_of("second"))) == "registry_signer_untrusted"
    renew_checkpoint(here.desk, whole(here), key_of("ops"))
    open_dev(here)
    assert whole(here).sound


def test_an_act_under_a_keyring_of_before_is_void_and_honest_people_go_on(here: Office) -> None:
    here.record()
    earlier = here.desk.keys.clock
    here.trust("ops")  # no longer an operator
    catalog, now = here.desk.platform.catalog, here.desk.keys.clock
    backdated(catalog, earlier, keyring=keyring_before(catalog), until=now, origin=here.desk.origin)
    with here.desk.read() as reader:
        assert reader.environment("prod").protected
    set_protection(here.desk, "prod", protected=False, by=here.by("root"))
    with here.desk.read() as reader:
        assert not reader.environment("prod").protected
    result = whole(here)
    assert [(problem.code, problem.logged) for problem in result.problems] == [("registry_event_invalid", True)]
    assert result.signable


def cut_log(here: Office) -> None:
    Stolen(Path(here.desk.platform.home.catalog)).cut(LOG)


@pytest.mark.parametrize(("damage", "expected"), [(cut_log, "log_truncated")])
def test_a_registry_that_nobody_would_sign_stops_no_revocation(
    here: Office, damage: Callable[[Office], None], expected: str
) -> None:
    open_dev(here)
    before = here.streams()[CHECKPOINTS]
    damage(here)
    keys = here.desk.keys.revoke(key_of("ops").public_key.key_id, "lost", key_of("root"))
    assert revoked_from(keys) == keys.as_of
    assert here.desk.keys.resigner is not None
    assert here.desk.keys.resigner.refusal is not None
    assert here.desk.keys.resigner.refusal.code == expected
    assert here.streams()[CHECKPOINTS] == before


class Failing:
    """An owner's key, and a catalog that fails when the checkpoint is written."""

    public_key = key_of("root").public_key

    def sign(self, message: bytes) -> bytes:
        if message.startswith(b"contextplane.registry/"):
            raise CatalogFailed("the disk is full")
        return key_of("root").sign(message)


def test_when_the_catalog_fails_at_the_checkpoint_the_key_is_not_revoked_either(here: Office) -> None:
    open_dev(here)
    before = here.desk.keys.keyring
    assert code(lambda: here.desk.keys.revoke(key_of("ops").public_key.key_id, "lost", Failing())) == "catalog_failed"
    here.desk.keys.__dict__.pop("keyring")
    assert here.desk.keys.keyring == before


def test_every_change_of_the_keyring_signs_it_not_only_a_revocation(here: Office) -> None:
    open_dev(here)
    before, known = newest_of(here), here.desk.keys.keyring
    here.trust("newcomer")
    after = newest_of(here)
    assert after.size == before.size + 1
    assert (after.keyring, before.keyring) == tuple(
        KeyringPosition(seq=keys.seq, head=keys.head) for keys in (here.desk.keys.keyring, known)
    )
    assert after.time is not None
    assert after.time > here.desk.keys.keyring.as_of
