"""What is missing, of another kind, or no list: nobody escapes a restriction by what is not there."""

from typing import Any

from msgspec import UNSET

from tests.support.cases import cases
from tests.unit.policy.scenes import EXAMPLE_PROGRAM, EXECUTES, LACKING, TOOLS, decide, facts, program, rule

DENY = {"allow": False}
HIGH = "R_HIGH_VALUE_REQUIRES_APPROVAL"
AMOUNT: dict[str, Any] = {"var": "request.context.refund_amount"}
READ = "adp_orders.lookup"
PROHIBITING = {"prohibits": [READ]}


@cases("lacking", [LACKING, None])
def test_nobody_escapes_a_restriction_by_leaving_a_fact_out(lacking: object) -> None:
    decision = EXAMPLE_PROGRAM.decide(facts(refund_amount=lacking))
    assert not decision.allowed
    (missing,) = decision.missing_facts
    assert (missing.path, missing.rule_id, missing.denies) == ("request.context.refund_amount", HIGH, True)
    assert decision.reason == f"request.context.refund_amount is missing, which {HIGH} reads"
    assert [denial.kind for denial in decision.denials] == ["missing_fact"]


def test_a_field_left_empty_is_no_small_number() -> None:
    """Forms send an empty text for what nobody filled in: it is no way past a threshold, either."""
    decision = EXAMPLE_PROGRAM.decide(facts(refund_amount=""))
    assert not decision.allowed
    assert [(denial.kind, denial.by) for denial in decision.denials] == [("error", HIGH)]


def test_a_missing_fact_that_is_not_reached_is_not_read() -> None:
    decision = EXAMPLE_PROGRAM.decide(facts(role="manager", refund_amount=LACKING))
    assert decision.allowed
    assert decision.missing_facts == ()


@cases(
    ("when", "then", "otherwise", "denies"),
    [
        ({"==": [{"var": "run.x"}, 1]}, {"allow": True}, None, False),
        ({"==": [{"var": "run.x"}, 1]}, {"prohibits": ["a.b"]}, None, True),
        ({"!=": [{"var": "run.x"}, 1]}, {"allow": True}, {"allow": False}, True),
        ({"!=": [{"var": "run.x"}, 1]}, {"prohibits": ["a.b"]}, {"allow": True}, False),
    ],
)
def test_a_missing_fact_denies_where_the_branch_not_taken_restricts(
    when: dict[str, Any],
    then: dict[str, Any],
    otherwise: dict[str, Any] | None,
    denies: bool,  # noqa: FBT001
) -> None:
    fields = {} if otherwise is None else {"otherwise": otherwise}
    decision = decide(rule(), rule("R_READS", when=when, then=then, **fields))
    assert [(fact.path, fact.denies) for fact in decision.missing_facts] == [("run.x", denies)]
    assert decision.allowed is not denies


@cases(
    ("when", "then", "otherwise", "voids"),
    [
        ({"!=": [{"var": "run.x"}, 1]}, {"allow": True}, None, True),
        ({"==": [{"var": "run.x"}, 1]}, {"reason": "x"}, {"allow": True}, True),
        ({"!=": [{"var": "run.x"}, 1]}, {"allow": True}, {"allow": True}, False),
    ],
)
def test_an_allowance_by_a_missing_fact_does_not_count(
    when: dict[str, Any],
    then: dict[str, Any],
    otherwise: dict[str, Any] | None,
    voids: bool,  # noqa: FBT001
) -> None:
    fields = {} if otherwise is None else {"otherwise": otherwise}
    reading = rule("R_READS", when=when, then=then, **fields)
    alone = decide(reading)
    assert [(fact.path, fact.denies, fact.voids) for fact in alone.missing_facts] == [("run.x", False, voids)]
    assert alone.allowed is not voids
    assert alone.reason == ("run.x is missing, which R_READS reads" if voids else "allowed by R_READS")
    # What another rule allows by itself is allowed all the same.
    assert decide(rule(), reading).reason == ("allowed by R" if voids else "allowed by R, R_READS")


def test_an_allowance_by_a_default_counts() -> None:
    decision = decide(rule("R_READS", when={"!=": [{"var": ["run.x", 0]}, 1]}, then={"allow": True}))
    assert (decision.allowed, decision.missing_facts) == (True, ())


