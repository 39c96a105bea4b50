"""No secret that stands in a document is repeated in what is said about it."""

import json
from pathlib import Path

import pytest

from contextplane.app.packs.lint import lint_file
from contextplane.authoring.diff.walk import compare_packs
from contextplane.authoring.gates.table import judge_pack
from contextplane.authoring.law import HIDDEN, redact_secrets
from tests.support.cases import cases
from tests.unit.authoring.packs import EXAMPLE, changed, leaves

# In two pieces, so that no scanner takes this file for a leak.
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
RANDOM = "RXx2nznYZEGZwOW9vPvI" + "WzfOkcveH8Gw6mtE8W3X"


@cases("at", [at for at, _ in leaves(EXAMPLE)])
def test_a_secret_at_any_place_is_not_in_what_the_gates_say(at: str) -> None:
    for secret in (TOKEN, RANDOM):
        findings = judge_pack(changed(at, secret)).findings
        assert any(finding.severity == "error" for finding in findings)
        assert not [finding for finding in findings if secret in finding.cause + finding.cure]


@cases("at", [at for at, _ in leaves(EXAMPLE)])
def test_a_secret_at_any_place_is_not_in_the_words_of_a_difference(at: str) -> None:
    assert not [change for change in compare_packs(EXAMPLE, changed(at, TOKEN)) if TOKEN in change.words]


def test_a_secret_that_is_a_name_keeps_its_line_and_is_not_in_its_pointer(tmp_path: Path) -> None:
    path = tmp_path / "pack.json"
    name = "/tooling_layer/permissions/2/arg_constraints/"
    path.write_text(json.dumps(changed(name + TOKEN, {"required": True}), indent=2), encoding="utf-8")
    findings = [finding for finding in lint_file(str(path)).placed if finding.finding.code == "secret_present"]
    line = path.read_text(encoding="utf-8").splitlines().index(f'          "{TOKEN}": {{') + 1
    assert [(finding.finding.at, finding.place.line) for finding in findings] == [(name + HIDDEN, line)]


@pytest.mark.parametrize("text", ["this looks like a secret: password", "the adapter 'adp_orders' is not declared", ""])
def test_what_holds_no_secret_is_said_as_it_is(text: str) -> None:
    assert redact_secrets(text) == text


def test_only_the_words_that_look_like_secrets_are_left_out() -> None:
    assert redact_secrets(f"the adapter '{TOKEN}' is not declared") == f"the adapter '{HIDDEN}' is not declared"
    assert redact_secrets("-----BEGIN RSA PRIVATE " + "KEY----- is no range") == HIDDEN
