"""`ctx compile` with a bare invokeAgent envelope, with the id of a pack, and with documents that are no request."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.commands import ctx
from tests.surfaces.registries import at_office, prepared
from tests.surfaces.sample import Store, one_error_line
from tests.unit.compiler.case_files import SHOWN, pack_file, write_json
from tests.unit.compiler.scenario import put

REFUSED, USAGE, NOT_FOUND = 10, 2, 13
SEED = Path(__file__).parents[1] / "cases" / "envelopes" / "request.json"
ENVELOPE: dict[str, Any] = put(
    json.loads(SEED.read_bytes()),
    {"/context_pack_refs": ["ctxpack.support@1.0.0"], "/input/context": SHOWN["request"]["input"]["context"]},
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    pack_file(tmp_path)
    write_json(tmp_path, "request.json", ENVELOPE)
    return tmp_path


def test_a_bare_envelope_is_completed_and_what_was_assumed_is_said(files: Path) -> None:
    result = ctx("compile", "pack.json", "--request", "request.json", cwd=files)
    assert result.status == 0, result
    assert result.err.splitlines() == [
        "ctx: request.json is an invokeAgent envelope, without a run context. Assumed:",
        "ctx: - user and agent of the envelope count as authenticated; the user has no role, --role names one",
        "ctx: - the ceiling is read_only; --safety-mode sets another",
        "ctx: - the budget is 12,000 tokens; --bucket NAME=TOKENS changes a bucket",
        "ctx: - the ontologies that are present: ont.support@1.0.0, as the pack pins them",
        "ctx: - no evidence, no memories and no moment; write a whole request to give them",
    ]
    assert "the run's ceiling is read_only" in result.out
    assert "- adp_payments.issue_refund  above_ceiling" in result.out
    piped = ctx("compile", "pack.json", "--request", "-", cwd=files, input=(files / "request.json").read_bytes())
    assert (piped.status, piped.out) == (0, result.out)


def test_options_fill_the_run_context_of_an_envelope(files: Path) -> None:
    options = ("--role", "support_agent", "--safety-mode", "destructive", "--bucket", "evidence=500")
    result = ctx("compile", "pack.json", "--request", "request.json", *options, cwd=files)
    assert "allowed, in approval mode destructive" in result.out
    assert "+ adp_payments.issue_refund  destructive" in result.out
    assert " of 500\n" in result.out
    assert "moved by" not in result.out
    assert ("--safety-mode sets" in result.err, "has no role" in result.err) == (False, False)
    answer = json.loads(ctx("compile", "pack.json", "--request", "request.json", *options, "--json", cwd=files).out)
    assert [(row["at"], row["value"]) for row in answer["assumed"]][2:] == [
        ("/environment/ontologies", ["ont.support@1.0.0"]),
        ("/evidence", None),
    ]
    assert answer["assumed"][1]["value"]["total_tokens"] == 9000
    changed = ctx(
        "compile", "pack.json", "--request", "request.json", "--set", "request.context.refund_amount=1", cwd=files
    )
    assert "moved by request.context.refund_amount=1:" in changed.out


def test_the_claim_of_an_envelope_names_its_run(files: Path) -> None:
    write_json(files, "request.json", put(ENVELOPE, {"/agent/identity_claim/tenant_id": "tenant_other"}))
    line = ctx("compile", "pack.json", "--request", "request.json", cwd=files).err.splitlines()[-1]
    assert line.startswith("ctx: compile_tenant_mismatch: request.json:")


def test_a_wrong_envelope_is_placed_in_its_own_file(files: Path) -> None:
    wrong = {**ENVELOPE, "input": {"itent": "support.refund", "message": "x"}}
    (files / "request.json").write_text(json.dumps(wrong, indent=1), encoding="utf-8")
    line = one_error_line(
        ctx("compile", "pack.json", "--request", "request.json", cwd=files), REFUSED, "compile_case_invalid"
    )
    assert "/input/intent: the field intent is missing; /input/itent: " in line


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"pack_meta": {}}, "a context pack"),
        ({"overlay_id": "x"}, "an overlay"),
        ({"model": "m", "system_prompt": "s", "steps": []}, "an execution log"),
        ({"compiled_prompt": {}}, "a compiled context"),
        ({"run_id": "r", "safety_mode": "read_only", "run_budget": {}}, "a run context"),
        ({"sections": [], "title": "t"}, "a handoff document"),
        ({"openapi": "3.1.0", "paths": {}}, "an OpenAPI description"),
    ],
)
def test_a_document_that_is_no_request_is_named(files: Path, document: dict[str, Any], kind: str) -> None:
    write_json(files, "other.json", document)
    line = one_error_line(
        ctx("compile", "pack.json", "--request", "other.json", cwd=files), REFUSED, "compile_case_invalid"
    )
    assert f"this is {kind}, not a request" in line


def test_an_envelope_in_the_place_of_a_pack_is_named(files: Path) -> None:
    for verb in (("lint", "request.json"), ("compile", "request.json", "--request", "request.json")):
        line = one_error_line(ctx(*verb, cwd=files), REFUSED, "not_a_context_pack")
        assert "this is an invokeAgent envelope, not a context pack" in line


def test_the_id_of_a_pack_compiles_what_the_environment_pins(tmp_path: Path) -> None:
    store = Store(tmp_path)
    prepared(store.folder)
    with at_office(store.folder) as here:
        here.pin("staging", "ctxpack.support@1.0.0")
    write_json(tmp_path, "request.json", SHOWN)
    command = ("compile", "ctxpack.support", "--environment", "staging", "--request")
    result = ctx(*command, "request.json", cwd=tmp_path)
    assert (result.status, result.err) == (0, "ctx: staging pins ctxpack.support@1.0.0\n"), result
    assert result.out == ctx("compile", "ctxpack.support@1.0.0", *command[2:], "request.json", cwd=tmp_path).out
    # The request may leave the version to the environment, and may be a bare envelope.
    write_json(tmp_path, "open.json", put(ENVELOPE, {"/context_pack_refs": ["ctxpack.support"]}))
    result = ctx(*command, "open.json", cwd=tmp_path)
    assert (result.status, result.out.startswith("ctxpack.support@1.0.0  ")) == (0, True), result
    write_json(tmp_path, "other.json", put(SHOWN, {"/request/context_pack_refs": ["ctxpack.support@0.9.0"]}))
    result = ctx(*command, "other.json", cwd=tmp_path)
    assert (result.status, result.out) == (REFUSED, "")
    assert "the request names ctxpack.support@0.9.0, and staging pins ctxpack.support@1.0.0 (write " in result.err
    result = ctx("compile", "ctxpack.support@1.0.0", *command[2:], "other.json", cwd=tmp_path)
    assert "names ctxpack.support@0.9.0, and the command names ctxpack.support@1.0.0" in result.err
    line = one_error_line(
        ctx("compile", "ctxpack.none", *command[2:], "request.json", cwd=tmp_path), NOT_FOUND, "pin_not_found"
    )
    assert "staging pins no version of it" in line


def test_an_environment_is_a_name_here_and_a_file_for_lint(files: Path) -> None:
    compiling = ("compile", "pack.json", "--request", "request.json", "--environment")
    line = one_error_line(ctx(*compiling, "prod.yaml", cwd=files), USAGE, "usage")
    assert "takes the name of an environment here, and prod.yaml is a file" in line
    line = one_error_line(
        ctx("lint", "pack.json", "--environment", "prod", cwd=files), NOT_FOUND, "document_unreadable"
    )
    assert "names a file that describes the environment" in line
    line = one_error_line(ctx("compile", "support", *compiling[2:4], cwd=files), NOT_FOUND, "document_unreadable")
    assert "the id of a published pack needs --environment ENV" in line


@pytest.mark.parametrize("safety_mode", ["read_only", "local_write", "network", "delegated", "destructive"])
@pytest.mark.parametrize("mode", ["stream", "long_running"])
def test_a_request_that_new_writes_compiles_at_once(tmp_path: Path, mode: str, safety_mode: str) -> None:
    assert ctx("new", "pack.yaml", cwd=tmp_path).status == 0
    options = ("--request", "--mode", mode, "--safety-mode", safety_mode)
    result = ctx("new", "request.yaml", *options, cwd=tmp_path)
    assert (result.status, f"  mode {mode}: " in result.out, f"  safety_mode {safety_mode}: " in result.out) == (
        0,
        True,
        True,
    )
    assert ("delegation is required" in result.out) is (safety_mode in {"delegated", "destructive"})
    compiled = ctx("compile", "pack.yaml", "--request", "request.yaml", cwd=tmp_path)
    assert (compiled.status, f"the run's ceiling is {safety_mode}" in compiled.out) == (0, True), compiled


def test_a_mode_is_only_for_a_request(tmp_path: Path) -> None:
    one_error_line(ctx("new", "pack.yaml", "--mode", "batch", cwd=tmp_path), USAGE, "usage")
    assert not (tmp_path / "pack.yaml").exists()
