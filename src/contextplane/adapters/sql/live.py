"""What is needed of a connection for the length of one transaction."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from contextplane.model.ids import Digest, InvalidId
from contextplane.ports.catalog import CatalogCorrupt

__all__ = ["Answer", "Live", "digest_in"]


class Answer(Protocol):
    """The rows of a statement."""

    def fetchone(self) -> Any: ...  # noqa: ANN401  a row is what its statement says

    def __iter__(self) -> Iterator[Any]: ...


class Live(Protocol):
    """A connection within a transaction. Used after its end it fails, instead of writing on its own."""

    @property
    def way_out(self) -> str:
        """What to do when the database holds what we did not write."""
        ...

    def execute(self, sql: str, values: Sequence[object] = ()) -> Answer: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> object: ...

    def rows(self, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
        """The rows of an answer that may be long: never all of them in memory."""
        ...

    def one(self, sql: str, values: Sequence[object] = ()) -> Any:  # noqa: ANN401  as above
        """The row of a statement that always has exactly one."""
        ...


def digest_in(db: Live, text: object) -> Digest:
    """A digest that a row holds. A row that holds something else was not written by us."""
    try:
        return Digest(str(text))
    except InvalidId as error:
        raise CatalogCorrupt(f"a row holds no digest: {error.message}", hint=db.way_out) from error
