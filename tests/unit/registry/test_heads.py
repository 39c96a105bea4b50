"""The tree over the ends of streams: one root for all of them, a way to each that is short, and none to what is not."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.registry.stream_heads import (
    HeadsDamaged,
    MemoryHeadNodes,
    StreamCut,
    StreamHeads,
    node_name,
    put_heads,
)
from contextplane.store.event_stream import StreamHead
from contextplane.trust.merkle import EMPTY_ROOT
from tests.support.cases import cases

NAMES = st.from_regex(r"registry/version/[a-z]{1,3}@[0-9]\.0\.0", fullmatch=True)
HEADS = st.dictionaries(
    NAMES,
    st.builds(lambda seq, digit: StreamHead(seq=seq, digest=digit * 64), st.integers(1, 9), st.sampled_from("0a7")),
)


def tree(heads: dict[str, StreamHead]) -> tuple[MemoryHeadNodes, bytes]:
    nodes = MemoryHeadNodes()
    return nodes, put_heads(nodes, EMPTY_ROOT, heads)


@given(HEADS, st.randoms())
def test_the_root_depends_on_the_streams_and_not_on_their_order_nor_on_how_they_came_there(
    heads: dict[str, StreamHead], random: object
) -> None:
    nodes, root = tree(heads)
    order = sorted(heads, key=lambda _: random.random())  # type: ignore[attr-defined]
    others = MemoryHeadNodes()
    other = EMPTY_ROOT
    for name in order:
        other = put_heads(others, other, {name: StreamHead(seq=1, digest="f" * 64)})
    for name in order:
        other = put_heads(others, other, {name: heads[name]})
    assert (other, others.texts) == (root, nodes.texts)


@given(HEADS, NAMES)
def test_every_end_is_found_and_what_is_not_there_is_known_not_to_be(heads: dict[str, StreamHead], absent: str) -> None:
    tree_heads = StreamHeads(*tree(heads))
    for name in (*heads, absent):
        assert tree_heads.head(name) == heads.get(name)
        tree_heads.check(name, heads.get(name))


@given(HEADS, st.data())
def test_another_end_of_any_stream_is_another_root(heads: dict[str, StreamHead], data: st.DataObject) -> None:
    _, root = tree(heads)
    name = data.draw(st.sampled_from(sorted(heads)) if heads else NAMES)
    assert tree({**heads, name: StreamHead(seq=10, digest="0" * 64)})[1] != root
    assert tree({head: heads[head] for head in heads if head != name})[1] != root or name not in heads


@given(HEADS.filter(bool), st.data())
def test_a_node_that_is_missing_or_another_is_refused_on_the_way_to_what_is_below_it(
    heads: dict[str, StreamHead], data: st.DataObject
) -> None:
    nodes, root = tree(heads)
    place = data.draw(st.sampled_from(sorted(nodes.texts)))
    before = nodes.texts.pop(place)
    if data.draw(st.booleans()):
        nodes.texts[place] = before + " "
    outcomes = set()
    for name, head in heads.items():
        try:
            assert StreamHeads(nodes, root).head(name) == head
        except HeadsDamaged as error:
            outcomes.add(error.code)
    assert outcomes == {"registry_heads_damaged"}


@pytest.mark.parametrize("actual", [None, StreamHead(seq=1, digest="a" * 64), StreamHead(seq=2, digest="b" * 64)])
def test_a_stream_that_ends_elsewhere_is_cut(actual: StreamHead | None) -> None:
    heads = StreamHeads(*tree({"registry/version/a@1.0.0": StreamHead(seq=2, digest="a" * 64)}))
    with pytest.raises(StreamCut):
        heads.check("registry/version/a@1.0.0", actual)


def test_a_look_and_a_change_touch_a_number_of_nodes_that_grows_with_the_logarithm() -> None:
    nodes, root = tree({f"registry/version/a@{n}.0.0": StreamHead(seq=1, digest="a" * 64) for n in range(4000)})
    seen: list[str] = []

    class Watched(MemoryHeadNodes):
        def get(self, name: str) -> str | None:
            seen.append(name)
            return nodes.get(name)

    put_heads(Watched(), root, {"registry/version/a@7.0.0": StreamHead(seq=2, digest="b" * 64)})
    assert len(seen) <= 6
    assert max(map(len, nodes.texts.values())) <= 1024
    assert max(map(len, nodes.texts)) <= 256


def one_node(text: str) -> tuple[MemoryHeadNodes, bytes]:
    nodes = MemoryHeadNodes()
    nodes.put(node_name(""), text)
    return nodes, hashlib.sha256(text.encode()).digest()


@cases(
    "text",
    [
        "head",
        "head 1",
        f"head 0 {'a' * 64} registry/version/a@1.0.0",
        f"head x {'a' * 64} registry/version/a@1.0.0",
        "head 1 aa registry/version/a@1.0.0",
        "branch",
        "branch " + " ".join("-" * 15),
        "branch " + " ".join("-" * 17),
        "branch " + " ".join(["AAAA"] * 16),
        "twig " + " ".join("-" * 16),
    ],
)
def test_what_has_not_the_form_of_a_node_is_refused_though_somebody_signed_it(text: str) -> None:
    nodes, root = one_node(text)
    with pytest.raises(HeadsDamaged):
        StreamHeads(nodes, root).head("registry/version/a@1.0.0")
    with pytest.raises(HeadsDamaged):
        put_heads(nodes, root, {"registry/version/a@1.0.0": StreamHead(seq=1, digest="a" * 64)})


def test_branches_without_an_end_are_refused_where_no_name_leads_further() -> None:
    name, nodes = "registry/version/a@1.0.0", MemoryHeadNodes()
    key, below = hashlib.sha256(name.encode()).hexdigest(), bytes(32)
    for depth in range(len(key), -1, -1):
        place = int(key[min(depth, 63)], 16)
        children = ["-"] * 16
        children[place] = base64.b64encode(below).decode()
        text = " ".join(["branch", *children])
        nodes.put(node_name(key[:depth]), text)
        below = hashlib.sha256(text.encode()).digest()
    with pytest.raises(HeadsDamaged):
        StreamHeads(nodes, below).head(name)
    with pytest.raises(HeadsDamaged):
        put_heads(nodes, below, {name: StreamHead(seq=1, digest="a" * 64)})
