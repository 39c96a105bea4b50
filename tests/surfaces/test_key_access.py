"""Access to keys and their passphrases: anything that would expose a key is refused."""

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from contextplane.adapters.ed25519 import (
    PassphraseNeeded,
    encrypt_key,
    generate_key,
    pem,
    public_from_pem,
    signer_from_pem,
)
from contextplane.app.platform import open_platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.settings import Settings
from tests.patience import PATIENCE
from tests.surfaces.commands import COMMAND, child_environment, ctx, ctx_as_nobody, is_root, public_folder
from tests.surfaces.keyrings import HUSH, OPEN, REVOKE, key_list, keys, states
from tests.surfaces.sample import one_error_line
from tests.unit.trust.world import key_of


@pytest.fixture
def store(keyring_store: Path) -> Path:
    return keyring_store


def test_keys_lie_where_only_their_owner_can_reach_them_and_encrypted(store: Path) -> None:
    folder = store / ".ctx" / "keys"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert all(b"BEGIN ENCRYPTED" in path.read_bytes() for path in folder.glob("*.key"))
    assert sorted(path.name for path in folder.glob("*.key")) == ["alice.key", "bob.key", "carol.key"]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("keys", 0o010),
        ("keys", 0o004),
        ("keys/alice.key", 0o040),
        ("keys/alice.key", 0o002),
    ],
)
def test_keys_that_others_can_reach_are_refused(store: Path, name: str, mode: int) -> None:
    path = store / ".ctx" / name
    path.chmod(path.stat().st_mode | mode)
    line = one_error_line(keys("list", cwd=store), 10, "key_file_exposed")
    assert str(path) in line
    one_error_line(ctx(*REVOKE, cwd=store, env=OPEN), 10, "key_file_exposed")


def test_a_key_that_is_a_link_or_of_somebody_else_is_refused(store: Path) -> None:
    path = store / ".ctx" / "keys" / "carol.key"
    path.rename(store / "moved")
    path.symlink_to(store / "moved")
    assert keys("list", cwd=store).status != 0
    path.unlink()
    (store / "moved").rename(path)
    if is_root():
        os.chown(path, 65534, 65534)
        one_error_line(keys("list", cwd=store), 10, "key_file_exposed")


@pytest.mark.skipif(not is_root(), reason="only root can play two people")
def test_the_keys_of_a_store_are_closed_to_others(keyring_once: Path) -> None:
    with public_folder() as folder:
        shutil.copytree(keyring_once / ".ctx", folder / ".ctx")
        assert ctx_as_nobody("keys", "list", cwd=folder).status != 0


def test_a_wrong_passphrase_opens_nothing(store: Path) -> None:
    for env, status, code in (
        ({"CTX_KEY_PASSPHRASE": "wrong"}, 10, "key_passphrase_wrong"),
        ({}, 10, "key_passphrase_needed"),
    ):
        one_error_line(ctx(*REVOKE, cwd=store, env=env), status, code)
    one_error_line(ctx(*REVOKE, "--passphrase-fd", "77", cwd=store), 2, "usage")


@pytest.mark.parametrize("passphrase", [None, b""])
def test_no_key_is_made_without_a_passphrase_nor_with_an_empty_one(store: Path, passphrase: bytes | None) -> None:
    with open_platform(Settings(cwd=str(store))) as platform, pytest.raises(PassphraseNeeded):
        KeyStore(platform, lambda: passphrase).create_key("dave", None)
    assert not (store / ".ctx" / "keys" / "dave.key").exists()


