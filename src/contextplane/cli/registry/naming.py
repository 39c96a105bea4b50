"""Which of the things that can be named is a version: `id@X.Y.Z`, and for people `id@ALIAS` or `id@ENV`."""

import re

__all__ = ["names_file", "names_version"]

_VERSION = re.compile(r"(?!pk_)[A-Za-z0-9][A-Za-z0-9_.-]*@[A-Za-z0-9][A-Za-z0-9_.-]*")

_EXTENSIONS = (".yaml", ".yml", ".json")


def names_file(text: str) -> bool:
    """Whether a text names an author's file, where a version could be named as well: `old@2.yaml` is one."""
    return "/" in text or text.endswith(_EXTENSIONS) or not names_version(text)


def names_version(text: str) -> bool:
    """Whether a text names a version of a pack, an overlay or a catalog; whether there is one is not asked here."""
    return _VERSION.fullmatch(text) is not None
