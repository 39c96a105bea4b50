"""Counts what a store holds, as its catalog records it: the cost does not grow with what is stored."""

import os
from typing import TYPE_CHECKING

from contextplane.adapters.files.client_state import ClientState
from contextplane.app.platform import Platform
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.value import Value
from contextplane.store.status import StoreContents, store_contents

if TYPE_CHECKING:
    from contextplane.app.trust_root import RootSummary

__all__ = ["RegistrySummary", "StoreStatus", "registry_summary", "store_status", "trust_root_summary"]

_LOG, _CHECKPOINTS = "registry/log", "registry/checkpoints"
"""Repeated here, so that a store without a registry loads none of its code."""


class RegistrySummary(Value, frozen=True):
    """The number of events of the registry, and the time in its newest checkpoint. Not verified here."""

    events: int
    checkpoint: str | None


class StoreStatus(Value, frozen=True):
    """What a store holds.

    `catalog_size` is 0 if the catalog is in a database; `registry` is None if it is empty.
    """

    contents: StoreContents
    registry: RegistrySummary | None
    catalog_size: int


def store_status(platform: Platform) -> StoreStatus:
    """Count the packs and objects of a store, and summarize its registry."""
    path = platform.home.catalog
    return StoreStatus(
        contents=store_contents(platform.catalog),
        registry=registry_summary(platform),
        catalog_size=os.path.getsize(path) if os.path.exists(path) else 0,
    )


def registry_summary(platform: Platform) -> RegistrySummary | None:
    """Summarize the registry; None if nothing was ever written to it."""
    with platform.catalog.read() as view:
        events, head = view.streams.head(_LOG), view.streams.head(_CHECKPOINTS)
        last = next(view.streams.read(_CHECKPOINTS, after=head - 1), None) if head else None
    if not events and last is None:
        return None
    from contextplane.registry.log import REGISTRY_LOG

    try:
        time = str(REGISTRY_LOG.read_note(last.body)[1]) if last is not None else None
    except ContextPlaneError:
        time = None
    return RegistrySummary(events=events, checkpoint=time)


def trust_root_summary(settings: Settings, store_path: str) -> "RootSummary | None":
    """Summarize what this client holds a store to; None, and no code for it is loaded, if that is nothing."""
    if settings.trust_root is None and not ClientState(settings.state_dir, store_path).load().trust_root:
        return None
    from contextplane.app.trust_root import root_summary

    return root_summary(settings, store_path)
