"""Before a verb signs, it shows what it signs and asks; a script says --yes, or which bytes it means."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import cases
from tests.surfaces.commands import Result, ctx
from tests.surfaces.registries import at_office, pack_file, prepared
from tests.surfaces.sample import one_error_line
from tests.surfaces.test_key_access import typed
from tests.unit.registry.desk import NARROWER, version
from tests.unit.trust.world import key_of

SUPPORT = "ctxpack.support"
AUTHOR = key_of("author").public_key.key_id
REVIEW = ("review", f"{SUPPORT}@3.0.0", "--role", "security", "--approve", "--reason", "sound", "--key", "./sec.pem")
SIGN = ("sign", f"{SUPPORT}@4.0.0", "--key", "./pub.pem")
PUBLISH = ("publish", f"{SUPPORT}@5.0.0", "--key", "./pub.pem")
UNPIN = ("unpin", "prod", SUPPORT, "--reason", "moved", "--key", "./ops.pem")
REVOKE = ("revoke", f"{SUPPORT}@1.1.0", "--reason", "it leaks", "--key", "./pub.pem")
DEPRECATE = ("deprecate", f"{SUPPORT}@1.1.0", "--reason", "old", "--key", "./pub.pem")


@pytest.fixture
def store(registry_store: Path) -> Path:
    return registry_store


def streams(folder: Path) -> dict[str, int]:
    with at_office(folder) as here:
        return here.streams()


def answer(result: Result) -> Any:  # noqa: ANN401  any JSON
    assert (result.status, result.err) == (0, ""), result
    return json.loads(result.raw)


def digest_of(folder: Path, number: str) -> str:
    drafts = answer(ctx("packs", "--drafts", "--json", cwd=folder))["drafts"]
    return str(next(draft["digest"] for draft in drafts if draft["ref"] == f"{SUPPORT}@{number}"))


@cases("line", [REVIEW, SIGN, PUBLISH, UNPIN, REVOKE, DEPRECATE])
def test_without_a_terminal_and_without_a_word_nothing_is_signed(registry_once: Path, line: tuple[str, ...]) -> None:
    before = streams(registry_once)
    assert "--yes" in one_error_line(ctx(*line, cwd=registry_once), 2, "confirmation_needed")
    refused = ctx(*line, "--json", cwd=registry_once)
    assert (refused.status, json.loads(refused.err)["error"]["code"]) == (2, "confirmation_needed")
    assert streams(registry_once) == before


def test_it_shows_name_digest_author_gates_and_what_changed(store: Path) -> None:
    digest = digest_of(store, "3.0.0")
    shown = ctx(*REVIEW, "--yes", cwd=store).out
    for line in (
        f"{SUPPORT}@3.0.0  context pack of tenant_acme_prod\n",
        f"digest      {digest}\n",
        f"author      {AUTHOR[:16]}",
        "state       linted, missing approvals: architecture, security, data, evaluation",
        "gates       passed: 0 errors, ",
        f"follows     {SUPPORT}@1.3.0: 2 changes, at least a major version\n",
        "  major  ",
        f"  to see all: ctx diff {SUPPORT}@1.3.0 {SUPPORT}@3.0.0\n",
    ):
        assert line in shown, shown
    assert shown.index("digest") < shown.index("Missing approvals")
    # The command that it names works.
    assert ctx("diff", f"{SUPPORT}@1.3.0", f"{SUPPORT}@3.0.0", cwd=store).status == 0


def test_a_machine_gets_the_same_with_its_answer(store: Path) -> None:
    preview = answer(ctx(*REVIEW, "--yes", "--json", cwd=store))["preview"]
    assert (preview["ref"], preview["digest"], preview["kind"]) == (
        f"{SUPPORT}@3.0.0",
        digest_of(store, "3.0.0"),
        "context_pack",
    )
    assert (preview["author"], preview["issuer"], preview["before"]) == (
        AUTHOR,
        "tenant_acme_prod",
        f"{SUPPORT}@1.3.0",
    )
    assert (preview["gates"]["passed"], preview["version_class"], len(preview["changes"])) == (True, "major", 2)


def test_the_first_version_is_shown_by_its_parts(tmp_path: Path) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    prepared(tmp_path)
    other = version("1.0.0", {"at": "/pack_meta/pack_id", "value": "ctxpack.other"})
    other["contract_meta"]["contract_name"] = "ctxpack.other"
    (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")
    assert ctx("lint", "other.json", "--record", "--key", "./author.pem", cwd=tmp_path).status in {0, 10}
    preview = answer(ctx("packs", "--drafts", "--json", cwd=tmp_path))["drafts"][0]
    assert preview["ref"] == "ctxpack.other@1.0.0"
    shown = typed(["sign", "other.json", "--key", "./pub.pem"], ["n"], cwd=tmp_path)[0]
    assert "follows     no version: it is the first" in shown
    assert "decision_layer     1 decision_specs" in shown
    assert f"ctx cat {preview['digest']}" in shown


def test_at_a_terminal_it_asks_and_only_yes_is_yes(store: Path) -> None:
    before = streams(store)
    for reply in ("n", "", "no", "yep"):
        shown, status = typed(list(REVIEW), [reply], cwd=store)
        assert "Approve these bytes as security? [y/N] " in shown
        assert (status, "confirmation_declined" in shown, "nothing was signed" in shown) == (10, True, True)
        assert shown.index(f"digest      {digest_of(store, '3.0.0')}") < shown.index("[y/N]")
    assert streams(store) == before
    shown, status = typed(list(REVIEW), ["y"], cwd=store)
    assert (status, "Missing approvals: architecture, data" in shown) == (0, True)


def test_at_a_terminal_the_bytes_are_shown_before_the_key_is_used_also_with_yes(store: Path) -> None:
    shown, status = typed([*SIGN, "--yes"], [], cwd=store)
    assert (status, "[y/N]" in shown) == (0, False)
    assert shown.index("digest ") < shown.index("signed\x1b[0m  sha256:")


@cases(
    "line,question",
    [
        (SIGN, "Sign these bytes for tenant_acme_prod? [y/N] "),
        (PUBLISH, "Publish these bytes? [y/N] "),
        (UNPIN, "prod: new runs there are refused until another version is pinned"),
        (REVOKE, "Revoke this version? [y/N] "),
        (DEPRECATE, "pinned in   prod: new runs there are refused until another is pinned"),
    ],
)
def test_each_verb_asks_its_question(registry_once: Path, line: tuple[str, ...], question: str) -> None:
    before = streams(registry_once)
    shown, status = typed(list(line), ["n"], cwd=registry_once)
    assert (question in shown, status) == (True, 10), shown
    assert streams(registry_once) == before


def test_the_digest_says_which_bytes_are_meant(store: Path) -> None:
    right, wrong = digest_of(store, "3.0.0"), digest_of(store, "4.0.0")
    before = streams(store)
    line = one_error_line(ctx(*REVIEW, "--digest", wrong, cwd=store), 10, "digest_mismatch")
    assert right in line
    assert wrong in line
    one_error_line(ctx(*REVIEW, "--yes", "--digest", wrong, cwd=store), 10, "digest_mismatch")
    one_error_line(ctx(*REVIEW, "--digest", "sha256:12", cwd=store), 2, "id_invalid")
    assert streams(store) == before
    assert answer(ctx(*REVIEW, "--digest", right, "--json", cwd=store))["digest"] == right


def test_a_pin_shows_what_it_replaces_and_takes_a_digest_too(store: Path) -> None:
    pin = ("pin", "prod", f"{SUPPORT}@1.2.0", "--key", "./ops.pem")
    versions = answer(ctx("packs", "--json", cwd=store))["versions"]
    digests = {entry["ref"]: entry["digest"] for entry in versions}
    right, wrong = digests[f"{SUPPORT}@1.2.0"], digests[f"{SUPPORT}@1.3.0"]
    one_error_line(ctx(*pin, "--digest", wrong, cwd=store), 10, "digest_mismatch")
    shown = ctx(*pin, "--digest", right, cwd=store).out
    assert f"digest      {right}\nreplaces    {SUPPORT}@1.1.0 in prod\n" in shown


def test_what_no_environment_pins_is_withdrawn_without_a_question(store: Path) -> None:
    for verb, number in (("deprecate", "1.2.0"), ("revoke", "1.3.0")):
        result = ctx(verb, f"{SUPPORT}@{number}", "--reason", "old", "--key", "./pub.pem", cwd=store)
        assert result.status == 0, result


def test_a_revocation_names_every_environment_that_loses_the_version(store: Path) -> None:
    assert ctx("pin", "staging", f"{SUPPORT}@1.1.0", "--key", "./ops.pem", cwd=store).status == 0
    shown = ctx(*REVOKE, "--yes", cwd=store)
    assert "pinned in   prod, staging: new runs there are refused" in shown.out
    assert shown.err.count("new runs there are refused until it pins another version") == 2


def test_of_many_changes_a_screenful_is_shown_and_the_rest_is_counted(store: Path) -> None:
    changes = [
        {"at": "/business_context/non_negotiables/-", "value": f"Sentence {word} holds."}
        for word in "abcdefghijklmnopqrst"
    ]
    file = pack_file(store, "many.json", "6.0.0", NARROWER, *changes)
    assert ctx("lint", file, "--record", "--key", "./author.pem", cwd=store).status == 0
    review = ("review", file, *REVIEW[2:], "--yes")
    shown = ctx(*review, cwd=store).out
    assert "9 more changes are not shown; to see all: ctx diff ctxpack.support@1.3.0 many.json" in shown
    assert len(answer(ctx(*review, "--json", cwd=store))["preview"]["changes"]) == 21


def test_of_two_drafts_of_one_name_the_next_command_names_the_bytes(store: Path) -> None:
    for name, *changes in (("one.json",), ("two.json", NARROWER)):
        file = pack_file(store, name, "8.0.0", *changes)
        assert ctx("lint", file, "--record", "--key", "./author.pem", cwd=store).status == 0
    with at_office(store) as here:
        digest = str(here.record(version("8.0.0")).digest)
        for by, role in (("arch", "architecture"), ("dat", "data"), ("eva", "evaluation")):
            here.review(digest, by, role)
    shown = ctx("review", "one.json", *REVIEW[2:], "--yes", cwd=store).out
    assert f"Next: ctx sign {digest} --key NAME" in shown
    # A draft is compared by its digest, too.
    compared = ctx("diff", f"{SUPPORT}@1.3.0", digest, cwd=store)
    assert (compared.status, "Least version class: major" in compared.out) == (0, True), compared
