"""Events that were verified, with their actors; and events that count for nothing.

The log says what happened, and the rules say what counts. An event that the log has, and that the rules do not allow,
is void: it cannot be taken out of the log, so every reader passes over it, and audits report it. Every key that signs
the log could otherwise close a stream for good with one event. What the log does not have is no event at all: someone
changed the catalog, and readers refuse it.
"""

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value
from contextplane.registry.events import Change, RegistryEvent, kind_of

__all__ = ["Actor", "Grant", "Scope", "VerifiedEvent", "VoidEvent"]


class Scope(Value, frozen=True):
    """What a change is about, as far as the right to make it depends on that.

    `tenant`: whose operators may make it. `name`: the id whose owner decides that. `published`: the version that it
    publishes under that id, if any.
    """

    issuer: str = ""
    tenant: str = ""
    environment: str = ""
    name: str = ""
    published: PackRef | None = None


class Grant(Value, frozen=True):
    """The roles that one issuer gave a key."""

    issuer: str
    roles: tuple[str, ...]


class Actor(Value, frozen=True):
    """The key that signed an event, and its roles then.

    `revoked`: by the newest keyring, it was revoked then. `rotated_keys`: all keys linked to it by rotation, itself
    included; they belong to one person.
    """

    key_id: str
    grants: tuple[Grant, ...]
    rotated_keys: tuple[str, ...]
    revoked: bool = False

    def holds(self, role: str, issuer: str | None = None) -> bool:
        """Whether the key had a role, for this issuer or for any."""
        return any(role in grant.roles for grant in self.grants if issuer in {None, grant.issuer})

    def is_of(self, issuer: str) -> bool:
        return any(grant.issuer == issuer for grant in self.grants)


class VerifiedEvent(Value, frozen=True):
    """An event whose signature, place and authority were checked. Only these are folded into states.

    `digest`: the SHA-256 of its stored body.
    """

    event: RegistryEvent
    at: Timestamp
    by: Actor
    digest: str

    @property
    def change(self) -> Change:
        return self.event.change

    @property
    def kind(self) -> str:
        return kind_of(self.event.change)

    @property
    def seq(self) -> int:
        return self.event.seq

    @property
    def previous(self) -> str:
        return self.event.previous

    @property
    def is_first_format(self) -> bool:
        return not self.event.origin


class VoidEvent(Value, frozen=True):
    """An event that the log has, and that counts for nothing. `problem`: why.

    `previous`: the digest of the event before it, as the log says; None in the first format, which does not say it.
    """

    seq: int
    digest: str
    previous: str | None
    problem: ContextPlaneError
