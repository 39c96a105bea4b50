"""Compiling a published version: verified, with what is pinned in its environment, as a run there would be given it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contextplane.app.compile.sources import source_from_registry
from contextplane.app.registry.release import retire
from contextplane.compiler.case import CompileCase, read_case
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.ids import PackRef
from tests.spec.manifest import proves
from tests.unit.compiler.case_files import SHOWN
from tests.unit.compiler.scenario import put
from tests.unit.registry.desk import ENDPOINT, OVERLAY, PACK, Office, code, office

TIGHTER = {"at": "/policy_layer/guardrails/redaction_rules/iban", "value": "iban"}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Office]:
    with office(tmp_path) as made:
        made.release()
        made.pin("staging", PACK)
        yield made


def case(**changes: object) -> CompileCase:
    return read_case(put(SHOWN, {f"/{name.replace('__', '/')}": value for name, value in changes.items()}))


def compiled(here: Office, ref: str = PACK, request_case: CompileCase | None = None) -> CompiledContext:
    request_case = request_case or case()
    source = source_from_registry(here.desk, PackRef.parse(ref), request_case, "staging", max_age=None)
    return source.compile(request_case)


@proves("context-pack:resolution:load-pinned")
def test_a_pinned_version_is_compiled_and_its_digest_is_in_the_lineage(here: Office) -> None:
    result = compiled(here)
    with here.desk.read() as reader:
        digest = str(reader.version(PackRef.parse(PACK)).digest)
    assert [(lineage.ref, lineage.digest) for lineage in result.context_ledger.lineage] == [(PACK, digest)]
    assert result.context_ledger.pack_ref == PACK


@proves("context-pack:definition:overlays-before-compile", "context-pack:resolution:apply-overlay")
def test_what_is_compiled_has_the_overlays_that_the_environment_pins(here: Office) -> None:
    before = compiled(here)
    here.release({**OVERLAY, "changes": [ENDPOINT, TIGHTER]})
    here.pin("staging", "ovl.staging@1.0.0")
    after = compiled(here)
    assert [lineage.ref for lineage in after.context_ledger.lineage] == [PACK, "ovl.staging@1.0.0"]
    assert after.runtime_controls.redaction_rules_active == (*before.runtime_controls.redaction_rules_active, "iban")


@proves("context-pack:resolution:verify")
def test_nothing_is_compiled_from_a_version_that_is_refused(here: Office) -> None:
    absent = case(environment={"ontologies": []})
    assert code(lambda: compiled(here, request_case=absent)) == "ontology_missing"
    retire(here.desk, PackRef.parse(PACK), "revoked", here.by("pub"))
    assert code(lambda: compiled(here)) == "version_revoked"


def test_a_version_that_was_never_published_is_not_compiled(here: Office) -> None:
    assert code(lambda: compiled(here, "ctxpack.support@7.0.0")) == "version_not_found"


@proves("context-pack:resolution:deterministic")
def test_every_compile_takes_the_same_steps_in_the_same_order_to_the_same_bytes(here: Office) -> None:
    cases = [case(), case(run_context__safety_mode="read_only"), case(evidence=[], memories=[])]
    orders = {tuple(stage.stage for stage in compiled(here, request_case=case).context_ledger.stages) for case in cases}
    assert orders == {("redaction", "scope", "intent", "policy", "tools", "evidence", "memory", "budget", "assemble")}
    assert all(compiled(here, request_case=case) == compiled(here, request_case=case) for case in cases)
    # Loading comes before verifying, verifying before overlays, and all of it before the first stage.
    stranger = case(request__input__intent="support.other", run_context__intent="support.other")
    assert code(lambda: compiled(here, request_case=stranger)) == "compile_intent_unknown"
    retire(here.desk, PackRef.parse(PACK), "revoked", here.by("pub"))
    assert code(lambda: compiled(here, request_case=stranger)) == "version_revoked"
    assert code(lambda: compiled(here, "ctxpack.support@7.0.0", stranger)) == "version_not_found"
