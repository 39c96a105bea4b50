"""What this client saw of the registry it does not forget: whatever is shown to it must go on from there."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace

from contextplane.adapters.files.client_state import ClientState
from contextplane.adapters.files.disk import Disk
from contextplane.app.registry.audit import audit_registry, renew_checkpoint
from contextplane.app.registry.fsck import registry_comparison
from contextplane.app.registry.memory import RegistryMemory
from contextplane.app.registry.pins import set_protection
from contextplane.app.registry.resolve import resolve_request
from contextplane.app.settings import Settings, from_environment
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.ports.catalog import Catalog, View
from contextplane.registry.authority import environment_role
from contextplane.registry.events import EnvironmentOpened
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.resolution import ResolveRequest
from contextplane.registry.streams import CHECKPOINTS, environment_stream
from contextplane.registry.version_state import Use
from contextplane.registry.writer import PlannedChange
from contextplane.trust.compatibility import RuntimeCapabilities
from tests.support.cases import cases
from tests.support.forged_log import forge_log
from tests.unit.registry.desk import Clock, Office, code, desk_in, office
from tests.unit.registry.tampering import Stolen, copied
from tests.unit.trust.world import key_of


class Client:
    """A client of one registry: a folder with a store, opened and closed as commands do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.catalog = folder / ".ctx" / "catalog.db"
        self.clock.moment += timedelta(days=1)
        with office(folder) as made:
            made.trust("ops", "operator", *map(environment_role, ("dev", "test", "prod", "other0", "other1")))
            self.memory = Path(made.desk.platform.client_state.path)

    @contextmanager
    def here(self) -> Iterator[Office]:
        with desk_in(Settings(cwd=str(self.folder)), self.clock) as made:
            yield made

    def open_environment(self, name: str) -> None:
        with self.here() as here:
            plan = PlannedChange(stream=environment_stream(name), change=EnvironmentOpened(), reason="to try")
            here.desk.act(key_of("ops"), [plan])

    def look(self) -> bool:
        with self.here() as here, here.desk.read() as reader:
            return reader.environment("dev").protected

    def size(self) -> int:
        """The size of the log that it saw last."""
        with self.here() as here:
            seen = here.desk.memory.load()
        assert seen is not None
        return seen.size

    def put_back(self, copy: Path) -> None:
        """An older catalog in the place of the newer one."""
        for name in ("catalog.db", "catalog.db-wal", "catalog.db-shm"):
            (self.catalog.parent / name).unlink(missing_ok=True)
        copied(copy, self.catalog)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    made = Client(tmp_path)
    made.open_environment("dev")
    return made


def test_the_highest_checkpoint_is_kept_where_only_its_owner_can_reach_it(client: Client) -> None:
    before = client.size()
    assert client.memory.stat().st_mode & 0o777 == 0o600
    assert client.folder not in client.memory.parents  # who writes the store does not write this
    client.open_environment("test")
    assert client.size() == before + 1


def test_a_registry_that_was_rolled_back_is_refused_by_readers_and_writers(client: Client, tmp_path: Path) -> None:
    copied(client.catalog, tmp_path / "old.db")
    client.open_environment("test")
    client.put_back(tmp_path / "old.db")
    assert code(client.look) == "log_rolled_back"
    assert code(lambda: client.open_environment("prod")) == "log_rolled_back"
    client.memory.unlink()
    assert client.look() is False  # whoever never saw more believes it


@pytest.mark.parametrize(("acts", "expected"), [(1, "log_forked"), (2, "log_rewritten")])
def test_a_registry_that_went_another_way_is_refused(client: Client, tmp_path: Path, acts: int, expected: str) -> None:
    copied(client.catalog, tmp_path / "old.db")
    client.open_environment("test")
    mine = client.memory.read_bytes()
    client.put_back(tmp_path / "old.db")
    client.memory.unlink()
    for n in range(acts):
        client.open_environment(f"other{n}")
    client.memory.write_bytes(mine)
    assert code(client.look) == expected


def test_a_fresh_checkpoint_that_was_seen_cannot_be_taken_away_again(client: Client) -> None:
    with client.here() as here:
        result = audit_registry(here.desk, lambda _size, _events: None)
        renew_checkpoint(here.desk, result, key_of("ops"))
    assert client.look() is False
    Stolen(client.catalog).cut(CHECKPOINTS)
    assert code(client.look) == "log_rolled_back"


