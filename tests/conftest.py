"""Settings for every test: profiles of hypothesis, and readable failures inside the law suites.

`HYPOTHESIS_PROFILE` chooses: `ci` is the same on every run, `laws` (`make laws`) draws a hundred times as many cases,
each time new ones.
"""

import os
import shutil
import tempfile

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, settings

from tests.support.samples import PROFILE

pytest.register_assert_rewrite("contextplane.testing")
os.umask(0o022)  # some tests play somebody else, who may read what they write
# What a client remembers of stores is no part of them: processes that tests start inherit this, and none uses the home.
_STATE = tempfile.mkdtemp(prefix="contextplane-state-")
os.environ["XDG_STATE_HOME"] = _STATE

_CASES = 25
# A law runs for many adapters by inheritance, and a busy machine is no defect of the code.
_SUPPRESSED = (HealthCheck.differing_executors, HealthCheck.too_slow)

settings.register_profile("ci", max_examples=_CASES, deadline=None, derandomize=True, suppress_health_check=_SUPPRESSED)
settings.register_profile(
    "laws", max_examples=100 * _CASES, deadline=None, print_blob=True, suppress_health_check=_SUPPRESSED
)
settings.load_profile(PROFILE)


def pytest_sessionfinish() -> None:
    """Save what coverage measured: xdist kills a worker that needs ten seconds to exit, and a busy one does."""
    shutil.rmtree(_STATE, ignore_errors=True)
    measurement = Coverage.current()
    if measurement is not None:
        measurement.stop()
        measurement.save()
