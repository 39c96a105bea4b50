"""Page tokens that are old, altered, or of another page are refused with the way to go on."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.agents import Agent
from tests.surfaces.handoffs import Place, legend, whole


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def agent(place: Place) -> Iterator[Agent]:
    with place.serving() as agent:
        yield agent


def made(agent: Agent, **fields: object) -> str:
    return str(agent.does("write", document=whole(refs=20, **fields))["id"])


def token_of(agent: Agent, pack: str, **query: object) -> str:
    return legend(agent.reads(id=pack, **query))["next_page_token"]


def refused(agent: Agent, pack: str, token: str, **arguments: object) -> str:
    """The reason why a token is refused."""
    error = agent.fails("output", action="read", id=pack, page_token=token, **arguments)
    assert error["message"].startswith("invalid data: invalid_page_token: ")
    details: dict[str, Any] = error["details"]
    assert details["field"] == "page_token"
    assert details["guidance"]
    return str(details["reason"])


def test_a_token_is_good_for_its_revision_alone(agent: Agent) -> None:
    pack = made(agent)
    token = token_of(agent, pack)
    assert legend(agent.reads(id=pack, page_token=token))["offset"] == "6"
    agent.does("ttl", id=pack, expected_revision=1, extend_minutes=5)
    assert "revision" in refused(agent, pack, token)


def test_a_token_is_good_for_its_pack_and_its_store_alone(
    agent: Agent, place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pack, other = made(agent), made(agent)
    token = token_of(agent, pack)
    assert "pack id" in refused(agent, other, token)
    elsewhere = Place(tmp_path_factory.mktemp("elsewhere"))
    with elsewhere.serving() as stranger:
        assert "not issued by this store" in refused(stranger, made(stranger), token)
    with place.serving() as later:  # another process on the same store takes it
        assert legend(later.reads(id=pack, page_token=token))["offset"] == "6"


def test_a_token_is_good_for_its_query_alone(agent: Agent) -> None:
    pack = made(agent)
    token = token_of(agent, pack, profile="executor", limit=3, contains="step")
    same = {"profile": "executor", "limit": 3, "contains": "step"}
    assert legend(agent.reads(id=pack, page_token=token, **same))["offset"] == "3"
    for name, value in {"profile": "reviewer", "limit": 4, "contains": "other", "status": "draft"}.items():
        assert name in refused(agent, pack, token, **{name: value})
    assert "offset" in refused(agent, pack, token, offset=3)
    assert "offset" in refused(agent, pack, token, offset=0)


@pytest.mark.parametrize("token", ["", " ", "\n"])
def test_an_empty_token_is_a_token_and_a_bad_one(agent: Agent, token: str) -> None:
    pack = made(agent)
    assert refused(agent, pack, token)
    assert legend(agent.reads(id=pack, page_token=None))["offset"] == "0"


def test_a_token_that_was_altered_is_refused_at_every_character(agent: Agent) -> None:
    pack = made(agent)
    token = token_of(agent, pack)
    for at, character in enumerate(token):
        altered = token[:at] + ("B" if character == "A" else "A") + token[at + 1 :]
        if base64.urlsafe_b64decode(altered + "==") != base64.urlsafe_b64decode(token + "=="):
            assert refused(agent, pack, altered)
    for wrong in (token[:-1], token + "A", token * 2, "v1:7b7d", "null", "...", "\u00e9", "A" * 100_000):
        assert refused(agent, pack, wrong)
