"""Damage has one vocabulary, whoever finds it: looking at an object, or failing to read it."""

import os
from pathlib import Path

import pytest

from contextplane.adapters.files.objects import FileObjects
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import ObjectCondition
from contextplane.model.execution.manifest import ManifestInvalid
from contextplane.model.ids import Digest, InvalidId
from contextplane.ports.objects import StorageFailed
from contextplane.store.damage import Damage, damage_by, damage_context, damage_in, damage_sentence, short_ref

PACK = Digest("ab" * 32)


def changed(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"other")


def gone(path: Path) -> None:
    path.unlink()


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(os.devnull)


@pytest.mark.parametrize(
    ("harm", "damage"), [(changed, "tampered"), (gone, "missing"), (a_folder, "tampered"), (a_link, "tampered")]
)
def test_looking_and_reading_find_the_same_damage(tmp_path: Path, harm: object, damage: Damage) -> None:
    objects = FileObjects(str(tmp_path))
    digest = objects.put(b"bytes")
    assert damage_in(objects.check(digest)) is None
    assert callable(harm)
    harm(tmp_path / digest.hex[:2] / digest.hex[2:])
    assert damage_in(objects.check(digest)) == damage
    with pytest.raises(ContextPlaneError) as caught:
        objects.size(digest)
        objects.get(digest)
    assert damage_by(caught.value) == damage


def test_what_the_storage_does_not_hand_out_is_unreadable_and_why_is_said_once() -> None:
    condition = ObjectCondition(state="unreadable", why="cannot be read: Permission denied")
    assert damage_in(condition) == damage_by(StorageFailed(condition.why)) == "unreadable"
    assert (
        damage_sentence("its manifest", "unreadable", condition.why) == "its manifest is unreadable: Permission denied"
    )
    assert (
        damage_sentence("its manifest", "tampered", "its bytes have another digest") == "its manifest was tampered with"
    )
    assert damage_sentence("it", "missing") == "it is missing"


@pytest.mark.parametrize("error", [InvalidId("no"), ManifestInvalid("not a manifest", at="#/created")])
def test_what_is_no_damage_is_told_as_it_was(error: ContextPlaneError) -> None:
    before = (str(error), error.at, error.details)
    with pytest.raises(type(error)), damage_context(short_ref(PACK), "its manifest", PACK):
        raise error
    assert (damage_by(error), (str(error), error.at, error.details)) == (None, before)


def test_damage_is_told_of_what_people_named_and_the_place_is_for_machines() -> None:
    error = StorageFailed("cannot be read: Input/output error", at="/somewhere/objects/ab", hint="of the storage")
    with pytest.raises(StorageFailed), damage_context(short_ref(PACK, "steps/3"), "its content", PACK):
        raise error
    assert str(error).startswith("ctx://abababababab:steps/3: its content is unreadable: Input/output error (")
    assert (error.code, error.family) == ("storage_failed", "failed")
    assert error.details == {
        "damage": "unreadable",
        "digest": str(PACK),
        "place": "/somewhere/objects/ab",
        "why": "cannot be read: Input/output error",
    }
