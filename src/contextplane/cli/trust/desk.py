"""The keys of the open store, with the passphrase's source as the command line says it."""

from argparse import Namespace

from contextplane.app.keys import KeyDesk
from contextplane.app.platform import Platform
from contextplane.app.settings import signing_key
from contextplane.cli.passphrase import PassphraseSource

__all__ = ["desk_of"]


def desk_of(platform: Platform, args: Namespace) -> KeyDesk:
    passphrase = PassphraseSource(args.passphrase_fd, twice=args.what == "new")
    return KeyDesk(platform, passphrase, signing_key())
