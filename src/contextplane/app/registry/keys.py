"""The keys of a store, put to use: making one, choosing the one that signs, and changing who is trusted.

What can be wrong with the use of keys, besides what the keyring itself refuses.

What a client knew of the keyring when it last looked: an older one is then not believed again.
"""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import msgspec

from contextplane.adapters.ed25519 import (
    Ed25519Check,
    Ed25519Signer,
    PassphraseNeeded,
    generated,
    pem,
    public_from_pem,
    signer_from_pem,
)
from contextplane.adapters.files.key_files import FileKeys, KeyNotFound, read_key_file
from contextplane.app.platform import Platform
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.keys import OWNER, PublicKey
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import Signer
from contextplane.ports.objects import StorageFull, StorageReadOnly
from contextplane.trust.clock import moment_of_act, seconds_behind
from contextplane.trust.dsse import encoded
from contextplane.trust.keyring import Change, KeyNotTrusted, KeyRevocation, KeyTrust, TrustedKeys, proposed
from contextplane.trust.keyring_stream import append_change, followed

if TYPE_CHECKING:
    from contextplane.app.registry.memory import Sealing

__all__ = [
    "FirstKeyNeedsIssuer",
    "KeyAmbiguous",
    "KeyChangeInvalid",
    "KeyDesk",
    "KeyringMemory",
    "KeyringMemoryInvalid",
    "NewKey",
    "SigningKeyUnclear",
    "name_of",
]


class SigningKeyUnclear(ContextPlaneError):
    """It was not said which key signs, and there is not exactly one."""

    code: ClassVar[str] = "signing_key_unclear"
    family: ClassVar[Family] = "usage"


class FirstKeyNeedsIssuer(ContextPlaneError):
    """The first key of a store owns its keyring and is trusted at once: it must be said for whom it signs."""

    code: ClassVar[str] = "first_key_needs_issuer"
    family: ClassVar[Family] = "usage"


class KeyAmbiguous(ContextPlaneError):
    """The beginning of a key id that several trusted keys have."""

    code: ClassVar[str] = "key_ambiguous"
    family: ClassVar[Family] = "usage"


class KeyringMemoryInvalid(ContextPlaneError):
    """The file in which this client keeps what it knows of the keyring cannot be read as that."""

    code: ClassVar[str] = "keyring_memory_invalid"
    family: ClassVar[Family] = "untrusted"


class KeyChangeInvalid(ContextPlaneError):
    """A change of the keyring with a name or a text in it that no keyring can hold."""

    code: ClassVar[str] = "key_change_invalid"
    family: ClassVar[Family] = "usage"


_KEYRING_MEMORY = "keyring"


class KeyringMemory:
    """Kept beside the keys, not in the catalog: whoever can change that cannot change this along with it."""

    def __init__(self, files: FileKeys) -> None:
        self._files = files

    def known(self) -> TrustedKeys:
        data = self._files.remembered(_KEYRING_MEMORY)
        if data is None:
            return TrustedKeys()
        try:
            known = msgspec.json.decode(data, type=TrustedKeys)
        except (msgspec.DecodeError, ContextPlaneError, UnicodeError, RecursionError):
            known = TrustedKeys()
        # Nothing is ever written here before there is an event, so that a file which says nothing was changed.
        if not known.seq:
            raise KeyringMemoryInvalid(
                "not what was written here",
                at=self._files.memory(_KEYRING_MEMORY),
                hint="remove it to believe the catalog as it is",
            )
        return known

    def keep(self, keys: TrustedKeys) -> None:
        # Another process may have seen more meanwhile.
        if keys.seq <= self.known().seq:
            return
        # A store that cannot be written is looked at all the same, and what was done in it is done.
        with suppress(StorageReadOnly, StorageFull):
            self._files.remember(_KEYRING_MEMORY, msgspec.json.encode(keys))


_LEAST_PREFIX = 8
_CHECKPOINTS = "registry/checkpoints"
_MOST_PEM = 64 * 1024
_PUBLIC = b"-----BEGIN PUBLIC KEY-----"
_NAME = re.compile(r"(?![0-9a-fA-F]{8,}\Z)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")  # never like the beginning of an id

Passphrase = Callable[[], bytes | None]


class NewKey(Value, frozen=True):
    """A key that was made. `trusted`: it is the first, and owns the keyring."""

    name: str
    key_id: str
    public: str
    trusted: bool


