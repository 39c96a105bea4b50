"""The loop: bytes from standard input, answers to standard output, one message at a time, until the client leaves.

It reads and writes the descriptors themselves, and waits for them with a deadline: a client that never introduces
itself ends the process though it keeps its end open, and so does a signal, after the answer that is under way.
"""

import os
import select
import signal
import time
from collections.abc import Callable
from typing import ClassVar, Self

from contextplane.errors import ContextPlaneError
from contextplane.mcp.framing import Broken, Framer, Message, framed
from contextplane.mcp.log import Log
from contextplane.mcp.methods import Work
from contextplane.mcp.protocol import Session, unreadable

__all__ = ["ClientGone", "OutputLost", "serve"]

OK, FAILED = 0, 1
_IN, _OUT, _ERR = 0, 1, 2
_READ = 1 << 16
_LONGEST = 24 * 3_600_000  # milliseconds of one wait
_AWAKE = 1.0  # seconds after an answer in which the next request finds the store open


class ClientGone(ContextPlaneError):
    """The client has closed its end, or a signal asked the server to end. Nobody is there to be told."""

    code: ClassVar[str] = "mcp_client_gone"


class OutputLost(ContextPlaneError):
    """An answer could not be written, though the client is there: the device is full, or broken."""

    code: ClassVar[str] = "mcp_output_lost"


def serve(work: Work, *, log: Log, patience: float) -> int:
    """Serve until the client leaves; the exit status. `patience`: seconds in which it must introduce itself."""
    with _Wires(work.rest) as wires:
        try:
            return _serve(Session(work.methods), wires, log, time.monotonic() + patience)
        except ClientGone as gone:
            log("debug", str(gone))
            return OK
        except OutputLost as lost:
            log("error", str(lost))
            return FAILED
        finally:
            work.rest()


def _serve(session: Session, wires: "_Wires", log: Log, deadline: float) -> int:
    framer = Framer()
    while True:
        data = wires.read(None if session.begun else deadline)
        if data is None:
            log("error", "no initialize request came in time")
            return FAILED
        for found in framer.feed(data) if data else framer.end():
            _answer(found, session, log, wires, framer)
            if session.ended:
                return OK
        if not data:
            return OK


def _answer(found: Message | Broken, session: Session, log: Log, wires: "_Wires", framer: Framer) -> None:
    if isinstance(found, Broken):
        log("warn", found.why)
        answer: bytes | None = unreadable(found.why)
    else:
        log("debug", f"a message of {len(found.data)} bytes")
        answer = session.answer(found.data)
    if answer is not None:
        wires.write(framed(answer, headers=bool(framer.headers)))


class _Wires:
    """Standard input and output, and the signals that ask us to leave."""

    def __init__(self, rest: Callable[[], None]) -> None:
        self._rest = rest
        self._writing = False
        for wire in (_IN, _OUT, _ERR):
            _hold(wire)
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)

    def __enter__(self) -> Self:
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for signals in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signals, self._asked_to_end)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)

    def read(self, deadline: float | None) -> bytes | None:
        """The next bytes, empty at the end of the input; None when the deadline came first. It rests while it waits."""
        soon = time.monotonic() + _AWAKE
        if not self._ready(_IN, select.POLLIN, soon if deadline is None else min(soon, deadline)):
            self._rest()
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

    def _asked_to_end(self, *_: object) -> None:
        """The descriptor tells it to whoever waits; a client that does not read must not hold us either."""
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
                raise ClientGone(f"nobody reads the output: {error.strerror}") from error
            except OSError as error:
                raise OutputLost(f"the output cannot be written: {error.strerror}") from error
        self._writing = False

    def _ready(self, wire: int, event: int, deadline: float | None) -> bool:
        waiting = select.poll()
        waiting.register(wire, event)
        waiting.register(self._woken, select.POLLIN)
        left = None if deadline is None else min(max(0.0, deadline - time.monotonic()) * 1000, _LONGEST)
        ready = dict(waiting.poll(left))
        if self._woken in ready:
            raise ClientGone("a signal asked us to end")
        return bool(ready)


def _hold(wire: int) -> None:
    """Put nothing in the place of a closed stream: else the next file that is opened would be written to as if it."""
    try:
        os.fstat(wire)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
