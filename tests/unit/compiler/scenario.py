"""The refund that is shown in the contract, and compiles that differ from it in one place."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from contextplane.compiler.compile import compile_draft
from contextplane.compiler.inputs import read_evidence, read_memories, read_request, read_run_context
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import CompiledContext, Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.timestamp import Timestamp
from contextplane.model.tokens import CALIBRATED1, Tokens

__all__ = [
    "CASE",
    "NOW",
    "PACK",
    "SNAPSHOT",
    "compile_plain",
    "compile_scenario",
    "evidence",
    "inputs",
    "memory",
    "plain",
    "put",
    "view_of",
]

CASES = Path(__file__).resolve().parents[2] / "cases"
CASE: dict[str, Any] = json.loads((CASES / "compiler" / "refund.json").read_bytes())
PACK: dict[str, Any] = json.loads((CASES / "context_pack" / "support.json").read_bytes())
SNAPSHOT = "kg_2026_05_03_T0930"
NOW = "2026-05-04T09:31:00Z"

Changes = Mapping[str, Any]


def put(document: Any, changes: Changes) -> Any:  # noqa: ANN401  any JSON
    """A copy with a value put at each JSON Pointer; `-` appends."""
    made = copy.deepcopy(document)
    for at, value in changes.items():
        *way, last = [step.replace("~1", "/").replace("~0", "~") for step in at.split("/")[1:]]
        parent = made
        for step in way:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        if isinstance(parent, list) and last == "-":
            parent.append(value)
        else:
            parent[int(last) if isinstance(parent, list) else last] = value
    return made


def inputs(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    """The inputs as plain data. `pack`, `run` and `request` are changes by place; the rest is given whole."""
    return {
        "pack": put(PACK, changes.get("pack", {})),
        "ontologies": changes.get("ontologies", CASE["environment"]["ontologies"]),
        "snapshot": changes.get("snapshot", CASE["environment"]["snapshot"]),
        "lineage": changes.get("lineage"),
        "run_context": put(CASE["run_context"], changes.get("run", {})),
        "request": put(CASE["request"], changes.get("request", {})),
        "evidence": changes.get("evidence", CASE["evidence"]),
        "memories": changes.get("memories", CASE["memories"]),
        "as_of": changes.get("as_of"),
    }


def view_of(plain_inputs: Mapping[str, Any]) -> PackView:
    lineage = plain_inputs["lineage"]
    return PackView(
        msgspec.convert(plain_inputs["pack"], ContextPack),
        ontologies=tuple(plain_inputs["ontologies"]),
        snapshot=plain_inputs["snapshot"],
        lineage=None if lineage is None else msgspec.convert(lineage, tuple[Lineage, ...]),
    )


def compile_plain(
    plain_inputs: Mapping[str, Any], tokens: Tokens = CALIBRATED1, *, view: PackView | None = None
) -> CompiledContext:
    """Compile plain data, with this view of its pack or a new one."""
    return compile_draft(
        view or view_of(plain_inputs),
        read_run_context(plain_inputs["run_context"]),
        read_request(plain_inputs["request"]),
        read_evidence(plain_inputs["evidence"]),
        read_memories(plain_inputs["memories"]),
        tokens=tokens,
        as_of=None if plain_inputs["as_of"] is None else Timestamp.parse(plain_inputs["as_of"]),
    ).seal


def compile_scenario(*, tokens: Tokens = CALIBRATED1, **changes: Any) -> CompiledContext:  # noqa: ANN401  any JSON
    """The shown scenario after these changes."""
    return compile_plain(inputs(**changes), tokens)


def plain(value: object) -> Any:  # noqa: ANN401  any JSON
    return json.loads(msgspec.json.encode(value))


def evidence(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    """Evidence that closes `order_lookup` at NOW."""
    return {
        "evidence_ref": "tool:adp_orders.lookup:tc_117",
        "type": "order_lookup",
        "tenant_id": "tenant_acme_prod",
        "source": "adp_orders",
        "trust": "verified",
        "content": '{"order_id":"ord_881","total":4200}',
        "freshness": {"observed_at": "2026-05-04T09:30:00Z", "expires_at": "2026-05-04T10:30:00Z"},
        **changes,
    }


def memory(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    return {**CASE["memories"][0], **changes}
