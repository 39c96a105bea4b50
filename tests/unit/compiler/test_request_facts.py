"""Declared facts of requests: a request without them is refused before policy, with all of them named."""

from typing import Any

import pytest

from contextplane.compiler.errors import RequestIncomplete
from tests.support.cases import cases
from tests.unit.compiler.scenario import compile_scenario

AMOUNT = {"path": "request.context.refund_amount", "type": "number", "description": "The amount in INR."}
VERIFIED = {"path": "request.context.identity_verified", "type": "boolean"}
ORDER = {"path": "request.context.order.id", "type": "string", "required": False}


def declared(*facts: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    return {"/policy_layer/request_facts": [{"intent": "support.refund", "facts": [*facts]}]}


def refused(*facts: Any, **context: Any) -> RequestIncomplete:  # noqa: ANN401  any JSON
    changes = {f"/input/context/{name}": value for name, value in context.items()}
    with pytest.raises(RequestIncomplete) as caught:
        compile_scenario(pack=declared(*facts), request=changes)
    return caught.value


def test_a_request_with_every_declared_fact_compiles_as_before() -> None:
    whole = compile_scenario(pack=declared(AMOUNT, VERIFIED, ORDER))
    assert whole.policy_decision is not None
    assert whole.policy_decision.allowed
    assert compile_scenario(pack=declared(AMOUNT)).compiled_prompt == compile_scenario().compiled_prompt


def test_all_facts_that_are_missing_or_mistyped_are_named_in_one_error_with_what_they_are() -> None:
    error = refused(AMOUNT, VERIFIED, ORDER, refund_amount=None, identity_verified="true", order={"id": 7})
    assert error.message == (
        "support.refund needs other facts: "
        "request.context.refund_amount is missing (number: The amount in INR.); "
        "request.context.identity_verified is not of type boolean; "
        "request.context.order.id is not of type string"
    )
    assert error.at == "request#/input/context/refund_amount"
    assert error.details["stage"] == "intent"
    assert error.details["problems"] == [
        {
            "at": "/input/context/refund_amount",
            "fact": "request.context.refund_amount",
            "problem": "missing",
            "type": "number",
            "description": "The amount in INR.",
        },
        {
            "at": "/input/context/identity_verified",
            "fact": "request.context.identity_verified",
            "problem": "wrong_type",
            "type": "boolean",
            "description": None,
        },
        {
            "at": "/input/context/order/id",
            "fact": "request.context.order.id",
            "problem": "wrong_type",
            "type": "string",
            "description": None,
        },
    ]


@cases(
    ("type_name", "value", "fits"),
    [
        ("number", 1.5, True),
        ("number", True, False),
        ("number", "1", False),
        ("integer", 2.0, True),
        ("integer", 2.5, False),
        ("string", "", False),
        ("string", "a", True),
        ("boolean", 0, False),
        ("boolean", False, True),
        ("array", [], True),
        ("array", {}, False),
        ("object", {}, True),
        ("object", [], False),
    ],
)
def test_the_types_of_facts(type_name: str, value: object, fits: bool) -> None:  # noqa: FBT001
    fact = {"path": "request.context.x", "type": type_name}
    if fits:
        compile_scenario(pack=declared(fact), request={"/input/context/x": value})
    else:
        assert refused(fact, x=value).code == "compile_request_incomplete"


def test_facts_are_declared_for_one_intent_each() -> None:
    other = {"/policy_layer/request_facts": [{"intent": "support.status", "facts": [{**AMOUNT, "type": "string"}]}]}
    compile_scenario(pack=other)


def test_values_of_a_request_are_not_repeated() -> None:
    assert "hunter2" not in str(refused(VERIFIED, identity_verified="hunter2"))
