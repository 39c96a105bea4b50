"""Shows what an act is about to sign, and asks; `--yes` and `--digest` answer for scripts."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from contextplane.cli.output import CommandOutput, clean, quantity, shorten
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, PackRef

if TYPE_CHECKING:
    from contextplane.app.registry.preview import ReleasePreview, VersionPreview

__all__ = [
    "CandidateMismatch",
    "ConfirmationDeclined",
    "ConfirmationNeeded",
    "add_confirmation",
    "confirm",
    "confirm_release",
    "print_lines",
    "release_json",
    "show",
    "show_version",
    "version_json",
    "version_lines",
]

_MOST = 12
_KIND = {"context_pack": "context pack", "decision_catalog": "decision catalog"}
_CLASSES = ("reject", "major", "minor", "patch")


class ConfirmationNeeded(ContextPlaneError):
    """An act that must be confirmed, and no terminal to ask at."""

    code: ClassVar[str] = "confirmation_needed"
    family: ClassVar[Family] = "usage"


class ConfirmationDeclined(ContextPlaneError):
    """An act that was not confirmed at the terminal. Nothing was signed."""

    code: ClassVar[str] = "confirmation_declined"
    family: ClassVar[Family] = "refused"


class CandidateMismatch(ContextPlaneError):
    """Other bytes than those that --digest names. Nothing was signed."""

    code: ClassVar[str] = "digest_mismatch"
    family: ClassVar[Family] = "refused"


def add_confirmation(parser: ArgumentParser, *, digest: bool = True) -> None:
    """Add --yes, and --digest where the act is about bytes."""
    group = parser.add_argument_group("confirmation")
    group.add_argument("--yes", action="store_true", help="do not ask")
    if digest:
        group.add_argument(
            "--digest", metavar="SHA256", help="do not ask, and refuse other bytes than these: sha256:<hash>"
        )


def confirm_release(
    preview: "ReleasePreview", question: str, names: Mapping[str, str], args: Namespace, output: CommandOutput
) -> tuple[str, ...]:
    """Show an artifact, and ask before it is signed. Returns what `confirm` returns."""
    _require_digest(args.digest, preview.digest, preview.ref)
    return confirm(question, tuple(_release_lines(preview, names, args.target, output)), args, output)


def confirm(question: str, lines: Sequence[str], args: Namespace, output: CommandOutput) -> tuple[str, ...]:
    """Show lines and ask a question. Refused if there is no terminal to ask at, or the answer is not yes.

    Returns the lines if they were not shown, to be printed with the result: without a terminal, a command that is
    refused prints nothing but the error.
    """
    if args.yes or getattr(args, "digest", None) is not None:
        return show(lines, output)
    if output.json or not (sys.stdin.isatty() and output.err.isatty()):
        how = "--yes, or --digest sha256:<hash>" if hasattr(args, "digest") else "--yes"
        raise ConfirmationNeeded(
            f"it asks: {question}", hint=f"confirm it with {how}, or run it at a terminal without --json"
        )
    # Beside the question, whatever becomes of the output.
    output.err.write("".join(f"{line}\n" for line in lines) + f"{question} [y/N] ")
    output.err.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise ConfirmationDeclined("it was not confirmed", hint="nothing was signed, and nothing changed")
    return ()


def show(lines: Sequence[str], output: CommandOutput) -> tuple[str, ...]:
    """Show lines to a person at a terminal, before the key is used. Returns them if there is none."""
    if not output.interactive:
        return tuple(lines)
    output.err.write("".join(f"{line}\n" for line in lines))
    output.err.flush()
    return ()


def show_version(
    preview: "VersionPreview", names: Mapping[str, str], args: Namespace, output: CommandOutput
) -> tuple[str, ...]:
    """Show a version that is about to be pinned, and refuse other bytes than those that --digest names."""
    _require_digest(args.digest, preview.digest, preview.ref)
    lines = list(version_lines(preview, names))
    if preview.before is not None and preview.before != preview.ref:
        lines.append(f"replaces    {preview.before} in {clean(args.environment)}")
    return show(lines, output)


def print_lines(lines: Iterable[str], output: CommandOutput) -> None:
    """Print lines that were not shown before the act."""
    for line in lines:
        output.line(line)


def _require_digest(text: str | None, actual: Digest, ref: PackRef) -> None:
    """Refuse other bytes than those that --digest names."""
    if text is not None and Digest.parse(text) != actual:
        raise CandidateMismatch(
            f"it is {actual}, and --digest names {text}",
            at=str(ref),
            hint="'ctx packs --drafts' lists drafts with their digests",
            details={"actual": str(actual), "expected": text},
        )


def _release_lines(
    preview: "ReleasePreview", names: Mapping[str, str], target: str, output: CommandOutput
) -> Iterator[str]:
    from contextplane.cli.keys.show import key_label
    from contextplane.cli.registry.render import STAGE_COLOR

    kind = _KIND.get(preview.kind, preview.kind)
    yield f"{output.paint('bold', str(preview.ref))}  {kind} of {clean(preview.issuer)}"
    yield f"digest      {preview.digest}"
    yield f"author      {key_label(preview.author, names)}"
    yield f"state       {output.paint(STAGE_COLOR[preview.stage], preview.stage)}{_waits_for(preview)}"
    gates = preview.gates
    counts = f"{quantity(gates.errors, 'error')}, {quantity(gates.warnings, 'warning')}"
    verdict = output.paint("green", "passed") if gates.passed else output.paint("red", "not passed")
    yield f"gates       {verdict}: {shorten(clean(gates.problem)) or counts}"
    if preview.before is None or preview.bump is None:
        yield "follows     no version: it is the first"
        for name, summary in preview.layers[:_MOST]:
            yield f"  {clean(name):<18} {clean(summary)}".rstrip()
        yield f"  to read all of it: ctx cat {preview.digest}"
        return
    yield from _change_lines(preview, target, output)


def _waits_for(preview: "ReleasePreview") -> str:
    if preview.rejected:
        return f", rejected as {', '.join(map(clean, preview.rejected))}"
    waiting = preview.missing and preview.stage in {"linted", "reviewed"}
    return f", missing approvals: {', '.join(map(clean, preview.missing))}" if waiting else ""


def _change_lines(preview: "ReleasePreview", target: str, output: CommandOutput) -> Iterator[str]:
    """Yield what changed since the version before: the largest changes first, as many as fit on a screen."""
    from contextplane.cli.render.comparison import change_line
    from contextplane.model.reference import names_file

    reasons = preview.bump.reasons if preview.bump is not None else ()
    least = f", at least a {preview.bump.least} version" if preview.bump is not None and reasons else ""
    yield f"follows     {preview.before}: {quantity(len(reasons), 'change')}{least}"
    shown = sorted(reasons, key=lambda reason: _CLASSES.index(reason[0]))
    for asks, change in shown[:_MOST]:
        yield f"  {change_line(asks, change, output)}"
    left = len(reasons) - _MOST
    if preview.kind == "context_pack":
        name = target if names_file(target) else preview.name
        more = f"{left} more changes are not shown; " if left > 0 else ""
        yield f"  {more}to see all: ctx diff {preview.before} {clean(name)}"
    elif left > 0:
        yield f"  {left} more changes are not shown; to read all of it: ctx cat {preview.digest}"


def version_lines(preview: "VersionPreview", names: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines that show a published version."""
    from contextplane.cli.keys.show import key_label

    kind = _KIND.get(preview.kind, preview.kind)
    by = key_label(preview.published_by, names)
    yield f"{preview.ref}  {kind} of {clean(preview.issuer)}, published by {by}"
    yield f"digest      {preview.digest}"


