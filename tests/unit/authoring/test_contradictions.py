"""Rules that allow only where others deny: found across bundles, whatever their priorities, and never by guessing."""

import itertools
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from contextplane.authoring.contradictions import Contradiction, find_contradictions
from contextplane.authoring.subject import Subject
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json
from contextplane.policy.logic.expression import Expression, LogicFailed, compile_expression
from tests.support.cases import cases
from tests.support.samples import sample
from tests.unit.authoring.packs import ENVIRONMENT, with_changes

BUNDLES = "/policy_layer/policy_bundles"
AMOUNT: Json = {"var": "request.context.amount"}
ROLE: Json = {"var": "user.role"}
ALWAYS: Json = True
NEVER: Json = False
VALUES: tuple[Any, ...] = (None, True, False, -1, 0, 1, 1.5, 2, 2.5, 3, "", "a", "b", "1", "2.0", [], [1])


def rule(rule_id: str, condition: Json, then: object, otherwise: object = None) -> dict[str, Any]:
    document = {"rule_id": rule_id, "applies_to": {"intent": "support.refund"}, "if": condition, "then": then}
    return document if otherwise is None else {**document, "else": otherwise}


def subject(*bundles: tuple[int, list[dict[str, Any]]]) -> Subject:
    """The example with these bundles in place of its own."""
    documents = [
        {"bundle_id": f"B{n}", "priority": priority, "policy_dsl": {"language": "jsonlogic", "rules": rules}}
        for n, (priority, rules) in enumerate(bundles)
    ]
    pack = with_changes([{"at": BUNDLES, "value": documents}])
    return Subject(msgspec.convert(pack, type=ContextPack), pack, ENVIRONMENT)


def pairs(*bundles: tuple[int, list[dict[str, Any]]]) -> set[tuple[str, str, bool]]:
    contradictions = [
        contradiction
        for contradiction in find_contradictions(subject(*bundles))
        if isinstance(contradiction, Contradiction)
    ]
    return {
        (
            contradiction.allows.of.rule.rule_id,
            "|".join(d.of.rule.rule_id for d in contradiction.denies),
            contradiction.sure,
        )
        for contradiction in contradictions
    }


COMPARISONS = st.one_of(
    st.builds(
        lambda operator, constant: {operator: [AMOUNT, constant]},
        st.sampled_from(["==", "!=", "<", ">", "<=", ">="]),
        st.integers(0, 2),
    ),
    st.builds(lambda operator, role: {operator: [ROLE, role]}, st.sampled_from(["==", "!="]), st.sampled_from("ab")),
)
CONDITIONS = st.one_of(
    st.booleans(),
    COMPARISONS,
    st.builds(
        lambda operator, parts: {operator: parts},
        st.sampled_from(["and", "or"]),
        st.lists(COMPARISONS, min_size=2, max_size=3),
    ),
)
PRIORITIES = st.integers(0, 20)


def outcome(condition: Expression, facts: dict[str, Any]) -> bool | None:
    try:
        return condition.holds(facts)
    except LogicFailed:
        return None


@given(CONDITIONS, CONDITIONS, PRIORITIES, PRIORITIES, st.sampled_from(["then", "else"]))
@sample(60)
def test_a_rule_that_is_said_to_allow_nothing_allows_nothing_of_all_that_is_tried(
    allows: Json, denies: Json, allow_priority: int, deny_priority: int, branch: str
) -> None:
    no = {"allow": False}
    deny = rule("DENY", denies, no) if branch == "then" else rule("DENY", denies, {"requires": ["policy_eval"]}, no)
    allow = rule("ALLOW", allows, {"allow": True})
    contradictions = pairs((allow_priority, [allow]), (deny_priority, [deny]))
    assert all(sure for *_, sure in contradictions), "they meet constants only: it can be told"
    # Neither a priority nor the order of the bundles changes the result.
    assert contradictions == pairs((deny_priority, [deny]), (allow_priority, [allow]))
    first, second = compile_expression(allows), compile_expression(denies)
    for amount, role in itertools.product(VALUES, repeat=2) if contradictions else ():
        facts = {"request": {"context": {"amount": amount}}, "user": {"role": role}, "intent": "support.refund"}
        # A condition that cannot be evaluated counts as a denial.
        assert outcome(first, facts) is not True or outcome(second, facts) in {branch == "then", None}, facts


