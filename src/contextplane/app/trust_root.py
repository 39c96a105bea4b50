"""The trust root of this client for a store, which is kept outside of the store.

`CTX_TRUST_ROOT` wins over what `ctx init --trust-root` stored: the environment of a pipeline is not that of a person.
"""

import os
from collections.abc import Sequence
from typing import ClassVar, Literal

import msgspec

from contextplane.adapters.files.client_state import ClientState
from contextplane.app.documents import open_document
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.value import Value
from contextplane.trust.trust_root import TrustRoot, merge_trust_roots, parse_trust_root

__all__ = [
    "RootCheckpoint",
    "RootSummary",
    "TrustRootNotStored",
    "load_trust_root",
    "read_trust_root",
    "root_summary",
    "store_trust_root",
]

_VARIABLE = "CTX_TRUST_ROOT"
_READ_BYTES = 64 * 1024 + 1


class TrustRootNotStored(ContextPlaneError):
    """The trust root cannot be stored: this user has no state folder, or it cannot be written."""

    code: ClassVar[str] = "trust_root_not_stored"
    family: ClassVar[Family] = "failed"


class RootCheckpoint(Value, frozen=True):
    """The checkpoint of a trust root, as far as people look at it."""

    origin: str
    size: int
    time: str | None


class RootSummary(Value, frozen=True):
    """The trust root of a store, and where it is named."""

    source: Literal["environment", "init"]
    key_ids: tuple[str, ...]
    checkpoint: RootCheckpoint | None


def read_trust_root(texts: Sequence[str], settings: Settings) -> TrustRoot:
    """Read the trust root that a user typed, in one or several texts."""

    def read_file(path: str) -> bytes:
        with open_document(os.path.join(settings.cwd, path), piped=False) as data:
            return bytes(data[:_READ_BYTES])

    return merge_trust_roots([parse_trust_root(text, read_file) for text in texts])


def store_trust_root(root: TrustRoot, settings: Settings, store_path: str) -> None:
    """Remember the trust root of a store, instead of the one before."""
    state = ClientState(settings.state_dir, store_path)
    if not state.update(lambda memory: msgspec.structs.replace(memory, trust_root=root.entries)):
        raise TrustRootNotStored(
            "the trust root cannot be stored",
            at=state.path if settings.state_dir else None,
            hint=f"name a folder that you can write to with XDG_STATE_HOME, or the root itself with {_VARIABLE}",
        )


def load_trust_root(settings: Settings, store_path: str) -> TrustRoot | None:
    """Return the trust root for a store; None if the user named none."""
    if settings.trust_root is not None:
        return _root_of_environment(settings.trust_root, settings)
    entries = ClientState(settings.state_dir, store_path).load().trust_root
    return TrustRoot.from_entries(entries) if entries else None


def root_summary(settings: Settings, store_path: str) -> RootSummary | None:
    """Summarize the trust root for a store; None if the user named none."""
    root = load_trust_root(settings, store_path)
    if root is None:
        return None
    shown = root.checkpoint
    time = None if shown is None or shown.time is None else str(shown.time)
    return RootSummary(
        source="init" if settings.trust_root is None else "environment",
        key_ids=root.key_ids,
        checkpoint=None if shown is None else RootCheckpoint(origin=shown.origin, size=shown.size, time=time),
    )


def _root_of_environment(text: str, settings: Settings) -> TrustRoot:
    try:
        return read_trust_root([text], settings)
    except ContextPlaneError as error:
        raise error.under(f"{_VARIABLE}: " if error.at else _VARIABLE) from None
