"""`ctx diff` of two context packs: changes by layer, the least version class and its reasons."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.spec.manifest import proves
from tests.surfaces.commands import ctx
from tests.surfaces.context_packs import REDACTION, VOID, answer, example, numbered, pack_file
from tests.surfaces.sample import one_error_line

RULES = "/policy_layer/policy_bundles/0/policy_dsl/rules"
GATE = "/policy_layer/approval_gates/0"
SPEC = "/decision_layer/decision_specs/0"
PERMISSIONS = "/tooling_layer/permissions"
STATUS: tuple[Mapping[str, Any], ...] = (
    {"at": "/tooling_layer/adapter_registry/0/capabilities/-", "value": "status"},
    {
        "at": f"{PERMISSIONS}/-",
        "value": {"permission_id": "p_status", "adapter_id": "adp_orders", "capability": "status", "allow": True},
    },
)
TARGET = {
    "intent": "support.exchange",
    "policy": 1.0,
    "utility": 0.9,
    "latency_p99_ms": 3000,
    "safety": 1.0,
    "economics_cents_per_decision": 1.5,
}


def setting(at: str, value: object) -> Mapping[str, Any]:
    return {"at": at, "value": value}


def compared(folder: Path, version: str, *changes: Mapping[str, Any]) -> Any:  # noqa: ANN401  the answer is JSON
    diff, _ = answer("diff", example(folder), numbered(folder, version, *changes), cwd=folder, status=0)
    return diff


CLASSES: dict[str, tuple[str, tuple[Mapping[str, Any], ...]]] = {
    "the reason that a user is told": ("minor", (setting(f"{RULES}/0/else/reason", "Not verified."),)),
    "another text for the model": ("minor", (setting("/business_context/summary/what_we_do", "Support after sale"),)),
    "the rationale, which the model reads": (
        "minor",
        (setting(f"{RULES}/0/rationale", "Only for people who we know."),),
    ),
    "the tenant's name": ("patch", (setting("/pack_meta/tenant/name", "Acme Help"),)),
    "a condition written in another way": (
        "patch",
        (setting(f"{GATE}/when", {"<": [3000, {"var": "request.context.refund_amount"}]}),),
    ),
    "a stricter threshold": (
        "minor",
        (setting(f"{GATE}/when", {">": [{"var": "request.context.refund_amount"}, 2000]}),),
    ),
    "an additional redaction": ("minor", (REDACTION,)),
    "an additional read-only source": ("minor", STATUS),
    "a new write capability": ("major", VOID),
    "a removed capability": ("major", ({"at": f"{PERMISSIONS}/1"},)),
    "another set of outcomes": ("major", (setting(f"{SPEC}/allowed_outcomes", ["approved", "denied"]),)),
    "another ontology": ("major", (setting("/intelligence_refs/ontology/version", "1.1.0"),)),
    "other entities": ("major", (setting("/intelligence_refs/ontology/entity_types", ["Customer"]),)),
    "other required evidence": ("major", (setting(f"{SPEC}/required_evidence", ["order_lookup", "policy_eval"]),)),
    "a looser threshold": (
        "major",
        (setting(f"{GATE}/when", {">": [{"var": "request.context.refund_amount"}, 9000]}),),
    ),
}
NUMBERS = {"patch": "1.0.1", "minor": "1.1.0", "major": "2.0.0"}


@proves("context-pack:versioning:contract-versions")
@proves("context-pack:versioning:metadata-is-patch", case="the tenant's name")
@proves(
    "context-pack:versioning:constrained-is-minor",
    "context-pack:versioning:added-redaction-is-minor",
    case="an additional redaction",
)
@proves("context-pack:versioning:stricter-threshold-is-minor", case="a stricter threshold")
@proves("context-pack:versioning:read-only-evidence-is-minor", case="an additional read-only source")
@proves("context-pack:versioning:expanded-is-major", case="a looser threshold")
@proves("context-pack:versioning:new-write-capability-is-major", case="a new write capability")
@proves("context-pack:versioning:removed-capability-is-major", case="a removed capability")
@proves("context-pack:versioning:changed-outcomes-is-major", case="another set of outcomes")
@proves("context-pack:versioning:changed-ontology-is-major", case="another ontology")
@proves("context-pack:versioning:changed-evidence-is-major", case="other required evidence")
@pytest.mark.parametrize("what", CLASSES)
def test_a_change_has_the_least_class_that_the_contract_gives_it(tmp_path: Path, what: str) -> None:
    least, changes = CLASSES[what]
    for number, version in NUMBERS.items():
        diff = compared(tmp_path, version, *changes)
        assert (diff["version_class"], diff["unsafe"]) == (least, [])
        too_small = list(NUMBERS).index(number) < list(NUMBERS).index(least)
        assert bool(diff["version_refused"]) == too_small, diff


@proves("context-pack:versioning:new-evaluator-target-is-minor")
def test_a_target_for_an_intent_that_had_none_is_minor(tmp_path: Path) -> None:
    two_intents = setting(f"{RULES}/0/applies_to/intent", ["support.refund", "support.exchange"])
    old = pack_file(tmp_path / "old.json", two_intents)
    new = numbered(tmp_path, "1.1.0", two_intents, setting("/evaluation_layer/eval_targets/-", TARGET))
    diff, _ = answer("diff", old, new, cwd=tmp_path, status=0)
    assert (diff["version_class"], diff["unsafe"], diff["version_refused"]) == ("minor", [], None)
    assert "new evaluator target for support.exchange" in [entry["description"] for entry in diff["entries"]]


@proves("context-pack:versioning:unsafe-is-rejected")
@proves("context-pack:versioning:permission-without-adapter-rejected", case="a removed adapter")
@proves("context-pack:versioning:binding-without-spec-rejected", case="a binding to nothing")
@proves("context-pack:versioning:ungated-destructive-rejected", case="a removed gate")
@pytest.mark.parametrize("version", NUMBERS.values())
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"at": "/tooling_layer/adapter_registry/0"}, "permission_adapter_unknown"),
        (setting(f"{RULES}/0/decision_binding", "support.refund.exec"), "decision_binding_unknown"),
        ({"at": f"{PERMISSIONS}/2/requires_approval_gate"}, "destructive_without_gate"),
    ],
    ids=["a removed adapter", "a binding to nothing", "a removed gate"],
)
def test_an_unsafe_change_is_rejected_under_any_number(
    tmp_path: Path, change: Mapping[str, Any], code: str, version: str
) -> None:
    diff = compared(tmp_path, version, change)
    assert diff["version_class"] == "reject"
    assert code in [finding["code"] for finding in diff["unsafe"]]
    assert diff["version_refused"] == (
        f"ctxpack.support@{version} may not be published under any number: the gates report errors in it"
    )


@proves("context-pack:ci:diff-by-layer")
def test_people_read_each_change_below_its_layer_with_what_it_does(tmp_path: Path) -> None:
    result = ctx("diff", example(tmp_path), numbered(tmp_path, "1.1.0", REDACTION, *VOID), cwd=tmp_path)
    assert (result.status, result.err) == (0, "")
    assert result.out == (
        "Comparing ctxpack.support@1.0.0 (old.json) vs ctxpack.support@1.1.0 (new.json)\n"
        "\n"
        "pack_meta\n"
        "  patch  pack_version was 1.0.0, now 1.1.0 (nothing changes for a run)\n"
        "policy_layer\n"
        "  minor  new redaction aadhaar (less is possible)\n"
        "tooling_layer\n"
        "  major  adapter adp_payments: declares void as well (runs behave in another way)\n"
        "  major  new write capability adp_payments.void for support.refund (more is possible)\n"
        "\n"
        "4 changes. Least version class: major\n"
        "Not ready to publish: ctxpack.support@1.0.0 to ctxpack.support@1.1.0 is a minor version, and the change is "
        "major: adapter adp_payments: declares void as well; new write capability adp_payments.void for support.refund "
        "(raise the major number)\n"
    )


def test_an_unsafe_pack_is_told_with_the_law_and_the_place(tmp_path: Path) -> None:
    new = numbered(tmp_path, "2.0.0", {"at": f"{PERMISSIONS}/2/requires_approval_gate"})
    screen = ctx("diff", example(tmp_path), new, cwd=tmp_path).out
    rows = (tmp_path / new).read_text(encoding="utf-8").splitlines()
    line = rows.index('        "permission_id": "p_issue_refund",')
    assert (
        "\nreject: under any number, because the gates report 1 error\n"
        f"  new.json:{line}:7  risk/destructive_without_gate  {PERMISSIONS}/2\n"
        "      adp_payments.issue_refund is destructive and names no approval gate\n"
        "      -> name an approval gate in requires_approval_gate\n"
    ) in screen
    assert "Least version class: reject\nNot ready to publish: " in screen


def test_a_bound_and_a_condition_are_told_in_words(tmp_path: Path) -> None:
    bound = setting(f"{PERMISSIONS}/2/arg_constraints/amount_inr/max", 60000)
    when = setting(f"{GATE}/when", {">": [{"var": "request.context.refund_amount"}, 2000]})
    screen = ctx("diff", example(tmp_path), numbered(tmp_path, "2.0.0", bound, when), cwd=tmp_path).out
    assert (
        "  minor  approval gate GATE_FINANCE_APPROVAL: its condition holds in more cases: "
        "was request.context.refund_amount > 3000, now request.context.refund_amount > 2000 (less is possible)\n"
    ) in screen
    assert (
        "  major  permission adp_payments.issue_refund: argument amount_inr may now be up to 60000 (was 50000) "
        "(more is possible)\n"
    ) in screen
    assert "Not ready" not in screen


@pytest.mark.parametrize("allow", [True, None])
def test_to_allow_or_to_say_it_no_longer_is_told(tmp_path: Path, allow: object) -> None:
    silent: Mapping[str, Any] = {"at": f"{RULES}/1/then/allow"}
    old = pack_file(tmp_path / "old.json", *([silent] if allow else []))
    new = numbered(tmp_path, "2.0.0", *([] if allow else [silent]))
    diff, _ = answer("diff", old, new, cwd=tmp_path, status=0)
    (change,) = [entry for entry in diff["entries"] if entry["layer"] == "policy_layer"]
    assert change["version_class"] == ("major" if allow else "minor")
    assert change["description"].startswith("rule R_HIGH_VALUE_REQUIRES_APPROVAL, then: ")


def test_what_differs_ends_with_12_when_that_is_asked_for(tmp_path: Path) -> None:
    old, new = example(tmp_path), numbered(tmp_path, "1.0.1")
    assert ctx("diff", old, new, cwd=tmp_path).status == 0
    assert ctx("diff", old, new, "--exit-code", cwd=tmp_path).status == 12
    assert ctx("diff", old, old, "--exit-code", cwd=tmp_path).status == 0


def test_the_same_pack_has_no_differences_whatever_its_file_looks_like(tmp_path: Path) -> None:
    assert ctx("new", "a.yaml", cwd=tmp_path).status == 0
    assert ctx("new", "b.json", cwd=tmp_path).status == 0
    same = "No differences found. Both are ctxpack.support@1.0.0, in the same canonical form.\n"
    for pair in (("a.yaml", "a.yaml"), ("a.yaml", "b.json"), ("b.json", "./a.yaml")):
        assert ctx("diff", *pair, cwd=tmp_path).out == same
    diff, _ = answer("diff", "a.yaml", "b.json", cwd=tmp_path, status=0)
    assert (diff["has_drift"], diff["version_class"], diff["version_refused"]) == (False, None, None)


def test_parts_in_another_order_are_another_pack_without_a_change(tmp_path: Path) -> None:
    old = example(tmp_path)
    document = json.loads((tmp_path / old).read_text(encoding="utf-8"))
    document["tooling_layer"]["permissions"].reverse()
    (tmp_path / "new.json").write_text(json.dumps(document), encoding="utf-8")
    result = ctx("diff", old, "new.json", "--exit-code", cwd=tmp_path)
    assert result.status == 12
    assert (
        "\nOnly the order of parts differs.\n\n0 changes. Least version class: patch\nNot ready to publish: "
        in result.out
    )


def test_two_packs_are_not_two_versions_of_one(tmp_path: Path) -> None:
    diff = compared(tmp_path, "2.0.0", setting("/pack_meta/pack_id", "ctxpack.other"))
    assert (diff["pack_a"], diff["pack_b"]) == ("ctxpack.support@1.0.0", "ctxpack.other@2.0.0")
    assert diff["version_class"] == "reject"
    assert diff["version_refused"] == "ctxpack.support and ctxpack.other are two packs, not two versions of one"


def test_no_store_is_needed_and_none_is_made(tmp_path: Path) -> None:
    old = example(tmp_path)
    assert ctx("diff", old, old, cwd=tmp_path).status == 0
    assert [path.name for path in tmp_path.iterdir()] == [old]


def test_nothing_in_a_file_speaks_to_the_terminal(tmp_path: Path) -> None:
    new = numbered(tmp_path, "1.0.1", setting("/pack_meta/tenant/name", "Acme\x1b[31m\nred\u202e"))
    screen = ctx("diff", example(tmp_path), new, cwd=tmp_path).out
    assert "now Acme\\x1b[31m\\nred\\u202e" in screen
    assert all(c.isprintable() or c == "\n" for c in screen)


@pytest.mark.parametrize(
    ("args", "status", "code", "message"),
    [
        (["old.json", "nope.json"], 13, "document_unreadable", "nope.json"),
        (["nope.json", "old.json"], 13, "document_unreadable", "nope.json"),
        (["./folder", "old.json"], 13, "document_unreadable", "folder"),
        (["old.json", "bad.yaml"], 10, "yaml_refused", "bad.yaml"),
        (["log.json", "old.json"], 10, "not_a_context_pack", "'ctx pack' makes an execution pack of a log"),
        (["old.json", "log.json"], 10, "not_a_context_pack", "it looks like the log of a run"),
        (["old.json", "other.json"], 10, "not_a_context_pack", "other.json:1:1: not a context pack: the layer"),
        (["old.json", "list.json"], 10, "not_a_context_pack", "list.json:1:1: not a context pack: must be an object"),
        (["old.json", "abcd1234"], 2, "usage", "a run is compared with a run, and a context pack with a context pack"),
        (["ctxpack.support@1.0.0", "old.json"], 13, "store_not_found", "ctx init"),
        (["pk_abcd2345", "old.json"], 2, "usage", "a handoff pack is compared with another one only"),
        (["old.json", "zz"], 2, "reference_invalid", "zz"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_compared_is_one_error(
    tmp_path: Path, args: list[str], status: int, code: str, message: str
) -> None:
    example(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "bad.yaml").write_text("a: [1\nb: }", encoding="utf-8")
    (tmp_path / "log.json").write_text('{"model": {"identifier": "m"}, "system_prompt": "s"}', encoding="utf-8")
    (tmp_path / "other.json").write_text('{"hello": 1}', encoding="utf-8")
    (tmp_path / "list.json").write_text("[]", encoding="utf-8")
    assert message in one_error_line(ctx("diff", *args, cwd=tmp_path), status, code)


def test_a_pack_with_one_wrong_field_is_refused_with_its_line(tmp_path: Path) -> None:
    broken = pack_file(tmp_path / "broken.json", setting("/pack_meta/ttl_seconds", "a day"))
    line = one_error_line(ctx("diff", example(tmp_path), broken, cwd=tmp_path), 10, "not_a_context_pack")
    row = 1 + (tmp_path / broken).read_text(encoding="utf-8").split("ttl_seconds")[0].count("\n")
    assert f"broken.json:{row}:" in line
