"""The registry in the care of its store: checked, kept by collections, and its index made again from its streams."""

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextplane.app.init import init
from contextplane.app.registry.audit import audit_registry
from contextplane.app.registry.fsck import registry_comparison, registry_indexing, registry_retention
from contextplane.app.repair import open_repaired
from contextplane.app.settings import Settings
from contextplane.app.status import registry_summary
from contextplane.model.catalog import Event, IndexedObject
from contextplane.model.execution.references import EXECUTION_PACK
from contextplane.model.handoff import HANDOFF_REVISION, HANDOFFS
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import NO_TIME
from contextplane.registry.events import Drafted, Published, RegistryEvent, sign_event
from contextplane.registry.stream_heads import HEAD_NODES
from contextplane.registry.streams import CHECKPOINTS, REGISTRY, artifact_stream
from contextplane.registry.writer import rebuild_index
from contextplane.store.damage import FsckFinding
from contextplane.store.find import PACKS
from contextplane.store.fsck import fsck
from contextplane.store.gc import GcBlocked, gc
from contextplane.store.rebuild import rebuild
from contextplane.trust.checkpoint import Checkpoint, signed_checkpoint
from tests.postgres import shared_url
from tests.unit.registry.backdating import slipped_in
from tests.unit.registry.desk import Clock, Office, code, desk_in, office
from tests.unit.registry.tampering import Stolen
from tests.unit.trust.world import key_of, revoke

VERSION = "registry/version/ctxpack.support@1.0.0"


def findings(here: Office) -> list[FsckFinding]:
    platform = here.desk.platform
    others = [registry_comparison(platform)]
    with closing(fsck(platform.catalog, platform.entries, platform.objects, lambda *_: None, others)) as problems:
        return list(problems)


def fsck_states(here: Office) -> set[tuple[str, str]]:
    return {(finding.state, finding.what) for finding in findings(here)}


def checkpoints(here: Office) -> int:
    with here.desk.platform.catalog.read() as view:
        return view.streams.head(CHECKPOINTS)


def index(here: Office) -> dict[str, IndexedObject | None]:
    with here.desk.platform.catalog.read() as view:
        return {name: view.objects.lookup(digest) for name, digest in view.objects.roots(REGISTRY)}


def a_store(folder: Path, database_url: str | None = None) -> Settings:
    """A store with a registry in which a version was published and pinned."""
    with office(folder, database_url) as here:
        here.pin("prod", here.release())
    return Settings(cwd=str(folder), database_url=database_url)


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    return a_store(tmp_path, shared_url() if request.param == "postgres" else None)


@pytest.fixture
def in_file(tmp_path: Path) -> Settings:
    return a_store(tmp_path)


@pytest.fixture
def there(settings: Settings) -> Iterator[Office]:
    clock = Clock()
    clock.moment += timedelta(days=1)
    with desk_in(settings, clock) as made:
        yield made


def thief(settings: Settings) -> Stolen:
    return Stolen(Path(settings.cwd) / ".ctx" / "catalog.db")


def test_a_sound_registry_is_sound_and_nothing_of_it_is_collected(there: Office) -> None:
    assert findings(there) == []
    platform = there.desk.platform
    before = index(there)
    limit = platform.clock.now() + timedelta(days=36500)
    done = gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=False)
    assert done.objects == ()
    assert index(there) == before != {}
    assert there.stage("ctxpack.support@1.0.0") == "published"


def test_while_nothing_keeps_what_it_names_nothing_is_collected(there: Office) -> None:
    platform = there.desk.platform
    limit = platform.clock.now() + timedelta(days=36500)
    before = set(platform.objects.names())
    others = [registry_retention(platform)]
    with platform.catalog.write() as tx:
        for name, _ in list(tx.objects.roots(REGISTRY)):
            tx.objects.release(name)
    with pytest.raises(GcBlocked):
        gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=False, others=others)
    assert set(platform.objects.names()) == before
    rebuild(platform.catalog, platform.entries, platform.objects, others=[registry_indexing(platform)])
    done = gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=False, others=others)
    assert done.objects == ()


