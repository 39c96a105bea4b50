"""Run the tools of a recorded run again, and compare step by step.

Every step except reasoning is called again with its recorded parameters. Its result is one of:
  matched                 the same output
  diverged                another output
  diverged as expected    another output, and the step is not deterministic
  failed                  no such tool, refused, timed out, an error, or a damaged recorded output

Fidelity is exact, degraded (a deterministic step diverged; status 12) or failed (a step failed; status 1). Changes of
the environment are listed as drift, and do not affect it. With --recorded no tool runs: every output is read from the
pack and verified.

Tools are read_file, list_files, search, http_get, python, and plug-ins (entry points in contextplane.tools). They read
only files below the workspace, and not the store. They reach no network host and no Python module unless you allow it,
start no process, and see only language, time zone and PYTHONPATH of the environment. Foreign code (python, plug-ins)
runs in its own process for every step, and writes only to a temporary folder, which HOME and TMPDIR name.

On Linux 6.2 and newer the kernel enforces this (Landlock, seccomp), with two exceptions: once a host is allowed,
malicious code can reach others, and it can read stores in subfolders. On other systems only Python enforces it, which
malicious code can bypass; foreign code is therefore refused unless --trust-tools is given. The output names what was
enforced. docs/replay.md lists the parameters of each tool.

Examples:
  ctx replay 3fa9                                  run its tools again
  ctx replay 3fa9 --recorded                       only verify the recorded outputs
  ctx replay 3fa9 --allow-host api.example.com     allow one network host
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from typing import TYPE_CHECKING

from contextplane.cli.exit import DRIFT, FAILED, OK
from contextplane.cli.options import folder
from contextplane.cli.output import CommandOutput, clean, shorten

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from contextplane.app.execution.load import LoadedPack
    from contextplane.app.execution.replay import Replay, ReplayedPart, RunDrift
    from contextplane.app.platform import Platform

__all__ = ["add_arguments", "host", "module", "run", "seconds"]

_LONGEST = 86_400
_INDENT = " " * 6
_WIDEST = 30
_EXIT = {"exact": OK, "degraded": DRIFT, "failed": FAILED}
_REFERENCE_EXIT = {"exact": 0, "degraded": 1, "failed": 2}
_WRONG = frozenset({"diverged", "failed"})
_LOST = frozenset({"missing_input", "damaged_input"})
_FIDELITY_COLOR = {"exact": "green", "degraded": "yellow", "failed": "red"}
_MARK = {
    "matched": ("✓", "green", "matched"),
    "diverged": ("≠", "yellow", "diverged"),
    "diverged_expected": ("≈", "dim", "diverged (expected: non-deterministic)"),
    "failed": ("✗", "red", "failed"),
    "skipped": ("-", "dim", "skipped"),
}


def seconds(text: str) -> float:
    """Parse a time limit: more than nothing, at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= _LONGEST:
        raise ArgumentTypeError(f"not a number of seconds: {text[:20]!r} (more than 0, at most {_LONGEST})")
    return value


def host(text: str) -> str:
    """Parse the name or the address of a host, without a scheme, a port or a path."""
    with_port = text.count(":") == 1  # an IPv6 address has more of them
    if with_port or not text or not text.isascii() or not text.isprintable() or set(text) & set(" ,/@\\[]"):
        raise ArgumentTypeError(f"not a host: {text[:80]!r} (write its name only: example.org)")
    return text


