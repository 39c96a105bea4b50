"""Handoff packs survive gc while they are served, and survive the loss of the catalog."""

from pathlib import Path

import msgspec

from contextplane.app.handoff.session import open_handoffs
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import HandoffSettings, Settings
from contextplane.model.catalog import Event
from contextplane.model.handoff import (
    MAX_GRACE_SECONDS,
    HandoffDocument,
    HandoffPack,
    grace_event_body,
    pack_bytes,
    parse_grace,
)
from contextplane.model.ids import HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.store.handoff_stream import longest_grace
from tests.surfaces.agents import serving
from tests.surfaces.commands import Result, ctx
from tests.unit.handoff.reference_root import ReferencePacks

OLD, ONE = "pk_zzzzzzzz", "pk_aaaaaaaa"
NOW = Timestamp.parse("2026-05-04T09:30:00Z")


def json_answer(result: Result, *, status: int = 0) -> dict[str, object]:
    assert result.status == status, result.err
    return msgspec.json.decode(result.raw, type=dict[str, object])


def settings_of(folder: Path, grace_seconds: int = 900) -> Settings:
    return Settings(cwd=str(folder), handoff=HandoffSettings(grace_seconds=grace_seconds))


def a_pack(**overrides: object) -> HandoffPack:
    fields: dict[str, object] = {
        "id": ONE,
        "name": None,
        "title": "t",
        "brief": None,
        "status": "draft",
        "tags": (),
        "sections": (),
        "revision": 1,
        "created_at": str(NOW),
        "updated_at": str(NOW),
        "expires_at": "2999-01-01T00:00:00Z",
    }
    return HandoffPack(**(fields | overrides))  # type: ignore[arg-type]


# --- collecting -------------------------------------------------------------------------------------------------------


