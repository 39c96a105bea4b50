"""A store exactly as the reference program makes it, written from its observed behaviour.

It stands for the other program, so it uses none of our code that it is meant to test.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from tests.support.go_json import go_json

__all__ = ["ReferenceStore"]

_STRUCT = (
    *("version", "hash", "created", "model", "system_prompt", "prompts"),
    *("inputs", "steps", "outputs", "environment", "parent"),
)
_PARTS = {
    "model": ("identifier", "parameters"),
    "prompts": ("role", "content_ref"),
    "inputs": ("name", "content_ref", "size"),
    "steps": ("index", "type", "tool", "parameters", "output_ref", "deterministic", "timestamp"),
    "outputs": ("name", "content_ref"),
    "environment": ("os", "runtime", "tool_versions"),
}


class ReferenceStore:
    """`init`, `pack` and the library's `FinalizeDraft` of the reference program, version 0.1."""

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
        self,
        *,
        outputs: Mapping[str, bytes],
        prompt: bytes = b"You are careful.",
        parent: str = "",
        steps: int = 1,
        parameters: Mapping[str, object] | None = None,
    ) -> str:
        """Store a run and register it; return its 64 digits. `parameters`: those of its model."""
        manifest = self._manifest(outputs, prompt, steps, parameters)
        if parent:
            manifest["parent"] = f"sha256:{parent}"
        return self._register(go_json(manifest))

    def finalized_fork(self, parent: str, *, outputs: Mapping[str, bytes]) -> str:
        """Store a fork of a run as its library finalizes drafts: in the order of its structs, `created` not renewed."""
        manifest = self._manifest(outputs, b"You are careful.", 1, None) | {"parent": f"sha256:{parent}"}
        return self._register(go_json(_in_struct_order(manifest), sort=False))

    def _register(self, data: bytes) -> str:
        """Store a manifest and enter it. Of the entry only the name is ever looked at."""
        digits = self.blob(data).removeprefix("sha256:")
        (self.path / "packs" / digits).write_bytes(f"sha256:{digits}".encode())
        return digits

    def _manifest(
        self, outputs: Mapping[str, bytes], prompt: bytes, steps: int, parameters: Mapping[str, object] | None
    ) -> dict[str, object]:
        return {
            "created": "2026-05-04T09:31:42Z",
            "environment": {"os": "linux", "runtime": "go1.23.4", "tool_versions": None},
            "hash": "",
            "inputs": [{"content_ref": self.blob(b"order 881"), "name": "order.txt", "size": 9}],
            "model": {"identifier": "model-x", "parameters": parameters},
            "outputs": [{"content_ref": self.blob(data), "name": name} for name, data in outputs.items()],
            "prompts": [{"content_ref": self.blob(b"Refund order 881"), "role": "user"}],
            "steps": [self._step(index) for index in range(steps)],
            "system_prompt": self.blob(prompt),
            "version": "0.1",
        }

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


def _in_struct_order(manifest: Mapping[str, object]) -> dict[str, object]:
    return {field: _part(manifest[field], _PARTS.get(field)) for field in _STRUCT}


def _part(value: object, fields: tuple[str, ...] | None) -> object:
    if fields is None:
        return value
    if isinstance(value, list):
        return [_part(part, fields) for part in value]
    assert isinstance(value, dict)
    return {field: value[field] for field in fields}
