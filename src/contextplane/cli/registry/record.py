"""`ctx lint --record`: a draft becomes known to the registry, and linted when every gate passes.

What deprecating and revoking have in common: a version, a reason, who signs, and what is told.
"""

from argparse import ArgumentParser, Namespace
from typing import Literal

from contextplane.app.packs.files import authored
from contextplane.app.registry.release import recorded
from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import Screen
from contextplane.cli.parser import Usage
from contextplane.cli.registry.act import add_reason, add_signing, artifact_in, at_desk, by, names_file, surroundings_of
from contextplane.cli.registry.render import tell_act
from contextplane.cli.render.findings import tell_finding

__all__ = ["add_arguments", "record", "withdraw"]

_ALONE = ("overlay", "against", "sarif")


def record(args: Namespace, screen: Screen) -> int:
    """Record the document as it is. Of an overlay and a catalog, the gates of that kind are run."""
    for option in _ALONE:
        if getattr(args, option):
            raise Usage(
                f"argument --{option}: not allowed with argument --record", hint="lint it first, then record it"
            )
    unpublished = next((one for one in args.catalog if names_file(one)), None)
    if unpublished is not None:
        raise Usage(
            f"argument --catalog: {unpublished!r} is a file", hint="publish it, then name its version: id@X.Y.Z"
        )
    file = authored(args.pack)
    with at_desk(args, screen) as desk:
        catalogs = [desk.named_version(one) for one in args.catalog]
        acted = recorded(desk, artifact_in(file).value, desk.keys.signer(args.key), surroundings_of(args), catalogs)
    report = acted.report
    findings = [one for one in report.findings if one.severity != "unknown"] if report is not None else []
    for finding in findings:
        tell_finding(finding, file.where(finding.at), screen)
    tell_act(acted, screen)
    if acted.stage == "draft":
        screen.say("It is recorded, and did not pass its gates: mend it, and record it again.")
    return REFUSED if any(one.severity == "error" for one in findings) else OK


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("version", metavar="VERSION", help="id@X.Y.Z, or id@NAME")
    add_reason(parser, required=True)
    add_signing(parser)


def withdraw(args: Namespace, screen: Screen, how: Literal["deprecated", "revoked"]) -> int:
    from contextplane.app.registry.release import withdrawn
    from contextplane.cli.registry.render import tell_act, tell_still_pinned

    with at_desk(args, screen) as desk:
        acted = withdrawn(desk, desk.named_version(args.version), how, by(desk, args))
        tell_still_pinned(desk, acted.ref, screen)
    tell_act(acted, screen)
    return OK
