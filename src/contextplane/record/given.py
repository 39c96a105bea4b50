"""The contents that a program hands over while it runs: text, bytes, the file at a path, or chunks as they come."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from contextplane.errors import ContextPlaneError
from contextplane.model.problems import Problem
from contextplane.policy.secrets import SecretScan, secret_shapes
from contextplane.ports.objects import Batch, Stored
from contextplane.ports.sources import Sources
from contextplane.record.checking import RecordingRefused
from contextplane.record.contents import PutContent

__all__ = ["Given", "put_given"]

Given: TypeAlias = "str | bytes | bytearray | memoryview | os.PathLike[str] | Iterable[bytes]"
"""A path is a `Path`: a text is always the content itself. Files and chunks are streamed, never wholly in memory."""


def put_given(content: Given, batch: Batch, sources: Sources, at: str) -> PutContent:
    """Put a content. `at`: where it will stand in the manifest, for whoever is told that it cannot."""
    if isinstance(content, str | bytes | bytearray | memoryview):
        data = content.encode() if isinstance(content, str) else bytes(content)
        return PutContent(stored=Stored(digest=batch.put(data), size=len(data)), suspects=secret_shapes(data))
    scan = SecretScan()
    chunks = _file(content, sources, at) if isinstance(content, os.PathLike) else _checked(content, at)
    return PutContent(stored=batch.put_stream(_seen(chunks, scan)), suspects=scan.kinds)


def _seen(chunks: Iterator[bytes], scan: SecretScan) -> Iterator[bytes]:
    for chunk in chunks:
        scan.see(chunk)
        yield chunk


def _file(path: "os.PathLike[str]", sources: Sources, at: str) -> Iterator[bytes]:
    try:
        yield from sources.chunks(str(Path(path).absolute()))
    except ContextPlaneError as error:
        error.at = f"{at} ({os.fspath(path)})"
        raise


def _checked(chunks: Iterable[bytes], at: str) -> Iterator[bytes]:
    for chunk in chunks:
        if not isinstance(chunk, bytes | bytearray | memoryview):
            raise RecordingRefused(
                (Problem(at=at, message=f"must come in chunks of bytes, not {type(chunk).__name__}"),)
            )
        yield bytes(chunk)
