"""Pin a version in an environment, or give it a name for people.

ENV is any name: dev, staging, prod. VERSION is id@X.Y.Z, or id@NAME for an alias or for what another
environment pins. Only what is published, and neither deprecated nor revoked, can be pinned. An overlay is
pinned onto the pack that it is for, and must apply to the version that is pinned there; a pack must bear the
overlays that are pinned there. A version with an open refresh is not newly pinned where the environment is
protected, which every one is until --open says otherwise. With --alias, ENV is a name for people instead,
which leads to this version and no other; runs are never started by one.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, registry_session

if TYPE_CHECKING:
    from contextplane.app.registry.session import RegistrySession
    from contextplane.model.ids import PackRef

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("environment", metavar="ENV", help="the environment; with --alias, the name")
    parser.add_argument("version", metavar="VERSION", nargs="?", help="id@X.Y.Z, or id@NAME")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--alias", action="store_true", help="name the version instead of pinning it")
    what.add_argument("--open", action="store_true", help="let ENV take versions with an open refresh")
    what.add_argument("--protect", action="store_true", help="no longer")
    add_reason(parser, required=False)
    add_signing(parser)


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.pins import pin_version
    from contextplane.cli.parser import Usage
    from contextplane.cli.registry.render import print_pin

    changing = args.open or args.protect
    if (args.version is None) is not changing:
        wrong = "--open and --protect take no VERSION" if changing else "no VERSION was named"
        raise Usage(wrong, hint="ctx pin ENV VERSION, or ctx pin ENV --open")
    with registry_session(args, output) as session:
        if changing:
            return _set_protection(session, args, output)
        ref = session.named_version(args.version)
        if args.alias:
            return _set_alias(session, ref, args, output)
        result = pin_version(session, args.environment, ref, act_signer(session, args, "pinned"))
    print_pin(result, "is pinned in", output)
    return OK


def _set_alias(session: "RegistrySession", ref: "PackRef", args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.pins import set_alias

    set_alias(session, ref, args.environment, act_signer(session, args, "named"))
    output.line(f"{ref.pack_id}@{clean(args.environment)} is {ref}.")
    output.answer({"alias": args.environment, "ref": str(ref)})
    return OK


def _set_protection(session: "RegistrySession", args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.pins import set_protection

    changed = set_protection(
        session, args.environment, protected=args.protect, by=act_signer(session, args, "declared")
    )
    state = "is protected: it takes no version" if args.protect else "is open: it also takes versions"
    output.line(f"{clean(args.environment)} {state} with an open refresh.")
    if not changed:
        output.line("It was so already; nothing changed.")
    output.answer({"environment": args.environment, "protected": args.protect, "changed": changed})
    return OK
