"""The cost of packing: large contents against hashing, many small ones against single syncs, and growth."""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from bench.measure import Row, measure_in_turns
from bench.programs import Program, programs
from contextplane.app.execution.pack import pack_log
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings

__all__ = ["log_of", "pack_rows"]

_COUNT, _SIZE = 200, 1 << 20
_STEPS = 2_000
_PROMPTS, _MORE_PROMPTS = 2_000, 20_000
_ROUNDS = 5
# The peak of the process itself: getrusage may report that of the process it was forked from.
_PACK = (
    "import sys; from contextplane.cli.main import main; main(['pack', sys.argv[1]]);"
    "print(open('/proc/self/status').read(), file=sys.stderr)"
)


def log_of(**fields: object) -> dict[str, object]:
    return {
        "model": {"identifier": "m"},
        "system_prompt": "s",
        "environment": {"os": "linux", "runtime": "r"},
        **fields,
    }


def pack_rows() -> Iterator[Row]:
    """Yield the cost of packing 200 inputs of 1 MiB, 2,000 small steps, and very many tiny prompts."""
    with programs() as (folder, measured):
        logs = _logs(folder)
        large = logs["large"]
        size = large.stat().st_size
        data = large.read_bytes()[:_SIZE]
        works: dict[str, Callable[[], object]] = {
            "hash": lambda: _hash(data),
            "write": lambda: _write(folder, data),
            "syncs": lambda: _sync(folder),
            "files": lambda: _move(folder),
            "itself": _in_process(measured[0].new_store(), folder),
        }
        for program in measured:
            works[f"{program.name} large"] = program.pack_fresh(logs["large"], rounds=_ROUNDS + 1)
            works[f"{program.name} small"] = program.pack_in_turn(_small_logs(folder))
        times = dict(zip(works, measure_in_turns(list(works.values()), rounds=_ROUNDS), strict=True))
        peak = _peak(measured[0].new_store(), large)
        yield from _large_rows(times, size, peak)
        ratio = times["syncs"] / times["itself"]
        figures = f"{times['itself'] * 1000:.0f} ms, {times['syncs'] * 1000:.0f} ms"
        yield Row("pack 2,000 small steps", "4,000 single fsyncs", ratio, ">= 5", ratio >= 5, figures)
        ratio = times["syncs"] / times["ours small"]
        figures = f"{times['ours small'] * 1000:.0f} ms"
        yield Row("ctx pack of them, start and all", "4,000 single fsyncs", ratio, ">= 5", ratio >= 5, figures)
        ratio = times["ours small"] / times["files"]
        figures = f"{times['files'] * 1000:.0f} ms"
        yield Row("ctx pack of them, start and all", "its files alone", ratio, "-", kept=True, figures=figures)
        yield from _many_rows(measured[0], logs)
    for name, what in (("large", "pack 200 inputs of 1 MiB"), ("small", "pack 2,000 small steps")):
        if f"CTX_OTHER {name}" in times:
            ours, other = times[f"ours {name}"], times[f"CTX_OTHER {name}"]
            figures = f"{ours * 1000:.0f} ms, {other * 1000:.0f} ms"
            yield Row(what, "CTX_OTHER", ours / other, "-", kept=True, figures=figures)


def _large_rows(times: dict[str, float], size: int, peak: int) -> Iterator[Row]:
    speed = {name: size / times[name] / 1e6 for name in ("ours large", "hash", "write")}
    ratio = speed["ours large"] / speed["hash"]
    figures = f"{speed['ours large']:.0f} MB/s, SHA-256 {speed['hash']:.0f} MB/s"
    yield Row("pack 200 inputs of 1 MiB", "SHA-256 alone", ratio, ">= 0.25", ratio >= 0.25, figures)
    ratio = speed["ours large"] / speed["write"]
    figures = f"write + fsync {speed['write']:.0f} MB/s"
    yield Row("the same", "writing 200 files alone", ratio, "-", kept=True, figures=figures)
    memory = peak * 1024 / size
    yield Row("memory of that", "the log's size", memory, "<= 2.5", memory <= 2.5, f"{peak / 1024:.0f} MiB")


