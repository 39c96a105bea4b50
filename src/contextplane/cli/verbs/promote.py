"""Promote the version that an environment pins.

The promotion needs three things:
  - a run in ENV that used the version
  - an evaluation of its runs in which its release gates passed
  - no open incident

Running and evaluating are not implemented yet, so every promotion is refused, with the reasons.

Examples:
  ctx promote staging support    promote what staging pins
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, base_id, registry_session

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("environment", metavar="ENV", help="the environment")
    parser.add_argument("pack", metavar="PACK", help="the id of the pack, without a version")
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
