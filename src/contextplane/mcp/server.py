"""The server loop: messages from standard input, answers to standard output, one at a time.

It reads and writes the descriptors themselves, and waits for them with a deadline. The process ends when the client
leaves, when a client does not introduce itself in time although it keeps its end open, and on a signal, after the
answer that is being written.
"""

import os
import select
import signal
import time
from collections.abc import Callable
from typing import ClassVar, Self

from contextplane.errors import ContextPlaneError
from contextplane.mcp.frames import BadFrame, Framer, Message, frame_message
from contextplane.mcp.log import Log
from contextplane.mcp.methods import Methods
from contextplane.mcp.protocol import Session, unreadable

__all__ = ["ClientGone", "OutputLost", "serve"]

OK, FAILED = 0, 1
_IN, _OUT, _ERR = 0, 1, 2
_READ = 1 << 16
_LONGEST = 24 * 3_600_000  # milliseconds of one wait
_AWAKE = 1.0  # seconds after an answer in which the store stays open for the next request


class ClientGone(ContextPlaneError):
    """The client has closed its end, or a signal asked the server to end. There is no one left to answer."""

    code: ClassVar[str] = "mcp_client_gone"


class OutputLost(ContextPlaneError):
    """An answer could not be written, though the client is there: the device is full, or broken."""

    code: ClassVar[str] = "mcp_output_lost"


def serve(methods: Methods, *, log: Log, patience: float) -> int:
    """Serve until the client leaves; return the exit status.

    `patience`: the seconds in which the client must introduce itself.
    """
    with _StandardStreams(methods.close_store) as streams:
        try:
            return _serve(Session(methods.by_name), streams, log, time.monotonic() + patience)
        except ClientGone as gone:
            log("debug", str(gone))
            return OK
        except OutputLost as lost:
            log("error", str(lost))
            return FAILED
        finally:
            methods.close_store()


def _serve(session: Session, streams: "_StandardStreams", log: Log, deadline: float) -> int:
    framer = Framer()
    while True:
        data = streams.read(None if session.begun else deadline)
        if data is None:
            log("error", "no initialize request came in time")
            return FAILED
        for frame in framer.feed(data) if data else framer.end():
            _answer(frame, session, log, streams, framer)
            if session.ended:
                return OK
        if not data:
            return OK


def _answer(frame: Message | BadFrame, session: Session, log: Log, streams: "_StandardStreams", framer: Framer) -> None:
    if isinstance(frame, BadFrame):
        log("warn", frame.why)
        answer: bytes | None = unreadable(frame.why)
    else:
        log("debug", f"a message of {len(frame.data)} bytes")
        answer = session.answer(frame.data)
    if answer is not None:
        streams.write(frame_message(answer, headers=bool(framer.headers)))


class _StandardStreams:
    """Standard input and output, and the signals that end the server.

    `on_idle` is called when no request comes for a while.
    """

    def __init__(self, on_idle: Callable[[], None]) -> None:
        self._on_idle = on_idle
        self._writing = False
        for descriptor in (_IN, _OUT, _ERR):
            _fill_closed(descriptor)
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)

    def __enter__(self) -> Self:
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for signals in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signals, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)

    def read(self, deadline: float | None) -> bytes | None:
        """The next bytes, empty at the end of the input; None when the deadline came first."""
        soon = time.monotonic() + _AWAKE
        if not self._ready(_IN, select.POLLIN, soon if deadline is None else min(soon, deadline)):
            self._on_idle()
        while deadline is None or time.monotonic() < deadline:
            if not self._ready(_IN, select.POLLIN, deadline):
                continue
            try:
                return os.read(_IN, _READ)
            except BlockingIOError:
                continue
            except OSError:
                return b""
        return None

    def _on_signal(self, *_: object) -> None:
        """End a write to a client that does not read. A wait is ended by the wakeup descriptor instead."""
        if self._writing:
            raise ClientGone("a signal asked us to end")

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        self._writing = True
        while view:
            self._ready(_OUT, select.POLLOUT, None)
            try:
                view = view[os.write(_OUT, view) :]
            except BlockingIOError:
                continue
            except ConnectionError as error:
                raise ClientGone(f"broken pipe: {error.strerror}") from error
            except OSError as error:
                raise OutputLost(f"the output cannot be written: {error.strerror}") from error
        self._writing = False

    def _ready(self, descriptor: int, event: int, deadline: float | None) -> bool:
        poll = select.poll()
        poll.register(descriptor, event)
        poll.register(self._woken, select.POLLIN)
        left = None if deadline is None else min(max(0.0, deadline - time.monotonic()) * 1000, _LONGEST)
        ready = dict(poll.poll(left))
        if self._woken in ready:
            raise ClientGone("a signal asked us to end")
        return bool(ready)


def _fill_closed(descriptor: int) -> None:
    """Open /dev/null in place of a closed stream, so that no file opened later is taken for it."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
