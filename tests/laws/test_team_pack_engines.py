"""The two policy engines agree about the packs of teams: on each request of their tables, and on those around it."""

from typing import Any

import pytest

from contextplane.policy.approval_gates import active_gates
from contextplane.policy.request_facts import request_problems
from tests.laws.test_policy_laws import limits, shown, told
from tests.support.mutant_verdicts import pack_requests
from tests.support.oracle_policy import bounds_by_tool, decide, find_active_gates, find_fact_problems, surface_tools
from tests.support.pack_mutations import conditions, decisions
from tests.support.pack_powers import Powers, facts_around
from tests.support.pack_tables import NAMES, pack_table
from tests.support.samples import PROFILE

SHARE = 1 if PROFILE == "laws" else 47
"""Every request around those of the tables in `make laws`, and one of so many in an ordinary run."""

LEAST = 100 * 47 // SHARE


def test_two_engines_agree_about_the_packs_of_teams() -> None:
    assert sum(map(compare_engines, NAMES)) >= LEAST


@pytest.mark.parametrize("name", NAMES)
def test_two_engines_agree_about_the_cases_of_a_pack(name: str) -> None:
    assert compare_engines(name, around=False) >= 10


def compare_engines(name: str, *, around: bool = True) -> int:
    """Hold the two engines to each other in one pack; return the number of requests."""
    pack: Any = pack_table(name).file.file.value
    policy, tooling = pack["policy_layer"], pack["tooling_layer"]
    specs = [spec for _, spec in decisions(pack)]
    maxima = {spec["decision_key"]: spec["approval_mode"] for spec in specs}
    powers = Powers(pack)
    cases = pack_requests(name)
    near = [condition for _, condition in conditions(pack)]
    requests = [*facts_around(cases, near)][::SHARE] if around else list(cases)
    for facts in requests:
        data: dict[str, Any] = facts.data
        problems = request_problems(powers.declared.get(facts.intent, ()), data["request"])
        ours = [[problem.fact.path, problem.kind] for problem in problems]
        assert ours == find_fact_problems(policy, data["request"])
        decision, second = powers.policy.decide(facts), decide(policy, maxima, data)
        assert told(decision) == second, data
        reach = powers.view.intent(facts.intent).reach
        surface = powers.tools.surface(decision, facts.safety_mode, reach)
        own = [spec for spec in specs if spec["decision_key"] in reach.decisions]
        kept, left_out = surface_tools(tooling, policy, own, second, intent=facts.intent, ceiling=facts.safety_mode)
        assert shown(surface) == (kept, left_out), data
        active = active_gates(powers.policy, decision, surface, facts).active
        gates = [[gate.gate_id, list(gate.capabilities)] for gate in active]
        assert gates == find_active_gates(policy, tooling, second, kept, data), data
        bounds = {
            tool.capability_id: [[bound.argument, bound.origin, limits(bound)] for bound in tool.bounds]
            for tool in surface.tools
        }
        assert bounds == bounds_by_tool(tooling, policy, second, data, [*bounds]), data
    return len(requests)
