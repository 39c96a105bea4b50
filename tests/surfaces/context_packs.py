"""The full example of the contract as files of an author, each with a few changes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.surfaces.commands import Result, ctx
from tests.unit.authoring.packs import ENVIRONMENT, EXAMPLE, with_changes

__all__ = ["REDACTION", "VERSION", "VOID", "answer", "environment_file", "example", "lint", "numbered", "pack_file"]

VERSION = "/pack_meta/pack_version"
REDACTION: Mapping[str, Any] = {"at": "/policy_layer/guardrails/redaction_rules/-", "value": "aadhaar"}
VOID: tuple[Mapping[str, Any], ...] = (
    {"at": "/tooling_layer/adapter_registry/2/capabilities/-", "value": "void"},
    {
        "at": "/tooling_layer/permissions/-",
        "value": {
            "permission_id": "p_void",
            "adapter_id": "adp_payments",
            "capability": "void",
            "allow": True,
            "requires_approval_gate": "GATE_FINANCE_APPROVAL",
            "arg_constraints": {"amount_inr": {"max": 50000}, "idempotency_key": {"required": True}},
        },
    },
)
"""A new write capability, correctly declared and permitted."""


def pack_file(path: Path, *changes: Mapping[str, Any]) -> str:
    """Write the example with some changes; return the file name as typed."""
    path.write_text(json.dumps(with_changes(list(changes)), indent=2), encoding="utf-8")
    return path.name


def example(folder: Path) -> str:
    """Write the unchanged example, version 1.0.0; return the file name."""
    assert EXAMPLE["pack_meta"]["pack_version"] == "1.0.0"
    return pack_file(folder / "old.json")


def numbered(folder: Path, version: str, *changes: Mapping[str, Any]) -> str:
    """Write the example with some changes, under another version; return the file name."""
    return pack_file(folder / "new.json", *changes, {"at": VERSION, "value": version})


def answer(*args: str, cwd: Path, status: int) -> tuple[Any, Result]:
    """The JSON answer of a verb, and its result."""
    result = ctx(*args, "--json", cwd=cwd)
    assert (result.status, result.err) == (status, ""), result
    return json.loads(result.raw), result


def environment_file(folder: Path) -> str:
    """Write the description of the environment of the example."""
    (folder / "environment.json").write_bytes(msgspec.json.encode(ENVIRONMENT))
    return "environment.json"


def lint(folder: Path, pack: object, *arguments: str, name: str = "pack.json") -> Result:
    """Write a pack and lint it."""
    text = pack if isinstance(pack, bytes) else json.dumps(pack, indent=2).encode()
    (folder / name).write_bytes(text)
    return ctx("lint", name, *arguments, cwd=folder)
