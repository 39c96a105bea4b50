"""Settings from environment variables. Only this module reads them; all others get a `Settings`."""

import os
import sys
from typing import Any

import msgspec

from contextplane.model.value import Value

__all__ = [
    "ClientFolders",
    "HandoffSettings",
    "Settings",
    "client_folders",
    "from_environment",
    "git_environment",
    "key_passphrase",
    "minutes_of",
    "pkcs11_pin",
    "server_environment",
    "signer_environment",
    "signer_setting",
    "signing_key",
    "token_tables",
    "tool_environment",
]

_DIGITS = 20
_MINUTES = {"m": 1, "h": 60, "d": 24 * 60}
_MOST_MINUTES = 5 * 365 * 24 * 60
_SERVER_VARIABLES = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"})
_GIT_VARIABLES = frozenset({"HOME", "PATH", "XDG_CONFIG_HOME"})
_TOOL_VARIABLES = frozenset({"LANG", "TZ", "PYTHONPATH"})
_WORKING_FOLDER_NAMES = frozenset({"", ".", "cwd", "session_cwd", "__session_cwd__"})


class HandoffSettings(Value, frozen=True):
    """Settings of handoff packs. Names and defaults are those of the reference server.

    `source_root`: None if the environment names none; the working folder is ".". `ttl_minutes`: the life of a new pack.
    """

    root: str | None = None
    source_root: str | None = None
    log: str = ""
    initialize_timeout_ms: int = 20_000
    max_pack_bytes: int = 512 * 1024
    max_source_bytes: int = 2 * 1024 * 1024
    grace_seconds: int = 900
    ttl_minutes: int = 7 * 24 * 60


class ClientFolders(Value, frozen=True):
    """The folders in which coding agents keep the settings of this user."""

    home: str
    claude: str | None
    codex: str
    gemini: str
    config: str
    is_mac: bool


def client_folders() -> ClientFolders:
    """Find the folders of coding agents.

    Read from `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `GEMINI_CLI_HOME` and `XDG_CONFIG_HOME`, else below the home.
    """
    home = os.path.expanduser("~")
    return ClientFolders(
        home=home,
        claude=os.environ.get("CLAUDE_CONFIG_DIR") or None,
        codex=os.environ.get("CODEX_HOME") or os.path.join(home, ".codex"),
        gemini=os.path.join(os.environ.get("GEMINI_CLI_HOME") or home, ".gemini"),
        config=os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"),
        is_mac=sys.platform == "darwin",
    )


def _state_folder() -> str | None:
    """Return the folder for what this client remembers of stores; None if this user has no home.

    Relative paths in `XDG_STATE_HOME` and `HOME` count as unset, as the XDG specification says.
    """
    home = os.path.expanduser("~")
    for base in (os.environ.get("XDG_STATE_HOME", ""), os.path.join(home, ".local", "state")):
        if os.path.isabs(base):
            return os.path.join(base, "contextplane", "stores")
    return None


class Settings(Value, frozen=True):
    """The working folder, and what the environment asks for.

    `state_dir`: what this client remembers of stores, outside of them; None if there is no place for it. The default is
    that of the environment, so that no caller forgets it by accident.
    """

    cwd: str
    ctx_dir: str | None = None
    database_url: str | None = None
    other_database_url: str | None = None
    no_color: bool = False
    debug: bool = False
    pager: str = ""
    columns: int | None = None
    registry_max_age: int | None = None
    handoff: HandoffSettings = HandoffSettings()
    trust_root: str | None = None
    sudo_uid: int | None = None
    state_dir: str | None = msgspec.field(default_factory=_state_folder)

    def __repr__(self) -> str:
        """Hide the URLs of databases, which may contain passwords."""
        return f"Settings(cwd={self.cwd!r}, ctx_dir={self.ctx_dir!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("cwd", self.cwd), ("ctx_dir", self.ctx_dir)]


def from_environment() -> Settings:
    """Read the settings from the environment.

    - `CTX_DIR`: the store's folder.
    - `CTX_DATABASE_URL`: the PostgreSQL database that holds the catalog, instead of a file in that folder.
    - `CTX_OTHER_DATABASE_URL`: the same for the other store of `ctx push` and `ctx pull`.
    - `CTX_REGISTRY_MAX_AGE`: how many seconds old the registry's newest checkpoint may be for new traffic.
    - `CTX_TRUST_ROOT`: the trust root of the store, instead of that of `ctx init --trust-root`. A blank one is refused.
    - `SUDO_UID`: the user who runs this as root; stores of that user are used too.
    - `XDG_STATE_HOME`: the folder in which this client keeps what it remembers of stores (`~/.local/state`).
    - `NO_COLOR`: plain output. `CTX_DEBUG`: show where a defect is.
    - `COLUMNS`: how wide help is; without it, as wide as the terminal.
    - `PAGER`: the program that shows long answers on a terminal; none if empty.
    - `CONTEXT_PACK_*`: settings of handoff packs. `CTX_HANDOFF_TTL`: how long a new pack lives.
    """
    return Settings(
        cwd=_working_folder(),
        ctx_dir=os.environ.get("CTX_DIR") or None,
        database_url=os.environ.get("CTX_DATABASE_URL") or None,
        other_database_url=os.environ.get("CTX_OTHER_DATABASE_URL") or None,
        no_color=bool(os.environ.get("NO_COLOR")),
        debug=bool(os.environ.get("CTX_DEBUG")),
        pager=os.environ.get("PAGER", "less -FRX"),
        columns=_number("COLUMNS", 0) or None,
        registry_max_age=_max_age(),
        handoff=_handoff_settings(),
        trust_root=os.environ.get("CTX_TRUST_ROOT"),
        sudo_uid=_number("SUDO_UID", 0) or None,
        state_dir=_state_folder(),
    )


