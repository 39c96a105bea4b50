"""Memory does not grow with the store: all of this runs in 64 MiB more than an idle process has."""

import sys
from pathlib import Path

import pytest

from contextplane.app.init import init
from contextplane.app.settings import Settings
from tests.faults.children import LITTLE, MEBI, start
from tests.support.reference_store import ReferenceStore

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA and /proc tell about memory on Linux only")


def memory_growth(task: str, folder: Path) -> list[int]:
    """Run a child and return the numbers it printed; the last is its growth in bytes."""
    with start("in_little_memory", task, folder) as child:
        out, err = child.communicate()
    assert (err.decode(), child.returncode) == ("", 0)
    return [int(number) for number in out.split()]


def test_objects_of_256_mib_go_in_and_out_through_little_memory(on_disk: Path) -> None:
    (growth,) = memory_growth("objects", on_disk)
    assert growth < LITTLE


def test_checking_thousands_of_objects_needs_little_memory(on_disk: Path) -> None:
    other = ReferenceStore(on_disk)
    # More than fits into the limit, so that keeping what was read would fail.
    other.pack(outputs={f"{n}.bin": n.to_bytes(8) * 4096 for n in range(3000)})
    init(Settings(cwd=str(on_disk)), ".")
    size, objects, growth = memory_growth("fsck", on_disk)
    assert objects > 3000
    assert size > 90 * MEBI
    assert growth < LITTLE


def test_the_limit_is_one(on_disk: Path) -> None:
    with start("in_little_memory", "hog", on_disk) as child:
        _, err = child.communicate()
    assert child.returncode == 1
    assert b"MemoryError" in err
