"""`ctx lint --record`, `ctx deprecate` and `ctx revoke`: acts that begin or end the life of a version."""

from argparse import ArgumentParser, Namespace
from typing import Literal

from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.session import (
    act_signer,
    add_reason,
    add_signing,
    environment_description,
    registry_session,
)

__all__ = ["add_arguments", "record_file", "withdraw"]

_ALONE = ("overlay", "against", "sarif", "strict")


def record_file(args: Namespace, output: CommandOutput) -> int:
    """Record the document in a file as a draft. It is judged by the gates of its kind."""
    from contextplane.app.packs.files import read_source_file
    from contextplane.app.registry.release import candidate_in, record_draft
    from contextplane.cli.registry.render import print_act
    from contextplane.cli.render.findings import print_finding

    _check(args)
    file = read_source_file(args.pack)
    with registry_session(args, output) as session:
        catalogs = [session.named_version(name) for name in args.catalog]
        value, signer = candidate_in(file).value, session.keys.signer(args.key)
        result = record_draft(session, value, signer, environment_description(args), catalogs)
    report = result.report
    findings = [finding for finding in report.findings if finding.severity != "unknown"] if report is not None else []
    for finding in findings:
        print_finding(finding, file.where(finding.at), output)
    print_act(result, output)
    if result.stage == "draft":
        output.line("Recorded, but it did not pass its gates: fix it, and record it again.")
    return REFUSED if any(finding.severity == "error" for finding in findings) else OK


def _check(args: Namespace) -> None:
    from contextplane.cli.parser import Usage
    from contextplane.model.reference import names_file

    for option in _ALONE:
        if getattr(args, option):
            raise Usage(
                f"argument --{option}: not allowed with argument --record", hint="lint it first, then record it"
            )
    unpublished = next((name for name in args.catalog if names_file(name)), None)
    if unpublished is not None:
        raise Usage(
            f"argument --catalog: {unpublished!r} is a file", hint="publish it, then name its version: id@X.Y.Z"
        )


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `ctx deprecate` and `ctx revoke`."""
    parser.add_argument("version", metavar="VERSION", help="id@X.Y.Z, or id@NAME")
    add_reason(parser, required=True)
    add_signing(parser)


def withdraw(args: Namespace, output: CommandOutput, how: Literal["deprecated", "revoked"]) -> int:
    """Withdraw a published version, and say where it is still pinned."""
    from contextplane.app.registry import release
    from contextplane.app.registry.pins import environments_pinning
    from contextplane.cli.registry.render import note_still_pinned, print_act

    with registry_session(args, output) as session:
        result = release.withdraw(session, session.named_version(args.version), how, act_signer(session, args))
        environments = environments_pinning(session, result.ref)
    print_act(result, output)
    note_still_pinned(environments, result.ref, output)
    return OK
