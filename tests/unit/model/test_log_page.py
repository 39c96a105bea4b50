"""The fields of a log, as the page lists them, against the reader: these it takes, of these types, and no others."""

import json
import re
from typing import Any

from contextplane.model.execution.log import InvalidLog, read_log
from contextplane.model.problems import Problem
from tests.spec.manifest import ROOT
from tests.support.cases import cases

PAGE = (ROOT / "docs" / "execution-packs.md").read_text(encoding="utf-8").partition("## What a log holds")[2]
FIELDS = {
    name: (kind, must)
    for name, kind, must in re.findall(r"^\| `([^`]+)` \| (\w+) \| (yes)? ?\| [^|]+ \|$", PAGE, re.MULTILINE)
}
OF_TYPE: dict[str, Any] = {
    "text": "eA==",
    "time": "2026-05-04T09:31:42Z",
    "integer": 7,
    "boolean": True,
    "map": {"a": "b"},
    "object": {},
    "list": [],
}
LISTS = ("prompts", "inputs", "steps", "outputs")


def whole() -> dict[str, Any]:
    """A log with every level that there is, and only what must be there."""
    return {
        "model": {"identifier": "m"},
        "system_prompt": "s",
        "prompts": [{}],
        "inputs": [{}],
        "steps": [{"type": "tool_call", "tool": "t"}],
        "outputs": [{"name": "o"}],
        "environment": {"os": "l", "runtime": "r"},
    }


def problems(log: dict[str, Any]) -> tuple[Problem, ...]:
    try:
        read_log(json.dumps(log).encode())
    except InvalidLog as error:
        return error.problems
    return ()


def holder(log: dict[str, Any], field: str) -> tuple[dict[str, Any], str]:
    """The object of a log that has this field, and the field's own name."""
    level, _, name = field.rpartition(".")
    if level.endswith("[]"):
        (inner,) = log[level.removesuffix("[]")]
        return inner, name
    return (log[level] if level else log), name


def test_the_page_lists_the_fields_that_a_log_may_have_and_no_others() -> None:
    log = whole()
    for level in ("", "model.", "environment.", *(f"{name}[]." for name in LISTS)):
        inner, name = holder(log, f"{level}zzz")
        inner[name] = 1
    taken = set()
    for problem in problems(log):
        level = re.sub(r"/(\w+)/0/", r"\1[].", problem.at.removesuffix("zzz")).strip("/").replace("/", ".")
        known = re.search(r"known here: ([^)]+)", problem.message)
        assert known is not None, problem
        taken |= {
            f"{level}{name}" if level.endswith(".") or not level else f"{level}.{name}" for name in known[1].split(", ")
        }
    assert taken == set(FIELDS)


def test_the_page_says_what_must_be_there() -> None:
    empty: dict[str, Any] = {name: [{}] for name in LISTS}
    missing = {problem.at.replace("/0/", "[].").strip("/").replace("/", ".") for problem in problems(empty)}
    assert missing == {name for name, (_, must) in FIELDS.items() if must}
    assert problems({**whole(), "steps": [{"type": "reasoning"}]}) == ()


@cases("field", FIELDS)
def test_a_field_takes_its_type_and_refuses_every_other(field: str) -> None:
    kind, _ = FIELDS[field]
    for other, value in OF_TYPE.items():
        log = whole()
        if other == "object" and kind in {"map", "object"}:
            continue  # both are objects: what may be in them is another question
        inner, name = holder(log, field)
        inner[name] = {**inner[name], "zzz": 1} if kind == "object" and other == "map" else value
        fits = other == kind or (kind, other) == ("text", "time")
        assert (problems(log) == ()) == fits, (other, problems(log))
