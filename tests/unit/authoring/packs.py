"""The full example of the contract, and packs that differ from it in one place."""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contextplane.app.packs.lint import law_behind
from contextplane.authoring.environment import Surroundings
from contextplane.authoring.finding import Finding
from contextplane.authoring.gates.table import judged

__all__ = ["CASES", "ENVIRONMENT", "EXAMPLE", "changed", "findings", "leaves", "part", "with_changes"]

CASES = Path(__file__).resolve().parents[2] / "cases" / "context_pack"
EXAMPLE: dict[str, Any] = json.loads((CASES / "support.json").read_text(encoding="utf-8"))
ENVIRONMENT = Surroundings(
    endpoints=("internal://orders", "internal://policy", "internal://payments"),
    roles=("support_ops", "finance_lead"),
    ontologies=("ont.support@1.0.0",),
    snapshots=("alias:prod",),
    tenants=("tenant_acme_prod", "tenant_globex"),
    approval_ceiling="destructive",
)
"""Where the full example belongs."""


def with_changes(changes: list[Mapping[str, Any]], base: Any = None) -> Any:  # noqa: ANN401  any JSON
    """The example after some changes: each sets a `value` at a JSON Pointer (`-` appends), or removes what is there."""
    pack: Any = copy.deepcopy(EXAMPLE if base is None else base)
    for change in changes:
        *way, last = [step.replace("~1", "/").replace("~0", "~") for step in change["at"].split("/")[1:]]
        parent: Any = pack
        for step in way:
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
    """What stands at a JSON Pointer."""
    for step in at.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  any JSON
    """Every part that has none of its own, with its JSON Pointer."""
    if isinstance(value, dict) and value:
        for key, one in value.items():
            yield from leaves(one, f"{at}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list) and value:
        for n, one in enumerate(value):
            yield from leaves(one, f"{at}/{n}")
    else:
        yield at, value


def findings(value: Any, surroundings: Surroundings | None = ENVIRONMENT) -> list[Finding]:  # noqa: ANN401  any JSON
    """What the gates say, without what nothing can tell yet. Every code is one that can be explained."""
    findings = judged(value, surroundings).findings
    for finding in findings:
        assert law_behind(finding.code).code == finding.code
    return [one for one in findings if one.code != "golden_cases_unstable"]
