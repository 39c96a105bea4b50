"""Every attack on a registry is refused by whoever meets it, or counts for nothing, and leaves nothing to repair."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.faults.registry_attacks import ATTACKS as REFUSED_ATTACKS
from tests.faults.registry_attacks import Attack, Scene, prepare
from tests.faults.void_attacks import VOID_ATTACKS
from tests.postgres import shared_url
from tests.support.registry_team import Team
from tests.support.samples import PROFILE
from tests.support.store_copies import StoreCopies, memory_folder

ATTACKS = (*REFUSED_ATTACKS, *VOID_ATTACKS)

ON_POSTGRES = ATTACKS if PROFILE == "laws" else ATTACKS[::7]
"""A catalog in PostgreSQL is attacked by the same rows: some of the attacks in every run, all in `make laws`.

`make laws ARGS=tests/faults/test_registry_attacks.py` runs only these."""


@contextmanager
def prepared_store(database_url: str | None) -> Iterator[StoreCopies]:
    with memory_folder() as folder:
        copies = StoreCopies(Team(folder / "store", database_url=database_url))
        prepare(copies.team)
        copies.keep("begin")
        yield copies


@pytest.fixture(scope="module")
def in_files() -> Iterator[StoreCopies]:
    with prepared_store(None) as copies:
        yield copies


@pytest.fixture(scope="module")
def in_postgres() -> Iterator[StoreCopies]:
    with prepared_store(shared_url()) as copies:
        yield copies


def parameters(attacks: Sequence[Attack]) -> list[object]:
    return [
        pytest.param(
            attack,
            id=attack.name,
            marks=pytest.mark.xfail(
                bool(attack.still_open), strict=True, raises=AssertionError, reason=attack.still_open
            ),
        )
        for attack in attacks
    ]


def attempt(attack: Attack, copies: StoreCopies) -> None:
    copies.put_back("begin")
    copies.team.settings.clear()
    scene = Scene(copies.team)
    try:
        scene.play(*attack.story, *attack.deed)
    except AssertionError as error:
        raise RuntimeError("the attack could not be made") from error
    for check in attack.checks:
        check(scene)


@pytest.mark.parametrize("attack", parameters(ATTACKS))
def test_an_attack_is_refused(in_files: StoreCopies, attack: Attack) -> None:
    attempt(attack, in_files)


@pytest.mark.parametrize("attack", parameters(ON_POSTGRES))
def test_an_attack_on_a_catalog_in_postgresql_is_refused(in_postgres: StoreCopies, attack: Attack) -> None:
    attempt(attack, in_postgres)
