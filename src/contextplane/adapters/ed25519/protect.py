"""Encrypting a private key at rest: PKCS #8 with PBES2, scrypt and AES-256-CBC (RFC 8018, RFC 7914).

`cryptography` reads this form and writes only one with PBKDF2 at 2,048 rounds, which costs a guesser next to nothing;
so the few bytes of DER around the ciphertext are written here. OpenSSL reads the result.
"""

import os
from base64 import b64encode

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from cryptography.hazmat.primitives.padding import PKCS7

__all__ = ["pem", "protected"]

# 16 MiB and five rounds: as costly to guess as 128 MiB and one, and within what OpenSSL allows itself.
_N, _R, _P = 2**14, 8, 5
_BLOCK = 16
_SHORT = 128
_INTEGER, _OCTETS, _SEQUENCE = 0x02, 0x04, 0x30
_PBES2 = bytes.fromhex("06092a864886f70d01050d")
_SCRYPT = bytes.fromhex("06092b06010401da47040b")
_AES_256_CBC = bytes.fromhex("060960864801650304012a")


def protected(key: bytes, passphrase: bytes) -> bytes:
    """The PEM of a PKCS #8 key under a passphrase."""
    salt, iv = os.urandom(_BLOCK), os.urandom(_BLOCK)
    secret = Scrypt(salt=salt, length=32, n=_N, r=_R, p=_P).derive(passphrase)
    padder = PKCS7(_BLOCK * 8).padder()
    encryptor = Cipher(AES256(secret), CBC(iv)).encryptor()
    sealed = encryptor.update(padder.update(key) + padder.finalize()) + encryptor.finalize()
    kdf = _sequence(_SCRYPT, _sequence(_octets(salt), _integer(_N), _integer(_R), _integer(_P)))
    cipher = _sequence(_AES_256_CBC, _octets(iv))
    return pem("ENCRYPTED PRIVATE KEY", _sequence(_sequence(_PBES2, _sequence(kdf, cipher)), _octets(sealed)))


def pem(label: str, der: bytes) -> bytes:
    """DER as lines of text between a BEGIN and an END (RFC 7468)."""
    text = b64encode(der).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]).encode()


def _sequence(*parts: bytes) -> bytes:
    return _tagged(_SEQUENCE, b"".join(parts))


def _octets(data: bytes) -> bytes:
    return _tagged(_OCTETS, data)


def _integer(number: int) -> bytes:
    return _tagged(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1))


def _tagged(tag: int, data: bytes) -> bytes:
    size = len(data)
    length = bytes([size]) if size < _SHORT else bytes([_SHORT + 1, size])
    return bytes([tag]) + length + data
