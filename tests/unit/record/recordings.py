"""A store to record into, and what a recording left in it."""

from pathlib import Path

from contextplane.app.execution.record import recording_context
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.audit.load import load_pack
from contextplane.model.execution.manifest import Manifest
from contextplane.model.ids import Digest
from contextplane.record.recorder import Recording, UnfinishedRecording, list_unfinished

__all__ = ["content", "ids", "left", "manifest_of", "store_in", "stored"]


def store_in(folder: Path) -> Settings:
    settings = Settings(cwd=str(folder))
    init(settings)
    return settings


def left(settings: Settings) -> list[UnfinishedRecording]:
    with open_platform(settings) as platform:
        return list_unfinished(recording_context(platform))


def ids(settings: Settings) -> list[str]:
    return [str(recording.id) for recording in left(settings)]


def manifest_of(run: Recording, settings: Settings) -> Manifest:
    assert run.digest is not None
    with open_platform(settings) as platform:
        return load_pack(run.digest, platform.objects).manifest


def content(ref: str, settings: Settings) -> bytes:
    with open_platform(settings) as platform:
        return platform.objects.get(Digest.parse(ref))


def stored(settings: Settings) -> set[Digest]:
    with open_platform(settings) as platform:
        return set(platform.objects.names())
