"""Compile cases and packs as files, and compiling them as the command does."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contextplane.app.compile.sources import source_from_file
from contextplane.app.packs.files import read_case_file
from contextplane.authoring.source_file import NamedFile
from contextplane.compiler.overrides import parse_override
from contextplane.compiler.source import CompiledCase, PackSource, compile_case
from tests.unit.compiler.scenario import CASE, PACK, evidence, put

__all__ = ["SHOWN", "case_file", "compile_with", "pack_file", "source_of", "write_json"]

SHOWN: dict[str, Any] = {key: value for key, value in CASE.items() if key not in {"note", "shown"}}
"""The shown scenario as a compile case."""

CLOSING: dict[str, Any] = {**SHOWN, "evidence": [evidence()], "as_of": "2026-05-04T09:31:00Z"}
"""The same with typed evidence, at a moment."""


def write_json(folder: Path, name: str, document: object) -> str:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def case_file(folder: Path, changes: Mapping[str, Any] | None = None, of: dict[str, Any] | None = None) -> NamedFile:
    """The shown case after changes by place, read from a file."""
    return read_case_file(write_json(folder, "request.json", put(SHOWN if of is None else of, changes or {})))


def pack_file(folder: Path, changes: Mapping[str, Any] | None = None, name: str = "pack.json") -> str:
    """The full example after changes by place."""
    return write_json(folder, name, put(PACK, changes or {}))


def source_of(folder: Path, changes: Mapping[str, Any] | None = None) -> PackSource:
    return source_from_file(pack_file(folder, changes))


def compile_with(folder: Path, *overrides: str, of: dict[str, Any] | None = None) -> CompiledCase:
    """The shown case with overrides turned, as they are typed."""
    return compile_case(source_of(folder), case_file(folder, of=of), tuple(map(parse_override, overrides)))
