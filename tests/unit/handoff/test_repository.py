"""Writing packs: revisions, anchors, the checklist, and what a writer is told who came too late."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from contextplane.handoff.errors import (
    FinalizeRefused,
    HandoffInvalid,
    HandoffNameTaken,
    HandoffNotFound,
    RevisionConflict,
)
from contextplane.handoff.reader import WriteResult
from contextplane.model.handoff import HandoffDocument, pack_bytes, read_pack
from contextplane.model.ids import Digest
from tests.unit.handoff.repositories import Place, document, place_in, section

COMPLETE = (section("scope", "all of it"), section("findings", "none"), section("qa", "verdict: pass"))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with place_in(tmp_path) as place:
        yield place


def update(place: Place, written: WriteResult, document: HandoffDocument) -> WriteResult:
    return place.repository.write(document, identity=written.pack.id, expected_revision=written.pack.revision)


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_new_pack_is_at_revision_one_for_a_week_and_can_be_had_by_id_and_by_name(place: Place) -> None:
    written = place.repository.write(document(section("scope"), name="the plan", title="Plan"))
    pack = written.pack
    assert written.stored
    assert (pack.revision, pack.status, pack.created_at, pack.updated_at, pack.expires_at) == (
        1,
        "draft",
        "2026-05-04T09:30:00Z",
        "2026-05-04T09:30:00Z",
        "2026-05-11T09:30:00Z",
    )
    by_id, by_name = place.repository.get(f" {pack.id} "), place.repository.get("the plan")
    assert by_id.pack == by_name.pack == pack
    assert by_id.digest == written.digest == Digest.of(pack_bytes(pack))
    assert (by_id.selected_by, by_name.selected_by) == ("exact_id", "name_latest_draft_updated_at_then_revision")
    assert place.list_ids() == [pack.id]


def test_a_clock_that_goes_back_makes_no_revision_older_than_the_one_before(place: Place) -> None:
    first = place.repository.write(document(section("scope")))
    place.clock.pass_by(hours=-1)
    second = update(place, first, document(section("findings")))
    third = place.repository.ttl(first.pack.id, expected_revision=2, ttl_minutes=60)
    assert {result.pack.updated_at for result in (first, second, third)} == {"2026-05-04T09:30:00Z"}


def test_an_update_replaces_the_content_and_keeps_name_deadline_and_birthday(place: Place) -> None:
    first = place.repository.write(document(section("scope"), name="the plan", title="Plan"))
    place.clock.pass_by(hours=1)
    second = update(place, first, document(section("findings")))
    assert (second.pack.name, second.pack.title) == ("the plan", None)
    assert second.pack.created_at == first.pack.created_at
    assert second.pack.expires_at == first.pack.expires_at
    assert (second.pack.revision, second.pack.updated_at) == (2, "2026-05-04T10:30:00Z")
    assert place.repository.revision(first.pack.handoff_id, 1) == first.pack
    assert place.repository.revision(first.pack.handoff_id, 2) == second.pack
    with pytest.raises(HandoffInvalid) as refused:
        update(place, second, document(name="another"))
    assert refused.value.details["field"] == "document.name"
    assert update(place, second, document(name="the plan", ttl=5)).pack.expires_at == "2026-05-04T10:35:00Z"


def test_checking_only_runs_every_check_and_stores_nothing(place: Place) -> None:
    written = place.repository.write(document(name="taken"))
    for handoff_document, expected in (
        (document(name="taken"), HandoffNameTaken),
        (document(section("scope", "x" * 600_000)), HandoffInvalid),
        (document(status="finalized"), FinalizeRefused),
    ):
        with pytest.raises(expected):
            place.repository.write(handoff_document, validate_only=True)
    with pytest.raises(RevisionConflict):
        place.repository.write(document(), identity="taken", expected_revision=7, validate_only=True)
    with pytest.raises(HandoffNotFound):
        place.repository.write(document(), identity="nobody", expected_revision=1, validate_only=True)
    checked = place.repository.write(document(name="free"), validate_only=True)
    updated = place.repository.write(document(title="t"), identity="taken", expected_revision=1, validate_only=True)
    assert (checked.stored, updated.stored, updated.pack.revision) == (False, False, 2)
    assert place.list_ids() == [written.pack.id]
    assert place.repository.get("taken").pack == written.pack


def test_a_pack_that_is_too_large_is_refused_with_its_size_and_one_just_small_enough_is_not(tmp_path: Path) -> None:
    with place_in(tmp_path, max_pack_bytes=2000) as place:
        room = 2000 - len(pack_bytes(place.repository.write(document(section("scope", "x"))).pack))
        with pytest.raises(HandoffInvalid) as refused:
            place.repository.write(document(section("scope", "x" * (room + 2))))
        assert refused.value.details == {"field": "document", "size_bytes": 2001, "max_pack_bytes": 2000}
        full = place.repository.write(document(section("scope", "x" * (room + 1))))
        assert place.repository.ttl(full.pack.id, expected_revision=1, extend_minutes=1).pack.revision == 2


def test_large_and_small_packs_are_kept_the_same_way(place: Place) -> None:
    written = [place.repository.write(document(section("scope", "y" * size))) for size in (10, 65_000, 66_000, 500_000)]
    for result in written:
        assert place.repository.get(result.pack.id).pack == result.pack
    place.repository.flush_pending()
    for result in written:
        assert read_pack(place.platform.objects.get(result.digest)) == result.pack
    assert place.findings() == []


def test_a_text_that_cannot_be_stored_is_refused(place: Place) -> None:
    with pytest.raises(HandoffInvalid) as refused:
        place.repository.write(document(title="\ud800"))
    assert str(refused.value.details["field"]).startswith("document")


def test_an_id_that_is_taken_is_not_used_again(place: Place) -> None:
    place.ids.coming = ["pk_aaaaaaaa", "pk_aaaaaaaa", "pk_aaaaaaaa", "pk_bbbbbbbb"]
    assert place.repository.write(document(title="a")).pack.id == "pk_aaaaaaaa"
    assert place.repository.write(document(title="b")).pack.id == "pk_bbbbbbbb"
    place.ids.coming = ["pk_aaaaaaaa"] * 16
    with pytest.raises(HandoffInvalid):
        place.repository.write(document())
    assert place.repository.get("pk_aaaaaaaa").pack.title == "a"


def test_refs_are_anchored_when_written_and_unchanged_ones_keep_what_they_were_written_about(place: Place) -> None:
    first = place.repository.write(document(section("scope", refs=[("one", 1, 2), ("two", 5, 6), ("far", 90, 91)])))
    ref, two, far = first.pack.sections[0].refs
    assert ref.anchor is not None
    assert two.anchor is not None
    assert far.anchor is None
    (place.folder / "code.py").write_text("new\n" * 200, encoding="utf-8")
    handoff_document = document(section("scope", refs=[("one", 1, 2), ("two", 5, 7), ("far", 90, 91)]))
    kept, changed, anchored = update(place, first, handoff_document).pack.sections[0].refs
    assert kept == ref
    assert changed.anchor not in {None, two.anchor}
    assert anchored.anchor is not None


def test_saying_something_else_of_a_ref_does_not_anchor_it_to_the_lines_that_are_there_now(place: Place) -> None:
    first = place.repository.write(document(section("scope", refs=[("one", 10, 12)])))
    code = (place.folder / "code.py").read_text(encoding="utf-8")
    (place.folder / "code.py").write_text("on top\n" * 3 + code, encoding="utf-8")
    (was,) = first.pack.sections[0].refs
    edited = msgspec.structs.replace(was, anchor=None, why="another reason", title="One", group="new")
    in_place = msgspec.structs.replace(section("scope"), refs=(edited,))
    second = update(place, first, document(in_place))
    elsewhere = msgspec.structs.replace(section("findings"), refs=(edited,))
    third = update(place, second, document(elsewhere))
    for written in (second, third):
        (ref,) = written.pack.sections[0].refs
        assert (ref.why, ref.anchor) == ("another reason", was.anchor)
    # Another key or other lines are another ref, which is about what is there now.
    renamed = msgspec.structs.replace(elsewhere, refs=(msgspec.structs.replace(edited, key="two"),))
    (anew,) = update(place, third, document(renamed)).pack.sections[0].refs
    assert anew.anchor not in {None, was.anchor}


def test_what_we_add_to_a_pack_does_not_count_towards_its_size(tmp_path: Path) -> None:
    with place_in(tmp_path, max_pack_bytes=2000) as place:
        refs = [(f"ref-{number}", number + 1, number + 1) for number in range(10)]
        written = place.repository.write(document(section("scope", refs=refs)))
        assert len(pack_bytes(written.pack)) > 2000
        with pytest.raises(HandoffInvalid) as refused:
            place.repository.write(document(section("scope", "x" * 2000, refs=refs)))
        size = refused.value.details["size_bytes"]
        bare = written.pack.sections[0]
        bare = msgspec.structs.replace(bare, refs=tuple(msgspec.structs.replace(ref, anchor=None) for ref in bare.refs))
        alone = len(pack_bytes(msgspec.structs.replace(written.pack, sections=(bare,))))
        # The text in place of null, and no anchor at all.
        assert size == alone + 2000 + len('""') - len("null") - len(refs) * len('"anchor":null,')


def test_finalizing_needs_the_checklist_and_tells_which_refs_moved(place: Place) -> None:
    with pytest.raises(FinalizeRefused) as refused:
        place.repository.write(document(section("scope"), status="finalized"))
    assert refused.value.details["missing_sections"] == ["findings", "qa"]
    first = place.repository.write(document(*COMPLETE, section("more", refs=[("one", 3, 9)])))
    code = (place.folder / "code.py").read_text(encoding="utf-8")
    (place.folder / "code.py").write_text("on top\n" + code, encoding="utf-8")
    final = update(place, first, document(*COMPLETE, section("more", refs=[("one", 3, 9)]), status="finalized"))
    assert final.pack.status == "finalized"
    assert len(final.moved) == 1
    assert place.repository.get(final.pack.id).pack == final.pack
    draft = update(place, final, document(section("scope")))
    assert draft.pack.status == "draft"
    assert place.repository.revision(final.pack.handoff_id, 2).status == "finalized"


# --- who comes too late -----------------------------------------------------------------------------------------------


def test_a_writer_who_comes_too_late_is_told_what_really_changed(place: Place) -> None:
    written = place.repository.write(document(section("scope", "a"), section("findings"), section("qa")))
    place.clock.pass_by(seconds=1.5)
    two = update(place, written, document(section("scope", "b"), section("findings"), section("qa")))
    three = update(place, two, document(section("scope", "b"), section("findings"), section("extra")))
    with pytest.raises(RevisionConflict) as refused:
        update(place, written, document())
    details = refused.value.details
    assert details.pop("guidance")
    assert details == {
        "expected_revision": 1,
        "current_revision": 3,
        "actual_revision": 3,
        "last_updated_at": "2026-05-04T09:30:01.5+00:00",
        "changed_section_keys": ["extra", "qa", "scope"],
    }
    with pytest.raises(RevisionConflict) as refused:
        place.repository.ttl(written.pack.id, expected_revision=2, ttl_minutes=5)
    assert refused.value.details["changed_section_keys"] == ["extra", "qa"]
    for never in (0, -1, 4, 10**30):
        with pytest.raises(RevisionConflict) as refused:
            place.repository.write(document(), identity=written.pack.id, expected_revision=never)
        assert refused.value.details["changed_section_keys"] == ["extra", "findings", "scope"]
    assert place.repository.get(written.pack.id).pack == three.pack


WITH_REF = section("scope", refs=[("one", 1, 2)])


def test_who_is_overtaken_after_looking_and_before_storing_is_refused_all_the_same(place: Place) -> None:
    first = place.repository.write(document(section("scope")))

    def name_it() -> None:
        place.repository.write(document(name="plan"))

    with pytest.raises(HandoffNameTaken):
        place.repository_during(name_it).write(document(WITH_REF, name="plan"))

    def change_it() -> None:
        update(place, first, document(section("qa")))

    with pytest.raises(RevisionConflict) as refused:
        again_with = place.repository_during(change_it)
        again_with.write(document(WITH_REF), identity=first.pack.id, expected_revision=1)
    assert refused.value.details["changed_section_keys"] == ["qa", "scope"]

    def delete_it() -> None:
        place.repository.delete(first.pack.id)

    with pytest.raises(HandoffNotFound):
        place.repository_during(delete_it).write(document(WITH_REF), identity=first.pack.id, expected_revision=2)
    place.ids.coming = ["pk_aaaaaaaa", "pk_aaaaaaaa", "pk_bbbbbbbb"]

    def take_its_id() -> None:
        if len(place.ids.coming) == 2:
            place.repository.write(document(title="was faster"))

    assert place.repository_during(take_its_id).write(document(WITH_REF)).pack.id == "pk_bbbbbbbb"
    assert place.repository.get("pk_aaaaaaaa").pack.title == "was faster"
    assert place.findings() == []


def test_at_most_twelve_changed_sections_are_named(place: Place) -> None:
    written = place.repository.write(document())
    update(place, written, document(*(section(f"s{n:02}") for n in range(30))))
    with pytest.raises(RevisionConflict) as refused:
        update(place, written, document())
    assert refused.value.details["changed_section_keys"] == [f"s{n:02}" for n in range(12)]


def test_a_revision_goes_with_a_pack_and_the_other_way_round(place: Place) -> None:
    written = place.repository.write(document())
    with pytest.raises(HandoffInvalid) as refused:
        place.repository.write(document(), expected_revision=1)
    assert refused.value.details["unsupported_field"] == "expected_revision"
    with pytest.raises(HandoffInvalid) as refused:
        place.repository.write(document(), identity=written.pack.id)
    assert refused.value.details["required_fields"] == ["expected_revision"]
