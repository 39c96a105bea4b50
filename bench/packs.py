"""Execution packs: packing against hashing alone, and what a large store costs.

The variable `CTX_OTHER` names another `ctx` that is measured in turns with ours.
"""

import difflib
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.measure import Row, in_turns
from contextplane.app.init import init
from contextplane.app.packing import pack_log
from contextplane.app.platform import Platform, opened
from contextplane.app.settings import Settings
from contextplane.audit.diff import compare
from contextplane.audit.load import load

__all__ = ["diffing", "many_packs", "packing"]

_COUNT, _SIZE = 200, 1 << 20
_STEPS = 2_000
_ROUNDS = 5
_FEW, _MANY = 10, 10_000
_CTX = str(Path(sys.executable).with_name("ctx"))
# The highest mark of the process itself: what getrusage tells may be that of the process it was forked from.
_PACK = (
    "import re, sys; from contextplane.cli.main import main; main(['pack', sys.argv[1]]);"
    "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
)


def _log(**fields: object) -> dict[str, object]:
    return {
        "model": {"identifier": "m"},
        "system_prompt": "s",
        "environment": {"os": "linux", "runtime": "r"},
        **fields,
    }


def packing() -> Iterator[Row]:
    """A log with 200 inputs of a mebibyte, and one with 2,000 small steps."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        large, small = Path(folder, "large.json"), Path(folder, "small.json")
        lines = [hashlib.sha256(b"%d" % n).hexdigest()[:59] + "\n" for n in range(_SIZE // 60)]
        inputs = [{"name": f"{n}.txt", "content": f"{n}" + "".join(lines)} for n in range(_COUNT)]
        large.write_bytes(msgspec.json.encode(_log(inputs=inputs)))
        steps = [{"type": "tool_call", "tool": "t", "output": f"output {n}"} for n in range(_STEPS)]
        small.write_bytes(msgspec.json.encode(_log(steps=steps)))
        size = large.stat().st_size
        data = large.read_bytes()[:_SIZE]

        def hashing() -> None:
            hasher = hashlib.sha256()
            for _ in range(size // _SIZE):
                hasher.update(data)

        works = [hashing, _packing(folder, large), _syncing(folder), _packing(folder, small)]
        names = ["hash", "large", "syncs", "small"]
        if other := os.environ.get("CTX_OTHER"):  # noqa: TID251  said in the docstring
            works.append(_packing(folder, large, other))
            names.append("other")
        times = dict(zip(names, in_turns(works, rounds=_ROUNDS), strict=True))
        peak = _peak(folder, large)
    speed = times["hash"] / times["large"]
    figures = f"{size / times['large'] / 1e6:.0f} MB/s, SHA-256 {size / times['hash'] / 1e6:.0f} MB/s"
    yield Row("pack 200 inputs of 1 MiB", "SHA-256 alone", speed, ">= 0.25", speed >= 0.25, figures)
    memory = peak * 1024 / size
    yield Row("memory of that", "the log's size", memory, "<= 2.5", memory <= 2.5, f"{peak / 1024:.0f} MiB")
    ratio = times["syncs"] / times["small"]
    figures = f"{times['small'] * 1000:.0f} ms, {times['syncs'] * 1000:.0f} ms"
    yield Row("pack 2,000 small steps", "4,000 single fsyncs", ratio, ">= 5", ratio >= 5, figures)
    if "other" in times:
        yield Row("pack 200 inputs of 1 MiB", "CTX_OTHER", times["other"] / times["large"], "-", kept=True, figures="")


def _fresh(folder: str, ctx: str = _CTX) -> str:
    store = tempfile.mkdtemp(dir=folder)
    subprocess.run([ctx, "init"], cwd=store, check=True, stdout=subprocess.DEVNULL)
    return store


def _packing(folder: str, log: Path, ctx: str = _CTX) -> Callable[[], object]:
    # One for each round, made before the clock runs.
    stores = iter([_fresh(folder, ctx) for _ in range(_ROUNDS + 1)])

    def pack() -> None:
        subprocess.run([ctx, "pack", str(log)], cwd=next(stores), check=True, stdout=subprocess.DEVNULL)

    return pack


def _syncing(folder: str) -> Callable[[], object]:
    def sync() -> None:
        place = tempfile.mkdtemp(dir=folder)
        for n in range(2 * _STEPS):
            fd = os.open(f"{place}/{n}", os.O_WRONLY | os.O_CREAT)
            os.write(fd, b"output")
            os.fsync(fd)
            os.close(fd)

    return sync


def _peak(folder: str, log: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _PACK, str(log)], cwd=_fresh(folder), check=True, capture_output=True, text=True
    )
    return int(done.stderr.split()[-1])


def many_packs() -> Iterator[Row]:
    """The same commands in a store of 10 packs and in one of 10,000."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as folder:
        stores = [_filled(folder, count) for count in (_FEW, _MANY)]
        for args in (["log"], ["show"], ["search", "needle"]):
            works = [_asking(store, args, digits) for store, digits in stores]
            few, many = in_turns(works, rounds=15)
            figures = f"{many * 1000:.1f} ms, {few * 1000:.1f} ms"
            what = f"{' '.join(args[:1])} in a store of 10,000 packs"
            yield Row(what, "in a store of 10", many / few, "<= 1.3", many / few <= 1.3, figures)


