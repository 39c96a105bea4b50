"""Findings as SARIF 2.1.0, which code hosts show beside the changed lines."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from contextplane.authoring.diff.tree import id_fields, identity
from contextplane.authoring.gates.table import EVERY_LAW
from contextplane.authoring.law import Finding, Gate, Law
from contextplane.authoring.positions import Place
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value

__all__ = ["LocatedFinding", "sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL: dict[str, Json] = {"error": "error", "warning": "warning", "unknown": "note"}
_FINGERPRINT = "contextplaneLaw/v1"


class LocatedFinding(Value, frozen=True):
    """A finding with its place: a percent-encoded URI reference of the file, and line and column there."""

    finding: Finding
    uri: str
    place: Place


def sarif(
    located: Sequence[LocatedFinding],
    value: Json,
    version: str,
    *,
    laws: Sequence[Law[Any]] = EVERY_LAW,
    not_run: Sequence[Gate] = (),
) -> Json:
    """Return the SARIF log of one run. `value` was judged by `laws`, but not by the gates in `not_run`."""
    known = sorted({law.code: law for law in laws}.values(), key=lambda law: law.code)
    rules: list[Json] = [
        {
            "id": law.code,
            "shortDescription": {"text": law.text},
            "defaultConfiguration": {"level": _LEVEL[law.severity]},
            "properties": {"tags": [law.gate]},
        }
        for law in known
    ]
    index = {law.code: n for n, law in enumerate(known)}
    seen: Counter[str] = Counter()
    results: list[Json] = []
    for entry in located:
        name = f"{entry.finding.code} {_stable_place(value, entry.finding.at)}"
        # A law may be broken more than once at one place: each finding has a number of its own.
        results.append(_result(entry, index[entry.finding.code], f"{name} {seen[name]}"))
        seen[name] += 1
    driver: Json = {"name": "ctx lint", "version": version, "rules": rules}
    # Columns count characters, not bytes and not UTF-16 units.
    run: dict[str, Json] = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if not_run:
        text = f"not run, because the schema is violated: {', '.join(not_run)}"
        notes: list[Json] = [{"level": "warning", "message": {"text": text}}]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(located: LocatedFinding, index: int, name: str) -> Json:
    finding = located.finding
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVEL[finding.severity],
        "message": {"text": f"{_sentence(finding.cause)} {_sentence(finding.cure)}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": located.uri},
                    "region": {"startLine": located.place.line, "startColumn": located.place.column},
                },
                "logicalLocations": [{"fullyQualifiedName": finding.at or "/"}],
            }
        ],
        "partialFingerprints": {_FINGERPRINT: Digest.of(name.encode()).hex},
    }


def _sentence(text: str) -> str:
    """Add a capital and a full stop, as the format asks for."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _stable_place(value: Json, at: str) -> str:
    """Replace the positions in a place by ids, so that it stays when entries before it come and go."""
    path: list[str] = []
    name = ""
    for step in (token.replace("~1", "/").replace("~0", "~") for token in at.split("/")[1:]):
        fields, inner = id_fields(name), None
        if isinstance(value, list):
            inner = value[int(step)] if step.isdecimal() and int(step) < len(value) else None
        elif isinstance(value, dict):
            inner = value.get(step)
        path.append(identity(inner, fields) if fields is not None and inner is not None else step)
        value, name = inner, step
    return pointer(path)
