"""What `ctx export` does not write: half an archive, one over another file, or an unusable one."""

import os
import pty
import subprocess

import pytest

from contextplane.app.execution.archive import export_packs
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.archive import ArchiveTooLarge
from contextplane.model.ids import Digest
from tests.support.cases import cases
from tests.surfaces.archives import Pair, contents, json_answer, refused
from tests.surfaces.commands import COMMAND, child_environment, ctx


@pytest.mark.parametrize("missing", [True, False], ids=["missing", "damaged"])
def test_a_pack_that_is_not_whole_is_refused_by_name_and_leaves_no_file(pair: Pair, missing: bool) -> None:  # noqa: FBT001
    digits = Digest.of(b"first").hex
    place = pair.here / ".ctx" / "objects" / digits[:2] / digits[2:]
    place.unlink()
    if not missing:
        place.write_bytes(b"First")
    result = ctx("export", pair.pack.hex, "-o", "x.tar", cwd=pair.here)
    error = refused(result, *((10, "execution_pack_incomplete") if missing else (11, "object_corrupt")))
    assert "outputs/report.md" in error
    assert "missing" in error if missing else "tampered with" in error
    assert sorted(path.name for path in pair.here.iterdir()) == [".ctx"]
    cut = ctx("export", pair.pack.hex, "-o", "-", cwd=pair.here)
    assert cut.status == result.status
    assert pair.take(cut.raw).status == 10
    assert contents(pair.there) == {}


def test_a_folder_in_the_place_of_a_content_is_told_as_that_and_not_as_missing(pair: Pair) -> None:
    digits = Digest.of(b"first").hex
    place = pair.here / ".ctx" / "objects" / digits[:2] / digits[2:]
    place.unlink()
    place.mkdir()
    error = refused(ctx("export", pair.pack.hex, "-o", "x.tar", cwd=pair.here), 1, "object_obstructed")
    assert "tampered with" in error
    assert sorted(path.name for path in pair.here.iterdir()) == [".ctx"]


@pytest.mark.parametrize("instead", ["nothing", "a folder", "a link"])
def test_a_parent_that_was_here_and_is_lost_is_not_left_out_as_if_it_had_never_been(pair: Pair, instead: str) -> None:
    digits = pair.parent.hex
    place = pair.here / ".ctx" / "objects" / digits[:2] / digits[2:]
    place.unlink()
    if instead == "a folder":
        place.mkdir()
    elif instead == "a link":
        place.symlink_to("nowhere")
    error = refused(ctx("export", pair.pack.hex, "-o", "x.tar", cwd=pair.here), 10, "execution_pack_incomplete")
    assert f"its parent ctx://{digits[:12]}" in error
    assert not (pair.here / "x.tar").exists()


@cases(
    ("args", "status"),
    [
        (["0123456789", "-o", "x.tar"], 13),
        (["x.md", "-o", "x.tar"], 2),
        (["-o", "x.tar"], 2),
        (["PACK"], 2),
        (["PACK", "-o", "-", "--json"], 2),
        (["PACK", "-o", "absent/x.tar"], 1),
        (["PACK", "-o", "."], 2),
        (["PACK", "-o", "absent/"], 2),
    ],
)
def test_an_export_that_cannot_be_is_refused(pair_once: Pair, args: list[str], status: int) -> None:
    result = ctx("export", *(pair_once.pack.hex if arg == "PACK" else arg for arg in args), cwd=pair_once.here)
    assert (result.status, result.raw, result.err.count("\n")) == (status, b"", 1)
    assert sorted(path.name for path in pair_once.here.iterdir()) == [".ctx"]


def test_a_reader_that_leaves_ends_the_export_quietly(pair_once: Pair) -> None:
    end, ours = os.pipe()
    os.close(end)
    command = [COMMAND, "export", pair_once.pack.hex, "-o", "-"]
    result = subprocess.run(
        command, cwd=pair_once.here, env=child_environment(), stdout=ours, stderr=subprocess.PIPE, check=False
    )
    os.close(ours)
    assert (result.returncode, result.stderr) == (141, b"")


def test_an_archive_is_not_written_to_a_terminal(pair_once: Pair) -> None:
    ours, terminal = pty.openpty()
    command = [COMMAND, "export", pair_once.pack.hex, "-o", "-"]
    result = subprocess.run(
        command, cwd=pair_once.here, env=child_environment(), stdout=terminal, stderr=subprocess.PIPE, check=False
    )
    os.close(terminal)
    os.close(ours)
    assert (result.returncode, result.stderr.startswith(b"ctx: usage: ")) == (2, True)


def test_more_members_than_the_limit_are_not_written(pair_once: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contextplane.app.execution.archive.MAX_MEMBERS", 10)
    with open_platform(Settings(cwd=str(pair_once.here))) as platform, pytest.raises(ArchiveTooLarge):
        export_packs(platform, [pair_once.pack], str(pair_once.folder / "x.tar"))
    assert not (pair_once.folder / "x.tar").exists()


def test_a_file_that_is_there_is_never_replaced(pair: Pair) -> None:
    target = pair.here / "x.tar"
    target.write_bytes(b"dear to somebody")
    error = refused(ctx("export", pair.pack.hex, "-o", "x.tar", cwd=pair.here), 14, "archive_target_exists")
    assert "x.tar: a file of this name exists" in error
    assert target.read_bytes() == b"dear to somebody"
    target.unlink()
    first, again = (json_answer(ctx("export", pair.pack.hex, "-o", "x.tar", "--json", cwd=pair.here)) for _ in range(2))
    assert (first["new"], again) == (True, first | {"new": False})
    assert "x.tar already exists" in ctx("export", pair.pack.hex, "-o", "x.tar", cwd=pair.here).out
    assert ctx("export", pair.parent.hex, "-o", "x.tar", cwd=pair.here).status == 14
    assert target.read_bytes() == pair.data


@pytest.mark.parametrize("target", ["absent/x.tar", "n" * 300, ".ctx/config.json/x.tar"])
def test_an_error_names_the_file_that_was_asked_for_and_no_other(pair_once: Pair, target: str) -> None:
    result = ctx("export", pair_once.pack.hex, "-o", target, cwd=pair_once.here)
    assert (target in result.err, ".ctx-export" in result.err) == (True, False), result


def test_two_exports_to_one_name_at_once_leave_one_of_them_whole(pair: Pair) -> None:
    command = [COMMAND, "export", "-o", "x.tar"]
    both = [
        subprocess.Popen([*command, pack.hex], cwd=pair.here, env=child_environment(), stderr=subprocess.PIPE)
        for pack in (pair.pack, pair.parent)
    ]
    errors = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 14], errors
    assert sorted(path.name for path in pair.here.iterdir()) == [".ctx", "x.tar"]
    assert pair.take((pair.here / "x.tar").read_bytes()).status == 0
