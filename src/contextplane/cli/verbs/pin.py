"""Pin a version in an environment, or set an alias.

ENV is any name, such as dev, staging or prod. VERSION is id@X.Y.Z, or id@NAME for an alias or for the version that
another environment pins. Only a published version that is not deprecated or revoked can be pinned. An overlay is
pinned onto its pack, and must apply to the version that is pinned there.

Environments are protected: a version with an open refresh cannot be newly pinned in one, and a run gets a version only
if the registry was signed within the last 30 days. --open lifts both for ENV, --protect restores them. --max-age sets
another age.

Before anything is signed, the command shows the version, its digest, and the version that it replaces in ENV. --digest
refuses other bytes than these.

With --alias, ENV is the alias. People can name the version by it; runs never start from an alias.

Examples:
  ctx pin prod support@1.0.0               pin a version
  ctx pin prod support@staging             pin what staging pins
  ctx pin stable support@1.0.0 --alias     set an alias
  ctx pin prod --protect --max-age 86400   runs need a registry that was signed within a day
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.confirmation import print_lines, show_version, version_json
from contextplane.cli.registry.session import act_signer, add_reason, add_signing, registry_session

if TYPE_CHECKING:
    from contextplane.app.registry.session import RegistrySession
    from contextplane.model.ids import PackRef

__all__ = ["add_arguments", "run"]

_DIGITS = 12


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("environment", metavar="ENV", help="the environment; with --alias, the alias")
    parser.add_argument("version", metavar="VERSION", nargs="?", help="id@X.Y.Z, or id@NAME")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--alias", action="store_true", help="set an alias instead of pinning")
    what.add_argument("--open", action="store_true", help="let ENV pin versions with an open refresh")
    what.add_argument("--protect", action="store_true", help="undo --open")
    parser.add_argument(
        "--max-age",
        metavar="SECONDS",
        type=_seconds,
        help="with --protect: how old the newest checkpoint may be for runs in ENV",
    )
    parser.add_argument("--digest", metavar="SHA256", help="refuse other bytes than these: sha256:<hash>")
    add_reason(parser, required=False)
    add_signing(parser)


def _seconds(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text):
        return int(text)
    raise ArgumentTypeError(f"not a number of seconds: {text[:20]!r}")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.pins import pin_version
    from contextplane.app.registry.preview import preview_version
    from contextplane.cli.parser import Usage
    from contextplane.cli.registry.render import print_pin

    changing = args.open or args.protect
    if (args.version is None) is not changing:
        wrong = "--open and --protect take no VERSION" if changing else "no VERSION was named"
        raise Usage(wrong, hint="ctx pin ENV VERSION, or ctx pin ENV --open")
    if args.max_age is not None and not args.protect:
        raise Usage("--max-age goes with --protect", hint="ctx pin ENV --protect --max-age SECONDS")
    with registry_session(args, output) as session:
        if changing:
            return _set_protection(session, args, output)
        ref = session.named_version(args.version)
        if args.alias:
            return _set_alias(session, ref, args, output)
        preview, names = preview_version(session, ref, args.environment), session.keys.names()
        unshown = show_version(preview, names, args, output)
        result = pin_version(session, args.environment, ref, act_signer(session, args, "pinned"))
    print_lines(unshown, output)
    print_pin(result, "is pinned in", output, preview=version_json(preview, names))
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
        session,
        args.environment,
        protected=args.protect,
        by=act_signer(session, args, "declared"),
        max_age=args.max_age,
    )
    state = "is protected: it takes no version" if args.protect else "is open: it also takes versions"
    output.line(f"{clean(args.environment)} {state} with an open refresh.")
    if args.max_age is not None:
        output.line(f"Runs there need a registry that was signed within {args.max_age} seconds.")
    if not changed:
        output.line("Already done; nothing changed.")
    output.answer({"environment": args.environment, "protected": args.protect, "changed": changed})
    return OK
