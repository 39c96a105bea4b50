"""The full example of the contract, and packs that differ from it in one place."""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contextplane.authoring.artifacts import find_law
from contextplane.authoring.gates.table import judge_pack
from contextplane.authoring.law import Finding
from contextplane.model.artifact import EnvironmentDescription

__all__ = [
    "CASES",
    "ENVIRONMENT",
    "EXAMPLE",
    "EXAMPLE_WARNINGS",
    "changed",
    "findings",
    "leaves",
    "part",
    "with_changes",
]

CASES = Path(__file__).resolve().parents[2] / "cases" / "context_pack"
EXAMPLE: dict[str, Any] = json.loads((CASES / "support.json").read_text(encoding="utf-8"))
ENVIRONMENT = EnvironmentDescription(
    endpoints=("internal://orders", "internal://policy", "internal://payments"),
    roles=("support_ops", "finance_lead"),
    ontologies=("ont.support@1.0.0",),
    snapshots=("alias:prod",),
    tenants=("tenant_acme_prod", "tenant_globex"),
    approval_ceiling="destructive",
)
"""The environment of the full example."""

EXAMPLE_WARNINGS = {"guardrail_by_signal_only", "evidence_attested_by_request"}
"""The full example has labels without a condition, and evidence that only the request attests."""


def with_changes(changes: list[Mapping[str, Any]], base: Any = None) -> Any:  # noqa: ANN401  any JSON
    """Change the example: each change sets a `value` at a JSON Pointer (`-` appends), or removes the part."""
    pack: Any = copy.deepcopy(EXAMPLE if base is None else base)
    for change in changes:
        *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in change["at"].split("/")[1:]]
        parent: Any = pack
        for step in parents:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        if "value" not in change:
            del parent[int(last) if isinstance(parent, list) else last]
        elif isinstance(parent, list) and last == "-":
            parent.append(copy.deepcopy(change["value"]))
        else:
            parent[int(last) if isinstance(parent, list) else last] = copy.deepcopy(change["value"])
    return pack


def changed(at: str, value: object) -> Any:  # noqa: ANN401  any JSON
    return with_changes([{"at": at, "value": value}])


def part(value: Any, at: str) -> Any:  # noqa: ANN401  any JSON
    """Return the part at a JSON Pointer."""
    for step in at.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  any JSON
    """Yield every part without parts of its own, after its JSON Pointer."""
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from leaves(member, f"{at}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list) and value:
        for n, element in enumerate(value):
            yield from leaves(element, f"{at}/{n}")
    else:
        yield at, value


def findings(value: Any, environment: EnvironmentDescription | None = ENVIRONMENT) -> list[Finding]:  # noqa: ANN401  any JSON
    """Return the findings of the gates, without the one about golden cases. Every code can be explained."""
    report = judge_pack(value, environment)
    for finding in report.findings:
        assert find_law(finding.code).code == finding.code
    return [finding for finding in report.findings if finding.code != "golden_cases_unstable"]
