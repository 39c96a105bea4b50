"""Pages put together are the whole pack, once and in order; `contains` finds the same in every profile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.handoff.page import PROFILES, PageArguments, PageQuery, Profile, first_page
from contextplane.handoff.page_token import redeem
from contextplane.handoff.render import RenderedPage, chunks
from contextplane.handoff.source import LocatedRef
from contextplane.model.handoff import HandoffPack, LineRange, Ref
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.handoff.builders import KEY, a_diagram, a_pack, a_ref, a_section, legend, page

words = st.sampled_from(["todo", "Maß", "alpha", "src", "a.*b", "(x", ""])
profiles = st.sampled_from(sorted(PROFILES))


@st.composite
def packs(draw: st.DrawFn) -> HandoffPack:
    """Packs whose keys tell their chunks apart."""
    sections = []
    for number in range(draw(st.integers(0, 4))):
        refs = [
            a_ref(f"r{number}-{at}", title=draw(words), why=draw(words), group=draw(words), path=f"{draw(words)}.py")
            for at in range(draw(st.integers(0, 4)))
        ]
        diagrams = [a_diagram(f"d{number}-{at}", title=f"D{number}-{at}") for at in range(draw(st.integers(0, 2)))]
        sections.append(a_section(f"s{number}", draw(words), title=draw(words), refs=refs, diagrams=diagrams))
    return a_pack(*sections)


def locate(ref: Ref) -> LocatedRef:
    """Some are found, some have moved, some are lost; the code has a word that stands nowhere else."""
    if ref.key.endswith("1"):
        return LocatedRef(state="gone", lines=None, why="the lines were removed")
    if ref.key.endswith("2"):
        return LocatedRef(state="moved", lines=LineRange(start=7, end=7), code=("in the code",))
    return LocatedRef(state="current", lines=ref.lines, code=("in the code",))


def keys(shown: RenderedPage) -> list[object]:
    result = shown.structured["chunks"]
    assert isinstance(result, list)
    return [chunk["key"] for chunk in result if isinstance(chunk, dict)]


def content(shown: RenderedPage) -> str:
    """What is shown of the chunks, without LEGEND and summary."""
    text = shown.text.partition("\n[CONTENT]\n")[2]
    return text.partition("refs_on_page: ")[2].partition("\n")[2] if "## Handoff summary" in text else text


@proves(
    "handoff-pack:paging:first-page-by-limit-and-offset",
    "handoff-pack:paging:continuation-by-limit-and-page-token",
    "handoff-pack:paging:legend-has-more",
    "handoff-pack:paging:legend-next-page-token",
)
@given(packs(), profiles, st.integers(1, 7), st.integers(0, 5), words)
def test_pages_put_together_are_everything_once_and_in_order(
    pack: HandoffPack, profile: str, limit: int, offset: int, word: str
) -> None:
    page_arguments = PageArguments(profile=profile, limit=limit, offset=offset, contains=word)  # type: ignore[arg-type]
    whole = first_page(PageArguments(profile=page_arguments.profile, limit=999, contains=word))
    everything = keys(page(pack, whole, locate=locate))
    query, result = first_page(page_arguments), []
    for _ in range(len(everything) + 1):
        shown = page(pack, query, locate=locate)
        fields = legend(shown.text)
        result += keys(shown)
        more = len(result) + min(offset, len(everything)) < len(everything)
        assert fields["has_more"] == str(more).lower()
        assert (fields["next_page_token"] != "null") == more  # noqa: S105  no password
        assert fields["chunks_total"] == str(len(everything))
        assert fields["chunks_returned"] == str(len(keys(shown)))
        if not more:
            break
        assert len(keys(shown)) == limit
        token = fields["next_page_token"]
        query = redeem(KEY, token, pack_id=pack.id, revision=pack.revision, arguments=PageArguments())
    assert result == everything[offset:]


@given(packs())
def test_every_section_is_there_whether_it_has_refs_or_not(pack: HandoffPack) -> None:
    result = chunks(pack)
    assert list(dict.fromkeys(chunk.section.key for chunk in result)) == [section.key for section in pack.sections]
    for section in pack.sections:
        mine = [chunk for chunk in result if chunk.section.key == section.key]
        assert len(mine) == (len(section.refs) + len(section.diagrams) or 1)
        groups = [chunk.group for chunk in mine if chunk.ref]
        assert groups == sorted(groups)


@proves(
    "handoff-pack:paging:contains-is-deterministic",
    "handoff-pack:tool:contains-is-case-insensitive-substring",
    "handoff-pack:migration-profiles:contains-replaces-match",
)
@given(
    packs(),
    profiles,
    words
    | st.sampled_from(
        ["TODO", "MASS", "R0-", "[s1]", "in the CODE", "moved", "stale", "1-1 (", "group: ", "D0", "-->", "]\n\n###"]
    ),
)
def test_contains_returns_exactly_the_chunks_whose_text_or_code_has_it_in_every_profile(
    pack: HandoffPack, profile: str, word: str
) -> None:
    def alone(at: int) -> RenderedPage:
        return page(pack, PageQuery(profile="reviewer", limit=1, offset=at), locate=locate)

    shown = [alone(at) for at in range(len(chunks(pack)))]
    expected = [
        key for alone_page in shown for key in keys(alone_page) if word.casefold() in content(alone_page).casefold()
    ]
    query = first_page(PageArguments(profile=profile, limit=99, contains=word))  # type: ignore[arg-type]
    result = page(pack, query, locate=locate)
    assert keys(result) == expected
    assert result == page(pack, query, locate=locate)
    if not expected:
        assert result.text.endswith("\n_No chunks matched current filters._\n")


@pytest.mark.parametrize("word", [None, "", "  \n"])
def test_a_blank_word_searches_for_nothing(word: str | None) -> None:
    assert first_page(PageArguments(contains=word)).contains is None
    assert first_page(PageArguments(contains=f" {word or ''}x ")).contains == "x"


@cases(
    "word",
    [
        "findings [findings]\n\n### group: un",
        "[findings]\n\n### group: ungrouped\n\n#### two [findings]\n- path: src/code.py\n- lines: 1-1 (MOVED: now 7",
        "NOW 7-7)\n- why: because",
        "```python\n   7: in the code",
    ],
)
def test_what_is_sought_may_reach_over_several_lines(word: str) -> None:
    pack = a_pack(a_section("findings", refs=[a_ref("two", why="because")]))
    moved = LocatedRef(state="moved", lines=LineRange(start=7, end=7), code=("in the code",))
    assert keys(page(pack, PageQuery(profile="reviewer", contains=word), locate=lambda _: moved)) == ["two"]
    assert keys(page(pack, PageQuery(profile="reviewer", contains=f"{word}!"), locate=lambda _: moved)) == []


def test_what_is_sought_may_reach_from_a_section_into_its_drawings() -> None:
    pack = a_pack(a_section("findings", diagrams=[a_diagram("flow")]))
    assert keys(page(pack, PageQuery(contains="[findings]\n\n### diagrams\n\n#### flow"))) == ["flow"]


@pytest.mark.parametrize("profile", PROFILES)
def test_code_is_found_in_every_profile_whether_it_is_shown_or_not(profile: Profile) -> None:
    pack = a_pack(a_section("findings", refs=[a_ref("check", start=3, end=4), a_ref("lost-1")]))
    code = LocatedRef(state="current", lines=LineRange(start=3, end=4), code=("if Token:", "    RETURN none"))

    def found(word: str) -> list[object]:
        query = PageQuery(profile=profile, contains=word)
        return keys(page(pack, query, locate=lambda ref: code if ref.key == "check" else locate(ref)))

    assert found("return None") == found("if token:\n    return") == found("   4:     return") == ["check"]
    assert found("lines WERE removed") == ["lost-1"]
    assert found("token)") == []
    shown = page(pack, PageQuery(profile=profile, contains="return none"), locate=lambda _: code).text
    assert ("```" in shown) is (profile == "reviewer")


# --- the summary ------------------------------------------------------------------------------------------------------


def summary(shown: RenderedPage, field: str) -> str:
    """One field of the summary, with its list if it has one."""
    return shown.text.partition(f"\n- {field}:")[2].partition("\n- ")[0]


def test_risks_stale_refs_and_verdict_are_those_of_the_whole_pack_on_every_page() -> None:
    refs = [a_ref(f"ref-{n:02}") for n in range(12)]
    pack = a_pack(
        a_section("findings", refs=refs),
        a_section("risks", "- old tokens never expire", title="Risks"),
        a_section("qa", "verdict: fail", title="QA"),
    )
    queries = [
        *(PageQuery(limit=2, offset=offset) for offset in range(0, 16, 2)),
        PageQuery(profile="executor", limit=3),
        PageQuery(contains="ref-00"),
        PageQuery(contains="nothing has this"),
    ]

    def lost(ref: Ref) -> LocatedRef:
        stale = ref.key in {"ref-03", "ref-07", "ref-08", "ref-09", "ref-11"}
        return LocatedRef(state="gone", lines=None, why="lost") if stale else locate(a_ref("found"))

    risks = ["stale refs: ref-03, ref-07, ref-08 and 2 more", "old tokens never expire"]
    for query in queries:
        shown = page(pack, query, locate=lost)
        assert summary(shown, "top_risks") == "".join(f"\n  - {risk}" for risk in risks)
        assert summary(shown, "verdict_status").endswith('verdict="fail"')
        assert shown.structured["risks"] == risks
    assert page(pack, PageQuery(profile="reviewer", limit=1), locate=lost).structured["risks"] == risks


def test_beyond_the_end_is_an_empty_page() -> None:
    pack = a_pack(a_section("findings", refs=[a_ref("one")]))
    fields = legend(page(pack, PageQuery(offset=10**30)).text)
    assert (fields["offset"], fields["has_more"], fields["chunks_returned"]) == ("1", "false", "0")
    fields = legend(page(pack, PageQuery(profile="reviewer", offset=1)).text)
    assert (fields["limit"], fields["next_page_token"]) == ("all", "null")


def test_the_head_of_a_section_stands_once_on_each_page_that_shows_a_part_of_it() -> None:
    pack = a_pack(a_section("findings", "what was found", refs=[a_ref(f"ref-{number}") for number in range(4)]))
    for offset in (0, 2):
        text = content(page(pack, PageQuery(limit=2, offset=offset)))
        assert text.count("## Findings [findings]\n\nwhat was found\n") == 1
        assert text.count("### group: ungrouped\n") == 1


def test_headings_begin_anew_in_each_section() -> None:
    with_refs = [a_section(key, refs=[a_ref("one"), a_ref("two")]) for key in ("first", "second")]
    with_drawings = [a_section(key, diagrams=[a_diagram("flow"), a_diagram("more")]) for key in ("third", "fourth")]
    text = content(page(a_pack(*with_refs, *with_drawings), PageQuery(profile="reviewer")))
    assert text.count("### group: ungrouped\n") == text.count("### Diagrams\n") == 2
