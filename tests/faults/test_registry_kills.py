"""`kill -9` of each act of the registry at its every step: the act is done or not done, and can be done again."""

from collections.abc import Iterator

import pytest

from tests.faults.registry_attacks import BEFORE, PINNED, prepare
from tests.faults.registry_children import CommandKiller
from tests.support.registry_team import LOG_ROLE, PACK_ID, Team, trust_step
from tests.support.samples import PROFILE
from tests.support.store_copies import StoreCopies, memory_folder
from tests.surfaces.commands import child_environment
from tests.unit.registry.desk import ISSUER, NARROWER, version

KILLS = 100 if PROFILE == "laws" else 4
"""How many times each act is killed, at moments that are spread evenly over it."""

ACTS = {
    "keys trust": "root: keys trust ./temp.pub --issuer ISSUER --role operator --role log",
    "lint --record": "author: lint new.json --record",
    "review": f"sec: review {PACK_ID}@1.2.0 --role security --approve --reason good",
    "sign": f"pub: sign {PACK_ID}@1.3.0",
    "publish": f"pub: publish {PACK_ID}@1.4.0",
    "pin": f"ops: pin staging {PINNED}",
    "unpin": f"ops: unpin prod {PACK_ID} --reason 'no more refunds'",
    "rollback": f"ops: rollback prod {PACK_ID} --reason 'wrong refunds'",
    "deprecate": f"pub: deprecate {BEFORE} --reason superseded",
    "revoke": f"pub: revoke {BEFORE} --reason 'it leaks'",
}
AGAIN = (0, 10, 13, 14)
"""How an act that is done already may end when it is done again: nothing changes, or it is refused."""

TWO_STEPS = {"rollback"}
"""An act that is done after its first event, and records how it went in a second one."""


@pytest.fixture(scope="module")
def copies() -> Iterator[StoreCopies]:
    """A registry in which every act can be done next."""
    with memory_folder() as folder:
        made = StoreCopies(Team(folder / "store"))
        team = made.team
        prepare(team)
        trust_step("temp", ISSUER, "operator", LOG_ROLE, team=team)
        for number in ("1.2.0", "1.3.0", "1.4.0"):
            digest = team.record(version(number, NARROWER))["digest"]
            if number != "1.2.0":
                team.approve(digest, "architecture", "security", "data", "evaluation")
        team.do(f"pub: sign {PACK_ID}@1.4.0")
        team.write("new.json", version("1.5.0", NARROWER))
        made.keep("begin")
        yield made


@pytest.fixture(scope="module")
def killer() -> Iterator[CommandKiller]:
    with CommandKiller() as process:
        yield process


def size(team: Team) -> tuple[int, int]:
    """The number of entries of the log and of changes of the keyring, of a registry that is sound."""
    audit = team.answer(": verify --registry")
    keys = team.answer(": keys list")
    return audit["entries"], sum(len(issuer["keys"]) for issuer in keys["issuers"])


@pytest.mark.parametrize("act", ACTS)
def test_a_killed_act_is_done_or_not_done_and_can_be_done_again(
    copies: StoreCopies, killer: CommandKiller, act: str
) -> None:
    step, team = ACTS[act].replace("ISSUER", ISSUER), copies.team
    args = team.arguments(step)
    environment = child_environment(team.environment)
    copies.put_back("begin")
    before = size(team)
    whole = killer.run(args, cwd=team.folder, env=environment)
    after = size(team)
    assert (whole.status, after > before) == (0, True)
    outcomes = set()
    for number in range(KILLS):
        copies.put_back("begin")
        nth = 1 + (whole.calls - 1) * number // (KILLS - 1)
        assert killer.run(args, cwd=team.folder, env=environment, nth=nth).status in {-9, 0}, nth
        reached = size(team)
        assert reached in {before, after} or act in TWO_STEPS, f"before call {nth} of {whole.calls}: {reached}"
        outcomes.add(reached)
        again = team.run(step)
        assert again.status in (AGAIN if reached > before else (0,)), f"after call {nth}: {again.err}"
        assert size(team) >= (after if again.status == 0 else reached)
        assert team.run(": fsck").status == 0
    assert {before, after} <= outcomes or PROFILE != "laws"
