"""A page token is short, and good for one pack, one revision and one query of one store."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.handoff.errors import HandoffInvalid
from contextplane.handoff.page import PROFILES, PageArguments, PageQuery
from contextplane.handoff.page_token import issue, redeem
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.handoff.builders import KEY

PACK = "pk_abcd2345"
QUERY = PageQuery(profile="executor", limit=5, contains="TODO", status="draft")
NOTHING = PageArguments()

queries = st.builds(
    PageQuery,
    profile=st.sampled_from(sorted(PROFILES)),
    limit=st.integers(1, 10**12),
    contains=st.none() | st.text(st.characters(codec="utf-8"), min_size=1),
    status=st.sampled_from([None, "draft", "finalized"]),
)
ids = st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=8, max_size=8).map("pk_".__add__)


def token(query: PageQuery = QUERY, *, key: bytes = KEY, pack: str = PACK, revision: int = 3, offset: int = 5) -> str:
    return issue(key, query, pack_id=pack, revision=revision, next_offset=offset)


def refusal(text: str, *, arguments: PageArguments = NOTHING, revision: int = 3) -> HandoffInvalid:
    with pytest.raises(HandoffInvalid) as caught:
        redeem(KEY, text, pack_id=PACK, revision=revision, arguments=arguments)
    error = caught.value
    assert error.answer == ("validation", "invalid_data")
    assert error.message == f"invalid data: invalid_page_token: {error.details['reason']}"
    assert error.details.keys() == {"field", "reason", "guidance"}
    assert error.details["field"] == "page_token"
    return error


@given(queries, ids, st.integers(1, 2**70), st.integers(0, 2**70), st.binary(min_size=16))
def test_a_token_gives_back_the_query_at_its_offset(
    query: PageQuery, pack: str, revision: int, offset: int, key: bytes
) -> None:
    text = issue(key, query, pack_id=pack, revision=revision, next_offset=offset)
    back = redeem(key, text, pack_id=pack, revision=revision, arguments=NOTHING)
    assert (back.profile, back.most, back.contains, back.status) == (
        query.profile,
        query.most,
        query.contains,
        query.status,
    )
    assert back.offset == offset
    assert text == issue(key, query, pack_id=pack, revision=revision, next_offset=offset)


def test_a_token_is_short() -> None:
    assert len(token(PageQuery(profile="reviewer", limit=1000), revision=100_000, offset=100_000)) <= 40


@proves("handoff-pack:paging:page-token-stale")
def test_a_token_of_another_revision_is_refused_and_tells_both() -> None:
    assert refusal(token(), revision=4).details["reason"] == "pack revision changed: 3 is now 4"


@proves("handoff-pack:paging:page-token-mismatch")
@cases(
    ("arguments", "named"),
    [
        (PageArguments(profile="reviewer"), "profile"),
        (PageArguments(limit=6), "limit"),
        (PageArguments(contains="FIXME"), "contains"),
        (PageArguments(status="finalized"), "status"),
        (PageArguments(profile="orchestrator", limit=1), "profile, limit"),
    ],
)
def test_a_token_with_other_arguments_is_refused_and_names_them(arguments: PageArguments, named: str) -> None:
    assert refusal(token(), arguments=arguments).details["reason"] == f"request fingerprint mismatch: {named}"


def test_what_is_given_again_must_be_the_same() -> None:
    same = PageArguments(profile="executor", limit=5, contains=" TODO ", status="draft")
    assert redeem(KEY, token(), pack_id=PACK, revision=3, arguments=same).offset == 5
    default = token(PageQuery(profile="orchestrator"))
    assert redeem(KEY, default, pack_id=PACK, revision=3, arguments=PageArguments(limit=6)).limit == 6


def test_an_offset_beside_a_token_is_refused() -> None:
    assert "not both" in str(refusal(token(), arguments=PageArguments(offset=0)).details["reason"])


def test_a_token_of_another_pack_is_refused() -> None:
    assert refusal(token(pack="pk_zzzz7777")).details["reason"] == "pack id mismatch"


@cases(
    "text",
    [
        "",
        "x",
        "null",
        "v1:7b7d",
        "not base64!",
        "\u00e9\u00e9\u00e9\u00e9",
        "\ud800",
        "A" * 13,
        "A" * 14,
        "A" * 1_000_001,
        "=" * 8,
        "AAAA\nAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_garbage_is_refused(text: str) -> None:
    refusal(text)


def test_a_token_of_another_store_is_refused() -> None:
    assert "not issued by this store" in str(refusal(token(key=b"another key")).details["reason"])


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_token_that_was_altered_anywhere_is_refused(at: int, by: int) -> None:
    text = token()
    data = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    data[at % len(data)] ^= by
    refusal(base64.urlsafe_b64encode(data).rstrip(b"=").decode())


@given(st.text() | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_whatever_is_sent_is_refused_with_details(text: str) -> None:
    refusal(text)
