"""What a log could not say, a recording cannot either: checked call by call, before anything is written."""

import os
from collections.abc import Iterable
from typing import ClassVar, Self

from contextplane.model.canonical import canonical
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.pointer import pointer
from contextplane.model.problems import DocumentInvalid, Problem

__all__ = ["Checking", "RecordingRefused"]

_PARAMETERS = "/steps/0/parameters"


class RecordingRefused(DocumentInvalid):
    """Something that no execution pack can hold was about to be recorded: a step without a tool, for example."""

    code: ClassVar[str] = "recording_refused"
    way_out: ClassVar[str] = "nothing of this call was recorded; mend what is named"
    whole_list: ClassVar[str] = "its `problems` lists them all"


class Checking:
    """Notes what is wrong with the arguments of one call; leaving its block tells all of it, with its places."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None and self._problems:
            raise RecordingRefused(tuple(self._problems))

    def text(self, value: object, at: str, *, required: bool = False) -> None:
        if type(value) is not str:
            self._note(at, f"must be text, not {type(value).__name__}")
        elif required and not value:
            self._note(at, "is missing")
        elif not _is_unicode(value):
            self._note(at, "is not Unicode text")

    def flag(self, value: object, at: str) -> None:
        if type(value) is not bool:
            self._note(at, f"must be true or false, not {type(value).__name__}")

    def free(self, value: object, at: str) -> None:
        """An object with any content that JSON has, or nothing."""
        if value is None:
            return
        if type(value) is not dict:
            self._note(at, f"must be an object, not {type(value).__name__}")
            return
        try:
            canonical({"steps": [{"parameters": value}]})  # as deep as it will stand in the manifest
        except JsonRefused as error:
            self._note(at + (error.at or "").removeprefix(_PARAMETERS), error.message)

    def versions(self, value: object, at: str) -> None:
        self.free(value, at)
        for tool, version in value.items() if type(value) is dict else ():
            self.text(version, at + pointer([tool]))

    def content(self, value: object, at: str, *, required: bool = False) -> None:
        if isinstance(value, str | bytes | bytearray | memoryview):
            if required and not value:
                self._note(at, "is missing")
            elif isinstance(value, str) and not _is_unicode(value):
                self._note(at, "is not Unicode text")
        elif not isinstance(value, os.PathLike | Iterable):
            self._note(at, f"must be text, bytes, a path or chunks of bytes, not {type(value).__name__}")

    def _note(self, at: str, message: str) -> None:
        self._problems.append(Problem(at=at, message=message))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
