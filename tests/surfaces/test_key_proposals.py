"""`ctx keys propose` and `ctx keys approve`: several owners agree, each with a key of their own."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import cases
from tests.surfaces.commands import Result, ctx
from tests.surfaces.keyrings import OPEN, key_list, keys
from tests.surfaces.sample import one_error_line

TWO = ["trust", "--owners", "2"]
CAROL = ["trust", "carol", "--issuer", "acme", "--role", "security", "--role", "log"]


def propose(store: Path, *args: str, by: str = "alice", file: str = "change.json") -> Result:
    return keys("propose", *args, "-o", file, "--key", by, cwd=store)


def approve(store: Path, by: str, *args: str, file: str = "change.json") -> Result:
    return keys("approve", file, "--key", by, "--yes", *args, cwd=store)


def done(result: Result) -> Result:
    assert result.status == 0, result.err
    return result


@pytest.fixture
def store(keyring_store: Path) -> Path:
    """A store of alice and bob, who must both agree."""
    done(keys("trust", "bob", "--issuer", "acme", "--role", "owner", "--key", "alice", cwd=keyring_store))
    one_error_line(keys(*TWO, "--key", "alice", cwd=keyring_store), 11, "keyring_owners_too_few")
    done(propose(keyring_store, *TWO, file="two.json"))
    assert "The change is made" in done(approve(keyring_store, "bob", file="two.json")).out
    return keyring_store


def test_the_list_says_how_many_owners_must_agree(store: Path, keyring_once: Path) -> None:
    assert "keyring: 2 of 2 owners must agree to a change of the keyring" in keys("list", cwd=store).out
    assert {name: key_list(store)[name] for name in ("owner_threshold", "owners")} == {
        "owner_threshold": 2,
        "owners": 2,
    }
    assert "must agree" not in keys("list", cwd=keyring_once).out


def test_one_owner_alone_changes_nothing_and_hears_what_to_do(store: Path) -> None:
    for args in (CAROL, ["revoke", "bob", "--reason", "x"], ["trust", "--owners", "1"]):
        result = keys(*args, "--key", "alice", cwd=store)
        one_error_line(result, 11, "keyring_owners_too_few")
        assert "ctx keys propose" in result.err


def test_a_role_that_may_be_misspelt_is_noted_for_who_proposes_and_who_approves(store: Path) -> None:
    note = "witnes counts only where it is the owner_role of a decision. Did you mean witness?"
    assert note in done(propose(store, "trust", "carol", "--issuer", "acme", "--role", "witnes")).out
    assert note in done(approve(store, "bob")).out


def test_a_proposal_is_shown_approved_and_made(store: Path) -> None:
    shown = done(propose(store, *CAROL)).out
    for text in ("trust key carol for acme", "roles       log, security", "change 5 of the keyring", "alice"):
        assert text in shown
    before = (store / "change.json").read_bytes()
    one_error_line(keys("approve", "change.json", "--key", "bob", cwd=store), 2, "confirmation_needed")
    answer = json.loads(done(approve(store, "alice", "--json")).raw)
    assert (answer["missing"], answer["made"]) == (1, False)
    assert (store / "change.json").read_bytes() == before  # the same owner again
    answer = json.loads(done(approve(store, "bob", "--json")).raw)
    assert (answer["missing"], answer["made"], answer["number"], len(answer["approved_by"])) == (0, True, 5, 2)
    assert answer["registry_signed"] is True
    assert [key["roles"] for key in key_list(store)["issuers"][0]["keys"] if key["name"] == "carol"] == [
        ["log", "security"]
    ]
    assert ctx("verify", "--registry", cwd=store, env=OPEN).status == 0


def test_a_proposal_that_was_made_or_overtaken_is_refused(store: Path) -> None:
    done(propose(store, *CAROL))
    done(propose(store, "trust", "--owners", "1", file="other.json"))
    done(approve(store, "bob"))
    for file in ("change.json", "other.json", "two.json"):
        one_error_line(approve(store, "bob", file=file), 10, "keyring_proposal_outdated")


def test_the_time_of_a_revocation_is_that_of_the_proposal(store: Path) -> None:
    done(propose(store, *CAROL))
    done(approve(store, "bob"))
    proposed = json.loads(done(propose(store, "revoke", "carol", "--reason", "lost", "--json", file="r.json")).raw)
    shown = done(approve(store, "bob", file="r.json")).out
    assert "this key can no longer backdate an act" in shown
    (carol,) = [key for key in key_list(store)["issuers"][0]["keys"] if key["name"] == "carol"]
    assert carol["revoked_from"] == proposed["change"]["revoked_from"]


def test_linked_keys_are_one_owner(store: Path) -> None:
    done(propose(store, "rotate", "alice", "carol"))
    assert "replace key" in done(approve(store, "bob")).out
    done(propose(store, "trust", "--owners", "1", file="one.json"))
    result = done(approve(store, "carol", file="one.json"))
    assert "counts once" in result.err
    assert "1 more owner must approve it" in result.out
    done(approve(store, "bob", file="one.json"))
    assert key_list(store)["owner_threshold"] == 1


def change_payload(file: Path) -> None:
    """Let a signed proposal say something else."""
    envelope: dict[str, Any] = json.loads(file.read_bytes())
    payload = base64.b64decode(envelope["payload"]).replace(b'"security"', b'"owner"')
    file.write_text(json.dumps(envelope | {"payload": base64.b64encode(payload).decode()}), encoding="utf-8")


def test_a_changed_proposal_a_stranger_and_another_store_are_refused(
    store: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    done(propose(store, *CAROL))
    one_error_line(approve(store, "carol"), 11, "keyring_not_an_owner")
    one_error_line(propose(store, *CAROL, by="carol", file="new.json"), 11, "keyring_not_an_owner")
    path = str(store / "change.json")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done(ctx("init", cwd=elsewhere))
    done(keys("new", "alice", "--issuer", "acme", cwd=elsewhere))
    one_error_line(keys("approve", path, "--key", "alice", "--yes", cwd=elsewhere), 11, "event_of_other_store")
    change_payload(store / "change.json")
    one_error_line(approve(store, "bob"), 11, "keyring_proposal_changed")
    unsigned = json.loads((store / "change.json").read_bytes()) | {"signatures": []}
    (store / "change.json").write_text(json.dumps(unsigned), encoding="utf-8")
    one_error_line(approve(store, "bob"), 11, "keyring_not_an_owner")


@cases(
    ("args", "status", "code"),
    [
        (["propose"], 2, "usage"),
        (["propose", "list", "-o", "x"], 2, "usage"),
        (["propose", *CAROL], 2, "usage"),
        (["propose", *CAROL, "--threshold", "2", "-o", "x", "--key", "alice"], 2, "key_change_invalid"),
        (["propose", *TWO, "-o", "x", "--key", "alice"], 10, "keyring_without_owner"),
        (["trust", "--owners", "0", "--key", "alice"], 2, "key_change_invalid"),
        (["trust", "--owners", "2", "--issuer", "acme", "--key", "alice"], 2, "usage"),
        (["rotate", "bob", "carol", "--owners", "2"], 2, "usage"),
        (["approve"], 2, "usage"),
        (["approve", "none.json", "--yes"], 13, "keyring_proposal_not_read"),
        (["approve", ".ctx/keys/bob.pub", "--yes"], 11, "envelope_invalid"),
        (["list", "--yes"], 2, "usage"),
        (["propose", *CAROL, "-o", ".ctx/keys/bob.pub", "--key", "alice"], 14, "keyring_proposal_not_written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_no_proposal_is_refused(keyring_once: Path, args: list[str], status: int, code: str) -> None:
    one_error_line(keys(*args, cwd=keyring_once), status, code)
    assert not (keyring_once / "x").exists()


def test_a_single_owner_may_propose_too(keyring_store: Path) -> None:
    assert "One owner suffices" in done(propose(keyring_store, *CAROL)).out
    assert "The change is made" in done(approve(keyring_store, "alice")).out
