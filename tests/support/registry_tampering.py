"""Edits of a registry, generated: every row of every table, and every file of the store, in every way that it can be.

A row or file is changed, removed, doubled, exchanged with its neighbour, or put back as an earlier copy has it. The
generator knows nothing of what a table means. It works for both databases.
"""

import base64
import json
import shutil
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.catalog_rows import CatalogRows, Row, Statement, Table

__all__ = [
    "FileEdit",
    "RowEdit",
    "StoreEdit",
    "Tables",
    "file_edits",
    "put_tables_back",
    "read_tables",
    "row_edits",
    "store_edits",
    "store_files",
]

Tables = Mapping[str, tuple[Table, Sequence[Row]]]
"""All rows of a catalog, by table."""

_FAR = 1000
_HEX = 64
_CATALOG_FILES = ("catalog.db", "catalog.db-wal", "catalog.db-shm")


class RowEdit(NamedTuple):
    """An edit of rows: statements with their values. `place` is the table and the key of the row."""

    way: str
    table: str
    place: str
    statements: tuple[Statement, ...]

    def __str__(self) -> str:
        return f"{self.way}: {self.place}"

    def apply(self, rows: CatalogRows) -> None:
        rows.run_all(self.statements)


class StoreEdit(NamedTuple):
    """An edit of the whole store, or of bytes of its database file."""

    way: str
    place: str
    edit: Callable[[Path], None]

    def __str__(self) -> str:
        return f"{self.way}: {self.place}"


class FileEdit(NamedTuple):
    """An edit of a file of the store, named by its path there."""

    way: str
    place: str
    edit: Callable[[Path], None]

    def __str__(self) -> str:
        return f"{self.way}: {self.place}"


def read_tables(rows: CatalogRows) -> Tables:
    """All rows of a catalog, in the order of their keys."""
    tables: dict[str, tuple[Table, Sequence[Row]]] = {}
    for table in rows.tables():
        content = rows.ask(f"SELECT {', '.join(table.columns)} FROM {table.name}")  # noqa: S608  our own names
        plain = [tuple(bytes(value) if isinstance(value, memoryview) else value for value in row) for row in content]
        tables[table.name] = (table, sorted(plain, key=partial(_key_order, table)))
    return tables


def put_tables_back(rows: CatalogRows, tables: Tables) -> None:
    """Make every table that was edited as it was."""
    for name, (table, content) in read_tables(rows).items():
        if content != tables[name][1]:
            emptying = (f"DELETE FROM {name}", ())  # noqa: S608
            rows.run_all([emptying, *(_insert(table, row) for row in tables[name][1])])


def row_edits(now: Tables, earlier: Sequence[Tables]) -> Iterator[RowEdit]:
    """Every edit of one row, of two that change places, and of a whole table that is put back."""
    for name, (table, rows) in now.items():
        keys = {_key(table, row) for row in rows}
        for number, row in enumerate(rows):
            yield from _changes(table, row, keys)
            yield _removal(table, row)
            yield from _doubles(table, row, rows)
            if len(rows) > 1 and len(table.columns) > len(table.key):
                yield from _exchange(table, row, rows[(number + 1) % len(rows)])
            yield from _returns(table, row, [copy[name][1] for copy in earlier if name in copy])
        for number, copy in enumerate(earlier, start=1):
            old = copy[name][1] if name in copy else []
            if list(old) != list(rows):
                inserts = tuple(_insert(table, row) for row in old)
                emptying = (f"DELETE FROM {name}", ())  # noqa: S608  as all statements here: names of tables and columns
                yield RowEdit("table put back", name, f"{name} of copy {number}", (emptying, *inserts))


def _changes(table: Table, row: Row, keys: Container[Row]) -> Iterator[RowEdit]:
    for column, value in zip(table.columns, row, strict=True):
        for number, variant in enumerate(_variants(value)):
            changed = variant
            if column in table.key and _key(table, _with(table, row, column, changed)) in keys:
                changed = value + _FAR if isinstance(value, int) else f"{value}0"
            way = f"{column} changed ({number})" if number else f"{column} changed"
            yield RowEdit(way, table.name, _place(table, row), (_update(table, row, {column: changed}),))


def _with(table: Table, row: Row, column: str, value: object) -> Row:
    return tuple(value if name == column else kept for name, kept in zip(table.columns, row, strict=True))


