"""Clock facts: the moment of a compile, and what clocks show in the pack's timezone."""

import json
import tomllib
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

import pytest

from contextplane.model.timestamp import Timestamp
from contextplane.policy.clock import CLOCK_NUMBERS, clock_facts, describe_missing, is_timezone
from contextplane.policy.logic.solver import can_be

ROOT = Path(__file__).resolve().parents[3]
HOUR = {"var": "run.hour"}
WEEKDAY = {"var": "run.weekday"}


@pytest.mark.parametrize(
    ("moment", "timezone", "weekday", "hour", "date"),
    [
        ("2026-11-16T09:31:42.5Z", "UTC", 1, 9, "2026-11-16"),
        ("2026-11-15T18:29:59Z", "Asia/Kolkata", 7, 23, "2026-11-15"),
        ("2026-11-15T18:30:00Z", "Asia/Kolkata", 1, 0, "2026-11-16"),
        # In New York clocks go from 01:59 to 03:00 on 2026-03-08, and from 01:59 back to 01:00 on 2026-11-01.
        ("2026-03-08T06:59:59Z", "America/New_York", 7, 1, "2026-03-08"),
        ("2026-03-08T07:00:00Z", "America/New_York", 7, 3, "2026-03-08"),
        ("2026-11-01T05:30:00Z", "America/New_York", 7, 1, "2026-11-01"),
        ("2026-11-01T06:30:00Z", "America/New_York", 7, 1, "2026-11-01"),
        ("2026-01-01T09:59:59Z", "Pacific/Kiritimati", 4, 23, "2026-01-01"),
    ],
)
def test_the_clock_of_a_timezone(moment: str, timezone: str, weekday: int, hour: int, date: str) -> None:
    facts = clock_facts(Timestamp.parse(moment), timezone)
    assert facts == {"as_of": f"{moment[:19]}Z", "weekday": weekday, "hour": hour, "date": date}


def test_a_missing_clock_fact_is_described_with_the_one_to_send() -> None:
    assert describe_missing(["run.hour"]) == "run.hour is missing (send as_of)"
    assert describe_missing(["request.context.a", "user.role"]) == "request.context.a, user.role is missing"


def test_an_unknown_timezone_has_no_clock_but_a_moment() -> None:
    for timezone in ("Asia/Calcuta", "asia/kolkata", "Asia", "zones", "iso3166"):
        assert clock_facts(Timestamp.parse("2026-11-16T09:31:42Z"), timezone) == {"as_of": "2026-11-16T09:31:42Z"}
        assert not is_timezone(timezone)


def test_the_first_and_the_last_day_of_the_calendar_have_no_local_clock() -> None:
    assert clock_facts(Timestamp.parse("0001-01-01T00:00:00Z"), "America/New_York") == {"as_of": "0001-01-01T00:00:00Z"}
    assert clock_facts(Timestamp.parse("9999-12-31T23:00:00Z"), "Asia/Tokyo") == {"as_of": "9999-12-31T23:00:00Z"}


def test_texts_of_moments_are_ordered_by_time() -> None:
    start = Timestamp.parse("2026-11-16T09:31:42Z")
    texts = [str(clock_facts(Timestamp(start.seconds + n * 977, n * 7_000), "UTC")["as_of"]) for n in range(200)]
    assert texts == sorted(texts)


def test_every_hour_of_a_week_shows_values_of_the_domains_only() -> None:
    start = Timestamp.parse("2026-03-02T00:00:00Z").date
    shown = [clock_facts(Timestamp.of(start + timedelta(hours=n)), "Europe/Berlin") for n in range(24 * 8)]
    for name, domain in CLOCK_NUMBERS.items():
        assert {facts[name.removeprefix("run.")] for facts in shown} == set(domain)


def test_the_rules_of_timezones_are_pinned_to_one_release() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [line for line in project["dependencies"] if line.startswith("tzdata")] == [f"tzdata=={version('tzdata')}"]


@pytest.mark.parametrize(
    ("condition", "holds", "answer"),
    [
        ({">": [HOUR, 23]}, True, "no"),
        ({">=": [HOUR, 23]}, True, "yes"),
        ({">=": [HOUR, 0]}, False, "no"),
        ({"and": [{">": [WEEKDAY, 5]}, {"<": [WEEKDAY, 6]}]}, True, "no"),
        ({"in": [WEEKDAY, [6, 7]]}, True, "yes"),
        ({"in": [WEEKDAY, [1, 2, 3, 4, 5, 6, 7]]}, False, "yes"),  # without a moment it is not in the list
        ({"==": [WEEKDAY, 0]}, True, "no"),
    ],
)
def test_the_solver_knows_what_a_clock_can_show(condition: object, holds: bool, answer: str) -> None:  # noqa: FBT001
    assert can_be(json.loads(json.dumps(condition)), holds) == answer
