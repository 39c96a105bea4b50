"""Keys on a token sign as all others do: against SoftHSM, a real PKCS #11 module."""

import os
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from contextplane.adapters.ed25519 import Ed25519Check
from contextplane.app.registry.signers import open_external_signer
from contextplane.errors import ContextPlaneError
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.testing.laws.signer import SignerLaw
from tests.softhsm import PIN, WHY_NOT, Token, make_token

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Token]:
    token = make_token(tmp_path_factory.mktemp("hsm"), "alice", "bob", "twin", "twin")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in token.environment.items():
            patch.setenv(name, value)  # the module reads it from this process
        yield token
        token.close()


def pin_of(text: bytes | None) -> Callable[[], bytes | None]:
    return lambda: text


def open_key(token: Token, label: str) -> Signer:
    return open_external_signer(token.setting(label), pin_of(PIN.encode()), {})


class TestToken(SignerLaw):
    """Two keys of one token."""

    @pytest.fixture(autouse=True)
    def _keys(self, token: Token) -> None:
        self.keys = cycle([open_key(token, "alice"), open_key(token, "bob")])

    def signer(self) -> Signer:
        return next(self.keys)

    def check(self) -> SignatureCheck:
        return Ed25519Check()


def test_a_key_of_a_token_signs_messages_of_any_size(token: Token) -> None:
    signer = open_key(token, "alice")
    assert signer.public_key == open_key(token, "alice").public_key
    for size in (0, 1, 100_000):
        message = os.urandom(size)
        assert Ed25519Check().holds(signer.public_key, signer.sign(message), message)


@pytest.mark.parametrize(
    ("label", "name", "pin", "code"),
    [
        ("carol", "ctx", PIN, "signer_not_found"),
        ("alice", "other", PIN, "signer_not_found"),
        ("twin", "ctx", PIN, "signer_not_found"),
        ("rsa", "ctx", PIN, "signer_not_found"),
        ("alice", "ctx", "000000", "signer_pin_wrong"),
        ("alice", "ctx", "", "signer_pin_needed"),
        ("alice", "ctx", None, "signer_pin_needed"),
        ("alice", "ctx", "\udcff", "signer_pin_wrong"),
    ],
)
def test_a_key_that_cannot_be_opened_is_an_error_without_the_pin(
    token: Token, label: str, name: str, pin: str | None, code: str
) -> None:
    secret = None if pin is None else pin.encode(errors="surrogateescape")
    with pytest.raises(ContextPlaneError) as refused:
        open_external_signer(token.setting(label, of=name), pin_of(secret), {})
    assert refused.value.code == code
    assert refused.value.at == f"pkcs11:{token.module}"
    assert refused.value.hint
    assert "000000" not in str(refused.value)


def test_a_module_that_cannot_be_loaded_is_not_found(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("no module", encoding="utf-8")
    for path in (tmp_path / "none.so", text):
        with pytest.raises(ContextPlaneError) as refused:
            open_external_signer(f"pkcs11:{path}?token=t&object=o", pin_of(b"1234"), {})
        assert refused.value.code == "signer_not_found"
