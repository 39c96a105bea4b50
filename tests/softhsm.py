"""Tokens of SoftHSM for tests: a software HSM with a PKCS #11 module, in a folder of its own.

SoftHSM is no Python package, so the tests use the module of the machine: `SOFTHSM2_MODULE` names it, or it lies where
Debian, Fedora, Alpine, Homebrew and Nix put it. Nothing of the machine's own tokens is read or changed.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tests.patience import PATIENCE

__all__ = ["PIN", "WHY_NOT", "Token", "make_token", "softhsm_module"]

PIN = "987654"
_PLACES = (
    "/usr/lib/softhsm/libsofthsm2.so",
    "/usr/lib64/softhsm/libsofthsm2.so",
    "/usr/lib64/pkcs11/libsofthsm2.so",
    "/usr/lib/pkcs11/libsofthsm2.so",
    "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so",
    "/usr/lib/aarch64-linux-gnu/softhsm/libsofthsm2.so",
    "/usr/local/lib/softhsm/libsofthsm2.so",
    "/opt/homebrew/lib/softhsm/libsofthsm2.so",
    "/run/current-system/sw/lib/softhsm/libsofthsm2.so",
)

# The binding cannot initialize a token, so the module is called by ctypes for that.
_MAKE = """
import ctypes, sys
module, pin, *labels = sys.argv[1:]
so_pin = b"12345678"
p11 = ctypes.CDLL(module)
def call(name, *args):
    status = getattr(p11, name)(*args)
    assert status == 0, (name, hex(status))
call("C_Initialize", None)
slot, count, session = ctypes.c_ulong(), ctypes.c_ulong(1), ctypes.c_ulong()
call("C_GetSlotList", 1, ctypes.byref(slot), ctypes.byref(count))
call("C_InitToken", slot, so_pin, ctypes.c_ulong(len(so_pin)), b"ctx".ljust(32))
call("C_Finalize", None)
call("C_Initialize", None)
slots, count = (ctypes.c_ulong * 4)(), ctypes.c_ulong(4)
call("C_GetSlotList", 1, slots, ctypes.byref(count))
call("C_OpenSession", ctypes.c_ulong(slots[0]), ctypes.c_ulong(6), None, None, ctypes.byref(session))
call("C_Login", session, ctypes.c_ulong(0), so_pin, ctypes.c_ulong(len(so_pin)))
call("C_InitPIN", session, pin.encode(), ctypes.c_ulong(len(pin)))
call("C_Finalize", None)
import pkcs11
from pkcs11 import Attribute, KeyType, Mechanism
token = pkcs11.lib(module).get_token(token_label="ctx")
with token.open(user_pin=pin, rw=True) as session:
    for label in labels:
        curve = {Attribute.EC_PARAMS: bytes.fromhex("06032b6570")}
        parameters = session.create_domain_parameters(KeyType.EC_EDWARDS, curve, local=True)
        parameters.generate_keypair(mechanism=Mechanism.EC_EDWARDS_KEY_PAIR_GEN, store=True, label=label)
    session.generate_keypair(KeyType.RSA, 2048, store=True, label="rsa")
"""


@cache
def softhsm_module() -> str | None:
    """Return the path of SoftHSM's module, or None."""
    places = (os.environ.get("SOFTHSM2_MODULE", ""), *_PLACES)
    return next((place for place in places if place and Path(place).is_file()), None)


def _why_not() -> str | None:
    if find_spec("pkcs11") is None:
        return "python-pkcs11 is not installed (make dev-env)"
    if softhsm_module() is None:
        return "SoftHSM is not installed (apt-get install softhsm2, or name its module with SOFTHSM2_MODULE)"
    return None


WHY_NOT = _why_not()
"""Why tests with a token cannot run here; None if they can."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token labelled `ctx`. `environment` makes SoftHSM find it."""

    module: str
    environment: dict[str, str]

    def setting(self, label: str, *, of: str = "ctx") -> str:
        """The value of `CTX_SIGNER` for a key of a token."""
        return f"pkcs11:{self.module}?token={of}&object={label}"

    def close(self) -> None:
        """Unload the module from this process."""
        import_module("pkcs11").unload(self.module)


def make_token(folder: Path, *labels: str) -> Token:
    """Make a token in a folder, with an Ed25519 key for each label and an RSA key labelled `rsa`."""
    module = softhsm_module()
    assert module is not None
    (folder / "tokens").mkdir(parents=True)
    configuration = folder / "softhsm2.conf"
    configuration.write_text(f"directories.tokendir = {folder / 'tokens'}\nlog.level = ERROR\n", encoding="utf-8")
    environment = {"SOFTHSM2_CONF": str(configuration)}
    command = [sys.executable, "-c", _MAKE, module, PIN, *labels]
    subprocess.run(command, env={**os.environ, **environment}, check=True, timeout=PATIENCE, capture_output=True)
    return Token(module, environment)
