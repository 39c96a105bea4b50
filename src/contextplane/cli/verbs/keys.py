"""Make keys, and say who may sign for whom.

new makes an Ed25519 key and keeps it in .ctx/keys, encrypted under a passphrase; the first key of a store
owns its keyring and is trusted at once for the --issuer. list shows who is trusted, from when until when,
in which roles, and which keys are here. trust gives an issuer a key, or changes what is said of one that it
has: --role names all roles that the key has from then on, what is not named stays; --threshold says how many
keys must sign. Roles are owner (changes the keyring), publisher, operator, the reviewers' architecture,
security, data and evaluation, tenant:<tenant_id>, and any other that a pack has as the owner_role of a
decision. A key is called what it is called here, or what its file is called. rotate puts NEW in the place of
OLD, and both are good for --overlap days. revoke ends the trust in a key from a time on; what it signed
before passes only where a trusted time says that it was before. Every change signs the registry anew, where
there is one: so a revoked key puts no act before its revocation.

KEY is the name of a key here, a PEM file of a public key, or the beginning of a trusted key's id. Changes
are signed by an owner's key: --key NAME or FILE, else CTX_SIGNING_KEY (a PEM), else the only key here. Its
passphrase comes from --passphrase-fd, from CTX_KEY_PASSPHRASE, or is asked for. It is never printed, and no
private key is.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable

from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]

_SIGNING = frozenset({"key", "passphrase_fd"})
_TAKES = {
    "new": frozenset({"issuer", "passphrase_fd"}),
    "list": frozenset[str](),
    "trust": _SIGNING | {"issuer", "role", "since", "until", "threshold"},
    "rotate": _SIGNING | {"overlap"},
    "revoke": _SIGNING | {"since", "reason"},
}
_NAMES = {"new": 1, "list": 0, "trust": 1, "rotate": 2, "revoke": 1}
_TAKEN = ("no KEY", "one KEY", "two, OLD and NEW")
_OPTIONS = {"since": "from", "passphrase_fd": "passphrase-fd"}
_MOST_DAYS, _MOST_KEYS, _DIGITS = 3650, 16, 4


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=tuple(_TAKES), help="what to do")
    parser.add_argument(
        "names", metavar="KEY", nargs="*", default=[], help="a key; rotate takes two, OLD and NEW; list none"
    )
    parser.add_argument("--issuer", metavar="ISSUER", help="new, trust: for whom the key signs")
    parser.add_argument(
        "--role", metavar="ROLE", action="append", help="trust: publisher, security, ...; repeated, all of them"
    )
    parser.add_argument("--from", dest="since", metavar="TIME", type=_moment, help="trust, revoke: from then on")
    parser.add_argument("--until", metavar="TIME", type=_moment, help="trust: not from then on")
    parser.add_argument("--threshold", metavar="N", type=_number_to(_MOST_KEYS), help="trust: so many keys must sign")
    parser.add_argument(
        "--overlap", metavar="DAYS", type=_number_to(_MOST_DAYS), help="rotate: how long both are good (default: 30)"
    )
    parser.add_argument("--reason", metavar="TEXT", help="revoke: why")
    signing = parser.add_argument_group("who signs the change")
    signing.add_argument("--key", metavar="NAME|FILE", help="the owner's key")
    signing.add_argument("--passphrase-fd", metavar="N", type=_number_to(9999), help="read its passphrase from there")


def run(args: Namespace, output: CommandOutput) -> int:
    _check(args)
    from contextplane.cli.keys.change import change_keys, make_key
    from contextplane.cli.keys.session import key_store_for, note_clock_behind
    from contextplane.cli.keys.show import list_keys
    from contextplane.cli.store import open_store

    with open_store(output, following=False) as platform:
        key_store = key_store_for(platform, args)
        if args.what == "list":
            return list_keys(key_store, output)
        status = make_key(key_store, args, output) if args.what == "new" else change_keys(key_store, args, output)
        note_clock_behind(key_store, output)
        return status


def _check(args: Namespace) -> None:
    """Refuse arguments that belong to another action."""
    from contextplane.cli.parser import Usage

    hint = "see 'ctx keys --help'"
    if len(args.names) != _NAMES[args.what]:
        raise Usage(f"{args.what} takes {_TAKEN[_NAMES[args.what]]}, not {len(args.names)}", hint=hint)
    for name in sorted(frozenset[str]().union(*_TAKES.values())):
        if getattr(args, name) is not None and name not in _TAKES[args.what]:
            raise Usage(f"argument --{_OPTIONS.get(name, name)}: not allowed with {args.what}", hint=hint)
    needed = {"trust": "issuer", "revoke": "reason"}.get(args.what)
    if needed and getattr(args, needed) is None:
        raise Usage(f"the following arguments are required: --{needed}", hint=hint)


def _moment(text: str) -> object:
    from contextplane.model.timestamp import InvalidTimestamp, Timestamp

    try:
        return Timestamp.parse(text)
    except InvalidTimestamp as error:
        raise ArgumentTypeError(f"{error.message} ({error.hint})") from error


def _number_to(most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text) <= most:
            return int(text)
        raise ArgumentTypeError(f"not a number from 0 to {most}: {text[:20]!r}")

    return number
