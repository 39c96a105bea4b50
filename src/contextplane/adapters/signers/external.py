"""What all signers outside of this program share: their errors, and the check of what they return.

Nothing that they return is used unchecked. Every failure is an error with a code: no other key takes over.
"""

from functools import cached_property
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.keys import PublicKey
from contextplane.ports.keys import SignatureCheck, Signer

__all__ = [
    "CheckedSigner",
    "SignatureWrong",
    "SignerFailed",
    "SignerNotFound",
    "SignerPinNeeded",
    "SignerPinWrong",
    "SignerResponseInvalid",
    "SignerTimedOut",
    "printable",
]

_SHOWN = 300


class SignerNotFound(ContextPlaneError):
    """The program, module, token or key that `CTX_SIGNER` names is not there."""

    code: ClassVar[str] = "signer_not_found"
    family: ClassVar[Family] = "not_found"


class SignerFailed(ContextPlaneError):
    """A signer that ended with an error. Its own message is part of ours."""

    code: ClassVar[str] = "signer_failed"


class SignerTimedOut(ContextPlaneError):
    """A signer that did not answer in time."""

    code: ClassVar[str] = "signer_timed_out"


class SignerResponseInvalid(ContextPlaneError):
    """A response of a signer in another form than the protocol has."""

    code: ClassVar[str] = "signer_response_invalid"
    family: ClassVar[Family] = "untrusted"


class SignatureWrong(ContextPlaneError):
    """A signature of a signer that its own public key does not verify."""

    code: ClassVar[str] = "signer_signature_wrong"
    family: ClassVar[Family] = "untrusted"


class SignerPinNeeded(ContextPlaneError):
    """A token asks for a PIN, and none was given."""

    code: ClassVar[str] = "signer_pin_needed"
    family: ClassVar[Family] = "refused"


class SignerPinWrong(ContextPlaneError):
    """A token refused the PIN, or is locked after too many wrong ones."""

    code: ClassVar[str] = "signer_pin_wrong"
    family: ClassVar[Family] = "refused"


class CheckedSigner:
    """Any `Signer`, with every signature verified before it is returned. `at` names it in errors."""

    def __init__(self, inner: Signer, check: SignatureCheck, at: str) -> None:
        self._inner = inner
        self._check = check
        self._at = at

    @cached_property
    def public_key(self) -> PublicKey:
        return self._inner.public_key

    def sign(self, message: bytes) -> bytes:
        signature = self._inner.sign(message)
        if not self._check.holds(self.public_key, signature, message):
            raise SignatureWrong(
                "its signature does not verify with its own public key",
                at=self._at,
                hint="the signer must sign the message itself with Ed25519, and no digest of it",
            )
        return signature


def printable(data: bytes) -> str:
    """Return the beginning of a foreign text in one line, without control characters."""
    text = data[: 4 * _SHOWN].decode(errors="replace")
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