def release_json(preview: "ReleasePreview", names: Mapping[str, str]) -> dict[str, object]:
    """Return a preview for machines, with every change."""
    bump = preview.bump
    return {
        "ref": str(preview.ref),
        "digest": str(preview.digest),
        "kind": preview.kind,
        "issuer": preview.issuer,
        "author": preview.author,
        "author_name": names.get(preview.author),
        "stage": preview.stage,
        "before": str(preview.before) if preview.before is not None else None,
        "version_class": bump.least if bump is not None and bump.reasons else None,
        "changes": [
            {
                "layer": change.layer,
                "at": change.at,
                "effect": change.effect,
                "version_class": asks,
                "description": change.words,
            }
            for asks, change in (bump.reasons if bump is not None else ())
        ],
        "gates": preview.gates,
    }


def version_json(preview: "VersionPreview", names: Mapping[str, str]) -> dict[str, object]:
    """Return a preview of a version for machines."""
    return {
        "ref": str(preview.ref),
        "digest": str(preview.digest),
        "kind": preview.kind,
        "issuer": preview.issuer,
        "stage": preview.stage,
        "published_by": preview.published_by,
        "published_by_name": names.get(preview.published_by),
        "pinned_in": preview.pinned_in,
        "before": str(preview.before) if preview.before is not None else None,
    }
