"""Judge a context pack by the eight validation gates.

Schema, referential integrity, policy, risk, tenancy, replay, evaluation, security: all findings at once,
each with its file, its place there, its cause and its cure. An error refuses the pack (status 10), a warning
does not. What cannot be told here is said, and is no pass: give --environment to tell more. PACK is JSON,
or YAML by its extension; `-` reads JSON from standard input. An overlay or a decision catalog is judged for
itself, by the laws of its kind.

--overlay, as often as there are overlays, judges the pack as it is with them: they are of one environment,
and may only constrain. --against refuses a version number that promises less change than there is; OLD is
a file, or a version of the registry: id@X.Y.Z, id@NAME. --catalog, as often as there are some, judges the
pack together with decision catalogs, files or versions of the registry: its rules may be bound to their
decisions.
--record makes the file, which may be an overlay or a decision catalog as well, known to the registry; --key
and --passphrase-fd say who signs that. The catalogs of a pack are published ones then, and on record.
--explain tells what a gate holds (policy), what a law says (risk/destructive_without_gate, or only the
code), or what an error of ctx means (overlay_widens).
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import Screen, clean, counted, shortened
from contextplane.cli.registry.act import add_signing
from contextplane.cli.render.findings import SEVERITY_COLOR, tell_finding

if TYPE_CHECKING:
    from contextplane.app.packs.lint import Linted, PlacedFinding
    from contextplane.authoring.version_class import Comparison

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("pack", metavar="PACK", nargs="?", help="the author's file, or - for standard input")
    parser.add_argument("--overlay", metavar="FILE", action="append", default=[], help="apply this overlay first")
    parser.add_argument("--catalog", metavar="CATALOG", action="append", default=[], help="judge it together with this")
    parser.add_argument("--environment", metavar="FILE", help="what is known of the environment it is meant for")
    parser.add_argument("--against", metavar="OLD", help="the version before: is the new number large enough?")
    parser.add_argument("--sarif", action="store_true", help="print the findings as SARIF 2.1.0")
    parser.add_argument("--record", action="store_true", help="make it known to the registry, linted if it passes")
    parser.add_argument("--explain", metavar="NAME", help="what a gate, a law or an error of this name is")
    add_signing(parser)


def run(args: Namespace, screen: Screen) -> int:
    if args.explain is not None:
        from contextplane.cli.render.packs import explain

        return explain(args.explain, screen)
    if args.pack is None:
        from contextplane.cli.parser import Usage

        raise Usage("no PACK was named", hint="ctx lint PACK, or ctx lint --explain NAME")
    if args.record:
        from contextplane.cli.registry.record import record

        return record(args, screen)
    from contextplane.app.packs.lint import lint
    from contextplane.cli.pack_args import catalogs_of, older

    before, catalogs = older(args, screen), catalogs_of(args, screen)
    result = lint(
        args.pack, overlays=tuple(args.overlay), environment=args.environment, against=before, catalogs=catalogs
    )
    if args.sarif:
        _sarif(result, screen)
    else:
        _tell(result, screen)
        screen.answer(_answer(result))
    # Only now: a number that is too small is no reason to keep the findings back.
    _refuse_number(result)
    return OK if result.report.passed else REFUSED


def _refuse_number(found: "Linted") -> None:
    """A number that will not do is an error of its own, unless the findings refuse the pack anyway."""
    if (
        found.comparison is not None
        and found.comparison.refusal
        and (found.report.passed or not found.comparison.unsafe)
    ):
        from contextplane.authoring.version_class import BumpTooSmall

        raise BumpTooSmall(found.comparison.refusal, at=found.pack.where("/pack_meta/pack_version"))


def _tell(found: "Linted", screen: Screen) -> None:
    for applied in found.applied:
        change = applied.change
        screen.say(
            f"overlay {clean(applied.where)}  {applied.overlay}: {shortened(clean(change.words))} ({change.effect})"
        )
    whole = [one for one in found.placed if _is_of_the_whole(one)]
    for finding in found.placed:
        if finding not in whole:
            tell_finding(finding.finding, finding.where, screen)
    if found.comparison is not None:
        _tell_comparison(found.comparison, screen)
    for line in _verdict(found, screen):
        screen.say(line)
    for finding in whole:
        law = f"{finding.finding.gate}/{finding.finding.code}"
        screen.say(
            screen.paint("dim", f"not told ({law}): {clean(finding.finding.cause)} -> {clean(finding.finding.cure)}")
        )


def _is_of_the_whole(finding: "PlacedFinding") -> bool:
    """Whether it cannot be told of the whole pack: no line of the file is to blame, so none is shown."""
    return finding.finding.severity == "unknown" and not finding.finding.at


def _tell_comparison(comparison: "Comparison", screen: Screen) -> None:
    from contextplane.cli.render.packs import tell

    if comparison.same:
        screen.say(f"nothing changed since {comparison.old}")
        return
    screen.say(f"changes since {comparison.old}; least version class: {comparison.bump.least}")
    tell(comparison, screen, indent="  ")


def _verdict(found: "Linted", screen: Screen) -> list[str]:
    """What it comes to. A verdict is about what was judged; what was not stands on lines of its own."""
    counts = {kind: sum(finding.finding.severity == kind for finding in found.placed) for kind in SEVERITY_COLOR}
    passed = found.report.passed and not (found.comparison is not None and found.comparison.refusal)
    verdict = screen.paint("green", "passed") if passed else screen.paint("red", "refused")
    lines = [f"{verdict}: {counted(counts['error'], 'error')}, {counted(counts['warning'], 'warning')}"]
    if found.report.not_run:
        lines.append(f"not run, because the form is wrong: {', '.join(found.report.not_run)}")
    if found.left_out:
        lines.append("not applied, because the form is wrong: the overlays")
    placed = sum(finding.finding.severity == "unknown" and not _is_of_the_whole(finding) for finding in found.placed)
    if placed:
        lines.append(f"not told: {counted(placed, 'question')} above that nobody could answer here")
    return lines


def _sarif(found: "Linted", screen: Screen) -> None:
    import msgspec

    from contextplane import __version__
    from contextplane.authoring.artifacts import LAWS_OF
    from contextplane.authoring.sarif import Located, sarif
    from contextplane.cli.render.packs import uri

    located = [Located(finding=finding.finding, uri=uri(finding.path), place=finding.place) for finding in found.placed]
    laws = LAWS_OF[found.kind]
    document = sarif(located, found.value, __version__, laws=laws, not_run=found.report.not_run)
    screen.json_text(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())


def _answer(found: "Linted") -> dict[str, object]:
    compared = found.comparison
    refused = compared is not None and bool(compared.refusal)
    return {
        "passed": found.report.passed and not refused,
        "findings": [_finding(finding) for finding in found.placed],
        "not_run": found.report.not_run,
        "overlays": [
            {
                "overlay": placed_change.overlay,
                "place": placed_change.where,
                "at": placed_change.change.at,
                "effect": placed_change.change.effect,
                "words": placed_change.change.words,
            }
            for placed_change in found.applied
        ],
        "overlays_left_out": found.left_out,
        "catalogs": found.catalogs,
        "version_class": None if compared is None or compared.same else compared.bump.least,
        "version_refused": (compared.refusal or None) if compared is not None else None,
        "difference": _difference(compared) if compared is not None else None,
    }


def _difference(compared: "Comparison") -> dict[str, object]:
    # Here, where there is one: a pack that is only judged does not load what compares.
    from contextplane.cli.render.packs import answer

    return answer(compared)


def _finding(finding: "PlacedFinding") -> dict[str, object]:
    found = finding.finding
    return {
        "place": finding.where,
        "file": finding.path,
        "line": finding.place.line,
        "column": finding.place.column,
        "gate": found.gate,
        "code": found.code,
        "severity": found.severity,
        "at": found.at,
        "cause": found.cause,
        "cure": found.cure,
    }
