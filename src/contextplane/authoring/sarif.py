"""Findings as SARIF 2.1.0, which code hosts show beside the changed lines."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from contextplane.authoring.diff.tree import id_fields, identity
from contextplane.authoring.finding import Finding, Gate, Law
from contextplane.authoring.gates.table import EVERY_LAW
from contextplane.authoring.positions import Place
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value

__all__ = ["Located", "sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL: dict[str, Json] = {"error": "error", "warning": "warning", "unknown": "note"}
_FINGERPRINT = "contextplaneLaw/v1"


class Located(Value, frozen=True):
    """A finding, and where it stands: a URI reference of the file, percent-encoded, and the place there."""

    finding: Finding
    uri: str
    place: Place


def sarif(
    located: Sequence[Located],
    value: Json,
    version: str,
    *,
    laws: Sequence[Law[Any]] = EVERY_LAW,
    not_run: Sequence[Gate] = (),
) -> Json:
    """One run of one tool. `value` is what was judged, and by these laws; `not_run`: gates that could not look."""
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
    for one in located:
        named = f"{one.finding.code} {_by_ids(value, one.finding.at)}"
        # The same law may be broken more than once at one place: each has a number of its own.
        results.append(_result(one, index[one.finding.code], f"{named} {seen[named]}"))
        seen[named] += 1
    driver: Json = {"name": "ctx lint", "version": version, "rules": rules}
    # A column is one of characters, not of bytes and not of halves of them.
    run: dict[str, Json] = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if not_run:
        told = f"not run, because the form is wrong: {', '.join(not_run)}"
        notes: list[Json] = [{"level": "warning", "message": {"text": told}}]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(one: Located, index: int, named: str) -> Json:
    finding = one.finding
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVEL[finding.severity],
        "message": {"text": f"{_sentence(finding.cause)} {_sentence(finding.cure)}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": one.uri},
                    "region": {"startLine": one.place.line, "startColumn": one.place.column},
                },
                "logicalLocations": [{"fullyQualifiedName": finding.at or "/"}],
            }
        ],
        "partialFingerprints": {_FINGERPRINT: Digest.of(named.encode()).hex},
    }


def _sentence(text: str) -> str:
    """With a capital and a full stop, as the format asks for."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def _by_ids(value: Json, at: str) -> str:
    """A place with ids instead of positions: what stands before a part may come and go, and it is the same finding."""
    way: list[str] = []
    name = ""
    for step in (token.replace("~1", "/").replace("~0", "~") for token in at.split("/")[1:]):
        fields, inner = id_fields(name), None
        if isinstance(value, list):
            inner = value[int(step)] if step.isdecimal() and int(step) < len(value) else None
        elif isinstance(value, dict):
            inner = value.get(step)
        way.append(identity(inner, fields) if fields is not None and inner is not None else step)
        value, name = inner, step
    return pointer(way)
