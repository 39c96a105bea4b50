"""Base 64 with one spelling per value: the standard alphabet, padded, no stray bits, nothing in between (RFC 4648, 4).

A signature does not cover how it is spelled itself. Where two spellings pass for one value, an envelope can be changed
without breaking it; so only one passes.
"""

import binascii
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family

__all__ = ["Base64Refused", "decoded", "encoded"]


class Base64Refused(ContextPlaneError):
    """A text that is not the one strict base64 spelling of its bytes."""

    code: ClassVar[str] = "base64_not_strict"
    family: ClassVar[Family] = "untrusted"


def encoded(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def decoded(text: str, *, at: str) -> bytes:
    """The bytes, if `text` is how `encoded` spells them. `at`: where it stands."""
    try:
        data = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise _refused(at) from error
    # Strict mode lets bits pass that the last character has and no byte takes up.
    if encoded(data) != text:
        raise _refused(at)
    return data


def _refused(at: str) -> Base64Refused:
    return Base64Refused(
        "not strict base64", at=at, hint="the standard alphabet with padding, without spaces and stray bits"
    )
