"""Tables of cases in files: finding them, running them, and reporting for CI as JUnit XML or SARIF."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from contextplane.adapters.files.disk import Disk, storage_errors, write_atomically
from contextplane.app.compile.sources import source_from_file
from contextplane.app.documents import DocumentUnreadable
from contextplane.app.packs.files import read_case_file, read_source_file
from contextplane.authoring.source_file import NamedFile
from contextplane.errors import ContextPlaneError, Family
from contextplane.evaluation.case_coverage import Coverage, CoveredItem, measure_coverage
from contextplane.evaluation.case_run import CaseOutcome, run_table
from contextplane.evaluation.case_table import CaseTable, read_table
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.compiler.source import PackSource
    from contextplane.model.json.canonical import Json

__all__ = [
    "CaseOutcome",
    "Coverage",
    "CoveredItem",
    "NoTables",
    "TableResult",
    "is_table",
    "junit_report",
    "pack_coverage",
    "run_tables",
    "sarif_report",
    "write_report",
]

EXTENSIONS = (".test.yaml", ".test.yml", ".test.json")
"""The names by which tables are found in a folder. A file that is named itself may have any other name."""


class NoTables(ContextPlaneError):
    """A folder that holds no table of cases."""

    code: ClassVar[str] = "test_tables_missing"
    family: ClassVar[Family] = "not_found"


class TableResult(Value, frozen=True):
    """The outcomes of one table, and the pack that it was run with."""

    file: NamedFile
    source: "PackSource"
    outcomes: tuple[CaseOutcome, ...]

    @property
    def pack(self) -> str:
        return str(self.source.pack.ref)

    def where(self, outcome: CaseOutcome) -> str:
        """Return the place of a case in its file."""
        return self.file.where(outcome.at)


def run_tables(paths: Sequence[str], pack: str | None = None) -> tuple[TableResult, ...]:
    """Run every table that the paths name or hold. `pack`: the file of a pack to use in place of theirs."""
    sources: dict[tuple[str, ...], PackSource] = {}
    return tuple(_run_file(path, pack, sources) for path in _table_paths(paths))


def _run_file(path: str, pack: str | None, sources: "dict[tuple[str, ...], PackSource]") -> TableResult:
    file = read_source_file(path)
    table = read_table(file)
    try:
        source = _source(table, path, pack, sources)
        base = read_case_file(_beside(path, table.base)) if table.base is not None else None
    except DocumentUnreadable as error:
        error.hint = f"{path} names it, relative to its own folder" if error.at != pack else error.hint
        raise
    return TableResult(file=file, source=source, outcomes=tuple(run_table(source, file, table, base)))


def _source(
    table: CaseTable, path: str, pack: str | None, sources: "dict[tuple[str, ...], PackSource]"
) -> "PackSource":
    """Load the pack of a table, once for all tables that use the same files."""
    own = os.path.normpath(pack if pack is not None else _beside(path, table.pack))
    overlays, catalogs = (
        tuple(os.path.normpath(_beside(path, name)) for name in names) for names in (table.overlays, table.catalogs)
    )
    key = (own, "", *overlays, "", *catalogs)
    if key not in sources:
        from contextplane.app.registry.catalogs import catalog_in_file

        sources[key] = source_from_file(own, overlays, tuple(map(catalog_in_file, catalogs)))
    return sources[key]


def _beside(path: str, name: str) -> str:
    """Return the path of a file that a table names, relative to the folder of the table."""
    return os.path.join(os.path.dirname(path), name)


def _table_paths(paths: Sequence[str]) -> Iterator[str]:
    """Yield the files that are named, and the tables in folders that are named, each once."""
    seen: set[str] = set()
    for path in paths:
        tables = list(_tables_in(path)) if os.path.isdir(path) else [path]
        if not tables:
            raise NoTables(
                "holds no table of tests", at=path, hint=f"name one *{EXTENSIONS[0]}; 'ctx new FILE --test' writes one"
            )
        for table in tables:
            if os.path.realpath(table) not in seen:
                seen.add(os.path.realpath(table))
                yield table


def _tables_in(folder: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise DocumentUnreadable(
            f"cannot be listed: {error.strerror}", at=str(error.filename), hint="check the folder"
        ) from error

    for root, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(EXTENSIONS) and not name.startswith("."):
                yield os.path.normpath(os.path.join(root, name))


def pack_coverage(results: Sequence[TableResult]) -> tuple[Coverage, ...]:
    """Return the coverage of every pack that was tested, by the cases of all tables."""
    by_source: dict[int, list[TableResult]] = {}
    for result in results:
        by_source.setdefault(id(result.source), []).append(result)
    return tuple(
        measure_coverage(
            group[0].source.pack,
            (outcome.draft for result in group for outcome in result.outcomes if outcome.draft is not None),
        )
        for group in by_source.values()
    )


# --- Reports for CI ---


def write_report(path: str, text: str) -> None:
    """Write a report to a file, whole or not at all. A link, a device and a pipe stay what they are."""
    with storage_errors(path):
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as stream:
                stream.write(text.encode())
            return
        real = os.path.realpath(path)
        write_atomically(real, text.encode(), staging=os.path.dirname(real), disk=Disk())


def is_table(path: str) -> bool:
    """Whether a file has the name of a table: no report replaces it."""
    return path.endswith(EXTENSIONS)


def junit_report(results: Sequence[TableResult]) -> str:
    """Return the outcomes as JUnit XML: a suite for each table, a failure for each case that failed."""
    import re
    from xml.sax.saxutils import escape, quoteattr

    def clean(text: str) -> str:
        return re.sub("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)

    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {_counts(results)}>"]
    for result in results:
        lines.append(f"  <testsuite name={quoteattr(clean(result.file.path))} {_counts([result])}>")
        for outcome in result.outcomes:
            place = result.file.place(outcome.at)
            head = f"    <testcase classname={quoteattr(clean(result.pack))} name={quoteattr(clean(outcome.name))}"
            head += f" file={quoteattr(clean(result.file.path))} line={quoteattr(str(place.line))}"
            if outcome.passed:
                lines.append(f"{head}/>")
                continue
            first, text = outcome.differences[0], "\n".join(outcome.differences)
            lines.append(f"{head}>")
            lines.append(f"      <failure message={quoteattr(clean(first))}>{escape(clean(text))}</failure>")
            lines.append("    </testcase>")
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _counts(results: Sequence[TableResult]) -> str:
    outcomes = [outcome for result in results for outcome in result.outcomes]
    failed = sum(not outcome.passed for outcome in outcomes)
    return f'tests="{len(outcomes)}" failures="{failed}" errors="0" skipped="0"'


def sarif_report(results: Sequence[TableResult], version: str) -> "Json":
    """Return the failed cases as SARIF 2.1.0, each at its place in the table."""
    from contextplane.app.packs.lint import file_uri
    from contextplane.authoring.sarif import failed_cases_log

    rows = [
        (outcome.name, "; ".join(outcome.differences), file_uri(result.file.path), result.file.place(outcome.at))
        for result in results
        for outcome in result.outcomes
        if not outcome.passed
    ]
    return failed_cases_log(rows, version)
