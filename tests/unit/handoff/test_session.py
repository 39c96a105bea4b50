"""Which store handoff packs are in, when it is made, and what is taken in from a reference root."""

import json
import os
from pathlib import Path

import pytest

from contextplane.adapters.files.store_dir import StoreOfAnotherUser
from contextplane.app.handoff.place import handoff_paths
from contextplane.app.handoff.session import HandoffSession, open_handoffs
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import HandoffSettings, Settings, from_environment
from contextplane.handoff.errors import HandoffInvalid, HandoffNotFound, RevisionConflict
from contextplane.model.ids import HandoffId
from tests.unit.handoff.reference_root import ReferencePacks
from tests.unit.handoff.repositories import document, section

ONE, TWO, THREE = "pk_aaaaaaaa", "pk_bbbbbbbb", "pk_cccccccc"


def settings_of(folder: Path, *, root: Path | None = None, grace_seconds: int = 900) -> Settings:
    handoff = HandoffSettings(root=str(root) if root else None, grace_seconds=grace_seconds)
    return Settings(cwd=str(folder), handoff=handoff)


def refused_imports(handoffs: HandoffSession) -> dict[str, str]:
    assert handoffs.import_result is not None
    return dict(handoffs.import_result.refused)


# --- which store ------------------------------------------------------------------------------------------------------


def test_the_root_that_was_named_wins_over_the_store_that_is_found(tmp_path: Path) -> None:
    default = tmp_path / ".agents" / "mcp" / "context_pack"
    assert handoff_paths(Settings(cwd=str(tmp_path))) == (str(default / ".ctx"), str(default))
    init(Settings(cwd=str(tmp_path)), ".")
    inner = tmp_path / "inner"
    inner.mkdir()
    there = inner / ".agents" / "mcp" / "context_pack"
    assert handoff_paths(Settings(cwd=str(inner))) == (str(tmp_path / ".ctx"), str(there))
    named = HandoffSettings(root="packs here")
    root = inner / "packs here"
    assert handoff_paths(Settings(cwd=str(inner), handoff=named)) == (str(root / ".ctx"), str(root))
    elsewhere = Settings(cwd=str(inner), ctx_dir="other")
    assert handoff_paths(elsewhere)[0] == str(inner / "other")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_packs_of_another_user_in_this_folder_are_used_only_when_they_are_named(tmp_path: Path) -> None:
    store = tmp_path / ".agents" / "mcp" / "context_pack" / ".ctx"
    store.parent.mkdir(parents=True)
    init(Settings(cwd=str(tmp_path)), str(store))
    os.chown(store, 65534, 65534)
    with pytest.raises(StoreOfAnotherUser):
        handoff_paths(Settings(cwd=str(tmp_path)))
    assert handoff_paths(Settings(cwd=str(tmp_path), ctx_dir=str(store)))[0] == str(store)
    assert handoff_paths(Settings(cwd=str(tmp_path), sudo_uid=65534))[0] == str(store)


