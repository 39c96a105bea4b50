"""What we need to find handoff packs without reading them. All of it is index, made again from their streams."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.model.handoff import HandoffPack, Status

__all__ = ["HandoffFilter", "HandoffIndex", "HandoffIndexView", "HandoffPage", "HandoffRow"]

_INDEXED = 16_384


class HandoffRow(Value, frozen=True):
    """The newest revision of a pack that was not deleted. `digest` is that of the revision's object."""

    id: HandoffId
    name: str | None
    title: str | None
    brief: str | None
    status: "Status"
    revision: int
    digest: Digest
    updated: Timestamp
    expires: Timestamp

    @property
    def searched(self) -> str:
        """The text that a query is looked for in, with its case folded: title, name and brief, one behind the other."""
        return f"{self.title or ''} {self.name or ''} {self.brief or ''}".casefold()

    @classmethod
    def of(cls, pack: "HandoffPack", digest: Digest) -> "HandoffRow":
        """The row of a revision. A title or brief of more than 16,384 characters is cut: the object has it whole."""
        return cls(
            id=pack.handoff_id,
            name=pack.name,
            title=pack.title[:_INDEXED] if pack.title is not None else None,
            brief=pack.brief[:_INDEXED] if pack.brief is not None else None,
            status=pack.status,
            revision=pack.revision,
            digest=digest,
            updated=pack.updated,
            expires=pack.expires,
        )


class HandoffFilter(Value, frozen=True):
    """Which packs are meant; what is None asks for nothing.

    `after` and `until` bound the deadline: after < expires <= until. `query` is a part of "title name brief", whatever
    its case.
    """

    status: "Status | None" = None
    after: Timestamp | None = None
    until: Timestamp | None = None
    query: str | None = None


class HandoffPage(Value, frozen=True):
    """Some of the packs that are meant, and how many there are in all."""

    rows: tuple[HandoffRow, ...]
    total: int


class HandoffIndexView(Protocol):
    """Reading it. The cost of a page grows with the page, not with the packs that are stored."""

    def row(self, handoff_id: HandoffId) -> HandoffRow | None: ...

    def named(self, name: str) -> tuple[HandoffRow, ...]:
        """Every pack of exactly that name, by id."""
        ...

    def page(self, wanted: HandoffFilter, *, limit: int | None = None, offset: int = 0) -> HandoffPage:
        """Latest `updated` first, then highest revision, then by id."""
        ...

    def ids(self) -> Iterator[HandoffId]:
        """Every pack, ascending."""
        ...


class HandoffIndex(HandoffIndexView, Protocol):
    """Writing it."""

    def put(self, row: HandoffRow) -> None:
        """Say what the newest revision of a pack is."""
        ...

    def remove(self, handoff_id: HandoffId) -> None: ...

    def clear(self) -> None: ...