@cases(
    "when",
    [
        {"==": [{"var": ["run.x", 0]}, 1]},
        {"!": [{"missing": ["run.y"]}]},
        {"some": [{"var": ["run.x", []]}, {"==": [{"var": "qty"}, 1]}]},
    ],
)
def test_a_fact_with_a_default_or_asked_for_by_missing_is_not_missed(when: dict[str, Any]) -> None:
    decision = decide(rule(), rule("R_READS", when=when, then=DENY))
    assert decision.allowed
    assert decision.missing_facts == ()


def test_a_null_is_missing_so_that_a_default_stands_in_for_it() -> None:
    careful = rule("R_CAREFUL", when={">": [{"var": ["request.context.refund_amount", 9999]}, 3000]}, then=DENY)
    assert not decide(rule(), careful, by=facts(refund_amount=None)).allowed
    assert decide(rule(), careful, by=facts(refund_amount=1)).allowed


def test_of_a_rule_that_failed_every_fact_that_it_could_have_missed_is_told() -> None:
    decision = decide(rule("R", when={"max": [{"var": "run.x"}, {"var": "run.y"}, "1"]}))
    assert [fact.path for fact in decision.missing_facts] == ["run.x", "run.y"]
    assert [denial.kind for denial in decision.denials] == ["error"]


SCOPED = "R_SCOPED"


@cases("lacking", [LACKING, None])
@cases(
    "branches",
    [
        {"then": DENY},
        {"then": {"allow": True, "requires": ["order_lookup"]}},
        {"then": {"prohibits": ["adp_policy.eval"]}},
        {"then": {"requires_approval_gate": "GATE_FINANCE_APPROVAL"}},
        {"then": {"allow": True, "approval_mode": "read_only"}},
        {"then": {"arg_constraints": {"amount_inr": {"max": 3000}}}},
        {"then": {"allow": True}, "otherwise": DENY},
        {"then": DENY, "when": False},
    ],
)
def test_nobody_escapes_a_rule_that_restricts_by_leaving_out_what_it_applies_by(
    lacking: object, branches: dict[str, Any]
) -> None:
    scope = {"channel": "email", "tenant_id": "tenant_acme_prod"}
    decision = decide(rule(), rule(SCOPED, applies_to=scope, **branches), by=facts(channel=lacking))
    assert not decision.allowed
    (missing,) = decision.missing_facts
    assert (missing.path, missing.rule_id, missing.denies, missing.scope) == ("request.channel", SCOPED, True, True)
    assert missing.at == "/policy_layer/policy_bundles/0/policy_dsl/rules/1/applies_to/channel"
    assert decision.reason == f"request.channel is missing, which {SCOPED} applies by"
    assert [denial.kind for denial in decision.denials] == ["missing_fact"]
    assert [(idle_rule.rule_id, idle_rule.kind) for idle_rule in decision.idle] == [(SCOPED, "scope_unknown")]


def test_a_rule_that_only_allows_does_not_apply_where_what_it_applies_by_is_missing() -> None:
    decision = decide(rule(), rule(SCOPED, applies_to={"channel": "email"}))
    assert decision.allowed
    assert decision.matched_rule_ids == ("R",)
    assert [(fact.path, fact.denies) for fact in decision.missing_facts] == [("request.channel", False)]
    assert not decide(rule(SCOPED, applies_to={"channel": "email"})).allowed


def test_a_rule_that_something_given_does_not_match_misses_nothing() -> None:
    scope = {"channel": "email", "role": "manager"}
    decision = decide(rule(), rule(SCOPED, applies_to=scope, then=DENY))
    assert decision.allowed
    assert decision.missing_facts == ()
    assert [(idle_rule.kind, idle_rule.why) for idle_rule in decision.idle] == [
        ("out_of_scope", "applies to role manager only")
    ]


def test_all_that_a_rule_applies_by_and_is_missing_is_told() -> None:
    scope = {"role": "manager", "intent": "support.refund", "channel": ["email"]}
    decision = decide(rule(), rule(SCOPED, applies_to=scope, then=DENY), by=facts(role=LACKING))
    assert [fact.path for fact in decision.missing_facts] == ["request.channel", "user.role"]
    assert decision.policy_decision_id != decide(rule(), rule(SCOPED, applies_to=scope, then=DENY)).policy_decision_id


