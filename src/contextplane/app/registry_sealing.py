"""The registry of a store, signed anew when the keyring changed: in the same transaction, and remembered after it."""

from typing import TYPE_CHECKING

from contextplane.adapters.files.keys import FileKeys
from contextplane.app.registry_memory import RegistryMemory
from contextplane.errors import ContextPlaneError
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import Transaction
from contextplane.ports.signer import SignatureCheck, Signer
from contextplane.registry.sealing import sealed
from contextplane.registry.streams import origin_of
from contextplane.trust.keyring import TrustedKeys

if TYPE_CHECKING:
    from contextplane.registry.checkpoints import Standing

__all__ = ["Sealing"]


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
