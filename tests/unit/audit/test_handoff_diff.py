"""Two revisions of handoff packs side by side."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from contextplane.audit.handoff import diff_handoffs
from contextplane.model.handoff import Diagram, HandoffPack, LineRange, Ref, Section

KEYS = st.sampled_from(["aa", "bb", "cc", "dd"])
WORDS = st.none() | st.sampled_from(["", "one", "two", "a long text\nof two lines"])
REFS = st.builds(
    Ref,
    key=KEYS,
    path=st.sampled_from(["a.py", "b.py"]),
    lines=st.builds(LineRange, start=st.just(1), end=st.integers(1, 3)),
    why=WORDS,
    group=WORDS,
)
DIAGRAMS = st.builds(Diagram, key=KEYS, title=st.just("t"), mermaid=st.sampled_from(["graph", "other"]), why=WORDS)


def keyed(parts: st.SearchStrategy[msgspec.Struct]) -> st.SearchStrategy[tuple[msgspec.Struct, ...]]:
    return st.lists(parts, max_size=3, unique_by=lambda part: part.key).map(tuple)  # type: ignore[attr-defined]


SECTIONS = st.builds(
    Section, key=KEYS, title=st.sampled_from(["T", "U"]), description=WORDS, refs=keyed(REFS), diagrams=keyed(DIAGRAMS)
)
PACKS = st.builds(
    HandoffPack,
    id=st.just("pk_abcd2345"),
    name=WORDS,
    title=WORDS,
    brief=WORDS,
    status=st.sampled_from(["draft", "finalized"]),
    tags=st.sampled_from([(), ("a",), ("a", "b")]),
    sections=keyed(SECTIONS),
    revision=st.integers(1, 9),
    created_at=st.just("2026-05-04T09:00:00Z"),
    updated_at=st.just("2026-05-04T09:00:00Z"),
    expires_at=st.sampled_from(["2026-05-04T10:00:00Z", "2026-05-04T11:00:00Z"]),
)


def content(pack: HandoffPack) -> HandoffPack:
    return msgspec.structs.replace(pack, revision=1)


@given(PACKS, PACKS)
def test_there_are_differences_exactly_when_the_contents_differ(a: HandoffPack, b: HandoffPack) -> None:
    assert bool(diff_handoffs(a, b)) == (content(a) != content(b))


@given(PACKS, PACKS)
def test_the_other_way_round_what_was_added_is_removed(a: HandoffPack, b: HandoffPack) -> None:
    other = {"added": "removed", "removed": "added"}
    there = {(handoff_change.at, handoff_change.type) for handoff_change in diff_handoffs(a, b)}
    back = {
        (handoff_change.at, other.get(handoff_change.type, handoff_change.type))
        for handoff_change in diff_handoffs(b, a)
    }
    assert there == back


def pack_of(*sections: Section) -> HandoffPack:
    return HandoffPack(
        id="pk_abcd2345",
        name=None,
        title=None,
        brief=None,
        status="draft",
        tags=(),
        sections=sections,
        revision=1,
        created_at="2026-05-04T09:00:00Z",
        updated_at="2026-05-04T09:00:00Z",
        expires_at="2026-05-04T10:00:00Z",
    )


def test_of_very_many_texts_only_the_first_are_compared_line_by_line() -> None:
    a, b = (
        pack_of(*(Section(key=f"s{n}", title="t", description=f"one\n{last}") for n in range(150))) for last in "xy"
    )
    texts = [handoff_change.text for handoff_change in diff_handoffs(a, b)]
    assert len(texts) == 150
    assert [text.state for text in texts if text is not UNSET] == ["text"] * 100 + ["left_out"] * 50
