"""Memory does not grow with what is stored: all of this runs in 64 MiB more than an idle process has."""

import sys
from pathlib import Path

import pytest

from contextplane.app.init import init
from contextplane.app.settings import Settings
from tests.faults.children import LITTLE, MEBI, start
from tests.support.reference_store import ReferenceStore

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA and /proc tell about memory on Linux only")


def grown(what: str, place: Path) -> list[int]:
    """The numbers that the child told; the last is by how much it grew."""
    with start("in_little_memory", what, place) as child:
        out, err = child.communicate()
    assert (err.decode(), child.returncode) == ("", 0)
    return [int(number) for number in out.split()]


def test_objects_of_256_mib_go_in_and_out_through_little_memory(on_disk: Path) -> None:
    (growth,) = grown("objects", on_disk)
    assert growth < LITTLE


def test_checking_thousands_of_objects_needs_little_memory(on_disk: Path) -> None:
    other = ReferenceStore(on_disk)
    # More in all than would fit, so that whoever kept what was read would not come through.
    other.pack(outputs={f"{n}.bin": n.to_bytes(8) * 4096 for n in range(3000)})
    init(Settings(cwd=str(on_disk)), ".")
    size, objects, growth = grown("fsck", on_disk)
    assert objects > 3000
    assert size > 90 * MEBI
    assert growth < LITTLE


def test_the_limit_is_one(on_disk: Path) -> None:
    with start("in_little_memory", "hog", on_disk) as child:
        _, err = child.communicate()
    assert child.returncode == 1
    assert b"MemoryError" in err
