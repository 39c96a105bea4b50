"""The name that was probably meant: the same for every caller, none for a name that is far from all."""

from contextplane.model.suggestion import closest_name, did_you_mean
from tests.support.cases import cases

FIELDS = ("name", "ttl_minutes", "line_start", "line_end", "sections")


@cases(("name", "expected"), [("nmae", "name"), ("ttl_minute", "ttl_minutes"), ("line_edn", "line_end"), ("zzz", None)])
def test_a_slip_names_its_neighbour(name: str, expected: str | None) -> None:
    assert closest_name(name, FIELDS) == expected


def test_capitals_do_not_hide_the_neighbour() -> None:
    assert closest_name("LINEEND", FIELDS) == "line_end"
    assert closest_name("Ab", ["Abc", "abx"]) == "Abc"


def test_a_higher_cutoff_suggests_less() -> None:
    assert closest_name("secton", ["sections", "action"], cutoff=0.6) == "sections"
    assert closest_name("secton", ["sections", "action"], cutoff=0.95) is None


def test_the_order_of_the_known_names_does_not_matter() -> None:
    assert closest_name("ab", ["ax", "bx"], cutoff=0) == closest_name("ab", ["bx", "ax"], cutoff=0)


def test_without_a_neighbour_the_first_known_names_are_listed() -> None:
    assert did_you_mean("zzz", ["b", "a"], "remove it") == "remove it; known here: a, b"
    assert did_you_mean("zzz", [], "remove it") == "remove it; known here: none"
    assert did_you_mean("zzz", [f"n{n}" for n in range(9)], "remove it").endswith("n6, n7, ...")