ITEMS = {"var": "request.context.items"}
DEAR = {">": [{"var": "amount"}, 3000]}
OF_ITEM = "request.context.items[]"


@cases("value", [12, "x", "", True, False, {}, {"amount": 4200}])
@cases(
    "when",
    [
        {"some": [ITEMS, DEAR]},
        {"all": [ITEMS, DEAR]},
        {"none": [ITEMS, DEAR]},
        {"!!": [{"map": [ITEMS, {"var": "amount"}]}]},
        {"!!": [{"filter": [ITEMS, DEAR]}]},
        {">": [{"reduce": [ITEMS, {"+": [{"var": "accumulator"}, {"var": "current.amount"}]}, 0]}, 3000]},
    ],
)
def test_what_is_given_and_is_no_list_cannot_be_gone_through(value: object, when: dict[str, Any]) -> None:
    decision = decide(rule(), rule("R_READS", when=when, then={"allow": True}), by=facts(items=value))
    assert not decision.allowed
    (error,) = decision.errors
    assert (error.kind, error.why) == ("failed", "cannot be evaluated: it goes through what is no list")


@cases(
    ("when", "items", "missing"),
    [
        ({"some": [ITEMS, DEAR]}, [{"amount": 1}, {"price": 4200}], ["request.context.items[].amount"]),
        ({"some": [ITEMS, DEAR]}, [{"amount": None}], ["request.context.items[].amount"]),
        ({"some": [ITEMS, DEAR]}, [], []),
        ({"some": [ITEMS, DEAR]}, LACKING, ["request.context.items"]),
        ({"some": [ITEMS, {">": [{"var": ["amount", 0]}, 3000]}]}, [{}], []),
        ({"!": [{"all": [ITEMS, {"<": [{"var": "amount"}, 3000]}]}]}, [{}], ["request.context.items[].amount"]),
        (
            {"some": [{"filter": [ITEMS, {"==": [{"var": "kind"}, "x"]}]}, DEAR]},
            [{"kind": "x"}],
            ["request.context.items[].amount"],
        ),
        (
            {"some": [ITEMS, {"some": [{"var": "parts"}, {">": [{"var": "n"}, 1]}]}]},
            [{"parts": [{"n": 1}, {}]}, {"parts": []}],
            ["request.context.items[].parts[].n"],
        ),
        (
            {"some": [ITEMS, {"some": [{"var": "parts"}, {">": [{"var": "n"}, 1]}]}]},
            [{}],
            ["request.context.items[].parts"],
        ),
        (
            {">": [{"reduce": [ITEMS, {"+": [{"var": "accumulator"}, {"var": "current.amount"}]}, 0]}, 3000]},
            [{"amount": 1}, {}],
            ["request.context.items[].amount"],
        ),
        ({"some": [ITEMS, {">": [{"var": ""}, 3000]}]}, [1, None], ["request.context.items[]"]),
        ({"some": [ITEMS, {">": [{"var": None}, 3000]}]}, [1, None], ["request.context.items[]"]),
        ({"some": [{"merge": [ITEMS, []]}, DEAR]}, [{}], ["[].amount"]),
        ({"some": [{"var": ["request.context.items", [12]]}, DEAR]}, LACKING, ["request.context.items[].amount"]),
        ({"some": [{"var": ["request.context.items", []]}, DEAR]}, LACKING, []),
        ({"some": [ITEMS, {"==": [{"var": "current.amount"}, 1]}]}, [{"amount": 1}], [f"{OF_ITEM}.current.amount"]),
        ({"some": [ITEMS, {">": [{"var": 0}, 3000]}]}, [[]], ["request.context.items[].0"]),
        (
            {"==": [{"reduce": [ITEMS, {"or": [{"var": "accumulator"}, {"var": "current"}]}, None]}, False]},
            [False, True],
            [],
        ),
    ],
)
def test_what_an_element_lacks_is_missing_and_denies_as_a_missing_fact_does(
    when: dict[str, Any], items: object, missing: list[str]
) -> None:
    restricting = rule("R_READS", when=when, then={"allow": True, "requires_approval_gate": "GATE_FINANCE_APPROVAL"})
    decision = decide(rule(), restricting, by=facts(items=items))
    assert [fact.path for fact in decision.missing_facts] == missing
    assert decision.allowed is not bool(missing)
    harmless = decide(rule(), rule("R_READS", when=when), by=facts(items=items))
    assert [(fact.path, fact.denies) for fact in harmless.missing_facts] == [(path, False) for path in missing]
    assert harmless.allowed


