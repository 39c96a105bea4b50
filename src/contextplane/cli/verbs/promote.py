"""Say that the version which an environment pins has proved itself there.

A run there must have used it, its release gates must have passed, by an evaluation of its runs, and no
incident of it may be open. Until runs are made and evaluated, every promotion is refused, and says why.
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, base_id, registry_session

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("environment", metavar="ENV", help="where")
    parser.add_argument("pack", metavar="PACK", help="the id, without a version")
    add_reason(parser, required=False)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.pins import promote
    from contextplane.cli.registry.render import print_pin

    with registry_session(args, output) as session:
        result = promote(
            session, args.environment, base_id(args.pack), act_signer(session, args, "its release gates passed")
        )
    print_pin(result, "is promoted in", output)
    return OK
