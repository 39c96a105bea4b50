"""The Ed25519 adapter obeys the laws of signing, and agrees with RFC 8032, with OpenSSL's form, and with our own."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.ed25519 import (
    Ed25519Check,
    Ed25519Signer,
    PassphraseNeeded,
    PassphraseWrong,
    PrivateKeyInvalid,
    generate_key,
    pem,
    public_from_pem,
    signer_from_pem,
)
from contextplane.model.keys import PublicKey, PublicKeyInvalid
from contextplane.ports.keys import SignatureCheck, Signer
from contextplane.testing.laws.signer import SignerLaw
from contextplane.testing.standalone_verifier import signature_holds
from tests.support.cases import cases
from tests.unit.trust.world import key_of

PKCS8 = bytes.fromhex("302e020100300506032b657004220420")
# RFC 8032, 7.1: secret key, public key, message, signature.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
]


class TestEd25519(SignerLaw):
    """The adapter on OpenSSL."""

    def signer(self) -> Signer:
        self.made = getattr(self, "made", 0) + 1
        return key_of(f"law {self.made}")

    def check(self) -> SignatureCheck:
        return Ed25519Check()


@pytest.mark.parametrize(("secret", "public", "message", "signature"), VECTORS)
def test_the_vectors_of_the_rfc(secret: str, public: str, message: str, signature: str) -> None:
    signer = unencrypted_signer(bytes.fromhex(secret))
    assert signer.public_key.raw.hex() == public
    assert signer.sign(bytes.fromhex(message)).hex() == signature
    assert signature_holds(signer.public_key.raw, bytes.fromhex(signature), bytes.fromhex(message))


@given(st.binary(max_size=40), st.integers(min_value=0, max_value=511) | st.none())
def test_the_second_verifier_judges_signatures_alike(message: bytes, bit: int | None) -> None:
    signer = key_of("alike")
    number = int.from_bytes(signer.sign(message)) ^ (0 if bit is None else 1 << bit)
    signature = number.to_bytes(64)
    ours = Ed25519Check().holds(signer.public_key, signature, message)
    assert ours == signature_holds(signer.public_key.raw, signature, message) == (bit is None)


def test_a_key_kept_under_a_passphrase_opens_with_it_and_with_nothing_else() -> None:
    private, signer = generate_key(b"hush hush hush")
    assert signer_from_pem(private, b"hush hush hush", at="k").public_key == signer.public_key
    for passphrase in (b"Hush hush hush", b""):
        with pytest.raises(PassphraseWrong) as wrong:
            signer_from_pem(private, passphrase, at="k")
        assert wrong.value.at == "k"
    with pytest.raises(PassphraseNeeded):
        signer_from_pem(private, None, at="k")


def test_a_key_at_rest_is_derived_by_scrypt_and_does_not_contain_the_key() -> None:
    private, signer = generate_key(b"hush hush hush")
    der = decode_pem(private)
    assert bytes.fromhex("06092b06010401da47040b") in der  # scrypt
    assert signer.public_key.raw not in der
    assert generate_key(b"hush hush hush")[0] != private


@pytest.mark.parametrize("data", [b"", b"garbage", pem("PRIVATE" + " KEY", b"\x30\x00"), pem("PUBLIC KEY", b"no")])
def test_what_is_no_private_key_is_refused_without_being_shown(data: bytes) -> None:
    with pytest.raises(PrivateKeyInvalid) as refused:
        signer_from_pem(data, None, at="k")
    assert "garbage" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_keys_of_another_kind_are_refused() -> None:
    other = X25519PrivateKey.generate()
    private = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(PrivateKeyInvalid):
        signer_from_pem(private, None, at="k")
    with pytest.raises(PublicKeyInvalid):
        public_from_pem(other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), at="k")


def test_a_private_key_is_not_shown_by_its_signer() -> None:
    secret = bytes(range(32))
    assert secret.hex() not in repr(unencrypted_signer(secret))
    assert not hasattr(unencrypted_signer(secret), "__dict__")


def test_a_public_key_is_read_from_pem_and_named_by_its_der_form() -> None:
    key = key_of("named").public_key
    assert public_from_pem(pem("PUBLIC KEY", key.spki), at="k") == key
    assert len(key.key_id) == 64
    for bad in (b"", pem("PUBLIC KEY", key.spki[:-1]), pem("PUBLIC KEY", b"no")):
        with pytest.raises(PublicKeyInvalid):
            public_from_pem(bad, at="k")
    with pytest.raises(PublicKeyInvalid):
        PublicKey(b"short")


WEAK = [
    *("00" * 32, "01" + "00" * 31, "ec" + "ff" * 30 + "7f"),
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
]


@cases("text", [*WEAK, *(text[:-2] + f"{int(text[-2:], 16) | 128:x}" for text in WEAK)])
def test_a_key_of_small_order_is_refused_because_anything_would_seem_signed_by_it(text: str) -> None:
    key = bytes.fromhex(text)
    # With S = 0 and R = A, eight messages or fewer suffice to find one that holds.
    forged = [bytes([n]) for n in range(64) if signature_holds(key, key + bytes(32), bytes([n]))]
    assert forged or text.endswith(("80", "ff"))
    with pytest.raises(PublicKeyInvalid):
        PublicKey(key)


@pytest.mark.parametrize("y", [2**255 - 19, 2**255 - 18, 2**255 - 1])
def test_a_second_spelling_of_a_key_is_refused(y: int) -> None:
    with pytest.raises(PublicKeyInvalid):
        PublicKey(y.to_bytes(32, "little"))


def unencrypted_signer(secret: bytes) -> Ed25519Signer:
    return signer_from_pem(pem("PRIVATE" + " KEY", PKCS8 + secret), None, at="test")


def decode_pem(text: bytes) -> bytes:
    return base64.b64decode(b"".join(text.splitlines()[1:-1]))
