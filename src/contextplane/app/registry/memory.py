"""What this client knows of the registry: the highest checkpoint that it saw, in `.ctx/keys/registry.json`.

It is kept by the client and not in the catalog: so one that was rolled back, forked or rewritten is noticed.
Recall it before a view is opened: another process may see more, and keep that, while the view stays as it is.

The registry of a store, signed anew when the keyring changed: in the same transaction, and remembered after it.
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
from contextplane.registry.log import Standing
from contextplane.registry.resign import sealed
from contextplane.registry.streams import origin_of
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.keyring import TrustedKeys

__all__ = ["RegistryMemory", "RegistryMemoryInvalid", "Sealing"]

_MEMORY = "registry"


class RegistryMemoryInvalid(ContextPlaneError):
    """The file in which this client keeps the highest checkpoint that it saw cannot be read as that."""

    code: ClassVar[str] = "registry_memory_invalid"
    family: ClassVar[Family] = "untrusted"


class _Kept(Document, frozen=True):
    """The note as it was signed: two that contradict each other convict whoever signed them."""

    note: str


class RegistryMemory:
    """The memory of one store's registry."""

    def __init__(self, files: FileKeys) -> None:
        self._files = files

    def recalled(self) -> Checkpoint | None:
        """The highest checkpoint that was ever kept."""
        data = self._files.remembered(_MEMORY)
        if data is None:
            return None
        try:
            note = msgspec.json.decode(data, type=_Kept).note
            return Checkpoint.parse(note.rpartition("\n\n")[0] + "\n")
        except (msgspec.DecodeError, ContextPlaneError, UnicodeError, RecursionError) as error:
            raise RegistryMemoryInvalid(
                "not what was written here",
                at=self._files.memory(_MEMORY),
                hint="remove it to believe the catalog as it is",
            ) from error

    def keep(self, standing: Standing | None) -> None:
        """Keep a checkpoint that was found to go on from the one recalled. A lower one changes nothing."""
        if standing is None:
            return
        kept = self.recalled()
        if kept is None or _height(kept) < _height(standing.checkpoint):
            # A store that cannot be written is looked at all the same, and what was done in it is done.
            with suppress(StorageReadOnly, StorageFull):
                self._files.remember(_MEMORY, msgspec.json.encode(_Kept(note=standing.note.decode())))


def _height(checkpoint: Checkpoint) -> tuple[int, Timestamp]:
    return checkpoint.size, checkpoint.time or NO_TIME


class Sealing:
    """One change of the keyring. `refusal`: why the registry is not signed anew after it; None: it is.

    A registry that nobody would sign stops no change: a key is revoked whatever became of the log.
    """

    def __init__(self, files: FileKeys, store_id: str) -> None:
        self.refusal: ContextPlaneError | None = None
        self._memory = RegistryMemory(files)
        self._origin = origin_of(store_id)
        self._fresh: Standing | None = None

    def sign(  # noqa: PLR0913  what an act consists of
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
            self._fresh = sealed(
                tx,
                before=before,
                after=after,
                check=check,
                signer=signer,
                now=now,
                origin=self._origin,
                seen=self._memory.recalled(),  # nobody else writes now, so that nobody saw more than is here
            )
        except ContextPlaneError as error:
            if error.family not in {"untrusted", "refused"}:
                raise  # the catalog failed, and with it the change
            self.refusal = error

    def keep(self) -> None:
        """Remember the checkpoint, when it is written."""
        self._memory.keep(self._fresh)
