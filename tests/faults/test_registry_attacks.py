"""Every attack of `registry_attacks` is refused by whoever meets it, and leaves nothing to repair."""

from collections.abc import Iterator

import pytest

from tests.faults.registry_attacks import ATTACKS, Attack, Scene, prepare
from tests.support.registry_team import Team
from tests.support.store_copies import StoreCopies, memory_folder


@pytest.fixture(scope="module")
def prepared() -> Iterator[StoreCopies]:
    with memory_folder() as folder:
        copies = StoreCopies(Team(folder / "store"))
        prepare(copies.team)
        copies.keep("begin")
        yield copies


def _parameters() -> Iterator[object]:
    for attack in ATTACKS:
        marks = (
            [pytest.mark.xfail(strict=True, raises=AssertionError, reason=attack.still_open)]
            if attack.still_open
            else []
        )
        yield pytest.param(attack, id=attack.name, marks=marks)


@pytest.mark.parametrize("attack", [*_parameters()])
def test_an_attack_is_refused(prepared: StoreCopies, attack: Attack) -> None:
    prepared.put_back("begin")
    scene = Scene(prepared.team)
    try:
        scene.play(*attack.story, *attack.deed)
    except AssertionError as error:
        raise RuntimeError("the attack could not be made") from error
    for check in attack.checks:
        check(scene)
