"""Whether everything that a recording consists of is there and whole. Of what is not, no pack is made."""

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from contextplane.errors import Family
from contextplane.model.ids import Digest
from contextplane.model.manifest import Manifest
from contextplane.model.parts import contents_of
from contextplane.model.problems import DocumentInvalid, Problem
from contextplane.ports.objects import Condition

__all__ = ["Part", "RecordingDamaged", "RecordingIncomplete", "parts_of", "refuse_unless_whole"]

Part = tuple[str, Digest]
"""What a reference calls something that a run consists of, `steps/3` for example, and the object that it is.

`events/2` is an event that was too large for the catalog.
"""

_SAID = {"corrupt": "was tampered with", "missing": "is missing", "unreadable": "is unreadable"}
_WAY_OUT = (
    "no pack was made, and nothing of the recording is collected: restore these objects from a copy, or pack or import"
    " a run that has the same contents, then finalize it again"
)


class RecordingIncomplete(DocumentInvalid):
    """A content of a recording, or an event, is gone or cannot be read. `details.problems` lists all of them."""

    code: ClassVar[str] = "recording_incomplete"
    way_out: ClassVar[str] = _WAY_OUT


class RecordingDamaged(DocumentInvalid):
    """A content of a recording, or an event, is not what it was. `details.problems` lists all that is not whole."""

    code: ClassVar[str] = "recording_damaged"
    family: ClassVar[Family] = "untrusted"
    way_out: ClassVar[str] = _WAY_OUT


def parts_of(manifest: Manifest) -> Iterator[Part]:
    """Every object that a recorded run consists of, and the pack that it is a fork of."""
    named = (*contents_of(manifest), ("parent", manifest.parent))
    return ((part, Digest.parse(text)) for part, text in named if text)


def refuse_unless_whole(parts: Iterable[Part], look: Callable[[Digest], Condition]) -> None:
    """Refuse with everything that is not whole. Each object is looked at once, however often it stands there."""
    seen: dict[Digest, Condition] = {}
    broken = []
    for at, digest in parts:
        condition = seen[digest] if digest in seen else seen.setdefault(digest, look(digest))
        if condition.state != "whole":
            broken.append((condition, Problem(at=at, message=f"{_SAID[condition.state]}: {digest}")))
    if broken:
        damaged = any(condition.state == "corrupt" for condition, _ in broken)
        raise (RecordingDamaged if damaged else RecordingIncomplete)(tuple(problem for _, problem in broken))
