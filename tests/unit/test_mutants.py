"""The mutants of `tests/mutants`: each applies to the sources of today, and names tests that there are."""

from dataclasses import replace
from pathlib import Path

import pytest

from scripts.mutants import MUTANTS, Mutant, Outcome, imported_package, load_mutants, problems, run_mutant, summary
from tests.support.cases import cases

EVERY = load_mutants()
ROOMS = (
    *("model", "policy", "authoring", "trust", "registry", "compiler", "record", "store", "handoff", "audit"),
    *("runtime", "evaluation", "adapters", "app", "cli", "mcp"),
)
TEST = "tests/unit/test_mutants.py"
INHERITED = "tests/ports/test_ed25519.py::TestEd25519::test_it_holds_for_no_other_message"
EXAMPLE = Mutant(
    id="model/example",
    law="A limit holds.",
    path="contextplane/limits.py",
    find="if size > LIMIT:",
    replace="if False:",
    tests=(f"{TEST}::test_every_room_has_mutants",),
)


@cases("mutant", EVERY, ids=lambda mutant: mutant.id)
def test_every_mutant_applies_exactly_once_and_names_tests_that_exist(mutant: Mutant) -> None:
    assert list(problems(mutant)) == []


@cases("mutant", EVERY, ids=lambda mutant: mutant.id)
def test_every_mutant_says_in_a_sentence_which_law_it_destroys(mutant: Mutant) -> None:
    assert mutant.law.endswith(".")
    assert mutant.law[0].isupper()
    assert [other.id for other in EVERY if other.law == mutant.law] == [mutant.id]


def test_every_room_has_mutants() -> None:
    assert {path.stem for path in MUTANTS.glob("*.toml")} == set(ROOMS)
    assert len(EVERY) >= 100


def sources(tmp_path: Path, text: str) -> Path:
    (tmp_path / "contextplane").mkdir()
    (tmp_path / "contextplane" / "__init__.py").touch()
    (tmp_path / "contextplane" / "limits.py").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "changes", "problem"),
    [
        ("if size > LIMIT:\n    pass\n", {}, ""),
        ("if size >= LIMIT:\n    pass\n", {}, "its text occurs 0 times in contextplane/limits.py"),
        ("if size > LIMIT:\n    pass\n" * 2, {}, "its text occurs 2 times in contextplane/limits.py"),
        ("", {"path": "contextplane/gone.py"}, "there is no contextplane/gone.py"),
        ("if size > LIMIT:\n    pass\n", {"replace": "if :"}, "what it makes is no Python"),
        ("if size > LIMIT:\n    pass\n", {"replace": EXAMPLE.find}, "it changes nothing"),
        ("if size > LIMIT:\n    pass\n", {"tests": ()}, "no test is named"),
        ("if size > LIMIT:\n    pass\n", {"tests": ("tests/gone.py",)}, "there is no tests/gone.py"),
        ("if size > LIMIT:\n    pass\n", {"tests": (f"{TEST}::gone",)}, f"there is no {TEST}::gone"),
        ("if size > LIMIT:\n    pass\n", {"tests": (INHERITED,)}, ""),
        ("if size > LIMIT:\n    pass\n", {"tests": (INHERITED + "_x",)}, f"there is no {INHERITED}_x"),
        (
            "if size > LIMIT:\n    pass\n",
            {"tests": (f"{TEST}::TestGone::test_it",)},
            f"there is no {TEST}::TestGone::test_it",
        ),
    ],
)
def test_a_mutant_that_cannot_be_run_says_why(
    tmp_path: Path, text: str, changes: dict[str, str | tuple[str, ...]], problem: str
) -> None:
    mutant = replace(EXAMPLE, **changes)  # type: ignore[arg-type]
    folder = sources(tmp_path, text)
    assert list(problems(mutant, folder)) == ([problem] if problem else [])
    if problem:
        assert run_mutant(mutant, folder).verdict == "does not apply"


def test_tests_of_a_mutant_import_the_copy_and_not_the_checkout(tmp_path: Path) -> None:
    assert imported_package(sources(tmp_path, "")).is_relative_to(tmp_path)


def test_a_survivor_is_accepted_only_if_it_is_explained() -> None:
    survivor = Outcome(mutant=EXAMPLE, verdict="survived")
    explained = replace(survivor, mutant=replace(EXAMPLE, explained="the caller checks it as well"))
    killed = replace(survivor, verdict="killed")
    broken = replace(explained, verdict="tests broken")
    assert [outcome.is_accepted for outcome in (survivor, explained, killed, broken)] == [False, True, True, False]
    assert summary([killed, survivor, explained]) == "mutants: 3 in all, 1 killed, 2 survived (1 explained)"
    assert summary([survivor]) == "mutants: 1 in all, 0 killed, 1 survived"


def test_a_room_and_an_id_select_mutants() -> None:
    assert {mutant.id.partition("/")[0] for mutant in load_mutants(["trust", "store"])} == {"trust", "store"}
    assert [mutant.id for mutant in load_mutants([EVERY[0].id])] == [EVERY[0].id]


def test_the_test_that_noticed_a_mutant_is_known_by_its_id() -> None:
    output = "F\n=== short test summary info ===\nFAILED tests/a.py::test_it[one-2] - assert 1 == 2\n1 failed in 1s\n"
    outcomes = [Outcome(mutant=EXAMPLE, verdict="killed", output=text) for text in (output, "did not end within 3 s")]
    assert [outcome.failed_test for outcome in outcomes] == ["tests/a.py::test_it[one-2]", ""]
