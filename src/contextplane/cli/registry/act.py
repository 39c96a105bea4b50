"""Acting in the registry from the command line: which key signs, why, and what is meant.

Which of the things that can be named is a version: `id@X.Y.Z`, and for people `id@ALIAS` or `id@ENV`.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput

if TYPE_CHECKING:
    from contextplane.app.registry.session import RegistrySession, SignedBy
    from contextplane.authoring.environment import EnvironmentDescription
    from contextplane.authoring.source_file import NamedFile
    from contextplane.registry.artifacts import Candidate
    from contextplane.registry.reports import GoldenCases

__all__ = [
    "add_reason",
    "add_signing",
    "parse_artifact",
    "registry_session",
    "base_id",
    "signed_by",
    "environment_description",
    "release_target",
]

_MOST_DIGITS = 4
_DIGEST = "sha256:"


def add_signing(parser: ArgumentParser) -> None:
    """Who signs, as with `ctx keys`."""
    signing = parser.add_argument_group("who signs")
    signing.add_argument("--key", metavar="NAME|FILE", help="the key; else CTX_SIGNING_KEY, else the only one here")
    signing.add_argument("--passphrase-fd", metavar="N", type=_descriptor, help="read its passphrase from there")


def add_reason(parser: ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--reason", metavar="TEXT", required=required, help="why; it stands in the registry for ever")


@contextmanager
def registry_session(args: Namespace, output: CommandOutput) -> Iterator["RegistrySession"]:
    """The registry of the store that we are in. Verbs that only look have no key to name."""
    from contextplane.app.registry.keys import KeyStore
    from contextplane.app.registry.session import RegistrySession
    from contextplane.app.settings import signing_key
    from contextplane.cli.keys.session import note_clock_behind
    from contextplane.cli.store import open_store
    from contextplane.cli.passphrase import PassphraseSource

    with open_store(output, following=False) as platform:
        passphrase = PassphraseSource(getattr(args, "passphrase_fd", None), twice=False)
        keys = KeyStore(platform, passphrase, signing_key())
        yield RegistrySession(keys, _golden(args))
        note_clock_behind(keys, output)


def _golden(args: Namespace) -> "GoldenCases | None":
    """The golden cases of a folder, where a verb takes one and it is given."""
    if getattr(args, "golden", None) is None:
        return None
    from contextplane.app.compile.golden import FolderCases

    return FolderCases(args.golden)


def signed_by(session: "RegistrySession", args: Namespace, otherwise: str = "") -> "SignedBy":
    """Whoever acts; `otherwise`: the reason where none was given."""
    from contextplane.app.registry.session import SignedBy

    return SignedBy(session.keys.signer(args.key), args.reason or otherwise)


def base_id(text: str) -> str:
    """The id of a pack, an overlay or a catalog, where no version belongs to it."""
    name, version = text.partition("@")[::2]
    if version:
        from contextplane.cli.parser import Usage

        raise Usage("an id is asked for, without a version", at=text[:80], hint=f"write {name[:80]}")
    return text


def release_target(text: str) -> str:
    """What is on its way to be published: `id@X.Y.Z` or `sha256:...` as typed, or the bytes that a file stands for."""
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

    return str(parse_artifact(read_source_file(text)).digest)


def parse_artifact(file: "NamedFile") -> "Candidate":
    """The artifact that a file is. What has the form of none is told where it stands, as `ctx lint` would."""
    from contextplane.registry.artifacts import ArtifactInvalid, candidate

    try:
        return candidate(file.file.value)
    except ArtifactInvalid as error:
        error.at = file.where((error.at or "").removesuffix("/"))
        error.hint = f"'ctx lint {file.path}' lists all that is wrong with its form"
        raise


def environment_description(args: Namespace) -> "EnvironmentDescription | None":
    """What is known of the environment, where a file says so."""
    from contextplane.app.packs.files import read_environment_file

    return read_environment_file(args.environment) if args.environment else None


def _descriptor(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    raise ArgumentTypeError(f"not a number of a descriptor: {text[:20]!r}")
