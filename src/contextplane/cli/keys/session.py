"""The keys of the open store, with the passphrase's source as the command line says it.

What is said of a clock that does not agree with what is on record.
"""

from argparse import Namespace
from datetime import timedelta

from contextplane.app.platform import Platform
from contextplane.app.registry.keys import KeyDesk
from contextplane.app.settings import signing_key
from contextplane.cli.output import Screen
from contextplane.cli.passphrase import PassphraseSource

__all__ = ["desk_of", "tell_clock"]


def desk_of(platform: Platform, args: Namespace) -> KeyDesk:
    passphrase = PassphraseSource(args.passphrase_fd, twice=args.what == "new")
    return KeyDesk(platform, passphrase, signing_key())


def tell_clock(desk: KeyDesk, screen: Screen) -> None:
    """After an act: that it is on record at a later time than this machine's, when they differ by over a minute."""
    if desk.behind:
        behind = timedelta(seconds=desk.behind)
        screen.note(
            f"this machine's clock is {behind} behind what is on record, and the act stands right after that;"
            " docs/registry.md, 'When a clock was wrong', tells what it means"
        )
