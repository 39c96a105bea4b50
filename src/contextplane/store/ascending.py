"""Two ascending lists, walked side by side in bounded memory."""

from collections.abc import Iterator

from contextplane.model.ids import Digest

__all__ = ["Ascending"]


class Ascending:
    """An ascending list of digests, consumed in step with another one."""

    def __init__(self, digests: Iterator[Digest]) -> None:
        self._digests = digests
        self._head = next(digests, None)

    def before(self, limit: Digest) -> Iterator[Digest]:
        """All that come before `limit`."""
        while self._head is not None and self._head < limit:
            yield self._head
            self._head = next(self._digests, None)

    def takes(self, digest: Digest) -> bool:
        """Whether `digest` is in the list; it must not be smaller than one asked for earlier."""
        for _ in self.before(digest):
            pass
        if self._head != digest:
            return False
        self._head = next(self._digests, None)
        return True

    def rest(self) -> Iterator[Digest]:
        if self._head is not None:
            yield self._head
            yield from self._digests
