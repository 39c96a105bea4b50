"""A store that many threads use at once: one platform for each thread.

A platform holds one connection to the catalog, and a connection serves one thread at a time. `Store` opens a platform
for a thread when that thread first asks for one. It closes those of threads that ended when another thread asks for its
first one, and all of them when it is closed: a server with a thread for each request holds no more files than threads.
"""

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Self

from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings

__all__ = ["Store"]


class Store(AbstractContextManager["Store"]):
    """An open store. Any number of threads of one process may use it until it is closed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._threads = threading.local()
        self._lock = threading.Lock()
        self._opened: dict[threading.Thread, ExitStack] = {}
        self._closed = False

    def __enter__(self) -> Self:
        _ = self.platform  # a folder without a store is refused here, and not at the first use
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            self._close(list(self._opened))

    @property
    def platform(self) -> Platform:
        """The platform of the calling thread, opened by the first use and closed with the store.

        It may be closed earlier when the thread has ended: do not pass it to another thread.
        """
        platform: Platform | None = getattr(self._threads, "platform", None)
        with self._lock:
            if self._closed:
                raise RuntimeError("the store is closed")
            if platform is None:
                self._close([thread for thread in self._opened if not thread.is_alive()])
                opened = ExitStack()
                platform = opened.enter_context(open_platform(self.settings))
                self._opened[threading.current_thread()] = opened
                self._threads.platform = platform
        return platform

    @property
    def path(self) -> str:
        """The folder of the store, `.ctx`."""
        return self.platform.home.path

    @property
    def store_id(self) -> str:
        return self.platform.store_id

    def _close(self, threads: Iterable[threading.Thread]) -> None:
        """Close the platforms of threads: all of them, also if closing one fails."""
        with ExitStack() as stack:
            for thread in threads:
                stack.push(self._opened.pop(thread))
