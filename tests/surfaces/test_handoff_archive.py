"""Handoff packs in archives: exported, verified on import, and never written over existing ones."""

from pathlib import Path

import msgspec
import pytest

from contextplane.app.execution.archive import import_packs
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.archive import ArchivedHandoff, Header
from contextplane.model.handoff import HandoffPack, KeptRevision, pack_bytes
from contextplane.model.ids import Digest, HandoffId
from tests.surfaces.archives import archive, log, refused
from tests.surfaces.commands import Result, ctx
from tests.surfaces.handoff_store import HandoffStore, json_answer


class Two:
    """A store with a pack of three revisions, and an empty one."""

    def __init__(self, folder: Path) -> None:
        self.here, self.there = HandoffStore(folder / "here"), HandoffStore(folder / "there")
        first = self.here.write(name="login-bug")
        self.here.write(first.id, revision=1, status="finalized")
        self.pack = self.here.write(first.id, revision=2, title="Later")
        self.id = self.pack.id

    def carry(self, ref: str) -> Result:
        """Export here, import there."""
        data = self.here.ctx("export", ref, "-o", "-").raw
        return self.there.ctx("import", "-", "--json", input=data)


@pytest.fixture
def two(tmp_path: Path) -> Two:
    return Two(tmp_path)


def test_a_pack_travels_with_all_its_revisions_up_to_the_named_one(two: Two) -> None:
    answer = json_answer(two.carry(f"{two.id}@2"))
    assert (answer["handoffs"], answer["new_handoffs"]) == ([f"{two.id}@2"], [f"{two.id}@1", f"{two.id}@2"])
    assert json_answer(two.there.ctx("verify", two.id, "--json"))["answer"] == "verified"
    for number in (1, 2):
        name = f"{two.id}@{number}"
        assert two.there.ctx("cat", name).raw == two.here.ctx("cat", name).raw
    assert two.there.ctx("handoff", "read", "login-bug").status == 0
    assert two.there.ctx("fsck").status == 0
    assert two.there.ctx("fsck", "--rebuild").status == 0
    assert json_answer(two.there.ctx("handoff", "show", two.id, "--json"))["frozen"]["revision"] == 2


def test_taking_it_again_changes_nothing_and_a_later_one_goes_on(two: Two) -> None:
    assert json_answer(two.carry(f"{two.id}@2"))["new_objects"] == 2
    again = json_answer(two.carry(f"{two.id}@2"))
    assert (again["new_handoffs"], again["new_objects"]) == ([], 0)
    assert json_answer(two.carry(two.id))["new_handoffs"] == [f"{two.id}@3"]
    assert json_answer(two.carry(f"{two.id}@1"))["new_handoffs"] == []
    kinds = [event["kind"] for event in json_answer(two.there.ctx("handoff", "log", two.id, "--json"))["events"]]
    assert kinds == ["imported"] * 3


def test_a_revision_that_waits_to_become_a_file_was_never_lost(two: Two, tmp_path: Path) -> None:
    file = str(tmp_path / "pack.tar")
    assert two.here.ctx("export", two.id, "-o", file).status == 0
    with open_platform(Settings(cwd=str(two.here.folder))) as platform:
        data = platform.objects.get(Digest.of(two.here.ctx("cat", f"{two.id}@1").raw))
        (two.here.folder / ".ctx" / "objects" / Digest.of(data).hex[:2] / Digest.of(data).hex[2:]).unlink()
        with platform.catalog.write() as tx:
            tx.pending.put(Digest.of(data), data)
        assert import_packs(platform, file).put_back == ()


def test_a_revision_that_was_lost_is_put_back(two: Two) -> None:
    two.carry(two.id)
    lost = Digest.of(two.there.ctx("cat", f"{two.id}@1").raw)
    (two.there.folder / ".ctx" / "objects" / lost.hex[:2] / lost.hex[2:]).unlink()
    assert json_answer(two.carry(two.id))["put_back"] == [{"digest": str(lost), "damage": "missing"}]
    assert two.there.ctx("fsck").status == 0


def test_quietly_what_came_is_named_whether_it_was_here_or_not(two: Two) -> None:
    data = two.here.ctx("export", f"{two.id}@2", "-o", "-").raw
    for _ in range(2):
        assert two.there.ctx("import", "-", "--quiet", input=data).out == f"{two.id}@1\n{two.id}@2\n"


def test_the_same_packs_give_the_same_bytes_and_one_without_handoffs_is_of_the_first_format(two: Two) -> None:
    assert (
        two.here.ctx("export", two.id, "-o", "-").raw == two.here.ctx("handoff", "export", "login-bug", "-o", "-").raw
    )
    run = two.here.ctx("pack", "-", input=log("x")).out.strip()
    assert b'"format":1' in two.here.ctx("export", run, "-o", "-").raw[:1024]
    assert b'"format":2' in two.here.ctx("export", run, two.id, "-o", "-").raw[:1024]


def test_runs_and_handoff_packs_travel_together(two: Two) -> None:
    run = two.here.ctx("pack", "-", input=log("x")).out.strip()
    assert two.here.ctx("export", f"{two.id}@1", run, f"{two.id}@2", "-o", "../both.tar").status == 0
    answer = json_answer(two.there.ctx("import", "../both.tar", "--json"))
    assert (answer["roots"], answer["handoffs"]) == ([run], [f"{two.id}@2"])
    assert two.there.ctx("verify", run).status == 0


