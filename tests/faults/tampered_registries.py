"""A registry that is edited, case by case, and what its readers say then.

`TamperedRegistry.judge` makes one edit in a fresh copy and returns what is wrong with the outcome:

- `ctx verify --registry` finds the edit and names it with a code. If it does not, the edit is of something that no
  decision is based on. Then every reader answers as before, and `ctx fsck` reports it or `ctx fsck --rebuild` mends it.
- Every reader answers as before, or refuses because the store is damaged or untrusted. No answer is another. An answer
  may say besides that no run gets what is pinned, with the code of the refusal.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.catalog_rows import CatalogRows, open_rows
from tests.support.registry_history import READS, write_history
from tests.support.registry_tampering import (
    FileEdit,
    RowEdit,
    StoreEdit,
    Tables,
    file_edits,
    read_tables,
    row_edits,
    store_edits,
    store_files,
)
from tests.support.registry_team import Team, error_code
from tests.support.samples import PROFILE
from tests.support.store_copies import StoreCopies
from tests.surfaces.commands import Result

__all__ = ["SOME_READS", "Edit", "TamperedRegistry", "group_of"]

Edit = RowEdit | FileEdit | StoreEdit

SOME_READS = (READS[0], READS[1], READS[4], READS[7])
"""The commands that read in every run: all versions, all drafts, the pinned version, and a run with it."""

AUDIT = ":verify --registry --json"
REFUSED = (1, 11, 14)
"""Statuses of a reader that refuses: the catalog is damaged, untrusted, or of another store."""

OBJECT_MISSING = "object_not_found"
"""The code of a reader that refuses because the file of an object is missing."""

REFUSED_PINS = {"unserved", "unserved_in"}
"""The fields in which an answer says that no run gets what is pinned, and why."""

UNREAD_TABLES = {"catalog_table"}
"""It says what each table is for, to people who open the database."""

UNREAD_FILES = {".gitignore", "catalog.lock", "objects/.lock"}
"""Files without content that anything depends on."""


def group_of(edit: Edit) -> str:
    """What an edit is about: the tests run one group at a time."""
    match edit:
        case StoreEdit():
            return "whole stores"
        case FileEdit(place=place):
            return "objects" if place.startswith("objects/") else "other files"
        case RowEdit(table="event", place=place):
            stream = place.removeprefix("event ")
            for prefix in ("registry/log", "registry/checkpoints", "tree/", "trust/"):
                if stream.startswith(prefix):
                    return f"stream {prefix.rstrip('/')}"
            return "streams of subjects"
        case _:
            return f"table {edit.table}"


class TamperedRegistry:
    """A registry with a long history, the copies of its chapters, and the edits that are made to it."""

    def __init__(self, folder: Path, database_url: str | None = None) -> None:
        self.team = Team(folder / "store", database_url=database_url)
        self.team.folder.mkdir()
        self._copies = StoreCopies(self.team)
        self._tables: list[Tables] = []
        self._files: list[Mapping[str, bytes]] = []
        write_history(self.team, self._keep_chapter)
        self.reads = READS if PROFILE == "laws" else SOME_READS
        self._answers = {read: self._answer(read) for read in self.reads}
        self._last = str(len(self._tables))
        self._copies.keep("last")

    @property
    def rows(self) -> CatalogRows:
        return open_rows(self.team.store, self.team.database_url)

    def edits(self) -> Iterator[Edit]:
        """Every edit of every row, every file, and the whole store."""
        yield from row_edits(self._tables[-1], self._tables[:-1])
        yield from file_edits(self._files[-1], self._files[:-1])
        if self.team.database_url is None:
            copies = [
                self._copies.path(str(n + 1)) / self.team.folder.name / ".ctx" for n in range(len(self._files) - 1)
            ]
            yield from store_edits(self.team.store, copies)

    def judge(self, edit: Edit) -> list[str]:
        """Make an edit; return what is wrong with what the commands say after it."""
        self._copies.put_back("last")
        if isinstance(edit, RowEdit):
            edit.apply(self.rows)
        else:
            edit.edit(self.team.store)
        audit = self.team.run(AUDIT)
        wrong = [f"{read}: {why}" for read in self.reads if (why := self._misread(read))]
        if audit.status:
            if not _problem_codes(audit):
                wrong.append(f"verify --registry names nothing: {audit.err[-200:]}")
        elif not self._is_harmless(edit):
            wrong.append("verify --registry finds nothing, nor does fsck, and a rebuild leaves it")
        return wrong

    def _keep_chapter(self, number: int) -> None:
        self._copies.keep(str(number))
        self._tables.append(read_tables(self.rows))
        self._files.append(store_files(self.team.store))

    def _answer(self, read: str) -> bytes:
        result = self.team.run(f":{read}")
        assert result.status == 0, result
        return result.raw

    def _misread(self, read: str) -> str:
        """Why an answer is not acceptable; an empty text if it is the same, or a refusal."""
        result = self.team.run(f":{read}")
        if "Traceback" in result.err:
            return result.err[-300:]
        if result.raw and _says_the_same(self._answers[read], result.raw):
            return ""
        if not result.status:
            return "another answer"
        refused = result.status in REFUSED or error_code(result) == OBJECT_MISSING
        return "" if refused else f"status {result.status}, {error_code(result)}"

    def _is_harmless(self, edit: Edit) -> bool:
        """Whether an edit that no audit finds is of something unread, or is reported by fsck, or mended by it."""
        match edit:
            case RowEdit(table=table) if table in UNREAD_TABLES:
                return True
            case FileEdit(place=place) if place in UNREAD_FILES:
                return True
            case RowEdit(way="doubled by name", table="root", place=place) if "/draft/" not in place:
                return True  # one more name that keeps an object, and that nothing asks for
            case RowEdit(way="doubled by stream", place=place) if place.startswith("event trust/"):
                return True  # one more stream, of a name that nothing asks for
            case RowEdit(way=way, place=place) if way.startswith("kind changed") and place.startswith("event trust/"):
                return True  # all events of the keyring are of one kind, and nothing asks for it
            case _:
                return self.team.run(":fsck --json").status != 0 or self._is_mended()

    def _is_mended(self) -> bool:
        assert self.team.run(":fsck --rebuild --json").status == 0
        now, before = read_tables(self.rows), self._tables[-1]
        read = before.keys() - UNREAD_TABLES
        return all(_without_zeros(name, now[name][1]) == _without_zeros(name, before[name][1]) for name in read)


def _says_the_same(before: bytes, now: bytes) -> bool:
    """Whether an answer is as before, except that it may name pins that no run gets, with the code of the refusal."""
    return before == now or _without_refusals(json.loads(before)) == _without_refusals(json.loads(now))


def _without_refusals(value: Any) -> Any:  # noqa: ANN401  any JSON
    match value:
        case dict():
            return {key: _without_refusals(part) for key, part in value.items() if key not in REFUSED_PINS}
        case list():
            return [_without_refusals(part) for part in value]
        case _:
            return value


def _without_zeros(table: str, rows: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """A tally of nothing is no row after a rebuild."""
    return [row for row in rows if table != "tally" or row[2]]


def _problem_codes(result: Result) -> list[str]:
    if not result.raw:
        return [error_code(result)] if error_code(result) else []
    return [f"{problem['code']} {problem['at']}" for problem in json.loads(result.raw)["troubles"] if problem["code"]]
