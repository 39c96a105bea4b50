"""Counts what a store holds, as its catalog records it: the cost does not grow with what is stored."""

import os

from contextplane.app.platform import Platform
from contextplane.app.registry.fsck import RegistrySummary, registry_summary
from contextplane.model.value import Value
from contextplane.store.status import StoreContents, store_contents

__all__ = ["StoreStatus", "store_status"]


class StoreStatus(Value, frozen=True):
    """What a store holds. `catalog_size` is 0 if the catalog is in a database; `registry` is None if it is empty."""

    contents: StoreContents
    registry: RegistrySummary | None
    catalog_size: int


def store_status(platform: Platform) -> StoreStatus:
    path = platform.home.catalog
    return StoreStatus(
        contents=store_contents(platform.catalog),
        registry=registry_summary(platform),
        catalog_size=os.path.getsize(path) if os.path.exists(path) else 0,
    )
