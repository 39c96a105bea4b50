"""The principal of a command, by the options for its key; and the note that a clock is behind."""

import os
import sys
from argparse import Namespace
from datetime import timedelta
from typing import ClassVar

from contextplane.app.registry.keys import KeyStore
from contextplane.app.session import LocalPrincipal, external_signer
from contextplane.app.settings import signing_key
from contextplane.cli.output import CommandOutput, clean
from contextplane.errors import ContextPlaneError, Family

__all__ = ["PassphraseDiffers", "PassphraseSource", "local_principal", "note_clock_behind"]


_MOST = 1024


class PassphraseDiffers(ContextPlaneError):
    """A new passphrase that was typed differently the second time."""

    code: ClassVar[str] = "key_passphrase_differs"
    family: ClassVar[Family] = "refused"


class PassphraseSource:
    """Gets a passphrase when a key is opened or made, and only then. `twice`: ask twice, for a new key.

    A passphrase from a file descriptor or from the environment is that of every key that a command opens.
    """

    def __init__(self, fd: int | None, *, twice: bool) -> None:
        self._fd = fd
        self._twice = twice
        self._line: bytes | None = None

    def __call__(self) -> bytes | None:
        """Return the passphrase; None if there is none, and no terminal to ask for it."""
        return self._get("Passphrase: ")

    def ask_for(self, name: str) -> bytes | None:
        """Return the passphrase of a key, and name the key where a person is asked."""
        return self._get(f"Passphrase of {clean(name)}: ")

    def pin(self) -> bytes | None:
        """Return the PIN of a token: that of the environment, else from where passphrases come.

        A passphrase of the environment is never tried as a PIN: a few wrong ones lock a token.
        """
        from contextplane.app.settings import pkcs11_pin

        return pkcs11_pin() or self._read_line() or (self._ask("PIN of the token: ") if sys.stdin.isatty() else None)

    def _get(self, prompt: str) -> bytes | None:
        if self._fd is not None:
            return self._read_line()
        from contextplane.app.settings import key_passphrase

        data = key_passphrase()
        return data if data is not None or not sys.stdin.isatty() else self._ask(prompt)

    def _read_line(self) -> bytes | None:
        if self._fd is not None and self._line is None:
            self._line = _first_line(self._fd)
        return self._line

    def _ask(self, prompt: str) -> bytes:
        from getpass import getpass

        passphrase = getpass(prompt)
        if self._twice and getpass("Again: ") != passphrase:
            raise PassphraseDiffers("the passphrases differ", hint="try again")
        return passphrase.encode(errors="surrogateescape")


def _first_line(fd: int) -> bytes:
    try:
        with os.fdopen(fd, "rb") as file:
            return file.readline(_MOST).removesuffix(b"\n")
    except OSError as error:
        from contextplane.cli.parser import Usage

        raise Usage(
            f"argument --passphrase-fd: {fd} cannot be read: {error.strerror}", hint="open it for this command"
        ) from error


def local_principal(args: Namespace, *, new_key: bool = False) -> LocalPrincipal:
    """Return the principal of a command: the options say how its key is opened. Not every verb has them."""
    passphrase = PassphraseSource(getattr(args, "passphrase_fd", None), twice=new_key)
    return LocalPrincipal(
        passphrase=passphrase, signing_key=signing_key(), external_signer=external_signer(passphrase.pin)
    )


def note_clock_behind(key_store: KeyStore, output: CommandOutput) -> None:
    """Note, after an act, that this machine's clock is over a minute behind the times on record."""
    if key_store.behind:
        behind = timedelta(seconds=key_store.behind)
        output.note(
            f"this machine's clock is {behind} behind the registry, so the act is dated right after its newest entry;"
            " see 'When a clock was wrong' in docs/registry.md"
        )
