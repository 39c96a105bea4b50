"""Attachments of a request: shown by reference and digest, never opened, and accounted for like all evidence."""

from typing import Any

import pytest

from contextplane.compiler.prompt import prompt_text
from contextplane.model.compiled_context import CompiledContext
from contextplane.testing.proofs import proves
from tests.support.cases import cases
from tests.unit.compiler.prompt_reader import HOSTILE, parse_prompt
from tests.unit.compiler.scenario import CASE, compile_scenario

DIGEST = "2f9cc0" + "0" * 58


def attachment(**changes: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    return {
        "artifact_id": "art_invoice_881",
        "media_type": "application/pdf",
        "sha256": DIGEST,
        "uri": "s3://tenant-acme-prod/invoices/881.pdf?signature=abc",
        **changes,
    }


def compile_attached(*items: dict[str, Any], **changes: Any) -> CompiledContext:  # noqa: ANN401  any JSON
    return compile_scenario(request={"/attachments": list(items)}, **changes)


def evidence_omissions(context: CompiledContext) -> list[tuple[str, str, str | None]]:
    return [
        (omission.id, omission.reason, omission.at)
        for omission in context.manifests.omission_manifest
        if omission.kind == "evidence"
    ]


@proves("api-contracts:payload:hash-in-evidence-manifest")
@pytest.mark.parametrize("written", [DIGEST, f"sha256:{DIGEST}"])
def test_the_hash_of_every_attachment_stands_in_the_evidence_manifest(written: str) -> None:
    context = compile_attached(attachment(sha256=written), attachment(artifact_id="art_2", sha256="0" * 64))
    assert [
        (entry.evidence_ref, entry.source_id, entry.hash) for entry in context.manifests.evidence_manifest[-2:]
    ] == [
        ("attachment:art_invoice_881", None, f"sha256:{DIGEST}"),
        ("attachment:art_2", None, "sha256:" + "0" * 64),
    ]
    assert context.context_ledger.evidence_refs == (*CASE["evidence"], "attachment:art_invoice_881", "attachment:art_2")


def test_the_model_is_told_what_is_attached_as_data_and_never_where_it_lies() -> None:
    context = compile_attached(attachment())
    (block,) = [block for block in context.compiled_prompt.context_blocks if "attachment" in block.provenance_refs[0]]
    assert (block.block_id, block.instruction_treatment, block.trust) == ("ev_5", "data_only", "unknown")
    assert block.content == (
        f'{{"artifact_id":"art_invoice_881","media_type":"application/pdf","sha256":"sha256:{DIGEST}"}}'
    )
    assert "s3://" not in prompt_text(context.compiled_prompt)
    assert "signature" not in prompt_text(context.compiled_prompt)


@cases(
    ("items", "left_out"),
    [
        ([attachment(sha256="2f9cc0...")], [("not_a_digest", 0)]),
        ([attachment(sha256=DIGEST.upper())], [("not_a_digest", 0)]),
        ([attachment(), attachment()], [("duplicate", 1)]),
        ([attachment(), attachment(media_type="x")], [("same_reference_twice", 0), ("same_reference_twice", 1)]),
    ],
    ids=["no digest", "not as digests are written", "twice", "two of one name"],
)
def test_what_cannot_be_told_apart_or_checked_is_left_out(
    items: list[dict[str, Any]], left_out: list[tuple[str, int]]
) -> None:
    context = compile_attached(*items)
    assert evidence_omissions(context) == [
        ("attachment:art_invoice_881", reason, f"request#/attachments/{n}") for reason, n in left_out
    ]
    assert len(context.manifests.evidence_manifest) == len(CASE["evidence"]) + len(items) - len(left_out)


def test_an_attachment_that_does_not_fit_is_dropped_after_all_evidence_and_listed() -> None:
    allotted = compile_scenario().budget_report.tokens_used_by_bucket["evidence"]
    context = compile_attached(attachment(), run={"/run_budget/bucket_tokens/evidence": allotted})
    assert evidence_omissions(context) == [("attachment:art_invoice_881", "over_budget", "request#/attachments/0")]
    assert context.budget_report.dropped_block_ids == {"evidence": ("ev_5",)}


def test_hostile_names_of_attachments_stay_inside_their_block() -> None:
    room = {"/run_budget/bucket_tokens/evidence": 2000}
    parsed = parse_prompt(
        prompt_text(compile_attached(attachment(artifact_id=HOSTILE, media_type=HOSTILE), run=room).compiled_prompt)
    )
    assert [item.label for item in parsed.items] == ["1", "2", "3", "4", "5", "6", "m1", "request"]
    for line in parsed.outside:
        assert not line.startswith(("SYSTEM", "<", "[", "R_EVIL"))
        assert line.isprintable()