def _variants(value: object) -> Iterator[object]:
    """Other values of the same type: a byte or letter flipped, a number off by one, a field of a document changed."""
    match value:
        case bool():
            yield not value
        case int():
            yield value + 1
            yield max(value - 1, 0)
        case str() if value:
            yield _flip_letter(value, len(value) // 2)
            yield _flip_letter(value, len(value) - 1)
        case bytes() if value:
            yield _flip_byte(value, len(value) // 3)
            yield _flip_byte(value, len(value) - 2)
            yield from _reworded(value)
        case None:
            yield "x"
        case _:
            yield b"x" if isinstance(value, bytes) else "x"


def _reworded(body: bytes) -> Iterator[bytes]:
    """A signed document with one more letter in one of its fields, under the signature that it has."""
    try:
        envelope = json.loads(body)
    except ValueError:
        return
    if not isinstance(envelope, dict):
        return
    if "payload" not in envelope:
        field = max(envelope)
        yield json.dumps({**envelope, field: f"{envelope[field]}x"}, separators=(",", ":"), sort_keys=True).encode()
        return
    payload = json.loads(base64.b64decode(envelope["payload"]))
    for field in sorted(payload):
        if isinstance(payload[field], str | int):
            changed = {**payload, field: payload[field] + (1 if isinstance(payload[field], int) else "x")}
            text = json.dumps(changed, separators=(",", ":"), sort_keys=True).encode()
            reworded = {**envelope, "payload": base64.b64encode(text).decode()}
            yield json.dumps(reworded, separators=(",", ":"), sort_keys=True).encode()


def _removal(table: Table, row: Row) -> RowEdit:
    where, values = _where(table, row)
    sql = f"DELETE FROM {table.name} WHERE {where}"  # noqa: S608
    return RowEdit("removed", table.name, _place(table, row), ((sql, values),))


def _doubles(table: Table, row: Row, rows: Sequence[Row]) -> Iterator[RowEdit]:
    """The row once more under another key: a new name, and a number at the end."""
    keys = {_key(table, other) for other in rows}
    for column in table.key:
        value = row[table.columns.index(column)]
        other = value + "0" if isinstance(value, str) else max(_number(table, column, row) for row in rows) + 1
        if isinstance(value, str) and len(value) == _HEX and "/" not in value:
            other = _flip_letter(value, 0)
        copy = _with(table, row, column, other)
        if _key(table, copy) not in keys:
            yield RowEdit(f"doubled by {column}", table.name, _place(table, row), (_insert(table, copy),))


def _number(table: Table, column: str, row: Row) -> int:
    return int(row[table.columns.index(column)])


def _exchange(table: Table, row: Row, other: Row) -> Iterator[RowEdit]:
    """Two rows exchange all that is not their key."""
    free = [column for column in table.columns if column not in table.key]
    mine, theirs = ({c: r[table.columns.index(c)] for c in free} for r in (row, other))
    if mine != theirs:
        statements = (_update(table, row, theirs), _update(table, other, mine))
        yield RowEdit("exchanged with the next", table.name, _place(table, row), statements)


def _returns(table: Table, row: Row, copies: Sequence[Sequence[Row]]) -> Iterator[RowEdit]:
    """The row as an earlier copy has it, if it is another there. One that is missing there is a removal."""
    key = _key(table, row)
    known = {row}
    for copy in copies:
        for old in copy:
            if _key(table, old) == key and old not in known:
                known.add(old)
                values = dict(zip(table.columns, old, strict=True))
                yield RowEdit("row put back", table.name, _place(table, row), (_update(table, row, values),))


def _update(table: Table, row: Row, values: Mapping[str, object]) -> Statement:
    where, key = _where(table, row)
    sets = ", ".join(f"{column} = ?" for column in values)
    return f"UPDATE {table.name} SET {sets} WHERE {where}", (*values.values(), *key)  # noqa: S608


def _insert(table: Table, row: Row) -> Statement:
    marks = ", ".join("?" for _ in row)
    return f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks})", tuple(row)  # noqa: S608


def _where(table: Table, row: Row) -> tuple[str, tuple[Any, ...]]:
    key = table.key or table.columns
    return " AND ".join(f"{column} = ?" for column in key), tuple(row[table.columns.index(column)] for column in key)


def _key(table: Table, row: Row) -> Row:
    return tuple(row[table.columns.index(column)] for column in (table.key or table.columns))


