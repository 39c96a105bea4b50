"""`ctx` signs with keys that it never sees: behind a command, and on a token."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from contextplane.adapters.ed25519 import public_from_pem
from tests.patience import PATIENCE
from tests.softhsm import PIN, WHY_NOT, Token, make_token
from tests.surfaces.commands import COMMAND, child_environment, ctx
from tests.surfaces.keyrings import OPEN, key_list, keys, states
from tests.surfaces.sample import one_error_line
from tests.surfaces.test_startup import imported
from tests.unit.adapters.test_command_signer import GOOD

REVOKE_BOB = ["keys", "revoke", "bob", "--reason", "lost"]


@pytest.fixture
def store(keyring_store: Path) -> Path:
    return keyring_store


def command_signer(folder: Path, code: str = GOOD) -> dict[str, str]:
    script = folder / "signer.py"
    script.write_text(code, encoding="utf-8")
    return {"CTX_SIGNER": f"command:{sys.executable} {script}"}


def trust_signer(store: Path, env: dict[str, str]) -> str:
    """Make the signer an owner of a store; returns its id."""
    printed = ctx("keys", "public", cwd=store, env=env)
    assert printed.status == 0, printed
    (store / "hsm.pub").write_bytes(printed.raw)
    assert keys("trust", "./hsm.pub", "--issuer", "acme", "--role", "owner", "--key", "alice", cwd=store).status == 0
    return public_from_pem(printed.raw, at="").key_id


def test_a_command_signs_for_the_key_that_an_owner_trusted(store: Path) -> None:
    env = command_signer(store)
    one_error_line(ctx(*REVOKE_BOB, cwd=store, env=env), 11, "keyring_not_an_owner")
    key_id = trust_signer(store, env)
    result = ctx(*REVOKE_BOB, cwd=store, env=env)
    assert (result.status, result.err) == (0, "")
    assert f"signed by {key_id[:16]} hsm." in result.out
    assert states(store)["bob"] == "revoked"


def test_a_named_key_comes_before_the_signer_and_the_signer_before_the_key_of_the_environment(store: Path) -> None:
    env = {**OPEN, **command_signer(store)}
    hsm = trust_signer(store, env)
    alice = (store / ".ctx" / "keys" / "alice.key").read_text(encoding="utf-8")
    env["CTX_SIGNING_KEY"] = alice

    def signed_by(*key: str) -> str:
        result = ctx("keys", "trust", "bob", "--issuer", "acme", *key, "--json", cwd=store, env=env)
        signer: str = msgspec.json.decode(result.raw)["signed_by"]
        return signer

    ids = {key["name"]: key["key_id"] for key in key_list(store)["issuers"][0]["keys"]}
    assert signed_by("--key", "alice") == ids["alice"]
    assert signed_by() == hsm == ids["hsm"]
    del env["CTX_SIGNER"]
    assert signed_by() == ids["alice"]


def test_a_signer_that_fails_is_replaced_by_no_other_key(store: Path) -> None:
    alice = (store / ".ctx" / "keys" / "alice.key").read_text(encoding="utf-8")
    env = {**OPEN, "CTX_SIGNING_KEY": alice}
    failing = command_signer(store, "import sys; sys.exit('the vault is \\x1b[31msealed')")
    line = one_error_line(ctx(*REVOKE_BOB, cwd=store, env={**env, **failing}), 1, "signer_failed")
    assert "ended with status 1: the vault is [31msealed" in line
    one_error_line(ctx(*REVOKE_BOB, cwd=store, env={**env, "CTX_SIGNER": "vault"}), 2, "signer_setting_invalid")
    one_error_line(ctx(*REVOKE_BOB, cwd=store, env={**env, "CTX_SIGNER": "command:./no"}), 13, "signer_not_found")
    assert states(store)["bob"] == "valid"


def test_a_signer_gets_none_of_our_secrets(store: Path) -> None:
    dump = "import json, os; open('environment', 'w').write(json.dumps(dict(os.environ)))\n" + GOOD
    secret = {
        "CTX_KEY_PASSPHRASE": "hush hush hush",
        "CTX_SIGNING_KEY": "hush hush hush",
        "CTX_PKCS11_PIN": "hush hush hush",
        "CTX_DATABASE_URL": "postgresql://u:hush@db/x",
    }
    env = {**secret, **command_signer(store, dump), "VAULT_ADDR": "https://vault"}
    assert ctx("keys", "public", cwd=store, env=env).status == 0
    received = msgspec.json.decode((store / "environment").read_bytes())
    assert received["VAULT_ADDR"] == "https://vault"
    assert not [name for name in received if name.startswith("CTX_")]
    assert "hush" not in str(received)


def test_a_store_may_be_founded_by_a_key_that_is_not_in_it(tmp_path: Path) -> None:
    env = command_signer(tmp_path)
    (tmp_path / "hsm.pub").write_bytes(ctx("keys", "public", cwd=tmp_path, env=env).raw)
    assert not (tmp_path / ".ctx").exists()  # no store is needed to print a key
    assert ctx("init", cwd=tmp_path).status == 0
    founding = ["keys", "trust", "./hsm.pub", "--issuer", "acme", "--role", "owner"]
    assert ctx(*founding, cwd=tmp_path, env=env).status == 0
    assert states(tmp_path) == {"hsm": "valid"}


def test_the_public_key_is_that_of_the_key_that_would_sign(store: Path) -> None:
    for args, env in ((["--key", "alice"], OPEN), (["--key", "./.ctx/keys/alice.key"], OPEN)):
        result = ctx("keys", "public", *args, cwd=store, env=env)
        assert result.raw == (store / ".ctx" / "keys" / "alice.pub").read_bytes()
        answer = msgspec.json.decode(ctx("keys", "public", *args, "--json", cwd=store, env=env).raw)
        assert answer["pem"].encode() == result.raw
        assert answer["key_id"] in result.err
    one_error_line(ctx("keys", "public", cwd=store, env=OPEN), 2, "signing_key_unclear")
    one_error_line(ctx("keys", "public", "alice", cwd=store, env=OPEN), 2, "usage")


def test_verbs_that_do_not_sign_load_no_signer(store: Path) -> None:
    loaded = imported("keys", "list", cwd=store)
    assert not [name for name in loaded if name.startswith(("pkcs11", "contextplane.adapters.signers", "asn1crypto"))]


@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
class TestToken:
    """A key on a token of SoftHSM, in processes of their own."""

    @pytest.fixture
    def token(self, tmp_path_factory: pytest.TempPathFactory) -> Token:
        return make_token(tmp_path_factory.mktemp("hsm"), "alice")

    def run(
        self, token: Token, *args: str, cwd: Path, env: dict[str, str] | None = None, fd: int | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(
            [COMMAND, *args],
            cwd=cwd,
            env=child_environment({**token.environment, "CTX_SIGNER": token.setting("alice"), **(env or {})}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
            pass_fds=[] if fd is None else [fd],
        )

    def test_a_key_on_a_token_signs_with_its_pin(self, store: Path, token: Token) -> None:
        pin = {"CTX_PKCS11_PIN": PIN}
        public = self.run(token, "keys", "public", cwd=store, env=pin)
        assert public.returncode == 0, public
        (store / "hsm.pub").write_bytes(public.stdout)
        trust = ["trust", "./hsm.pub", "--issuer", "acme", "--role", "owner", "--key", "alice"]
        assert keys(*trust, cwd=store).status == 0
        for env, code in (
            ({}, b"signer_pin_needed"),
            (OPEN, b"signer_pin_needed"),  # a passphrase is never tried as a PIN
            ({"CTX_PKCS11_PIN": "000000"}, b"signer_pin_wrong"),
        ):
            refused = self.run(token, *REVOKE_BOB, cwd=store, env=env)
            assert code in refused.stderr, refused
            assert b"000000" not in refused.stderr
        read, write = os.pipe()
        os.write(write, f"{PIN}\n".encode())
        os.close(write)
        result = self.run(token, *REVOKE_BOB, "--passphrase-fd", str(read), cwd=store, fd=read)
        os.close(read)
        assert (result.returncode, result.stderr) == (0, b"")
        assert b" hsm." in result.stdout
        assert states(store)["bob"] == "revoked"