def test_an_event_that_names_one_object_as_three_kinds_does_not_stop_collecting_for_good(there: Office) -> None:
    """A key without a right put it into the log, where it is void and stays."""
    platform, data = there.desk.platform, b"nothing of the kind"
    digest = str(platform.objects.put(data))
    with platform.catalog.write() as tx:
        tx.objects.record(IndexedObject(digest=Digest.of(data), kind="blob", size=len(data), traced=True))
    change = Published(
        digest=digest,
        kind="context_pack",
        issuer="tenant_acme_prod",
        envelope=digest,
        report=digest,
        golden="not_run",
        after="",
    )
    with there.desk.read() as reader:
        entry, keyring = reader.streams.head("registry/log"), reader.keyrings.now.seq
    now, origin = there.desk.keys.now, there.desk.origin
    event = RegistryEvent(
        subject="registry/version/ctxpack.support@7.0.0",
        seq=1,
        previous="",
        entry=entry,
        keyring=keyring,
        at=str(now),
        reason="because I can",
        change=change,
        origin=origin,
    )
    slipped_in(platform.catalog, event, by="author", until=now, origin=origin)
    limit, others = platform.clock.now() + timedelta(days=36500), [registry_retention(platform)]
    with pytest.raises(GcBlocked):
        gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=False, others=others)
    rebuild(platform.catalog, platform.entries, platform.objects, others=[registry_indexing(platform)])
    gc(platform.catalog, platform.entries, platform.objects, older_than=limit, dry_run=False, others=others)
    assert there.stage("ctxpack.support@1.0.0") == "published"


def test_its_index_is_made_again_from_its_streams(settings: Settings) -> None:
    with desk_in(settings, Clock()) as there:
        before = index(there)
        with there.desk.platform.catalog.write() as tx:
            for name, digest in list(tx.objects.roots(REGISTRY)):
                tx.objects.release(name)
                tx.objects.forget(digest)
            tx.marks.clear()
        states = {finding.state for finding in findings(there)}
        assert states == {"index", "orphaned"}
        assert code(lambda: there.stage("ctxpack.support@1.0.0")) == "registry_heads_damaged"
    with open_repaired(settings):
        pass
    with desk_in(settings, Clock()) as there:
        assert findings(there) == []
        assert index(there) == before
        assert there.stage("ctxpack.support@1.0.0") == "published"
        assert audit_registry(there.desk, lambda *_: None).sound


@pytest.mark.parametrize("kind", ["registry_report", "registry_envelope", "execution_pack", "handoff_revision", "x"])
def test_a_rebuild_makes_a_wrong_kind_right_by_the_events(settings: Settings, kind: str) -> None:
    with desk_in(settings, Clock()) as there:
        before = index(there)
        with there.desk.platform.catalog.write() as tx:
            for recorded in before.values():
                assert recorded is not None
                tx.objects.forget(recorded.digest)
                tx.objects.record(replace(recorded, kind=kind))
        assert "index" in {finding.state for finding in findings(there)}
    with open_repaired(settings):
        pass
    with desk_in(settings, Clock()) as there:
        assert findings(there) == []
        assert index(there) == before


def test_a_rebuild_leaves_a_pack_what_it_is_whatever_an_event_calls_it(there: Office) -> None:
    """An event that its signer had no right to make is still an event here."""
    platform = there.desk.platform
    pack = platform.objects.put(b'{"not":"read"}')
    with platform.catalog.write() as tx:
        tx.objects.record(IndexedObject(digest=pack, kind=EXECUTION_PACK, size=14, traced=False))
        tx.objects.keep(PACKS + pack.hex, pack)
        linked = platform.objects.put(b"{}")
        tx.objects.record(IndexedObject(digest=linked, kind=EXECUTION_PACK, size=2, traced=False))
        tx.objects.link(linked, "part", pack)
        revision = platform.objects.put(b"[]")
        tx.objects.record(IndexedObject(digest=revision, kind=HANDOFF_REVISION, size=2, traced=True))
        tx.objects.keep(f"{HANDOFFS}pk_x/1", revision)
        for digest in (pack, linked, revision):
            body = sign_event(_drafted(digest), key_of("author"))
            tx.streams.append(artifact_stream(digest), 0, [Event(kind="drafted", body=body)])
        rebuild_index(tx, lambda _digest: 14)
        assert tx.objects.targets(linked) == (("part", pack),)
        kinds = [tx.objects.lookup(digest) for digest in (pack, linked, revision)]
    assert [recorded and recorded.kind for recorded in kinds] == [EXECUTION_PACK, EXECUTION_PACK, HANDOFF_REVISION]


def _drafted(digest: Digest) -> RegistryEvent:
    return RegistryEvent(
        subject=artifact_stream(digest),
        seq=1,
        previous="",
        entry=0,
        keyring=1,
        at="2030-01-01T00:00:00Z",
        reason="to try",
        change=Drafted(kind="context_pack", id="x", version="1.0.0", issuer="y"),
    )


