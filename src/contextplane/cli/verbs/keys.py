"""Create keys, and manage who may sign for an issuer.

  new KEY           create an Ed25519 key in .ctx/keys, encrypted with a passphrase. The first key of a store owns its
                    keyring and is trusted at once for --issuer. With --standalone -o FILE, the key is created in
                    FILE, and its public half in FILE.pub; no store is needed, and an owner of one trusts FILE.pub.
  public            print the public key of the key that would sign, as PEM, for an owner to trust.
  list              list the trusted keys with their roles and times, and the keys stored here.
  trust KEY         trust a key for an issuer, or change its roles or times. --role lists all its roles; options that
                    are left out keep their values. --threshold sets how many people must sign. A second issuer needs
                    --new-issuer, because its name may be a misspelt one. --owners sets how many owners must agree
                    to a change of the keyring, --witnesses how many witnesses must cosign the newest checkpoint
                    for new runs ('ctx witness'); both need no KEY.
  rotate OLD NEW    replace OLD by NEW. Both are valid for --overlap days. NEW ends when OLD would have ended, or at
                    --until.
  revoke KEY        end the trust in a key, from --from on. Its earlier signatures stay valid only if a trusted time
                    shows that they are earlier.
  propose WHAT ...  write trust, rotate or revoke to -o FILE instead of doing it, for other owners to approve.
  approve FILE      show a proposal, and add your signature to it. When enough owners have signed, it is done.

Roles are owner (changes the keyring), log (signs the log; every act takes it beside its own role), witness (cosigns
it), publisher, operator, the reviewer roles architecture, security, data and evaluation, and the owner_role of any
decision. An operator acts for its own tenant; tenant:<tenant_id> and environment:<name> add others. Every change signs
the registry again, so a revoked key cannot backdate an act.

KEY is the name of a key, a PEM file of a public key, or the first digits of a trusted key's id. An owner's
key signs changes: --key, else CTX_SIGNER (command:PROGRAM ARGS, or pkcs11:MODULE?token=LABEL&object=LABEL), else
CTX_SIGNING_KEY (a PEM), else the only key here. Its passphrase is read from --passphrase-fd or CTX_KEY_PASSPHRASE, or
asked for; the PIN of a token from CTX_PKCS11_PIN or --passphrase-fd, or asked for. A new passphrase has at least 12
characters. Passphrases, PINs and private keys are never printed.

Examples:
  ctx keys new alice --issuer acme                            create the owner's key
  ctx keys new bob --standalone -o bob.key                    create a key where there is no store
  ctx keys public --key ./bob.key                              print the public key of the key that signs
  ctx keys list                                               show who is trusted
  ctx keys trust bob --issuer acme --role data --role log     trust another key
  ctx keys rotate bob carol --overlap 30                      replace a key
  ctx keys revoke carol --reason "laptop lost"                stop trusting a key
  ctx keys propose trust --owners 2 -o two.json --key alice   propose that two owners must agree
  ctx keys approve two.json --key dave                        agree to it
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable

from contextplane.cli.output import CommandOutput

__all__ = ["add_arguments", "run"]

_SIGNING = frozenset({"key", "passphrase_fd"})
_TAKES = {
    "new": frozenset({"issuer", "standalone", "output", "passphrase_fd"}),
    "public": _SIGNING,
    "list": frozenset[str](),
    "trust": _SIGNING | {"issuer", "new_issuer", "role", "since", "until", "threshold", "owners", "witnesses"},
    "rotate": _SIGNING | {"overlap", "until"},
    "revoke": _SIGNING | {"since", "reason"},
    "approve": _SIGNING | {"yes"},
}
_PROPOSE = "propose"
_ACTIONS = ("new", "public", "list", "trust", "rotate", "revoke", _PROPOSE, "approve")
_PROPOSABLE = ("trust", "rotate", "revoke")
_NAMES = {"new": 1, "public": 0, "list": 0, "trust": 1, "rotate": 2, "revoke": 1, "approve": 1}
_TAKEN = ("no KEY", "one KEY", "two, OLD and NEW")
_OPTIONS = {"since": "from", "passphrase_fd": "passphrase-fd", "new_issuer": "new-issuer"}
_HINT = "see 'ctx keys --help'"
_MOST_DAYS, _MOST_KEYS, _DIGITS = 3650, 16, 4


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="ACTION", choices=_ACTIONS, help="the action, as above")
    parser.add_argument(
        "names",
        metavar="KEY",
        nargs="*",
        default=[],
        help="a key; two for rotate, OLD and NEW; none for list; the action and its keys for propose; FILE for approve",
    )
    parser.add_argument(
        "--standalone",
        action="store_true",
        default=None,
        help="new: make the key in a file of its own, without a store",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="new --standalone: the file for the key; propose: the file for the proposal",
    )
    parser.add_argument("--issuer", metavar="ISSUER", help="new, trust: the issuer that the key signs for")
    parser.add_argument(
        "--new-issuer", action="store_true", default=None, help="trust: --issuer may name an issuer without a key"
    )
    parser.add_argument("--role", metavar="ROLE", action="append", help="trust: a role of the key; repeatable")
    parser.add_argument(
        "--from", dest="since", metavar="TIME", type=_moment, help="trust, revoke: the first time it applies"
    )
    parser.add_argument("--until", metavar="TIME", type=_moment, help="trust, rotate: the time at which it ends")
    parser.add_argument(
        "--threshold", metavar="N", type=_number_to(_MOST_KEYS), help="trust: how many people must sign"
    )
    parser.add_argument(
        "--owners",
        metavar="N",
        type=_number_to(_MOST_KEYS),
        help="trust: how many owners must agree to a change of the keyring",
    )
    parser.add_argument(
        "--witnesses", metavar="N", type=_number_to(_MOST_KEYS), help="trust: how many witnesses must cosign"
    )
    parser.add_argument(
        "--overlap", metavar="DAYS", type=_number_to(_MOST_DAYS), help="rotate: how long both are valid (default: 30)"
    )
    parser.add_argument("--reason", metavar="TEXT", help="revoke: the reason")
    parser.add_argument("--yes", action="store_true", default=None, help="approve: do not ask")
    signing = parser.add_argument_group("signing")
    signing.add_argument("--key", metavar="NAME|FILE", help="the owner's key")
    signing.add_argument(
        "--passphrase-fd", metavar="N", type=_number_to(9999), help="read its passphrase from this file descriptor"
    )


def run(args: Namespace, output: CommandOutput) -> int:
    args.proposes = args.what == _PROPOSE
    if args.proposes:
        _read_proposed_action(args)
    _check(args)
    if args.standalone:
        from contextplane.cli.keys.change import make_standalone_key

        return make_standalone_key(args, output)
    from contextplane.cli.keys.change import change_keys, make_key
    from contextplane.cli.keys.session import local_principal, note_clock_behind
    from contextplane.cli.keys.show import list_keys, print_public_key
    from contextplane.cli.store import store_session

    if args.what == "public":
        return print_public_key(args, output)
    with store_session(output, local_principal(args, new_key=args.what == "new"), following=False) as session:
        key_store = session.keys
        if args.what == "list":
            return list_keys(key_store, output)
        if args.what == "approve" or args.proposes:
            from contextplane.cli.registry.key_proposals import approve_change, propose_change

            status = (propose_change if args.proposes else approve_change)(key_store, args, output)
        else:
            status = make_key(key_store, args, output) if args.what == "new" else change_keys(key_store, args, output)
        note_clock_behind(key_store, output)
        return status


def _read_proposed_action(args: Namespace) -> None:
    """Take the proposed action from the arguments of `propose`."""
    from contextplane.cli.parser import Usage

    if not args.names or args.names[0] not in _PROPOSABLE:
        raise Usage(f"propose takes one of {', '.join(_PROPOSABLE)}, and its arguments", hint=_HINT)
    args.what, *args.names = args.names
    if args.output is None:
        raise Usage("the following arguments are required: -o", hint="name the file for the proposal")


def _check(args: Namespace) -> None:
    """Refuse arguments that belong to another action."""
    from contextplane.cli.parser import Usage

    takes = _TAKES[args.what] | ({"output"} if args.proposes else frozenset())
    is_threshold = args.what == "trust" and not args.names and (args.owners, args.witnesses) != (None, None)
    if is_threshold:
        takes = takes & (_SIGNING | {"owners", "witnesses", "output"})
    elif len(args.names) != _NAMES[args.what]:
        file = "one FILE" if args.what == "approve" else _TAKEN[_NAMES[args.what]]
        raise Usage(f"{args.what} takes {file}, not {len(args.names)}", hint=_HINT)
    for name in sorted(frozenset[str]().union(*_TAKES.values())):
        if getattr(args, name) is not None and name not in takes:
            what = f"{args.what} without a KEY" if is_threshold else args.what
            raise Usage(f"argument --{_OPTIONS.get(name, name)}: not allowed with {what}", hint=_HINT)
    if args.standalone and args.issuer is not None:
        raise Usage(
            "argument --issuer: not allowed with --standalone", hint="an owner names the issuer: 'ctx keys trust'"
        )
    if not args.proposes and (args.standalone is None) != (args.output is None):
        raise Usage("--standalone and -o FILE go together", hint=_HINT)
    needed = {"trust": "issuer", "revoke": "reason"}.get(args.what)
    if needed and not is_threshold and getattr(args, needed) is None:
        raise Usage(f"the following arguments are required: --{needed}", hint=_HINT)


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
