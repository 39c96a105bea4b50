"""Errors of signature verification, one class per reason.

Each says what was wrong, none says what would have passed.
"""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family

__all__ = [
    "ClockWentBackwards",
    "KeyExpired",
    "KeyNotYetValid",
    "KeyOfOtherIssuer",
    "KeyRevoked",
    "KeyUnknown",
    "SignatureInvalid",
    "SignatureMissing",
    "ThresholdNotMet",
    "Untrusted",
]


class Untrusted(ContextPlaneError):
    """A signature, or a set of them, that does not make its payload trusted."""

    code: ClassVar[str] = "untrusted"
    family: ClassVar[Family] = "untrusted"


class SignatureMissing(Untrusted):
    """An envelope without any signature."""

    code: ClassVar[str] = "signature_missing"


class KeyUnknown(Untrusted):
    """A signature by a key that the keyring does not know."""

    code: ClassVar[str] = "signature_key_unknown"


class KeyOfOtherIssuer(Untrusted):
    """A signature that names a key of another issuer."""

    code: ClassVar[str] = "signature_key_of_other_issuer"


class SignatureInvalid(Untrusted):
    """A signature that names a key of this issuer, and is not this key's over exactly this payload."""

    code: ClassVar[str] = "signature_invalid"


class KeyNotYetValid(Untrusted):
    """A good signature by a key before its time."""

    code: ClassVar[str] = "signature_key_not_yet_valid"


class KeyExpired(Untrusted):
    """A good signature by a key after its time."""

    code: ClassVar[str] = "signature_key_expired"


class KeyRevoked(Untrusted):
    """A valid signature by a revoked key, and no trusted time shows that it is older than the revocation."""

    code: ClassVar[str] = "signature_key_revoked"


class ThresholdNotMet(Untrusted):
    """Fewer distinct keys of the issuer signed than it asks for."""

    code: ClassVar[str] = "signature_threshold_not_met"


class ClockWentBackwards(ContextPlaneError):
    """A time before one that is on record: by it, an expired or revoked key could come back to life.

    Or the clock is so far behind the newest checkpoint that one of both is wrong: its age is unknown, and no act is
    built on it.
    """

    code: ClassVar[str] = "clock_went_backwards"
    family: ClassVar[Family] = "untrusted"
