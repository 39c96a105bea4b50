"""The page about resolving against the code: the codes that it names are those of errors, and the cases reach them."""

import re

from contextplane.registry import admit, merge, resolve
from contextplane.trust import compatibility, tenancy
from docs.generate import error_classes
from tests.spec.manifest import ROOT
from tests.support.cases import cases

PAGE = (ROOT / "docs" / "resolving.md").read_text(encoding="utf-8")
NAMED = {
    code for row in re.findall(r"^\|.*\|$|\(`.*`\)", PAGE, re.MULTILINE) for code in re.findall(r"`([a-z_]+)`", row)
}
CODES = {cls.code for cls in error_classes()}
OWN = [
    cls.code
    for cls in error_classes()
    if cls.__module__ in {module_type.__name__ for module_type in (admit, merge, resolve, compatibility, tenancy)}
]


def test_every_code_on_the_page_is_one_of_an_error() -> None:
    assert NAMED - {"ttl_seconds"} <= CODES
    assert len(NAMED) > 25


@cases("code", [code for code in OWN if code != "reference_of_wrong_kind"])
def test_every_refusal_of_a_resolution_is_on_the_page(code: str) -> None:
    assert f"`{code}`" in PAGE


@cases("code", OWN)
def test_every_refusal_of_a_resolution_is_reached_by_a_case(code: str) -> None:
    tests = [
        *(ROOT / "tests" / "unit" / "registry").glob("test_*.py"),
        *(ROOT / "tests" / "unit" / "trust").glob("*.py"),
    ]
    cases = "".join(path.read_text(encoding="utf-8") for path in tests if path.name != "test_resolving_page.py")
    assert f'"{code}"' in cases
