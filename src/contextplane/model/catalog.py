"""Values that the catalog and the object store keep and return: objects, events, rows of indexes.

The text query at the end is read the same way by every index.
"""

import re
from typing import TYPE_CHECKING, ClassVar, Literal

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.timestamp import Timestamp
from contextplane.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contextplane.model.handoff import HandoffPack, Status

__all__ = [
    "BLOB",
    "MAX_INLINE",
    "ROOT",
    "Durability",
    "Event",
    "HandoffFilter",
    "HandoffPage",
    "HandoffRow",
    "IndexedObject",
    "NothingToFind",
    "ObjectCondition",
    "PackFilter",
    "PackRow",
    "SearchHit",
    "SearchTerm",
    "StoredEvent",
    "StoredObject",
    "Stray",
    "Table",
    "Tally",
    "TextPart",
    "search_terms",
]


# --- Objects ---


class StoredObject(Value, frozen=True):
    """An object that was put: its digest and its size in bytes."""

    digest: Digest
    size: int


class ObjectCondition(Value, frozen=True):
    """The result of re-hashing one object. `why` is empty when it is whole.

    `corrupt`: its bytes do not match its digest. `unreadable`: the storage did not return them, so nothing is known.
    """

    state: Literal["whole", "corrupt", "missing", "unreadable"]
    size: int = 0
    why: str = ""


class Stray(Value, frozen=True):
    """Something among the objects that is not an object. `sweep` removes only our own leftovers.

    An `obstacle` occupies the place of an object, so that it cannot be stored.
    """

    name: str
    what: Literal["leftover", "foreign", "obstacle"]


# --- Events and the database ---

MAX_INLINE = 64 * 1024
"""No larger value is ever stored in the database; it is an object, and the database holds its digest."""


class Event(Value, frozen=True):
    """Something that happened: its kind, and its canonical JSON body of at most 64 KiB."""

    kind: str
    body: bytes


class StoredEvent(Value, frozen=True):
    """An event at its place in a stream. Sequence numbers start at 1 and have no gaps."""

    stream: str
    seq: int
    kind: str
    body: bytes


Durability = Literal["crash", "power_cut"]
"""What a commit survives: a killed process, or also a power cut of the machine."""


class Table(Value, frozen=True):
    """One table of the catalog. `ctx fsck --rebuild` restores an `index`; `truth` cannot be restored."""

    name: str
    role: Literal["truth", "index"]
    note: str


# --- The index of objects ---

BLOB = "blob"
"""The kind of an object whose content is opaque to us."""


ROOT = "root"
"""The role, among those of references to an object, of a root that points at it."""


class IndexedObject(Value, frozen=True):
    """An object in the index. `traced`: the objects that it refers to are recorded as its edges."""

    digest: Digest
    kind: str
    size: int
    traced: bool


class Tally(Value, frozen=True):
    """The number of recorded objects of one kind, and their bytes.

    Every write keeps it up to date; reading it counts nothing.
    """

    kind: str
    objects: int
    size: int


# --- The index of execution packs ---


class PackRow(Value, frozen=True):
    """One execution pack in the list. `problem`: why its manifest could not be read when it was indexed."""

    digest: Digest
    created: Timestamp
    packed: Timestamp
    model: str = ""
    steps: int = 0
    parent: Digest | None = None
    tools: tuple[str, ...] = ()
    problem: str = ""


class PackFilter(Value, frozen=True):
    """Which execution packs are listed. A field that is None does not filter."""

    since: Timestamp | None = None
    model: str | None = None
    tool: str | None = None
    parent: Digest | None = None


class TextPart(Value, frozen=True):
    """A text of a pack, at most 16 KiB, and its part: `system_prompt`, `steps/3`, ..."""

    part: str
    text: str


class SearchHit(Value, frozen=True):
    """A place where the words were found. U+0002 and U+0003 enclose them in the snippet."""

    pack: Digest
    part: str
    snippet: str


# --- The index of handoff packs ---

_MAX_INDEXED_TEXT = 16_384


class HandoffRow(Value, frozen=True):
    """The newest revision of a handoff pack that was not deleted. `digest`: the revision's object."""

    id: HandoffId
    name: str | None
    title: str | None
    brief: str | None
    status: "Status"
    revision: int
    digest: Digest
    updated: Timestamp
    expires: Timestamp

    def searched_text(self, tags: "Sequence[str]" = ()) -> str:
        """The text that a query is searched in: title, name, brief and tags, joined, with their case folded."""
        words = " ".join(tags)[:_MAX_INDEXED_TEXT]
        return " ".join([self.title or "", self.name or "", self.brief or "", *([words] if words else [])]).casefold()

    @classmethod
    def of(cls, pack: "HandoffPack", digest: Digest) -> "HandoffRow":
        """The row of a revision. A long title or brief is cut: the object has it whole."""
        return cls(
            id=pack.handoff_id,
            name=pack.name,
            title=pack.title[:_MAX_INDEXED_TEXT] if pack.title is not None else None,
            brief=pack.brief[:_MAX_INDEXED_TEXT] if pack.brief is not None else None,
            status=pack.status,
            revision=pack.revision,
            digest=digest,
            updated=pack.updated,
            expires=pack.expires,
        )


class HandoffFilter(Value, frozen=True):
    """Which handoff packs are listed. A field that is None does not filter.

    `after` and `until` bound the deadline: after < expires <= until. `query` is a part of "title name brief tags"; case
    does not matter.
    """

    status: "Status | None" = None
    after: Timestamp | None = None
    until: Timestamp | None = None
    query: str | None = None


class HandoffPage(Value, frozen=True):
    """Some of the matching packs, and the number of all of them."""

    rows: tuple[HandoffRow, ...]
    total: int


# --- Text queries ---

_TERM_PATTERN = r'"([^"]*)"(\*?)|(\S+)'  # compiled by a search: every verb loads this module


class NothingToFind(ContextPlaneError):
    """A search for no word at all: nothing was typed, or only punctuation, which is not indexed."""

    code: ClassVar[str] = "search_text_empty"
    family: ClassVar[Family] = "usage"


class SearchTerm(Value, frozen=True):
    """One or more words that follow each other. `prefix`: the last one may be the beginning of a word."""

    text: str
    prefix: bool = False


def search_terms(text: str) -> tuple[SearchTerm, ...]:
    """Parse a text query: every term must be found.

    Words, "several words in quotes", and with a `*` behind it the beginning of a word. A word without a letter, digit
    or underscore is ignored. `NothingToFind` when no term is left; nothing else is an error.
    """
    terms = []
    for match in re.finditer(_TERM_PATTERN, text.replace("\0", " ")):
        quoted, star, plain = match.groups()
        words = plain.rstrip("*") if plain else quoted
        if any(word.isalnum() or word == "_" for word in words):
            terms.append(SearchTerm(text=words, prefix=bool(star) or bool(plain and plain.endswith("*"))))
    if not terms:
        raise NothingToFind("no word to search for", hint="punctuation alone is not indexed; write letters or digits")
    return tuple(terms)
