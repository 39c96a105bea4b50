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
from contextplane.cli.output import Screen, clean, counted, shortened

if TYPE_CHECKING:
    from contextplane.audit.diff import Diff, Entry

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


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.cli.references import named_handoff

    a, b = named_handoff(args.a), named_handoff(args.b)
    if a is None and b is None:
        if not _are_context_packs((args.a, args.b)):
            return _runs(args, screen)
        from contextplane.cli.registry.diff import diff as diff_context_packs

        return diff_context_packs(args, screen)
    from contextplane.cli.parser import Usage

    if a is None or b is None:
        raise Usage("a handoff pack is compared with another one only", hint="ctx diff pk_<id>@3 pk_<id>@5")
    from contextplane.cli.handoff.compare import diff

    return diff(a, b, screen, exit_code=args.exit_code)


def _are_context_packs(named: tuple[str, str]) -> bool:
    """Whether each of them is a file or a version; refused where only one is."""
    from contextplane.cli.references import understood
    from contextplane.cli.registry.act import names_version
    from contextplane.model.reference import FilePath

    which = [names_version(one) or isinstance(understood(one, files=True).named, FilePath) for one in named]
    if any(which) and not all(which):
        from contextplane.cli.parser import Usage

        raise Usage(
            "a context pack is compared with another one only", hint="ctx diff OLD NEW, each a file or id@X.Y.Z"
        )
    return all(which)


def _runs(args: Namespace, screen: Screen) -> int:
    from contextplane.audit.diff import diff
    from contextplane.audit.load import load
    from contextplane.cli.open import opening
    from contextplane.cli.references import named_pack

    with opening(screen) as platform:
        a, b = named_pack(args.a, platform), named_pack(args.b, platform)
        loaded = load(a, platform.objects)
        found = diff(loaded, loaded if a == b else load(b, platform.objects), platform.objects)
    _tell(found, screen)
    screen.answer(_answer(found))
    return DRIFT if args.exit_code and found.entries else OK


def _answer(found: "Diff") -> dict[str, object]:
    from msgspec import UNSET
    from msgspec.structs import replace

    first = found.entries[0] if found.entries else None
    return {
        "pack_hash_a": found.a.hex[:_DIGITS],
        "pack_hash_b": found.b.hex[:_DIGITS],
        "pack_a": f"ctx://{found.a.hex}",
        "pack_b": f"ctx://{found.b.hex}",
        "has_drift": first is not None,
        "first_divergence": replace(first, text=UNSET) if first else None,
        "entries": found.entries,
    }


def _tell(found: "Diff", screen: Screen) -> None:
    if not found.entries:
        same = found.a == found.b
        why = "It is the same pack." if same else "The packs differ only in what is not compared, such as times."
        screen.say(f"No differences found. {why}")
        return
    if screen.quiet:
        _tell_unread(found, screen)
        return
    screen.say(f"Comparing {found.a.hex[:_DIGITS]} vs {found.b.hex[:_DIGITS]}")
    screen.say()
    screen.say(f"{counted(len(found.entries), 'difference')} found:")
    screen.say()
    for number, entry in enumerate(found.entries, 1):
        screen.say(f"  {number}. {_line(entry)}")
        for line in (*_parameters(entry), *_text(entry, screen), *_alone(entry, found)):
            screen.say(_INDENT + line)
    screen.say()
    screen.say(f"First divergence: {_line(found.entries[0])}")


def _tell_unread(found: "Diff", screen: Screen) -> None:
    """Contents that could not be compared because they are not what they were."""
    from msgspec import UNSET

    for entry in found.entries:
        if entry.text is not UNSET and entry.text.state in {"damaged", "missing"}:
            screen.failure(f"{_line(entry)}: {clean(entry.text.why)}")


def _line(entry: "Entry") -> str:
    """What differs, and what each pack has, where that is a value of its own: linux -> darwin."""
    from msgspec import UNSET

    a, b = entry.pack_a, entry.pack_b
    line = f"[{entry.type}] {shortened(clean(entry.description))}"
    if entry.content_a is not UNSET or entry.type == "param_drift":
        return line
    if a is UNSET or b is UNSET:
        one = b if a is UNSET else a
        return f"{line}: {_json(one)}" if entry.type in _VALUES else line
    words = a and b and isinstance(a, str) and isinstance(b, str)
    return line + (f": {shortened(clean(a))} -> {shortened(clean(b))}" if words else f": {_json(a)} -> {_json(b)}")


def _alone(entry: "Entry", found: "Diff") -> Iterator[str]:
    """How to read what only one of the packs has."""
    from msgspec import UNSET

    if entry.part_a is not UNSET and entry.part_b is not UNSET:
        return
    pack, part, told = (
        (found.a, entry.part_a, entry.pack_a) if entry.part_b is UNSET else (found.b, entry.part_b, entry.pack_b)
    )
    if part is UNSET:
        return
    from shlex import quote

    parts = [one.removeprefix("/") for one in told] if isinstance(told, list) else [part]  # of prompts all at once
    for one in parts[:_MOST_ALONE]:
        yield f"ctx cat {clean(quote(f'{pack.hex[:_DIGITS]}:{one}'))}"
    if len(parts) > _MOST_ALONE:
        yield f"and {len(parts) - _MOST_ALONE:,} more"


def _parameters(entry: "Entry") -> Iterator[str]:
    """The parameters of a call that differ, by name."""
    if entry.type != "param_drift":
        return
    a, b = entry.pack_a or {}, entry.pack_b or {}
    if not a and not b:
        yield f"{_json(entry.pack_a)} -> {_json(entry.pack_b)}"
    for key in sorted({**a, **b}):
        ours, theirs = (_json(one[key]) if key in one else "(none)" for one in (a, b))
        if ours != theirs:
            yield f"{shortened(clean(key))}: {ours} -> {theirs}"


def _text(entry: "Entry", screen: Screen) -> Iterator[str]:
    from msgspec import UNSET

    from contextplane.cli.render.execution import text_lines

    return iter(()) if entry.text is UNSET else text_lines(entry.text, screen)


def _json(value: object) -> str:
    from contextplane.model.json.canonical import SORTED

    return shortened(clean(SORTED.encode(value).decode()))
