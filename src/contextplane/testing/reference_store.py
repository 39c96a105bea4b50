"""A store exactly as the reference program makes it, to adopt and to share: written from its observed behaviour.

It is the other program here, so it uses none of our own code that it is meant to test.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

__all__ = ["ReferenceStore"]


class ReferenceStore:
    """`init` and `pack` of the reference program, version 0.1."""

    def __init__(self, folder: Path) -> None:
        """Make the folders and the 22 bytes of configuration, in its order."""
        self.path = folder / ".ctx"
        self.path.mkdir()
        for name in ("objects", "packs", "refs"):
            (self.path / name).mkdir()
        (self.path / "config.json").write_bytes(b'{\n  "version": "0.1"\n}')
        for name in ("graph", "graph/manifests", "graph/snapshots"):
            (self.path / name).mkdir()

    def blob(self, data: bytes) -> str:
        """Store bytes, or skip what is there already, as it does: no sync, no check. Return the reference."""
        digits = hashlib.sha256(data).hexdigest()
        place = self.path / "objects" / digits[:2] / digits[2:]
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(data)
            place.chmod(0o444)
        return f"sha256:{digits}"

    def pack(
        self, *, outputs: Mapping[str, bytes], prompt: bytes = b"You are careful.", parent: str = "", steps: int = 1
    ) -> str:
        """Store a run and register it; return its 64 digits."""
        manifest: dict[str, object] = {
            "created": "2026-05-04T09:31:42Z",
            "environment": {"os": "linux", "runtime": "go1.23.4", "tool_versions": None},
            "hash": "",
            "inputs": [{"content_ref": self.blob(b"order 881"), "name": "order.txt", "size": 9}],
            "model": {"identifier": "model-x", "parameters": None},
            "outputs": [{"content_ref": self.blob(data), "name": name} for name, data in outputs.items()],
            "prompts": [{"content_ref": self.blob(b"Refund order 881"), "role": "user"}],
            "steps": [self._step(index) for index in range(steps)],
            "system_prompt": self.blob(prompt),
            "version": "0.1",
        }
        if parent:
            manifest["parent"] = f"sha256:{parent}"
        data = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()  # noqa: TID251  the other program's form
        digits = self.blob(data).removeprefix("sha256:")
        (self.path / "packs" / digits).write_bytes(f"sha256:{digits}".encode())
        return digits

    def _step(self, index: int) -> dict[str, object]:
        return {
            "deterministic": True,
            "index": index,
            "output_ref": self.blob(b"output %d" % index) if index else "",
            "parameters": {"path": "order.txt"},
            "timestamp": "2026-05-04T09:31:41Z",
            "tool": "read_file",
            "type": "tool_call",
        }
