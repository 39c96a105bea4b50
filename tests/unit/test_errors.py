"""One family tree of errors: one root, stable codes, each documented where it is raised and in docs/errors.md."""

import re
import subprocess
import sys
from pathlib import Path

from contextplane.errors import ContextPlaneError
from docs.generate import FAMILIES, error_classes
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]
CLASSES = error_classes()
_CODE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


def test_there_are_errors() -> None:
    assert CLASSES


def test_every_exception_of_the_package_descends_from_the_one_root() -> None:
    # error_classes() imported every module, so every exception class of the package exists by now.
    def below(cls: type[BaseException]) -> set[type[BaseException]]:
        return {cls}.union(*(below(child) for child in type.__subclasses__(cls)))

    ours = {cls for cls in below(BaseException) if cls.__module__.partition(".")[0] == "contextplane"}
    assert {cls for cls in ours if not issubclass(cls, ContextPlaneError)} == set()


def test_no_two_errors_share_a_code() -> None:
    codes = [cls.code for cls in CLASSES]
    assert sorted(codes) == sorted(set(codes))
    assert ContextPlaneError.code not in codes


each_class = cases("cls", CLASSES, ids=lambda cls: cls.__qualname__)


@each_class
def test_an_error_has_a_code_of_its_own_in_snake_case(cls: type[ContextPlaneError]) -> None:
    assert "code" in vars(cls), "an inherited code names two things"
    assert _CODE.fullmatch(cls.code)


@each_class
def test_an_error_belongs_to_a_known_family(cls: type[ContextPlaneError]) -> None:
    assert cls.family in FAMILIES


@each_class
def test_an_error_says_what_happened_in_its_docstring(cls: type[ContextPlaneError]) -> None:
    assert len((vars(cls).get("__doc__") or "").strip()) >= 12


@each_class
def test_an_error_stands_beside_the_code_that_raises_it(cls: type[ContextPlaneError]) -> None:
    assert cls.__module__ != ContextPlaneError.__module__


@each_class
def test_an_error_shows_its_place_and_its_way_out_and_survives_a_walk_outwards(cls: type[ContextPlaneError]) -> None:
    error = ContextPlaneError.__new__(cls)
    ContextPlaneError.__init__(error, "it is so", at="[1]", hint="do this", details={"n": 1})
    assert str(error.under("refs")) == "refs[1]: it is so (do this)"
    assert error.details == {"n": 1}


def test_an_error_without_place_and_hint_is_its_message() -> None:
    error = ContextPlaneError("it is so")
    assert (str(error), error.at, error.hint, error.details) == ("it is so", None, None, {})


def test_the_generated_pages_say_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docs.generate", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
