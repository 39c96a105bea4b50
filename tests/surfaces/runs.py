"""A run as an agent logs it, and helpers to pack and inspect it."""

import json
from pathlib import Path
from typing import Any

from tests.surfaces.commands import Result, ctx

__all__ = ["LOG", "manifest", "packed", "place", "refs"]

LOG: dict[str, Any] = {
    "model": {"identifier": "model-x", "parameters": {"temperature": 0.7, "top_p": 1.0}},
    "system_prompt": "You are careful.",
    "prompts": [{"role": "user", "content": "Refund order 881"}],
    "inputs": [{"name": "order.json", "content": '{"id": 881}'}],
    "steps": [
        {
            "index": 0,
            "type": "tool_call",
            "tool": "read_file",
            "parameters": {"path": "order.json"},
            "output": '{"id": 881}',
            "deterministic": True,
            "timestamp": "2026-05-04T09:31:41Z",
        },
        {"type": "reasoning", "output": "It was delivered.", "timestamp": "2026-05-04T09:31:42.5Z"},
    ],
    "outputs": [{"name": "out/report.md", "content": "# Refunded\n"}],
    "environment": {"os": "linux", "runtime": "python3.11", "tool_versions": {"read_file": "1"}},
}


def packed(store: Path, **fields: object) -> str:
    """Pack a log; return the 64 digits of the pack."""
    result = ctx("pack", "-", cwd=store, input=json.dumps({**LOG, **fields}).encode())
    assert result.status == 0, result.err
    return result.out.strip().removeprefix("ctx://")


def manifest(store: Path, digits: str) -> dict[str, Any]:
    """The manifest of a pack, as `show --json` prints it."""
    value: dict[str, Any] = json.loads(ctx("show", digits, "--json", cwd=store).out)
    return value


def place(store: Path, digits: str) -> Path:
    """The file of an object."""
    return store / ".ctx" / "objects" / digits[:2] / digits[2:]


def refs(result: Result) -> list[str]:
    """The packs that `log --json` lists."""
    return [row["ref"].removeprefix("ctx://") for row in json.loads(result.out)["packs"]]
