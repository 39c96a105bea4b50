"""What the environment says. The only module that reads environment variables; everyone else is handed a `Settings`."""

import os

from contextplane.model.value import Value

__all__ = ["HandoffSettings", "Settings", "from_environment", "key_passphrase", "passed_on", "signing_key"]

_DIGITS = 20
_PASSED_ON = frozenset({"LANG", "TZ", "PYTHONPATH"})
_HERE = frozenset({"", ".", "cwd", "session_cwd", "__session_cwd__"})


class HandoffSettings(Value, frozen=True):
    """What handoff packs are told; the names and the defaults are those of the reference server."""

    root: str | None = None
    source_root: str | None = None
    log: str = ""
    initialize_timeout_ms: int = 20_000
    max_pack_bytes: int = 512 * 1024
    max_source_bytes: int = 2 * 1024 * 1024
    grace_seconds: int = 900


class Settings(Value, frozen=True):
    """Where we are and what we were told."""

    cwd: str
    ctx_dir: str | None = None
    database_url: str | None = None
    no_color: bool = False
    debug: bool = False
    pager: str = ""
    registry_max_age: int | None = None
    handoff: HandoffSettings = HandoffSettings()


def from_environment() -> Settings:
    """`CTX_DIR` names the store's folder; `NO_COLOR` asks for plain output; `CTX_DEBUG` for the place of a defect.

    `CTX_DATABASE_URL` names the PostgreSQL database that holds the catalog instead of a file in that folder. `PAGER`
    names what shows long answers on a terminal; nothing does when it is empty. `CTX_REGISTRY_MAX_AGE` says how many
    seconds old the registry's newest checkpoint may be for new traffic. `CONTEXT_PACK_*` are for handoff packs.
    """
    return Settings(
        cwd=_working_folder(),
        ctx_dir=os.environ.get("CTX_DIR") or None,
        database_url=os.environ.get("CTX_DATABASE_URL") or None,
        no_color=bool(os.environ.get("NO_COLOR")),
        debug=bool(os.environ.get("CTX_DEBUG")),
        pager=os.environ.get("PAGER", "less -FRX"),
        registry_max_age=_max_age(),
        handoff=_handoff(),
    )


def passed_on() -> dict[str, str]:
    """All that tools learn of the environment: language, time zone, and where Python finds what is installed."""
    return {name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith("LC_")}


def signing_key() -> bytes | None:
    """`CTX_SIGNING_KEY`: a private key in PEM form. No part of `Settings`, which may be shown."""
    return os.environ.get("CTX_SIGNING_KEY", "").encode(errors="surrogateescape") or None


def key_passphrase() -> bytes | None:
    """`CTX_KEY_PASSPHRASE`: what opens an encrypted private key. No part of `Settings`, either."""
    return os.environ.get("CTX_KEY_PASSPHRASE", "").encode(errors="surrogateescape") or None


def _handoff() -> HandoffSettings:
    """The working folder has several names here; a number that is none, or too small, is the default."""
    default = HandoffSettings()
    source_root = os.environ.get("CONTEXT_PACK_SOURCE_ROOT", "").strip()
    return HandoffSettings(
        root=os.environ.get("CONTEXT_PACK_ROOT") or None,
        source_root=None if source_root.lower() in _HERE else source_root,
        log=os.environ.get("CONTEXT_PACK_LOG", ""),
        initialize_timeout_ms=_number("CONTEXT_PACK_INITIALIZE_TIMEOUT_MS", default.initialize_timeout_ms),
        max_pack_bytes=_number("CONTEXT_PACK_MAX_PACK_BYTES", default.max_pack_bytes),
        max_source_bytes=_number("CONTEXT_PACK_MAX_SOURCE_BYTES", default.max_source_bytes),
        grace_seconds=_number("CONTEXT_PACK_EXPIRED_GRACE_SECONDS", default.grace_seconds, least=0),
    )


def _max_age() -> int | None:
    """A text that is no number allows no age at all: a slip of the pen must not switch the check off."""
    text = os.environ.get("CTX_REGISTRY_MAX_AGE", "").strip()
    return _number("CTX_REGISTRY_MAX_AGE", 0, least=0) if text else None


def _number(name: str, default: int, *, least: int = 1) -> int:
    text = os.environ.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return default
    return int(text) if int(text) >= least else default


def _working_folder() -> str:
    """Where we are; nowhere, when that folder was removed under us. What is looked for there is not found, then."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.path.join(os.sep, "removed")
