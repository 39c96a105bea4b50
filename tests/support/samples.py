"""How many cases a property test draws: few in every run, many in `make laws`."""

import os

from hypothesis import settings

__all__ = ["PROFILE", "sample"]

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
"""The profile of this run: `ci`, or `laws`."""

_MORE_IN_LAWS = 20


def sample(size: int) -> settings:
    """Return settings for `size` cases, and for twenty times as many in `make laws`.

    It is for tests whose interesting cases are rare: they draw more than the profile does.
    """
    return settings(max_examples=size * _MORE_IN_LAWS if PROFILE == "laws" else size, deadline=None)