@cases(
    "deny",
    [
        rule("DENY", ALWAYS, {"allow": False}),
        rule("DENY", NEVER, {"requires": ["policy_eval"]}, {"allow": False}),
        rule("DENY", {"==": [ROLE, "a"]}, {"allow": False}, {"allow": False}),
        rule("DENY", {"or": [{">": [{"var": "run.n"}, 1]}, {"!": [{">": [{"var": "run.n"}, 1]}]}]}, {"allow": False}),
        {**rule("DENY", {"==": [{"var": "intent"}, "support.refund"]}, {"allow": False}), "applies_to": {}},
        {**rule("DENY", {"in": [{"var": "intent"}, ["support.refund", "x"]]}, {"allow": False}), "applies_to": {}},
    ],
)
@cases("priority", [0, 5, 9])
def test_a_rule_that_denies_in_any_case_leaves_no_other_anything_to_allow(deny: dict[str, Any], priority: int) -> None:
    allow = rule("ALLOW", {">": [AMOUNT, 1]}, {"allow": True})
    assert pairs((5, [allow]), (priority, [deny])) == {("ALLOW", "DENY", True)}


@cases(
    "deny",
    [
        rule("DENY", {"==": [ROLE, "a"]}, {"allow": False}),
        {**rule("DENY", ALWAYS, {"allow": False}), "applies_to": {"intent": "support.other"}},
        {**rule("DENY", ALWAYS, {"allow": False}), "applies_to": {"intent": "support.refund", "channel": "fax"}},
        {**rule("DENY", {"==": [{"var": "intent"}, "support.other"]}, {"allow": False}), "applies_to": {}},
        rule("DENY", {"==": [ROLE, "a"]}, {"allow": False}, {"requires": ["policy_eval"]}),
    ],
)
def test_a_rule_that_denies_elsewhere_contradicts_nothing(deny: dict[str, Any]) -> None:
    assert pairs((5, [rule("ALLOW", {">": [AMOUNT, 1]}, {"allow": True})]), (9, [deny])) == set()


def test_where_it_cannot_be_told_that_is_said_once_for_each_rule_that_allows() -> None:
    product: Json = {"-": [{"*": [AMOUNT, {"var": "request.context.fee"}]}, 5]}
    allow = rule("ALLOW", {"==": [product, 70.7]}, {"allow": True})
    denying = [rule(f"DENY_{n}", {"<": [{"var": "request.context.fee"}, n]}, {"allow": False}) for n in (1, 4)]
    assert pairs((5, [allow]), (9, denying)) == {("ALLOW", "DENY_1|DENY_4", False)}


def test_rules_that_deny_everything_only_together_are_told_together() -> None:
    allow = rule("ALLOW", {">": [AMOUNT, 0]}, {"allow": True})
    low, high = rule("LOW", {"<=": [AMOUNT, 10]}, {"allow": False}), rule("HIGH", {">": [AMOUNT, 10]}, {"allow": False})
    assert pairs((5, [allow]), (9, [low]), (1, [high])) == {("ALLOW", "LOW|HIGH", True)}
    gap = rule("HIGH", {">": [AMOUNT, 11]}, {"allow": False})
    assert pairs((5, [allow]), (9, [low]), (1, [gap])) == set()


def test_of_many_denials_only_those_are_asked_about_that_meet_what_is_allowed() -> None:
    allow = rule("ALLOW", {">": [AMOUNT, 0]}, {"allow": True})
    denying = [rule(f"DENY_{n}", {"==": [AMOUNT, n]}, {"allow": False}) for n in range(40)]
    assert pairs((5, [allow]), (9, denying)) == set(), "between two numbers there is another"


def test_a_denial_that_asks_for_the_intent_and_for_more_is_compared_as_well() -> None:
    allow = rule("ALLOW", {">": [AMOUNT, 20]}, {"allow": True})
    both: Json = {"and": [{"==": [{"var": "intent"}, "support.refund"]}, {">": [AMOUNT, 10]}]}
    deny = {**rule("DENY", both, {"allow": False}), "applies_to": {}}
    other = {**rule("OTHER", {"==": [{"var": "intent"}, "support.void"]}, {"allow": False}), "applies_to": {}}
    assert pairs((5, [allow]), (9, [deny, other])) == {("ALLOW", "DENY", True)}
