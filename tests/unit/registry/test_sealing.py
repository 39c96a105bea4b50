"""Whoever has a revoked key and can write the catalog puts no act before the revocation: who never read it refuses.

The key was stolen, the revocation is on record, and the registry was signed anew with it.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from contextplane.model.ids import PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.resign import resign_after_keyring_change
from contextplane.registry.streams import CHECKPOINTS
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM as KEYRING
from contextplane.trust.keyring_stream import follow_keyring
from tests.unit.registry.backdating import backdated, keyring_before
from tests.unit.registry.desk import code
from tests.unit.registry.tampering import Stolen, copied, stolen
from tests.unit.registry.world import ISSUER, ORIGIN, Registry
from tests.unit.trust.world import CHECK, key_of, revoke, trust

ONE = PackRef.parse("refunds@1.0.0")
BEFORE = "checkpoint_before_revocation"
QUIET = 100
"""So many seconds nothing was written before the key was revoked."""


class Theft:
    """A registry whose operator's key was stolen and is revoked by now, and copies of it from the way there."""

    def __init__(self, folder: Path) -> None:
        self.early, self.unsealed, self.now = folder / "early.db", folder / "unsealed.db", folder / "now.db"
        registry = Registry(path=str(self.now))
        registry.draft(b"one")
        copied(self.now, self.early)
        registry.publish(b"two", "refunds@2.0.0")
        self.quiet = self._later(registry, 1)
        registry.seconds += QUIET
        self.revoked = registry.now
        copied(self.now, self.unsealed)
        registry.keyring_change(revoke(key_of("ops"), self.revoked))
        self.seconds = registry.seconds
        self.keyring = keyring_before(registry.catalog)
        registry.catalog.close()
        with Stolen(self.unsealed).registry(self.seconds - 1) as other:
            other.keyring_change(revoke(key_of("ops"), self.revoked), seal=False)

    @staticmethod
    def _later(registry: Registry, seconds: int) -> Timestamp:
        return Timestamp(seconds=registry.now.seconds + seconds, nanos=0)

    def backdate(self, there: Stolen, until: Timestamp | None = None) -> None:
        with there.registry(self.seconds) as registry:
            backdated(registry.catalog, self.quiet, keyring=self.keyring, until=until)


@pytest.fixture(scope="module")
def theft(tmp_path_factory: pytest.TempPathFactory) -> Theft:
    return Theft(tmp_path_factory.mktemp("theft"))


def sealed_away(theft: Theft, there: Stolen) -> None:
    there.cut(CHECKPOINTS)
    theft.backdate(there)


def left_unsigned(theft: Theft, there: Stolen) -> None:
    signed = there.body(CHECKPOINTS, len(there.ask("SELECT 1 FROM event WHERE stream = ?", CHECKPOINTS)))
    theft.backdate(there)
    there.cut(CHECKPOINTS, 2)
    there.add(CHECKPOINTS, "checkpoint", signed)


def from_early_on(theft: Theft, there: Stolen) -> None:
    """The log of an early copy, under the keyring of now."""
    revocation = there.body(KEYRING, theft.keyring + 1)
    copied(theft.early, there.path)
    there.add(KEYRING, "keyring_changed", revocation)
    theft.backdate(there)


def long_after(theft: Theft) -> Timestamp:
    return Timestamp(seconds=theft.revoked.seconds + QUIET, nanos=0)


DEEDS: dict[str, tuple[Callable[[Theft, Stolen], object], str]] = {
    "under a checkpoint of that time, after the last one": (lambda t, s: t.backdate(s), BEFORE),
    "under a checkpoint of that time, in the place of the last one": (sealed_away, BEFORE),
    "under a checkpoint of now": (lambda t, s: t.backdate(s, long_after(t)), "note_unsigned"),
    "under a checkpoint of the moment of the revocation": (lambda t, s: t.backdate(s, t.revoked), "note_unsigned"),
    "under the checkpoint that was there": (left_unsigned, "log_rewritten"),
    "in another history, from an early copy on": (from_early_on, BEFORE),
}


def opened(there: Stolen, seen: Checkpoint | None = None) -> bool:
    """Whether the environment is open to whoever reads the registry, and saw perhaps something of it before."""
    with there.opened(seen) as reader:
        return not reader.environment("prod").protected


@pytest.mark.parametrize("deed", DEEDS)
def test_an_act_that_is_put_before_the_revocation_is_refused_by_who_reads_for_the_first_time(
    theft: Theft, tmp_path: Path, deed: str
) -> None:
    there = stolen(theft.now, tmp_path)
    assert not opened(there)
    act, expected = DEEDS[deed]
    act(theft, there)
    assert code(lambda: opened(there)) == expected


@pytest.mark.parametrize("deed", DEEDS)
def test_nobody_acts_upon_it_and_no_change_of_the_keyring_signs_it(theft: Theft, tmp_path: Path, deed: str) -> None:
    there = stolen(theft.now, tmp_path)
    act, expected = DEEDS[deed]
    act(theft, there)
    with there.registry(theft.seconds + QUIET) as registry:
        assert code(lambda: registry.draft(b"three", "refunds@3.0.0")) == expected
        registry.keyring_change(trust(key_of("newcomer"), ISSUER))
        registry.keyring_change(revoke(key_of("pub"), registry.now))
    assert code(lambda: opened(there)) in {expected, BEFORE}