def _asking(store: str, args: list[str], digits: str) -> Callable[[], object]:
    command = [_CTX, *args, *([digits[:16]] if args == ["show"] else [])]
    return lambda: subprocess.run(command, cwd=store, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _filled(folder: str, count: int) -> tuple[str, str]:
    """A store with so many packs; its path, and the digits of one pack."""
    store = _fresh(folder)
    digits = ""
    with opened(Settings(cwd=store)) as platform:
        for n in range(count):
            prompt = f"prompt {n}" + (" needle" if n % (count // _FEW) == 0 else "")
            steps = [{"type": "tool_call", "tool": "t", "output": f"out {n}", "parameters": {"n": n}}]
            log = msgspec.json.encode(_log(prompts=[{"role": "user", "content": prompt}], steps=steps))
            digits = pack_log(platform, log, root=store).digest.hex
    os.utime(Path(store, ".ctx", "packs"), (1000, 1000))
    subprocess.run([_CTX, "status"], cwd=store, check=True, stdout=subprocess.DEVNULL)
    return store, digits


def diffing() -> Iterator[Row]:
    """Two runs of 2,000 steps, one step inserted and a tenth of the outputs changed."""
    with tempfile.TemporaryDirectory() as folder, _opened(folder) as platform:
        one = [
            {"type": "tool_call", "tool": f"t{n % 7}", "parameters": {"n": n}, "output": f"o{n}"} for n in range(_STEPS)
        ]
        two = [{**step, "output": f"other {n}"} if n % 10 == 0 else step for n, step in enumerate(one)]
        two.insert(700, {"type": "tool_call", "tool": "new", "parameters": {}, "output": ""})
        packs = [
            load(pack_log(platform, msgspec.json.encode(_log(steps=steps)), root=folder).digest, platform.objects)
            for steps in (one, two)
        ]
        keys = [[(step.tool, str(step.parameters), step.output_ref) for step in pack.manifest.steps] for pack in packs]
        theirs, ours = in_turns(
            [
                lambda: difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes(),
                lambda: list(compare(packs[0].manifest, packs[1].manifest)),
            ],
            rounds=5,
        )
    figures = f"{ours * 1000:.1f} ms, {theirs * 1000:.1f} ms"
    yield Row(
        "diff of two runs of 2,000 steps",
        "difflib over the same keys",
        ours / theirs,
        "<= 5",
        ours / theirs <= 5,
        figures,
    )


@contextmanager
def _opened(folder: str) -> Iterator[Platform]:
    settings = Settings(cwd=folder)
    init(settings)
    with opened(settings) as platform:
        yield platform
