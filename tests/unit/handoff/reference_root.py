"""A root exactly as the reference server keeps it: `packs/<id>.json`, compact JSON, schema 2."""

import json
from pathlib import Path

__all__ = ["ReferencePacks"]


class ReferencePacks:
    """The other server, which writes files and nothing else."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "packs"
        self.folder.mkdir(parents=True)
        (self.folder / ".repo.lock").touch()

    @staticmethod
    def pack(pack_id: str, **fields: object) -> dict[str, object]:
        ref = {"key": "entry", "path": "code.py", "lines": {"start": 1, "end": 2}, "title": None, "why": None}
        section = {
            "key": "scope",
            "title": "Scope",
            "description": None,
            "refs": [{**ref, "group": None}],
            "diagrams": [{"key": "flow", "title": "Flow", "mermaid": "graph TD", "why": None}],
        }
        return {
            "schema_version": 2,
            "id": pack_id,
            "name": None,
            "title": "From there",
            "brief": None,
            "status": "draft",
            "tags": ["a"],
            "sections": [section],
            "revision": 3,
            "created_at": "2026-05-04T08:00:00.123456789Z",
            "updated_at": "2026-05-04T09:00:00.000000001Z",
            "expires_at": "2999-01-01T00:00:00Z",
            **fields,
        }

    def write(self, pack_id: str, **fields: object) -> Path:
        """Write a pack whole, as it does: a temporary file, then its name."""
        staged, path = self.folder / f"{pack_id}.tmp", self.folder / f"{pack_id}.json"
        data = json.dumps(self.pack(pack_id, **fields), separators=(",", ":"))
        staged.write_text(data, encoding="utf-8")
        staged.rename(path)
        return path

    def contents(self) -> dict[str, object]:
        """Every file with its bytes and its time, or what it is instead."""
        return {
            path.name: (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else path.lstat().st_mode
            for path in sorted(self.folder.iterdir())
        }