def test_packs_stay_found_when_a_store_is_made_around_them_later(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    with open_handoffs(settings_of(inner)) as handoffs:
        written = handoffs.repository.write(document(name="plan"))
    for folder in (tmp_path, inner):
        init(Settings(cwd=str(folder)), ".")
        with open_handoffs(settings_of(inner)) as handoffs:
            assert handoffs.repository.get("plan").pack == written.pack
    named = Settings(cwd=str(inner), ctx_dir=str(tmp_path / ".ctx"))
    with open_handoffs(named) as handoffs, pytest.raises(HandoffNotFound):
        handoffs.repository.get("plan")


def test_nothing_is_made_before_the_first_write_that_succeeds(tmp_path: Path) -> None:
    with open_handoffs(settings_of(tmp_path)) as handoffs:
        assert handoffs.repository.list().total == 0
        assert handoffs.repository.page_key()
        with pytest.raises(HandoffNotFound):
            handoffs.repository.get("plan")
        with pytest.raises(HandoffNotFound):
            handoffs.repository.write(document(), identity="plan", expected_revision=1)
        assert not handoffs.repository.delete(ONE).deleted
        assert not handoffs.repository.write(document(name="plan"), validate_only=True).stored
        with pytest.raises(HandoffInvalid):
            handoffs.repository.write(document(section("scope", "x" * 600_000)))
        assert list(tmp_path.iterdir()) == []
        written = handoffs.repository.write(document(name="plan"))
        assert written.stored
        assert handoffs.repository.get("plan").pack == written.pack
        with open_handoffs(settings_of(tmp_path)) as other:
            assert other.repository.get("plan").pack == written.pack
    assert (tmp_path / ".agents" / "mcp" / "context_pack" / ".ctx" / "config.json").is_file()


def test_a_store_that_another_process_makes_is_seen_without_starting_again(tmp_path: Path) -> None:
    with open_handoffs(settings_of(tmp_path)) as early, open_handoffs(settings_of(tmp_path)) as maker:
        assert early.repository.list().total == 0
        written = maker.repository.write(document(name="plan"))
        assert early.repository.get("plan").pack == written.pack


def test_the_environment_is_read_as_the_reference_server_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("CONTEXT_PACK_"):
            monkeypatch.delenv(name)
    assert from_environment().handoff == HandoffSettings()
    for nonsense in ("", "0", "-1", "many", "1.5", "\u0663", "9" * 5000):
        monkeypatch.setenv("CONTEXT_PACK_MAX_PACK_BYTES", nonsense)
        assert from_environment().handoff.max_pack_bytes == 512 * 1024
    for here in ("", " . ", "CWD", "__SESSION_CWD__", "session_cwd"):
        monkeypatch.setenv("CONTEXT_PACK_SOURCE_ROOT", here)
        assert from_environment().handoff.source_root == "."
    for name, value in {
        "ROOT": "/r",
        "SOURCE_ROOT": "/s",
        "LOG": "debug",
        "INITIALIZE_TIMEOUT_MS": "5",
        "MAX_PACK_BYTES": "6",
        "MAX_SOURCE_BYTES": "7",
        "EXPIRED_GRACE_SECONDS": "0",
    }.items():
        monkeypatch.setenv(f"CONTEXT_PACK_{name}", value)
    assert from_environment().handoff == HandoffSettings(
        root="/r",
        source_root="/s",
        log="debug",
        initialize_timeout_ms=5,
        max_pack_bytes=6,
        max_source_bytes=7,
        grace_seconds=0,
    )


def test_an_enormous_grace_time_harms_nothing(tmp_path: Path) -> None:
    with open_handoffs(settings_of(tmp_path, grace_seconds=10**20 - 1)) as handoffs:
        handoffs.repository.write(document(name="plan"))
        assert handoffs.repository.list(freshness="expired").total == 0
        assert handoffs.repository.list().total == 1


# --- taking in --------------------------------------------------------------------------------------------------------


def test_the_packs_of_a_reference_root_are_there_at_first_use_and_its_files_are_left_alone(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    there.write(ONE, name="plan")
    there.write(TWO, status="finalized", revision=1)
    before = there.contents()
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        handoff_pack = handoffs.repository.get("plan").pack
        assert (handoff_pack.id, handoff_pack.revision, handoff_pack.updated_at) == (
            ONE,
            3,
            "2026-05-04T09:00:00.000000001Z",
        )
        assert handoff_pack.created_at == "2026-05-04T08:00:00.123456789Z"
        assert handoff_pack.sections[0].refs[0].anchor is None
        assert handoffs.import_result is not None
        assert (sorted(handoffs.import_result.stored), handoffs.import_result.refused) == ([ONE, TWO], {})
        assert [row.id.text for row in handoffs.repository.list(status="finalized").rows] == [TWO]
        assert handoffs.repository.write(document(), identity=ONE, expected_revision=3).pack.revision == 4
        with pytest.raises(RevisionConflict):
            handoffs.repository.write(document(), identity=ONE, expected_revision=3)
    assert there.contents() == before
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.get(ONE).pack.revision == 4
        assert handoffs.import_result is not None
        assert (handoffs.import_result.stored, handoffs.import_result.refused) == ((), {})
        assert len(handoffs.repository.history(HandoffId(TWO)).events) == 1


def test_what_comes_later_is_taken_in_too_and_what_both_changed_is_reported(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    for pack_id in (ONE, TWO, THREE):
        there.write(pack_id)
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        ours = handoffs.repository.write(document(), identity=TWO, expected_revision=3).pack
        handoffs.repository.delete(THREE)
        there.write(ONE, revision=5, title="newer")
        there.write(TWO, revision=4, title="theirs")
        there.write(THREE, revision=4)
        there.write("pk_dddddddd")
        assert handoffs.repository.get("pk_dddddddd").pack.revision == 3
        assert (handoffs.repository.get(ONE).pack.revision, handoffs.repository.get(ONE).pack.title) == (5, "newer")
        assert handoffs.repository.get(TWO).pack == ours
        with pytest.raises(HandoffNotFound):
            handoffs.repository.get(THREE)
        reasons = refused_imports(handoffs)
        assert reasons.keys() == {f"{TWO}.json", f"{THREE}.json"}
        assert "conflict" in reasons[f"{TWO}.json"]
        assert "deleted here" in reasons[f"{THREE}.json"]
        there.write(TWO, revision=9)
        assert handoffs.repository.get(TWO).pack == ours
        assert "conflict" in refused_imports(handoffs)[f"{TWO}.json"]


def test_what_cannot_be_taken_in_is_reported_with_its_reason_and_kept(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    there.write(ONE)
    there.write("pk_aaaaaa22", schema_version=3)
    there.write("pk_aaaaaa33", revision=0)
    there.write("pk_aaaaaa44", id=TWO)
    there.write("pk_aaaaaa55", expires_at="2020-01-01T00:00:00Z")
    there.write("pk_aaaaaa66", created_at="yesterday")
    there.write("pk_aaaaaa77", sections=[{"key": "UPPER", "title": "t"}])
    there.write("pk_aaaaaa22x")
    (there.folder / "pk_eeeeeeee.json").write_bytes(b'{"id": ')
    (there.folder / "pk_ffffffff.json").write_bytes(b"\xff\x00")
    (there.folder / "pk_gggggggg.json").write_bytes(b" " * ((10 << 20) + 1))
    (there.folder / "pk_hhhhhhhh.json").write_bytes(b"[" * 100_000)
    (there.folder / "pk_iiiiiiii.json").mkdir()
    (there.folder / "pk_jjjjjjjj.json").symlink_to(there.folder / f"{ONE}.json")
    os.mkfifo(there.folder / "pk_kkkkkkkk.json")
    (there.folder / "notes.json").write_text("{}", encoding="utf-8")
    before = there.contents()
    answers: list[dict[str, str]] = []
    for _ in range(2):
        with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
            assert [row.id.text for row in handoffs.repository.list().rows] == [ONE]
            answers.append(refused_imports(handoffs))
    reasons = answers[0]
    assert answers[1] == reasons
    assert reasons.keys() == before.keys() - {".repo.lock", f"{ONE}.json"}
    assert all(reasons.values())
    assert "schema_version 3" in reasons["pk_aaaaaa22.json"]
    assert "expired" in reasons["pk_aaaaaa55.json"]
    assert "larger" in reasons["pk_gggggggg.json"]
    assert there.contents() == before


def test_a_settled_root_is_not_read_again_and_still_tells_what_was_wrong(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    there.write(ONE)
    bad = there.folder / "pk_eeeeeeee.json"
    bad.write_bytes(b"{")
    for path in (bad, there.folder):
        os.utime(path, (1, 1))
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.list().total == 1
    # In place, as that server never does it: the folder's time stays as it was.
    (there.folder / f"{ONE}.json").write_text(json.dumps(there.pack(ONE, revision=9)), encoding="utf-8")
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.get(ONE).pack.revision == 3
        assert "Input data was truncated" in refused_imports(handoffs)["pk_eeeeeeee.json"]
    assert len(looks(tmp_path)) == 1


def test_what_was_refused_is_tried_again_when_its_file_is_mended_in_place(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    bad, worse = (there.folder / f"{pack_id}.json" for pack_id in (ONE, TWO))
    for path in (bad, worse):
        path.write_bytes(b"{")
    for path in (bad, worse, there.folder):
        os.utime(path, (1, 1))
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.list().total == 0
        bad.write_text(json.dumps(there.pack(ONE)), encoding="utf-8")
        os.utime(bad, (1, 1))
        assert handoffs.repository.get(ONE).pack.revision == 3
        assert refused_imports(handoffs).keys() == {worse.name}
    worse.write_text(json.dumps(there.pack(TWO)), encoding="utf-8")
    os.utime(worse, (1, 1))
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.get(TWO).pack.revision == 3
        assert refused_imports(handoffs) == {}


def test_a_smaller_limit_keeps_no_pack_from_being_imported_and_read(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    there.write(ONE, brief="x" * 3000)
    there.write(TWO, brief="x" * (11 << 20))
    small = HandoffSettings(root=str(tmp_path), max_pack_bytes=2000)
    with open_handoffs(Settings(cwd=str(tmp_path), handoff=small)) as handoffs:
        assert handoffs.repository.get(ONE).pack.revision == 3
        longer = handoffs.repository.ttl(ONE, expected_revision=3, ttl_minutes=5)
        assert (longer.stored, handoffs.repository.delete(ONE).deleted) == (True, True)
        assert refused_imports(handoffs) == {f"{TWO}.json": f"larger than {10 << 20} bytes"}


def test_what_was_refused_for_a_limit_is_tried_again_with_another_one(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    late = there.write(TWO, expires_at="2026-01-01T00:00:00Z")
    for path in (late, there.folder):
        os.utime(path, (1, 1))
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.list().total == 0
        assert refused_imports(handoffs).keys() == {f"{TWO}.json"}
    with open_handoffs(settings_of(tmp_path, root=tmp_path, grace_seconds=10**9)) as handoffs:
        assert handoffs.repository.get(TWO).pack.revision == 3
        assert refused_imports(handoffs) == {}


def test_servers_of_several_roots_and_limits_on_one_store_do_not_look_again_for_ever(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path / "inner" / ".agents" / "mcp" / "context_pack")
    other = ReferencePacks(tmp_path / ".agents" / "mcp" / "context_pack")
    init(Settings(cwd=str(tmp_path)), ".")
    there.write(ONE)
    other.write(TWO, expires_at="2026-01-01T00:00:00Z")
    for path in (*other.folder.iterdir(), there.folder, other.folder):
        os.utime(path, (1, 1))
    places = [settings_of(tmp_path), settings_of(tmp_path / "inner"), settings_of(tmp_path, grace_seconds=0)]
    for _ in range(3):
        for settings in places:
            with open_handoffs(settings) as handoffs:
                assert handoffs.repository.list().total <= 1
    assert sorted(map(len, looks(tmp_path).values())) == [1, 1, 1]


def looks(root: Path) -> dict[str, list[bytes]]:
    """What the store in a folder says was found in reference roots, stream by stream."""
    with open_platform(Settings(cwd=str(root))) as platform, platform.catalog.read() as view:
        return {
            name: [event.body for event in view.streams.read(name)] for name in view.streams.names("handoff_import")
        }


def test_a_change_there_makes_only_the_changed_files_be_read_again(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    there.write(ONE)
    bad = there.folder / "pk_eeeeeeee.json"
    bad.write_bytes(b"{")
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.list().total == 1
        first = refused_imports(handoffs)
        there.write(TWO)
        assert handoffs.repository.list().total == 2
        assert refused_imports(handoffs) == first
        bad.unlink()
        there.write("pk_eeeeeeee")
        assert handoffs.repository.list().total == 3
        assert refused_imports(handoffs) == {}


def test_however_much_is_wrong_there_it_is_told(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    there.write(ONE)
    for n in range(600):
        (there.folder / f"{'n' * 200}{n}.json").touch()
    Path(os.fsdecode(os.fsencode(there.folder) + b"/\xff.json")).touch()
    os.utime(there.folder, (1, 1))
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.list().total == 1
        assert len(refused_imports(handoffs)) == 601
        assert "\\udcff.json" in refused_imports(handoffs)
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.list().total == 1
        assert len(refused_imports(handoffs)) == 601
    ((body,),) = looks(tmp_path).values()
    answers = json.loads(body)["refused"]
    assert answers.pop("...") == f"and {601 - len(answers)} more"
    assert len(answers) > 50


def test_the_default_root_is_taken_into_the_store_that_is_found(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    ReferencePacks(tmp_path / ".agents" / "mcp" / "context_pack").write(ONE)
    with open_handoffs(settings_of(tmp_path)) as handoffs:
        assert handoffs.repository.get(ONE).pack.revision == 3
    assert not (tmp_path / ".agents" / "mcp" / "context_pack" / ".ctx").exists()


def test_hundreds_of_packs_are_taken_in(tmp_path: Path) -> None:
    there = ReferencePacks(tmp_path)
    letters = "abcdefghijklmnopqrstuvwxyz"
    for n in range(300):
        there.write(f"pk_aaaaaa{letters[n // 26]}{letters[n % 26]}", updated_at=f"2026-05-04T09:{n % 60:02}:00Z")
    with open_handoffs(settings_of(tmp_path, root=tmp_path)) as handoffs:
        assert handoffs.repository.list(limit=3).total == 300
        assert handoffs.platform is not None
        with handoffs.platform.catalog.read() as view:
            assert view.objects.root_count("handoff/") == 300


def test_a_desk_waits_for_nobody_who_only_reads(tmp_path: Path) -> None:
    with open_handoffs(settings_of(tmp_path)) as handoffs:
        handoffs.repository.write(document())
        assert handoffs.platform is not None
        with handoffs.platform.catalog.read(), open_handoffs(settings_of(tmp_path)) as other:
            assert other.repository.write(document()).stored
