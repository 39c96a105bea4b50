"""Both directions: every requirement is proved or deferred, and every proof is of a requirement."""

from functools import cache

from tests.spec.manifest import ROOT, load
from tests.spec.proofs import Scan, scan

REQUIREMENTS = load()


@cache
def proofs() -> Scan:
    """Return the proofs of all tests, read when the first test asks and not by every worker that collects."""
    return scan(ROOT)


def proved_keys() -> set[str]:
    return {proof.key for proof in proofs().proofs}


def test_there_are_requirements_of_every_document() -> None:
    documents = {requirement.document for requirement in REQUIREMENTS.values()}
    assert documents == {"api-contracts", "context-pack", "execution-pack", "handoff-pack", "observability"}


def test_every_claim_of_a_proof_is_a_test_that_runs() -> None:
    assert proofs().mistakes == ()


def test_every_requirement_is_proved_or_deferred() -> None:
    keys = proved_keys()
    assert [key for key, row in REQUIREMENTS.items() if key not in keys and row.deferred is None] == []


def test_no_requirement_is_both_proved_and_deferred() -> None:
    keys = proved_keys()
    assert [key for key, row in REQUIREMENTS.items() if key in keys and row.deferred is not None] == []


def test_every_proof_is_of_a_requirement_that_exists() -> None:
    assert [proof for proof in proofs().proofs if proof.key not in REQUIREMENTS] == []
