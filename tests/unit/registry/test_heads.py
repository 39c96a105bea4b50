"""The tree over the ends of streams: one root for all of them, a short way to each, and none to what is not there."""

import base64
import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from contextplane.registry.continuity import follow_entries, prove_heads, read_entry
from contextplane.registry.stream_heads import (
    HeadsDamaged,
    HeadTree,
    MemoryHeadNodes,
    StreamCut,
    StreamHeads,
    node_name,
    root_over,
)
from contextplane.registry.streams import PINS, is_subject
from contextplane.store.event_stream import StreamHead
from contextplane.trust.merkle import EMPTY_ROOT
from contextplane.trust.merkle_log import LogEntry, entry_body
from tests.support.cases import cases
from tests.support.forged_log import put_heads

A = "registry/version/a@1.0.0"
# Names that are the beginning of others, that part within a label, and that part behind characters of several bytes.
NAMES = st.from_regex(r"(registry/(version|pins|é)/)?[ab]{1,4}(@[0-9](\.[0-9])?)?", fullmatch=True)


def head_of(stream: str, seq: int) -> StreamHead:
    """An end as it may be: an event is of one stream, so no two streams have the same."""
    return StreamHead(seq=seq, digest=hashlib.sha256(f"{stream}@{seq}".encode()).hexdigest())


HEADS = st.dictionaries(NAMES, st.integers(1, 9), max_size=30).map(
    lambda ends: {stream: head_of(stream, seq) for stream, seq in ends.items()}
)


def tree(heads: Mapping[str, StreamHead]) -> tuple[MemoryHeadNodes, bytes]:
    nodes = MemoryHeadNodes()
    return nodes, put_heads(nodes, EMPTY_ROOT, heads)


# --- the root --------------------------------------------------------------------------------------------------------


@given(HEADS, HEADS, st.data())
def test_the_root_depends_on_the_streams_and_not_on_their_order_nor_on_what_was_there_before(
    heads: dict[str, StreamHead], others: dict[str, StreamHead], data: st.DataObject
) -> None:
    """Also not on streams that were there and were removed; and no node is left over."""
    nodes, root = tree(heads)
    changed = MemoryHeadNodes()
    steps = [(name, head_of(name, 10)) for name in heads] + list(others.items())
    other = EMPTY_ROOT
    for name, head in data.draw(st.permutations(steps)):
        other = put_heads(changed, other, {name: head})
    last: list[tuple[str, StreamHead | None]] = [
        *heads.items(),
        *((name, None) for name in others if name not in heads),
    ]
    for name, end in data.draw(st.permutations(last)):
        tree_now = HeadTree(changed, other)
        if end is None:
            tree_now.remove(name)
        else:
            tree_now.put(name, end)
        expected = tree_now.root
        other = tree_now.save(changed)
        assert other == expected
    assert (other, changed.texts) == (root, nodes.texts)
    assert root_over(heads) == root


@given(HEADS, HEADS)
def test_many_changes_at_once_are_as_one_after_the_other(
    heads: dict[str, StreamHead], others: dict[str, StreamHead]
) -> None:
    nodes, root = tree(heads)
    changing = HeadTree(nodes, root)
    for name, head in others.items():
        changing.put(name, head)
    for name in heads:
        changing.remove(name)
    left = {name: head for name, head in others.items() if name not in heads}
    assert changing.save(nodes) == root_over(left)
    assert nodes.texts == tree(left)[0].texts
    assert changing.root == root_over(left)


@given(HEADS, NAMES)
def test_another_end_of_any_stream_is_another_root(heads: dict[str, StreamHead], name: str) -> None:
    root = root_over(heads)
    assert root_over({**heads, name: head_of(name, 10)}) != root
    assert (root_over({stream: head for stream, head in heads.items() if stream != name}) == root) is (
        name not in heads
    )


def test_a_tree_over_nothing_has_no_node() -> None:
    nodes, root = tree({})
    assert (nodes.texts, root) == ({}, EMPTY_ROOT)
    assert StreamHeads(nodes, root).head(A) is None
    assert list(StreamHeads(nodes, root).ends()) == []


