"""How long packs are served, and which of several packs a name means, for packs of every age."""

from pathlib import Path

import pytest

from contextplane.testing.proofs import proves
from tests.surfaces.agents import Agent
from tests.surfaces.handoffs import Place, later, legend, whole

FRESH, SOON, EXPIRED, OVER = "pk_fffffff2", "pk_sssssss2", "pk_eeeeeee2", "pk_ooooooo2"
LEFT = {FRESH: 7200, SOON: 600, EXPIRED: -60, OVER: -5000}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder with a pack in every state, imported while the grace time was long enough for all."""
    place = Place(tmp_path)
    now, there = place.now(), place.reference()
    for pack, seconds in LEFT.items():
        there.write(pack, name=f"name of {pack}", expires_at=later(now, seconds))
    with place.serving(expired_grace_seconds="100000") as agent:
        assert len(ids(agent, freshness="expired")) == 2
    return place


def ids(agent: Agent, **arguments: object) -> set[str]:
    """The ids that both lists show; they must agree."""
    packs = {pack["id"] for pack in agent.does("list", **arguments)["packs"]}
    page = agent.reads(action="list", **arguments)
    assert packs == {pack for pack in LEFT if pack in page}
    return packs


@proves(
    "handoff-pack:tool:input-list-freshness-filter",
    "handoff-pack:tool:output-list-freshness-filter",
    "handoff-pack:tool:freshness-fresh",
    "handoff-pack:tool:freshness-expiring-soon",
    "handoff-pack:tool:freshness-expired",
    "handoff-pack:tool:list-is-stale-safe-by-default",
    "handoff-pack:migration-freshness:list-hides-expired",
    "handoff-pack:migration-freshness:explicit-stale-path",
)
def test_lists_are_filtered_by_freshness_and_hide_expired_packs_unless_asked(place: Place) -> None:
    with place.serving() as agent:
        assert ids(agent) == {FRESH, SOON}
        assert ids(agent, freshness="fresh") == {FRESH}
        assert ids(agent, freshness="expiring_soon") == {SOON}
        assert ids(agent, freshness="expired") == {EXPIRED}


@proves("handoff-pack:tool:expired-readable-during-grace", "handoff-pack:tool:expired-unavailable-after-grace")
def test_an_expired_pack_is_read_during_the_grace_time_and_not_found_after_it(place: Place) -> None:
    with place.serving() as agent:
        for identity in ({"id": EXPIRED}, {"name": f"name of {EXPIRED}"}):
            page = legend(agent.reads(action="read", **identity))
            assert (page["freshness_state"], page["ttl_remaining"]) == ("expired", "expired")
            assert page["warning"] == "expired \u2014 treat as stale evidence"
        for identity in ({"id": OVER}, {"name": f"name of {OVER}"}):
            assert agent.fails("output", action="read", **identity)["code"] == "not_found"
            assert agent.fails("input", action="get", **identity)["code"] == "not_found"
            update = {"action": "write", "expected_revision": 3, "document": whole(), **identity}
            assert agent.fails("input", **update)["code"] == "not_found"
            extension = {"action": "ttl", "expected_revision": 3, "extend_minutes": 5, **identity}
            assert agent.fails("input", **extension)["code"] == "not_found"
        assert agent.does("delete", id=OVER) == {"id": OVER, "deleted": False}
        # Its name is free again; that of a pack in its grace time is not.
        assert agent.does("write", document=whole(name=f"name of {OVER}"))["revision"] == 1
        assert agent.fails("input", action="write", document=whole(name=f"name of {EXPIRED}"))["code"] == "conflict"
        assert agent.does("ttl", id=EXPIRED, expected_revision=3, extend_minutes=60)["revision"] == 4
        assert legend(agent.reads(id=EXPIRED))["freshness_state"] == "fresh"


@proves("handoff-pack:tool:expired-grace-default")
def test_the_grace_time_is_900_seconds_unless_told_otherwise(tmp_path: Path) -> None:
    place = Place(tmp_path)
    now, there = place.now(), place.reference()
    there.write(EXPIRED, expires_at=later(now, -830))
    there.write(OVER, expires_at=later(now, -901))
    with place.serving(expired_grace_seconds="100000") as agent:
        assert ids(agent, freshness="expired") == {EXPIRED, OVER}
    for grace in ("", "900", "nonsense", "-5"):
        with place.serving(expired_grace_seconds=grace) as agent:
            assert ids(agent, freshness="expired") == {EXPIRED}, grace
    with place.serving(expired_grace_seconds="0") as agent:
        assert ids(agent, freshness="expired") == set()
    with place.serving(expired_grace_seconds="99999999999999999999") as agent:
        assert ids(agent, freshness="expired") == {EXPIRED, OVER}


def test_what_is_about_to_expire_is_warned_of_in_both_lists_and_pages(place: Place) -> None:
    with place.serving() as agent:
        assert "[warning: expiring soon \u2014 refresh or extend ttl]" in agent.reads(action="list")
        assert legend(agent.reads(id=SOON))["warning"] == "expiring soon \u2014 refresh or extend ttl"
        assert "warning" not in legend(agent.reads(id=FRESH))
        assert "[warning: expired \u2014 treat as stale evidence]" in agent.reads(action="list", freshness="expired")


# --- names ------------------------------------------------------------------------------------------------------------

EARLY, LATE = "2026-05-04T09:00:00Z", "2026-05-04T09:00:01Z"


@proves("handoff-pack:tool:name-resolution-prefers-finalized", case="finalized")
@proves("handoff-pack:tool:name-resolution-latest-updated-at", case="later of finalized")
@proves("handoff-pack:tool:name-resolution-highest-revision", case="revision")
@proves(
    "handoff-pack:migration-name-resolution:deterministic-priority",
    "handoff-pack:migration-name-resolution:success-legend",
    case="*",
)
@pytest.mark.parametrize(
    ("meant", "other", "tier"),
    [
        (("finalized", EARLY, 1), ("draft", LATE, 9), "finalized"),
        (("draft", LATE, 1), ("draft", EARLY, 9), "draft"),
        (("finalized", LATE, 1), ("finalized", EARLY, 9), "finalized"),
        (("draft", LATE, 8), ("draft", LATE, 7), "draft"),
    ],
    ids=["finalized", "later", "later of finalized", "revision"],
)
def test_a_name_means_the_finalized_then_the_latest_then_the_highest_revision(
    tmp_path: Path, meant: tuple[str, str, int], other: tuple[str, str, int], tier: str
) -> None:
    place = Place(tmp_path)
    there = place.reference()
    for pack, (status, updated, revision) in (("pk_meantaaa", meant), ("pk_otheraaa", other)):
        there.write(pack, name="plan", status=status, updated_at=updated, revision=revision)
    with place.serving() as agent:
        page = legend(agent.reads(action="read", name="plan"))
        assert page["id"] == "pk_meantaaa"
        assert page["selected_by"] == f"name_latest_{tier}_updated_at_then_revision"
        assert (page["selected_revision"], page["selected_status"]) == (str(meant[2]), meant[0])
        assert agent.does("get", name="plan")["id"] == "pk_meantaaa"


@proves("handoff-pack:tool:name-resolution-ambiguous", "handoff-pack:migration-name-resolution:fail-closed-ambiguity")
def test_a_name_that_means_two_packs_alike_is_refused_with_both(tmp_path: Path) -> None:
    place = Place(tmp_path)
    there = place.reference()
    for pack in ("pk_twoaaaaa", "pk_oneaaaaa"):
        there.write(pack, name="plan")
    with place.serving() as agent:
        for tool, action in (("output", "read"), ("input", "get"), ("input", "delete")):
            error = agent.fails(tool, action=action, name="plan")
            assert (error["kind"], error["code"]) == ("conflict", "ambiguous")
            assert error["details"]["candidate_ids"] == ["pk_oneaaaaa", "pk_twoaaaaa"]
        assert legend(agent.reads(id="pk_oneaaaaa"))["selected_by"] == "exact_id"