@cases(
    ("when", "items"),
    [
        ({"some": [ITEMS, DEAR]}, [{"amount": 4200}, {}]),
        ({"none": [ITEMS, DEAR]}, [{"amount": 4200}, {}]),
        ({"all": [ITEMS, DEAR]}, [{"amount": 1}, {}]),
        ({"some": [ITEMS, {"and": [{"==": [{"var": ["kind", "x"]}, "y"]}, DEAR]}]}, [{}]),
        ({"and": [False, {"some": [ITEMS, DEAR]}]}, [{}]),
    ],
)
def test_what_is_not_read_of_an_element_is_not_missed(when: dict[str, Any], items: list[object]) -> None:
    assert decide(rule(), rule("R_READS", when=when, then=DENY), by=facts(items=items)).missing_facts == ()


@cases("value", [True, False])
@cases(
    "when",
    [
        {">": [AMOUNT, 3000]},
        {"<": [AMOUNT, 3000]},
        {">=": [3000, AMOUNT]},
        {"<": [0, AMOUNT, 3000]},
        {"<=": [AMOUNT, "x"]},
        {">": [AMOUNT, {"var": "run.nothing"}]},
        {">": [AMOUNT, AMOUNT]},
        {"==": [{"+": [AMOUNT, 1]}, 2]},
        {"==": [{"-": [AMOUNT]}, 0]},
        {"==": [{"*": [AMOUNT, 1]}, 1]},
        {"==": [{"/": [AMOUNT, 1]}, 1]},
        {"==": [{"%": [AMOUNT, 2]}, 1]},
        {"==": [{"max": [AMOUNT, 1]}, 1]},
        {"<": [{"if": [True, AMOUNT]}, {"var": "user.role"}]},
        {"some": [[1], {">": [True, {"var": ""}]}]},
    ],
)
def test_true_and_false_are_no_numbers(value: bool, when: dict[str, Any]) -> None:  # noqa: FBT001
    decision = decide(rule(), rule("R_READS", when=when), by=facts(refund_amount=value))
    assert [(denial.kind, denial.by) for denial in decision.denials] == [("error", "R_READS")]
    assert decision.errors[0].kind == "failed"


def test_what_an_element_has_of_another_kind_is_an_error() -> None:
    decision = decide(rule(), rule("R_READS", when={"some": [ITEMS, DEAR]}), by=facts(items=[{"amount": True}]))
    assert [error.why for error in decision.errors] == [
        "cannot be evaluated: it orders what is neither two numbers nor two texts"
    ]


@cases("tags", [{}, {"restricted": 1}, 5, True])
def test_nobody_escapes_a_restriction_by_giving_what_cannot_be_searched(tags: object) -> None:
    denying = rule("R_TAGGED", when={"in": ["restricted", {"var": "request.context.tags"}]}, then=DENY)
    decision = decide(rule(), denying, by=facts(tags=tags))
    assert [(denial.kind, denial.by) for denial in decision.denials] == [("error", "R_TAGGED")]
    assert "neither a list nor a text" in decision.reason


@cases(("tags", "allowed"), [([], True), ("", True), (["restricted"], False), ("restricted", False)])
def test_a_list_and_a_text_are_searched(tags: object, allowed: bool) -> None:  # noqa: FBT001
    denying = rule("R_TAGGED", when={"in": ["restricted", {"var": "request.context.tags"}]}, then=DENY)
    assert decide(rule(), denying, by=facts(tags=tags)).allowed is allowed


BOTH: dict[str, Any] = {
    "then": {
        "allow": True,
        "prohibits": ["adp_wh.query"],
        "approval_mode": "network",
        "arg_constraints": {"amount_inr": {"max": 3000}},
    },
    "otherwise": {
        "allow": True,
        "reason": "No.",
        "requires": ["order_lookup"],
        "approval_mode": "delegated",
        "requires_approval_gate": "GATE_FINANCE_APPROVAL",
    },
}


