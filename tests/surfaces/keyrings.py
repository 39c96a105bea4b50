"""Stores with keys, and `ctx keys` checked for leaked secrets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.surfaces.commands import Result, ctx

__all__ = ["HUSH", "OPEN", "REVOKE", "key_list", "keyring_in", "keys", "states"]

HUSH = "correct horse battery staple"
OPEN = {"CTX_KEY_PASSPHRASE": HUSH}
REVOKE = ["keys", "revoke", "bob", "--reason", "lost", "--key", "alice"]


def keys(*args: str, cwd: Path, env: Mapping[str, str] | None = None) -> Result:
    """Run `ctx keys` and check that it prints nothing secret."""
    result = ctx("keys", *args, cwd=cwd, env=OPEN if env is None else env)
    for secret in (HUSH, "PRIVATE" + " KEY"):
        assert secret not in result.out + result.err
    return result


def key_list(cwd: Path) -> dict[str, Any]:
    listing: dict[str, Any] = msgspec.json.decode(keys("list", "--json", cwd=cwd).raw)
    return listing


def states(cwd: Path) -> dict[str, str]:
    return {key["name"]: key["state"] for issuer in key_list(cwd)["issuers"] for key in issuer["keys"]}


def keyring_in(folder: Path) -> Path:
    """A store whose owner is alice; bob is trusted, carol has an untrusted key."""
    assert ctx("init", cwd=folder).status == 0
    for args in (
        ["new", "alice", "--issuer", "acme"],
        ["new", "bob"],
        ["new", "carol"],
        ["trust", "bob", "--issuer", "acme", "--role", "security", "--key", "alice"],
    ):
        assert keys(*args, cwd=folder).status == 0
    return folder
