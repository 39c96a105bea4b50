"""No change that widens a pack, or breaks a promise of it, goes unnoticed.

Seven packs are changed, one edit at a time: the six of teams, and that of the specification. A mutant counts if it
breaks a declared promise, or if some request may do more by it; an edit by which no request gains is left out. A mutant
is noticed when the semantic diff says more than a narrowing or another wording, when lint has an error or a warning
that it had not, or when a case fails that the authors of the pack wrote.
"""

from collections import Counter

import pytest

from tests.support.cases import cases
from tests.support.mutant_verdicts import Mutant, all_mutants, is_counted, is_missed, means
from tests.support.pack_mutations import DROPPED, Edit, Mutation
from tests.support.samples import PROFILE

IN_LAWS = PROFILE == "laws"
SHARDS = 16 if IN_LAWS else 2
SAMPLE = 75
"""How many edits each shard tries in an ordinary run. In `make laws` they try all: 7,100 edits, 3,400 mutants."""

LEAST = 3000
MOST_MISSED = 3
PORTRAIT = (
    "tooling_layer",
    "adapter_registry",
    0,
    "capability_specs",
    "read",
    "output_schema",
    "properties",
    "portrait",
)
MISSED: dict[str, str] = {}
"""The mutants that nothing notices, by name, each with the reason why that is accepted."""


def shard_of(shard: int) -> list[Mutant]:
    """The edits of one shard: all of its own, or some of them from everywhere."""
    mutants = list(all_mutants()[shard::SHARDS])
    return mutants if IN_LAWS else mutants[shard :: len(mutants) // SAMPLE][:SAMPLE]


@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_change_that_widens_a_pack_is_noticed(shard: int) -> None:
    mutants = shard_of(shard)
    assert [mutant.name for mutant in mutants if is_missed(mutant) and mutant.name not in MISSED] == []


@pytest.mark.skipif(not IN_LAWS, reason="it decides millions of requests")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_about_half_of_the_edits_count(shard: int) -> None:
    mutants = shard_of(shard)
    counted = [mutant for mutant in mutants if is_counted(mutant)]
    assert len(counted) >= len(mutants) * LEAST / len(all_mutants())


def test_what_nothing_notices_is_missed() -> None:
    """A mutant that leaves its pack as it is goes unnoticed: the law can fail."""
    unchanged = Mutant("kyc", Mutation("leave", (Edit(("pack_meta", "ttl_seconds"), 60),)), candidate=False)
    assert is_missed(unchanged)
    assert means(unchanged) == frozenset()


@cases(
    ("edit", "noticed"),
    [
        (Edit(("policy_layer", "approval_gates", 0, "approvers"), 1), {"diff", "cases"}),
        (Edit(("tooling_layer", "permissions", 6, "requires_approval_gate"), DROPPED), {"diff", "lint", "cases"}),
        (Edit(("memory_layer", "promotion_thresholds", "auto_promote_confidence"), 0.4), {"diff", "lint"}),
        (Edit(("policy_layer", "guardrails", "redaction_rules"), ["passport"]), {"diff"}),
        (Edit((*PORTRAIT, "x-redact"), DROPPED), {"diff", "cases"}),
    ],
)
def test_each_means_notices_what_it_is_for(edit: Edit, noticed: set[str]) -> None:
    assert means(Mutant("kyc", Mutation("change", (edit,)), candidate=False)) == noticed


def test_few_misses_are_accepted_and_each_is_of_a_mutant() -> None:
    assert len(MISSED) <= MOST_MISSED
    assert set(MISSED) <= {mutant.name for mutant in all_mutants()}
    assert all(MISSED.values())


def test_the_edits_are_of_every_kind_and_of_every_pack() -> None:
    packs = Counter(mutant.pack for mutant in all_mutants())
    operators = Counter(mutant.mutation.operator for mutant in all_mutants())
    assert len(packs) == 7
    assert min(packs.values()) >= 100
    assert len(operators) >= 50
    assert min(operators.values()) >= 4, operators.most_common()[-5:]