def test_a_store_that_went_back_is_not_signed_again_though_a_revoked_key_signed_it_last(
    client: Client, tmp_path: Path
) -> None:
    with client.here() as here:
        here.desk.keys.revoke(key_of("ops").public_key.key_id, "lost", key_of("root"))
        copied(client.catalog, tmp_path / "old.db")
        here.record()
    client.put_back(tmp_path / "old.db")
    with client.here() as here:
        with here.desk.platform.catalog.write() as tx:
            forge_log(tx, [], signer=key_of("ops"), at=here.desk.keys.clock, origin=here.desk.origin)
        assert code(lambda: here.base("dev")) == "note_unsigned"
        result = audit_registry(here.desk, lambda _size, _events: None)
        assert {problem.code for problem in result.problems} == {"note_unsigned", "log_rolled_back"}
        assert code(lambda: renew_checkpoint(here.desk, result, key_of("root"))) == "registry_unsound"


def test_a_log_with_fewer_entries_than_are_signed_is_truncated(client: Client) -> None:
    Stolen(client.catalog).cut("registry/log")
    assert code(client.look) == "log_truncated"


@pytest.mark.parametrize("data", [b"", b"{}", b'{"note":"x"}', b'{"note":"\\ud800"}', b"\xff", b'{"note":"\xff"}'])
def test_a_memory_that_is_none_is_told_of_and_not_begun_anew(client: Client, data: bytes) -> None:
    client.memory.write_bytes(data)
    assert code(client.look) == "client_state_invalid"


def test_a_checkpoint_that_is_none_is_told_of_and_not_begun_anew(client: Client) -> None:
    with client.here() as here:
        here.desk.platform.client_state.update(lambda memory: replace(memory, note="no checkpoint\n\n"))
    assert code(client.look) == "registry_memory_invalid"


