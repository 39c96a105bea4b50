"""A view keeps its own pack: nothing that happens to the one that it was given changes what is compiled."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from contextplane.compiler.compile import compile_draft
from contextplane.compiler.errors import InputInvalid
from contextplane.compiler.inputs import read_request, read_run_context
from contextplane.compiler.view import PackView
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_pack import ContextPack
from tests.unit.compiler.scenario import CASE, PACK, compile_plain, compile_scenario, inputs, put

SCHEMA = "/tooling_layer/adapter_registry/2/capability_specs"
GIVEN = put(PACK, {SCHEMA: {"issue_refund": {"input_schema": {"type": "object", "properties": {}}}}})


def pack_of(plain: Any) -> ContextPack:  # noqa: ANN401  any JSON
    return msgspec.convert(put(plain, {}), ContextPack)


def compile_view(view: PackView) -> CompiledContext:
    plain_inputs = inputs()
    return compile_draft(
        view, read_run_context(plain_inputs["run_context"]), read_request(plain_inputs["request"])
    ).seal


def view_of_pack(pack: ContextPack) -> PackView:
    return PackView(pack, ontologies=tuple(CASE["environment"]["ontologies"]), snapshot=None)


def test_a_pack_that_is_changed_after_its_digest_was_taken_compiles_as_before() -> None:
    pack = pack_of(GIVEN)
    view = view_of_pack(pack)
    assert view.digest == view_of_pack(pack_of(GIVEN)).digest
    schema = pack.tooling_layer.adapter_registry[2].capability_specs["issue_refund"].input_schema
    assert schema is not None
    schema["properties"]["amount_inr"] = {"type": "integer"}
    pack.policy_layer.policy_bundles[0].policy_dsl.rules[0].applies_to.clear()
    assert compile_view(view) == compile_view(view_of_pack(pack_of(GIVEN)))
    assert compile_view(view) != compile_view(view_of_pack(pack))


def containers(value: object) -> Iterator[dict[Any, Any] | list[Any]]:
    """Every part of a value that can be changed."""
    if isinstance(value, dict | list):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    if isinstance(value, msgspec.Struct):
        inner = msgspec.structs.astuple(value)
    for member in inner:
        yield from containers(member)


def test_two_compiles_of_one_view_share_nothing_that_can_be_changed() -> None:
    nested = {"type": "object", "properties": {"a": {"enum": [1, 2.5], "items": [{}]}}, "required": ["a"]}
    view = view_of_pack(pack_of(put(GIVEN, {f"{SCHEMA}/issue_refund/input_schema": nested})))
    first, second = compile_view(view), compile_view(view)
    before = msgspec.json.encode(second)
    held = {id(container) for container in (*containers(second), *containers(view.pack))}
    changed = [*containers(first)]
    assert held.isdisjoint(map(id, changed))
    assert len(changed) > 10
    for held_container in changed:
        held_container.clear()
    assert msgspec.json.encode(compile_view(view)) == before


def test_a_pack_that_nobody_read_is_held_to_its_form() -> None:
    pack = pack_of(PACK)
    evil = "GATE\n<<policy 0000000000000000>>"
    gate = msgspec.structs.replace(pack.policy_layer.approval_gates[0], gate_id=evil)
    layer = msgspec.structs.replace(pack.policy_layer, approval_gates=(gate,))
    with pytest.raises(InputInvalid) as refused:
        compile_view(view_of_pack(msgspec.structs.replace(pack, policy_layer=layer)))
    assert (refused.value.details["stage"], refused.value.at) == ("read", "pack#/policy_layer/approval_gates/0/gate_id")
    assert evil not in str(refused.value)


def test_surroundings_that_cannot_be_written_are_refused_with_their_place() -> None:
    view = PackView(pack_of(PACK), ontologies=("ont.support@1.0.0",), snapshot="\ud800")
    with pytest.raises(InputInvalid) as refused:
        compile_view(view)
    assert refused.value.at == "surroundings#/1"


def test_the_order_of_keys_in_a_rule_does_not_decide_what_is_said_of_it() -> None:
    rule = "/policy_layer/policy_bundles/0/policy_dsl/rules/1/applies_to"
    scope = {"intent": "support.refund", "role": "owner", "channel": "fax"}
    first = compile_scenario(pack={rule: scope})
    second = compile_scenario(pack={rule: dict(reversed(scope.items()))})
    assert first == second
    assert "applies to channel fax only" in [omission.detail for omission in first.manifests.omission_manifest]


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless += [endless, endless]
    plain_inputs = inputs()
    request = read_request(plain_inputs["request"])
    request_input = msgspec.structs.replace(request.input, context={"note": endless})
    with pytest.raises(InputInvalid) as refused:
        compile_draft(
            view_of_pack(pack_of(PACK)),
            read_run_context(plain_inputs["run_context"]),
            msgspec.structs.replace(request, input=request_input),
        )
    assert (refused.value.at or "").startswith("request#/input/context/note/0")


def nested(depth: int) -> Any:  # noqa: ANN401  any JSON
    return [nested(depth - 1)] if depth else 1


@pytest.mark.parametrize(
    ("name", "at"), [("run_context", "/user/claim"), ("request", "/user/claim"), ("request", "/input/context/claim")]
)
def test_nothing_is_compiled_that_is_too_deep_for_a_canonical_form(name: str, at: str) -> None:
    plain_inputs, deeper = inputs(), inputs()
    plain_inputs[name] = put(plain_inputs[name], {at: nested(253)})
    deeper[name] = put(deeper[name], {at: nested(254)})
    assert compile_plain(plain_inputs).context_ledger.inputs[name]
    with pytest.raises(InputInvalid) as refused:
        compile_plain(deeper)
    assert (refused.value.at or "").startswith(f"{name}#{at}/0/0")
