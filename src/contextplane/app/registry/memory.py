"""What this client knows of a registry from before: its highest checkpoint and the end of its keyring.

It is kept outside of the store (`ClientState`), so that an old copy of the whole store, put back in its place, is
noticed. Load it before a view is opened: another process may see and save more while the view stays as it is.

A root of trust that the user named comes first: keys that must have vouched for the keyring, or a checkpoint that the
registry must continue.

`RegistryResigner` signs the registry anew after a change of the keyring, among the same changes.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from msgspec.structs import replace

from contextplane.adapters.files.client_state import ClientState, StoreMemory
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import StreamsView
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.registry.log import LogChanges
from contextplane.registry.open import OpenRegistry
from contextplane.registry.resign import resign_after_keyring_change
from contextplane.trust.checkpoint import Checkpoint, KeyringPosition, LogRolledBack
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM, KeyringRewritten, KeyringRolledBack
from contextplane.trust.merkle_log import VerifiedCheckpoint, believed_checkpoint
from contextplane.trust.trust_root import TrustRoot, check_root

__all__ = ["RegistryMemory", "RegistryMemoryInvalid", "RegistryResigner", "StoreReplaced"]

_HINT = "the catalog was replaced; restore it from a copy"
_MOST_JUDGED = 1024


class RegistryMemoryInvalid(ContextPlaneError):
    """The file in which this client keeps the highest checkpoint that it saw cannot be read as that."""

    code: ClassVar[str] = "registry_memory_invalid"
    family: ClassVar[Family] = "untrusted"


class StoreReplaced(ContextPlaneError):
    """Another store is where this client knew one."""

    code: ClassVar[str] = "store_replaced"
    family: ClassVar[Family] = "untrusted"


class RegistryMemory:
    """Loads and saves what is known of one store's registry."""

    def __init__(self, state: ClientState, origin: str, root: TrustRoot | None = None) -> None:
        self._state = state
        self._origin = origin
        self._root = root
        self._judged: set[str] = set()
        self._position: KeyringPosition | None = None
        self._note = ""  # what was loaded last
        self._voids: int | None = None

    @property
    def root(self) -> Checkpoint | None:
        """The checkpoint that the user trusts; None if they named none."""
        return None if self._root is None else self._root.checkpoint

    def load(self) -> Checkpoint | None:
        """Load the highest checkpoint that was saved; None if there is none."""
        memory = self._load()
        self._note, self._voids = memory.note, memory.voids
        if not memory.note:
            return None
        try:
            return Checkpoint.parse_note(memory.note)
        except ContextPlaneError as error:
            raise RegistryMemoryInvalid(
                "it was changed", at=self._state.path, hint="remove it to trust the catalog as it is"
            ) from error

    def believe(self, seen: Checkpoint | None, keys: TrustedKeys, check: SignatureCheck) -> Checkpoint | None:
        """Return what was loaded last, without its time if its signer is revoked from before that.

        The keyring may be newer than what was loaded. `seen`: what was loaded, or a root in its place.
        """
        if seen is None or not self._note:
            return seen
        believed = believed_checkpoint(self._note.encode(), keys, check)
        return believed if replace(seen, time=None) == believed else seen

    @contextmanager
    def name_file(self) -> Iterator[None]:
        """Name the file of this memory to those who put an older log in its place on purpose."""
        try:
            yield
        except LogRolledBack as error:
            if self.root is None:
                error.hint = f"{error.hint}; {self._forget_hint}"
            raise

    @property
    def _forget_hint(self) -> str:
        return f"if you put an old copy there on purpose, remove {self._state.path}"

    @property
    def voids(self) -> int | None:
        """The number of void entries in the log that was loaded last; None if it is not known."""
        return self._voids

    def remember(self, opened: OpenRegistry) -> None:
        """Save the checkpoint of a registry that was opened, unless an event of its log is missing."""
        if opened.missing is None:
            self.save(opened.newest, opened.voids)

    def save(self, verified: VerifiedCheckpoint | None, voids: int | None = None) -> None:
        """Save a checkpoint that is consistent with the loaded one. A lower one changes nothing.

        `voids`: the number of void entries in its log, if it is known.
        """
        if verified is None:
            return

        def is_news(memory: StoreMemory) -> bool:
            saved = Checkpoint.parse_note(memory.note) if memory.note else None
            if saved is None or saved.height < verified.checkpoint.height:
                return True
            return memory.note == verified.note.decode() and memory.voids is None and voids is not None

        def change(memory: StoreMemory) -> StoreMemory:
            if not is_news(memory):
                return memory
            return replace(memory, origin=self._origin, note=verified.note.decode(), voids=voids)

        # A client that cannot remember can still read, and an act that is done stays done.
        self.load()
        if is_news(self._load()):
            self._state.update(change)

    @property
    def judged(self) -> frozenset[str]:
        """The publications whose claims this client judged, and that hold."""
        return frozenset({*self._judged, *self._load().judged})

    def save_judged(self, publications: Iterable[str]) -> None:
        """Remember publications whose claims hold. The oldest are forgotten, and judged again one day."""
        fresh = tuple(publication for publication in publications if publication not in self.judged)
        if fresh:
            self._judged.update(fresh)  # also where nothing can be remembered
            self._state.update(
                lambda memory: replace(memory, origin=self._origin, judged=(*memory.judged, *fresh)[-_MOST_JUDGED:])
            )

    def check_root(self, streams: StreamsView, check: SignatureCheck) -> None:
        """Refuse a keyring for which no key of the user's root vouched."""
        if self._root is not None:
            check_root(self._root, [event.body for event in streams.read(STREAM)], check)

    def load_position(self) -> None:
        """Load the end of the keyring that this client saw last, for `check_keyring`.

        It is loaded before the view is opened that is checked by it. Another process may change the keyring after that
        and save its end, a later one than the view has.
        """
        memory = self._load()
        self._position = KeyringPosition(seq=memory.keyring_seq, head=memory.keyring_head)

    def check_keyring(self, streams: StreamsView, keys: TrustedKeys, check: SignatureCheck) -> None:
        """Refuse a keyring that lost or changed a part of the one that this client saw, or is not of its root."""
        self.check_root(streams, check)
        trusted = None if self.root is None else self.root.keyring
        if self._position is None:
            self.load_position()
        for position in (self._position, trusted):
            if position is None or not position.seq:
                continue
            if keys.seq < position.seq:
                hint = _HINT if position is trusted else f"{_HINT}; {self._forget_hint}"
                raise KeyringRolledBack(f"{keys.seq} events, and {position.seq} were seen before", at=STREAM, hint=hint)
            known = next(iter(streams.read(STREAM, after=position.seq - 1)), None)
            if known is None or Digest.of(known.body).hex != position.head:
                raise KeyringRewritten(f"event {position.seq} is another one than before", at=STREAM, hint=_HINT)

    def save_keyring(self, keys: TrustedKeys) -> None:
        """Remember the end of a keyring. An earlier one changes nothing."""
        if keys.seq <= self._load().keyring_seq:
            return

        def change(memory: StoreMemory) -> StoreMemory:
            if keys.seq <= memory.keyring_seq:
                return memory
            return replace(memory, origin=self._origin, keyring_seq=keys.seq, keyring_head=keys.head)

        self._state.update(change)

    def _load(self) -> StoreMemory:
        memory = self._state.load()
        if memory.origin and memory.origin != self._origin:
            raise StoreReplaced(
                f"this client knew {memory.origin} here, and the store is {self._origin}",
                at=memory.path,
                hint=f"if you put it there, remove {self._state.path}",
            )
        return memory


