"""The objects of a store by themselves, when its catalog cannot be used."""

from contextplane.adapters.files.home import discover
from contextplane.adapters.files.objects import FileObjects
from contextplane.app.settings import Settings
from contextplane.ports.objects import Objects

__all__ = ["blind_objects"]


def blind_objects(settings: Settings) -> Objects:
    return FileObjects(discover(settings.cwd, settings.ctx_dir).objects)
