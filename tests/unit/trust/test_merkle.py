"""The Merkle tree is that of RFC 6962, whoever computes it; proofs show what is so, and nothing that is not."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event
from contextplane.ports.catalog import StreamConflict
from contextplane.trust.merkle import (
    EMPTY_ROOT,
    Frontier,
    InclusionRefuted,
    OutsideTree,
    StreamTree,
    TreeDamaged,
    append_leaves,
    consistency_proof,
    inclusion_proof,
    is_consistent,
    leaf_hash,
    node_hash,
    root_of,
    verify_inclusion,
)
from tests.unit.trust.world import memory_catalog

# The leaves of the reference tests of Certificate Transparency, and the roots of the trees of the first 1 to 8 of them.
LEAVES = [
    bytes.fromhex(text)
    for text in (
        *("", "00", "10", "2021", "3031", "40414243", "5051525354555657"),
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def brute(leaves: list[bytes]) -> bytes:
    """The definition in RFC 6962, 2.1, word by word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\x00" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + brute(leaves[:k]) + brute(leaves[k:])).digest()


class Kept:
    """The nodes of a tree in memory; it counts those that were asked for."""

    def __init__(self, leaves: list[bytes]) -> None:
        self.frontier = Frontier()
        self.nodes: dict[tuple[int, int], bytes] = {}
        self.asked = 0
        for leaf in leaves:
            self.frontier, nodes = self.frontier.append(leaf_hash(leaf))
            self.nodes |= {(node.level, node.index): node.hash for node in nodes}

    def node(self, level: int, index: int) -> bytes:
        self.asked += 1
        return self.nodes[level, index]


def entries(number: int) -> list[bytes]:
    return [b"entry %d" % n for n in range(number)]


sizes = st.integers(min_value=0, max_value=70)


def test_the_roots_of_the_reference_trees() -> None:
    assert EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert [Kept(LEAVES[:n]).frontier.root.hex() for n in range(1, 9)] == ROOTS


def test_proofs_of_the_reference_tree() -> None:
    tree = Kept(LEAVES)
    # RFC 9162, 2.1.5 draws such trees: leaf 0 of 8 needs its neighbour, then the pair, then the other half.
    path = inclusion_proof(tree, 0, 8)
    assert path == (leaf_hash(LEAVES[1]), tree.nodes[1, 1], tree.nodes[2, 1])
    assert [data.hex()[:8] for data in consistency_proof(tree, 6, 8)] == ["0ebc5d34", "ca854ea1", "d37ee418"]


@given(st.lists(st.binary(max_size=8), max_size=70))
def test_a_tree_that_grew_leaf_by_leaf_has_the_root_of_the_definition(leaves: list[bytes]) -> None:
    tree = Kept(leaves)
    assert tree.frontier.root == brute(leaves) == root_of(tree, 0, len(leaves))
    assert len(tree.frontier.peaks) == len(leaves).bit_count()


@given(sizes, st.data())
def test_every_leaf_is_proved_and_no_other_place_of_it(size: int, data: st.DataObject) -> None:
    tree, leaves = Kept(entries(size + 1)), entries(size + 1)
    index = data.draw(st.integers(min_value=0, max_value=size))
    root, proof = brute(leaves), inclusion_proof(tree, index, size + 1)
    verify_inclusion(leaf_hash(leaves[index]), index, size + 1, root=root, proof=proof)
    other = data.draw(st.integers(min_value=-1, max_value=size + 2).filter(lambda n: n != index))
    for leaf, place, top, path in (
        (leaves[index], other, root, proof),
        (b"another", index, root, proof),
        (leaves[index], index, EMPTY_ROOT, proof),
        (leaves[index], index, root, (*proof, root)),
        (leaves[index], index, root, proof[:-1] or (root,)),
    ):
        with pytest.raises(InclusionRefuted):
            verify_inclusion(leaf_hash(leaf), place, size + 1, root=top, proof=path)


@given(sizes, sizes)
def test_a_tree_is_consistent_with_each_of_its_beginnings(first: int, second: int) -> None:
    old, size = sorted((first, second))
    leaves = entries(size)
    proof = consistency_proof(Kept(leaves), old, size)
    assert is_consistent(old, brute(leaves[:old]), size, root=brute(leaves), proof=proof)


