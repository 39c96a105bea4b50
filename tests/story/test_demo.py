"""The demo prints only what happened, and leaves nothing behind unless asked to."""

import json
import re
from pathlib import Path

from tests.surfaces.commands import ctx


def test_the_demo_shows_a_contract_a_release_runs_a_handoff_and_tampering(tmp_path: Path) -> None:
    result = ctx("demo", cwd=tmp_path)
    assert result.status == 0, result.err
    lines = result.out.splitlines()
    headings = [line.partition(". ")[2].split(":")[0] for line in lines if line[:1].isdigit()]
    assert headings == ["A contract", "Compile", "Release", "Runs", "Handoff", "Tampering is found"]
    for outcome in (
        "requires_approval_gate: GATE_FINANCE_APPROVAL",
        "refused by risk/destructive_without_gate",
        "gates  GATE_FINANCE_APPROVAL",
        "adp_payments.issue_refund is omitted (above_ceiling)",
        "identity_verified=false: denied. Identity not verified; refund path blocked",
        "ctx review by its author: refused, reviewer_is_author",
        "Another contract under the same version: refused, version_taken",
        "16 signed events, none changed",
        "adp_payments.refund added in pack B",
        "ctx replay e283d9edc4bd --recorded: exact",
        "Lines 6-7 moved to 10-11:",
        "outputs/decision.json: refused, object_corrupt",
        "ctx verify e283d9edc4bd: modified, exit status 11",
        "ctx verify e283d9edc4bd: verified",
    ):
        assert outcome in result.out
    assert not list(tmp_path.iterdir())


def test_the_demo_fits_on_a_screen(tmp_path: Path) -> None:
    for arguments in ([], ["--keep", "here"]):
        lines = ctx("demo", *arguments, cwd=tmp_path).out.splitlines()
        assert len(lines) <= 60
        assert max(map(len, lines)) <= 100


def test_the_demo_gives_the_same_identity_on_every_machine(tmp_path: Path) -> None:
    chapters = json.loads(ctx("demo", "--json", cwd=tmp_path).out)
    lines = [line for chapter in chapters for line in chapter["lines"]]
    run = "e283d9edc4bda6076179269bc99c33cff9e3aba32ec5f2ee867bccd309eb9e72"
    assert f"ctx pack refund.json: ctx://{run}" in lines
    context_hash = "sha256:fdab2d12e3ce1e3d210b34beeb631347e3e44b948b8e29cb37dbdd17ff9961e6"
    assert f"  hash   {context_hash}" in lines


def test_a_kept_demo_leaves_a_sound_store_and_every_file_that_it_names(tmp_path: Path) -> None:
    shown = ctx("demo", "--keep", "here", cwd=tmp_path)
    assert shown.status == 0
    here = tmp_path / "here"
    files = set(re.findall(r"[\w/]+\.(?:yaml|json|py)\b", shown.out)) - {"outputs/decision.json", "decision.json"}
    assert files == {"refunds.yaml", "request.yaml", "refund.json", "later.json", "shop/refunds.py"}
    assert [name for name in files if not (here / name).is_file()] == []
    assert ctx("fsck", cwd=here).status == 0
    later, first = (line.split()[0] for line in ctx("log", cwd=here).out.splitlines())
    assert ctx("diff", first, later, "--exit-code", cwd=here).status == 12
    assert ctx("verify", first, cwd=here).status == 0
    assert ctx("replay", first, "--recorded", cwd=here).status == 0
    assert "pinned in prod" in ctx("packs", cwd=here).out
    assert ctx("verify", "--registry", cwd=here).status == 0


def test_the_commands_of_a_kept_demo_answer_as_it_says(tmp_path: Path) -> None:
    shown = ctx("demo", "--keep", "here", cwd=tmp_path).out
    here = tmp_path / "here"
    assert ctx("lint", "refunds.yaml", cwd=here).status == 0
    for pack in (["refunds.yaml"], ["ctxpack.support@1.0.0", "--environment", "prod"]):
        compiled = ctx("compile", *pack, "--request", "request.yaml", "--quiet", cwd=here)
        assert compiled.out.strip() in shown
    for name in ("refund.json", "later.json"):
        packed = ctx("pack", name, "--quiet", cwd=here).out.strip()
        assert re.search(f"ctx pack {name}: +{packed}\n", shown)
    assert "- lines: 6-7 (moved: now 10-11)" in ctx("handoff", "read", "refund-limit", cwd=here).out


def test_the_demo_does_not_touch_a_folder_that_is_there(tmp_path: Path) -> None:
    result = ctx("demo", "--keep", ".", cwd=tmp_path)
    assert (result.status, "folder_not_made" in result.err) == (14, True)
    assert not list(tmp_path.iterdir())
