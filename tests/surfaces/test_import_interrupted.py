"""An interrupted import registers nothing, its leftovers can be collected, and it can be repeated."""

import errno
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextplane.adapters.files.objects import FileObjects
from contextplane.app.execution.archive import import_packs
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.store.gc import GcResult, gc
from contextplane.testing.faults import Faults, FaultyDisk
from tests.surfaces.archives import Pair, contents, store_in

FAR_AHEAD = datetime(2200, 1, 1, tzinfo=UTC)


def import_on(platform: Platform, faults: Faults, file: Path) -> None:
    """Import with a disk that follows a plan, and put the real one back."""
    real = platform.objects
    platform.objects = FileObjects(platform.home.objects, FaultyDisk(faults))
    try:
        import_packs(platform, str(file))
    finally:
        platform.objects = real


def collected(platform: Platform) -> GcResult:
    return gc(platform.catalog, platform.entries, platform.objects, older_than=FAR_AHEAD, dry_run=False)


def test_wherever_the_disk_fails_nothing_half_is_registered_and_the_same_import_succeeds_then(
    pair_once: Pair, tmp_path: Path
) -> None:
    counting = Faults()
    with store_in(tmp_path / "whole") as platform:
        import_on(platform, counting, pair_once.file)
    whole = contents(tmp_path / "whole")
    manifests = {pair_once.pack, pair_once.parent}
    for nth in range(1, counting.calls() + 1, 9):
        folder = tmp_path / str(nth)
        with store_in(folder) as platform:
            faults = Faults().at("*", nth, OSError(errno.EIO, "Input/output error"))
            with pytest.raises(ContextPlaneError):
                import_on(platform, faults, pair_once.file)
            assert list(platform.entries.names()) == []
            collected(platform)
            # What is left, if anything, are manifests that nothing vouches for; 'ctx fsck' names them.
            assert {Digest(name) for name in left(folder)} <= manifests
            import_packs(platform, str(pair_once.file))
        assert contents(folder) == whole


def left(folder: Path) -> set[str]:
    return {path.parent.name + path.name for path in folder.glob(".ctx/objects/??/*")}


def test_what_a_killed_import_staged_is_named_until_it_is_old_and_then_removed(pair: Pair) -> None:
    with open_platform(Settings(cwd=str(pair.there))) as platform:
        staging = Path(platform.home.objects, ".staging")
        staging.mkdir(exist_ok=True)
        (staging / "12-0123456789abcdef").write_bytes(b"half")
        just_now = datetime.fromtimestamp((staging / "12-0123456789abcdef").stat().st_mtime + 60, UTC)
        early = gc(platform.catalog, platform.entries, platform.objects, older_than=just_now, dry_run=False)
        late = collected(platform)
    assert (early.leftovers, early.unfinished) == ((), (".staging/12-0123456789abcdef",))
    assert (late.leftovers, late.unfinished) == ((".staging/12-0123456789abcdef",), ())
