"""The owner of an id, as a fold over `registry/names/<id>`. Pure.

The first publication of an id comes with the claim to it: issuer, kind of document, tenant. From then on only this
issuer publishes under it, only this kind, and operators of this tenant pin it and name its versions. An owner may move
the id to another tenant with a later claim; what was done before is judged by the tenant of that time.

Ids of the first format were never claimed. There the first publication in the log is the claim.
"""

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import ArtifactKind
from contextplane.model.ids import PackRef
from contextplane.model.value import Value
from contextplane.registry.events import Change, EventInvalid, NameClaimed, Published, kind_of
from contextplane.registry.verified_event import Scope, VerifiedEvent

__all__ = ["KindTaken", "NameState", "NameTaken"]


class NameTaken(ContextPlaneError):
    """An id under which another issuer publishes."""

    code: ClassVar[str] = "publish_name_taken"
    family: ClassVar[Family] = "conflict"


class KindTaken(ContextPlaneError):
    """An id under which documents of another kind are published."""

    code: ClassVar[str] = "publish_kind_taken"
    family: ClassVar[Family] = "conflict"


class NameState(Value, frozen=True):
    """An id: its owner, empty before the first claim, and its tenants, each from an entry of the log on."""

    base_id: str
    seq: int = 0
    head: str = ""
    issuer: str = ""
    kind: ArtifactKind | None = None
    tenants: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of_first_format(cls, base_id: str, publications: Iterable[VerifiedEvent]) -> "NameState":
        """The state of an id whose owner never claimed it: the earliest of its publications is the claim."""
        first = min(publications, key=lambda event: event.event.entry, default=None)
        name, change = cls(base_id=base_id), first.change if first is not None else None
        if first is None or not isinstance(change, Published):
            return name
        return name.with_claim(change.issuer, change.kind, change.operated_by, first.event.entry)

    @property
    def is_claimed(self) -> bool:
        return self.kind is not None

    def tenant_at(self, entry: int) -> str:
        """The tenant whose operators acted for the id at an entry of the log; empty before the first claim."""
        return next((tenant for since, tenant in reversed(self.tenants) if since < entry), "")

    def scope_of(self, change: Change) -> Scope:
        """The issuer that claims the id."""
        return Scope(issuer=change.issuer if isinstance(change, NameClaimed) else "")

    def after_event(self, verified: VerifiedEvent) -> "NameState":
        """Fold one more claim, or refuse it.

        The first one counts even if its key is revoked later: it bars others. A later one by such a key does not: it
        moves the id to another tenant.
        """
        change = verified.change
        if not isinstance(change, NameClaimed):
            raise EventInvalid(f"{kind_of(change)} is no change of a name", at=verified.event.subject)
        state = self
        if not (self.is_claimed and verified.by.revoked):
            state = self.with_claim(change.issuer, change.kind, change.tenant, verified.event.entry)
        return replace(state, seq=verified.event.seq, head=verified.digest)

    def with_claim(self, issuer: str, kind: ArtifactKind, tenant: str, entry: int) -> "NameState":
        """The state after a claim at an entry of the log. One by another than the owner is refused."""
        if self.is_claimed:
            self.check_owner(issuer, kind, at=self.base_id)
        return replace(self, issuer=issuer, kind=kind, tenants=(*self.tenants, (entry, tenant)))

    def check_owner(self, issuer: str, kind: ArtifactKind, *, at: str) -> None:
        """Refuse a document under an id that belongs to another issuer, or to another kind of document."""
        hint = "publish it under an id of its own"
        if self.issuer != issuer:
            owner = f"published by {self.issuer}" if self.is_claimed else "claimed by nobody"
            raise NameTaken(f"versions of {self.base_id} are {owner}, not by {issuer}", at=at, hint=hint)
        if self.kind != kind:
            raise KindTaken(f"{self.base_id} is the id of a {self.kind}, not of a {kind}", at=at, hint=hint)

    def check_publication(self, ref: PackRef, issuer: str, kind: ArtifactKind, entry: int) -> None:
        """Refuse a publication at an entry of the log by another than the owner of the id at that time."""
        owned = self if self.tenant_at(entry) else NameState(base_id=self.base_id)
        owned.check_owner(issuer, kind, at=str(ref))
