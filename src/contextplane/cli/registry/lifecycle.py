"""`ctx lint --record`, `ctx deprecate` and `ctx revoke`: acts that begin or end the life of a version."""

from argparse import ArgumentParser, Namespace
from typing import Literal

from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.confirmation import (
    add_confirmation,
    confirm,
    print_lines,
    show,
    version_json,
    version_lines,
)
from contextplane.cli.registry.session import (
    act_signer,
    add_reason,
    add_signing,
    environment_description,
    registry_session,
)

__all__ = ["add_arguments", "record_file", "retire"]

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
    add_confirmation(parser, digest=False)
    add_signing(parser)


def retire(args: Namespace, output: CommandOutput, how: Literal["deprecated", "revoked"]) -> int:
    """Deprecate or revoke a published version. If environments pin it, name them and ask first."""
    from contextplane.app.registry import release
    from contextplane.app.registry.preview import preview_version
    from contextplane.cli.registry.render import note_still_pinned, print_act

    question = "Revoke this version?" if how == "revoked" else "Deprecate this version?"
    with registry_session(args, output) as session:
        preview = preview_version(session, session.named_version(args.version))
        names, environments = session.keys.names(), preview.pinned_in
        loss = f"pinned in   {', '.join(map(clean, environments))}: new runs there are refused until another is pinned"
        lines = tuple(version_lines(preview, names))
        unshown = confirm(question, (*lines, loss), args, output) if environments else show(lines, output)
        result = release.retire(session, preview.ref, how, act_signer(session, args))
    print_lines(unshown, output)
    print_act(result, output, preview=version_json(preview, names))
    note_still_pinned(environments, result.ref, output)
    return OK
