"""How much of a manifest each event takes is known before it is written."""

from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.execution.manifest import Environment, Input, Model, Output, Prompt, Step, manifest_bytes
from contextplane.model.json.canonical import Json
from contextplane.record.events import Began, Noted, folded, room_of

REF = "sha256:" + "0" * 64
AT = "2026-05-04T09:31:42.123456789Z"

texts = st.text(st.characters(codec="utf-8"), max_size=20)
free: st.SearchStrategy[dict[str, Json] | None] = st.none() | st.dictionaries(
    texts, texts | st.integers(0, 99), max_size=3
)
begun = st.builds(
    Began,
    model=st.builds(Model, identifier=texts, parameters=free),
    system_prompt=st.just(REF),
    environment=st.builds(
        Environment, os=texts, runtime=texts, tool_versions=st.none() | st.dictionaries(texts, texts, max_size=2)
    ),
    parent=st.sampled_from(["", REF]),
    begun=st.just(AT),
)
noted = st.one_of(
    st.builds(Noted, part=st.builds(Prompt, content_ref=st.just(REF), role=texts)),
    st.builds(Noted, given=st.builds(Input, content_ref=st.just(REF), name=texts, size=st.integers(0, 10**12))),
    st.builds(Noted, made=st.builds(Output, content_ref=st.just(REF), name=texts)),
    st.builds(
        Noted, step=st.builds(Step, type=texts, tool=texts, parameters=free, timestamp=st.just(AT), index=st.just(0))
    ),
)


@given(began=begun, following=st.lists(noted, max_size=20))
def test_the_events_of_a_recording_take_as_much_as_its_manifest_and_hardly_more(
    began: Began, following: list[Noted]
) -> None:
    size = len(manifest_bytes(folded([began, *following]).manifest))
    room = room_of(began) + sum(map(room_of, following))
    assert size <= room <= size + 200 + 10 * len(following)
