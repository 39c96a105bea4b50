"""A command verifies the registry once: each signature is computed once, and one view serves all that it reads."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from contextplane.app.settings import Settings
from contextplane.model.ids import Digest, PackRef
from contextplane.model.keys import PublicKey
from contextplane.registry.streams import artifact_stream, version_stream
from tests.unit.registry.desk import NARROWER, Office, code, desk_in, office, version
from tests.unit.registry.tampering import Stolen
from tests.unit.trust.world import CHECK, key_of

KEYS = 8


class CountingCheck:
    """Ed25519, with a count of the checks of each signature."""

    def __init__(self) -> None:
        self.calls = Counter[tuple[PublicKey, bytes, bytes]]()

    def holds(self, key: PublicKey, signature: bytes, message: bytes) -> bool:
        self.calls[key, signature, message] += 1
        return CHECK.holds(key, signature, message)

    def checkpoints(self, origin: str) -> int:
        """How often a checkpoint of this log was checked: once for each time that the registry was opened."""
        return sum(n for (_, _, message), n in self.calls.items() if message.startswith(f"{origin}\n".encode()))


@contextmanager
def signed(folder: Path) -> Iterator[tuple[Office, CountingCheck, Digest]]:
    """A registry with two published versions and a third that is signed, in a session that checked nothing yet."""
    with office(folder) as here:
        here.release()
        here.release(version("1.1.0", NARROWER))
        acted = here.record(version("1.2.0", NARROWER))
        here.review_all(str(acted.digest), acted.missing)
        here.sign(str(acted.digest))
        clock = here.clock
    check = CountingCheck()
    with desk_in(Settings(cwd=str(folder)), clock, check) as fresh:
        yield fresh, check, acted.digest


def test_publishing_computes_each_signature_once(tmp_path: Path) -> None:
    with signed(tmp_path) as (here, check, digest):
        assert here.publish(str(digest)).stage == "published"
        assert set(check.calls.values()) == {1}
        # 8 changes of the keyring, 7 events of the digest, 2 earlier publications, the checkpoint, the issuer's
        # signature, and the new event.
        assert check.calls.total() == 20


def test_publishing_opens_the_registry_once_for_its_whole_decision(tmp_path: Path) -> None:
    with signed(tmp_path) as (here, check, digest):
        here.desk.keys.check = check  # without the memory of what held
        assert here.publish(str(digest)).stage == "published"
        assert check.checkpoints(here.desk.origin) == 1


def test_a_view_within_a_view_is_the_same_and_the_next_one_is_verified_anew(tmp_path: Path) -> None:
    with signed(tmp_path) as (here, check, _):
        here.desk.keys.check = check
        with here.desk.read() as reader, here.desk.read() as inner:
            assert inner is reader
        assert check.checkpoints(here.desk.origin) == 1
        with here.desk.read() as again:
            assert again is not reader
        assert check.checkpoints(here.desk.origin) == 2


def test_a_view_that_failed_is_not_used_again(tmp_path: Path) -> None:
    with signed(tmp_path) as (here, check, _):
        here.desk.keys.check = check
        with pytest.raises(ZeroDivisionError), here.desk.read():
            raise ZeroDivisionError
        with here.desk.read() as reader:
            assert reader.version(PackRef.parse("ctxpack.support@1.1.0")).is_published
        assert check.checkpoints(here.desk.origin) == 2


@pytest.mark.parametrize("seq", range(1, 8))
def test_a_change_of_an_event_is_noticed_in_a_session_that_verified_it_before(tmp_path: Path, seq: int) -> None:
    with signed(tmp_path) as (here, _, digest):
        assert here.artifact_stage(digest) == "signed"
        thief = Stolen(tmp_path / ".ctx" / "catalog.db")
        thief.reword(artifact_stream(digest), seq, b"2030", b"2031")
        assert code(lambda: here.publish(str(digest))).startswith(("registry_", "clock_"))


def test_an_event_under_the_signature_of_another_is_noticed_in_the_same_session(tmp_path: Path) -> None:
    with signed(tmp_path) as (here, _, _):
        old, new = (version_stream(PackRef.parse(f"ctxpack.support@{number}")) for number in ("1.0.0", "1.1.0"))
        with here.desk.read() as reader:
            assert all(reader.last(stream) is not None for stream in (old, new))
        thief = Stolen(tmp_path / ".ctx" / "catalog.db")
        thief.put(new, 1, thief.body(old, 1))
        assert code(lambda: here.stage("ctxpack.support@1.1.0")) == "registry_event_invalid"


def test_the_id_of_a_key_is_computed_once() -> None:
    keys = [key_of(str(number)).public_key for number in range(KEYS)]
    ids = [key.key_id for key in keys]
    assert all(PublicKey(key.raw).key_id is key_id for key, key_id in zip(keys, ids, strict=True))
    assert ids == [Digest.of(key.spki).hex for key in keys]
