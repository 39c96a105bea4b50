"""Where evidence comes from: what a tool spells, and what is there before the decision is made."""

from typing import Any

from contextplane.authoring.evidence import default_evidence_name, singular
from tests.support.cases import cases
from tests.unit.authoring.packs import EXAMPLE, EXAMPLE_WARNINGS, findings, with_changes

MODES = ("read_only", "local_write", "network", "delegated", "destructive")
SPEC = "/decision_layer/decision_specs/0"
PAYMENTS = "/tooling_layer/adapter_registry/2/approval_mode"


@cases(
    ("plural", "expected"),
    [
        *(
            ("orders", "order"),
            ("payments", "payment"),
            ("gift_cards", "gift_card"),
            ("cases", "case"),
            ("pies", "pie"),
        ),
        *(("policies", "policy"), ("addresses", "address"), ("boxes", "box"), ("batches", "batch"), ("hashes", "hash")),
        *(("caches", "cache"), ("statuses", "status"), ("warehouses", "warehouse"), ("clauses", "clause")),
    ],
)
def test_of_many_things_one_is_named(plural: str, expected: str) -> None:
    assert singular(plural) == expected
    assert singular(expected) == expected


@cases(
    "word", ["status", "address", "analysis", "order_status", "news", "series", "canvas", "sms", "gps", "s", "", "crm"]
)
def test_a_word_that_means_one_stays_as_it_is(word: str) -> None:
    assert singular(word) == word
    assert default_evidence_name(f"adp_{word}", "lookup") == f"{word}_lookup"


def evidence_causes(tool: str, decision: str) -> set[str]:
    """Return the causes of findings about evidence from a tool of one mode, for a decision of another."""
    changes: Any = [
        {"at": PAYMENTS, "value": tool},
        {"at": f"{SPEC}/approval_mode", "value": decision},
        {"at": f"{SPEC}/required_evidence/-", "value": "payment_issue_refund"},
    ]
    return {
        finding.cause for finding in findings(with_changes(changes)) if finding.code == "required_evidence_unobtainable"
    }


@cases("decision", MODES)
@cases("tool", MODES)
def test_what_a_tool_gives_that_acts_is_there_before_a_decision_only_when_that_may_do_more(
    tool: str, decision: str
) -> None:
    reads = tool in {"read_only", "network"}
    assert bool(evidence_causes(tool, decision)) is not (reads or MODES.index(tool) < MODES.index(decision))


def test_it_is_said_that_the_tool_comes_too_late() -> None:
    (cause,) = evidence_causes("destructive", "destructive")
    assert cause.startswith("only adp_payments.issue_refund gives 'payment_issue_refund'")
    assert {finding.code for finding in findings(EXAMPLE)} == EXAMPLE_WARNINGS
