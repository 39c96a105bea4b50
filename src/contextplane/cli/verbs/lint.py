"""Judge a context pack by the eight validation gates.

Schema, referential integrity, policy, risk, tenancy, replay, evaluation, security: all findings at once,
each with its place in the file, its cause and its cure. An error refuses the pack (status 10). What
cannot be told here is said, and is no pass: give --environment to tell more. PACK is JSON, or YAML by
its extension; `-` reads JSON from standard input. --against refuses a version number that promises less
change than there is.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.screen import Screen, clean, counted

if TYPE_CHECKING:
    from contextplane.app.linting import Linted, VersionStep
    from contextplane.authoring.author_file import AuthorFile
    from contextplane.authoring.finding import Finding
    from contextplane.authoring.surroundings import Surroundings

__all__ = ["add_arguments", "run"]

_COLOR = {"error": "red", "warning": "yellow", "unknown": "dim"}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("pack", metavar="PACK", nargs="?", help="the author's file, or - for standard input")
    parser.add_argument("--overlay", metavar="FILE", action="append", default=[], help="apply this overlay first")
    parser.add_argument("--environment", metavar="FILE", help="what is known of the environment it is meant for")
    parser.add_argument("--against", metavar="OLD", help="the version before: is the new number large enough?")
    parser.add_argument("--sarif", action="store_true", help="print the findings as SARIF 2.1.0")
    parser.add_argument("--explain", metavar="CODE", help="what the law behind a finding says")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.linting import author_file, linted, overlay_from, surroundings_from

    if args.explain is not None:
        return _explain(args.explain, screen)
    if args.pack is None:
        from contextplane.cli.parser import Usage

        raise Usage("no PACK was named", hint="ctx lint PACK, or ctx lint --explain CODE")
    file = author_file(args.pack)
    surroundings = surroundings_from(args.environment) if args.environment else None
    found = linted(file, tuple(overlay_from(path) for path in args.overlay), surroundings)
    step = _step(args.against, file, found, surroundings)
    if args.sarif:
        _sarif(found, file, args.pack, screen)
    else:
        _tell(found, file, args.pack, screen)
        _tell_bump(step, screen)
        screen.answer(_answer(found, file, step))
    # Only now: a number that is too small is no reason to keep the findings back.
    if step is not None and step.refusal is not None:
        raise step.refusal
    return OK if found.report.passed else REFUSED


def _step(
    against: str | None, file: "AuthorFile", found: "Linted", surroundings: "Surroundings | None"
) -> "VersionStep | None":
    """What the version before says of the number; nothing where there is none, or where the form is wrong."""
    from contextplane.app.linting import author_file, linted, version_step

    if against is None:
        return None
    report = linted(file, (), surroundings).report if found.applied else found.report
    return None if report.not_run else version_step(author_file(against), file, report)


def _tell(found: "Linted", file: "AuthorFile", path: str, screen: Screen) -> None:
    for one in found.report.findings:
        place = file.place(one.at)
        severity = screen.paint(_COLOR[one.severity], f"{one.severity:<7}")
        screen.say(f"{severity} {clean(path)}:{place.line}:{place.column}  {one.gate}/{one.code}  {clean(one.at)}")
        screen.say(f"        {clean(one.cause)}")
        screen.say(f"        {screen.paint('dim', '->')} {clean(one.cure)}")
    for applied in found.applied:
        screen.say(f"overlay {applied.overlay}: {clean(applied.change.words)} ({applied.change.effect})")
    if found.report.not_run:
        screen.say(f"not run, because the form is wrong: {', '.join(found.report.not_run)}")
    counts = {kind: sum(one.severity == kind for one in found.report.findings) for kind in _COLOR}
    verdict = screen.paint("green", "passed") if found.report.passed else screen.paint("red", "refused")
    told = f"{counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}"
    screen.say(f"{verdict}: {told}, {counts['unknown']} that cannot be told here")


def _tell_bump(step: "VersionStep | None", screen: Screen) -> None:
    if step is not None:
        screen.say(f"version class: {step.bump.least}")
        for one, change in step.bump.reasons:
            screen.say(f"  {one:<6} {change.layer}: {clean(change.words)}")


def _sarif(found: "Linted", file: "AuthorFile", path: str, screen: Screen) -> None:
    import msgspec

    from contextplane import __version__
    from contextplane.authoring.sarif import sarif

    document = msgspec.json.encode(sarif(found.report.findings, file, path, __version__))
    screen.out.write(msgspec.json.format(document, indent=2).decode() + "\n")


def _answer(found: "Linted", file: "AuthorFile", step: "VersionStep | None") -> dict[str, object]:
    refusal = step.refusal if step is not None else None
    return {
        "passed": found.report.passed and refusal is None,
        "findings": [_finding(one, file) for one in found.report.findings],
        "not_run": found.report.not_run,
        "overlays": [
            {"overlay": one.overlay, "at": one.change.at, "effect": one.change.effect, "words": one.change.words}
            for one in found.applied
        ],
        "version_class": step.bump.least if step is not None else None,
        "version_refused": refusal.message if refusal is not None else None,
    }


def _finding(one: "Finding", file: "AuthorFile") -> dict[str, object]:
    place = file.place(one.at)
    return {
        "gate": one.gate,
        "code": one.code,
        "severity": one.severity,
        "at": one.at,
        "line": place.line,
        "column": place.column,
        "cause": one.cause,
        "cure": one.cure,
    }


def _explain(code: str, screen: Screen) -> int:
    from contextplane.app.linting import law_behind

    law = law_behind(code)
    screen.say(f"{law.gate}/{law.code} ({law.severity})")
    screen.say(law.text)
    screen.answer({"gate": law.gate, "code": law.code, "severity": law.severity, "law": law.text})
    return OK
