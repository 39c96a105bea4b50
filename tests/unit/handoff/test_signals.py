"""Risks and gaps are what a pack says they are."""

from contextplane.handoff.summary import signals
from tests.support.cases import cases
from tests.unit.handoff.builders import a_diagram, a_pack, a_ref, a_section


def signals_in(
    description: str, *, key: str = "notes", title: str = "Notes"
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    result = signals(a_pack(a_section(key, description, title=title)))
    return result.risks, result.gaps


@cases(
    ("description", "risk"),
    [
        ("Risk: the table is locked\nfor minutes", "Risk: the table is locked for minutes"),
        ("- **Risk (high):** foo_bar leaks", "Risk (high): foo_bar leaks"),
        ("1. [RISK] pays twice", "[RISK] pays twice"),
        ("> WARNING - runs hot", "WARNING - runs hot"),
        ("blocker: no access", "blocker: no access"),
        ("### Critical: data loss", "Critical: data loss"),
        ("risk: no backup exists", "risk: no backup exists"),
    ],
)
def test_a_marker_makes_a_risk(description: str, risk: str) -> None:
    assert signals_in(description) == ((risk,), ())


@cases(
    ("description", "gap"),
    [
        ("TODO write tests", "TODO write tests"),
        ("- [ ] todo: x", "todo: x"),
        ("TODO(me): x", "TODO(me): x"),
        ("fixme: x", "fixme: x"),
        ("tbd", "tbd"),
        ("missing: a test", "missing: a test"),
        ("Unknown: who calls it", "Unknown: who calls it"),
        ("* Follow-up \u2014 ask them", "Follow-up \u2014 ask them"),
        ("__Gap__: no metrics", "Gap: no metrics"),
    ],
)
def test_a_marker_makes_a_gap(description: str, gap: str) -> None:
    assert signals_in(description) == ((), (gap,))


@cases(
    "description",
    [
        "there are no known risks",
        "risk: none",
        "Risks: no known risks.",
        "Gaps: n/a",
        "TODO: none",
        "the missing link is risk: not a marker here",
        "a risky business",
        "the gap between the two",
        "```\nTODO: in a sample\n```",
        "riskless: yes",
        "",
    ],
)
def test_these_are_no_signals(description: str) -> None:
    assert signals_in(description) == ((), ())


@cases(("key", "title"), [("risks", "R"), ("xx", "Open Risks & Blockers"), ("known-risks", "K"), ("xx", "Warnings")])
def test_what_stands_in_a_section_of_that_name_is_a_risk(key: str, title: str) -> None:
    text = "- one\n- two\n  goes on\n- None\n\na paragraph\nof two lines\n\nno known risks"
    assert signals_in(text, key=key, title=title) == (("one", "two goes on", "a paragraph of two lines"), ())


def test_a_section_about_something_else_is_not_named_so() -> None:
    assert signals_in("- one", key="risk-model", title="The risk model") == ((), ())


def test_a_heading_and_a_caption_name_what_follows() -> None:
    text = "## Risks\n- one\n\n## Open questions\nwhy?\n\n## Else\nnothing\n\nBlockers:\n- two\n- three\n\nnot this"
    assert signals_in(text) == (("one", "two", "three"), ("why?",))


def test_refs_and_diagrams_count_by_title_in_a_named_section_or_group() -> None:
    refs = [a_ref("one", title="Pays twice", group="risks"), a_ref("two", group="risks"), a_ref("three", title="Fine")]
    pack = a_pack(
        a_section("findings", refs=refs),
        a_section("gaps", refs=[a_ref("four", why="No test\nat all")], diagrams=[a_diagram(title="Unseen path")]),
    )
    assert signals(pack).risks == ("Pays twice", "two")
    assert signals(pack).gaps == ("No test", "Unseen path")


def test_markers_count_wherever_people_write() -> None:
    pack = a_pack(
        a_section("aa", title="Risk: in a title"),
        a_section("bb", refs=[a_ref(title="risk: in a ref"), a_ref("other", why="risk: in a reason")]),
        a_section("cc", diagrams=[a_diagram(title="risk: in a drawing", mermaid="risk: not here")]),
        brief="risk: in the brief",
    )
    risks = ("in the brief", "in a title", "in a ref", "in a reason", "in a drawing")
    assert [risk.partition(": ")[2] for risk in signals(pack).risks] == list(risks)


def test_each_is_told_once_on_one_short_line() -> None:
    text = f"risk: the  same\n\nRISK: the same\n\nrisk: {'x' * 500}\n\nrisk: a\x1b[31m"
    risks, _ = signals_in(text)
    assert risks == ("risk: the same", "risk: " + "x" * 133 + "\u2026", "risk: a\\x1b[31m")


@cases("text", ["a\n" * 100_000, "known " * 50_000, "risk " * 50_000, "- no known " * 20_000])
def test_a_long_text_costs_no_more_than_its_length(text: str) -> None:
    signals_in(f"{text}!", key="risks", title=text)
