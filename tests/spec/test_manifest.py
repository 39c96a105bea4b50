"""The manifest refuses bad rows, and the scan counts no claim that pytest would not run."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import FunctionType

import pytest

from contextplane.testing import proofs
from tests.spec.manifest import ROOT, ManifestRefused, load
from tests.spec.proofs import Proof, scan
from tests.support.cases import cases

MARK = vars(proofs)["proves"]  # not by its name: the scan would take it for a claim
GOOD = '["doc:part:one"]\nsource = "Part"\nlaw = "It holds."\n'


def manifest(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_good_manifest_is_read_into_values_in_the_order_of_its_rows(tmp_path: Path) -> None:
    later = '["doc:part:a-later-one"]\nsource = "Part"\nlaw = "It holds too."\ndeferred = "needs more"\n'
    rows = load(manifest(tmp_path, doc=GOOD + later))
    assert list(rows) == ["doc:part:one", "doc:part:a-later-one"]
    assert (rows["doc:part:one"].document, rows["doc:part:one"].deferred) == ("doc", None)
    assert rows["doc:part:a-later-one"].deferred == "needs more"


@pytest.mark.parametrize(
    ("row", "breach"),
    [
        ('["doc:part:one"]\nsource = "Part"\nlaw = "It holds."\nowner = "me"\n', "unknown field 'owner'"),
        ('["other:part:one"]\nsource = "Part"\nlaw = "It holds."\n', "does not start with 'doc:'"),
        ('["doc:one"]\nsource = "Part"\nlaw = "It holds."\n', "is not document:section:slug"),
        ('["doc:Part:one"]\nsource = "Part"\nlaw = "It holds."\n', "is not document:section:slug"),
        ('["doc:part:one"]\nsource = "Part"\n', "'law' is not a text"),
        ('["doc:part:one"]\nsource = ""\nlaw = "It holds."\n', "'source' is not a text"),
        ('["doc:part:one"]\nsource = "Part"\nlaw = " "\n', "'law' is not a text"),
        ('["doc:part:one"]\nsource = "Part"\nlaw = 7\n', "'law' is not a text"),
        ('["doc:part:one"]\nsource = "Part"\nlaw = "It holds."\ndeferred = ""\n', "'deferred' is not a text"),
        ('["doc:part:one"]\nsource = "Part"\nlaw = "It holds."\ndeferred = true\n', "'deferred' is not a text"),
        (GOOD + '["doc:part:two"]\nsource = "Part"\nlaw = "it  holds."\n', "has the law of doc:part:one"),
        (GOOD + GOOD, "doc.toml"),
        ('"doc:part:one" = "It holds."\n', "is not a table"),
        ("[[", "doc.toml"),
    ],
)
def test_a_bad_row_refuses_the_manifest_and_says_why(tmp_path: Path, row: str, breach: str) -> None:
    with pytest.raises(ManifestRefused, match=r"doc\.toml: ") as refused:
        load(manifest(tmp_path, doc=row))
    assert breach in str(refused.value)


def test_the_same_law_in_two_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestRefused, match="has the law of doc:part:one"):
        load(manifest(tmp_path, doc=GOOD, second=GOOD.replace("doc:", "second:")))


def test_all_breaches_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(ManifestRefused) as refused:
        load(manifest(tmp_path, doc='["x"]\n', second='["y"]\n'))
    assert {line.partition(":")[0] for line in str(refused.value).splitlines()} == {"doc.toml", "second.toml"}


def test_the_mark_changes_nothing_about_the_test() -> None:
    def test() -> str:
        return "ran"

    assert MARK("a:b:c")(MARK("d:e:f")(test)) is test
    assert (test(), vars(test)) == ("ran", {"__proves__": ("a:b:c", "d:e:f")})


def data_driven() -> list[Callable[..., None]]:
    """The same two cases, in each of the forms that a data-driven test has."""

    def test(n: str) -> None:
        assert n != "y"

    def copy() -> Callable[..., None]:
        return FunctionType(test.__code__, test.__globals__)

    return [
        cases("n", ["x", "y"], ids=["a case", "another"])(copy()),
        pytest.mark.parametrize("n", ["a case", "another"])(copy()),
        pytest.mark.parametrize("n", ["x", "y"], ids=["a case", "another"])(copy()),
        pytest.mark.parametrize("n", ["x", "y"], ids={"x": "a case", "y": "another"}.get)(copy()),
        pytest.mark.parametrize("n", [pytest.param("x", id="a case"), pytest.param("y", id="another")])(copy()),
        pytest.mark.parametrize(("n", "m"), [("a", "case"), ("y", "z")], ids=["a case", "another"])(copy()),
    ]


def test_a_claim_on_a_case_that_is_not_there_is_refused_when_the_test_is_made() -> None:
    for test in data_driven():
        assert MARK("a:b:c", case="a case")(test) is test
        assert MARK("a:b:d", "a:b:e", case="*")(test) is test
        with pytest.raises(ValueError, match="no case 'a third', which is to prove d:e:f"):
            MARK("d:e:f", case="a third")(test)
    for case in ("a case", "*"):
        with pytest.raises(ValueError, match="no case"):
            MARK("a:b:c", case=case)(lambda: None)


def test_a_data_driven_test_that_claims_several_ids_names_the_case_of_each() -> None:
    for test in data_driven():
        with pytest.raises(ValueError, match="2 cases are to prove a:b:c, d:e:f"):
            MARK("a:b:c", "d:e:f")(test)
    for test in data_driven():
        assert MARK("a:b:c")(test) is test, "a single claim rests on all cases together"
        with pytest.raises(ValueError, match="2 cases are to prove d:e:f, a:b:c"):
            MARK("d:e:f")(test)
    assert MARK("a:b:c", "d:e:f")(scan) is scan, "it has no cases"


def test_a_case_that_fails_names_the_requirements_that_rest_on_it_and_no_other() -> None:
    test = data_driven()[0]
    MARK("d:s:every", case="*")(MARK("d:s:good", case="a case")(MARK("d:s:bad", case="another")(test)))
    with pytest.raises(ExceptionGroup) as failed:
        test()
    (error,) = failed.value.exceptions
    assert error.__notes__ == ["case another, which is to prove d:s:bad, d:s:every"]


def suite(tmp_path: Path, **files: str) -> Path:
    """A repository of test modules (`test_x`), other modules (`helper`) and law suites (`laws_x`)."""
    for name, text in files.items():
        folder = "src/contextplane/testing/laws" if name.startswith("laws_") else "tests/unit"
        path = tmp_path / folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return tmp_path


def test_a_proof_is_found_on_functions_and_methods_with_all_its_ids(tmp_path: Path) -> None:
    result = scan(
        suite(
            tmp_path,
            test_a="""
            @proves("d:s:one", "d:s:two")
            @pytest.mark.parametrize("n", [1])
            def test_it(n): assert n

            @manifest.proves("d:s:three")
            async def test_other(): assert True

            class TestA:
                class TestB:
                    @proves("d:s:four")
                    def test_it(self): assert True
            """,
        )
    )
    assert result.mistakes == ()
    assert result.proofs == (
        Proof("d:s:four", "tests/unit/test_a.py::TestA::TestB::test_it"),
        Proof("d:s:one", "tests/unit/test_a.py::test_it"),
        Proof("d:s:three", "tests/unit/test_a.py::test_other"),
        Proof("d:s:two", "tests/unit/test_a.py::test_it"),
    )


CLAIM = '@proves("d:s:one")\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (CLAIM + "def check_it(): assert True", "is not named test_"),
        (CLAIM + "def test_it(): pass", "is hollow"),
        (CLAIM + "def test_it():\n    '''It holds.'''\n    ...", "is hollow"),
        ("@proves()\ndef test_it(): assert True", "ids written out"),
        ("@proves(KEY)\ndef test_it(): assert True", "ids written out"),
        ("@proves(*KEYS)\ndef test_it(): assert True", "ids written out"),
        ("@proves(key='d:s:one')\ndef test_it(): assert True", "ids written out"),
        ("@proves('d:s:one', case=CASE)\ndef test_it(): assert True", "ids written out"),
        ("@proves\ndef test_it(): assert True", "decorator of a test"),
        (CLAIM + "@pytest.mark.skip\ndef test_it(): assert True", "is skipped"),
        (CLAIM + "@pytest.mark.skip(reason='x')\ndef test_it(): assert True", "is skipped"),
        (CLAIM + "@pytest.mark.xfail\ndef test_it(): assert True", "is skipped"),
        ("pytestmark = [pytest.mark.skip]\n" + CLAIM + "def test_it(): assert True", "is skipped"),
        ("@pytest.mark.skip\nclass TestA:\n    @proves('d:s:one')\n    def test_it(self): assert True", "is skipped"),
        ("@cases('n', [1])\n" + CLAIM + "def test_it(n): assert n", "does not see them"),
        ("@pytest.mark.parametrize('n', [1])\n" + CLAIM + "def test_it(n): assert n", "does not see them"),
        ("class A:\n    @proves('d:s:one')\n    def test_it(self): assert True", "not a class that pytest collects"),
        (
            "class TestA:\n    __test__ = False\n    @proves('d:s:one')\n    def test_it(self): assert 1",
            "pytest collects",
        ),
        (
            "class TestA:\n    def __init__(self): ...\n    @proves('d:s:one')\n    def test_it(self): assert 1",
            "collects",
        ),
        (CLAIM + "class TestA:\n    def test_it(self): assert True", "stands on the class"),
        ("def test_it():\n    @proves('d:s:one')\n    def test_inner(): assert True", "decorator of a test"),
        ("test_it = proves('d:s:one')(check)", "decorator of a test"),
        ("from tests.spec.manifest import proves as p\n@p('d:s:one')\ndef test_it(): assert True", "another name"),
    ],
)
def test_a_claim_that_pytest_would_not_run_is_a_mistake(tmp_path: Path, text: str, reason: str) -> None:
    result = scan(suite(tmp_path, test_a=text))
    assert len(result.mistakes) == 1
    assert result.mistakes[0].startswith("tests/unit/test_a.py:")
    assert reason in result.mistakes[0]


def test_a_claim_outside_of_test_modules_is_a_mistake_and_no_proof(tmp_path: Path) -> None:
    result = scan(suite(tmp_path, helper=CLAIM + "def test_it(): assert True"))
    assert (result.proofs, len(result.mistakes)) == ((), 1)


def test_a_condition_is_no_skip(tmp_path: Path) -> None:
    text = CLAIM + "@pytest.mark.skipif(sys.platform == 'win32', reason='no modes')\ndef test_it(): assert True"
    assert len(scan(suite(tmp_path, test_a=text)).proofs) == 1


LAW = """
class ThingLaw:
    @proves("d:s:one")
    def test_one(self): assert self.make()

    @proves("d:s:two")
    def test_two(self): assert self.make()