@given(st.integers(min_value=1, max_value=40), st.integers(min_value=1, max_value=40), st.data())
def test_a_tree_with_another_past_is_not_consistent(old: int, more: int, data: st.DataObject) -> None:
    leaves = entries(old + more)
    root = brute(leaves[:old])
    rewritten = list(leaves)
    rewritten[data.draw(st.integers(min_value=0, max_value=old - 1))] = b"another"
    proof = consistency_proof(Kept(rewritten), old, old + more)
    assert not is_consistent(old, root, old + more, root=brute(rewritten), proof=proof)
    honest = consistency_proof(Kept(leaves), old, old + more)
    assert not is_consistent(old, root, old + more, root=brute(rewritten), proof=honest)
    assert not is_consistent(old, root, old + more, root=brute(leaves), proof=(*honest, root))
    assert not is_consistent(old, root, old + more, root=brute(leaves), proof=honest[:-1])


def test_sizes_that_make_no_sense_prove_nothing() -> None:
    root = brute(entries(4))
    assert not is_consistent(5, root, 4, root=root, proof=())
    assert not is_consistent(-1, root, 4, root=root, proof=())
    assert not is_consistent(0, root, 4, root=root, proof=())
    assert not is_consistent(4, EMPTY_ROOT, 4, root=root, proof=())
    assert not is_consistent(3, root, 4, root=root, proof=())
    with pytest.raises(OutsideTree):
        inclusion_proof(Kept([]), 0, 0)
    with pytest.raises(OutsideTree):
        consistency_proof(Kept([]), 2, 1)


def test_a_leaf_cannot_be_passed_off_as_a_node() -> None:
    left, right = leaf_hash(b"a"), leaf_hash(b"b")
    assert node_hash(left, right) != leaf_hash(left + right)


def test_a_node_cannot_be_passed_off_as_a_leaf_by_leaving_out_what_is_below_it() -> None:
    tree = Kept(entries(4))
    with pytest.raises(InclusionRefuted):
        verify_inclusion(tree.nodes[1, 0], 0, 4, root=brute(entries(4)), proof=(tree.nodes[1, 1],))


def test_a_tree_cannot_be_said_to_be_larger_than_it_is() -> None:
    root, proof = brute(entries(8)), consistency_proof(Kept(entries(8)), 4, 8)
    assert is_consistent(4, brute(entries(4)), 8, root=root, proof=proof)
    assert not is_consistent(4, brute(entries(4)), 16, root=root, proof=proof)


def test_what_a_proof_looks_at_grows_with_the_logarithm() -> None:
    tree = Kept(entries(5000))
    inclusion_proof(tree, 1234, 5000)
    consistency_proof(tree, 1234, 5000)
    assert tree.asked <= 4 * 13


class TestInTheCatalog:
    """The same tree, its levels in event streams."""

    @given(st.lists(st.integers(min_value=0, max_value=9), max_size=6))
    def test_it_grows_in_any_portions_and_gives_the_same_proofs(self, portions: list[int]) -> None:
        leaves = entries(sum(portions))
        with memory_catalog() as catalog:
            done = 0
            for portion in portions:
                with catalog.write() as tx:
                    frontier = append_leaves(tx.streams, "log", leaves[done : done + portion])
                done += portion
                assert frontier.root == brute(leaves[:done])
            with catalog.read() as view:
                tree = StreamTree(view.streams, "log")
                assert (tree.size, tree.frontier().root) == (len(leaves), brute(leaves))
                for old in range(len(leaves) + 1):
                    assert consistency_proof(tree, old, done) == consistency_proof(Kept(leaves), old, done)

    def test_of_two_writers_one_wins(self) -> None:
        with memory_catalog() as catalog:
            with catalog.write() as tx:
                append_leaves(tx.streams, "log", entries(3))
            with pytest.raises(StreamConflict), catalog.write() as tx:
                tx.streams.append("tree/log/00", 2, [Event(kind="tree_node", body=b"{}")])

    @pytest.mark.parametrize("body", [b"{}", b'"' + b"0" * 63 + b'"', b'"' + b"F" * 64 + b'"'])
    def test_a_damaged_node_is_named(self, body: bytes) -> None:
        with memory_catalog() as catalog:
            with catalog.write() as tx:
                tx.streams.append("tree/log/00", 0, [Event(kind="tree_node", body=body)])
            with catalog.read() as view, pytest.raises(TreeDamaged) as damaged:
                StreamTree(view.streams, "log").frontier()
            assert damaged.value.at == "tree/log/00"
            with catalog.read() as view, pytest.raises(ContextPlaneError):
                StreamTree(view.streams, "log").node(3, 0)
