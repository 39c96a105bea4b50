"""What packing puts into the index from memory is what a rebuild reads from the store."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.store.rebuild import rebuild

_INDEX = {
    "object": "SELECT * FROM object ORDER BY digest",
    "edge": "SELECT source, role, target FROM edge ORDER BY 1, 2, 3",
    "root": "SELECT * FROM root ORDER BY name",
    "pack": "SELECT * FROM pack ORDER BY digest",
    "text_part": "SELECT * FROM text_part ORDER BY id",
    "words": "SELECT rowid, body FROM words ORDER BY rowid",
}


def index_of(store: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(store / ".ctx" / "catalog.db")) as db:
        return {name: db.execute(query).fetchall() for name, query in _INDEX.items()}


@pytest.mark.parametrize("size", [40, 20 << 10, 3 << 20])
def test_a_rebuild_finds_nothing_that_packing_did_not_record(tmp_path: Path, size: int) -> None:
    text = "needle in a haystack " * (size // 20)
    other = "sha256:" + "0" * 64
    log = {
        "model": {"identifier": "m"},
        "system_prompt": text,
        "environment": {"os": "linux", "runtime": "r"},
        "prompts": [{"role": "user", "content": f"{n} {text}"} for n in range(3)],
        "inputs": [{"name": "i", "content": text}, {"name": "b", "content_base64": "/////w=="}],
        "steps": [{"type": "tool_call", "tool": "t", "parameters": {"of": other, "n": 1}, "output": f"out {text}"}],
        "outputs": [{"name": "o", "content": text}, {"name": "empty", "content": ""}],
    }
    settings = Settings(cwd=str(tmp_path))
    init(settings)
    with open_platform(settings) as platform:
        pack_log(platform, msgspec.json.encode(log), root=str(tmp_path))
        before = index_of(tmp_path)
        rebuild(platform.catalog, platform.entries, platform.objects)
        assert index_of(tmp_path) == before
        assert len(before["edge"]) > len(log)
