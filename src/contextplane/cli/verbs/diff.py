"""Compare two runs: model, environment, prompts, inputs, steps, outputs. Or two handoff packs, or context packs.

A and B are execution packs: ctx://<hash>, or the first digits of a hash. Differences are listed in the order
in which a run happens, so that the first one is where the runs part. Steps are aligned: one that was put in
between is one difference. Contents that differ are shown as a unified diff where they are text, up to 1 MiB
each, 200 lines of each and 100 of them. Times, recorded indices and parents are not compared.

Types: model_drift, environment_drift, prompt_drift, input_drift, tool_drift (another tool, another type of
step, a step more or less, or one that is deterministic in one run only), param_drift, reasoning_drift (a
step gave another output), output_drift. With --exit-code the status is 12 when there is any, else 0.

Of handoff packs, pk_<id>@3 and pk_<id>@5 (without a number the newest), what they say of themselves is
compared, then sections, refs and diagrams by their keys: added, removed, changed, reordered.

Of context packs, each a file (what has a slash or an extension is one), id@X.Y.Z, or id@NAME for an alias
or for what an environment pins: what changed in each layer, what that does to a run, the least class of
version that it asks for (patch, minor, major, or reject: it may not be published), and whether the new
number says as much.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.output import CommandOutput, clean, quantity, shorten

if TYPE_CHECKING:
    from contextplane.app.references import Target
    from contextplane.audit.diff import PackDiff, DiffEntry

__all__ = ["add_arguments", "run"]

_DIGITS = 12
_INDENT = " " * 6
_MOST_ALONE = 10
_VALUES = frozenset({"model_drift", "environment_drift"})


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="the one")
    parser.add_argument("b", metavar="B", help="the other one")
    parser.add_argument("--exit-code", action="store_true", help="end with status 12 when they differ")
    parser.add_argument("--human", action="store_true", help="for people, which is the default")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.references import HandoffTarget, resolve
    from contextplane.cli.parser import Usage

    a, b = resolve(args.a, files=True), resolve(args.b, files=True)
    if isinstance(a, HandoffTarget) and isinstance(b, HandoffTarget):
        from contextplane.cli.handoff.compare import diff

        return diff(a.ref, b.ref, output, exit_code=args.exit_code)
    if isinstance(a, HandoffTarget) or isinstance(b, HandoffTarget):
        raise Usage("a handoff pack is compared with another one only", hint="ctx diff pk_<id>@3 pk_<id>@5")
    if not _are_context_packs(a, b):
        return _runs(args, output)
    from contextplane.cli.registry.diff import diff as diff_context_packs

    return diff_context_packs(args, output)


def _are_context_packs(*targets: "Target") -> bool:
    """Whether each of them is a file or a version; refused where only one is."""
    from contextplane.app.references import FileTarget, VersionTarget

    documents = [isinstance(target, FileTarget | VersionTarget) for target in targets]
    if any(documents) and not all(documents):
        from contextplane.cli.parser import Usage

        raise Usage(
            "a context pack is compared with another one only", hint="ctx diff OLD NEW, each a file or id@X.Y.Z"
        )
    return all(documents)


def _runs(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.references import find_run
    from contextplane.audit.diff import diff_packs
    from contextplane.audit.load import load_pack
    from contextplane.cli.store import open_store

    with open_store(output) as platform:
        a, b = find_run(args.a, platform), find_run(args.b, platform)
        loaded = load_pack(a, platform.objects)
        diff = diff_packs(loaded, loaded if a == b else load_pack(b, platform.objects), platform.objects)
    _tell(diff, output)
    output.answer(_answer(diff))
    return DRIFT if args.exit_code and diff.entries else OK


def _answer(diff: "PackDiff") -> dict[str, object]:
    from msgspec import UNSET
    from msgspec.structs import replace

    first = diff.entries[0] if diff.entries else None
    return {
        "pack_hash_a": diff.a.hex[:_DIGITS],
        "pack_hash_b": diff.b.hex[:_DIGITS],
        "pack_a": f"ctx://{diff.a.hex}",
        "pack_b": f"ctx://{diff.b.hex}",
        "has_drift": first is not None,
        "first_divergence": replace(first, text=UNSET) if first else None,
        "entries": diff.entries,
    }


def _tell(diff: "PackDiff", output: CommandOutput) -> None:
    if not diff.entries:
        same = diff.a == diff.b
        why = "It is the same pack." if same else "The packs differ only in what is not compared, such as times."
        output.line(f"No differences found. {why}")
        return
    if output.quiet:
        _tell_unread(diff, output)
        return
    output.line(f"Comparing {diff.a.hex[:_DIGITS]} vs {diff.b.hex[:_DIGITS]}")
    output.line()
    output.line(f"{quantity(len(diff.entries), 'difference')} found:")
    output.line()
    for number, entry in enumerate(diff.entries, 1):
        output.line(f"  {number}. {_line(entry)}")
        for line in (*_parameters(entry), *_text(entry, output), *_alone(entry, diff)):
            output.line(_INDENT + line)
    output.line()
    output.line(f"First divergence: {_line(diff.entries[0])}")


def _tell_unread(diff: "PackDiff", output: CommandOutput) -> None:
    """Contents that could not be compared because they are not what they were."""
    from msgspec import UNSET

    for entry in diff.entries:
        if entry.text is not UNSET and entry.text.state in {"damaged", "missing"}:
            output.failure_line(f"{_line(entry)}: {clean(entry.text.why)}")


def _line(entry: "DiffEntry") -> str:
    """What differs, and what each pack has, where that is a value of its own: linux -> darwin."""
    from msgspec import UNSET

    a, b = entry.pack_a, entry.pack_b
    line = f"[{entry.type}] {shorten(clean(entry.description))}"
    if entry.content_a is not UNSET or entry.type == "param_drift":
        return line
    if a is UNSET or b is UNSET:
        one = b if a is UNSET else a
        return f"{line}: {_json(one)}" if entry.type in _VALUES else line
    words = a and b and isinstance(a, str) and isinstance(b, str)
    return line + (f": {shorten(clean(a))} -> {shorten(clean(b))}" if words else f": {_json(a)} -> {_json(b)}")


def _alone(entry: "DiffEntry", diff: "PackDiff") -> Iterator[str]:
    """How to read what only one of the packs has."""
    from msgspec import UNSET

    if entry.part_a is not UNSET and entry.part_b is not UNSET:
        return
    pack, part, told = (
        (diff.a, entry.part_a, entry.pack_a) if entry.part_b is UNSET else (diff.b, entry.part_b, entry.pack_b)
    )
    if part is UNSET:
        return
    from shlex import quote

    parts = [one.removeprefix("/") for one in told] if isinstance(told, list) else [part]  # of prompts all at once
    for one in parts[:_MOST_ALONE]:
        yield f"ctx cat {clean(quote(f'{pack.hex[:_DIGITS]}:{one}'))}"
    if len(parts) > _MOST_ALONE:
        yield f"and {len(parts) - _MOST_ALONE:,} more"


def _parameters(entry: "DiffEntry") -> Iterator[str]:
    """The parameters of a call that differ, by name."""
    if entry.type != "param_drift":
        return
    a, b = entry.pack_a or {}, entry.pack_b or {}
    if not a and not b:
        yield f"{_json(entry.pack_a)} -> {_json(entry.pack_b)}"
    for key in sorted({**a, **b}):
        ours, theirs = (_json(one[key]) if key in one else "(none)" for one in (a, b))
        if ours != theirs:
            yield f"{shorten(clean(key))}: {ours} -> {theirs}"


def _text(entry: "DiffEntry", output: CommandOutput) -> Iterator[str]:
    from msgspec import UNSET

    from contextplane.cli.render.execution import diff_lines

    return iter(()) if entry.text is UNSET else diff_lines(entry.text, output)


def _json(value: object) -> str:
    from contextplane.model.json.canonical import SORTED

    return shorten(clean(SORTED.encode(value).decode()))