class FullDisk(Disk):
    """No byte goes onto it any more."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        raise OSError(errno.ENOSPC, f"no room for {len(data)} bytes in {fd}")


def test_what_was_done_is_done_also_when_there_is_no_room_to_remember_it(client: Client) -> None:
    """Whoever is told that it failed does it again; a rollback done twice would be another one."""
    before = client.memory.read_bytes()
    with client.here() as here:
        full = ClientState(str(client.memory.parent), str(client.folder / ".ctx"), FullDisk())
        assert full.path == str(client.memory)
        here.desk.memory = here.desk.keys.memory = RegistryMemory(full, here.desk.origin)
        here.trust("ops2", "operator", environment_role("qa"))
        assert set_protection(here.desk, "qa", protected=False, by=here.by("ops2"))
        with here.desk.read() as reader:
            assert not reader.environment("qa").protected
    assert client.memory.read_bytes() == before
    assert client.look() is False


def test_a_memory_that_others_can_write_is_not_believed(client: Client) -> None:
    client.memory.chmod(0o666)
    assert code(client.look) == "client_state_invalid"


def test_who_reads_while_another_writes_sees_what_he_sees_and_forgets_nothing(client: Client) -> None:
    before = client.size()
    with client.here() as here, here.desk.read() as reader:
        client.open_environment("test")
        assert reader.environment("test").protected
    assert client.size() == before + 1


def test_who_looks_at_the_keyring_while_another_changes_it_forgets_nothing(client: Client) -> None:
    with client.here() as slow, client.here() as quick:
        catalog = slow.desk.platform.catalog

        @contextmanager
        def reading() -> Iterator[View]:
            with catalog.read() as view:
                yield view
            quick.trust("another")

        quick.trust("one")
        client.memory.unlink()
        slow.desk.platform.catalog = cast("Catalog", SimpleNamespace(read=reading, close=catalog.close))
        known = slow.desk.keys.keyring
        assert slow.desk.platform.client_state.load().keyring_seq == known.seq + 1


def compared_in_a_view(here: Office) -> None:
    compare = registry_comparison(here.desk.platform)
    with here.desk.platform.catalog.read() as view:
        assert [finding.why for finding in compare(view)] == []


ACTS_IN_A_VIEW: dict[str, tuple[int, Callable[[Office], object]]] = {
    "the time of an act": (1, lambda here: here.desk.keys.now),
    "the keys that are trusted": (1, lambda here: here.desk.keys.keyring),
    "what fsck compares": (2, compared_in_a_view),
}
"""Each with the number of the view during which another process is quicker."""


@cases("name", ACTS_IN_A_VIEW)
def test_a_keyring_that_another_process_changed_and_saved_meanwhile_is_not_rolled_back(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    client = Client(tmp_path_factory.mktemp("client"))
    with client.here() as slow, client.here() as quick:
        catalog = slow.desk.platform.catalog
        number, act = ACTS_IN_A_VIEW[name]
        views = count(1)

        @contextmanager
        def reading() -> Iterator[View]:
            with catalog.read() as view:
                view.streams.head("trust/keyring")  # the snapshot is taken by the first read
                if next(views) == number:
                    quick.trust("another")
                yield view

        slow.desk.platform.catalog = cast("Catalog", SimpleNamespace(read=reading, close=catalog.close))
        act(slow)
        assert next(views) > number


def test_a_lower_checkpoint_than_the_one_that_is_kept_changes_nothing(client: Client) -> None:
    with client.here() as here, here.desk.read() as reader:
        earlier = REGISTRY_LOG.newest_checkpoint(reader.streams, reader.keyrings, reader.check, here.desk.origin)
        before = client.size()
        client.open_environment("test")
        here.desk.memory.save(earlier)
        here.desk.memory.save(None)
    assert client.size() == before + 1


def test_a_run_gets_what_is_pinned_and_by_that_its_client_knows_the_checkpoint(here: Office) -> None:
    here.pin("prod", here.release())
    assert ends(here) == "ok"
    seen = here.desk.memory.load()
    assert seen is not None
    assert seen.size == 19  # 8 changes of the keyring, and 11 events
    Stolen(Path(here.desk.platform.home.catalog)).cut("registry/pins/prod/ctxpack.support")
    assert ends(here) == "registry_stream_cut"


def test_a_registry_in_which_nothing_was_signed_for_too_long_takes_no_new_traffic_until_somebody_does(
    here: Office,
) -> None:
    here.pin("prod", here.release())
    clock = here.desk.platform.clock
    assert isinstance(clock, Clock)
    clock.moment += timedelta(hours=2)
    assert (ends(here), ends(here, max_age=3600), ends(here, max_age=3 * 3600)) == ("ok", "registry_frozen", "ok")
    assert ends(here, max_age=3600, purpose="replay") == "ok"
    renew_checkpoint(here.desk, audit_registry(here.desk, lambda _size, _events: None), key_of("ops"))
    assert ends(here, max_age=3600) == "ok"


def ends(here: Office, *, max_age: int | None = None, purpose: Use = "new_traffic") -> str:
    ref = PackRef.parse("ctxpack.support@1.0.0")
    request = ResolveRequest(refs=(ref,), tenant="tenant_acme_prod", environment="prod", purpose=purpose)
    try:
        resolve_request(here.desk, request, RuntimeCapabilities(ontologies=("ont.support@1.0.0",)), max_age=max_age)
    except ContextPlaneError as error:
        return error.code
    return "ok"


def test_the_age_that_is_allowed_comes_from_the_environment_and_a_slip_allows_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CTX_REGISTRY_MAX_AGE", raising=False)
    assert from_environment().registry_max_age is None
    for text, expected in (("3600", 3600), ("0", 0), ("an hour", 0), ("-5", 0), ("", 0), ("  ", 0), ("\n", 0)):
        monkeypatch.setitem(os.environ, "CTX_REGISTRY_MAX_AGE", text)
        assert from_environment().registry_max_age == expected


def test_a_new_store_in_the_place_of_an_old_one_is_no_replacement_if_its_user_made_it(tmp_path: Path) -> None:
    with office(tmp_path) as here:
        here.record()
    shutil.rmtree(tmp_path / ".ctx")
    with office(tmp_path) as here:
        assert here.record().stage == "linted"


def test_another_store_that_somebody_put_in_the_place_of_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with office(tmp_path / "other"), office(tmp_path) as here:
        here.record()
    shutil.rmtree(tmp_path / ".ctx")
    shutil.move(tmp_path / "other" / ".ctx", tmp_path / ".ctx")
    with desk_in(Settings(cwd=str(tmp_path)), Clock()) as here:
        assert code(lambda: here.base("prod")) == "store_replaced"