def test_another_revision_of_the_same_number_is_a_conflict_and_nothing_is_taken(two: Two) -> None:
    assert two.carry(f"{two.id}@1").status == 0
    two.there.write(two.id, revision=1, title="Written there")
    result = two.carry(two.id)
    assert result.status == 14
    assert msgspec.json.decode(result.err)["error"]["code"] == "handoff_history_diverged"
    assert json_answer(two.there.ctx("handoff", "show", two.id, "--json"))["title"] == "Written there"
    assert two.there.ctx("fsck").status == 0
    assert "orphaned" not in two.there.ctx("gc", "--grace", "0s", "--dry-run").out


def test_what_was_deleted_here_is_not_brought_back_by_an_archive(two: Two) -> None:
    assert two.carry(f"{two.id}@2").status == 0
    two.there.delete(two.id)
    assert json_answer(two.carry(f"{two.id}@2"))["new_handoffs"] == []
    assert two.carry(two.id).status == 14
    refused(two.there.ctx("handoff", "read", two.id), 13, "handoff_not_found")


def test_a_deleted_pack_can_be_exported_by_its_revision_and_a_damaged_one_not_at_all(two: Two) -> None:
    two.here.delete(two.id)
    refused(two.here.ctx("export", two.id, "-o", "../x.tar"), 13, "handoff_not_found")
    assert two.here.ctx("export", f"{two.id}@3", "-o", "../x.tar").status == 0
    refused(two.here.ctx("export", f"{two.id}@4", "-o", "../y.tar"), 13, "handoff_not_found")
    file = two.here.object_of(two.pack)
    file.chmod(0o644)
    file.write_bytes(b"{}")
    refused(two.here.ctx("export", f"{two.id}@3", "-o", "../y.tar"), 11, "handoff_unreadable")
    assert not (two.here.folder.parent / "y.tar").exists()
    assert two.here.ctx("export", f"{two.id}@2", "-o", "../y.tar").status == 0


def test_packs_go_to_the_store_of_handoff_packs(two: Two, tmp_path: Path) -> None:
    root = tmp_path / "packs_root"
    place = HandoffStore(root)
    assert two.here.ctx("export", two.id, "-o", "../x.tar").status == 0
    assert two.there.ctx("import", "../x.tar", env={"CONTEXT_PACK_ROOT": str(root)}).status == 0
    assert place.ctx("handoff", "show", two.id).status == 0
    refused(two.there.ctx("handoff", "show", two.id), 13, "handoff_not_found")


def test_an_archive_heals_a_damaged_revision_and_needs_a_store(two: Two, tmp_path: Path) -> None:
    assert two.carry(two.id).status == 0
    file = two.there.object_of(two.pack)
    file.chmod(0o644)
    file.write_bytes(b"damage")
    assert two.there.ctx("verify", two.id).status == 11
    assert json_answer(two.carry(two.id))["new_handoffs"] == []
    assert two.there.ctx("verify", two.id).status == 0
    assert two.here.ctx("export", two.id, "-o", "../x.tar").status == 0
    (tmp_path / "empty").mkdir()
    refused(ctx("import", "../x.tar", cwd=tmp_path / "empty"), 13, "store_not_found")
    assert list((tmp_path / "empty").iterdir()) == []


def forged(
    pack: HandoffPack, *, revision: int | None = None, handoff_id: str | None = None, data: bytes = b""
) -> bytes:
    """An archive of one pack whose header may contradict its object."""
    data = data or pack_bytes(pack)
    digest = Digest.of(data)
    entry = KeptRevision(revision=revision or pack.revision, digest=digest)
    carried = ArchivedHandoff(id=HandoffId(handoff_id or pack.id), revisions=(entry,))
    return archive(Header(roots=(), handoffs=(carried,)), data)


def test_what_is_not_the_revision_that_it_says_is_refused_and_nothing_is_taken(two: Two) -> None:
    change = msgspec.structs.replace
    section = two.pack.sections[1]
    outside = change(section, refs=(change(section.refs[0], path="../../etc/passwd"),))
    for data in (
        forged(two.pack, revision=9),
        forged(two.pack, handoff_id="pk_aaaaaaaa"),
        forged(two.pack, data=b"{}"),
        forged(two.pack, data=pack_bytes(two.pack) + b" "),
        forged(change(two.pack, sections=(outside,))),
        forged(change(two.pack, expires_at="tomorrow")),
        forged(change(two.pack, created_at="yesterday")),
        forged(change(two.pack, schema_version=3)),
        forged(two.pack)[:-1024],
    ):
        refused(two.there.ctx("import", "-", input=data), 10, "archive_invalid")
    whole = forged(two.pack)
    refused(two.there.ctx("import", "-", input=whole.replace(b"Later", b"Sooner"[:5])), 11, "archive_corrupt")
    assert two.there.ctx("handoff", "list").out == "No handoff packs.\n"
    assert two.there.ctx("import", "-", input=whole).status == 0


def test_a_header_without_its_revisions_is_refused(two: Two) -> None:
    digest = Digest.of(b"nobody has this")
    carried = ArchivedHandoff(id=HandoffId(two.id), revisions=(KeptRevision(revision=1, digest=digest),))
    data = archive(Header(roots=(), handoffs=(carried,)))
    assert f"{two.id}@1 is not in it" in refused(two.there.ctx("import", "-", input=data), 10, "archive_invalid")


def test_what_is_here_begins_later_and_older_revisions_stay_out(two: Two) -> None:
    assert two.there.ctx("import", "-", input=forged(two.pack)).status == 0
    answer = json_answer(two.carry(two.id))
    assert (answer["new_handoffs"], answer["handoffs_not_taken"]) == ([], [f"{two.id}@1", f"{two.id}@2"])
    assert json_answer(two.there.ctx("verify", two.id, "--json"))["answer"] == "verified"
