"""What holds for every test: how hard hypothesis tries, readable failures inside the law suites, what is not measured.

`HYPOTHESIS_PROFILE` chooses: `ci` is the same on every run, `laws` (`make laws`) draws fifty times as many new cases.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

pytest.register_assert_rewrite("contextplane.testing")

_CASES = 50
# One law runs for many adapters by inheritance, and a busy machine is no defect of the code.
_SUPPRESSED = (HealthCheck.differing_executors, HealthCheck.too_slow)

settings.register_profile("ci", max_examples=_CASES, deadline=None, derandomize=True, suppress_health_check=_SUPPRESSED)
settings.register_profile(
    "laws", max_examples=50 * _CASES, deadline=None, print_blob=True, suppress_health_check=_SUPPRESSED
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

_HERE = Path(__file__).parent
_UNMEASURED = (_HERE / "faults", _HERE / "laws")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Faults, laws and drawn cases are run without measuring what they cover, which would double their time.

    Processes that are killed tell nothing, and very many cases go through the same lines.
    """
    for item in items:
        drawn = isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)
        if drawn or any(item.path.is_relative_to(folder) for folder in _UNMEASURED):
            item.add_marker("unmeasured")
