"""What can be wrong with the use of keys, besides what the keyring itself refuses."""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family

__all__ = ["FirstKeyNeedsIssuer", "KeyAmbiguous", "KeyChangeInvalid", "KeyringMemoryInvalid", "SigningKeyUnclear"]


class SigningKeyUnclear(ContextPlaneError):
    """It was not said which key signs, and there is not exactly one."""

    code: ClassVar[str] = "signing_key_unclear"
    family: ClassVar[Family] = "usage"


class FirstKeyNeedsIssuer(ContextPlaneError):
    """The first key of a store owns its keyring and is trusted at once: it must be said for whom it signs."""

    code: ClassVar[str] = "first_key_needs_issuer"
    family: ClassVar[Family] = "usage"


class KeyAmbiguous(ContextPlaneError):
    """The beginning of a key id that several trusted keys have."""

    code: ClassVar[str] = "key_ambiguous"
    family: ClassVar[Family] = "usage"


class KeyringMemoryInvalid(ContextPlaneError):
    """The file in which this client keeps what it knows of the keyring cannot be read as that."""

    code: ClassVar[str] = "keyring_memory_invalid"
    family: ClassVar[Family] = "untrusted"


class KeyChangeInvalid(ContextPlaneError):
    """A change of the keyring with a name or a text in it that no keyring can hold."""

    code: ClassVar[str] = "key_change_invalid"
    family: ClassVar[Family] = "usage"
