"""A registry with versions at every stage; each role's key is a file, `--key ./pub.pem`."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contextplane.adapters.ed25519 import pem
from contextplane.adapters.system import SystemClock
from contextplane.app.platform import open_platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.registry.session import RegistrySession
from contextplane.app.settings import Settings
from contextplane.model.keys import OWNER
from tests.unit.registry.desk import ISSUER, NARROWER, ROLES, Office, version
from tests.unit.trust.world import der_of, key_of

__all__ = ["KEYS", "at_office", "key_file", "pack_file", "prepared"]

KEYS = ("root", *ROLES)


def key_file(folder: Path, name: str) -> str:
    """Write the private key of `name` to a file only its owner can read; return the name as typed."""
    path = folder / f"{name}.pem"
    path.touch(mode=0o600)
    path.write_bytes(pem("PRIVATE" + " KEY", der_of(name)))
    return f"./{path.name}"


def pack_file(folder: Path, name: str, number: str, *changes: Mapping[str, Any]) -> str:
    """Write the full example under a version number; return the file name."""
    (folder / name).write_text(json.dumps(version(number, *changes)), encoding="utf-8")
    return name


@contextmanager
def at_office(folder: Path) -> Iterator[Office]:
    """The registry office of the store in a folder, by the clock of this machine."""
    with open_platform(Settings(cwd=str(folder))) as platform:
        yield Office(RegistrySession(KeyStore(platform, lambda: None)), SystemClock())


def prepared(folder: Path) -> None:
    """Trust every key, and bring versions to every stage.

    1.0.0 and 1.1.0 were pinned in prod, 1.2.0 and 1.3.0 are published; 3.0.0 is linted, 4.0.0 reviewed, 5.0.0 signed.
    """
    for name in KEYS:
        key_file(folder, name)
    with at_office(folder) as here:
        here.trust("root", OWNER)
        trusting = here.desk.keys.key_trust
        here.change_keys(*(trusting(key_of(name).public_key, ISSUER, roles=roles) for name, roles in ROLES.items()))
        here.release()
        for number in ("1.1.0", "1.2.0", "1.3.0"):
            here.release(version(number, NARROWER))
        here.pin("prod", "ctxpack.support@1.0.0")
        here.pin("prod", "ctxpack.support@1.1.0")
        for number in ("3.0.0", "4.0.0", "5.0.0"):
            acted = here.record(version(number))
            if number != "3.0.0":
                here.review_all(str(acted.digest), acted.missing)
            if number == "5.0.0":
                here.sign(str(acted.digest))
