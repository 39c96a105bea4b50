"""Opens the keys of a store with the passphrase of the options, and notes a clock that is behind."""

from argparse import Namespace
from datetime import timedelta

from contextplane.app.platform import Platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.settings import signing_key
from contextplane.cli.output import CommandOutput
from contextplane.cli.passphrase import PassphraseSource

__all__ = ["key_store_for", "note_clock_behind"]


def key_store_for(platform: Platform, args: Namespace) -> KeyStore:
    passphrase = PassphraseSource(args.passphrase_fd, twice=args.what == "new")
    return KeyStore(platform, passphrase, signing_key())


def note_clock_behind(key_store: KeyStore, output: CommandOutput) -> None:
    """Note, after an act, that this machine's clock is over a minute behind the times on record."""
    if key_store.behind:
        behind = timedelta(seconds=key_store.behind)
        output.note(
            f"this machine's clock is {behind} behind what is on record, and the act stands right after that;"
            " docs/registry.md, 'When a clock was wrong', tells what it means"
        )
