"""A signer that is a command: one request on its standard input, one response on its standard output.

The request and the response are one line of JSON each, and the command runs once for each request. It gets no
passphrase and no private key from this program.
"""

import os
import re
import select
import selectors
import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import IO, TypeVar

import msgspec

from contextplane.adapters.signers.external import (
    SignerFailed,
    SignerNotFound,
    SignerResponseInvalid,
    SignerTimedOut,
    printable,
)
from contextplane.model.keys import PublicKey, PublicKeyInvalid
from contextplane.model.value import Document

__all__ = ["FORMAT", "CommandSigner"]

FORMAT = "contextplane.sign.v1"
"""The name of the protocol, in every request."""

_SECONDS = 60
_MAX_OUTPUT = 64 * 1024
_SIGNATURE_BYTES = 64
_DSSE = re.compile(rb"DSSEv1 (\d{1,3}) ")


class _KeyResponse(Document, frozen=True):
    public_key: str


class _SignResponse(Document, frozen=True):
    signature: str


_Response = TypeVar("_Response", _KeyResponse, _SignResponse)


class CommandSigner:
    """Signs by a command. Its public key is asked for once.

    `environment`: all variables of the command. `at` names it in errors.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, at: str, seconds: float = _SECONDS
    ) -> None:
        self._command = list(command)
        self._environment = dict(environment)
        self._at = at
        self._seconds = seconds

    @cached_property
    def public_key(self) -> PublicKey:
        raw = self._decode(self._ask({"operation": "public_key"}, _KeyResponse).public_key, "public_key")
        try:
            return PublicKey(raw)
        except PublicKeyInvalid as error:
            raise self._invalid(f"public_key: {error.message}") from error

    def sign(self, message: bytes) -> bytes:
        request = {
            "operation": "sign",
            "payload_type": _payload_type(message),
            "message": b64encode(message).decode(),
        }
        signature = self._decode(self._ask(request, _SignResponse).signature, "signature")
        if len(signature) != _SIGNATURE_BYTES:
            raise self._invalid(f"signature: {len(signature)} bytes instead of {_SIGNATURE_BYTES}")
        return signature

    def _ask(self, request: dict[str, str | None], kind: type[_Response]) -> _Response:
        line = self._run(msgspec.json.encode({"format": FORMAT, **request}) + b"\n").removesuffix(b"\n")
        if b"\n" in line:
            raise self._invalid("more than one line")
        try:
            return msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._invalid(printable(str(error).encode())) from error

    def _decode(self, text: str, field: str) -> bytes:
        try:
            data = b64decode(text, validate=True)
        except ValueError as error:
            raise self._invalid(f"{field}: not base64") from error
        if b64encode(data).decode() != text:
            raise self._invalid(f"{field}: not base64 in its one strict form")
        return data

    def _run(self, request: bytes) -> bytes:
        """Run the command on a request, and return its output; it must end with status 0 in time."""
        try:
            process = subprocess.Popen(  # noqa: S603  the person whose CTX_SIGNER it is chose it
                self._command,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a command"
            raise SignerNotFound(
                f"the program cannot be started: {reason}", at=self._at, hint="check the path in CTX_SIGNER"
            ) from error
        with process:
            try:
                output, errors = self._communicate(process, request)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            text = printable(errors)
            raise SignerFailed(
                f"it ended with status {process.returncode}" + (f": {text}" if text else ""),
                at=self._at,
                hint="run it by hand with the same request to see why",
            )
        return output

    def _communicate(self, process: "subprocess.Popen[bytes]", request: bytes) -> tuple[bytes, bytes]:
        """Write the request while reading both outputs, until the command ends or the time is up."""
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018  all are pipes
        deadline = time.monotonic() + self._seconds
        output, errors = bytearray(), bytearray()
        unwritten = memoryview(request)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdin, selectors.EVENT_WRITE)
            selector.register(process.stdout, selectors.EVENT_READ, output)
            selector.register(process.stderr, selectors.EVENT_READ, errors)
            while selector.get_map():
                left = deadline - time.monotonic()
                ready = selector.select(left) if left > 0 else []
                if not ready:
                    raise self._late()
                for key, _ in ready:
                    if key.fileobj is process.stdin:
                        unwritten = _write_some(process.stdin, unwritten)
                        is_done = not unwritten
                    else:
                        is_done = not _read_some(key.fd, key.data)
                    if is_done:
                        selector.unregister(key.fileobj)
                        if key.fileobj is process.stdin:
                            process.stdin.close()
                if len(output) > _MAX_OUTPUT:
                    raise self._invalid(f"more than {_MAX_OUTPUT // 1024} KiB")
        try:
            process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._late() from None
        return bytes(output), bytes(errors)

    def _late(self) -> SignerTimedOut:
        return SignerTimedOut(
            f"no response within {self._seconds:g} seconds", at=self._at, hint="run it by hand to see what it waits for"
        )

    def _invalid(self, problem: str) -> SignerResponseInvalid:
        return SignerResponseInvalid(
            f"its response is not valid: {problem}", at=self._at, hint="docs/signers.md describes the protocol"
        )


def _write_some(stream: IO[bytes], data: memoryview) -> memoryview:
    """Write what does not block, and return the rest: nothing, if the command reads no more."""
    with suppress(BrokenPipeError):
        return data[os.write(stream.fileno(), data[: select.PIPE_BUF]) :]
    return data[:0]


def _read_some(fd: int, kept: bytearray) -> bool:
    """Read what is there, and keep it up to the limit; return False at the end."""
    data = os.read(fd, _MAX_OUTPUT)
    if len(kept) <= _MAX_OUTPUT:
        kept += data
    return bool(data)


def _payload_type(message: bytes) -> str | None:
    """Return the payload type that a DSSE message begins with; None for any other message."""
    match = _DSSE.match(message)
    if match is None:
        return None
    return message[match.end() : match.end() + int(match[1])].decode(errors="replace")
