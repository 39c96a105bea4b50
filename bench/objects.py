"""The object store against its limits: hashing alone, and copying with a sync alone."""

import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row, measure_in_turns, scratch
from contextplane.adapters.files.objects import FileObjects
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import BLOB, IndexedObject
from contextplane.model.ids import Digest
from contextplane.ports.objects import Objects

__all__ = ["large_object_rows", "small_object_rows"]

_GIB = 1 << 30
_CHUNK = 1 << 20
_ROUNDS = 5
_SMALL = 100_000
_PART = 1_000


def large_object_rows() -> Iterator[Row]:
    """Yield the speed of putting and reading 1 GiB."""
    with scratch() as folder:
        source = Path(folder, "source")
        with source.open("wb") as file:
            for n in range(_GIB // _CHUNK):
                file.write(hashlib.sha256(b"%d" % n).digest() * (_CHUNK // 32))
        os.sync()
        root = Path(folder, "objects")
        root.mkdir()
        objects = FileObjects(str(root))
        digest = objects.put_path(str(source)).digest
        place = root / digest.hex[:2] / digest.hex[2:]

        def put() -> None:
            place.unlink(missing_ok=True)
            objects.put_path(str(source))

        def pipe() -> None:
            place.unlink(missing_ok=True)
            with subprocess.Popen(["cat", str(source)], stdout=subprocess.PIPE) as child:
                assert child.stdout is not None
                fd = child.stdout.fileno()
                objects.put_stream(iter(lambda: os.read(fd, _CHUNK), b""))

        works = [lambda: _hash(source), lambda: _copy(source, folder), put, pipe, lambda: objects.check(digest)]
        hashing, copying, putting, piping, reading = measure_in_turns(works, rounds=_ROUNDS)
    slower = max(hashing, copying)
    against = "slower of SHA-256 alone, copy + fsync alone"
    base = f"hash {hashing:.2f} s, copy {copying:.2f} s"
    yield Row(
        "put 1 GiB from a path",
        against,
        slower / putting,
        ">= 0.6",
        slower / putting >= 0.6,
        f"{putting:.2f} s, {base}",
    )
    yield Row(
        "put 1 GiB from a pipe", against, slower / piping, ">= 0.3", slower / piping >= 0.3, f"{piping:.2f} s, {base}"
    )
    yield Row(
        "read 1 GiB, verified",
        "SHA-256 alone",
        hashing / reading,
        ">= 0.9",
        hashing / reading >= 0.9,
        f"{reading:.2f} s",
    )


def _hash(path: Path) -> None:
    """Hash the bytes of a file from memory: the limit of every verified read."""
    with path.open("rb") as file:
        data = file.read(_CHUNK)
    hasher = hashlib.sha256()
    for _ in range(_GIB // _CHUNK):
        hasher.update(data)


def _copy(source: Path, folder: str) -> None:
    target = Path(folder, "copy")
    shutil.copyfile(source, target)
    fd = os.open(target, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    target.unlink()


def small_object_rows() -> Iterator[Row]:
    """Yield the cost of putting 100,000 small objects, of checking them all, and of the status."""
    with scratch() as folder:
        few, many = Path(folder, "few"), Path(folder, "many")
        _fill_store(few, _PART)
        times = _fill_store(many, _SMALL)
        first, last = statistics.median(times[:_PART]), statistics.median(times[-_PART:])
        small_peak, large_peak = _fsck_peak(few), _fsck_peak(many)
        command = [sys.executable, "-c", "from contextplane.cli.main import main; main(['status', '--quiet'])"]
        small_status, large_status = measure_in_turns(
            [lambda store=store: subprocess.run(command, cwd=store, check=True) for store in (few, many)],  # type: ignore[misc]
            rounds=15,
        )
    figures = f"first {first * 1e6:.0f} us, last {last * 1e6:.0f} us"
    yield Row("put, the last 1,000 of 100,000", "the first 1,000", last / first, "<= 1.5", last / first <= 1.5, figures)
    growth = large_peak / small_peak
    figures = f"{large_peak / 1024:.0f} MiB, {small_peak / 1024:.0f} MiB"
    yield Row("fsck of 100,000: peak memory", "fsck of 1,000", growth, "bounded", growth <= 1.5, figures)
    growth = large_status / small_status
    figures = f"{large_status * 1000:.1f} ms, {small_status * 1000:.1f} ms"
    yield Row("status with 100,000 objects", "with 1,000", growth, "flat", growth <= 1.3, figures)


def _fill_store(store: Path, count: int) -> list[float]:
    """Make a store with `count` small objects, each recorded and kept; return the seconds of each put."""
    store.mkdir()
    settings = Settings(cwd=str(store))
    init(settings, ".")
    with open_platform(settings) as platform:
        seconds = [_put(platform.objects, n) for n in range(count)]
        with platform.catalog.write() as tx:
            for n in range(count):
                digest = Digest.of(_small(n))
                tx.objects.record(IndexedObject(digest=digest, kind=BLOB, size=len(_small(n)), traced=True))
                tx.objects.keep(f"bench/{n}", digest)
    return seconds


def _small(n: int) -> bytes:
    return b"small object %d" % n


def _put(objects: Objects, n: int) -> float:
    data = _small(n)
    start = time.perf_counter()
    objects.put(data)
    return time.perf_counter() - start


def _fsck_peak(store: Path) -> int:
    """Measure the peak memory of a check of a store, in KiB."""
    script = (
        "import resource, sys; from contextplane.cli.main import main; assert main(['fsck', '--quiet']) == 0;"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=store, check=True, capture_output=True, text=True)
    return int(done.stdout)
