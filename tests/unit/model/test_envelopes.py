"""The RunContext and the envelope of a request, as the contract shows them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contextplane.compiler.errors import InputInvalid
from contextplane.compiler.inputs import read_request, read_run_context
from contextplane.model.compiled_context import BUCKETS
from contextplane.testing.proofs import proves
from tests.support.cases import cases

CASES = Path(__file__).resolve().parents[2] / "cases" / "envelopes"


def case(name: str) -> Any:  # noqa: ANN401  any JSON
    return json.loads((CASES / f"{name}.json").read_bytes())


def written(value: object) -> Any:  # noqa: ANN401  any JSON
    return json.loads(msgspec.json.encode(value))


@proves(
    "api-contracts:run-context:fields",
    "api-contracts:run-context:user-fields",
    "api-contracts:run-context:delegation-fields",
    "api-contracts:run-context:agent-fields",
    "api-contracts:run-context:agent-lifecycle",
    "api-contracts:run-context:run-budget-fields",
    "api-contracts:run-context:metadata",
    "api-contracts:run-context:example",
)
def test_the_worked_run_context_is_read_whole() -> None:
    document = case("run_context")
    run = read_run_context(document)
    fields = {*("run_id", "trace_id", "session_id", "tenant_id", "user", "agent", "intent", "locale")}
    assert document.keys() == fields | {"safety_mode", "run_budget", "metadata"} == set(run.__struct_fields__)
    assert run.user.delegation is not None
    assert (run.user.delegation.auth_type, run.user.delegation.token_ref) == ("oauth2", "tok_user_7a")
    assert run.agent.lifecycle == "active"
    assert run.agent.identity_claim is not None
    assert run.run_budget.bucket_tokens.keys() == set(BUCKETS)
    assert sum(run.run_budget.bucket_tokens.values()) == run.run_budget.total_tokens == 12000
    assert run.run_budget.max_cost_cents == 25.0
    assert run.metadata == {}
    # What equals its default is not written.
    del document["metadata"], document["agent"]["identity_claim"]["version"]
    assert written(run) == document


@proves("api-contracts:run-context:principal-chain", "api-contracts:run-context:principal-kinds")
def test_the_principal_chain_goes_from_the_user_to_the_agent() -> None:
    chain = read_run_context(case("run_context")).agent.principal_chain
    assert [(principal.kind, principal.id, principal.tenant_id) for principal in chain] == [
        ("user", "usr_771", "tenant_acme_prod"),
        ("agent", "agent:contextos/support-refund@1.2.0", "tenant_acme_prod"),
    ]


@proves("api-contracts:run-context:tokens-by-reference")
@pytest.mark.parametrize("place", ["delegation", "agent"])
def test_there_is_no_field_for_a_token_itself(place: str) -> None:
    document = case("run_context")
    holder = document["user"]["delegation"] if place == "delegation" else document["agent"]
    with pytest.raises(InputInvalid):
        read_run_context({**document, **_holding(document, place, {**holder, "token": "eyJ"})})


def _holding(document: dict[str, Any], place: str, holder: dict[str, Any]) -> dict[str, Any]:
    return {"agent": holder} if place == "agent" else {"user": {**document["user"], "delegation": holder}}


@proves(
    "api-contracts:invoke:fields",
    "api-contracts:invoke:user-fields",
    "api-contracts:invoke:agent-fields",
    "api-contracts:invoke:identity-claim-fields",
    "api-contracts:invoke:input-fields",
    "api-contracts:invoke:runtime-fields",
    "api-contracts:invoke:attachment-fields",
    "api-contracts:invoke:trace-fields",
    "api-contracts:invoke:refs-name-packs-and-catalogs",
    "api-contracts:invoke:example",
)
def test_the_worked_request_is_read_whole() -> None:
    document = case("request")
    request = read_request(document)
    assert document.keys() == set(request.__struct_fields__)
    assert request.context_pack_refs == ("ctxpack.support@5.2.0", "decision-catalog.support@2.1.0")
    assert request.runtime.max_payload_bytes == 1048576
    assert [attachment.media_type for attachment in request.attachments] == ["application/pdf"]
    assert written(request) == document


def test_the_built_request_is_read_whole() -> None:
    assert written(read_request(case("built_request"))) == case("built_request")


REQUIRED = ["request_id", "tenant_id", "user", "agent", "context_pack_refs", "input", "mode", "runtime", "trace"]


@cases("field", REQUIRED)
def test_a_request_without_a_required_field_is_refused(field: str) -> None:
    document = {key: value for key, value in case("request").items() if key != field}
    with pytest.raises(InputInvalid, match=field):
        read_request(document)


@cases("field", ["run_id", "trace_id", "tenant_id", "user", "agent", "safety_mode", "run_budget"])
def test_a_run_context_without_a_required_field_is_refused(field: str) -> None:
    document = {key: value for key, value in case("run_context").items() if key != field}
    with pytest.raises(InputInvalid, match=field):
        read_run_context(document)
