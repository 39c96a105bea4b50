"""The requirements of the specification, as data: one TOML file per document, one row per promise.

A row is proved by a test that says so with `@proves("document:section:slug")`, or deferred with a reason, never both;
`test_requirements.py` checks that in both directions. `python -m tests.spec.manifest` counts. This module reads the
rows; `proofs.py` beside it finds the tests.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from contextplane.testing.proofs import proves
from tests.spec.proofs import scan

__all__ = ["ROOT", "ManifestRefused", "Requirement", "load", "proves"]

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).resolve().with_name("requirements")

_SLUG = r"[a-z0-9]+(?:-[a-z0-9]+)*"
_KEY = re.compile(rf"(?P<document>{_SLUG}):{_SLUG}:{_SLUG}")
_FIELDS = frozenset({"source", "law", "deferred"})
_REQUIRED = ("source", "law")


class ManifestRefused(Exception):
    """The manifest breaks its rules; the message has a line for each breach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One promise of the specification."""

    key: str
    document: str
    source: str
    law: str
    deferred: str | None = None


def load(folder: Path = REQUIREMENTS) -> Mapping[str, Requirement]:
    """Load every requirement by its key, in the order of the files; one bad row refuses all."""
    requirements: dict[str, Requirement] = {}
    breaches: list[str] = []
    laws: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            rows = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            breaches.append(f"{path.name}: {error}")
            continue
        for key, row in rows.items():
            breaches += [f"{path.name}: {key}: {breach}" for breach in _breaches(path.stem, key, row)]
            if not isinstance(row, dict):
                continue
            law = " ".join(str(row.get("law", "")).split()).casefold()
            if law and law in laws:
                breaches.append(f"{path.name}: {key}: has the law of {laws[law]}")
            laws.setdefault(law, key)
            texts = {field: str(row.get(field, "")) for field in _REQUIRED}
            requirements[key] = Requirement(key=key, document=path.stem, deferred=row.get("deferred"), **texts)
    if breaches:
        raise ManifestRefused("\n".join(breaches))
    return MappingProxyType(requirements)


def _breaches(document: str, key: str, row: object) -> Iterator[str]:
    match = _KEY.fullmatch(key)
    if match is None:
        yield "is not document:section:slug"
    elif match["document"] != document:
        yield f"does not start with '{document}:'"
    if not isinstance(row, dict):
        yield "is not a table"
        return
    for field in sorted(row.keys() - _FIELDS):
        yield f"has the unknown field '{field}'"
    for field in (*_REQUIRED, *(row.keys() & {"deferred"})):
        if not isinstance(row.get(field), str) or not row[field].strip():
            yield f"'{field}' is not a text that says something"


def counts() -> str:
    """Format the numbers of proved and deferred requirements, in all and by document."""
    requirements = load()
    proved = {proof.key for proof in scan(ROOT).proofs}
    rows: list[tuple[str, ...]] = [("", "proved", "deferred", "open", "total")]
    documents = dict.fromkeys(requirement.document for requirement in requirements.values())
    total = [0, 0, 0, 0]
    for document in documents:
        of_document = [r for r in requirements.values() if r.document == document]
        done = sum(r.key in proved for r in of_document)
        later = sum(r.deferred is not None and r.key not in proved for r in of_document)
        row = [done, later, len(of_document) - done - later, len(of_document)]
        total = [a + b for a, b in zip(total, row, strict=True)]
        rows.append((document, *map(str, row)))
    width = max(len(row[0]) for row in rows)
    lines = [f"  {row[0]:<{width}}" + "".join(f"{cell:>10}" for cell in row[1:]) for row in rows]
    unsettled = f", {total[2]} open" if total[2] else ""
    lines.append(f"requirements: {total[0]} proved, {total[1]} deferred{unsettled}, {total[3]} total")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(counts() + "\n")