def test_a_rebuild_gives_no_blessing_to_what_is_not_signed(in_file: Settings) -> None:
    thief(in_file).cut(VERSION)
    with desk_in(in_file, Clock()) as there:
        assert ("corrupt", VERSION) in fsck_states(there)
    with open_repaired(in_file):
        pass
    with desk_in(in_file, Clock()) as there:
        assert ("corrupt", VERSION) in fsck_states(there)
        assert code(lambda: there.stage("ctxpack.support@1.0.0")) == "registry_stream_cut"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DELETE FROM event WHERE stream = 'registry/log' AND seq = 19", ("corrupt", "registry/log")),
        ("DELETE FROM event WHERE stream = 'registry/checkpoints'", ("corrupt", CHECKPOINTS)),
        ("DELETE FROM event WHERE stream = 'trust/keyring' AND seq = 8", ("corrupt", "trust/keyring")),
        ("UPDATE event SET body = x'7b7d' WHERE stream = 'trust/keyring' AND seq = 1", ("corrupt", "trust/keyring")),
        ("DELETE FROM event", ("corrupt", "trust/keyring")),
    ],
)
def test_what_is_wrong_with_its_structure_is_found(in_file: Settings, sql: str, expected: tuple[str, str]) -> None:
    thief(in_file).run(sql)
    with desk_in(in_file, Clock()) as there:
        assert expected in fsck_states(there)


def test_any_node_of_the_ends_of_streams_that_is_missing_is_found(in_file: Settings) -> None:
    catalog = thief(in_file)
    nodes = catalog.ask("SELECT name, value FROM mark WHERE name LIKE ?", f"{HEAD_NODES}%")
    assert nodes
    with desk_in(in_file, Clock()) as there:
        for name, text in nodes:
            catalog.run("DELETE FROM mark WHERE name = ?", name)
            assert fsck_states(there) == {("index", name)}
            catalog.run("INSERT INTO mark (name, value) VALUES (?, ?)", name, text)
        assert findings(there) == []


def test_an_event_of_a_draft_that_was_changed_is_found(in_file: Settings) -> None:
    catalog = thief(in_file)
    ((stream,),) = catalog.ask("SELECT DISTINCT stream FROM event WHERE stream LIKE 'registry/artifact%'")
    assert isinstance(stream, str)
    catalog.reword(stream, 2, b"2030", b"2031")
    with desk_in(in_file, Clock()) as there:
        assert [(state, what.partition("@")[0]) for state, what in fsck_states(there)] == [("corrupt", stream)]


def test_a_node_that_belongs_to_no_end_of_a_stream_is_found(in_file: Settings) -> None:
    thief(in_file).run(
        "INSERT INTO mark SELECT name || '0', value FROM mark WHERE name LIKE ? LIMIT 1", f"{HEAD_NODES}%"
    )
    with desk_in(in_file, Clock()) as there:
        ((state, what),) = fsck_states(there)
    assert (state, what.startswith(HEAD_NODES)) == ("index", True)


def test_a_memory_that_cannot_be_read_leaves_open_whether_it_is_sound(in_file: Settings) -> None:
    with desk_in(in_file, Clock()) as there:
        memory = Path(there.desk.platform.client_state.path)
        memory.write_bytes(b"{}")
        assert fsck_states(there) == {("unreadable", str(memory))}


def test_a_registry_that_waits_to_be_signed_anew_is_not_called_damaged_and_the_way_out_is_told(there: Office) -> None:
    there.change_keys(revoke(key_of("ops"), NO_TIME))
    (finding,) = findings(there)
    assert (finding.state, finding.what) == ("unreadable", f"{CHECKPOINTS}@{checkpoints(there)}")
    assert finding.why.startswith("note_unsigned: the key that signed the newest checkpoint is revoked")
    assert "('ctx verify --registry --sign --key KEY'" in finding.why


def test_a_checkpoint_that_no_trusted_key_signed_is_damage(in_file: Settings) -> None:
    checkpoint = Checkpoint(origin="x", size=1, root=bytes(32), time=NO_TIME, heads=bytes(32))
    with desk_in(in_file, Clock()) as there:
        newest = checkpoints(there)
        thief(in_file).put(CHECKPOINTS, newest, canonical(signed_checkpoint(checkpoint, key_of("mallory")).decode()))
        assert fsck_states(there) == {("corrupt", f"{CHECKPOINTS}@{newest}")}


def test_a_store_says_in_a_line_what_its_registry_is(there: Office) -> None:
    summary = registry_summary(there.desk.platform)
    assert summary is not None
    assert summary.events == 19  # 8 of them are changes of the keyring
    assert summary.checkpoint is not None


def test_a_store_without_a_registry_says_nothing_of_one(tmp_path: Path) -> None:
    settings = Settings(cwd=str(tmp_path))
    init(settings)
    with desk_in(settings, Clock()) as there:
        assert registry_summary(there.desk.platform) is None
        assert findings(there) == []