@given(HEADS, NAMES)
def test_what_is_not_there_cannot_be_removed(heads: dict[str, StreamHead], absent: str) -> None:
    heads.pop(absent, None)
    nodes, root = tree(heads)
    with pytest.raises(HeadsDamaged):
        HeadTree(nodes, root).remove(absent)


# --- looking ---------------------------------------------------------------------------------------------------------


@given(HEADS, st.lists(NAMES, max_size=5))
def test_every_end_is_found_and_what_is_not_there_is_known_not_to_be(
    heads: dict[str, StreamHead], absent: list[str]
) -> None:
    tree_heads = StreamHeads(*tree(heads))
    parts = {name[:length] for name in heads for length in range(len(name))}
    for name in {*heads, *absent, *parts, *(f"{name}0" for name in heads)}:
        assert tree_heads.head(name) == heads.get(name)
        tree_heads.check(name, heads.get(name))


@given(HEADS, NAMES)
def test_all_streams_whose_names_begin_alike_are_listed_and_no_others(heads: dict[str, StreamHead], name: str) -> None:
    tree_heads = StreamHeads(*tree(heads))
    for prefix in {*(name[:length] for length in range(len(name) + 1)), *heads, "registry/pins/"}:
        expected = sorted((stream, head) for stream, head in heads.items() if stream.startswith(prefix))
        assert list(tree_heads.ends(prefix)) == expected
        assert list(tree_heads.names(prefix)) == [stream for stream, _ in expected]


@pytest.mark.parametrize("actual", [None, StreamHead(seq=1, digest="a" * 64), StreamHead(seq=2, digest="b" * 64)])
def test_a_stream_that_ends_elsewhere_is_cut(actual: StreamHead | None) -> None:
    heads = StreamHeads(*tree({A: StreamHead(seq=2, digest="a" * 64)}))
    with pytest.raises(StreamCut):
        heads.check(A, actual)


def test_a_stream_that_is_not_signed_is_refused() -> None:
    with pytest.raises(StreamCut):
        StreamHeads(*tree({})).check(A, head_of(A, 1))


class WatchedNodes(MemoryHeadNodes):
    """Nodes, and the names of those that somebody looked at."""

    def __init__(self, nodes: MemoryHeadNodes) -> None:
        super().__init__()
        self.texts = dict(nodes.texts)
        self.seen: list[str] = []

    def get(self, name: str) -> str | None:
        self.seen.append(name)
        return super().get(name)


def test_a_look_a_change_and_a_list_touch_few_nodes() -> None:
    streams = [f"registry/version/a@{n}.0.0" for n in range(4000)]
    nodes, root = tree({stream: head_of(stream, 1) for stream in streams})
    most = 6  # the top, and one for each digit of the number

    watched = WatchedNodes(nodes)
    assert StreamHeads(watched, root).head(streams[1234]) is not None
    assert len(watched.seen) <= most

    watched = WatchedNodes(nodes)
    put_heads(watched, root, {streams[1234]: head_of(streams[1234], 2)})
    assert len(watched.seen) <= most
    assert len(watched.texts.items() - nodes.texts.items()) <= most
    assert len(watched.texts) == len(nodes.texts)

    watched = WatchedNodes(nodes)
    assert len(list(StreamHeads(watched, root).names("registry/version/a@123"))) == 11
    assert len(watched.seen) <= most + 11
    assert max(map(len, nodes.texts.values())) <= 1024


# --- damage ----------------------------------------------------------------------------------------------------------


@given(HEADS.filter(bool), st.data())
def test_a_node_that_is_missing_or_another_is_refused_on_the_way_to_what_is_below_it(
    heads: dict[str, StreamHead], data: st.DataObject
) -> None:
    nodes, root = tree(heads)
    place = data.draw(st.sampled_from(sorted(nodes.texts)))
    before = nodes.texts.pop(place)
    if data.draw(st.booleans()):
        nodes.texts[place] = data.draw(st.sampled_from([before + " ", before[1:], *nodes.texts.values()]))
    outcomes = set()
    for name, head in heads.items():
        try:
            assert StreamHeads(nodes, root).head(name) == head
        except HeadsDamaged as error:
            outcomes.add((error.code, error.at))
    assert outcomes == {("registry_heads_damaged", place)}
    with pytest.raises(HeadsDamaged):
        list(StreamHeads(nodes, root).ends())


