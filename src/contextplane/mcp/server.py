"""The server loop: messages from standard input, answers to standard output, one at a time.

It reads and writes the descriptors themselves, and waits for them with a deadline. The process ends when the client
leaves, when a client does not introduce itself in time although it keeps its end open, and on a signal, after the
answer that is being written.
"""

import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar, Self

from contextplane.errors import ContextPlaneError
from contextplane.mcp.frames import BadFrame, Framer, Message, frame_message
from contextplane.mcp.log import Log
from contextplane.mcp.methods import Methods
from contextplane.mcp.protocol import Session, is_cancelled, unreadable

__all__ = ["ClientGone", "OutputLost", "serve"]

OK, FAILED = 0, 1
_IN, _OUT, _ERR = 0, 1, 2
_READ = 1 << 16
_LONGEST = 24 * 3_600_000  # milliseconds of one wait
_AHEAD, _AHEAD_READS = 1 << 20, 16  # bytes, and reads, beyond the current request
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
    inbox = _Inbox(streams)
    while not session.ended:
        if not inbox.wait(None if session.begun else deadline):
            log("error", "no initialize request came in time")
            return FAILED
        frame = inbox.pop()
        if frame is None:
            return OK
        answer = _answer(frame, session, log, inbox)
        if answer is not None:
            streams.write(frame_message(answer, headers=inbox.has_headers))
    return OK


def _answer(frame: Message | BadFrame, session: Session, log: Log, inbox: "_Inbox") -> bytes | None:
    """The answer to a frame, none if it is cancelled by then.

    A request that is cancelled before its turn is not carried out.
    """
    if isinstance(frame, BadFrame):
        log("warn", frame.why)
        return unreadable(frame.why)
    log("debug", f"a message of {len(frame.data)} bytes")
    if is_cancelled(frame.data, inbox.look_ahead()):
        return None
    answer = session.answer(frame.data)
    return None if answer is None or is_cancelled(frame.data, inbox.look_ahead()) else answer


class _Inbox:
    """The messages that came and were not answered yet.

    The client may cancel a request, so what it sent after the request is read before the answer goes out.
    """

    def __init__(self, streams: "_StandardStreams") -> None:
        self._streams = streams
        self._framer = Framer()
        self._frames: deque[Message | BadFrame] = deque()
        self._waiting = 0  # bytes of the frames
        self._ended = False

    @property
    def has_headers(self) -> bool:
        return bool(self._framer.headers)

    def wait(self, deadline: float | None) -> bool:
        """Wait for a frame, or for the end of the input; return False when the deadline came first."""
        while not self._frames and not self._ended:
            data = self._streams.read(deadline)
            if data is None:
                return False
            self._take(data)
        return True

    def pop(self) -> Message | BadFrame | None:
        """The next frame; None at the end of the input."""
        if not self._frames:
            return None
        frame = self._frames.popleft()
        self._waiting -= _size(frame)
        return frame

    def look_ahead(self) -> list[bytes]:
        """The messages behind the current one that are there already, up to a limit."""
        for _ in range(_AHEAD_READS):
            if self._ended or self._waiting > _AHEAD or (data := self._streams.read_now()) is None:
                break
            self._take(data)
        return [frame.data for frame in self._frames if isinstance(frame, Message)]

    def _take(self, data: bytes) -> None:
        self._ended = not data
        for frame in self._framer.feed(data) if data else self._framer.end():
            self._frames.append(frame)
            self._waiting += _size(frame)


def _size(frame: Message | BadFrame) -> int:
    return len(frame.data) if isinstance(frame, Message) else 0


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

    def read_now(self) -> bytes | None:
        """The bytes that are there already, empty at the end of the input; None if there are none."""
        if not self._ready(_IN, select.POLLIN, 0.0):
            return None
        try:
            return os.read(_IN, _READ)
        except BlockingIOError:
            return None
        except OSError:
            return b""

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
