"""Findings as SARIF 2.1.0, which code hosts show beside the changed lines."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from contextplane.authoring.diff.tree import id_fields, identity
from contextplane.authoring.gates.table import EVERY_LAW
from contextplane.authoring.law import Finding, Gate, Law, redact_secrets
from contextplane.authoring.positions import Place
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.value import Value

__all__ = ["LocatedFinding", "failed_cases_log", "sarif", "unreadable_log"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL: dict[str, Json] = {"error": "error", "warning": "warning", "unknown": "note"}
_FINGERPRINT = "contextplaneLaw/v1"
_URN = "urn:contextplane"
_CASE = "case_failed"
_FIRST_WORDS = (
    "a",
    "an",
    "the",
    "this",
    "that",
    "it",
    "its",
    "there",
    "no",
    "nothing",
    "none",
    "every",
    "each",
    "only",
)
"""Words that begin sentences of ours. Any other first word may be an id of the document, and keeps its case."""


class LocatedFinding(Value, frozen=True):
    """A finding with its place: a percent-encoded URI reference of the file, and line and column there."""

    finding: Finding
    uri: str
    place: Place


def sarif(  # noqa: PLR0913  what a run is described by
    located: Sequence[LocatedFinding],
    value: Json,
    version: str,
    *,
    laws: Sequence[Law[Any]] = EVERY_LAW,
    not_run: Sequence[Gate] = (),
    cures: Mapping[str, Sequence[str]] | None = None,
) -> Json:
    """Return the SARIF log of one run. `value` was judged by `laws`, but not by the gates in `not_run`.

    `cures`: what can be done about a broken law, by its code.
    """
    known = sorted({law.code: law for law in laws}.values(), key=lambda law: law.code)
    rules = [_law_rule(law, (cures or {}).get(law.code, ())) for law in known]
    index = {law.code: n for n, law in enumerate(known)}
    seen: Counter[str] = Counter()
    results: list[Json] = []
    for entry in located:
        finding = entry.finding
        name = f"{finding.code} {_stable_place(value, finding.at)}"
        # A law may be broken more than once at one place: each finding has a number of its own.
        results.append(
            _result(
                (finding.code, index[finding.code], _LEVEL[finding.severity]),
                f"{_sentence(finding.cause)} {_advice(finding.cure)}",
                (entry.uri, entry.place, finding.at),
                f"{name} {seen[name]}",
            )
        )
        seen[name] += 1
    run = _run("lint", version, rules, results)
    if not_run:
        text = f"not run, because the schema is violated: {', '.join(not_run)}"
        notes: list[Json] = [{"level": "warning", "message": {"text": text}}]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": notes}]
    return _log(run)


def unreadable_log(error: ContextPlaneError, text: str, uri: str, place: Place, version: str) -> Json:
    """Return the SARIF log for a file that cannot be judged: one result, where reading stopped.

    `text` explains the error in general.
    """
    rule = _rule(error.code, text, "error", "read", (error.hint or "",))
    words = f"{_sentence(error.message)} {_advice(error.hint)}" if error.hint else _sentence(error.message)
    words = redact_secrets(words)
    result = _result((error.code, 0, "error"), words, (uri, place, ""), f"{error.code} {error.message}")
    return _log(_run("lint", version, [rule], [result]))


def failed_cases_log(failures: Sequence[tuple[str, str, str, Place]], version: str) -> Json:
    """Return the SARIF log of failed cases: name, differences, the URI of the table, and the place."""
    text = "A request compiles to the verdict, the tools and the gates that its case expects."
    cure = "change the pack, or what the case expects; 'ctx why' explains an item"
    results = [
        _result((_CASE, 0, "error"), f"{name}: {differences}.", (uri, place, ""), f"{uri} {name}")
        for name, differences, uri, place in failures
    ]
    return _log(_run("test", version, [_rule(_CASE, text, "error", "test", (cure,))], results))


def _law_rule(law: Law[Any], cures: Sequence[str]) -> Json:
    return _rule(law.code, law.text, law.severity, law.gate, cures)


def _rule(code: str, text: str, severity: str, tag: str, cures: Sequence[str]) -> Json:
    effect = "An error refuses the document." if severity == "error" else "A warning does not refuse the document."
    ways = [*(_advice(cure) for cure in cures if cure), f"'ctx explain {code}' explains it."]
    return {
        "id": code,
        "shortDescription": {"text": text},
        "fullDescription": {"text": f"{text} {effect}"},
        "help": {"text": " ".join(ways), "markdown": "\n".join(f"- {way}" for way in ways)},
        "helpUri": f"{_URN}:{code}",
        "defaultConfiguration": {"level": _LEVEL[severity]},
        "properties": {"tags": [tag]},
    }


def _run(verb: str, version: str, rules: Sequence[Json], results: Sequence[Json]) -> dict[str, Json]:
    driver: Json = {
        "name": f"ctx {verb}",
        "version": version,
        "informationUri": f"{_URN}:{verb}",
        "rules": list(rules),
    }
    # Columns count characters, not bytes and not UTF-16 units.
    return {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": list(results)}


def _log(run: dict[str, Json]) -> Json:
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(rule: tuple[str, int, Json], text: str, location: tuple[str, Place, str], name: str) -> Json:
    """Return one result: rule, index and level; text; URI, place and pointer; and what identifies it."""
    code, index, level = rule
    uri, place, at = location
    return {
        "ruleId": code,
        "ruleIndex": index,
        "level": level,
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri},
                    "region": {"startLine": place.line, "startColumn": place.column},
                },
                "logicalLocations": [{"fullyQualifiedName": at or "/"}],
            }
        ],
        "partialFingerprints": {_FINGERPRINT: Digest.of(name.encode()).hex},
    }


def _sentence(text: str) -> str:
    """Add a full stop, and a capital to a first word of ours. An id stays as it is."""
    capital = text.partition(" ")[0] in _FIRST_WORDS
    return (text[:1].upper() + text[1:] if capital else text) + ("" if text.endswith((".", "?", "!")) else ".")


def _advice(cure: str) -> str:
    """Return a cure as a sentence. Cures begin with a verb of ours, or with a name that is no plain word."""
    plain = re.match(r"[a-z]+(?=[ ,;]|: |$)", cure) is not None
    return _sentence(cure[:1].upper() + cure[1:] if plain else cure)


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
