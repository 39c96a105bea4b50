"""`ctx lint --record`: a draft becomes known to the registry, and linted when every gate passes.

What deprecating and revoking have in common: a version, a reason, who signs, and what is told.
"""

from argparse import ArgumentParser, Namespace
from typing import Literal

from contextplane.app.packs.files import read_source_file
from contextplane.app.registry.release import record_draft
from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import CommandOutput
from contextplane.cli.parser import Usage
from contextplane.cli.registry.act import add_reason, add_signing, parse_artifact, registry_session, signed_by, environment_description
from contextplane.cli.registry.render import print_act
from contextplane.cli.render.findings import print_finding
from contextplane.model.reference import names_file

__all__ = ["add_arguments", "record_file", "withdraw"]

_ALONE = ("overlay", "against", "sarif")


def record_file(args: Namespace, output: CommandOutput) -> int:
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
    file = read_source_file(args.pack)
    with registry_session(args, output) as session:
        catalogs = [session.named_version(one) for one in args.catalog]
        result = record_draft(session, parse_artifact(file).value, session.keys.signer(args.key), environment_description(args), catalogs)
    report = result.report
    findings = [one for one in report.findings if one.severity != "unknown"] if report is not None else []
    for finding in findings:
        print_finding(finding, file.where(finding.at), output)
    print_act(result, output)
    if result.stage == "draft":
        output.line("It is recorded, and did not pass its gates: mend it, and record it again.")
    return REFUSED if any(one.severity == "error" for one in findings) else OK


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("version", metavar="VERSION", help="id@X.Y.Z, or id@NAME")
    add_reason(parser, required=True)
    add_signing(parser)


def withdraw(args: Namespace, output: CommandOutput, how: Literal["deprecated", "revoked"]) -> int:
    from contextplane.app.registry.release import withdraw
    from contextplane.cli.registry.render import print_act, note_still_pinned

    with registry_session(args, output) as session:
        result = withdraw(session, session.named_version(args.version), how, signed_by(session, args))
        note_still_pinned(session, result.ref, output)
    print_act(result, output)
    return OK
