"""Every row and every file of a registry, edited in every way: an audit finds it, and no reader is deceived."""

from collections.abc import Iterator
from functools import cache
from itertools import islice

import pytest

from contextplane.adapters.ed25519 import Ed25519Check
from tests.faults.tampered_registries import TamperedRegistry, group_of
from tests.postgres import shared_url
from tests.support.registry_tampering import RowEdit
from tests.support.samples import PROFILE
from tests.support.store_copies import memory_folder

STRIDE = 1 if PROFILE == "laws" else 29
"""Every so many cases of a group are run; `make laws` runs all of them."""

POSTGRES_STRIDE = 1 if PROFILE == "laws" else 307
LEAST_CASES = 3000
GROUPS = (
    "streams of subjects",
    "stream registry/log",
    "stream registry/checkpoints",
    "stream tree",
    "stream trust",
    "table catalog_table",
    "table identity",
    "table mark",
    "table object",
    "table root",
    "table tally",
    "objects",
    "other files",
    "whole stores",
)
OPEN: dict[str, str] = {}
"""Groups in which an edit goes unnoticed today, and how."""


@pytest.fixture(scope="module", autouse=True)
def _signatures_checked_once() -> Iterator[None]:
    """Check each signature once in this module: every case reads nearly the same ones."""
    holds = cache(Ed25519Check().holds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ed25519Check, "holds", lambda _self, *parts: holds(*parts))
        yield


@pytest.fixture(scope="module")
def registry() -> Iterator[TamperedRegistry]:
    with memory_folder() as folder:
        yield TamperedRegistry(folder)


def test_the_edits_are_of_all_groups_and_more_than_three_thousand(registry: TamperedRegistry) -> None:
    edits = [*registry.edits()]
    assert len(edits) >= LEAST_CASES
    assert {group_of(edit) for edit in edits} == set(GROUPS)
    assert len({str(edit) for edit in edits}) > LEAST_CASES


def _parameters() -> Iterator[object]:
    for group in GROUPS:
        marks = [pytest.mark.xfail(strict=True, raises=AssertionError, reason=OPEN[group])] if group in OPEN else []
        yield pytest.param(group, id=group, marks=marks)


@pytest.mark.parametrize("group", [*_parameters()])
def test_every_edit_is_found_or_changes_nothing_that_is_read(registry: TamperedRegistry, group: str) -> None:
    edits = [edit for edit in registry.edits() if group_of(edit) == group]
    failures = [f"{edit}: {wrong}" for edit in islice(edits, 0, None, STRIDE) if (wrong := registry.judge(edit))]
    assert not failures, f"{len(failures)} of {len(edits[::STRIDE])}:\n" + "\n".join(failures[:20])


def test_every_edit_of_a_catalog_in_postgresql_is_found_or_changes_nothing_that_is_read() -> None:
    with memory_folder() as folder:
        registry = TamperedRegistry(folder, shared_url())
        edits = [edit for edit in registry.edits() if isinstance(edit, RowEdit) and group_of(edit) not in OPEN]
        assert len(edits) >= LEAST_CASES
        failures = [f"{edit}: {wrong}" for edit in edits[::POSTGRES_STRIDE] if (wrong := registry.judge(edit))]
    assert not failures, f"{len(failures)} of {len(edits[::POSTGRES_STRIDE])}:\n" + "\n".join(failures[:20])
