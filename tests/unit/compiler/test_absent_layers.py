"""Packs without ontology, graph or memory: a run has nothing of them, and each omission has its reason."""

from typing import Any

from contextplane.model.compiled_context import CompiledContext
from tests.unit.compiler.scenario import NOW, PACK, SNAPSHOT, compile_plain, evidence, inputs, memory

GRAPH = f"kg:order:ord_881#snapshot_{SNAPSHOT}"


def compile_without(*places: str, **changes: Any) -> CompiledContext:  # noqa: ANN401  any JSON
    plain_inputs = inputs(as_of=NOW, evidence=[GRAPH, evidence()], memories=[memory()], **changes)
    for place in places:
        *parents, last = place.split(".")
        parent = plain_inputs["pack"]
        for step in parents:
            parent = parent[step]
        del parent[last]
    return compile_plain(plain_inputs)


def omitted(context: CompiledContext, kind: str) -> dict[str, str]:
    return {entry.id: entry.reason for entry in context.manifests.omission_manifest if entry.kind == kind}


def notes(context: CompiledContext) -> list[str]:
    return [note for stage in context.context_ledger.stages for note in stage.notes if note.startswith("the pack has")]


def test_without_a_graph_nothing_of_it_is_evidence() -> None:
    whole = compile_without()
    assert omitted(whole, "evidence") == {}
    context = compile_without("intelligence_refs.knowledge_graph")
    assert omitted(context, "evidence") == {GRAPH: "no_knowledge_graph"}
    assert context.context_ledger.scope is not None
    assert context.context_ledger.scope.snapshot is None
    assert context.context_ledger.scope.snapshot_pin_rule is None
    assert notes(context) == ["the pack has no intelligence_refs.knowledge_graph"]


def test_without_an_ontology_none_has_to_be_present() -> None:
    context = compile_without("intelligence_refs", ontologies=[])
    assert context.context_ledger.scope is not None
    assert context.context_ledger.scope.ontology is None
    assert context.context_ledger.scope.ceid_namespaces == ()
    assert omitted(context, "evidence") == {GRAPH: "no_knowledge_graph"}


def test_without_namespaces_no_entity_is_in_scope() -> None:
    context = compile_without("intelligence_refs.identity_layer")
    assert omitted(context, "evidence") == {GRAPH: "namespace_not_in_scope"}


def test_without_a_memory_layer_nothing_is_recalled() -> None:
    reference = memory()["memory_ref"]
    assert [entry.memory_ref for entry in compile_without().manifests.memory_manifest] == [reference]
    context = compile_without("memory_layer")
    assert context.manifests.memory_manifest == ()
    assert omitted(context, "memory") == {reference: "no_memory_layer"}
    assert notes(context) == ["the pack has no memory_layer"]


def test_a_pack_with_all_layers_has_no_note() -> None:
    assert {"intelligence_refs", "memory_layer"} <= PACK.keys()
    assert notes(compile_without()) == []
