"""`ctx explain`: every documented error, law and gate is explained, and unknown names are answered with a way out."""

import json
import re
from pathlib import Path

import pytest

from contextplane.app.explain import ErrorExplanation, LawExplanation, find_explanation, load_explanations
from contextplane.authoring.artifacts import LAWS_OF
from contextplane.cli.exit import EXIT_OF, NOT_FOUND
from contextplane.compiler.reasons import REASONS
from tests.spec.manifest import ROOT
from tests.surfaces.commands import ctx
from tests.surfaces.test_startup import imported

PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
DOCUMENTED = dict(re.findall(r"^\| \[`(\w+)`\]\(#\w+\) \| (\w+) \|$", PAGE, re.MULTILINE))
LAWS = {law.code: law for laws in LAWS_OF.values() for law in laws}


def test_every_documented_error_is_explained() -> None:
    assert len(DOCUMENTED) > 200
    assert set(load_explanations().errors) == set(DOCUMENTED)
    for code, family in DOCUMENTED.items():
        explanation = find_explanation(code)
        error = explanation.error if isinstance(explanation, LawExplanation) else explanation
        assert isinstance(error, ErrorExplanation), code
        assert (error.code, error.family) == (code, family)
        assert error.means
        assert len(error.to_do) <= 8


def test_every_law_is_explained_by_its_text() -> None:
    for code, law in LAWS.items():
        for name in (code, f"{law.gate}/{code}"):
            explanation = find_explanation(name)
            assert isinstance(explanation, LawExplanation), name
            assert (explanation.gate, explanation.severity) == (law.gate, law.severity)
            assert explanation.law == " ".join(law.text.split())


def test_an_error_is_explained_with_its_family_its_status_and_what_to_do(tmp_path: Path) -> None:
    result = ctx("explain", "object_corrupt", cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    heading, *lines = result.out.splitlines()
    assert heading == "object_corrupt (an error of ctx; family untrusted, exit status 11)"
    assert lines[-2:] == [
        "What to do:",
        "  - 'ctx fsck' lists all damage; putting the right bytes again heals it",
    ]
    assert ctx("lint", "--explain", "object_corrupt", cwd=tmp_path) == result


def test_a_reason_of_the_compiler_is_explained(tmp_path: Path) -> None:
    result = ctx("explain", "intent_denied", cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("intent_denied (a reason of ctx compile, for: tool)\nThe request is denied, ")
    assert "What to do:\n" in result.out
    answer = json.loads(ctx("explain", "over_budget", "--json", cwd=tmp_path).out)
    assert answer["kind"] == "reason"
    assert answer["kinds"] == ["tool", "evidence", "memory", "block", "required evidence"]
    assert len(json.loads(ctx("explain", "--json", cwd=tmp_path).out)["reasons"]) == len(REASONS)


def test_a_code_of_a_law_and_of_an_error_is_explained_as_both(tmp_path: Path) -> None:
    assert set(DOCUMENTED) & set(LAWS) == {"overlay_misplaced", "overlay_widens"}
    result = ctx("explain", "overlay_widens", cwd=tmp_path)
    assert result.out.startswith("risk/overlay_widens (error)\n")
    assert "\noverlay_widens (an error of ctx; family refused, exit status 10)\n" in result.out


def test_a_gate_is_explained_by_all_its_laws(tmp_path: Path) -> None:
    result = ctx("explain", "policy", cwd=tmp_path)
    laws = [law for law in LAWS.values() if law.gate == "policy"]
    assert result.out.startswith(f"the gate policy: {len(laws)} laws\n")
    assert all(f"  {law.code} ({law.severity})\n" in result.out for law in laws)
    assert ctx("explain", "policy/", cwd=tmp_path) == result


@pytest.mark.parametrize(
    ("name", "kind", "members"),
    [
        ("object_corrupt", "error", {"code", "family", "exit_status", "means", "to_do"}),
        ("secret_present", "law", {"gate", "code", "severity", "law", "to_do", "error"}),
        ("risk", "gate", {"gate", "laws"}),
    ],
)
def test_an_explanation_is_one_json_document(tmp_path: Path, name: str, kind: str, members: set[str]) -> None:
    answer = json.loads(ctx("explain", name, "--json", cwd=tmp_path).out)
    assert answer["kind"] == kind
    assert set(answer) == {"kind", *members}
    if kind == "error":
        assert answer["exit_status"] == EXIT_OF[answer["family"]]


@pytest.mark.parametrize("name", ["obect_corupt", "object-corrupt", "risk/object_corupt"])
def test_an_unknown_code_is_answered_with_the_nearest_one(tmp_path: Path, name: str) -> None:
    result = ctx("explain", name, cwd=tmp_path)
    assert (result.status, result.out) == (NOT_FOUND, "")
    assert "did you mean object_corrupt?" in result.err


def test_a_name_like_no_other_is_answered_with_where_to_look(tmp_path: Path) -> None:
    result = ctx("explain", "xyz", "--json", cwd=tmp_path)
    assert (result.status, result.out) == (NOT_FOUND, "")
    error = json.loads(result.err)["error"]
    assert (error["code"], error["family"]) == ("law_unknown", "not_found")
    assert error["hint"].startswith("'ctx explain' lists every code; the gates are schema, ")


def test_without_a_code_all_of_them_are_listed(tmp_path: Path) -> None:
    names = ctx("explain", "--quiet", cwd=tmp_path).out.split()
    assert names == [*DOCUMENTED, *(f"{law.gate}/{code}" for code, law in LAWS.items()), *REASONS]
    lines = ctx("explain", cwd=tmp_path).out.splitlines()
    assert [line.split()[0] for line in lines] == [*DOCUMENTED, *LAWS, *REASONS]
    answer = json.loads(ctx("explain", "--json", cwd=tmp_path).out)
    assert [error["code"] for error in answer["errors"]] == list(DOCUMENTED)
    assert [law["code"] for law in answer["laws"]] == list(LAWS)


def test_explaining_an_error_imports_nothing_of_what_raises_it(tmp_path: Path) -> None:
    modules = imported("explain", "object_corrupt", cwd=tmp_path)
    ours = {name.split(".")[1] for name in modules if name.startswith("contextplane.")}
    assert ours == {"app", "cli", "errors", "model"}
