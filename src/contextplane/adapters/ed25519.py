"""Ed25519 keys that sign and verify, and their PEM forms (RFC 8410, PKCS #8).

No error quotes its input, which may be a private key.

A private key is encrypted at rest as PKCS #8 with PBES2, scrypt and AES-256-CBC (RFC 8018, RFC 7914). `cryptography`
reads this form but writes only PBKDF2 with 2,048 rounds, which is cheap to guess. So the DER around the ciphertext is
written here. OpenSSL reads the result.
"""

import os
from base64 import b64encode
from typing import ClassVar

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from cryptography.hazmat.primitives.padding import PKCS7
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.keys import PublicKey, PublicKeyInvalid

__all__ = [
    "Ed25519Check",
    "Ed25519Signer",
    "KeyHalvesDiffer",
    "PassphraseNeeded",
    "PassphraseTooShort",
    "PassphraseWrong",
    "PrivateKeyInvalid",
    "encrypt_key",
    "generate_key",
    "pem",
    "public_from_pem",
    "public_half",
    "signer_from_pem",
    "temporary_signer",
]

# 16 MiB and five rounds: as costly to guess as 128 MiB and one round, and within the memory limit of OpenSSL.
_N, _R, _P = 2**14, 8, 5
_BLOCK = 16
_SHORT = 128
_MIN_PASSPHRASE = 12
_PUBLIC = b"-----BEGIN PUBLIC KEY-----"
_INTEGER, _OCTETS, _SEQUENCE = 0x02, 0x04, 0x30
_PBES2 = bytes.fromhex("06092a864886f70d01050d")
_SCRYPT = bytes.fromhex("06092b06010401da47040b")
_AES_256_CBC = bytes.fromhex("060960864801650304012a")


def encrypt_key(key: bytes, passphrase: bytes) -> bytes:
    """Encrypt a PKCS #8 key with a passphrase; return it as PEM."""
    salt, iv = os.urandom(_BLOCK), os.urandom(_BLOCK)
    cipher_key = Scrypt(salt=salt, length=32, n=_N, r=_R, p=_P).derive(passphrase)
    padder = PKCS7(_BLOCK * 8).padder()
    encryptor = Cipher(AES256(cipher_key), CBC(iv)).encryptor()
    ciphertext = encryptor.update(padder.update(key) + padder.finalize()) + encryptor.finalize()
    kdf = _sequence(_SCRYPT, _sequence(_octets(salt), _integer(_N), _integer(_R), _integer(_P)))
    cipher = _sequence(_AES_256_CBC, _octets(iv))
    return pem("ENCRYPTED PRIVATE KEY", _sequence(_sequence(_PBES2, _sequence(kdf, cipher)), _octets(ciphertext)))


def pem(label: str, der: bytes) -> bytes:
    """Format DER as PEM: base64 lines between BEGIN and END (RFC 7468)."""
    text = b64encode(der).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]).encode()


def _sequence(*parts: bytes) -> bytes:
    return _der_element(_SEQUENCE, b"".join(parts))


def _octets(data: bytes) -> bytes:
    return _der_element(_OCTETS, data)


def _integer(number: int) -> bytes:
    return _der_element(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1))


def _der_element(tag: int, data: bytes) -> bytes:
    size = len(data)
    length = bytes([size]) if size < _SHORT else bytes([_SHORT + 1, size])
    return bytes([tag]) + length + data


class PrivateKeyInvalid(ContextPlaneError):
    """A file or a variable that should hold a private Ed25519 key in PEM form, and does not."""

    code: ClassVar[str] = "private_key_invalid"
    family: ClassVar[Family] = "refused"


class PassphraseNeeded(ContextPlaneError):
    """A private key is encrypted, and no passphrase was given."""

    code: ClassVar[str] = "key_passphrase_needed"
    family: ClassVar[Family] = "refused"


class PassphraseWrong(ContextPlaneError):
    """A passphrase that does not open this private key."""

    code: ClassVar[str] = "key_passphrase_wrong"
    family: ClassVar[Family] = "refused"