@cases(
    ("scope", "when", "amount", "undecided", "kind"),
    [
        ({}, {">": [AMOUNT, 3000]}, LACKING, "missing_fact", "unknown"),
        ({}, {"==": [AMOUNT, 3000]}, LACKING, "missing_fact", "unknown"),
        ({}, {"!=": [AMOUNT, 3000]}, LACKING, "missing_fact", "unknown"),
        ({}, {">": [AMOUNT, 3000]}, "4200", "error", "failed"),
        ({}, {"==": [AMOUNT, 3000]}, True, "error", "failed"),
        ({}, AMOUNT, 12, "error", "not_boolean"),
        ({"channel": "email"}, True, 4200, "scope", "scope_unknown"),
        ({"channel": "email"}, {">": [AMOUNT, 3000]}, "4200", "scope", "scope_unknown"),
    ],
)
def test_the_restrictions_of_both_branches_hold_where_neither_is_chosen(
    scope: dict[str, str], when: dict[str, Any], amount: object, undecided: str, kind: str
) -> None:
    doubtful = rule("R_DOUBT", when=when, applies_to=scope, **BOTH)
    decision = decide(rule(), doubtful, by=facts(refund_amount=amount))
    assert not decision.allowed
    assert decision.prohibits == ("adp_wh.query",)
    assert decision.requires == ("order_lookup",)
    assert decision.requires_approval_gates == ("GATE_FINANCE_APPROVAL",)
    assert decision.effective_approval_mode == "delegated"
    assert [bound.argument for bound in decision.arg_constraints] == ["amount_inr"]
    doubts = [effect for effect in decision.effects if effect.undecided is not None]
    assert [(effect.rule_id, effect.branch, effect.undecided) for effect in doubts] == [
        ("R_DOUBT", "then", undecided),
        ("R_DOUBT", "else", undecided),
    ]
    assert all(effect.effect.allow is UNSET and effect.effect.reason is None for effect in doubts)
    outcomes: list[Any] = [*decision.idle, *decision.errors]
    assert [(outcome.rule_id, outcome.kind) for outcome in outcomes] == [("R_DOUBT", kind)]
    assert decision.matched_rule_ids == ("R",)
    assert [(bundle.rule_ids, bundle.undecided) for bundle in decision.bundles] == [(("R",), ("R_DOUBT",))]


def test_a_rule_that_is_decided_or_does_not_apply_restricts_by_the_branch_that_was_chosen_alone() -> None:
    decided = decide(rule(), rule("R_SURE", when={">": [AMOUNT, 3000]}, **BOTH))
    assert (decided.prohibits, decided.requires) == (("adp_wh.query",), ())
    assert [effect.undecided for effect in decided.effects] == [None, None]
    elsewhere = decide(rule(), rule("R_SURE", applies_to={"role": "manager"}, **BOTH))
    assert (elsewhere.prohibits, elsewhere.requires) == ((), ())


def test_a_rule_in_doubt_without_a_restriction_has_no_effect() -> None:
    decision = decide(rule(), rule("R_DOUBT", when={"==": [{"var": "run.x"}, 1]}))
    assert [effect.rule_id for effect in decision.effects] == ["R"]
    assert [(idle_rule.rule_id, idle_rule.kind) for idle_rule in decision.idle] == [("R_DOUBT", "unknown")]
    assert decision.bundles[0].undecided == ()


def test_whoever_leaves_out_or_mistypes_a_fact_reads_nothing_that_is_prohibited() -> None:
    guarded = rule("R_WAREHOUSE", when={"==": [{"var": "request.context.internal"}, False]}, then=PROHIBITING)
    whole = program(rule(), guarded)
    for internal in (False, LACKING, None, "false", 0, []):
        asked = facts(internal=internal)
        surface = TOOLS.surface(whole.decide(asked), asked.safety_mode, EXECUTES)
        reasons = {tool.capability_id: [reason.kind for reason in tool.reasons] for tool in surface.left_out}
        assert "prohibited" in reasons[READ], internal
    asked = facts(internal=True)
    assert READ in {
        tool.capability_id for tool in TOOLS.surface(whole.decide(asked), asked.safety_mode, EXECUTES).tools
    }