def tool_environment() -> dict[str, str]:
    """Return the environment variables that tools receive: language, time zone and `PYTHONPATH`."""
    return {name: value for name, value in os.environ.items() if name in _TOOL_VARIABLES or name.startswith("LC_")}


def git_environment() -> dict[str, str]:
    """Return the environment variables that git receives: none with which it can be told what to do."""
    return {name: value for name, value in os.environ.items() if name in _GIT_VARIABLES}


def server_environment() -> dict[str, str]:
    """Return the environment variables that an MCP server receives beside those of its configuration."""
    return {name: value for name, value in os.environ.items() if name in _SERVER_VARIABLES}


def token_tables() -> str | None:
    """Read `TIKTOKEN_CACHE_DIR`, the folder in which tiktoken looks for its tables."""
    return os.environ.get("TIKTOKEN_CACHE_DIR") or None


def signing_key() -> bytes | None:
    """Read `CTX_SIGNING_KEY`, a private key in PEM form. Not part of `Settings`, which may be shown."""
    return os.environ.get("CTX_SIGNING_KEY", "").encode(errors="surrogateescape") or None


def signer_setting() -> str | None:
    """Read `CTX_SIGNER`, a signer outside of this program: `command:...` or `pkcs11:...`."""
    return os.environ.get("CTX_SIGNER") or None


def pkcs11_pin() -> bytes | None:
    """Read `CTX_PKCS11_PIN`, the PIN of the token that signs. Not part of `Settings`, either."""
    return os.environ.get("CTX_PKCS11_PIN", "").encode(errors="surrogateescape") or None


def signer_environment() -> dict[str, str]:
    """Return the environment variables that a signer receives: all but ours, among which are secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CTX_")}


def key_passphrase() -> bytes | None:
    """Read `CTX_KEY_PASSPHRASE`, which decrypts a private key. Not part of `Settings`, either."""
    return os.environ.get("CTX_KEY_PASSPHRASE", "").encode(errors="surrogateescape") or None


def _handoff_settings() -> HandoffSettings:
    """Read `CONTEXT_PACK_*`. A number that is invalid or too small counts as the default.

    The working folder has several names there, as in the reference server.
    """
    default = HandoffSettings()
    source_root = os.environ.get("CONTEXT_PACK_SOURCE_ROOT")
    return HandoffSettings(
        root=os.environ.get("CONTEXT_PACK_ROOT") or None,
        source_root=None if source_root is None else _source_root(source_root.strip()),
        log=os.environ.get("CONTEXT_PACK_LOG", ""),
        initialize_timeout_ms=_number("CONTEXT_PACK_INITIALIZE_TIMEOUT_MS", default.initialize_timeout_ms),
        max_pack_bytes=_number("CONTEXT_PACK_MAX_PACK_BYTES", default.max_pack_bytes),
        max_source_bytes=_number("CONTEXT_PACK_MAX_SOURCE_BYTES", default.max_source_bytes),
        grace_seconds=_number("CONTEXT_PACK_EXPIRED_GRACE_SECONDS", default.grace_seconds, least=0),
        ttl_minutes=minutes_of(os.environ.get("CTX_HANDOFF_TTL", "").strip()) or default.ttl_minutes,
    )


def minutes_of(text: str) -> int | None:
    """Parse a time such as `90`, `90m`, `36h` or `7d`; None if it is none, or longer than five years."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _MINUTES else (text, "m")
    if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        return None
    minutes = int(number) * _MINUTES[unit]
    return minutes if 1 <= minutes <= _MOST_MINUTES else None


def _source_root(text: str) -> str:
    return "." if text.lower() in _WORKING_FOLDER_NAMES else text


def _max_age() -> int | None:
    """Read `CTX_REGISTRY_MAX_AGE`. Only without the variable nothing is checked.

    An invalid number counts as 0, and so does a blank: neither a typo nor an empty secret may switch the check off.
    """
    return _number("CTX_REGISTRY_MAX_AGE", 0, least=0) if "CTX_REGISTRY_MAX_AGE" in os.environ else None


def _number(name: str, default: int, *, least: int = 1) -> int:
    text = os.environ.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        return default
    return int(text) if int(text) >= least else default


def _working_folder() -> str:
    """Return the working folder; if it was removed meanwhile, a path at which nothing exists."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.path.join(os.sep, "removed")
