"""Compile cases and packs as files, and compiling them as the command does."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contextplane.app.compile.sources import from_file
from contextplane.app.packs.files import case_from
from contextplane.authoring.source_file import Authored
from contextplane.compiler.overrides import knob_of
from contextplane.compiler.source import Compiled, PackSource, compiled_case
from tests.unit.compiler.scenario import CASE, PACK, evidence, put

__all__ = ["SHOWN", "case_file", "compiled_with", "pack_file", "source_of", "written"]

SHOWN: dict[str, Any] = {key: one for key, one in CASE.items() if key not in {"note", "shown"}}
"""The shown scenario as a compile case."""

CLOSING: dict[str, Any] = {**SHOWN, "evidence": [evidence()], "as_of": "2026-05-04T09:31:00Z"}
"""The same with typed evidence, at a moment."""


def written(folder: Path, name: str, document: object) -> str:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def case_file(folder: Path, changes: Mapping[str, Any] | None = None, of: dict[str, Any] | None = None) -> Authored:
    """The shown case after changes by place, read from a file."""
    return case_from(written(folder, "request.json", put(SHOWN if of is None else of, changes or {})))


def pack_file(folder: Path, changes: Mapping[str, Any] | None = None, name: str = "pack.json") -> str:
    """The full example after changes by place."""
    return written(folder, name, put(PACK, changes or {}))


def source_of(folder: Path, changes: Mapping[str, Any] | None = None) -> PackSource:
    return from_file(pack_file(folder, changes))


def compiled_with(folder: Path, *knobs: str, of: dict[str, Any] | None = None) -> Compiled:
    """The shown case with knobs turned, as they are typed."""
    return compiled_case(source_of(folder), case_file(folder, of=of), tuple(map(knob_of, knobs)))