@pytest.mark.parametrize("deed", DEEDS)
def test_full_verification_finds_it(theft: Theft, tmp_path: Path, deed: str) -> None:
    there = stolen(theft.now, tmp_path)
    assert there.audited().sound
    DEEDS[deed][0](theft, there)
    assert not there.audited().sound


def test_before_the_registry_is_signed_anew_nothing_of_it_is_believed(theft: Theft, tmp_path: Path) -> None:
    there = stolen(theft.unsealed, tmp_path)
    assert code(lambda: opened(there)) == BEFORE
    result = there.audited()
    assert ([problem.code for problem in result.problems], result.renewable) == ([BEFORE], True)


def test_what_the_key_did_before_stands_and_the_others_go_on(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.publish(b"one")
    registry.pin("prod", str(ONE), b"one")
    registry.seconds += 1
    registry.keyring_change(revoke(key_of("ops"), registry.now))
    registry.draft(b"two", "refunds@2.0.0")
    registry.catalog.close()
    there = Stolen(tmp_path / "catalog.db")
    with there.opened() as reader:
        assert reader.pins("prod", "refunds").base == ONE
    assert there.audited().sound


def test_the_first_act_of_a_registry_is_not_put_before_a_revocation_either(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    earlier = registry.now
    registry.seconds += QUIET
    registry.keyring_change(revoke(key_of("ops"), registry.now))
    there = Stolen(tmp_path / "catalog.db")
    assert not opened(there)
    backdated(registry.catalog, earlier, keyring=keyring_before(registry.catalog))
    assert code(lambda: opened(there)) == BEFORE


def test_after_a_revocation_a_registry_begins_like_any_other(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.keyring_change(revoke(key_of("ops"), registry.now))
    registry.draft(b"one")
    registry.catalog.close()
    assert Stolen(tmp_path / "catalog.db").audited().sound


def test_a_revocation_for_later_stops_nobody_now(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.publish(b"one")
    later = Timestamp(seconds=registry.now.seconds + QUIET, nanos=0)
    registry.keyring_change(revoke(key_of("ops"), later))
    registry.pin("prod", str(ONE), b"one")
    registry.seconds += QUIET
    registry.keyring_change(trust(key_of("newcomer"), ISSUER))
    registry.catalog.close()
    assert Stolen(tmp_path / "catalog.db").audited().sound


def test_a_role_that_was_taken_away_is_used_no_more_without_being_told(tmp_path: Path) -> None:
    """Such a key is still trusted, and signs checkpoints: readers go by the keyring that the event names."""
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.draft(b"one")
    earlier = Timestamp(seconds=registry.now.seconds + 1, nanos=0)
    registry.seconds += QUIET
    registry.keyring_change(trust(key_of("ops"), ISSUER))
    with registry.reading() as reader:
        seen = REGISTRY_LOG.newest_checkpoint(reader.streams, reader.keyrings, CHECK, ORIGIN)
    assert seen is not None
    registry.seconds += 1
    backdated(registry.catalog, earlier, keyring=keyring_before(registry.catalog), until=registry.now)
    registry.catalog.close()
    there = Stolen(tmp_path / "catalog.db")
    assert {problem.code for problem in there.audited().problems} == {"registry_event_invalid"}
    # He takes the checkpoint away that stands between. The log has the change of the keyring before his act.
    ((newest,),) = there.ask("SELECT max(seq) FROM event WHERE stream = ?", CHECKPOINTS)
    assert isinstance(newest, int)
    last = there.body(CHECKPOINTS, newest)
    there.cut(CHECKPOINTS, 2)
    there.add(CHECKPOINTS, "checkpoint", last)
    assert not opened(there)
    assert not opened(there, seen.checkpoint)
    assert {problem.code for problem in there.audited(seen.checkpoint).problems} == {"registry_event_invalid"}


def test_nobody_signs_an_older_copy_of_what_he_saw(theft: Theft, tmp_path: Path) -> None:
    with stolen(theft.now, tmp_path).registry(theft.seconds) as registry, registry.reading() as reader:
        newest_seen = REGISTRY_LOG.newest_checkpoint(reader.streams, reader.keyrings, CHECK, ORIGIN)
    assert newest_seen is not None
    (tmp_path / "older").mkdir()
    with stolen(theft.early, tmp_path / "older").registry(theft.seconds) as registry, registry.catalog.write() as tx:
        keys = follow_keyring(tx.streams, TrustedKeys(origin=ORIGIN), CHECK)

        def sign(seen: Checkpoint | None) -> object:
            fresh = {"check": CHECK, "signer": key_of("root"), "now": registry.now, "origin": ORIGIN}
            return resign_after_keyring_change(tx, before=keys, after=keys, seen=seen, **fresh)  # type: ignore[arg-type]

        assert code(lambda: sign(newest_seen.checkpoint)) == "log_rolled_back"
        assert sign(None)