@pytest.mark.parametrize("passphrase", ["eleven char", "ä" * 11])
def test_a_new_key_needs_a_passphrase_of_twelve_characters_and_old_keys_still_open(
    store: Path, passphrase: str
) -> None:
    short = {"CTX_KEY_PASSPHRASE": passphrase}
    for args in (["new", "dave"], ["new", "dave", "--standalone", "-o", "dave.key"]):
        line = one_error_line(keys(*args, cwd=store, env=short), 10, "passphrase_too_short")
        assert "at least 12 characters" in line
        assert passphrase not in line
    assert not list(store.rglob("dave*"))
    assert keys("new", "dave", cwd=store, env={"CTX_KEY_PASSPHRASE": f"{passphrase}x"}).status == 0
    old = store / "old.key"
    old.touch(mode=0o600)
    old.write_bytes(encrypt_key(PKCS8 + bytes(range(32)), passphrase.encode()))
    result = keys("trust", "carol", "--issuer", "acme", "--key", "./old.key", cwd=store, env=short)
    assert "keyring_not_an_owner" not in one_error_line(result, 10, "key_passphrase_wrong")  # that of carol
    result = keys("trust", "bob", "--issuer", "acme", "--key", "./old.key", cwd=store, env=short)
    one_error_line(result, 11, "keyring_not_an_owner")  # it was opened


def key_file(store: Path, name: str) -> Path:
    return store / ".ctx" / "keys" / f"{name}.key"


def exchange_public_half(path: Path, public: bytes) -> None:
    """Do what somebody can do who can write to the store, and has no key and no passphrase."""
    path.write_bytes(path.read_bytes().partition(PUBLIC)[0] + public)


MALLORY = pem("PUBLIC KEY", key_of("mallory").public_key.spki)
PUBLIC = b"-----BEGIN PUBLIC KEY-----"
PKCS8 = bytes.fromhex("302e020100300506032b657004220420")


def trusted_keys(store: Path) -> set[tuple[str, str]]:
    return {(key["key_id"], key["state"]) for issuer in key_list(store)["issuers"] for key in issuer["keys"]}


@pytest.mark.parametrize(
    "args", [["trust", "carol", "--issuer", "acme", "--role", "owner"], ["rotate", "alice", "carol"]]
)
def test_a_key_whose_public_half_was_exchanged_is_not_trusted_as_that_of_its_holder(
    store: Path, args: list[str]
) -> None:
    before = trusted_keys(store)
    exchange_public_half(key_file(store, "carol"), MALLORY)
    (store / ".ctx" / "keys" / "carol.pub").write_bytes(MALLORY)
    line = one_error_line(keys(*args, "--key", "alice", cwd=store), 11, "key_halves_differ")
    assert "carol" in line
    assert trusted_keys(store) == before
    # Nor is a key that is trusted already, under another name.
    exchange_public_half(key_file(store, "carol"), (store / ".ctx" / "keys" / "bob.pub").read_bytes())
    one_error_line(keys(*args, "--key", "alice", cwd=store), 11, "key_halves_differ")
    assert trusted_keys(store) == before


def test_a_key_file_that_was_exchanged_as_a_whole_is_not_trusted(store: Path) -> None:
    before = trusted_keys(store)
    trust = ["trust", "carol", "--issuer", "acme", "--role", "owner", "--key", "alice"]
    private, signer = generate_key(b"the passphrase of mallory")
    public = pem("PUBLIC KEY", signer.public_key.spki)
    key_file(store, "carol").write_bytes(private + public)
    line = one_error_line(keys(*trust, cwd=store), 10, "key_passphrase_wrong")
    assert "compare its id" in line
    assert "carol.pub" in line
    plain = pem("PRIVATE" + " KEY", PKCS8 + bytes(range(32)))
    key_file(store, "carol").write_bytes(plain + pem("PUBLIC KEY", signer_from_pem(plain, None, at="").public_key.spki))
    one_error_line(keys(*trust, cwd=store), 10, "key_unproved")
    assert trusted_keys(store) == before


def test_the_key_that_is_revoked_by_name_is_the_one_that_owners_gave_that_name(store: Path) -> None:
    bob = public_from_pem((store / ".ctx" / "keys" / "bob.pub").read_bytes(), at="").key_id
    exchange_public_half(key_file(store, "bob"), (store / ".ctx" / "keys" / "alice.pub").read_bytes())
    one_error_line(ctx(*REVOKE, cwd=store, env=OPEN), 2, "key_ambiguous")
    exchange_public_half(key_file(store, "bob"), MALLORY)
    assert ctx(*REVOKE, cwd=store, env=OPEN).status == 0
    assert (bob, "revoked") in trusted_keys(store)