DIGEST = "a" * 64
HASH = base64.b64encode(bytes(range(32))).decode()


@cases(
    "text",
    [
        "registry/version/a@1.0.0",
        f"registry/version/a@1.0.0\n0 {DIGEST}",
        f"registry/version/a@1.0.0\n01 {DIGEST}",
        f"registry/version/a@1.0.0\nx {DIGEST}",
        f"registry/version/a@1.0.0\n1  {DIGEST}",
        "registry/version/a@1.0.0\n1 aa",
        f"registry/version/a@1.0.0\n1 {DIGEST.upper()}",
        f"registry/version/a@1.0.0\n1 {DIGEST}\n",
        f"registry/version /a@1.0.0\n1 {DIGEST}",
        f"registry/version\t/a@1.0.0\n1 {DIGEST}",
        f"registry/version\r/a@1.0.0\n1 {DIGEST}",
        f"registry/version/\n\nb {HASH}\na {HASH}",
        f"registry/version/\n\na {HASH}\na {HASH}",
        f"registry/version/\n\nab {HASH}\nc {HASH}",
        f"registry/version/\n\n  {HASH}\na {HASH}",
        f"registry/version/\n\na {HASH[:-1]}\nb {HASH}",
        f"registry/version/\n\na {HASH[:-2]}9=\nb {HASH}",  # the same bytes, written otherwise
        f"registry/version/\n\na {HASH} \nb {HASH}",
        f"registry/version/\n\na {HASH}\n\nb {HASH}",
        # An end below, in a form that no writer gives the tree: nothing parts here.
        f"registry/version/\n\na {HASH}",
        "registry/version/\n",
    ],
)
def test_what_has_not_the_form_of_a_node_is_refused_though_somebody_signed_it(text: str) -> None:
    root = hashlib.sha256(text.encode()).digest()
    nodes = MemoryHeadNodes()
    nodes.put(node_name(root), text)
    acts = (
        lambda: StreamHeads(nodes, root).head(A),
        lambda: list(StreamHeads(nodes, root).ends()),
        lambda: HeadTree(nodes, root).put(A, head_of(A, 1)),
        lambda: HeadTree(nodes, root).remove(A),
    )
    for act in acts:
        with pytest.raises(HeadsDamaged) as error:
            act()
        assert (error.value.at, error.value.message) == (node_name(root), "a node is no node")


@pytest.mark.parametrize("label", ["b@1.0.0", "", "A@1.0.0"])
def test_a_child_whose_label_begins_otherwise_than_its_parent_says_is_refused(label: str) -> None:
    """Else a stream could be there and be found under another name only."""
    child = f"{label}\n1 {DIGEST}"
    child_hash = hashlib.sha256(child.encode()).digest()
    text = f"registry/version/\n2 {DIGEST}\na {base64.b64encode(child_hash).decode()}"
    root = hashlib.sha256(text.encode()).digest()
    nodes = MemoryHeadNodes()
    nodes.put(node_name(child_hash), child)
    nodes.put(node_name(root), text)
    assert StreamHeads(nodes, root).head("registry/version/") == StreamHead(seq=2, digest=DIGEST)
    for act in (
        lambda: StreamHeads(nodes, root).head(A),
        lambda: list(StreamHeads(nodes, root).ends()),
        lambda: HeadTree(nodes, root).put(A, head_of(A, 1)),
        lambda: HeadTree(nodes, root).remove(A),
    ):
        with pytest.raises(HeadsDamaged) as error:
            act()
        assert error.value.at == node_name(child_hash)


