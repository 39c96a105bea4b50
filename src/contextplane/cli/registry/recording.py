"""`ctx lint --record`: a draft becomes known to the registry, and linted when every gate passes."""

from argparse import Namespace

from contextplane.app.authored import authored
from contextplane.app.registry_release import recorded
from contextplane.cli.exit import OK, REFUSED
from contextplane.cli.findings import tell_finding
from contextplane.cli.parser import Usage
from contextplane.cli.registry.acting import artifact_in, at_desk, surroundings_of
from contextplane.cli.registry.naming import names_file
from contextplane.cli.registry.telling import tell_act
from contextplane.cli.screen import Screen

__all__ = ["record"]

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
    found = [one for one in report.findings if one.severity != "unknown"] if report is not None else []
    for one in found:
        tell_finding(one, file.where(one.at), screen)
    tell_act(acted, screen)
    if acted.stage == "draft":
        screen.say("It is recorded, and did not pass its gates: mend it, and record it again.")
    return REFUSED if any(one.severity == "error" for one in found) else OK
