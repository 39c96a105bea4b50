"""`ctx fsck` ends with the way out of what it found."""

from collections.abc import Callable
from pathlib import Path

import pytest

from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from tests.surfaces.artifacts import damage, packed, place
from tests.surfaces.commands import ctx

HEAL = "To restore changed or missing parts of a run, pack its log again, or import the run."
REBUILD = "'ctx fsck --rebuild' makes the index again."
RESTORE = "Restore objects that belong to no run from a copy of the store."
PROMPT = Digest.of(b"You are careful.")


def a_content(folder: Path, _run: Digest) -> None:
    damage(place(folder, PROMPT))


def a_manifest(folder: Path, run: Digest) -> None:
    place(folder, run).unlink()


def an_entry(folder: Path, run: Digest) -> None:
    (folder / ".ctx" / "packs" / run.hex).unlink()


def the_index(folder: Path, run: Digest) -> None:
    with open_platform(Settings(cwd=str(folder))) as platform, platform.catalog.write() as tx:
        tx.packs.remove(run)


def of_no_run(folder: Path, _run: Digest) -> None:
    with open_platform(Settings(cwd=str(folder))) as platform, platform.catalog.write() as tx:
        tx.objects.keep("handoff/pk_abcd2345/1", Digest.of(b"never stored"))


def nothing(_folder: Path, _run: Digest) -> None:
    pass


@pytest.mark.parametrize(
    ("harm", "last"),
    [
        (a_content, HEAL),
        (a_manifest, HEAL),
        (an_entry, HEAL),
        (the_index, REBUILD),
        (of_no_run, RESTORE),
        (nothing, "The store is intact."),
    ],
)
def test_the_report_ends_with_the_way_out(tmp_path: Path, harm: Callable[[Path, Digest], None], last: str) -> None:
    harm(tmp_path, packed(tmp_path, "report.md").digest)
    assert ctx("fsck", cwd=tmp_path).out.splitlines()[-1] == last
