"""A verdict is a field of the qa section, and not the mere word."""

from contextplane.handoff.finalize import verdict
from tests.support.cases import cases
from tests.unit.handoff.builders import a_diagram, a_pack, a_ref, a_section


@cases(
    ("description", "expected"),
    [
        ("verdict: pass", "pass"),
        ("VERDICT:pass", "pass"),
        ("**Verdict:** pass", "pass"),
        ("**Verdict**: pass", "pass"),
        ("Verdict = fail", "fail"),
        ("- verdict: **pass** (3 tests)", "pass (3 tests)"),
        ("some text\n\n> Final verdict: not approved\n", "not approved"),
        ("Ran the tests; verdict: fail", "fail"),
        ("# Verdict\n\npass\n", "pass"),
        ("## Verdict\n- **go**, with care", "go, with care"),
        ("Verdict\npass", "pass"),
        ("verdict:\n\npass", "pass"),
        ('{\n  "verdict": "pass",\n  "by": "me"\n}', "pass"),
        ("| verdict | pass |", "pass"),
        ("verdict: tbd\nverdict: pass", "pass"),
        ("verdict: \u2705", "\u2705"),
        ("verdict: a\x1b[31m", "a\\x1b[31m"),
        ("verdict: none of the tests passed", "none of the tests passed"),
        ("VERDICT\uff1a\u901a\u8fc7", "\u901a\u8fc7"),
        ("Verdict - pass", "pass"),
        ("- **Verdict** \u2014 fail, see below", "fail, see below"),
        ("verdict: ~~pass~~ fail", "fail"),
        ("~~verdict: pass~~\nverdict: fail", "fail"),
        ("verdict: pass\n\nverdict: fail", "pass / fail"),
        ("verdict: pass\n\n**Verdict:** PASS", "PASS"),
        ("```\nverdict: pass\n```\nverdict: fail", "fail"),
        ("<!-- verdict: pass -->\nverdict: fail", "fail"),
        ("a <!-- b\nverdict: pass", "pass"),
        ("verdict: " + "x" * 500, "x" * 139 + "\u2026"),
    ],
)
def test_these_are_verdicts(description: str, expected: str) -> None:
    assert verdict(a_pack(a_section("qa", description))) == expected


@cases(
    "description",
    [
        None,
        "",
        "no verdict yet",
        "No verdict: nobody looked",
        "the verdict is still out",
        "verdict",
        "verdict:",
        "verdict: -",
        "verdict: ...",
        "verdict: TBD",
        "verdict: pending review",
        "verdict: not yet known",
        "verdict: <pass|fail>",
        "verdict_status: pass",
        "preverdict: pass",
        "## Verdict\n## Next",
        "| Verdict | Notes |\n|---|---|\n",
        "<!-- verdict: pass -->",
        "<!--\nverdict: pass\n",
        "```\nverdict: pass\n```",
        "````\n```\nverdict: pass\n````",
        "~~~ text\nverdict: pass",
        "verdict: ~~pass~~",
        "~~verdict: pass~~",
        "The verdict - as so often - is not known",
        "Verdict - tbd",
    ],
)
def test_these_are_none(description: str | None) -> None:
    assert verdict(a_pack(a_section("qa", description, title="Quality"))) is None


def test_it_may_stand_in_titles_and_reasons_too() -> None:
    assert verdict(a_pack(a_section("qa", title="Verdict: no-go"))) == "no-go"
    assert verdict(a_pack(a_section("qa", "ship it", title="Verdict"))) == "ship it"
    assert verdict(a_pack(a_section("qa", refs=[a_ref(title="Verdict: pass")]))) == "pass"
    assert verdict(a_pack(a_section("qa", refs=[a_ref(why="verdict: pass")]))) == "pass"
    assert verdict(a_pack(a_section("qa", diagrams=[a_diagram(title="Verdict", why="pass")]))) == "pass"


def test_nowhere_else() -> None:
    drawing = a_section("qa", "see below", diagrams=[a_diagram(mermaid="verdict: pass")])
    assert verdict(a_pack(a_section("findings", "verdict: pass"), drawing)) is None


@cases(
    "text", ["* " * 50_000, "#" * 100_000, "a " * 50_000, "verdict|" * 20_000, "verdict\n" * 20_000, "<!--" * 50_000]
)
def test_a_long_text_costs_no_more_than_its_length(text: str) -> None:
    verdict(a_pack(a_section("qa", f"{text}x\n{text}")))
