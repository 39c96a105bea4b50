"""A pack that expired: it says so, it says when, it can be listed, and it can be revived until it is collected."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import cases
from tests.surfaces.agents import serving
from tests.surfaces.handoff_store import HandoffStore, document, json_answer
from tests.surfaces.sample import one_error_line

LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)
EXPIRED_AT = "2025-01-01T01:00:00"


@pytest.fixture
def place(tmp_path: Path) -> HandoffStore:
    return HandoffStore(tmp_path / "project")


@pytest.mark.parametrize("by", ["id", "name"])
def test_an_agent_learns_that_the_pack_expired_and_when_and_how_it_is_revived(place: HandoffStore, by: str) -> None:
    pack = place.write_long_ago(LONG_AGO, name="login-bug", ttl_minutes=60)
    identity = {"id": pack.id} if by == "id" else {"name": "login-bug"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("output", {"action": "read"}),
        ("input", {"action": "get"}),
        ("input", {"action": "ttl", "expected_revision": 1, "extend_minutes": 60}),
        ("input", {"action": "write", "expected_revision": 1, "document": document()}),
    ]
    with serving(place.folder) as agent:
        for tool, arguments in calls:
            error = agent.fails(tool, **arguments, **identity)
            assert (error["kind"], error["code"]) == ("not_found", "not_found")
            assert EXPIRED_AT in error["message"]
            assert error["details"]["id"] == pack.id
            assert error["details"]["expired_at"].startswith(EXPIRED_AT)
            assert f"ctx handoff extend {pack.id}" in error["details"]["guidance"]
        unknown = agent.fails("input", action="get", id="pk_aaaaaaaa")
        assert "expire" not in str(unknown)


def test_a_person_learns_when_it_expired_and_revives_it(place: HandoffStore) -> None:
    pack = place.write_long_ago(LONG_AGO, name="login-bug", ttl_minutes=60)
    for name in (pack.id, "login-bug"):
        result = place.ctx("handoff", "read", name)
        assert result.status == 13
        assert EXPIRED_AT in result.err
        assert f"ctx handoff extend {pack.id}" in result.err
    extended = place.ctx("handoff", "extend", "login-bug", "--by", "36h")
    assert (extended.status, extended.err) == (0, "")
    assert extended.out.startswith(f"Extended: {pack.id}@2, until ")
    shown = json_answer(place.ctx("handoff", "show", "login-bug", "--json"))
    assert (shown["revision"], shown["freshness_state"], shown["ttl_remaining"]) == (2, "fresh", "1d")
    assert [event["kind"] for event in json_answer(place.ctx("handoff", "log", pack.id, "--json"))["events"]] == [
        "written",
        "ttl",
    ]


def test_extending_a_pack_that_lives_adds_to_its_deadline(place: HandoffStore) -> None:
    pack = place.write(ttl_minutes=60 * 24 * 2)
    answer = json_answer(place.ctx("handoff", "extend", pack.id, "--by", "3d", "--json"))
    assert (answer["id"], answer["revision"]) == (pack.id, 2)
    before, after = (datetime.fromisoformat(text) for text in (pack.expires_at, answer["expires_at"]))
    assert (after - before).days == 3
    assert json_answer(place.ctx("handoff", "extend", pack.id, "--json"))["revision"] == 3


def test_a_pack_whose_name_has_another_pack_by_now_is_not_revived_under_it(place: HandoffStore) -> None:
    old = place.write_long_ago(LONG_AGO, name="login-bug", ttl_minutes=60)
    new = place.write(name="login-bug")
    refused = place.ctx("handoff", "extend", old.id)
    assert refused.status == 14
    assert new.id in refused.err
    assert json_answer(place.ctx("handoff", "extend", "login-bug", "--json"))["id"] == new.id


def test_a_deleted_or_collected_pack_is_not_revived(place: HandoffStore) -> None:
    pack, old = place.write(), place.write_long_ago(LONG_AGO, ttl_minutes=60)
    place.delete(pack.id)
    assert "deleted" in one_error_line(place.ctx("handoff", "extend", pack.id), 13, "handoff_not_found")
    assert place.ctx("gc").status == 0
    assert "collected" in one_error_line(place.ctx("handoff", "extend", old.id), 13, "handoff_not_found")


def test_people_can_list_expired_packs_until_they_are_collected(place: HandoffStore) -> None:
    old, new = place.write_long_ago(LONG_AGO, ttl_minutes=60), place.write()
    for options, expected in (
        ([], [new.id]),
        (["--expired"], [new.id, old.id]),
        (["--freshness", "expired"], [old.id]),
        (["--freshness", "expired", "--expired"], [old.id]),
    ):
        answer = json_answer(place.ctx("handoff", "list", *options, "--json"))
        assert [pack["id"] for pack in answer["packs"]] == expected, options
    assert "expired" in place.ctx("handoff", "list", "--expired").out
    place.delete(new.id)
    assert place.ctx("handoff", "list").out == "No handoff packs. 1 expired pack: ctx handoff list --expired\n"
    assert place.ctx("handoff", "list", "--quiet").out == ""


@cases(
    ("value", "days"),
    [
        (None, 7),
        ("", 7),
        ("1d", 1),
        ("48h", 2),
        ("1440", 1),
        ("1440m", 1),
        ("0", 7),
        ("-1d", 7),
        ("soon", 7),
        ("99999d", 7),
    ],
)
def test_the_life_of_a_new_pack_is_a_setting(place: HandoffStore, value: str | None, days: int) -> None:
    (place.folder / "pack.json").write_text('{"sections": []}', encoding="utf-8")
    env = {} if value is None else {"CTX_HANDOFF_TTL": value}
    answer = json_answer(place.ctx("handoff", "write", "pack.json", "--json", env=env))
    shown = json_answer(place.ctx("handoff", "show", answer["id"], "--json"))
    life = datetime.fromisoformat(shown["expires_at"]) - datetime.fromisoformat(shown["created_at"])
    assert life.days == days


@cases("text", ["", "0", "3 days", "1w", "-1d", "9999999d"])
def test_a_time_that_cannot_be_read_is_refused(place: HandoffStore, text: str) -> None:
    pack = place.write()
    result = place.ctx("handoff", "extend", pack.id, f"--by={text}")
    assert result.status == 2
    assert "--by" in result.err
