"""Both directions: every requirement is proved or deferred, and every proof is of a requirement."""

from tests.spec.manifest import ROOT, load
from tests.spec.proofs import scan

REQUIREMENTS = load()
SCAN = scan(ROOT)
PROVED = {proof.key for proof in SCAN.proofs}


def test_there_are_requirements_of_every_document() -> None:
    documents = {requirement.document for requirement in REQUIREMENTS.values()}
    assert documents == {"api-contracts", "context-pack", "execution-pack", "handoff-pack", "observability"}


def test_every_claim_of_a_proof_is_a_test_that_runs() -> None:
    assert SCAN.mistakes == ()


def test_every_requirement_is_proved_or_deferred() -> None:
    assert [key for key, row in REQUIREMENTS.items() if key not in PROVED and row.deferred is None] == []


def test_no_requirement_is_both_proved_and_deferred() -> None:
    assert [key for key, row in REQUIREMENTS.items() if key in PROVED and row.deferred is not None] == []


def test_every_proof_is_of_a_requirement_that_exists() -> None:
    assert [proof for proof in SCAN.proofs if proof.key not in REQUIREMENTS] == []
