"""The reasons of a compiled context: every one that the compiler gives is explained, and the page lists them all."""

import re
from typing import get_args

from contextplane.compiler.reasons import REASONS
from contextplane.model.evidence import Trust
from contextplane.policy.decision import ErrorKind, IdleKind
from contextplane.policy.redaction.rules import RedactionWay
from contextplane.policy.tool_surface import ReasonKind
from tests.spec.manifest import ROOT

PAGE = (ROOT / "docs" / "compiling.md").read_text(encoding="utf-8")
COMPILER = ROOT / "src" / "contextplane" / "compiler"
NO_REASONS = {"sufficient", "insufficient", "obtainable", "current", "read", "write", "not_yet", "untyped"}
"""Other names that modules with reasons return."""


def test_the_page_lists_the_reasons_of_each_kind() -> None:
    rows = re.findall(r"^\| `(rule|tool|evidence|memory|block|redaction)` \| (.*) \|$", PAGE, re.MULTILINE)
    listed = {kind: set(re.findall(r"`([a-z_]+)`", cell)) - {"count", "places"} for kind, cell in rows}
    assert len(listed) == 6
    for kind, names in listed.items():
        assert names == {name for name, reason in REASONS.items() if kind in reason.kinds}, kind


def test_the_page_lists_the_reasons_of_required_evidence() -> None:
    table = PAGE[PAGE.index("A name that is not satisfied") :].partition("\n\n|")[2].partition("\n\n")[0]
    cells = [row.split("|")[-3] for row in table.splitlines()]
    listed = {name for cell in cells for name in re.findall(r"`([a-z_]+)`", cell)}
    assert listed == {name for name, reason in REASONS.items() if "required evidence" in reason.kinds}


def test_every_reason_of_policy_and_redaction_is_explained() -> None:
    kinds = {*get_args(ReasonKind), *get_args(IdleKind), *get_args(ErrorKind)}
    ways = {f"by_{way}" for way in get_args(RedactionWay)}
    trusts = {f"trust_{trust}" for trust in get_args(Trust)} - {"trust_authoritative", "trust_verified"}
    assert kinds | ways | trusts <= REASONS.keys()


def test_every_reason_that_admission_returns_is_explained() -> None:
    for module in ("evidence", "memory", "assemble", "budget"):
        source = (COMPILER / f"{module}.py").read_text(encoding="utf-8")
        names = set(re.findall(r'(?:return|else|reason =|reason=) "([a-z_]+)"', source)) - NO_REASONS - {"unknown"}
        assert names <= REASONS.keys(), module