class RegistryResigner:
    """Signs the registry anew after one change of the keyring. `refusal`: why it could not; None: it did.

    A registry that cannot be signed stops no change: a key can be revoked in any state of the log.
    """

    def __init__(self, memory: RegistryMemory, origin: str) -> None:
        self.refusal: ContextPlaneError | None = None
        self._memory = memory
        self._origin = origin
        self._fresh: VerifiedCheckpoint | None = None

    def sign(  # noqa: PLR0913  all parts of the act
        self,
        changes: LogChanges,
        before: TrustedKeys,
        after: TrustedKeys,
        *,
        check: SignatureCheck,
        signer: Signer,
        now: Timestamp,
        seen: Checkpoint | None,
    ) -> None:
        """Sign the registry among the changes. `seen`: what this client knew before they were begun."""
        try:
            self._fresh = resign_after_keyring_change(
                changes,
                before=before,
                after=after,
                check=check,
                signer=signer,
                now=now,
                origin=self._origin,
                seen=seen,
            )
        except ContextPlaneError as error:
            if error.family not in {"untrusted", "refused"}:
                raise  # the catalog failed, and with it the change
            self.refusal = error

    def save_checkpoint(self) -> None:
        """Save the new checkpoint, after the commit."""
        self._memory.save(self._fresh)
