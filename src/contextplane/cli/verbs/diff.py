"""Compare two runs, two context packs, or two handoff packs.

  runs             ctx://<hash> or the first digits of a hash. Differences are listed in the order of the run, so the
                   first one is where the runs diverge. Steps are aligned: an inserted step is one difference. Texts are
                   shown as a unified diff, up to 1 MiB and 200 lines each, and 100 texts. Times, recorded indices and
                   parents are not compared.
  context packs    a file (with a slash or an extension), id@X.Y.Z, id@NAME, or sha256:<hash> for a draft if the other
                   one is a file or a version. Shows the changes of each layer, their effect on runs, the smallest
                   version class that they need (patch, minor, major, or reject: it may not be published), and whether
                   the new number is large enough. A change whose effect cannot be told counts as major; with --strict
                   the status is then 10.
  handoff packs    pk_<id>@3, or pk_<id> for the newest revision. Metadata is compared, then sections, refs and
                   diagrams by key: added, removed, changed, reordered.

Types of differences between runs: model_drift, environment_drift, prompt_drift, input_drift, tool_drift (another tool
or type, a step more or less, or deterministic in one run only), param_drift, reasoning_drift (another output of a
step), output_drift.

Examples:
  ctx diff 3fa9 81c2                     compare two runs
  ctx diff 3fa9 81c2 --exit-code         status 12 if they differ
  ctx diff support@1.0.0 refunds.yaml    compare a file with a version
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.cli.exit import DRIFT, OK, REFUSED
from contextplane.cli.output import CommandOutput, clean, quantity, shorten

if TYPE_CHECKING:
    from contextplane.app.execution.diff import DiffEntry, PackDiff
    from contextplane.app.packs.diff import Comparison
    from contextplane.app.packs.files import NamedFile
    from contextplane.app.references import Target

__all__ = ["add_arguments", "run"]

_DIGITS = 12
_INDENT = " " * 6
_MOST_COMMANDS = 10
_VALUES = frozenset({"model_drift", "environment_drift"})


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="the first")
    parser.add_argument("b", metavar="B", help="the second")
    parser.add_argument("--exit-code", action="store_true", help="exit with status 12 if they differ")
    parser.add_argument("--strict", action="store_true", help="refuse if the effect of a change cannot be told")
    parser.add_argument("--human", action="store_true", help="print text for people (the default)")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.references import HandoffTarget, resolve
    from contextplane.cli.parser import Usage

    a, b = resolve(args.a, files=True), resolve(args.b, files=True)
    if args.strict and not _are_context_packs(a, b):
        raise Usage("argument --strict: only for context packs", hint="leave it out")
    if isinstance(a, HandoffTarget) and isinstance(b, HandoffTarget):
        from contextplane.cli.handoff.audit import diff

        return diff(a.ref, b.ref, output, exit_code=args.exit_code)
    if isinstance(a, HandoffTarget) or isinstance(b, HandoffTarget):
        raise Usage("a handoff pack is compared with another one only", hint="ctx diff pk_<id>@3 pk_<id>@5")
    if not _are_context_packs(a, b):
        return _diff_runs(args, output)
    return _diff_context_packs(args, output)


def _are_context_packs(*targets: "Target") -> bool:
    """Whether each of them is a file or a version; refused where only one is.

    Beside a file or a version, a digest is that of a draft.
    """
    from contextplane.app.references import FileTarget, RunTarget, VersionTarget
    from contextplane.model.ids import Digest

    documents = [isinstance(target, FileTarget | VersionTarget) for target in targets]
    if any(documents):
        documents = [
            document or (isinstance(target, RunTarget) and isinstance(target.ref, Digest) and not target.selector)
            for document, target in zip(documents, targets, strict=True)
        ]
    if any(documents) and not all(documents):
        from contextplane.cli.parser import Usage

        raise Usage(
            "a run is compared with a run, and a context pack with a context pack",
            hint="a FILE is read as a context pack; 'ctx pack LOG' stores a log as a run",
        )
    return all(documents)


def _diff_runs(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.execution.diff import diff_runs
    from contextplane.cli.store import open_store

    with open_store(output) as platform:
        diff = diff_runs(platform, args.a, args.b)
    _print_diff(diff, output)
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


def _print_diff(diff: "PackDiff", output: CommandOutput) -> None:
    if not diff.entries:
        same = diff.a == diff.b
        why = "It is the same pack." if same else "The packs differ only in what is not compared, such as times."
        output.line(f"No differences found. {why}")
        return
    if output.quiet:
        _print_unread(diff, output)
        return
    output.line(f"Comparing {diff.a.hex[:_DIGITS]} vs {diff.b.hex[:_DIGITS]}")
    output.line()
    output.line(f"{quantity(len(diff.entries), 'difference')} found:")
    output.line()
    for number, entry in enumerate(diff.entries, 1):
        output.line(f"  {number}. {_line(entry)}")
        for line in (*_parameters(entry), *_text(entry, output), *_commands(entry, diff)):
            output.line(_INDENT + line)
    output.line()
    output.line(f"First divergence: {_line(diff.entries[0])}")


def _print_unread(diff: "PackDiff", output: CommandOutput) -> None:
    """Print the contents that could not be compared because they are damaged."""
    from msgspec import UNSET

    for entry in diff.entries:
        if entry.text is not UNSET and entry.text.state in {"damaged", "missing"}:
            output.failure_line(f"{_line(entry)}: {clean(entry.text.why)}")


def _line(entry: "DiffEntry") -> str:
    """Return what differs, and the values of both packs if they are short: `linux -> darwin`."""
    from msgspec import UNSET

    a, b = entry.pack_a, entry.pack_b
    line = f"[{entry.type}] {shorten(clean(entry.description))}"
    if entry.content_a is not UNSET or entry.type == "param_drift":
        return line
    if a is UNSET or b is UNSET:
        value = b if a is UNSET else a
        return f"{line}: {_json(value)}" if entry.type in _VALUES else line
    are_texts = a and b and isinstance(a, str) and isinstance(b, str)
    return line + (f": {shorten(clean(a))} -> {shorten(clean(b))}" if are_texts else f": {_json(a)} -> {_json(b)}")


def _commands(entry: "DiffEntry", diff: "PackDiff") -> Iterator[str]:
    """Yield the commands that read what only one of the packs has."""
    from msgspec import UNSET

    if entry.part_a is not UNSET and entry.part_b is not UNSET:
        return
    pack, part, value = (
        (diff.a, entry.part_a, entry.pack_a) if entry.part_b is UNSET else (diff.b, entry.part_b, entry.pack_b)
    )
    if part is UNSET:
        return
    from shlex import quote

    # Prompts are one entry for all of them.
    parts = [name.removeprefix("/") for name in value] if isinstance(value, list) else [part]
    for name in parts[:_MOST_COMMANDS]:
        yield f"ctx cat {clean(quote(f'{pack.hex[:_DIGITS]}:{name}'))}"
    if len(parts) > _MOST_COMMANDS:
        yield f"and {len(parts) - _MOST_COMMANDS:,} more"


def _parameters(entry: "DiffEntry") -> Iterator[str]:
    """Yield the parameters of a call that differ, by name."""
    if entry.type != "param_drift":
        return
    a, b = entry.pack_a or {}, entry.pack_b or {}
    if not a and not b:
        yield f"{_json(entry.pack_a)} -> {_json(entry.pack_b)}"
    for key in sorted({**a, **b}):
        ours, theirs = (_json(side[key]) if key in side else "(none)" for side in (a, b))
        if ours != theirs:
            yield f"{shorten(clean(key))}: {ours} -> {theirs}"


def _text(entry: "DiffEntry", output: CommandOutput) -> Iterator[str]:
    from msgspec import UNSET

    from contextplane.cli.render.execution import diff_lines

    return iter(()) if entry.text is UNSET else diff_lines(entry.text, output)


def _json(value: object) -> str:
    from contextplane.model.json.canonical import SORTED

    return shorten(clean(SORTED.encode(value).decode()))


def _diff_context_packs(args: Namespace, output: CommandOutput) -> int:
    """Compare two context packs, each a file or a version of the registry; two files without a store."""
    from contextplane.app.packs.diff import compare_pack_files
    from contextplane.cli.render.comparison import comparison_json

    old, new = _read_context_packs((args.a, args.b), args, output)
    comparison = compare_pack_files(old, new)
    _print_comparison(comparison, old, new, output)
    output.answer({"file_a": args.a, "file_b": args.b, **comparison_json(comparison)})
    if args.strict and comparison.undecided:
        return REFUSED
    return DRIFT if args.exit_code and not comparison.same else OK


def _read_context_packs(names: tuple[str, str], args: Namespace, output: CommandOutput) -> "list[NamedFile]":
    from contextplane.app.packs.files import read_pack_file
    from contextplane.app.references import FileTarget, resolve

    are_files = [isinstance(resolve(name, files=True), FileTarget) for name in names]
    if all(are_files):
        return [read_pack_file(name) for name in names]
    from contextplane.app.registry.view import read_version
    from contextplane.cli.registry.session import registry_session

    with registry_session(args, output) as session:
        return [
            read_pack_file(name) if is_file else read_version(session, name)
            for name, is_file in zip(names, are_files, strict=True)
        ]


def _print_comparison(comparison: "Comparison", old: "NamedFile", new: "NamedFile", output: CommandOutput) -> None:
    from contextplane.cli.render.comparison import print_comparison

    if comparison.same:
        output.line(f"No differences found. Both are {comparison.new}, in the same canonical form.")
        return
    output.line(f"Comparing {_label(old, str(comparison.old))} vs {_label(new, str(comparison.new))}")
    output.line()
    if not comparison.bump.reasons:
        output.line("Only the order of parts differs.")
    print_comparison(comparison, output, where=new.where)
    output.line()
    changes = quantity(len(comparison.bump.reasons), "change")
    output.line(f"{changes}. Least version class: {comparison.bump.least}")
    if comparison.undecided:
        effects = quantity(comparison.undecided, "change")
        output.line(
            f"{output.paint('yellow', 'Undecided')}: the effect of {effects} cannot be told, so it counts as major"
        )
    if comparison.refusal:
        # A comparison is no refusal: it was made, and the status is that of a comparison.
        output.line(f"{output.paint('yellow', 'Not ready to publish')}: {clean(comparison.refusal)}")


def _label(pack: "NamedFile", ref: str) -> str:
    """Return the name of a pack, with its path unless that is the same."""
    return ref if pack.path == ref else f"{ref} ({clean(pack.path)})"
