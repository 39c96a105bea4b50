"""What verbs that act in the registry share: a session, the signer and reason, and the target."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput
from contextplane.errors import ContextPlaneError

if TYPE_CHECKING:
    from contextplane.app.compile.golden import FolderCases
    from contextplane.app.packs.files import EnvironmentDescription
    from contextplane.app.registry.session import RegistrySession, SignedBy

__all__ = [
    "act_signer",
    "add_reason",
    "add_signing",
    "base_id",
    "environment_description",
    "registry_session",
    "release_target",
]

_MOST_DIGITS = 4
_DIGEST = "sha256:"


def add_signing(parser: ArgumentParser) -> None:
    """Add the options for the key that signs, as with `ctx keys`."""
    signing = parser.add_argument_group("signing")
    signing.add_argument(
        "--key", metavar="NAME|FILE", help="the key (default: CTX_SIGNER, else CTX_SIGNING_KEY, else the only key here)"
    )
    signing.add_argument(
        "--passphrase-fd", metavar="N", type=_descriptor, help="read its passphrase from this file descriptor"
    )


def add_reason(parser: ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--reason", metavar="TEXT", required=required, help="the reason; the registry keeps it for ever"
    )


@contextmanager
def registry_session(args: Namespace, output: CommandOutput) -> Iterator["RegistrySession"]:
    """Open the registry of the current store. Verbs that only read have no options for a key."""
    from contextplane.cli.keys.session import local_principal, note_clock_behind
    from contextplane.cli.store import store_session

    with store_session(output, local_principal(args), following=False) as session:
        registry = session.registry(_golden(args))
        try:
            yield registry
        except ContextPlaneError as error:
            raise _act_error(registry, args, error) from None
        note_clock_behind(session.keys, output)


def _act_error(session: "RegistrySession", args: Namespace, error: ContextPlaneError) -> ContextPlaneError:
    """Return the error of a verb; for an act on a mirrored version, one that says that it is one."""
    if not hasattr(args, "key") or error.code not in {"artifact_not_found", "version_not_found"}:
        return error
    from contextplane.app.registry.mirror import acting_error

    return acting_error(session, error)


def _golden(args: Namespace) -> "FolderCases | None":
    """Return the golden cases of the folder that --golden names, if the verb has it."""
    if getattr(args, "golden", None) is None:
        return None
    from contextplane.app.compile.golden import FolderCases

    return FolderCases(args.golden)


def act_signer(session: "RegistrySession", args: Namespace, otherwise: str = "") -> "SignedBy":
    """Return the signer of an act and its reason; `otherwise`: the reason if none was typed."""
    from contextplane.app.registry.session import SignedBy

    return SignedBy(session.keys.signer(args.key), args.reason or otherwise)


def base_id(text: str) -> str:
    """Return the id of a pack, an overlay or a catalog; a version is refused."""
    name, version = text.partition("@")[::2]
    if version:
        from contextplane.cli.parser import Usage

        raise Usage("write an id, without a version", at=text[:80], hint=f"write {name[:80]}")
    return text


def release_target(text: str) -> str:
    """Return the artifact to release: `id@X.Y.Z` or `sha256:...` as typed, or the digest of a file."""
    from contextplane.model.ids import PackRef, UnpinnedRef

    if text.startswith(_DIGEST) and "@" not in text:
        return text
    try:
        return str(PackRef.parse(text))
    except UnpinnedRef as error:
        if "/" not in text and "." not in text:
            error.hint = "write a file as ./FILE, sha256:<hash>, or id@X.Y.Z"
            raise
    from contextplane.app.packs.files import read_source_file
    from contextplane.app.registry.release import candidate_in

    return str(candidate_in(read_source_file(text)).digest)


def environment_description(args: Namespace) -> "EnvironmentDescription | None":
    """Return the description of the environment in the file that --environment names, if any."""
    from contextplane.app.packs.files import read_environment_file

    return read_environment_file(args.environment) if args.environment else None


def _descriptor(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    raise ArgumentTypeError(f"not a file descriptor: {text[:20]!r}")
