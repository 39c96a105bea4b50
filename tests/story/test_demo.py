"""The demo tells the truth, and leaves nothing behind unless asked to."""

import json
from pathlib import Path

from tests.surfaces.running import ctx


def test_the_demo_tells_its_story_to_the_end(tmp_path: Path) -> None:
    result = ctx("demo", cwd=tmp_path)
    assert result.status == 0, result.err
    assert "reading it is refused: object_corrupt" in result.out
    assert "every verb refuses, rather than forget quietly: catalog_missing" in result.out
    assert "adp_payments.refund added in pack B" in result.out
    assert "verified, 7 objects hashed again" in result.out
    assert "fidelity exact" in result.out
    assert "12 objects, 2 execution packs, all sound" in result.out
    assert "its author reviews it: refused, reviewer_is_author" in result.out
    assert "other bytes under the same version: refused, version_taken" in result.out
    assert "each signed, in one log; nothing was rewritten" in result.out
    assert "gates: GATE_FINANCE_APPROVAL" in result.out
    assert "left out: adp_payments.issue_refund, above_ceiling" in result.out
    assert not list(tmp_path.iterdir())


def test_the_demo_gives_the_same_identity_on_every_machine(tmp_path: Path) -> None:
    chapters = json.loads(ctx("demo", "--json", cwd=tmp_path).out)
    assert (
        "ctx pack refund.json: ctx://e283d9edc4bda6076179269bc99c33cff9e3aba32ec5f2ee867bccd309eb9e72"
        in chapters[1]["lines"]
    )
    hashes = [line.split()[-1] for line in chapters[-1]["lines"] if " tokens, sha256:" in line]
    assert hashes == ["sha256:efa9e71be62c41535d97ba575492f4491bdd44331d44b315638b6d61ec6e9c74"]


def test_a_kept_demo_leaves_a_sound_store_in_which_what_it_told_is_true(tmp_path: Path) -> None:
    assert ctx("demo", "--keep", "here", cwd=tmp_path).status == 0
    here = tmp_path / "here"
    assert ctx("fsck", cwd=here).status == 0
    later, first = (line.split()[0] for line in ctx("log", cwd=here).out.splitlines())
    assert ctx("diff", first, later, "--exit-code", cwd=here).status == 12
    assert ctx("verify", first, cwd=here).status == 0
    assert ctx("replay", first, "--recorded", cwd=here).status == 0
    assert "pinned in prod" in ctx("packs", cwd=here).out
    assert ctx("verify", "--registry", cwd=here).status == 0


def test_the_demo_does_not_touch_a_folder_that_is_there(tmp_path: Path) -> None:
    result = ctx("demo", "--keep", ".", cwd=tmp_path)
    assert (result.status, "folder_not_made" in result.err) == (14, True)
    assert not list(tmp_path.iterdir())