class PassphraseTooShort(ContextPlaneError):
    """A passphrase for a new key that can be guessed: it has fewer than 12 characters."""

    code: ClassVar[str] = "passphrase_too_short"
    family: ClassVar[Family] = "refused"


class KeyHalvesDiffer(ContextPlaneError):
    """A key file whose public half is not that of its private half: one of them was exchanged."""

    code: ClassVar[str] = "key_halves_differ"
    family: ClassVar[Family] = "untrusted"


class Ed25519Signer:
    """A private key in memory. Neither `repr` nor an error shows it."""

    __slots__ = ("_private", "_public")

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self._public = PublicKey(private.public_key().public_bytes_raw())

    @property
    def public_key(self) -> PublicKey:
        return self._public

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)


class Ed25519Check:
    """Verifies signatures by RFC 8032, with OpenSSL.

    A signature has one valid form: OpenSSL rejects a scalar that is not below the order of the group.
    """

    def holds(self, key: PublicKey, signature: bytes, message: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


def generate_key(passphrase: bytes) -> tuple[bytes, Ed25519Signer]:
    """Generate a key; return its encrypted PEM, to be stored, and its signer.

    The passphrase has at least 12 characters. Keys that were made before this rule still open.
    """
    size = len(passphrase.decode(errors="surrogateescape"))
    if size < _MIN_PASSPHRASE:
        raise PassphraseTooShort(
            f"{size} characters are too few for a new key",
            hint=f"choose at least {_MIN_PASSPHRASE} characters, such as four random words",
        )
    private = Ed25519PrivateKey.generate()
    plain = private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return encrypt_key(plain, passphrase), Ed25519Signer(private)


def temporary_signer() -> Ed25519Signer:
    """Generate a key that is never stored: it signs as long as the process lives."""
    return Ed25519Signer(Ed25519PrivateKey.generate())


def signer_from_pem(pem: bytes, passphrase: bytes | None, *, at: str) -> Ed25519Signer:
    """Read a private key from PEM, encrypted or not. `at` names its source in errors.

    A public half that comes with it must be that of the private half. The signer's public key is derived from the
    private half in any case.
    """
    hint = "it must be an Ed25519 key in PKCS #8, such as 'openssl genpkey -algorithm ed25519' makes"
    encrypted = b"BEGIN ENCRYPTED " in pem
    if encrypted and passphrase is None:
        raise PassphraseNeeded("the key is encrypted", at=at, hint="set CTX_KEY_PASSPHRASE, or use --passphrase-fd")
    try:
        private = load_pem_private_key(pem.partition(_PUBLIC)[0], passphrase if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without the cause: it quotes the input.
        if encrypted:
            raise PassphraseWrong(
                "the passphrase does not open the key", at=at, hint="try again; else the key is damaged"
            ) from None
        raise PrivateKeyInvalid("no private key in PEM form", at=at, hint=hint) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise PrivateKeyInvalid("a private key of another kind", at=at, hint=hint)
    signer = Ed25519Signer(private)
    if _PUBLIC in pem and public_half(pem, at=at) != signer.public_key:
        raise KeyHalvesDiffer(
            "its public half belongs to another key",
            at=at,
            hint="somebody changed the file: find out who, and restore it from a copy",
        )
    return signer


def public_half(key_file: bytes, *, at: str) -> PublicKey:
    """Read the public half of a key file. It is a claim until the private half was opened."""
    return public_from_pem(b"".join(key_file.partition(_PUBLIC)[1:]), at=at)


def public_from_pem(pem: bytes, *, at: str) -> PublicKey:
    """Read a public key from PEM. `at` names its source in errors."""
    hint = "it must be a PEM that begins with BEGIN PUBLIC KEY, of an Ed25519 key"
    try:
        public = load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise PublicKeyInvalid("no public key in PEM form", at=at, hint=hint) from None
    if not isinstance(public, Ed25519PublicKey):
        raise PublicKeyInvalid("a public key of another kind", at=at, hint=hint)
    return PublicKey(public.public_bytes_raw())
