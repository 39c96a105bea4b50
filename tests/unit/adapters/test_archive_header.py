"""The first member of an archive: which packs it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.archive import (
    ArchivedHandoff,
    ArchiveInvalid,
    ArchiveTooLarge,
    ArchiveTooNew,
    Header,
    header_bytes,
    read_header,
)
from contextplane.model.handoff import KeptRevision
from contextplane.model.ids import Digest, HandoffId
from contextplane.model.json.canonical import Json, canonical
from tests.support.cases import cases

PACK = Digest.of(b"pack")
FIRST = header_bytes(Header(roots=(PACK,)))


@given(st.sets(st.binary(max_size=2), min_size=1), st.sets(st.binary(max_size=2)))
def test_a_header_is_read_as_it_was_written(roots: set[bytes], parents: set[bytes]) -> None:
    header = Header(roots=tuple(sorted(map(Digest.of, roots))), parents=tuple(sorted(map(Digest.of, parents - roots))))
    assert read_header(header_bytes(header)) == header


@cases(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        FIRST + b"\n",
        FIRST.replace(b":1,", b": 1,"),
        FIRST.replace(b":1,", b":0,"),
        FIRST.replace(b":1,", b":true,"),
        FIRST.replace(b"{", b'{"also":1,'),
        FIRST.replace(b"{", b'{"format":1,'),
        FIRST.replace(b"ctx://", b"sha256:"),
        FIRST.replace(PACK.hex.encode(), PACK.hex.upper().encode()),
        b'{"format":1,"parents":[],"roots":[]}',
        b'{"format":1,"roots":["ctx://%b"]}' % PACK.hex.encode(),
        b'{"format":1,"parents":["ctx://%b"],"roots":["ctx://%b"]}' % (PACK.hex.encode(), PACK.hex.encode()),
        b'{"format":1,"parents":[],"roots":["ctx://%b","ctx://%b"]}' % (b"2" * 64, b"1" * 64),
        b'{"format":1,"parents":[],"roots":["ctx://%b","ctx://%b"]}' % (b"1" * 64, b"1" * 64),
    ],
)
def test_any_other_header_is_refused(data: bytes) -> None:
    with pytest.raises(ArchiveInvalid):
        read_header(data)


@given(
    st.dictionaries(
        st.from_regex(r"pk_[a-z2-7]{8}", fullmatch=True).map(HandoffId),
        st.sets(st.integers(1, 2**53 - 1), min_size=1, max_size=5),
        min_size=1,
        max_size=4,
    )
)
def test_a_header_with_handoff_packs_is_read_as_it_was_written(packs: dict[HandoffId, set[int]]) -> None:
    carried = tuple(
        ArchivedHandoff(
            id=pack,
            revisions=tuple(
                KeptRevision(revision=n, digest=Digest.of(f"{pack}@{n}".encode())) for n in sorted(packs[pack])
            ),
        )
        for pack in sorted(packs)
    )
    for roots in ((), (PACK,)):
        header = Header(roots=roots, handoffs=carried)
        assert read_header(header_bytes(header)) == header


ONE = {"digest": str(PACK), "revision": 1}


@cases(
    "handoffs",
    [
        [],
        [{"id": "pk_nope", "revisions": [ONE]}],
        [{"id": "pk_abcd2345", "revisions": []}],
        [{"id": "pk_abcd2345", "revisions": [{**ONE, "revision": 0}]}],
        [{"id": "pk_abcd2345", "revisions": [{**ONE, "digest": "sha256:ab"}]}],
        [{"id": "pk_abcd2345", "revisions": [ONE, ONE]}],
        [{"id": "pk_abcd2345", "revisions": [ONE, {**ONE, "revision": 2}]}],
        [{"id": "pk_abcd2345", "revisions": [ONE]}, {"id": "pk_aaaaaaaa", "revisions": [ONE]}],
        [{"id": "pk_abcd2345", "revisions": [ONE], "more": 1}],
    ],
    ids=str,
)
def test_handoff_packs_out_of_order_twice_or_of_another_form_are_refused(handoffs: list[Json]) -> None:
    with pytest.raises(ArchiveInvalid):
        read_header(canonical({"format": 2, "handoffs": handoffs, "parents": [], "roots": []}))


def test_a_later_format_is_refused_as_such() -> None:
    with pytest.raises(ArchiveTooNew):
        read_header(b'{"format":3,"something":"else"}')


def test_more_packs_than_a_header_holds_are_refused() -> None:
    with pytest.raises(ArchiveTooLarge):
        header_bytes(Header(roots=tuple(Digest(f"{n:064x}") for n in range(15_000))))
