"""The seal: what the hash of a compiled context covers."""

from msgspec.structs import replace

from contextplane.compiler.compile import compiled_context_hash
from contextplane.model.compiled_context import CompiledContext
from tests.support.cases import cases
from tests.unit.compiler.scenario import NOW, compile_scenario, evidence


@cases("name", CompiledContext.__struct_fields__)
def test_a_context_with_a_part_of_another_does_not_have_its_hash(name: str) -> None:
    sealed = compile_scenario()
    other = compile_scenario(request={"/input/context/refund_amount": 5}, evidence=[evidence()], as_of=NOW)
    assert getattr(other, name) != getattr(sealed, name)
    mixed = replace(sealed, **{name: getattr(other, name)})
    assert compiled_context_hash(sealed) == sealed.context_ledger.compiled_context_hash
    assert compiled_context_hash(mixed) != sealed.context_ledger.compiled_context_hash


def test_a_request_id_is_not_covered() -> None:
    sealed = compile_scenario()
    ledger = replace(sealed.context_ledger, request_id="req_another")
    assert compiled_context_hash(replace(sealed, context_ledger=ledger)) == compiled_context_hash(sealed)
