"""Values that the store keeps and returns: objects, events, and the rows of the indexes."""

import re
from typing import TYPE_CHECKING, ClassVar, Literal

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.model.handoff import HandoffPack, Status

__all__ = [
    "BLOB",
    "MAX_INLINE",
    "ROOT",
    "Condition",
    "Event",
    "HandoffFilter",
    "HandoffPage",
    "HandoffRow",
    "Hit",
    "NothingToFind",
    "PackFilter",
    "PackRow",
    "Recorded",
    "Stored",
    "StoredEvent",
    "Stray",
    "Survives",
    "Table",
    "Tally",
    "Term",
    "TextPart",
    "terms",
]


class Stored(Value, frozen=True):
    """What was put: its name and how many bytes it has."""

    digest: Digest
    size: int


class Condition(Value, frozen=True):
    """What re-hashing one object showed. `why` is said only of what is not whole.

    `corrupt` is not what its name says. Of what is `unreadable` nobody knows: the storage would not hand it out.
    """

    state: Literal["whole", "corrupt", "missing", "unreadable"]
    size: int = 0
    why: str = ""


class Stray(Value, frozen=True):
    """Something in the store's place that is no object: named, never touched, except our own leftovers by `sweep`.

    An `obstacle` stands where objects should go, so that they cannot.
    """

    name: str
    what: Literal["leftover", "foreign", "obstacle"]


MAX_INLINE = 64 * 1024
"""No larger value is ever stored in the database; it is an object, and the database holds its digest."""


class Event(Value, frozen=True):
    """Something that happened: its kind, and its canonical JSON body of at most 64 KiB."""

    kind: str
    body: bytes


class StoredEvent(Value, frozen=True):
    """An event at its place. Sequence numbers of a stream start at 1 and have no gaps."""

    stream: str
    seq: int
    kind: str
    body: bytes


Survives = Literal["crash", "power_cut"]
"""What a commit outlives: a killed process, or also a machine that loses its power."""


class Table(Value, frozen=True):
    """One table of the catalog: `truth` is lost when it is lost, an `index` is made again by `ctx fsck --rebuild`."""

    name: str
    role: Literal["truth", "index"]
    note: str


BLOB = "blob"
"""The kind of an object that is only bytes to us."""


ROOT = "root"
"""Among the roles in which something is wanted: a root names it."""


class Recorded(Value, frozen=True):
    """What the index knows of an object. `traced`: the objects that it refers to are recorded as its edges."""

    digest: Digest
    kind: str
    size: int
    traced: bool


class Tally(Value, frozen=True):
    """How many objects of one kind are recorded, and their bytes. Kept up to date by every write, never counted."""

    kind: str
    objects: int
    size: int


class PackRow(Value, frozen=True):
    """One line of the list. `problem` is said of a pack whose manifest could not be read when it was indexed."""

    digest: Digest
    created: Timestamp
    packed: Timestamp
    model: str = ""
    steps: int = 0
    parent: Digest | None = None
    tools: tuple[str, ...] = ()
    problem: str = ""


class PackFilter(Value, frozen=True):
    """Which packs are meant; what is None asks for nothing."""

    since: Timestamp | None = None
    model: str | None = None
    tool: str | None = None
    parent: Digest | None = None


class TextPart(Value, frozen=True):
    """Some text of a pack, at most 16 KiB, and where in it that stands: `system_prompt`, `steps/3`, ..."""

    part: str
    text: str


class Hit(Value, frozen=True):
    """A place where the words were found. The words stand between U+0002 and U+0003 in the snippet."""

    pack: Digest
    part: str
    snippet: str


_INDEXED = 16_384


class HandoffRow(Value, frozen=True):
    """The newest revision of a pack that was not deleted. `digest` is that of the revision's object."""

    id: HandoffId
    name: str | None
    title: str | None
    brief: str | None
    status: "Status"
    revision: int
    digest: Digest
    updated: Timestamp
    expires: Timestamp

    @property
    def searched(self) -> str:
        """The text that a query is looked for in, with its case folded: title, name and brief, one behind the other."""
        return f"{self.title or ''} {self.name or ''} {self.brief or ''}".casefold()

    @classmethod
    def of(cls, pack: "HandoffPack", digest: Digest) -> "HandoffRow":
        """The row of a revision. A title or brief of more than 16,384 characters is cut: the object has it whole."""
        return cls(
            id=pack.handoff_id,
            name=pack.name,
            title=pack.title[:_INDEXED] if pack.title is not None else None,
            brief=pack.brief[:_INDEXED] if pack.brief is not None else None,
            status=pack.status,
            revision=pack.revision,
            digest=digest,
            updated=pack.updated,
            expires=pack.expires,
        )


class HandoffFilter(Value, frozen=True):
    """Which packs are meant; what is None asks for nothing.

    `after` and `until` bound the deadline: after < expires <= until. `query` is a part of "title name brief", whatever
    its case.
    """

    status: "Status | None" = None
    after: Timestamp | None = None
    until: Timestamp | None = None
    query: str | None = None


class HandoffPage(Value, frozen=True):
    """Some of the packs that are meant, and how many there are in all."""

    rows: tuple[HandoffRow, ...]
    total: int


_TERM = r'"([^"]*)"(\*?)|(\S+)'  # compiled by who searches: every verb loads this module


class NothingToFind(ContextPlaneError):
    """A search for no word at all: nothing was typed, or only punctuation, which is not indexed."""

    code: ClassVar[str] = "search_text_empty"
    family: ClassVar[Family] = "usage"


class Term(Value, frozen=True):
    """Words that follow each other, at least one. `prefix`: the last one may go on."""

    text: str
    prefix: bool = False


def terms(text: str) -> tuple[Term, ...]:
    """Everything that must be found. What has no letter, digit or underscore in it is passed over."""
    terms = []
    for match in re.finditer(_TERM, text.replace("\0", " ")):
        quoted, star, plain = match.groups()
        words = plain.rstrip("*") if plain else quoted
        if any(word.isalnum() or word == "_" for word in words):
            terms.append(Term(text=words, prefix=bool(star) or bool(plain and plain.endswith("*"))))
    if not terms:
        raise NothingToFind("no word to search for", hint="punctuation alone is not indexed; write letters or digits")
    return tuple(terms)