"""


@pytest.mark.parametrize(
    ("test", "keys"),
    [
        ("from contextplane.testing.laws.laws_x import ThingLaw\nclass TestIt(ThingLaw): ...", ["one", "two"]),
        ("from contextplane.testing.laws import ThingLaw as T\nclass TestIt(T): ...", ["one", "two"]),
        ("from contextplane.testing import laws\nclass TestIt(laws.ThingLaw): ...", ["one", "two"]),
        ("from contextplane.testing.laws import Deeper\nclass TestIt(Deeper[bytes]): ...", ["one", "three"]),
        (
            "from contextplane.testing.laws import ThingLaw\nclass A(ThingLaw): ...\nclass TestIt(A): ...",
            ["one", "two"],
        ),
        (
            "from contextplane.testing.laws import ThingLaw\nclass TestIt(ThingLaw):\n    def test_one(self): ...",
            ["two"],
        ),
        ("from contextplane.testing.laws import ThingLaw\nclass It(ThingLaw): ...", []),
        ("from contextplane.testing.laws import ThingLaw\n@pytest.mark.skip\nclass TestIt(ThingLaw): ...", []),
        ("from contextplane.testing.laws import ThingLaw", []),
        ("", []),
    ],
)
def test_a_law_counts_where_a_test_class_inherits_it(tmp_path: Path, test: str, keys: list[str]) -> None:
    deeper = """
class Deeper(ThingLaw):
    def test_two(self): assert True

    @proves("d:s:three")
    def test_three(self): assert True
"""
    result = scan(suite(tmp_path, laws_x=LAW + deeper, test_a=test))
    assert result.mistakes == ()
    assert [proof.key.removeprefix("d:s:") for proof in result.proofs] == keys


def test_two_suites_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    result = scan(suite(tmp_path, laws_x=LAW, laws_y=LAW, test_a=""))
    assert "a second suite ThingLaw" in result.mistakes[0]


def test_the_count_is_printed_with_a_line_for_each_document() -> None:
    command = [sys.executable, "-m", "tests.spec.manifest"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    *table, total = printed.splitlines()
    rows = [line.split() for line in table[1:]]
    documents = {row.document for row in load().values()}
    assert {row[0] for row in rows} == documents
    sums = [sum(int(row[column]) for row in rows) for column in range(1, 5)]
    assert total.startswith(f"requirements: {sums[0]} proved, {sums[1]} deferred")
    assert total.endswith(f"{len(load())} total")
    assert sums[3] == len(load())
