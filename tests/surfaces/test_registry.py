"""The verbs of the registry: from a file to a pinned version, and every refusal's status and code."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextplane.trust.keyring_events import KeyRevocation
from tests.support.cases import cases
from tests.support.catalog_rows import SqliteRows
from tests.surfaces.commands import Result, ctx
from tests.surfaces.registries import at_office, pack_file
from tests.surfaces.sample import one_error_line
from tests.unit.registry.desk import NARROWER, OVERLAY
from tests.unit.trust.world import key_of

SUPPORT = "ctxpack.support"
WHY = ("--reason", "because")


@pytest.fixture
def store(registry_store: Path) -> Path:
    (registry_store / "overlay.json").write_text(json.dumps(OVERLAY), encoding="utf-8")
    return registry_store


def json_answer(*args: str, cwd: Path, by: str = "") -> Any:  # noqa: ANN401  any JSON
    result = acted(*args, "--json", cwd=cwd, by=by)
    assert (result.status, result.err) == (0, ""), result
    return json.loads(result.raw)


CONFIRMED = frozenset({"review", "sign", "publish", "unpin", "deprecate", "revoke"})


def acted(*args: str, cwd: Path, by: str = "") -> Result:
    """Run a command with a key. A verb that asks is told yes."""
    yes = ("--yes",) if args[0] in CONFIRMED else ()
    return ctx(*args, *yes, *(("--key", f"./{by}.pem") if by else ()), cwd=cwd)


def test_from_a_file_to_a_pinned_version_and_back(store: Path) -> None:
    file = pack_file(store, "next.json", "6.0.0")
    answer = json_answer("lint", file, "--record", cwd=store, by="author")
    assert (answer["ref"], answer["stage"], answer["changed"]) == (f"{SUPPORT}@6.0.0", "linted", True)
    for by, role in (("arch", "architecture"), ("sec", "security"), ("dat", "data"), ("eva", "evaluation")):
        answer = json_answer("review", file, "--role", role, "--approve", *WHY, cwd=store, by=by)
    assert (answer["stage"], answer["missing"]) == ("reviewed", [])
    assert json_answer("sign", answer["digest"], cwd=store, by="pub")["stage"] == "signed"
    out = json_answer("publish", f"{SUPPORT}@6.0.0", cwd=store, by="pub")
    assert (out["stage"], [event["kind"] for event in out["events"]]) == ("published", ["published"])
    pinned = json_answer("pin", "prod", f"{SUPPORT}@6.0.0", cwd=store, by="ops")
    assert (pinned["before"], pinned["digest"]) == (f"{SUPPORT}@1.1.0", answer["digest"])
    back = json_answer("rollback", "prod", SUPPORT, *WHY, cwd=store, by="ops")
    assert (back["ref"], back["golden"]) == (f"{SUPPORT}@1.1.0", "not_run")
    assert isinstance(back["milliseconds"], int)
    assert json_answer("unpin", "prod", SUPPORT, *WHY, cwd=store, by="ops")["ref"] == f"{SUPPORT}@1.1.0"


def test_what_is_listed_shown_and_told_of_the_past(store: Path) -> None:
    listed = json_answer("packs", cwd=store)["versions"]
    assert [(version["ref"], version["stage"], version["pinned_in"]) for version in listed] == [
        (f"{SUPPORT}@1.0.0", "published", []),
        (f"{SUPPORT}@1.1.0", "published", ["prod"]),
        (f"{SUPPORT}@1.2.0", "published", []),
        (f"{SUPPORT}@1.3.0", "published", []),
    ]
    drafts = json_answer("packs", "--drafts", cwd=store)["drafts"]
    assert [(draft["ref"], draft["stage"]) for draft in drafts] == [
        (f"{SUPPORT}@3.0.0", "linted"),
        (f"{SUPPORT}@4.0.0", "reviewed"),
        (f"{SUPPORT}@5.0.0", "signed"),
    ]
    shown = json_answer("show", f"{SUPPORT}@prod", cwd=store)
    assert (shown["ref"], shown["stage"], shown["gates"]["passed"]) == (f"{SUPPORT}@1.1.0", "published", True)
    assert {review["role"] for review in shown["reviews"]} == {"architecture", "security", "data", "evaluation"}
    assert [pin["environment"] for pin in shown["pins"]] == ["prod"]
    assert "policy_layer" in shown["layers"]
    kinds = ["drafted", "linted", *["reviewed"] * 4, "signed", "published", "pinned"]
    assert [event["kind"] for event in shown["history"]] == kinds
    assert [event["kind"] for event in json_answer("log", f"{SUPPORT}@1.1.0", cwd=store)["events"]] == kinds
    for args in (["packs"], ["packs", "--drafts"], ["show", f"{SUPPORT}@3.0.0"], ["log", f"{SUPPORT}@prod"]):
        result = ctx(*args, cwd=store)
        assert (result.status, result.err) == (0, "")
        assert SUPPORT in result.out or "drafted" in result.out
    assert "missing approvals:" in ctx("packs", "--drafts", cwd=store).out


def test_a_name_is_for_people_and_leads_to_one_version(store: Path) -> None:
    assert json_answer("pin", "stable", f"{SUPPORT}@1.0.0", "--alias", cwd=store, by="ops")["ref"] == f"{SUPPORT}@1.0.0"
    assert json_answer("show", f"{SUPPORT}@stable", cwd=store)["aliases"] == ["stable"]
    json_answer("unpin", "stable", SUPPORT, "--alias", *WHY, cwd=store, by="ops")
    one_error_line(ctx("show", f"{SUPPORT}@stable", cwd=store), 13, "alias_not_found")


def test_an_overlay_goes_the_same_way(store: Path) -> None:
    json_answer("pin", "staging", f"{SUPPORT}@1.0.0", cwd=store, by="ops")
    answer = json_answer("lint", "overlay.json", "--record", cwd=store, by="author")
    assert (answer["ref"], answer["missing"]) == ("ovl.staging@1.0.0", ["architecture", "security"])
    for by, role in (("arch", "architecture"), ("sec", "security")):
        json_answer("review", "overlay.json", "--role", role, "--approve", *WHY, cwd=store, by=by)
    json_answer("sign", "overlay.json", cwd=store, by="pub")
    json_answer("publish", "overlay.json", cwd=store, by="pub")
    json_answer("pin", "staging", "ovl.staging@1.0.0", cwd=store, by="ops")
    assert json_answer("packs", "ovl.staging", cwd=store)["versions"][0]["pinned_in"] == ["staging"]
    wrong = acted("unpin", "staging", "ovl.staging", *WHY, cwd=store, by="ops")
    assert f"ctx unpin staging {SUPPORT} --overlay ovl.staging" in one_error_line(wrong, 13, "pin_not_found")
    again = acted("pin", "staging", f"{SUPPORT}@1.1.0", cwd=store, by="ops")
    assert again.out.endswith(f"instead of {SUPPORT}@1.0.0, with ovl.staging@1.0.0.\n")
    away = acted("unpin", "staging", SUPPORT, *WHY, cwd=store, by="ops").out
    assert "ovl.staging@1.0.0 stays for the version that is pinned next" in away
    assert f"ctx unpin staging {SUPPORT} --overlay ovl.staging" in away
    json_answer("unpin", "staging", SUPPORT, "--overlay", "ovl.staging", *WHY, cwd=store, by="ops")
    assert json_answer("packs", "ovl.staging", cwd=store)["versions"][0]["pinned_in"] == []


def test_what_does_not_pass_is_recorded_as_a_draft_and_refused(store: Path) -> None:
    wrong = {"at": "/tooling_layer/permissions/0/adapter_id", "value": "adp_nowhere"}
    file = pack_file(store, "wrong.json", "7.0.0", wrong)
    result = acted("lint", file, "--record", cwd=store, by="author")
    assert result.status == 10
    assert "wrong.json:" in result.out
    assert "        -> " in result.out, "with its cure"
    assert "draft" in result.out
    assert "did not pass its gates" in ctx("packs", "--drafts", cwd=store).out
    one_error_line(acted("lint", file, "--record", "--sarif", cwd=store, by="author"), 2, "usage")
    early = acted("review", file, "--role", "security", "--approve", *WHY, cwd=store, by="sec")
    assert "'ctx lint FILE --record'" in one_error_line(early, 10, "lifecycle_transition_refused")


def test_a_file_that_is_no_artifact_is_told_with_its_place(store: Path) -> None:
    (store / "wrong.yaml").write_text("pack_meta:\n  pack_id: 3\n", encoding="utf-8")
    for args in (["lint", "wrong.yaml", "--record"], ["sign", "wrong.yaml"]):
        message = one_error_line(acted(*args, cwd=store, by="author"), 10, "artifact_invalid")
        assert "wrong.yaml:1:1: " in message
        assert "'ctx lint wrong.yaml' lists" in message


def test_a_withdrawn_version_says_where_it_is_still_pinned(store: Path) -> None:
    result = acted("deprecate", f"{SUPPORT}@prod", *WHY, cwd=store, by="pub")
    assert (result.status, result.err.count("prod pins")) == (0, 1)
    answer = json_answer("revoke", f"{SUPPORT}@1.1.0", *WHY, cwd=store, by="pub")
    assert (answer["stage"], answer["changed"]) == ("revoked", True)
    assert json_answer("revoke", f"{SUPPORT}@1.1.0", *WHY, cwd=store, by="pub")["changed"] is False
    assert json_answer("show", f"{SUPPORT}@1.1.0", cwd=store)["reason"] == "because"


def test_a_deprecated_version_that_is_recorded_again_stays_deprecated(store: Path) -> None:
    json_answer("deprecate", f"{SUPPORT}@1.0.0", *WHY, cwd=store, by="pub")
    again = acted("lint", pack_file(store, "again.json", "1.0.0"), "--record", cwd=store, by="author")
    assert (again.status, "deprecated" in again.out, "ctx pin" in again.out) == (0, True, False)


def test_refreshes_and_incidents(store: Path) -> None:
    opened = json_answer("refresh", "open", "ADAPTER_SCHEMA_UPDATED", "adp_orders", *WHY, cwd=store, by="pub")
    assert len(opened["opened"]) == 4
    one_error_line(acted("pin", "prod", f"{SUPPORT}@1.0.0", cwd=store, by="ops"), 10, "refresh_open")
    assert len(json_answer("refresh", "list", cwd=store)["open"]) == 4
    listed = ctx("refresh", "list", "--quiet", cwd=store).out
    assert listed == "".join(f"{SUPPORT}@1.{n}.0\n" for n in range(4))
    ran = json_answer("refresh", "run", f"{SUPPORT}@1.0.0", cwd=store, by="pub")
    assert (ran["closed"], {action["passed"] for action in ran["actions"]}) == (True, {True})
    json_answer("pin", "prod", f"{SUPPORT}@1.0.0", cwd=store, by="ops")
    json_answer("refresh", "open", "MODEL_CONFIG_UPDATED", "*", *WHY, cwd=store, by="pub")
    waiting = acted("refresh", "run", f"{SUPPORT}@1.0.0", cwd=store, by="pub")
    assert (waiting.status, "did not run" in waiting.out) == (10, True)
    json_answer("pin", "dev", "--open", cwd=store, by="ops")
    json_answer("pin", "dev", f"{SUPPORT}@1.2.0", cwd=store, by="ops")
    json_answer("refresh", "incident", f"{SUPPORT}@1.0.0", "INC-7", *WHY, cwd=store, by="ops")
    assert json_answer("show", f"{SUPPORT}@1.0.0", cwd=store)["incidents"] == ["INC-7"]
    one_error_line(acted("promote", "prod", SUPPORT, cwd=store, by="ops"), 10, "promotion_incident_open")
    json_answer("refresh", "settle", f"{SUPPORT}@1.0.0", "INC-7", *WHY, cwd=store, by="ops")
    with at_office(store) as here:
        here.observe(here.desk.named_version(f"{SUPPORT}@1.0.0"), "prod")
    one_error_line(acted("promote", "prod", SUPPORT, cwd=store, by="ops"), 10, "promotion_without_evaluation")


def test_whoever_acts_is_told_what_comes_next(store: Path) -> None:
    rejected = acted("review", f"{SUPPORT}@3.0.0", "--role", "security", "--reject", *WHY, cwd=store, by="sec")
    assert "Rejected as: security\n" in rejected.out
    assert "rejected as security: because\n" in ctx("packs", "--drafts", cwd=store).out
    signed = acted("sign", f"{SUPPORT}@4.0.0", cwd=store, by="pub")
    assert signed.out.endswith(f"Next: ctx publish {SUPPORT}@4.0.0 --key NAME\n")
    published = acted("publish", f"{SUPPORT}@5.0.0", cwd=store, by="pub")
    assert published.out.endswith(f"Next: ctx pin ENV {SUPPORT}@5.0.0 --key NAME\n")


def test_a_version_is_compared_by_its_name_with_another_and_with_a_file(store: Path) -> None:
    file = pack_file(store, "next.json", "1.1.1")
    whole = ctx("diff", f"{SUPPORT}@1.0.0", f"{SUPPORT}@prod", cwd=store)
    assert (whole.status, whole.out.splitlines()[0]) == (0, f"Comparing {SUPPORT}@1.0.0 vs {SUPPORT}@1.1.0")
    diff = json_answer("diff", f"{SUPPORT}@1.1.0", file, cwd=store)
    assert (diff["pack_a"], diff["pack_b"], diff["version_class"]) == (f"{SUPPORT}@1.1.0", f"{SUPPORT}@1.1.1", "major")
    assert json_answer("diff", f"{SUPPORT}@1.0.0", f"{SUPPORT}@3.0.0", cwd=store)["has_drift"], (
        "a draft has a name as well"
    )
    one_error_line(
        ctx("lint", file, "--against", f"{SUPPORT}@1.1.0", "--quiet", cwd=store), 10, "version_bump_too_small"
    )
    assert ctx("lint", file, "--against", f"{SUPPORT}@1.0.0", cwd=store).status == 0
    assert "1.1.0" in ctx("check", file, "--against", f"{SUPPORT}@prod", cwd=store).out


def test_a_pin_by_a_key_that_is_revoked_from_before_then_on_is_marked(store: Path) -> None:
    assert json_answer("packs", cwd=store)["versions"][1]["doubtful_in"] == []
    lost = KeyRevocation(key_id=key_of("ops").public_key.key_id, revoked_from="2026-01-01T00:00:00Z", reason="lost")
    with at_office(store) as here:
        here.change_keys(lost)
    assert json_answer("packs", cwd=store)["versions"][1]["doubtful_in"] == ["prod"]
    assert "must be pinned again in prod" in ctx("packs", cwd=store).out
    assert "which is revoked from before that time" in ctx("show", f"{SUPPORT}@prod", cwd=store).out


def test_of_two_drafts_one_is_withdrawn_and_the_name_stands_for_the_other(store: Path) -> None:
    for name, *changes in (("one.json",), ("two.json", NARROWER)):
        json_answer("lint", pack_file(store, name, "8.0.0", *changes), "--record", cwd=store, by="author")
    review = ("review", f"{SUPPORT}@8.0.0", "--role", "security", "--approve", *WHY)
    one_error_line(acted(*review, cwd=store, by="sec"), 2, "artifact_ambiguous")
    one_error_line(acted("withdraw", "one.json", *WHY, cwd=store, by="sec"), 11, "registry_role_missing")
    gone = json_answer("withdraw", "one.json", *WHY, cwd=store, by="author")
    assert (gone["stage"], [event["kind"] for event in gone["events"]]) == ("withdrawn", ["draft_withdrawn"])
    assert "Already done" in acted("withdraw", "one.json", *WHY, cwd=store, by="author").out
    assert json_answer(*review, cwd=store, by="sec")["digest"] != gone["digest"]
    drafts = json_answer("packs", "--drafts", cwd=store)["drafts"]
    assert gone["digest"] not in {draft["digest"] for draft in drafts}
    published = acted("withdraw", f"{SUPPORT}@1.0.0", *WHY, cwd=store, by="author")
    one_error_line(published, 10, "lifecycle_transition_refused")


def test_a_list_says_where_no_run_gets_what_is_pinned(store: Path) -> None:
    assert "pinned in prod" in acted("packs", cwd=store).out
    json_answer("revoke", f"{SUPPORT}@1.1.0", *WHY, cwd=store, by="pub")
    listed = acted("packs", cwd=store)
    assert (listed.status, "pinned, not served: prod (version_revoked)" in listed.out) == (0, True)
    assert "pinned in" not in listed.out
    entry = next(version for version in json_answer("packs", cwd=store)["versions"] if version["pinned_in"])
    assert entry["unserved_in"] == [{"environment": "prod", "code": "version_revoked"}]
    assert "not served (version_revoked)" in acted("show", f"{SUPPORT}@1.1.0", cwd=store).out


def object_file(store: Path, digest: str) -> Path:
    shard, name = digest.removeprefix("sha256:")[:2], digest.removeprefix("sha256:")[2:]
    return store / ".ctx" / "objects" / shard / name


def test_a_list_does_not_end_with_0_if_what_is_pinned_is_lost_or_damaged(store: Path) -> None:
    """A revocation is a decision, which a list shows. This is damage."""
    entry = next(version for version in json_answer("packs", cwd=store)["versions"] if version["pinned_in"])
    file = object_file(store, entry["digest"])
    data = file.read_bytes()
    file.unlink()
    listed = acted("packs", "--json", cwd=store)
    lost = next(version for version in json.loads(listed.raw)["versions"] if version["pinned_in"])
    assert (listed.status, lost["unserved_in"]) == (13, [{"environment": "prod", "code": "object_not_found"}])
    file.write_bytes(data + b" ")
    listed = acted("packs", cwd=store)
    assert (listed.status, "pinned, not served: prod (object_corrupt)" in listed.out) == (11, True)
    file.write_bytes(data)
    assert [acted(*command, cwd=store).status for command in (("packs",), ("show", entry["ref"]))] == [0, 0]


def test_a_pack_is_not_served_where_its_overlay_is_not(store: Path) -> None:
    json_answer("pin", "staging", f"{SUPPORT}@1.0.0", cwd=store, by="ops")
    json_answer("lint", "overlay.json", "--record", cwd=store, by="author")
    for role, by in (("architecture", "arch"), ("security", "sec")):
        json_answer("review", "overlay.json", "--role", role, "--approve", *WHY, cwd=store, by=by)
    json_answer("sign", "overlay.json", cwd=store, by="pub")
    json_answer("publish", "overlay.json", cwd=store, by="pub")
    json_answer("pin", "staging", "ovl.staging@1.0.0", cwd=store, by="ops")
    file = object_file(store, json_answer("show", "ovl.staging@1.0.0", cwd=store)["digest"])
    data = file.read_bytes()
    file.unlink()
    shown = acted("show", f"{SUPPORT}@1.0.0", cwd=store)
    assert (shown.status, "not served (object_not_found)" in shown.out) == (13, True)
    file.write_bytes(data)
    revoked = acted("revoke", "ovl.staging@1.0.0", *WHY, cwd=store, by="pub")
    assert "pinned in   staging: new runs there are refused" in revoked.out
    lines = acted("packs", cwd=store).out.splitlines()
    assert [line.split()[0] for line in lines if "pinned, not served: staging (version_revoked)" in line] == [
        f"{SUPPORT}@1.0.0",
        "ovl.staging@1.0.0",
    ]


def test_a_version_that_cannot_be_read_is_listed_with_its_problem_and_its_status(store: Path) -> None:
    """Somebody who can write the store, and has no key, cuts the end of a stream."""
    json_answer("deprecate", f"{SUPPORT}@1.2.0", *WHY, cwd=store, by="pub")
    rows = SqliteRows(store / ".ctx" / "catalog.db")
    assert rows.run("DELETE FROM event WHERE stream = ? AND seq = 2", f"registry/version/{SUPPORT}@1.2.0") == 1
    listed = acted("packs", cwd=store)
    assert (listed.status, f"{SUPPORT}@1.2.0  [registry_stream_cut: " in listed.out) == (11, True), listed
    assert listed.out.count(SUPPORT) == 4  # the others are listed, too
    quiet = acted("packs", "--quiet", cwd=store)
    assert (quiet.status, "registry_stream_cut" in quiet.err) == (11, True)
    answer = acted("packs", "--json", cwd=store)
    problems = [version["problem"] for version in json.loads(answer.raw)["versions"]]
    assert (answer.status, sum(problem is not None for problem in problems)) == (11, 1)


def test_a_rollback_stands_in_the_history_of_the_version_that_is_pinned_again(store: Path) -> None:
    json_answer("rollback", "prod", SUPPORT, *WHY, cwd=store, by="ops")
    assert "pinned again in prod " in ctx("log", f"{SUPPORT}@prod", cwd=store).out.splitlines()[-1]
    assert "pinned again" not in ctx("log", f"{SUPPORT}@1.1.0", cwd=store).out


@cases(
    ("args", "by", "status", "code"),
    [
        (["review", f"{SUPPORT}@3.0.0", "--role", "security", "--approve", *WHY], "author", 10, "reviewer_is_author"),
        (["review", f"{SUPPORT}@3.0.0", "--role", "security", "--approve", *WHY], "arch", 11, "registry_role_missing"),
        (["review", f"{SUPPORT}@3.0.0", "--role", "operator", "--approve", *WHY], "ops", 10, "review_role_unneeded"),
        (["review", f"{SUPPORT}@9.0.0", "--role", "security", "--approve", *WHY], "sec", 13, "artifact_not_found"),
        (
            ["review", f"{SUPPORT}@1.0.0", "--role", "security", "--reject", *WHY],
            "sec",
            10,
            "lifecycle_transition_refused",
        ),
        (["review", f"{SUPPORT}@3.0.0", "--role", "security", *WHY], "sec", 2, "usage"),
        (["review", f"{SUPPORT}@3.0.0", "--role", "security", "--approve"], "sec", 2, "usage"),
        (["review", SUPPORT, "--role", "security", "--approve", *WHY], "sec", 13, "document_unreadable"),
        (["sign", f"{SUPPORT}@3.0.0"], "pub", 10, "lifecycle_transition_refused"),
        (["publish", f"{SUPPORT}@4.0.0"], "pub", 10, "lifecycle_transition_refused"),
        (["publish", f"{SUPPORT}@5.0.0"], "ops", 11, "registry_role_missing"),
        (["publish", f"sha256:{'0' * 64}"], "pub", 13, "artifact_not_found"),
        (["pin", "prod", f"{SUPPORT}@5.0.0"], "ops", 13, "version_not_found"),
        (["pin", "prod", SUPPORT], "ops", 10, "pack_ref_unpinned"),
        (["pin", "prod"], "ops", 2, "usage"),
        (["pin", "prod", f"{SUPPORT}@1.0.0", "--open"], "ops", 2, "usage"),
        (["pin", "no name", f"{SUPPORT}@1.0.0"], "ops", 2, "registry_name_invalid"),
        (["unpin", "dev", SUPPORT, *WHY], "ops", 13, "pin_not_found"),
        (["unpin", "dev", SUPPORT, "--alias", *WHY], "ops", 13, "alias_not_found"),
        (["rollback", "prod", SUPPORT, "1.3.0", *WHY], "ops", 10, "rollback_never_pinned"),
        (["rollback", "prod", SUPPORT], "ops", 2, "usage"),
        (["rollback", "prod", f"{SUPPORT}@1.0.0", *WHY], "ops", 2, "usage"),
        (["unpin", "prod", f"{SUPPORT}@1.0.0", *WHY], "ops", 2, "usage"),
        (["diff", f"{SUPPORT}@1.0.0", f"{SUPPORT}@9.9.9"], "", 13, "version_not_found"),
        (["diff", f"{SUPPORT}@1.0.0", "abcd1234"], "", 2, "usage"),
        (["promote", "dev", SUPPORT], "ops", 13, "pin_not_found"),
        (["deprecate", f"{SUPPORT}@9.0.0", *WHY], "pub", 13, "version_not_found"),
        (["revoke", f"{SUPPORT}@1.0.0"], "pub", 2, "usage"),
        (["revoke", f"{SUPPORT}@1.0.0", "--reason", "x" * 2001], "pub", 2, "registry_change_invalid"),
        (["refresh", "open", "SOMETHING_ELSE", "x", *WHY], "pub", 2, "usage"),
        (["refresh", "open", "MODEL_CONFIG_UPDATED", "*"], "pub", 2, "usage"),
        (["refresh", "run"], "pub", 2, "usage"),
        (["refresh", "run", f"{SUPPORT}@1.0.0"], "pub", 13, "refresh_not_found"),
        (["refresh", "settle", f"{SUPPORT}@1.0.0", "INC-1", *WHY], "ops", 10, "lifecycle_transition_refused"),
        (["show", f"{SUPPORT}@9.9.9"], "", 13, "version_not_found"),
        (["show", f"{SUPPORT}@1.0.0", "--steps"], "", 2, "usage"),
        (["log", f"{SUPPORT}@9.9.9"], "", 13, "version_not_found"),
        (["log", f"{SUPPORT}@nowhere"], "", 13, "alias_not_found"),
        (["sign", f"{SUPPORT}@4.0.0"], "nobody", 13, "key_not_found"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_refused_with_one_line_and_changes_nothing(
    registry_once: Path, args: list[str], by: str, status: int, code: str
) -> None:
    """All cases share one store: if one changed it, the registry would differ."""
    with at_office(registry_once) as here:
        before = here.streams()
        one_error_line(acted(*args, cwd=registry_once, by=by), status, code)
        assert here.streams() == before


def test_a_store_without_a_registry_says_that_there_is_nothing(tmp_path: Path) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    assert "No published versions" in ctx("packs", cwd=tmp_path).out
    assert "No drafts" in ctx("packs", "--drafts", cwd=tmp_path).out
    assert "No refresh" in ctx("refresh", "list", cwd=tmp_path).out
    one_error_line(ctx("show", "a.pack@1.0.0", cwd=tmp_path), 13, "version_not_found")