def test_what_a_server_still_serves_is_not_collected_by_somebody_who_knows_no_such_grace_time(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    ReferencePacks(tmp_path / ".agents" / "mcp" / "context_pack").write(OLD, expires_at="2026-01-01T00:00:00Z")
    with serving(tmp_path, {"CONTEXT_PACK_EXPIRED_GRACE_SECONDS": "3153600000"}) as agent:
        assert agent.does("get", id=OLD)["revision"] == 3
        assert json_answer(ctx("gc", "--grace", "0s", "--json", cwd=tmp_path))["handoffs"] == []
        assert agent.does("get", id=OLD)["revision"] == 3


def test_every_pack_that_is_collected_is_named_also_by_a_dry_run(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    init(settings, ".")
    with open_handoffs(settings) as session:
        kept, gone = (session.repository.write(HandoffDocument(sections=(), name=name)) for name in ("kept", "gone"))
        session.repository.write(HandoffDocument(sections=()), identity="gone", expected_revision=1)
        session.repository.delete("gone")
    named = [{"id": gone.pack.id, "revisions": [1, 2], "why": "deleted"}]
    for flags in (["--dry-run"], ["--dry-run"], []):
        assert json_answer(ctx("gc", "--grace", "0s", "--json", *flags, cwd=tmp_path))["handoffs"] == named
    assert json_answer(ctx("gc", "--grace", "0s", "--json", cwd=tmp_path))["handoffs"] == []
    with open_handoffs(settings) as session:
        session.repository.delete("kept")
    result = ctx("gc", "--grace", "0s", "--dry-run", cwd=tmp_path)
    assert f"would remove  {kept.pack.id}  a handoff pack with 1 revision, deleted" in result.out


def test_the_longest_grace_time_that_was_ever_told_counts_and_is_told_once(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    for seconds in (900, 5000, 0, 5000, 10**20, 7000, 10**20):
        with open_handoffs(settings_of(tmp_path, seconds)) as session:
            assert session.repository.list().total == 0
    with open_platform(Settings(cwd=str(tmp_path))) as platform, platform.catalog.read() as view:
        bodies = [event.body for event in view.streams.read("handoff_grace")]
        assert longest_grace(view.streams) == MAX_GRACE_SECONDS
    assert [msgspec.json.decode(body)["grace_seconds"] for body in bodies] == [5000, MAX_GRACE_SECONDS]


def test_a_grace_time_that_is_not_understood_is_for_ever_and_without_one_it_is_the_default(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    with open_platform(Settings(cwd=str(tmp_path))) as platform, platform.catalog.write() as tx:
        assert longest_grace(tx.streams) == 900
        for seq, (seconds, longest) in enumerate([(1000, 1000), (10, 1000)]):
            tx.streams.append("handoff_grace", seq, [Event(kind="longer", body=grace_event_body(seconds, NOW))])
            assert longest_grace(tx.streams) == longest
        tx.streams.append("handoff_grace", 2, [Event(kind="longer", body=b"{}")])
        assert longest_grace(tx.streams) == parse_grace(b"\xff") == MAX_GRACE_SECONDS


# --- a lost catalog ---------------------------------------------------------------------------------------------------


def lose_the_catalog(folder: Path) -> None:
    for path in (folder / ".ctx").glob("catalog.db*"):
        path.unlink()


def test_the_packs_of_a_lost_catalog_are_found_again_among_the_objects(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    init(settings, ".")
    with open_handoffs(settings) as session:
        first = session.repository.write(HandoffDocument(sections=(), name="plan", title="\u00e9"))
        large = HandoffDocument(sections=(), brief="x" * 70_000)
        second = session.repository.write(large, identity="plan", expected_revision=1)
        other = session.repository.write(HandoffDocument(sections=()))
    lose_the_catalog(tmp_path)
    report = json_answer(ctx("fsck", "--rebuild", "--json", cwd=tmp_path), status=1)
    rebuilt = report["rebuilt"]
    assert isinstance(rebuilt, dict)
    named = [f"{first.pack.id}@1", f"{first.pack.id}@2", f"{other.pack.id}@1"]
    assert (rebuilt["handoffs"], rebuilt["adopted"], rebuilt["unclear"]) == (2, sorted(named), [])
    assert report["sound"]
    with open_handoffs(settings) as session:
        assert session.repository.get("plan").pack == second.pack
        assert session.repository.revision(first.pack.handoff_id, 1) == first.pack
        assert session.repository.page_key() == session.repository.page_key()
        history = session.repository.history(HandoffId(first.pack.id))
        assert [(event.kind, event.revision) for event in history.events] == [("imported", 1), ("imported", 2)]
        third = session.repository.write(HandoffDocument(sections=()), identity="plan", expected_revision=2)
        assert third.pack.revision == 3
    # Nothing was lost this time, so nothing is looked for.
    assert "adopted" not in ctx("fsck", "--rebuild", cwd=tmp_path).out


def test_only_what_is_exactly_a_revision_is_adopted_and_only_once(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    good, twin, lone = a_pack(), a_pack(id=OLD), a_pack(id="pk_bbbbbbbb", revision=7)
    others = [
        pack_bytes(good) + b"\n",
        pack_bytes(a_pack(id="PK_CCCCCCCC")),
        pack_bytes(a_pack(id="pk_cccccccc", revision=0)),
        pack_bytes(a_pack(id="pk_dddddddd", updated_at="yesterday")),
        pack_bytes(a_pack(id="pk_eeeeeeee", schema_version=3)),
        pack_bytes(a_pack(id="pk_ffffffff"))[:-1],
        b'{"brief":',
        b"",
    ]
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        for data in (*map(pack_bytes, (good, twin, lone, a_pack(id=OLD, title="another"))), *others):
            platform.objects.put(data)
    lose_the_catalog(tmp_path)
    result = ctx("fsck", "--rebuild", cwd=tmp_path)
    assert result.status == 1
    adopted = [line.split()[1] for line in result.out.splitlines() if line.startswith("adopted")]
    assert adopted == [f"{ONE}@1", "pk_bbbbbbbb@7"]
    assert f"not adopted  {OLD}" in result.out
    with open_handoffs(Settings(cwd=str(tmp_path))) as session:
        assert session.repository.list().total == 2


def test_a_check_counts_the_revisions_that_are_no_files_yet(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    init(settings, ".")
    obstacle = tmp_path / ".ctx" / "objects" / ".staging"
    with open_handoffs(settings) as session:
        session.repository.write(HandoffDocument(sections=(), brief="small"))
        obstacle.rename(tmp_path / "aside")  # so that nothing can become a file
        obstacle.write_bytes(b"")
    report = json_answer(ctx("fsck", "--json", cwd=tmp_path))
    assert (report["objects"], report["sound"]) == (1, True)
