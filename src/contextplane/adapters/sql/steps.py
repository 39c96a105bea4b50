"""The steps of a schema: numbered SQL files in a folder."""

import os
import re

from contextplane.model.value import Value

__all__ = ["Migration", "steps_in"]

_FILE = re.compile(r"(?P<number>[0-9]{4})_(?P<name>[a-z_]+)\.sql")


class Migration(Value, frozen=True):
    """One step of the schema."""

    number: int
    name: str
    path: str


def steps_in(folder: str) -> tuple[Migration, ...]:
    """All steps in order. Their numbers are 1, 2, 3 and so on."""
    matches = filter(None, map(_FILE.fullmatch, sorted(os.listdir(folder))))
    return tuple(
        Migration(number=int(one["number"]), name=one["name"], path=os.path.join(folder, one[0])) for one in matches
    )
