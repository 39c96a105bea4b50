"""File systems keep times of any year; ours are clamped to the years 1 to 9999."""

import os
from datetime import UTC, datetime

from contextplane.adapters.files.disk import modification_time
from tests.support.cases import cases


@cases(
    ("seconds", "moment"),
    [
        (0.0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-1.5, datetime(1969, 12, 31, 23, 59, 58, 500_000, tzinfo=UTC)),
        (1e12, datetime.max.replace(tzinfo=UTC)),
        (9.3e18, datetime.max.replace(tzinfo=UTC)),
        (1e300, datetime.max.replace(tzinfo=UTC)),
        (-62_135_596_801.0, datetime.min.replace(tzinfo=UTC)),
        (-1e12, datetime.min.replace(tzinfo=UTC)),
        (-9.3e18, datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_a_time_that_no_calendar_has_is_the_first_or_the_last_moment(seconds: float, moment: datetime) -> None:
    assert modification_time(os.stat_result((0, 0, 0, 0, 0, 0, 0, 0, seconds, 0))) == moment
