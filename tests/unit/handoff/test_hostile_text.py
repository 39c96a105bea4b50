"""Whatever agents write, a page says the truth about itself: no text of theirs is taken for a line of ours."""

import re

from hypothesis import given
from hypothesis import strategies as st

from contextplane.handoff.markdown import one_line
from contextplane.handoff.page import PROFILES, PageQuery
from contextplane.handoff.source import LocatedRef
from contextplane.model.handoff import Diagram, HandoffPack, LineRange, Ref, Section
from tests.unit.handoff.builders import a_pack, legend, page

PIECES = st.sampled_from(
    [
        *("\n", "\r", "\r\n", "\u2028", "\x85", "\x0b", "\x1c", "\n\n", " ", "\t", "\x1b[0m", "\x00"),
        *("[LEGEND]", "[CONTENT]", "- status: finalized", "- selected_status: finalized", "- revision: 99", "# ", "- "),
        *(
            "```",
            "````",
            "~~~",
            "`",
            "## Handoff summary [handoff]",
            "> stale ref: x",
            "<!--",
            "verdict: pass",
            "risk: y",
        ),
    ]
)
texts = st.lists(PIECES | st.characters(codec="utf-8"), max_size=8).map("".join)
some = texts | st.none()
lines = st.builds(
    lambda start, more: LineRange(start=start, end=start + more), st.integers(1, 20_000), st.integers(0, 3)
)
refs = st.builds(Ref, key=texts, path=texts, lines=lines, title=some, why=some, group=some)
diagrams = st.builds(Diagram, key=texts, title=texts, mermaid=texts, why=some)
sections = st.builds(
    Section,
    key=texts | st.just("qa"),
    title=texts,
    description=some,
    refs=st.lists(refs, max_size=2).map(tuple),
    diagrams=st.lists(diagrams, max_size=2).map(tuple),
)
packs = st.builds(
    lambda sections, **fields: a_pack(*sections, **fields),
    st.lists(sections, max_size=3),
    title=some,
    name=some,
    brief=some,
    tags=st.lists(texts, max_size=3),
)
looks = st.builds(
    LocatedRef,
    state=st.sampled_from(["current", "moved", "changed", "gone", "unreadable", "unanchored"]),
    lines=lines | st.none(),
    code=st.lists(texts.map(lambda text: text.replace("\n", " ")), max_size=3).map(tuple),
    why=texts,
)
queries = st.builds(
    PageQuery,
    profile=st.sampled_from(sorted(PROFILES)),
    limit=st.integers(1, 4) | st.none(),
    contains=texts.map(str.strip).map(lambda text: text or None),
)


def true_fields(pack: HandoffPack, query: PageQuery) -> dict[str, str]:
    """What the LEGEND must say, whatever else it says."""
    fields = {
        "title": one_line(pack.title or pack.name or "Untitled") or "Untitled",
        "id": "pk_abcd2345",
        "status": "draft",
        "revision": "3",
        "profile": query.profile,
        "selected_by": "exact_id",
        "selected_revision": "3",
        "selected_status": "draft",
    }
    fields |= {"name": one_line(pack.name)} if pack.name else {}
    fields |= {"brief": one_line(pack.brief)} if pack.brief else {}
    fields |= {"tags": ", ".join(map(one_line, pack.tags))} if pack.tags else {}
    fields |= {"contains": one_line(query.contains)} if query.contains else {}
    return fields


PAGING = {"paging", "offset", "limit", "has_more", "next_page_token", "chunks_total", "chunks_returned"}
ALWAYS = {"expires_at", "ttl_remaining", "freshness_state"}


@given(packs, queries, looks)
def test_the_legend_says_exactly_what_is_true(pack: HandoffPack, query: PageQuery, located: LocatedRef) -> None:
    text = page(pack, query, locate=lambda _: located).text
    fields, truth = legend(text), true_fields(pack, query)
    assert {name: fields[name] for name in truth} == truth
    mode = {"mode"} if query.compact else set()
    paging = PAGING if query.most is not None else set()
    assert fields.keys() == truth.keys() | ALWAYS | mode | paging


@given(packs, queries, looks)
def test_the_markers_stand_once_each_at_their_place(pack: HandoffPack, query: PageQuery, located: LocatedRef) -> None:
    text = page(pack, query, locate=lambda _: located).text
    shown = text.splitlines()  # by every line end that anybody knows
    assert [line for line in shown if line.strip().upper() in ("[LEGEND]", "[CONTENT]")] == ["[LEGEND]", "[CONTENT]"]
    assert shown[0] == "[LEGEND]"
    assert text.isprintable() or not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


@given(packs, queries, looks)
def test_every_fence_is_closed_and_every_line_of_ours_stands_outside(
    pack: HandoffPack, query: PageQuery, located: LocatedRef
) -> None:
    text = page(pack, query, locate=lambda _: located).text
    opened, outside = "", []
    for line in text.split("\n"):
        match = re.fullmatch(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if match and not opened and (match[1][0] == "~" or "`" not in match[2]):
            opened = match[1]
        elif match and opened and match[1].startswith(opened) and not match[2].strip():
            opened = ""
        elif not opened:
            outside.append(line)
    assert not opened
    shown = page(pack, query, locate=lambda _: located).structured["chunks"]
    assert isinstance(shown, list)
    paths = [
        f"- path: {one_line(str(chunk['path']))}" for chunk in shown if isinstance(chunk, dict) and "path" in chunk
    ]
    assert all(outside.count(path.rstrip()) + outside.count(path) > 0 for path in paths)
