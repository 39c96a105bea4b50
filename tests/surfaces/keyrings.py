"""Stores with keys in them, and `ctx keys` run so that nothing secret comes out of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.surfaces.running import Result, ctx

__all__ = ["HUSH", "OPEN", "REVOKE", "keyring_in", "keys", "listed", "states"]

HUSH = "correct horse battery staple"
OPEN = {"CTX_KEY_PASSPHRASE": HUSH}
REVOKE = ["keys", "revoke", "bob", "--reason", "lost", "--key", "alice"]


def keys(*args: str, cwd: Path, env: Mapping[str, str] | None = None) -> Result:
    """Run `ctx keys` and see that nothing secret comes out of it."""
    result = ctx("keys", *args, cwd=cwd, env=OPEN if env is None else env)
    for secret in (HUSH, "PRIVATE" + " KEY"):
        assert secret not in result.out + result.err
    return result


def listed(cwd: Path) -> dict[str, Any]:
    listing: dict[str, Any] = msgspec.json.decode(keys("list", "--json", cwd=cwd).raw)
    return listing


def states(cwd: Path) -> dict[str, str]:
    return {key["name"]: key["state"] for issuer in listed(cwd)["issuers"] for key in issuer["keys"]}


def keyring_in(folder: Path) -> Path:
    """A store whose owner is alice; bob is trusted, carol has a key that nobody trusts."""
    assert ctx("init", cwd=folder).status == 0
    for args in (
        ["new", "alice", "--issuer", "acme"],
        ["new", "bob"],
        ["new", "carol"],
        ["trust", "bob", "--issuer", "acme", "--role", "security", "--key", "alice"],
    ):
        assert keys(*args, cwd=folder).status == 0
    return folder