def module(text: str) -> str:
    """Parse the dotted name of a module."""
    if not all(part.isidentifier() for part in text.split(".")):
        raise ArgumentTypeError(f"not a module: {text[:80]!r} (write its dotted name: package.module)")
    return text


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="the execution pack: ctx://<hash>, or the first digits of it")
    parser.add_argument("--recorded", action="store_true", help="run no tool; verify every recorded output")
    parser.add_argument(
        "--root", type=folder, metavar="FOLDER", help="the workspace (default: the folder that holds the store)"
    )
    parser.add_argument(
        "--allow-host",
        type=host,
        action="append",
        default=[],
        metavar="HOST",
        help="allow http_get to reach this host; repeatable",
    )
    parser.add_argument(
        "--allow-python",
        type=module,
        action="append",
        default=[],
        metavar="MODULE",
        help="allow python to call functions of this module; repeatable",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="SECONDS",
        help="the time limit of a step (default: 10)",
    )
    parser.add_argument(
        "--trust-tools", action="store_true", help="run foreign code even where the kernel enforces no limits"
    )
    parser.add_argument(
        "--reference-exit", action="store_true", help="exit with 0 (exact), 1 (degraded) or 2 (failed) instead"
    )


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.execution.load import load_run
    from contextplane.app.execution.replay import fidelity
    from contextplane.cli.store import open_store

    with open_store(output) as platform:
        pack = load_run(platform, args.ref)
        with _open_replay(args, platform, pack) as replay:
            output.line(f"Replay of ctx://{pack.digest.hex}")
            columns = _columns(pack, recorded=args.recorded)
            parts = []
            for part in replay.parts:
                _print_part(part, columns, output)
                parts.append(part)
    verdict = fidelity(parts)
    confinement = replay.confinement()
    if confinement is not None:
        output.line(f"sandbox: {confinement}")
    if confinement == "python":
        output.note("the kernel did not confine the tools, only Python did: malicious code can bypass that")
    _print_drift(replay.drift, output)
    counts: Counter[str] = Counter(part.outcome for part in parts)
    summary = ", ".join(f"{counts[outcome]:,} {word}" for outcome, (_, _, word) in _MARK.items() if counts[outcome])
    output.line(f"{summary or 'nothing to run'}; fidelity: {output.paint(_FIDELITY_COLOR[verdict], verdict)}")
    output.answer(
        {
            "pack": f"ctx://{pack.digest.hex}",
            "mode": "recorded" if args.recorded else "live",
            "confinement": confinement,
            "fidelity": verdict,
            "parts": parts,
            "drift": replay.drift,
        }
    )
    return _REFERENCE_EXIT[verdict] if args.reference_exit else _EXIT[verdict]


def _open_replay(args: Namespace, platform: "Platform", pack: "LoadedPack") -> "AbstractContextManager[Replay]":
    from contextplane.app.execution.replay import ReplayLimits, open_recorded_replay, open_replay

    if args.recorded:
        return open_recorded_replay(platform, pack)
    limits = ReplayLimits(
        root=args.root,
        hosts=tuple(args.allow_host),
        modules=tuple(args.allow_python),
        seconds=args.timeout,
        trusting=args.trust_tools,
    )
    return open_replay(platform, pack, limits)


def _columns(pack: "LoadedPack", *, recorded: bool) -> tuple[int, int]:
    """Return the widths of the columns of parts and tools, which are printed one by one."""
    steps, outputs = pack.manifest.steps, pack.manifest.outputs if recorded else ()
    parts = [
        f"steps/{len(steps) - 1}" if steps else "",
        *(clean(f"outputs/{recorded_output.name}") for recorded_output in outputs),
    ]
    tools = ["", *(clean(step.tool or step.type) for step in steps)]
    return min(max(map(len, parts)), _WIDEST), min(max(map(len, tools)), _WIDEST)


def _print_part(part: "ReplayedPart", columns: tuple[int, int], output: CommandOutput) -> None:
    mark, color, word = _MARK[part.outcome]
    name = f"{clean(part.part):<{columns[0]}}  {clean(part.tool or part.type):<{columns[1]}}".rstrip()
    name = name.ljust(sum(columns) + 2) if columns[1] else name
    why = f": {clean(part.why)}" if part.why else ""
    print_line = output.failure_line if part.outcome in _WRONG else output.line
    print_line(f"  {output.paint(color, mark)} {shorten(f'{name}  {word}{why}')}")
    if part.text:
        from contextplane.cli.render.execution import diff_lines

        for line in diff_lines(part.text, output):
            output.line(_INDENT + line)


def _print_drift(drift: "tuple[RunDrift, ...]", output: CommandOutput) -> None:
    if drift:
        output.line("Drift:")
    for change in drift:
        print_line = output.failure_line if change.kind in _LOST else output.line
        print_line(f"  {shorten(clean(_drift_text(change)))}")


def _drift_text(drift: "RunDrift") -> str:
    if drift.kind in _LOST:
        from msgspec import UNSET

        from contextplane.app.damage import damage_sentence

        what = f"input {drift.what}"
        return f"{what}: {drift.now}" if drift.damage is UNSET else damage_sentence(what, drift.damage)
    name = f"version of {drift.what}" if drift.kind == "tool_version" else drift.what
    return f"{name} was {drift.recorded or 'unknown'}, is {drift.now or 'unknown'}"
