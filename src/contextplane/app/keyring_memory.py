"""What a client knew of the keyring when it last looked: an older one is then not believed again."""

from contextlib import suppress

import msgspec

from contextplane.adapters.files.keys import FileKeys
from contextplane.app.key_refusals import KeyringMemoryInvalid
from contextplane.errors import ContextPlaneError
from contextplane.ports.objects import StorageFull, StorageReadOnly
from contextplane.trust.keyring import TrustedKeys

__all__ = ["KeyringMemory"]

_NAME = "keyring"


class KeyringMemory:
    """Kept beside the keys, not in the catalog: whoever can change that cannot change this along with it."""

    def __init__(self, files: FileKeys) -> None:
        self._files = files

    def known(self) -> TrustedKeys:
        data = self._files.remembered(_NAME)
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
                at=self._files.memory(_NAME),
                hint="remove it to believe the catalog as it is",
            )
        return known

    def keep(self, keys: TrustedKeys) -> None:
        # Another process may have seen more meanwhile.
        if keys.seq <= self.known().seq:
            return
        # A store that cannot be written is looked at all the same, and what was done in it is done.
        with suppress(StorageReadOnly, StorageFull):
            self._files.remember(_NAME, msgspec.json.encode(keys))
