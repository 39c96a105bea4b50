"""What is wrong in a log, told to whoever packs it: which file it is in, and where its paths are looked for."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextplane.cli.screen import clean

if TYPE_CHECKING:
    from contextplane.errors import ContextPlaneError

__all__ = ["placed"]

_PATH = re.compile(r"/(?:inputs|outputs)/[0-9]+/path")


@contextmanager
def placed(log: str, root: str) -> Iterator[None]:
    """What is wrong in `log` is told with its name, unless that is standard input; its paths lie below `root`."""
    from contextplane.model.manifest import ManifestInvalid
    from contextplane.model.problems import DocumentInvalid
    from contextplane.ports.objects import SourceUnreadable
    from contextplane.ports.sources import OutsideRoot
    from contextplane.record.contents import UNUSABLE

    try:
        yield
    except (DocumentInvalid, ManifestInvalid, *UNUSABLE) as error:
        below = f"a path is looked for below {clean(os.path.abspath(root))}; --root FOLDER names another"
        if isinstance(error, SourceUnreadable | OutsideRoot):
            error.hint = below
        elif _names_a_path(error):
            error.hint = f"{error.hint}; {below}"
        if log != "-":
            error.under(f"{log}#" if error.at else log)
        raise


def _names_a_path(error: "ContextPlaneError") -> bool:
    """Whether the path of an input or of an output is among several things that are wrong."""
    listed = error.details.get("problems")
    return isinstance(listed, list) and any(_PATH.fullmatch(str(one["at"])) for one in listed)
