"""Where a passphrase comes from: a descriptor that was named, the environment, or a person at a terminal, unechoed."""

import os
import sys
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family

__all__ = ["PassphraseDiffers", "PassphraseSource"]

_MOST = 1024


class PassphraseDiffers(ContextPlaneError):
    """A new passphrase that was typed differently the second time."""

    code: ClassVar[str] = "key_passphrase_differs"
    family: ClassVar[Family] = "refused"


class PassphraseSource:
    """Asked when a key is to be opened or made, and only then. `twice`: for a new key."""

    def __init__(self, fd: int | None, *, twice: bool) -> None:
        self._fd = fd
        self._twice = twice

    def __call__(self) -> bytes | None:
        """The passphrase; None when there is none and nobody to ask."""
        if self._fd is not None:
            return _first_line(self._fd)
        from contextplane.app.settings import key_passphrase

        data = key_passphrase()
        return data if data is not None or not sys.stdin.isatty() else self._asked()

    def _asked(self) -> bytes:
        from getpass import getpass

        said = getpass("Passphrase: ")
        if self._twice and getpass("Again: ") != said:
            raise PassphraseDiffers("the two are not the same", hint="try again")
        return said.encode(errors="surrogateescape")


def _first_line(fd: int) -> bytes:
    try:
        with os.fdopen(fd, "rb") as file:
            return file.readline(_MOST).removesuffix(b"\n")
    except OSError as error:
        from contextplane.cli.parser import Usage

        raise Usage(
            f"argument --passphrase-fd: {fd} cannot be read: {error.strerror}", hint="open it for this command"
        ) from error
