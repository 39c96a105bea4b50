"""A published pack is compiled with what its catalogs hold, and its lineage names each document as it was published."""

from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical
from contextplane.registry.artifacts import candidate
from contextplane.runtime.published_source import pack_source
from tests.unit.registry.desk import CATALOG, version

PACK = version("1.0.0")
OWN = {spec["decision_key"] for spec in PACK["decision_layer"]["decision_specs"]}
SHARED = {spec["decision_key"] for spec in CATALOG["decision_specs"]}


def test_the_decisions_of_its_catalogs_are_those_of_the_pack() -> None:
    assert SHARED - OWN
    pack = pack_source(PACK, [candidate(CATALOG)]).pack
    assert {spec.decision_key for spec in pack.decision_layer.decision_specs} == OWN | SHARED
    alone = pack_source(PACK).pack
    assert {spec.decision_key for spec in alone.decision_layer.decision_specs} == OWN


def test_the_lineage_holds_the_digest_of_each_document_by_itself() -> None:
    catalog = candidate(CATALOG)
    lineage = pack_source(PACK, [catalog]).lineage
    assert [(entry.ref, entry.digest) for entry in lineage] == [
        ("ctxpack.support@1.0.0", str(Digest.of(canonical(PACK)))),
        (str(catalog.ref), str(Digest.of(canonical(CATALOG)))),
    ]


def test_a_place_in_the_pack_is_named_by_its_reference() -> None:
    assert pack_source(PACK).where("/policy_layer") == "ctxpack.support@1.0.0#/policy_layer"
