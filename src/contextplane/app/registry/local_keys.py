"""The private keys of the person at this machine: in a store, in files, or behind a signer.

A key is opened with its passphrase when it signs, or when it proves its public half. No keyring is read here, and
`create_standalone_key` needs no store.
"""

import os
from collections.abc import Callable
from typing import ClassVar, Protocol, runtime_checkable

from contextplane.adapters.ed25519 import (
    PassphraseNeeded,
    PassphraseWrong,
    generate_key,
    pem,
    public_from_pem,
    public_half,
    signer_from_pem,
)
from contextplane.adapters.files.key_files import (
    FileKeys,
    KeyNotFound,
    check_key_name,
    read_key_file,
    store_key_file,
)
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.keys import PublicKey
from contextplane.model.value import Value
from contextplane.ports.keys import Signer

__all__ = [
    "KeyUnproved",
    "LocalKeys",
    "NamingPassphrase",
    "Passphrase",
    "PublicPem",
    "SigningKeyUnclear",
    "StandaloneKey",
    "create_standalone_key",
    "keys_without_store",
    "new_passphrase",
    "public_pem",
    "read_public_key",
]

_ENCRYPTED = b"BEGIN ENCRYPTED "
_MAX_PEM = 64 * 1024

Passphrase = Callable[[], bytes | None]


@runtime_checkable
class NamingPassphrase(Protocol):
    """A source of passphrases that can say for which key it asks."""

    def __call__(self) -> bytes | None: ...

    def ask_for(self, name: str) -> bytes | None: ...


class SigningKeyUnclear(ContextPlaneError):
    """No key was named, and there is not exactly one here."""

    code: ClassVar[str] = "signing_key_unclear"
    family: ClassVar[Family] = "usage"


class KeyUnproved(ContextPlaneError):
    """A key in the folder of keys that cannot prove its public half: its private half is not encrypted.

    Every program that can write to the folder can put such a file there.
    """

    code: ClassVar[str] = "key_unproved"
    family: ClassVar[Family] = "refused"


class LocalKeys:
    """The private keys that one person can use with a store.

    `environment_key`: a private key in PEM form. `external_signer`: opens a signer outside of this program. The order
    in which they are taken is that of `signer`.
    """

    def __init__(
        self,
        files: FileKeys,
        passphrase: Passphrase,
        environment_key: bytes | None,
        external_signer: Callable[[], Signer] | None,
    ) -> None:
        self._files = files
        self._passphrase = passphrase
        self._environment_key = environment_key
        self._external_signer = external_signer

    def signer(self, which: str | None = None) -> Signer:
        """Return the named signer, else the external one, else the environment's key, else the only one here."""
        if which is not None:
            return self._open(read_key_file(which) if os.sep in which else self._files.read(which), which)
        if self._external_signer is not None:
            return self._external_signer()
        if self._environment_key is not None:
            return self._open(self._environment_key, "CTX_SIGNING_KEY")
        names = self._files.names()
        if len(names) != 1:
            raise SigningKeyUnclear(
                f"there are {len(names)} private keys here" if names else "there is no private key here",
                hint="name one with --key, or set CTX_SIGNER or CTX_SIGNING_KEY"
                if names
                else "name a file with --key ./FILE, or set CTX_SIGNER or CTX_SIGNING_KEY; 'ctx keys new' makes a key",
            )
        return self._open(self._files.read(names[0]), names[0])

    def names(self) -> dict[str, str]:
        """Map the ids of the keys in the folder to their names. They are labels: no decision depends on them."""
        return {self.claimed_public(name).key_id: name for name in self._files.names()}

    def claimed_public(self, name: str) -> PublicKey:
        """Return the public half in the file of a key: a claim, which a writer of the folder can exchange."""
        return public_half(self._files.read(name), at=name)

    def proved_public(self, name: str) -> PublicKey:
        """Open a key with its passphrase, and return its public half."""
        data = self._files.read(name)
        by_file = f"or compare its id with its holder, and name its file: {self._files.public_path(name)}"
        if _ENCRYPTED not in data:
            raise KeyUnproved(
                "its private half is not encrypted, so that its file can be a planted one",
                at=name,
                hint=f"make a new key with 'ctx keys new', {by_file}",
            )
        try:
            return self._open(data, name).public_key
        except (PassphraseNeeded, PassphraseWrong) as error:
            error.hint = f"give the passphrase of this key, {by_file}"
            raise

    def _open(self, data: bytes, at: str) -> Signer:
        return signer_from_pem(data, self._ask(at) if _ENCRYPTED in data else None, at=at)

    def _ask(self, name: str) -> bytes | None:
        ask = self._passphrase
        return ask.ask_for(name) if isinstance(ask, NamingPassphrase) else ask()


class PublicPem(Value, frozen=True):
    """A public key as PEM, for other programs, and its id."""

    key_id: str
    pem: str


def public_pem(signer: Signer) -> PublicPem:
    """Return the public key of a signer."""
    key = signer.public_key
    return PublicPem(key_id=key.key_id, pem=pem("PUBLIC KEY", key.spki).decode())


def keys_without_store(
    passphrase: Passphrase, environment_key: bytes | None, external_signer: Callable[[], Signer] | None
) -> LocalKeys:
    """Return the keys that can be used where there is no store: all but those in the folder of one."""
    return LocalKeys(FileKeys(""), passphrase, environment_key, external_signer)


def read_public_key(path: str) -> PublicKey:
    """Read a public key from a PEM file."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_PEM)
    except OSError as error:
        raise KeyNotFound(error.strerror or str(error), at=path, hint="a PEM file of a public key") from error
    return public_from_pem(data, at=path)


def new_passphrase(passphrase: Passphrase) -> bytes:
    """Return the passphrase for a new key, or refuse to make one without."""
    data = passphrase()
    if not data:
        raise PassphraseNeeded(
            "a new key is kept under a passphrase", hint="set CTX_KEY_PASSPHRASE, or use --passphrase-fd"
        )
    return data


class StandaloneKey(Value, frozen=True):
    """A new key that belongs to no store. `private`: the file that signs; `public`: the one for an owner."""

    name: str
    key_id: str
    private: str
    public: str


def create_standalone_key(name: str, path: str, passphrase: Passphrase) -> StandaloneKey:
    """Make a key in a file of its own, encrypted with a passphrase, with its public half beside it."""
    check_key_name(name)
    private, signer = generate_key(new_passphrase(passphrase))
    public_path = store_key_file(path, private, pem("PUBLIC KEY", signer.public_key.spki))
    return StandaloneKey(name=name, key_id=signer.public_key.key_id, private=os.path.abspath(path), public=public_path)
