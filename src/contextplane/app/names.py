"""The names that a shell completes: runs, versions, environments, keys, codes, kinds of documents.

Only names are read: no object, no event and no key. Nothing is written, and a store that is busy or damaged has no
names. A catalog in PostgreSQL is not asked: a shell must not wait for a network.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator

from contextplane.adapters.files.store_dir import StoreDirectory, discover_store
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError

__all__ = ["NAMES", "names_of"]

_MOST = 500
_HASH_DIGITS = 64
_LAST = "\U0010ffff"
_BUSY_SECONDS = 0.2
_KEY_FILE = ".key"


def names_of(kind: str, prefix: str, settings: Settings) -> list[str]:
    """Return the names of a kind that begin with a prefix, at most 500, sorted."""
    try:
        names = NAMES[kind](prefix, settings)
        return sorted({name for name in names if name.startswith(prefix)})[:_MOST]
    except (ContextPlaneError, OSError, sqlite3.Error):
        return []


def _store(settings: Settings) -> StoreDirectory:
    return discover_store(settings.cwd, settings.ctx_dir, sudo_uid=settings.sudo_uid)


def _runs(prefix: str, settings: Settings) -> Iterator[str]:
    """Yield the hashes of execution packs; as references where one was begun."""
    scheme = "ctx://" if prefix and "ctx://".startswith(prefix[:6]) else ""
    for name in os.listdir(_store(settings).packs):
        if len(name) == _HASH_DIGITS:
            yield f"{scheme}{name}"


def _drafts(_prefix: str, settings: Settings) -> Iterator[str]:
    folder = _store(settings).inside("drafts")
    return (os.path.relpath(os.path.join(folder, name), settings.cwd) for name in os.listdir(folder))


def _keys(_prefix: str, settings: Settings) -> Iterator[str]:
    files = os.listdir(_store(settings).inside("keys"))
    return (name.removesuffix(_KEY_FILE) for name in files if name.endswith(_KEY_FILE))


def _versions(_prefix: str, settings: Settings) -> Iterator[str]:
    return _streams("registry/version/", settings)


def _ids(_prefix: str, settings: Settings) -> Iterator[str]:
    return (version.partition("@")[0] for version in _streams("registry/version/", settings))


def _environments(_prefix: str, settings: Settings) -> Iterator[str]:
    yield from _streams("registry/environments/", settings)
    yield from (pin.partition("/")[0] for pin in _streams("registry/pins/", settings))


def _handoffs(_prefix: str, settings: Settings) -> Iterator[str]:
    return _streams("handoff/", settings)


def _recordings(_prefix: str, settings: Settings) -> Iterator[str]:
    return _streams("recording/", settings)


def _codes(_prefix: str, _settings: Settings) -> Iterator[str]:
    from contextplane.app.explain import load_explanations

    entries = load_explanations()
    yield from (*entries.gates, *entries.laws, *entries.errors, *entries.reasons)


def _schemas(_prefix: str, _settings: Settings) -> Iterator[str]:
    from contextplane.app.schemas import schema_names

    return iter(schema_names())


NAMES: dict[str, Callable[[str, Settings], Iterator[str]]] = {
    "runs": _runs,
    "drafts": _drafts,
    "keys": _keys,
    "versions": _versions,
    "ids": _ids,
    "environments": _environments,
    "handoffs": _handoffs,
    "recordings": _recordings,
    "codes": _codes,
    "schemas": _schemas,
}
"""Each kind of names, and what lists them."""


def _streams(prefix: str, settings: Settings) -> Iterator[str]:
    """Yield the names of streams behind a prefix.

    Each is looked up by the index, so that the length of a stream costs nothing.
    """
    path = _store(settings).catalog
    if not os.path.isfile(path):
        return
    from urllib.parse import quote

    db = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
    try:
        after = prefix
        for _ in range(_MOST):
            query = "SELECT min(stream) FROM event WHERE stream > ? AND stream < ?"
            (name,) = db.execute(query, (after, prefix + _LAST)).fetchone()
            if name is None:
                return
            yield name.removeprefix(prefix)
            after = name
    finally:
        db.close()
