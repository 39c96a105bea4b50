"""The highest checkpoint of the registry that this client saw, in `.ctx/keys/registry.json`.

The client keeps it outside the catalog: so it notices a registry that was rolled back, forked or rewritten. Load it
before a view is opened: another process may see and save more while the view stays as it is.

`RegistryResigner` signs the registry anew after a change of the keyring, in the same transaction.
"""

from contextlib import suppress
from typing import ClassVar

import msgspec

from contextplane.adapters.files.key_files import FileKeys
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Document
from contextplane.ports.catalog import Transaction
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.ports.objects import StorageFull, StorageReadOnly
from contextplane.registry.resign import resign_after_keyring_change
from contextplane.registry.streams import origin_of
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle_log import VerifiedCheckpoint

__all__ = ["RegistryMemory", "RegistryMemoryInvalid", "RegistryResigner"]

_MEMORY = "registry"


class RegistryMemoryInvalid(ContextPlaneError):
    """The file in which this client keeps the highest checkpoint that it saw cannot be read as that."""

    code: ClassVar[str] = "registry_memory_invalid"
    family: ClassVar[Family] = "untrusted"


class _StoredNote(Document, frozen=True):
    """The signed note itself: two notes that contradict each other prove that their signer cheated."""

    note: str


class RegistryMemory:
    """Loads and saves the highest checkpoint of one store's registry."""

    def __init__(self, files: FileKeys) -> None:
        self._files = files

    def load(self) -> Checkpoint | None:
        """Load the highest checkpoint that was saved; None if there is none."""
        data = self._files.recall(_MEMORY)
        if data is None:
            return None
        try:
            note = msgspec.json.decode(data, type=_StoredNote).note
            return Checkpoint.parse(note.rpartition("\n\n")[0] + "\n")
        except (msgspec.DecodeError, ContextPlaneError, UnicodeError, RecursionError) as error:
            raise RegistryMemoryInvalid(
                "it was changed",
                at=self._files.memory_path(_MEMORY),
                hint="remove it to trust the catalog as it is",
            ) from error

    def save(self, verified: VerifiedCheckpoint | None) -> None:
        """Save a checkpoint that is consistent with the loaded one. A lower one changes nothing."""
        if verified is None:
            return
        saved = self.load()
        if saved is None or _height(saved) < _height(verified.checkpoint):
            # A store that cannot be written can still be read, and an act that is done stays done.
            with suppress(StorageReadOnly, StorageFull):
                self._files.remember(_MEMORY, msgspec.json.encode(_StoredNote(note=verified.note.decode())))


def _height(checkpoint: Checkpoint) -> tuple[int, Timestamp]:
    return checkpoint.size, checkpoint.time or NO_TIME


class RegistryResigner:
    """Signs the registry anew after one change of the keyring. `refusal`: why it could not; None: it did.

    A registry that cannot be signed stops no change: a key can be revoked in any state of the log.
    """

    def __init__(self, files: FileKeys, store_id: str) -> None:
        self.refusal: ContextPlaneError | None = None
        self._memory = RegistryMemory(files)
        self._origin = origin_of(store_id)
        self._fresh: VerifiedCheckpoint | None = None

    def sign(  # noqa: PLR0913  all parts of the act
        self,
        tx: Transaction,
        before: TrustedKeys,
        after: TrustedKeys,
        *,
        check: SignatureCheck,
        signer: Signer,
        now: Timestamp,
    ) -> None:
        try:
            self._fresh = resign_after_keyring_change(
                tx,
                before=before,
                after=after,
                check=check,
                signer=signer,
                now=now,
                origin=self._origin,
                seen=self._memory.load(),  # no other process writes now, so none saw more than is here
            )
        except ContextPlaneError as error:
            if error.family not in {"untrusted", "refused"}:
                raise  # the catalog failed, and with it the change
            self.refusal = error

    def save_checkpoint(self) -> None:
        """Save the new checkpoint, after the transaction."""
        self._memory.save(self._fresh)
