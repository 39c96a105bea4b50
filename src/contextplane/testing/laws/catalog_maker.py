"""What the suites of the catalog share: how to make one, and values to put into it."""

from collections.abc import Callable
from threading import Thread

from contextplane.model.ids import Digest
from contextplane.ports.catalog import Catalog
from contextplane.ports.object_index import BLOB, Recorded
from contextplane.ports.streams import Event

__all__ = ["CatalogMaker", "a_digest", "a_record", "an_event", "together"]


class CatalogMaker:
    """Subclass it and say how to make an empty catalog, and how to open that same one once more."""

    def make(self) -> Catalog:
        raise NotImplementedError

    def again(self) -> Catalog:
        """Open the catalog that `make` made last a second time, as another process would."""
        raise NotImplementedError


def a_digest(n: int) -> Digest:
    return Digest.of(n.to_bytes(4))


def an_event(n: int) -> Event:
    return Event(kind="counted", body=b"%d" % n)


def a_record(n: int, *, size: int = 1, kind: str = BLOB, traced: bool = True) -> Recorded:
    return Recorded(digest=a_digest(n), kind=kind, size=size, traced=traced)


def together(work: Callable[[int], None], count: int) -> None:
    """Run `work` in threads, and raise what any of them raised."""
    errors: list[BaseException] = []

    def guarded(n: int) -> None:
        try:
            work(n)
        except BaseException as error:  # noqa: BLE001  raised again below, in the thread of the test
            errors.append(error)

    threads = [Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
