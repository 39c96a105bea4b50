"""Which of the things that can be named is a version: `id@X.Y.Z`, and for people `id@ALIAS` or `id@ENV`."""

import re

__all__ = ["names_file", "names_version"]

_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*@[0-9]+\.[0-9]+\.[0-9]+")
_CALLED = re.compile(r"(?!pk_|(?:kg|ctx|sha256|[0-9a-fA-F]+):)[A-Za-z0-9][A-Za-z0-9_.:-]*@[A-Za-z0-9][A-Za-z0-9_.-]*")
"""By a name for people: not where the id begins like a handoff pack, evidence, or a part of a run."""

_EXTENSIONS = (".yaml", ".yml", ".json")


def names_file(text: str) -> bool:
    """Whether a text names an author's file, where a version could be named as well: `old@2.yaml` is one."""
    return "/" in text or text.endswith(_EXTENSIONS) or not names_version(text)


def names_version(text: str) -> bool:
    """Whether a text names a version of a pack, an overlay or a catalog; whether there is one is not asked here."""
    return _PINNED.fullmatch(text) is not None or _CALLED.fullmatch(text) is not None
