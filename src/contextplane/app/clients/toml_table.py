"""Edits TOML as text: one table is appended or removed, and every other line stays.

No line is parsed here: `tomllib` reads the text before and after, and the caller compares the two.
"""

import re
import tomllib
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family

__all__ = ["TomlTextInvalid", "append_table", "parse_toml", "remove_table"]


class TomlTextInvalid(ContextPlaneError):
    """A configuration file of a client that is not TOML. It was not changed."""

    code: ClassVar[str] = "client_toml_invalid"
    family: ClassVar[Family] = "refused"


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a document."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TomlTextInvalid(
            f"it is not TOML: {error}", hint="repair the file, then run the same command again"
        ) from error


def append_table(text: str, path: tuple[str, str], values: Mapping[str, object]) -> str:
    """Return the text with a new table at its end, a blank line before it."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{path[0]}.{path[1]}]"]
    lines += [
        f"{key} = {msgspec.json.format(msgspec.json.encode(value), indent=0).decode()}" for key, value in values.items()
    ]
    before = text if not text or text.endswith("\n") else text + newline
    blank = newline if before.strip() else ""
    return before + blank + newline.join(lines) + newline


def remove_table(text: str, path: tuple[str, str]) -> str | None:
    """Return the text without a table and its sub-tables; None if only white space is left.

    Comments and blank lines at its end stay, because they may belong to the next table.
    """
    name = re.escape(path[1])
    own = re.compile(rf"\s*\[\s*{re.escape(path[0])}\s*\.\s*(?:{name}|\"{name}\"|'{name}')\s*(?:\..*)?\]\s*(?:#.*)?$")
    kept: list[str] = []
    removing = False
    held: list[str] = []
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if bare.startswith("["):
            starts = own.match(line.rstrip("\r\n")) is not None
            if starts and not removing and kept and not kept[-1].strip():
                kept.pop()
            kept += held
            held, removing = [], starts
        if not removing:
            kept.append(line)
        elif bare and not bare.startswith("#"):
            held = []
        else:
            held.append(line)
    left = "".join([*kept, *held])
    return left if left.strip() else None
