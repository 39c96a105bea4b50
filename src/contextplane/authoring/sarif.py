"""Findings as SARIF 2.1.0, which code hosts show beside the changed lines."""

from collections.abc import Sequence

from contextplane.authoring.author_file import AuthorFile
from contextplane.authoring.finding import Finding
from contextplane.authoring.gates.table import EVERY_LAW
from contextplane.model.canonical import Json

__all__ = ["sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL: dict[str, Json] = {"error": "error", "warning": "warning", "unknown": "note"}


def sarif(findings: Sequence[Finding], file: AuthorFile, path: str, version: str) -> Json:
    """One run of one tool over one file."""
    laws: dict[str, str] = {law.code: law.text for law in EVERY_LAW}
    rules: list[Json] = [{"id": code, "shortDescription": {"text": laws[code]}} for code in sorted(laws)]
    results: list[Json] = [_result(one, file, path) for one in findings]
    driver: Json = {
        "name": "ctx lint",
        "version": version,
        "rules": rules,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(finding: Finding, file: AuthorFile, path: str) -> Json:
    place = file.place(finding.at)
    return {
        "ruleId": finding.code,
        "level": _LEVEL[finding.severity],
        "message": {"text": f"{finding.cause}. {finding.cure}."},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": path},
                    "region": {"startLine": place.line, "startColumn": place.column},
                },
                "logicalLocations": [{"fullyQualifiedName": finding.at or "/"}],
            }
        ],
    }