def _key_order(table: Table, row: Row) -> list[str]:
    return [f"{part:012d}" if isinstance(part, int) else str(part) for part in _key(table, row)]


def _place(table: Table, row: Row) -> str:
    return f"{table.name} {'@'.join(str(part) for part in _key(table, row))}"


def _flip_letter(text: str, at: int) -> str:
    """Another letter in one place; digits of a hash stay digits of a hash."""
    letter = text[at]
    other = {"0": "1", "f": "e", "9": "8"}.get(letter, chr(ord(letter) ^ 1))
    return text[:at] + (other if other.isprintable() and not other.isspace() else "x") + text[at + 1 :]


def _flip_byte(data: bytes, at: int) -> bytes:
    at = max(at, 0)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


# --- files ------------------------------------------------------------------------------------------------------------


def store_files(store: Path) -> dict[str, bytes]:
    """Every file of a store except its database, by its path there."""
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.name not in _CATALOG_FILES
    }


def file_edits(now: Mapping[str, bytes], earlier: Sequence[Mapping[str, bytes]]) -> Iterator[FileEdit]:
    """Every edit of one file, and of two that change places."""
    names = list(now)
    for number, name in enumerate(names):
        data, other = now[name], names[(number + 1) % len(names)]
        for at in sorted({0, len(data) // 2, len(data) - 1}) if data else ():
            yield FileEdit(f"byte {at} changed", name, _writing({name: _flip_byte(data, at)}))
        yield FileEdit("a byte added", name, _writing({name: data + b"\n"}))
        if data:
            yield FileEdit("emptied", name, _writing({name: b""}))
            yield FileEdit("cut off", name, _writing({name: data[:-1]}))
        yield FileEdit("removed", name, _removing(name))
        yield FileEdit("doubled", name, _writing({_other_name(name): data}))
        if now[other] != data:
            yield FileEdit("exchanged with the next", name, _writing({name: now[other], other: data}))
        for copy in {copy[name] for copy in earlier if name in copy} - {data}:
            yield FileEdit("put back", name, _writing({name: copy}))
    for name in sorted({name for copy in earlier for name in copy} - set(names)):
        data = next(copy[name] for copy in earlier if name in copy)
        yield FileEdit("put back", name, _writing({name: data}))


def _other_name(name: str) -> str:
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{_flip_letter(last, len(last) - 1)}"


def _writing(files: Mapping[str, bytes]) -> Callable[[Path], None]:
    def edit(store: Path) -> None:
        for name, data in files.items():
            path = store / name
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
            path.unlink(missing_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(data)
            path.chmod(mode)

    return edit


def _removing(name: str) -> Callable[[Path], None]:
    return lambda store: (store / name).unlink()


# --- the whole store --------------------------------------------------------------------------------------------------

_PAGE = 4096


def store_edits(store: Path, copies: Sequence[Path]) -> Iterator[StoreEdit]:
    """The whole store, its catalog alone and its objects alone as each earlier copy has them, and flipped bytes."""
    for number, copy in enumerate(copies, start=1):
        yield StoreEdit("store put back", f"copy {number}", _copying(copy, ("",)))
        yield StoreEdit("catalog put back", f"copy {number}", _copying(copy, ("catalog.db",)))
        yield StoreEdit("objects put back", f"copy {number}", _copying(copy, ("objects",)))
        yield StoreEdit("all but the catalog put back", f"copy {number}", _copying(copy, ("objects", "keys")))
    pages = (store / "catalog.db").stat().st_size // _PAGE
    for page in range(pages):
        for at in (page * _PAGE + 5, page * _PAGE + _PAGE // 2, page * _PAGE + _PAGE - 40):
            yield StoreEdit("byte changed", f"catalog.db at {at}", _flipping("catalog.db", at))


def _copying(copy: Path, names: Sequence[str]) -> Callable[[Path], None]:
    def edit(store: Path) -> None:
        for name in names:
            for journal in ("-wal", "-shm"):
                (store / f"catalog.db{journal}").unlink(missing_ok=True)
            source, target = copy / name, store / name
            if source.is_dir():
                shutil.rmtree(target)
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target)

    return edit


def _flipping(name: str, at: int) -> Callable[[Path], None]:
    def edit(store: Path) -> None:
        (store / name).write_bytes(_flip_byte((store / name).read_bytes(), at))

    return edit
