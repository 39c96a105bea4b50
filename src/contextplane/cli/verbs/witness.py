"""Cosign the newest checkpoint of the registry, as a witness.

A witness vouches that everybody is shown the same registry. The command verifies that the registry continues what this
machine saw of it before: the log begins as it did, and no stream went back. Then it cosigns the newest checkpoint, in
the C2SP form tlog-cosignature. It refuses another history, and doing it twice changes nothing. Run it on
a machine of the witness, after each change or from time to time.

The key needs the role witness. 'ctx keys trust --witnesses N' asks for N witnesses: a newest checkpoint with fewer
cosignatures is refused for new runs. Who signed a checkpoint does not count as its witness.

Examples:
  ctx witness --key walter             cosign the newest checkpoint
  ctx witness --key walter --json      the same, with the line for the signed note
"""

from argparse import ArgumentParser, Namespace

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, format_second
from contextplane.cli.registry.session import add_signing, registry_session

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.witness import witness_checkpoint
    from contextplane.cli.keys.show import key_label

    with registry_session(args, output) as session:
        signer = session.keys.signer(args.key)
        result = witness_checkpoint(session, signer)
        by = key_label(signer.public_key.key_id, session.keys.names())
    checkpoint, witnesses = result.checkpoint, result.witnesses
    act = "Cosigned" if result.new else "Already cosigned"
    output.line(f"{act} the checkpoint of {checkpoint.size} entries of {format_second(result.time)}, by {by}.")
    if signer.public_key.key_id in witnesses.own:
        output.line("It does not count: the same person signed this checkpoint.")
    needed = f", and {witnesses.required} must have" if witnesses.required else ""
    output.line(f"Witnesses who cosigned it: {witnesses.people}{needed}.")
    output.answer(
        {
            "origin": checkpoint.origin,
            "size": checkpoint.size,
            "root": checkpoint.root,
            "time": str(result.time),
            "key_id": signer.public_key.key_id,
            "line": result.line or None,
            "new": result.new,
            "witnesses": witnesses.people,
            "required": witnesses.required,
        }
    )
    return OK
