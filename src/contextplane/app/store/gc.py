"""Collects garbage: objects that nothing refers to, and handoff packs whose time is over."""

from datetime import timedelta

from contextplane.app.execution.record import recording_comparison
from contextplane.app.platform import Platform
from contextplane.app.registry.fsck import registry_retention
from contextplane.app.settings import Settings
from contextplane.store.gc import GcResult, gc

__all__ = ["GcResult", "collect_garbage"]


def collect_garbage(platform: Platform, settings: Settings, *, grace: timedelta, dry_run: bool) -> GcResult:
    """Remove what is older than `grace` and not referred to; `dry_run`: only find it."""
    return gc(
        platform.catalog,
        platform.entries,
        platform.objects,
        older_than=platform.clock.now() - grace,
        dry_run=dry_run,
        handoff_grace_seconds=settings.handoff.grace_seconds,
        others=[recording_comparison(platform), registry_retention(platform)],
    )
