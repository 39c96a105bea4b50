"""A store on a disk without any room: everything can be read, writing is refused by its name, and `gc` makes room."""

import shutil
from pathlib import Path
from subprocess import run

import pytest

from tests.faults.stores import assert_refused, small_files
from tests.patience import PATIENCE
from tests.surfaces.commands import COMMAND, child_environment, ctx
from tests.surfaces.runs import packed

_LARGE = "x" * 500_000
_TINY = 8192  # less than any catalog grows by

# In a mount namespace of its own, so that the disk goes away with the child. Prints each verb with its status.
_ON_A_FULL_DISK = """
mount -t tmpfs -o size=3m none "$0" && cp -r "$1"/. "$0" && cd "$0" || exit 99
cat /dev/zero > junk 2>/dev/null
while read -r verb; do
    "$2" $verb < /dev/null > "$3" 2>&1
    echo "$? $verb: $(grep '^ctx: ' "$3")"
done
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a pack, and with a large orphan."""
    folder = tmp_path / "store"
    folder.mkdir()
    assert ctx("init", cwd=folder).status == 0
    gone = packed(folder, outputs=[{"name": "large", "content": _LARGE}])
    (folder / ".ctx" / "packs" / gone).unlink()
    packed(folder)
    assert ctx("fsck", "--rebuild", cwd=folder).status == 0
    return folder


def on_a_full_disk(store: Path, *verbs: str) -> list[str]:
    """Run the verbs on a full disk; return a line with the status and the error of each."""
    disk = store.parent / "disk"
    disk.mkdir()
    in_namespace = ["unshare", "-m", "sh", "-c"]
    if (
        shutil.which("unshare") is None
        or run([*in_namespace, f'mount -t tmpfs none "{disk}"'], check=False).returncode != 0
    ):
        pytest.skip("mounting a small disk needs a right that we do not have here")
    env = child_environment()
    command = [*in_namespace, _ON_A_FULL_DISK, str(disk), str(store), COMMAND, str(store.parent / "output")]
    done = run(
        command, env=env, input="\n".join(verbs).encode() + b"\n", capture_output=True, check=True, timeout=PATIENCE
    )
    return done.stdout.decode().splitlines()


def test_on_a_full_disk_everything_can_be_read_and_writing_is_refused_as_full(store: Path) -> None:
    pack = ctx("log", "--json", cwd=store).out.split("ctx://")[1][:64]
    reading = (
        "status",
        "log",
        f"show {pack}",
        f"cat {pack}:system_prompt",
        f"verify {pack}",
        "search Refunded",
        "fsck",
    )
    *read, written = on_a_full_disk(store, *reading, f"fork {pack}")
    assert read == [f"0 {verb}: " for verb in reading]
    assert written.startswith(f"1 fork {pack}: ctx: storage_full: ")


def test_on_a_full_disk_collecting_makes_room(store: Path) -> None:
    (store / "log.json").write_text(
        '{"created": "2026-05-04T00:00:00Z", "model": {"identifier": "m"}, "system_prompt": "s",'
        ' "environment": {"os": "linux", "runtime": "r"}}',
        encoding="utf-8",
    )
    before, collected, after, checked = on_a_full_disk(store, "pack log.json", "gc --grace 0s", "pack log.json", "fsck")
    assert before.startswith("1 pack log.json: ctx: storage_full: ")
    assert [collected, after, checked] == ["0 gc --grace 0s: ", "0 pack log.json: ", "0 fsck: "]


def test_where_no_file_may_grow_everything_can_be_read_and_writing_is_refused_as_full(store: Path) -> None:
    for verb in ("status", "log", "fsck"):
        done = small_files(_TINY, verb, cwd=store)
        assert (done.status, done.err) == (0, "")
    text = ctx("log", "--json", cwd=store).out
    done = small_files(_TINY, "handoff", "list", cwd=store)
    assert (done.status, done.err) == (0, "")
    assert_refused(small_files(_TINY, "fsck", "--rebuild", cwd=store), 1, "storage_full")
    assert ctx("log", "--json", cwd=store).out == text
    assert ctx("fsck", cwd=store).status == 0
