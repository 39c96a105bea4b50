"""The cost of commands in a large store, and of comparing two runs."""

import difflib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench.measure import Row, measure_in_turns
from bench.pack import log_of
from bench.programs import Program, programs
from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.audit.diff import diff_manifests
from contextplane.audit.load import load_pack

__all__ = ["diff_rows", "many_packs_rows"]

_STEPS = 2_000
_ROUNDS = 15
_FEW, _MANY = 10, 10_000


def many_packs_rows() -> Iterator[Row]:
    """Yield the cost of commands in a store of 10,000 packs against one of 10."""
    with programs() as (folder, measured):
        stores = {
            program.name: [_fill_store(program, folder, count) for count in (_FEW, _MANY)] for program in measured
        }
        for args in (["log"], ["show"], ["search", "needle"]):
            able = [
                program
                for program in measured
                if program.supports(stores[program.name][0][0], *_with_digits(args, stores[program.name][0][1]))
            ]
            works = [
                program.prepare(store, *_with_digits(args, digits))
                for program in able
                for store, digits in stores[program.name]
            ]
            times = measure_in_turns(works, rounds=_ROUNDS)
            few, many = times[:2]
            what = f"{args[0]} in a store of 10,000 packs"
            figures = f"{many * 1000:.1f} ms, {few * 1000:.1f} ms"
            yield Row(what, "in a store of 10", many / few, "<= 1.3", many / few <= 1.3, figures)
            if len(able) > 1:
                figures = f"{many * 1000:.1f} ms, {times[3] * 1000:.1f} ms (in a store of 10: {times[2] * 1000:.1f} ms)"
                yield Row(what, "CTX_OTHER", many / times[3], "-", kept=True, figures=figures)


def _with_digits(args: list[str], digits: str) -> list[str]:
    return [*args, digits[:16]] if args == ["show"] else args


def _fill_store(program: Program, folder: str, count: int) -> tuple[str, str]:
    """Make a store with `count` packs; return its path, and the digest of one pack."""
    store = program.new_store()
    digits = ""
    if program.name == "ours":
        # As the command does, without a process for each pack.
        with open_platform(Settings(cwd=store)) as platform:
            for n in range(count):
                digits = pack_log(platform, _log(n, count), root=store).digest.hex
    else:
        log = Path(folder, "next.json")
        for n in range(count):
            log.write_bytes(_log(n, count))
            digits = program.pack(store, log)
    os.utime(Path(store, ".ctx", "packs"), (1000, 1000))
    program.prepare(store, "log")()
    return store, digits


def _log(n: int, count: int) -> bytes:
    prompt = f"prompt {n}" + (" needle" if n % (count // _FEW) == 0 else "")
    steps = [{"type": "tool_call", "tool": "t", "output": f"out {n}", "parameters": {"n": n}}]
    return msgspec.json.encode(log_of(prompts=[{"role": "user", "content": prompt}], steps=steps))


def diff_rows() -> Iterator[Row]:
    """Yield the cost of comparing two runs of 2,000 steps: one inserted, a tenth of the outputs changed."""
    logs = [msgspec.json.encode(log_of(steps=steps)) for steps in _two_runs()]
    with tempfile.TemporaryDirectory() as folder, _open_store(folder) as platform:
        packs = [load_pack(pack_log(platform, log, root=folder).digest, platform.objects) for log in logs]
        keys = [[(step.tool, str(step.parameters), step.output_ref) for step in pack.manifest.steps] for pack in packs]
        theirs, ours = measure_in_turns(
            [
                lambda: difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes(),
                lambda: list(diff_manifests(packs[0].manifest, packs[1].manifest)),
            ],
            rounds=5,
        )
    what, figures = "diff of two runs of 2,000 steps", f"{ours * 1000:.1f} ms, {theirs * 1000:.1f} ms"
    yield Row(what, "difflib over the same keys", ours / theirs, "<= 5", ours / theirs <= 5, figures)
    yield from _commands(what, logs)


def _commands(what: str, logs: list[bytes]) -> Iterator[Row]:
    """Yield the cost of the whole command, in turns with the other program."""
    with programs() as (folder, measured):
        if len(measured) == 1:
            return
        works = []
        for program in measured:
            store, digits = program.new_store(), []
            for number, log in enumerate(logs):
                path = Path(folder, f"{number}.json")
                path.write_bytes(log)
                digits.append(program.pack(store, path))
            if program.supports(store, "diff", *digits):
                works.append(program.prepare(store, "diff", *digits))
        if len(works) == len(measured):
            ours, other = measure_in_turns(works, rounds=_ROUNDS)
            figures = f"{ours * 1000:.1f} ms, {other * 1000:.1f} ms"
            yield Row(f"ctx {what}", "CTX_OTHER", ours / other, "-", kept=True, figures=figures)


def _two_runs() -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    first: list[dict[str, object]] = [
        {"type": "tool_call", "tool": f"t{n % 7}", "parameters": {"n": n}, "output": f"o{n}"} for n in range(_STEPS)
    ]
    second = [{**step, "output": f"other {n}"} if n % 10 == 0 else step for n, step in enumerate(first)]
    second.insert(700, {"type": "tool_call", "tool": "new", "parameters": {}, "output": ""})
    return first, second


@contextmanager
def _open_store(folder: str) -> Iterator[Platform]:
    settings = Settings(cwd=folder)
    init(settings)
    with open_platform(settings) as platform:
        yield platform