def _many_rows(ours: Program, logs: dict[str, Path]) -> Iterator[Row]:
    """Yield the cost per prompt of ten times as many prompts, all different."""
    few, many = measure_in_turns([ours.pack_fresh(logs[name], rounds=2) for name in ("few", "many")], rounds=1)
    ratio = (many / _MORE_PROMPTS) / (few / _PROMPTS)
    figures = f"{many / _MORE_PROMPTS * 1e6:.0f} us each, {few / _PROMPTS * 1e6:.0f} us each"
    yield Row("pack 20,000 tiny prompts", "of 2,000, each", ratio, "<= 1.3", ratio <= 1.3, figures)
    size, peak = logs["many"].stat().st_size, _peak(ours.new_store(), logs["many"])
    yield Row("memory of that", "the log's size", peak * 1024 / size, "-", kept=True, figures=f"{peak / 1024:.0f} MiB")


def _logs(folder: str) -> dict[str, Path]:
    lines = [hashlib.sha256(b"%d" % n).hexdigest()[:59] + "\n" for n in range(_SIZE // 60)]
    inputs = [{"name": f"{n}.txt", "content": f"{n}" + "".join(lines)} for n in range(_COUNT)]
    few, many = ([{"role": "user", "content": f"p {n}"} for n in range(count)] for count in (_PROMPTS, _MORE_PROMPTS))
    documents = {
        "large": log_of(inputs=inputs),
        "few": log_of(prompts=few),
        "many": log_of(prompts=many),
    }
    paths = {name: Path(folder, f"{name}.json") for name in documents}
    for name, document in documents.items():
        paths[name].write_bytes(msgspec.json.encode(document))
    return paths


def _small_logs(folder: str, word: str = "") -> list[Path]:
    """Write logs of small steps, each with other outputs, so that each is new to the store."""
    paths = []
    for number in range(_ROUNDS + 1):
        steps = [{"type": "tool_call", "tool": "t", "output": f"{word}output {number}.{n}"} for n in range(_STEPS)]
        paths.append(Path(folder, f"small-{word}{number}.json"))
        paths[-1].write_bytes(msgspec.json.encode(log_of(steps=steps)))
    return paths


def _hash(data: bytes) -> None:
    hasher = hashlib.sha256()
    for _ in range(_COUNT):
        hasher.update(data)


def _write(folder: str, data: bytes) -> None:
    """Write as many files of that size, and sync each when all are written."""
    place = tempfile.mkdtemp(dir=folder)
    open_files = [os.open(f"{place}/{n}", os.O_WRONLY | os.O_CREAT) for n in range(_COUNT)]
    for fd in open_files:
        os.write(fd, data)
    for fd in open_files:
        os.fsync(fd)
        os.close(fd)


def _sync(folder: str) -> None:
    """Write small files, each synced before the next, like a store that syncs each object and its entry."""
    place = tempfile.mkdtemp(dir=folder)
    for n in range(2 * _STEPS):
        fd = os.open(f"{place}/{n}", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"output")
        os.fsync(fd)
        os.close(fd)


def _in_process(store: str, folder: str) -> Callable[[], object]:
    """Pack one log after the other inside this process, like a program that records runs."""
    logs = iter([path.read_bytes() for path in _small_logs(folder, "other ")])

    def pack() -> None:
        with open_platform(Settings(cwd=store)) as platform:
            pack_log(platform, next(logs), root=store)

    return pack


def _move(folder: str) -> None:
    """Write as many small files aside, sync all at once, move them to shards, and sync all at once."""
    place = tempfile.mkdtemp(dir=folder)
    names = [hashlib.sha256(b"%d" % n).hexdigest() for n in range(_STEPS)]
    for shard in {name[:2] for name in names}:
        Path(place, shard).mkdir()
    for name in names:
        fd = os.open(f"{place}/{name}", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"output")
        os.close(fd)
    os.sync()
    for name in names:
        os.rename(f"{place}/{name}", f"{place}/{name[:2]}/{name[2:]}")  # noqa: PTH104  a Path would be measured, too
    os.sync()


def _peak(store: str, log: Path) -> int:
    """Measure the peak memory of packing, in KiB."""
    done = subprocess.run(
        [sys.executable, "-c", _PACK, str(log)], cwd=store, check=True, capture_output=True, text=True
    )
    match = re.search(r"VmHWM:\s+(\d+)", done.stderr)
    assert match is not None
    return int(match[1])