def test_no_key_signs_whose_halves_differ(store: Path) -> None:
    alice = key_file(store, "alice")
    exchange_public_half(alice, MALLORY)
    shutil.copy(alice, store / "alice.pem")
    one_error_line(ctx(*REVOKE, cwd=store, env=OPEN), 11, "key_halves_differ")
    one_error_line(ctx(*REVOKE[:-1], "./alice.pem", cwd=store, env=OPEN), 11, "key_halves_differ")
    env = {**OPEN, "CTX_SIGNING_KEY": alice.read_text()}
    one_error_line(ctx(*REVOKE[:-2], cwd=store, env=env), 11, "key_halves_differ")
    assert states(store)["bob"] == "valid"


def test_a_person_is_asked_for_the_passphrase_of_each_key_by_name_and_not_for_that_of_a_trusted_one(
    store: Path,
) -> None:
    assert typed(["keys", "new", "dave"], ["the words of dave", "the words of dave"], cwd=store)[1] == 0
    trust = ["keys", "trust", "dave", "--issuer", "acme", "--key", "alice"]
    screen, status = typed(trust, ["the words of dave", HUSH], cwd=store)
    assert status == 0, screen
    assert screen.index("Passphrase of dave: ") < screen.index("Passphrase of alice: ")
    screen, status = typed([*trust, "--role", "data"], [HUSH], cwd=store)
    assert status == 0, screen
    assert "of dave: " not in screen


def test_a_passphrase_comes_from_a_descriptor(store: Path) -> None:
    read, write = os.pipe()
    os.write(write, f"{HUSH}\n".encode())
    os.close(write)
    result = subprocess.run(
        [COMMAND, *REVOKE, "--passphrase-fd", str(read)],
        cwd=store,
        env=child_environment(),
        pass_fds=[read],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    os.close(read)
    assert (result.returncode, result.stderr) == (0, b"")
    assert states(store)["bob"] == "revoked"


def test_a_key_comes_from_the_environment_or_from_a_file_of_its_owner(store: Path) -> None:
    private = (store / ".ctx" / "keys" / "alice.key").read_text()
    again = ["keys", "trust", "carol", "--issuer", "acme"]
    assert ctx(*again, cwd=store, env={**OPEN, "CTX_SIGNING_KEY": private}).status == 0
    one_error_line(ctx(*again, cwd=store, env={**OPEN, "CTX_SIGNING_KEY": "rubbish"}), 10, "private_key_invalid")
    elsewhere = store / "alice.pem"
    elsewhere.write_text(private)
    elsewhere.chmod(0o644)
    one_error_line(ctx(*again, "--key", "./alice.pem", cwd=store, env=OPEN), 10, "key_file_exposed")
    elsewhere.chmod(0o600)
    assert ctx(*again, "--key", "./alice.pem", cwd=store, env=OPEN).status == 0
    one_error_line(ctx(*again, "--key", "./none.pem", cwd=store, env=OPEN), 13, "key_not_found")


def test_a_person_is_asked_twice_for_a_new_passphrase_and_it_is_not_echoed(store: Path) -> None:
    shown, status = typed(["keys", "new", "dave"], ["hush hush one", "hush hush one"], cwd=store)
    assert status == 0
    assert "hush" not in shown
    assert typed([*REVOKE[:-1], "dave"], ["hush hush one"], cwd=store)[1] == 11  # opened, and no owner
    shown, status = typed(["keys", "new", "erin"], ["hush hush one", "hush hush two"], cwd=store)
    assert (status, "key_passphrase_differs" in shown) == (10, True)


def typed(args: list[str], answers: list[str], *, cwd: Path) -> tuple[str, int]:
    """The screen of a terminal after each question was answered in turn."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [COMMAND, *args],
        cwd=cwd,
        env=child_environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,  # so that there is no other terminal to ask at
    )
    os.close(theirs)
    output = b""
    left = list(answers)
    try:
        while piece := os.read(ours, 4096):
            output += piece
            if left and output.endswith((b": ", b"[y/N] ")):
                os.write(ours, f"{left.pop(0)}\n".encode())
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(ours)
    return output.decode(), child.wait(timeout=PATIENCE)