@pytest.fixture
def few_frames() -> Iterator[None]:
    """Few more calls than now may be within each other."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("few_frames")
def test_the_deepest_tree_of_names_takes_no_deep_calls() -> None:
    """Whoever signs the log chooses names of streams."""
    environments = [f"{PINS}{'a' * length}/a" for length in range(1, 114)]
    names = [*environments, *(f"{PINS}{'a' * 113}/{'a' * length}" for length in range(2, 129))]
    assert all(map(is_subject, names))
    heads = {name: head_of(name, 1) for name in names}
    nodes, root = tree(heads)
    assert root_over(heads) == root
    assert dict(StreamHeads(nodes, root).ends()) == heads
    assert prove_heads(nodes, EMPTY_ROOT, root, entries_of([*heads])) is not None
    other = HeadTree(nodes, root)
    other.put(names[-1], head_of(names[-1], 2))
    other.save(nodes)
    assert {name: end.seq for name, end in StreamHeads(nodes, other.root).ends(names[-1])} == {names[-1]: 2}


# --- continuity: the ends before, and the entries since, are the ends now --------------------------------------------

LOGS = st.lists(NAMES, max_size=40).flatmap(lambda names: st.tuples(st.just(names), st.integers(0, len(names))))


def entries_of(names: Sequence[str]) -> list[LogEntry]:
    """A log in which something happened to these streams, in this order."""
    entries: list[LogEntry] = []
    ends: dict[str, StreamHead] = {}
    for name in names:
        last = ends.get(name)
        ends[name] = head_of(name, 1 if last is None else last.seq + 1)
        previous = "" if last is None else last.digest
        entries.append(LogEntry(event=ends[name].digest, seq=ends[name].seq, stream=name, previous=previous))
    return entries


def ends_of(entries: Sequence[LogEntry]) -> dict[str, StreamHead]:
    return {entry.stream: StreamHead(seq=entry.seq, digest=entry.event) for entry in entries}


@given(LOGS)
def test_the_ends_now_with_the_entries_since_undone_are_the_ends_before(log: tuple[list[str], int]) -> None:
    names, size = log
    entries = entries_of(names)
    nodes, root = tree(ends_of(entries))
    texts = dict(nodes.texts)
    assert prove_heads(nodes, root_over(ends_of(entries[:size])), root, entries[size:]) is not None
    assert nodes.texts == texts


@given(LOGS, NAMES, st.data())
def test_a_lie_in_the_ends_is_told(log: tuple[list[str], int], other: str, data: st.DataObject) -> None:
    """An end is left out, is put back, is another, or is one that no entry tells of."""
    names, size = log
    entries = entries_of(names)
    true = ends_of(entries)
    name = data.draw(st.sampled_from([*sorted(true), other]))
    seq = data.draw(st.integers(0, 12))
    false = {stream: head for stream, head in true.items() if stream != name}
    if seq:
        false[name] = head_of(name, seq)
    nodes, root = tree(false)
    old, since = root_over(ends_of(entries[:size])), entries[size:]
    assert (prove_heads(nodes, old, root, since) is not None) is (false == true)


@given(LOGS.filter(lambda log: log[1] < len(log[0])), st.data())
def test_an_entry_that_is_kept_back_or_changed_is_told(log: tuple[list[str], int], data: st.DataObject) -> None:
    """The ends are the true ones, but not all entries that lead to them are shown."""
    names, size = log
    entries = entries_of(names)
    nodes, root = tree(ends_of(entries))
    place = data.draw(st.integers(size, len(entries) - 1))
    entry = entries[place]
    changed = data.draw(
        st.sampled_from(
            [
                [],
                [replace(entry, event="0" * 64)],
                [replace(entry, seq=entry.seq + 1)],
                [replace(entry, previous="0" * 64)],
                [replace(entry, previous=None)],
            ]
        )
    )
    shown = [*entries[size:place], *changed, *entries[place + 1 :]]
    assert prove_heads(nodes, root_over(ends_of(entries[:size])), root, shown) is None


@given(LOGS, NAMES, st.data())
def test_entries_that_do_not_follow_their_stream_are_void_and_move_nothing(
    log: tuple[list[str], int], other: str, data: st.DataObject
) -> None:
    """Whoever signs the log can put anything into it. The streams go on as if it were not there."""
    names, size = log
    entries = entries_of(["trust/keyring", *names])
    nodes, root = tree(ends_of(entries))
    shown, void = list[LogEntry | None](entries[:1]), set[int]()
    for entry in entries[1:]:
        junk = data.draw(
            st.sampled_from(
                [
                    None,
                    replace(entry, event="0" * 64, seq=entry.seq + 1),
                    replace(entry, event="0" * 64, previous="1" * 64),
                    replace(entry, event="0" * 64, previous=None),
                    replace(entry, previous="1" * 64),
                    entries[0],
                    LogEntry(event="0" * 64, seq=2, stream=f"{other}/none", previous="1" * 64),
                ]
            )
        )
        if data.draw(st.booleans()):
            void.add(len(shown))
            shown.append(junk)
        shown.append(entry)
    ends, counting = follow_entries(shown)
    assert ends == ends_of(entries)
    assert {*range(len(shown))} - counting.keys() == void
    # Who saw a part of it sees the same, or reads all of it.
    seen, _ = follow_entries(shown[:size])
    since = shown[size:]
    counted = prove_heads(nodes, root_over(seen), root, since)
    assert counted is None or {*counted} == {entry for index, entry in counting.items() if index >= size}
    assert counted is not None or any(index >= size for index in void)


def test_only_one_of_two_entries_that_follow_the_same_event_counts() -> None:
    keyring, first, second, third = entries_of(["trust/keyring", A, A, A])
    rival = replace(second, event="0" * 64)
    assert [*follow_entries([keyring, first, second, rival, third])[1]] == [0, 1, 2, 4]
    assert [*follow_entries([keyring, first, rival, second, third])[1]] == [0, 1, 2]


def test_an_entry_has_one_form_only() -> None:
    entry = entries_of([A, A])[1]
    body = entry_body(entry)
    assert read_entry(body) == entry
    assert read_entry(entry_body(replace(entry, previous=None))) == replace(entry, previous=None)
    for other in (
        body + b" ",
        body.replace(b":", b": ", 1),
        body.replace(b'"seq":2', b'"seq":02'),
        b"",
        b"{}",
        b"\xff",
    ):
        assert read_entry(other) is None


LONG = "a" * 128
LOGGED = (
    "trust/keyring",
    f"registry/artifact/{'0a' * 32}",
    f"registry/drafts/{LONG}@1.0.0",
    "registry/names/a.b:c-d_e",
    "registry/version/a@999999999.999999999.999999999",
    f"registry/pins/{LONG[:113]}/{LONG}",
    "registry/aliases/a",
    "registry/environments/prod",
)
NOT_LOGGED = (
    "",
    "a",
    "foo/bar",
    "trust/keyring/a",
    "registry/log",
    "registry/checkpoints",
    "registry/evil",
    "tree/registry/00",
    "registry/artifact/zz",
    f"registry/artifact/{'0A' * 32}",
    f"registry/artifact/{'0a' * 32}/a",
    "registry/drafts/zz",
    "registry/version/garbage",
    "registry/version/a@1",
    "registry/version/a@1.0.0/a",
    "registry/version/_a@1.0.0",
    f"registry/version/{LONG}a@1.0.0",
    "registry/names/!!",
    f"registry/names/{LONG}a",
    "registry/pins/",
    "registry/pins/prod",
    "registry/pins/prod/",
    "registry/pins//a",
    "registry/pins/prod/!!",
    "registry/pins/prod/a/a",
    f"registry/pins/{LONG[:114]}/{LONG}",
    "registry/aliases/",
    "registry/environments/a/b",
)


@cases("name", LOGGED)
def test_the_log_is_about_the_keyring_and_subjects(name: str) -> None:
    (entry,) = entries_of([name])
    assert read_entry(entry_body(entry)) == entry


@cases("name", NOT_LOGGED)
def test_an_entry_of_any_other_stream_is_void(name: str) -> None:
    body = b'{"event":"%s","previous":"","seq":1,"stream":"%s"}' % (b"0" * 64, name.encode())
    assert read_entry(body) is None
    assert read_entry(body.replace(b',"stream":""', b"")) is None


@given(LOGS.filter(lambda log: log[1] < len(log[0])), st.data())
def test_nobody_proves_anything_with_nodes_that_are_missing(log: tuple[list[str], int], data: st.DataObject) -> None:
    names, size = log
    entries = entries_of(names)
    nodes, root = tree(ends_of(entries))
    old, since = root_over(ends_of(entries[:size])), entries[size:]
    top = nodes.texts.pop(node_name(root))
    with pytest.raises(HeadsDamaged):
        prove_heads(nodes, old, root, since)
    nodes.texts[node_name(root)] = top
    del nodes.texts[data.draw(st.sampled_from(sorted(nodes.texts)))]
    with suppress(HeadsDamaged):
        prove_heads(nodes, old, root, since)  # a node beside the way is not needed
