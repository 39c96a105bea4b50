"""Errors that several modules of the registry raise, one class per reason."""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family

__all__ = [
    "ActorNotAllowed",
    "ArtifactUnknown",
    "RegistryUntrusted",
    "TransitionRefused",
    "VersionDeprecated",
    "VersionRevoked",
    "VersionTaken",
    "VersionUnknown",
    "WrongKind",
]


class ActorNotAllowed(ContextPlaneError):
    """An event whose signer had not the role that it takes."""

    code: ClassVar[str] = "registry_role_missing"
    family: ClassVar[Family] = "untrusted"


class RegistryUntrusted(ContextPlaneError):
    """An event that no key signed which was good under the keyring of its time."""

    code: ClassVar[str] = "registry_signer_untrusted"
    family: ClassVar[Family] = "untrusted"


class TransitionRefused(ContextPlaneError):
    """A change that the state of its subject does not allow.

    `details` has the state and those that would allow it.
    """

    code: ClassVar[str] = "lifecycle_transition_refused"
    family: ClassVar[Family] = "refused"


class ArtifactUnknown(ContextPlaneError):
    """A digest of which the registry knows nothing."""

    code: ClassVar[str] = "artifact_not_found"
    family: ClassVar[Family] = "not_found"


class VersionUnknown(ContextPlaneError):
    """A version that was never published."""

    code: ClassVar[str] = "version_not_found"
    family: ClassVar[Family] = "not_found"


class VersionTaken(ContextPlaneError):
    """Other bytes were published under this name and number, and that stays so for ever."""

    code: ClassVar[str] = "version_taken"
    family: ClassVar[Family] = "conflict"


class VersionDeprecated(ContextPlaneError):
    """A deprecated version where only one that takes new traffic will do."""

    code: ClassVar[str] = "version_deprecated"
    family: ClassVar[Family] = "refused"


class VersionRevoked(ContextPlaneError):
    """A revoked version in a new execution."""

    code: ClassVar[str] = "version_revoked"
    family: ClassVar[Family] = "refused"


class WrongKind(ContextPlaneError):
    """A reference to a document of another kind than is asked for.

    For example an overlay for a pack, or a pack for a catalog.
    """

    code: ClassVar[str] = "reference_of_wrong_kind"
    family: ClassVar[Family] = "refused"