class KeyDesk:
    """The keys of one store. `given`: a private key from the environment, which goes before those in files."""

    def __init__(self, platform: Platform, passphrase: Passphrase, given: bytes | None = None) -> None:
        self.platform = platform
        self.files = FileKeys(platform.home.inside("keys"))
        self.check = Ed25519Check()
        self.behind = 0
        """How many seconds the clock was behind what is on record at the last act, if more than a minute."""
        self.sealing: Sealing | None = None
        """What became of the registry when the keyring was last changed here; None where there is none."""
        self.memory = KeyringMemory(self.files)
        self._passphrase = passphrase
        self._given = given

    @cached_property
    def keyring(self) -> TrustedKeys:
        """Who is trusted now. What is new is remembered."""
        known = self.memory.known()
        with self.platform.catalog.read() as view:
            keys = followed(view.streams, known, self.check)
        if keys != known:
            self.memory.keep(keys)
        return keys

    @property
    def clock(self) -> Timestamp:
        """What the clock of this machine shows."""
        return Timestamp.of(self.platform.clock.now())

    @property
    def now(self) -> Timestamp:
        """When an act would be: not before what is on record."""
        keys = self.keyring
        with self.platform.catalog.read() as view:
            return moment_of_act(self.clock, self._last(view.streams, keys))

    def make(self, name: str, issuer: str | None) -> NewKey:
        """Make a key. The first of a store is trusted at once, by the word of whoever makes it."""
        first = self.keyring.seq == 0
        if first and issuer is None:
            raise FirstKeyNeedsIssuer(
                "the first key owns the keyring", hint="say for whom it signs: --issuer, as contract_meta.issuer has it"
            )
        if not first and issuer is not None:
            raise SigningKeyUnclear(
                "an owner must sign for a further key", hint=f"leave --issuer out, then: ctx keys trust {name}"
            )
        passphrase = self._passphrase()
        if not passphrase:
            raise PassphraseNeeded(
                "a new key is kept under a passphrase", hint="set CTX_KEY_PASSPHRASE, or use --passphrase-fd"
            )
        private, signer = generated(passphrase)
        founding = [] if issuer is None else [self.trusting(signer.public_key, issuer, roles=(OWNER,), name=name)]
        _check(founding)
        self.files.keep(name, private, pem("PUBLIC KEY", signer.public_key.spki))
        if founding:
            self.change(founding, signer)
        return NewKey(
            name=name, key_id=signer.public_key.key_id, public=self.files.path_of(name), trusted=issuer is not None
        )

    def trusting(  # noqa: PLR0913  what is said of a key
        self,
        key: PublicKey,
        issuer: str,
        *,
        roles: Sequence[str] = (),
        since: Timestamp | None = None,
        until: Timestamp | None = None,
        name: str = "",
    ) -> KeyTrust:
        return KeyTrust(
            issuer=issuer,
            key=encoded(key.raw),
            roles=tuple(roles),
            valid_from=str(since or self.now),
            valid_until=None if until is None else str(until),
            name=name,
        )

    def change(self, changes: Sequence[Change], signer: Signer) -> TrustedKeys:
        """Append changes, all or none, signed by one key; and remember what the keyring is then."""
        return self._append(lambda _moment: changes, signer)

    def revoke(self, key_id: str, reason: str, signer: Signer, *, since: Timestamp | None = None) -> TrustedKeys:
        """Revoke a key from a time on; without one, from the moment at which it is on record."""
        return self._append(
            lambda moment: [KeyRevocation(key_id=key_id, revoked_from=str(since or moment), reason=reason)], signer
        )

    def _append(self, wanted: Callable[[Timestamp], Sequence[Change]], signer: Signer) -> TrustedKeys:
        with self.platform.catalog.write() as tx:
            before = keys = followed(tx.streams, self.memory.known(), self.check)
            clock, last = self.clock, self._last(tx.streams, keys)
            self.behind = seconds_behind(clock, last)
            changes = wanted(moment_of_act(clock, last))
            _check(changes)
            for change in changes:
                last = moment_of_act(clock, last)
                body = proposed(keys, change, at=last, signer=signer)
                keys = append_change(tx.streams, keys, body, self.check)
            sealing = self._sealing(tx.streams)
            if sealing is not None:
                sealing.sign(tx, before, keys, check=self.check, signer=signer, now=clock)
        self.memory.keep(keys)
        self.keyring = keys
        if sealing is not None:
            sealing.keep()
        self.sealing = sealing
        return keys

    def _sealing(self, streams: StreamsView) -> "Sealing | None":
        """Who signs the registry anew after a change; None while there is none."""
        if not streams.head(_CHECKPOINTS):
            return None
        # Loaded only where there is a registry.
        from contextplane.app.registry.memory import Sealing

        return Sealing(self.files, self.platform.store_id)

    def _last(self, streams: StreamsView, keys: TrustedKeys) -> Timestamp:
        """The latest time on record. An event of the registry is never later than the keyring that came after it."""
        if not streams.head(_CHECKPOINTS):
            return keys.as_of
        # Loaded only where there is a registry.
        from contextplane.registry.authority import Keyrings
        from contextplane.registry.log import last_time
        from contextplane.registry.streams import origin_of

        return last_time(streams, Keyrings.of(streams, keys), self.check, origin_of(self.platform.store_id))

    def signer(self, which: str | None = None) -> Ed25519Signer:
        """The key that signs: the one that is named, else the one from the environment, else the only one here."""
        if which is None and self._given is not None:
            return self._opened(self._given, "CTX_SIGNING_KEY")
        if which is not None and os.sep in which:
            return self._opened(read_key_file(which), which)
        if which is None:
            names = self.files.names()
            if len(names) != 1:
                raise SigningKeyUnclear(
                    f"there are {len(names)} private keys here" if names else "there is no private key here",
                    hint="name one with --key, or set CTX_SIGNING_KEY" if names else "'ctx keys new' makes one",
                )
            which = names[0]
        return self._opened(self.files.read(which).partition(_PUBLIC)[0], which)

    def local(self) -> dict[str, str]:
        """The names of the private keys here, by key id."""
        return {self.public(name).key_id: name for name in self.files.names()}

    def names(self) -> dict[str, str]:
        """What people call keys, by key id: as whoever trusted them does, else as they are called here."""
        names: dict[str, str] = {}
        with suppress(ContextPlaneError):  # whoever only looks need not reach the keys
            names = self.local()
        return names | {key.key.key_id: key.name for issuer in self.keyring.issuers for key in issuer.keys if key.name}

    def public(self, which: str) -> PublicKey:
        """A public key: of a private key here by its name, or from a PEM file."""
        if not _is_file(which):
            return public_from_pem(_PUBLIC + self.files.read(which).partition(_PUBLIC)[2], at=which)
        try:
            with open(which, "rb") as file:
                data = file.read(_MOST_PEM)
        except OSError as error:
            raise KeyNotFound(error.strerror or str(error), at=which, hint="a PEM file of a public key") from error
        return public_from_pem(data, at=which)

    def known_id(self, which: str) -> str:
        """The id of a trusted key: by its name here, a PEM file, or the beginning of its id."""
        if _is_file(which) or which in self.files.names():
            return self.public(which).key_id
        ids = {key.key.key_id for issuer in self.keyring.issuers for key in issuer.keys}
        found = sorted(identity for identity in ids if len(which) >= _LEAST_PREFIX and identity.startswith(which))
        if len(found) > 1:
            raise KeyAmbiguous(f"{len(found)} keys begin with {which}", hint="write more of it")
        if not found:
            raise KeyNotTrusted(
                "no key here has this name, and no trusted one an id that begins so",
                at=which[:80],
                hint="'ctx keys list' tells the ids; names there are for people",
            )
        return found[0]

    def _opened(self, data: bytes, at: str) -> Ed25519Signer:
        passphrase = self._passphrase() if b"BEGIN ENCRYPTED " in data else None
        return signer_from_pem(data, passphrase, at=at)


def _check(changes: Sequence[Change]) -> None:
    """Refuse what somebody typed before it is signed: an event of that form would be refused by every reader."""
    try:
        msgspec.convert(msgspec.to_builtins(changes), list[Change])
    except msgspec.ValidationError as error:
        raise KeyChangeInvalid(f"{error}", hint="names: ASCII letters, digits, _ . : and -, at most 128") from error


def name_of(which: str) -> str:
    """What a key is called in a keyring: as it is here, or as the file that it came in; nothing, if that is no name."""
    stem = os.path.basename(which).removesuffix(".pub").removesuffix(".pem") if _is_file(which) else which
    return stem if _NAME.fullmatch(stem) else ""


def _is_file(which: str) -> bool:
    return os.sep in which or "." in which
