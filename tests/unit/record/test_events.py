"""The size that each event adds to a manifest is known before it is written, and a fold can be continued."""

from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.execution.manifest import Environment, Input, Model, Output, Prompt, Step, manifest_bytes
from contextplane.model.json.canonical import Json
from contextplane.record.events import (
    ItemRecorded,
    RecordingClosed,
    RecordingStarted,
    extend_recording,
    size_in_manifest,
)

REF = "sha256:" + "0" * 64
AT = "2026-05-04T09:31:42.123456789Z"

texts = st.text(st.characters(codec="utf-8"), max_size=20)
free: st.SearchStrategy[dict[str, Json] | None] = st.none() | st.dictionaries(
    texts, texts | st.integers(0, 99), max_size=3
)
starts = st.builds(
    RecordingStarted,
    model=st.builds(Model, identifier=texts, parameters=free),
    system_prompt=st.just(REF),
    environment=st.builds(
        Environment, os=texts, runtime=texts, tool_versions=st.none() | st.dictionaries(texts, texts, max_size=2)
    ),
    parent=st.sampled_from(["", REF]),
    begun=st.just(AT),
)
items = st.one_of(
    st.builds(ItemRecorded, prompt=st.builds(Prompt, content_ref=st.just(REF), role=texts)),
    st.builds(ItemRecorded, input=st.builds(Input, content_ref=st.just(REF), name=texts, size=st.integers(0, 10**12))),
    st.builds(ItemRecorded, output=st.builds(Output, content_ref=st.just(REF), name=texts)),
    st.builds(
        ItemRecorded,
        step=st.builds(Step, type=texts, tool=texts, parameters=free, timestamp=st.just(AT), index=st.just(0)),
    ),
)


@given(started=starts, following=st.lists(items, max_size=20))
def test_the_events_of_a_recording_take_as_much_as_its_manifest_and_hardly_more(
    started: RecordingStarted, following: list[ItemRecorded]
) -> None:
    state = extend_recording(None, [started, *following])
    assert state is not None
    size = len(manifest_bytes(state.manifest))
    expected = size_in_manifest(started) + sum(map(size_in_manifest, following))
    assert size <= expected <= size + 200 + 10 * len(following)


@given(started=starts, following=st.lists(items, max_size=8), cut=st.integers(0, 8))
def test_a_fold_that_is_continued_equals_the_fold_of_all_events(
    started: RecordingStarted, following: list[ItemRecorded], cut: int
) -> None:
    closed = RecordingClosed(digest=REF)
    first = extend_recording(None, [started, *following[:cut]])
    assert extend_recording(first, [*following[cut:], closed]) == extend_recording(None, [started, *following, closed])
    assert extend_recording(first, []) is first
