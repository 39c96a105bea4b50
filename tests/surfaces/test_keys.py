"""`ctx keys`: make keys, trust them, and refuse anything that would forget a revocation."""

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from contextplane.adapters.ed25519 import pem, public_from_pem
from contextplane.app.platform import open_platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.settings import Settings
from contextplane.trust.clock import LAST_MOMENT
from contextplane.trust.verify import sign, verify
from tests.patience import PATIENCE
from tests.support.cases import cases
from tests.surfaces.commands import COMMAND, child_environment, ctx
from tests.surfaces.keyrings import HUSH, OPEN, REVOKE, key_list, keys, states
from tests.surfaces.sample import one_error_line
from tests.surfaces.test_startup import imported
from tests.unit.trust.world import PACK, key_of, statement
from tests.unit.trust.world import trust_context as grounds_of


@pytest.fixture
def store(keyring_store: Path) -> Path:
    return keyring_store


def test_the_first_key_owns_the_keyring_and_the_others_wait_to_be_trusted(store: Path) -> None:
    listing = key_list(store)
    (acme,) = listing["issuers"]
    assert (acme["issuer"], acme["threshold"]) == ("acme", 1)
    assert [(key["name"], key["roles"], key["state"]) for key in acme["keys"]] == [
        ("alice", ["owner"], "valid"),
        ("bob", ["security"], "valid"),
    ]
    assert {key["name"]: key["trusted"] for key in listing["here"]} == {"alice": True, "bob": True, "carol": False}
    assert "carol" in keys("list", cwd=store).out


def test_the_roles_that_are_named_are_all_that_a_key_has_then_and_are_told(store: Path) -> None:
    result = keys(
        "trust", "bob", "--issuer", "acme", "--role", "data", "--role", "publisher", "--key", "alice", cwd=store
    )
    assert "is trusted for acme in the roles data, publisher, signed by" in result.out
    assert key_list(store)["issuers"][0]["keys"][1]["roles"] == ["data", "publisher"]


def test_a_store_without_keys_says_how_to_begin_and_the_first_key_says_for_whom(tmp_path: Path) -> None:
    ctx("init", cwd=tmp_path)
    assert "ctx keys new" in keys("list", cwd=tmp_path).out
    one_error_line(keys("new", "alice", cwd=tmp_path), 2, "first_key_needs_issuer")
    one_error_line(keys("new", "alice", "--issuer", "no name", cwd=tmp_path), 2, "key_change_invalid")
    one_error_line(keys("new", "alice", "--issuer", "acme", cwd=tmp_path, env={}), 10, "key_passphrase_needed")
    assert not list((tmp_path / ".ctx" / "keys").iterdir())


@cases(
    ("args", "status", "code"),
    [
        (["new", "alice"], 14, "key_exists"),
        (["new", "../x"], 2, "key_name_invalid"),
        (["new", "dave", "--issuer", "acme"], 2, "signing_key_unclear"),
        (["trust", "carol", "--issuer", "acme"], 2, "signing_key_unclear"),
        (["trust", "nobody", "--issuer", "acme", "--key", "alice"], 13, "key_not_found"),
        (["trust", "./none.pem", "--issuer", "acme", "--key", "alice"], 13, "key_not_found"),
        (["trust", "carol", "--issuer", "a b", "--new-issuer", "--key", "alice"], 2, "key_change_invalid"),
        (["trust", "carol", "--issuer", "acne", "--key", "alice"], 13, "issuer_not_found"),
        (["rotate", "bob", "carol", "--new-issuer", "--key", "alice"], 2, "usage"),
        (["rotate", "bob", "carol", "--until", "2020-01-01T00:00:00Z", "--key", "alice"], 10, "key_window_empty"),
        (["trust", "carol", "--issuer", "acme", "--key", "bob"], 11, "keyring_not_an_owner"),
        (["trust", "carol", "--issuer", "acme", "--threshold", "4", "--key", "alice"], 10, "threshold_unreachable"),
        (["trust", "carol", "--issuer", "acme", "--until", "2020-01-01T00:00:00Z"], 2, "signing_key_unclear"),
        (["revoke", "carol", "--reason", "lost", "--key", "alice"], 13, "key_not_trusted"),
        (["revoke", "0123456789ab", "--reason", "lost", "--key", "alice"], 13, "key_not_trusted"),
        (["revoke", "alice", "--reason", "lost", "--key", "alice"], 10, "keyring_without_owner"),
        (["revoke", "bob", "--key", "alice"], 2, "usage"),
        (["rotate", "bob"], 2, "usage"),
        (["new", "dave", "--standalone"], 2, "usage"),
        (["new", "dave", "-o", "dave.key"], 2, "usage"),
        (["new", "dave", "--standalone", "-o", "dave.key", "--issuer", "acme"], 2, "usage"),
        (["new", "a/b", "--standalone", "-o", "dave.key"], 2, "key_name_invalid"),
        (["list", "--standalone", "-o", "dave.key"], 2, "usage"),
        (["list", "--issuer", "acme"], 2, "usage"),
        (["trust", "carol", "--issuer", "acme", "--from", "yesterday"], 2, "usage"),
        (["trust", "carol", "--issuer", "acme", "--threshold", "many"], 2, "usage"),
        ([], 2, "usage"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_refused_with_one_line_and_changes_nothing(
    keyring_once: Path, args: list[str], status: int, code: str
) -> None:
    """All cases share one store: if one changed it, the count of events would differ."""
    one_error_line(keys(*args, cwd=keyring_once), status, code)
    with open_platform(Settings(cwd=str(keyring_once))) as platform:
        assert KeyStore(platform, HUSH.encode).keyring.seq == 2


def test_a_threshold_a_rotation_and_a_revocation(store: Path) -> None:
    result = keys(
        *["trust", "carol", "--issuer", "acme", "--role", "log", "--threshold", "2", "--key", "alice"], cwd=store
    )
    assert (result.status, result.err) == (0, "")
    assert key_list(store)["issuers"][0]["threshold"] == 2
    assert keys("rotate", "bob", "carol", "--overlap", "0", "--key", "alice", cwd=store).status == 0
    assert states(store) == {"alice": "valid", "bob": "expired", "carol": "valid"}
    key_id = next(key["key_id"] for key in key_list(store)["here"] if key["name"] == "carol")
    result = keys("revoke", key_id[:12], "--reason", "left", "--key", "alice", cwd=store)
    assert result.status == 0
    assert "needs 2 signatures and has 1" in result.err
    assert states(store)["carol"] == "revoked"
    one_error_line(keys("trust", "carol", "--issuer", "acme", "--key", "alice", cwd=store), 10, "key_revoked_for_good")


def test_a_revoked_key_is_listed_as_no_longer_trusted_and_not_counted_among_those_that_can_sign(store: Path) -> None:
    assert keys("list", cwd=store).out.startswith("acme: 1 of 2 keys must sign\n")
    assert ctx(*REVOKE, cwd=store, env=OPEN).status == 0
    assert {key["name"]: key["trusted"] for key in key_list(store)["here"]} == {
        "alice": True,
        "bob": False,
        "carol": False,
    }
    screen = keys("list", cwd=store).out
    assert screen.startswith("acme: 1 key must sign; 1 of 2 is valid now\n")
    assert screen.partition("stored here, not trusted:\n")[2].split()[1::2] == ["carol"]


def test_of_a_revocation_for_later_it_is_told_what_the_key_can_do_until_then(store: Path) -> None:
    result = ctx(*REVOKE, "--from", "2099-01-01T00:00:00Z", cwd=store, env=OPEN)
    assert result.status == 0
    assert "until then the key can sign" in result.err
    assert states(store)["bob"] == "valid"


def test_without_anything_named_only_what_is_always_needed_is_asked_for(keyring_once: Path) -> None:
    message = one_error_line(keys(cwd=keyring_once), 2, "usage")
    assert "required: ACTION (see" in message


def test_what_is_not_named_stays_as_it_is(store: Path) -> None:
    until = "2099-01-01T00:00:00Z"
    for args in (["bob", "--until", until], ["bob", "--role", "data"], ["alice", "--threshold", "2"]):
        assert keys("trust", *args, "--issuer", "acme", "--key", "alice", cwd=store).status == 0
    (acme,) = key_list(store)["issuers"]
    assert acme["threshold"] == 2
    assert {key["name"]: (key["roles"], key["valid_until"]) for key in acme["keys"]} == {
        "alice": (["owner"], None),
        "bob": (["data"], until),
    }


def test_a_key_is_made_on_a_laptop_without_a_store_and_signs_after_an_owner_trusted_it(
    store: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    laptop = tmp_path_factory.mktemp("laptop")
    result = keys("new", "dave", "--standalone", "-o", "dave.key", cwd=laptop)
    assert (result.status, result.err) == (0, "")
    assert sorted(path.name for path in laptop.iterdir()) == ["dave.key", "dave.key.pub"]  # and no store
    key_id = public_from_pem((laptop / "dave.key.pub").read_bytes(), at="").key_id
    assert key_id in result.out
    assert f"Send {laptop / 'dave.key.pub'} to an owner" in result.out
    one_error_line(keys("new", "dave", "--standalone", "-o", "dave.key", cwd=laptop), 14, "key_exists")
    shutil.copy(laptop / "dave.key.pub", store)
    command = next(line for line in result.out.splitlines() if line.startswith("  ctx keys trust"))
    trust = command.replace("ISSUER", "acme").replace("ROLE", "owner").replace("OWNER", "alice").split()[2:]
    assert keys(*trust, cwd=store).status == 0
    assert states(store)["dave"] == "valid"
    assert keys(*REVOKE[1:-1], str(laptop / "dave.key"), cwd=store).status == 0
    assert states(store)["bob"] == "revoked"


def test_a_misspelt_issuer_is_not_made_and_the_known_one_is_suggested(store: Path) -> None:
    line = one_error_line(
        keys("trust", "carol", "--issuer", "acmee", "--key", "alice", cwd=store), 13, "issuer_not_found"
    )
    assert "did you mean acme? (--new-issuer makes a new one)" in line
    far = one_error_line(
        keys("trust", "carol", "--issuer", "globex", "--key", "alice", cwd=store), 13, "issuer_not_found"
    )
    assert "known here: acme (--new-issuer makes a new one)" in far
    assert [issuer["issuer"] for issuer in key_list(store)["issuers"]] == ["acme"]


def ends(store: Path) -> dict[str, str | None]:
    return {key["name"]: key["valid_until"] for issuer in key_list(store)["issuers"] for key in issuer["keys"]}


def test_a_rotation_does_not_lift_the_end_of_a_key(store: Path) -> None:
    end, later = "2098-01-01T00:00:00Z", "2099-01-01T00:00:00Z"
    assert keys("trust", "bob", "--issuer", "acme", "--until", end, "--key", "alice", cwd=store).status == 0
    result = keys("rotate", "bob", "carol", "--key", "alice", cwd=store)
    assert "replaces bob for acme in the role security until 2098-01-01 00:00:00Z, signed by" in result.out
    assert ends(store)["carol"] == end
    # Neither does one into a key that is trusted already, whose own end comes first.
    assert keys("rotate", "alice", "carol", "--key", "alice", cwd=store).status == 10  # no owner without an end is left
    assert keys("new", "dave", cwd=store).status == 0
    assert keys("rotate", "carol", "dave", "--until", later, "--key", "alice", cwd=store).status == 0
    assert ends(store)["dave"] == later
    assert ends(store)["alice"] is None


def test_the_new_key_of_a_key_that_ended_needs_an_end_of_its_own(store: Path) -> None:
    past = ["--from", "2020-01-01T00:00:00Z", "--until", "2021-01-01T00:00:00Z"]
    assert keys("trust", "bob", "--issuer", "acme", *past, "--key", "alice", cwd=store).status == 0
    line = one_error_line(keys("rotate", "bob", "carol", "--key", "alice", cwd=store), 10, "key_window_empty")
    assert "--until" in line
    assert keys("rotate", "bob", "carol", "--until", "2099-01-01T00:00:00Z", "--key", "alice", cwd=store).status == 0
    assert states(store)["carol"] == "valid"


def test_the_keyring_can_be_handed_over(store: Path) -> None:
    assert keys("rotate", "alice", "carol", "--overlap", "0", "--key", "alice", cwd=store).status == 0
    one_error_line(ctx(*REVOKE, cwd=store, env=OPEN), 11, "keyring_not_an_owner")
    assert ctx(*REVOKE[:-1], "carol", cwd=store, env=OPEN).status == 0


def test_a_public_key_of_somebody_else_is_trusted_from_its_file(store: Path, keyring_once: Path) -> None:
    shutil.copy(keyring_once / ".ctx" / "keys" / "carol.pub", store / "theirs.pem")
    assert keys("trust", "theirs.pem", "--issuer", "globex", "--new-issuer", "--key", "alice", cwd=store).status == 0
    assert [issuer["issuer"] for issuer in key_list(store)["issuers"]] == ["acme", "globex"]


def catalog_files(store: Path) -> list[Path]:
    return list((store / ".ctx").glob("catalog.db*"))


def test_a_catalog_that_forgot_a_revocation_is_noticed(store: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    aside = tmp_path_factory.mktemp("aside")
    for path in catalog_files(store):
        shutil.copy(path, aside)
    assert ctx(*REVOKE, cwd=store, env=OPEN).status == 0
    for path in catalog_files(store):
        path.unlink()
    for path in aside.iterdir():
        shutil.copy(path, store / ".ctx")
    one_error_line(keys("list", cwd=store), 11, "keyring_rolled_back")
    one_error_line(ctx(*REVOKE, cwd=store, env=OPEN), 11, "keyring_rolled_back")


def test_a_memory_that_is_damaged_is_refused_and_one_that_is_gone_is_made_again(store: Path) -> None:
    before = key_list(store)
    with open_platform(Settings(cwd=str(store))) as platform:
        memory = Path(platform.client_state.path)
    for data in (b"{", b"{}", b'{"keyring_seq":0}', b'{"keyring_head":"\xff"}'):
        memory.write_bytes(data)
        one_error_line(keys("list", cwd=store), 11, "client_state_invalid")
    memory.unlink()
    assert key_list(store) == before
    assert memory.exists()


class Still:
    """A clock that always shows the same time."""

    def __init__(self, year: int) -> None:
        self.year = year

    def now(self) -> datetime:
        return datetime(self.year, 1, 1, tzinfo=UTC)


def test_a_change_by_a_clock_that_went_backwards_comes_after_those_before_it(store: Path) -> None:
    with open_platform(Settings(cwd=str(store))) as platform:
        platform.clock = Still(2001)
        key_store = KeyStore(platform, HUSH.encode)
        before = key_store.now  # right after the newest checkpoint
        after = key_store.change([key_store.key_trust(key_of("x").public_key, "acme")], key_store.signer("alice"))
    assert after.as_of == before
    assert key_store.behind > 20 * 365 * 86_400


def test_where_little_time_is_left_an_overlap_ends_with_it(store: Path) -> None:
    with open_platform(Settings(cwd=str(store))) as platform:
        platform.clock = Still(9999)
        key_store = KeyStore(platform, HUSH.encode)
        key_store.change([key_store.key_trust(key_of("x").public_key, "acme")], key_store.signer("alice"))
    assert keys("rotate", "bob", "carol", "--overlap", "3650", "--key", "alice", cwd=store).status == 0
    ends = [
        key["valid_until"] for issuer in key_list(store)["issuers"] for key in issuer["keys"] if key["name"] == "bob"
    ]
    assert ends == [str(LAST_MOMENT)]


def test_a_key_is_listed_by_what_it_was_called_when_it_was_trusted_also_where_it_is_not(store: Path) -> None:
    public = store / "dave.pub"
    public.write_bytes(pem("PUBLIC KEY", key_of("dave").public_key.spki))
    assert keys("trust", "./dave.pub", "--issuer", "acme", "--role", "data", "--key", "alice", cwd=store).status == 0
    assert keys("rotate", "bob", "carol", "--key", "alice", cwd=store).status == 0
    for name in ("bob", "carol"):
        (store / ".ctx" / "keys" / f"{name}.key").unlink()
    assert set(states(store)) == {"alice", "bob", "carol", "dave"}
    screen = keys("list", cwd=store).out
    assert f"  {key_of('dave').public_key.key_id[:16]}  dave   valid" in screen
    renamed = keys("trust", "./dave.pub", "--issuer", "acme", "--role", "security", "--key", "alice", cwd=store)
    assert renamed.out.endswith(" alice.\n")


def test_two_keys_of_one_name_are_told_apart_by_their_ids_only(store: Path) -> None:
    public = store / "bob.pub"
    public.write_bytes(pem("PUBLIC KEY", key_of("mallory").public_key.spki))
    bob = next(key["key_id"] for key in key_list(store)["here"] if key["name"] == "bob")
    result = keys("trust", "./bob.pub", "--issuer", "acme", "--key", "alice", cwd=store)
    assert f"key {bob[:16]} bob has the same name" in result.err
    (store / ".ctx" / "keys" / "bob.key").unlink()
    one_error_line(ctx(*REVOKE, cwd=store, env=OPEN), 2, "key_ambiguous")
    assert keys("revoke", bob[:16], "--reason", "lost", "--key", "alice", cwd=store).status == 0
    # The name is that of the other key now: a revoked key does not keep it.
    assert ctx(*REVOKE, cwd=store, env=OPEN).status == 0
    assert {key["state"] for key in key_list(store)["issuers"][0]["keys"] if key["name"] == "bob"} == {"revoked"}


def test_a_key_is_revoked_by_its_name_in_the_keyring_also_where_its_file_is_not(store: Path) -> None:
    (store / ".ctx" / "keys" / "bob.key").unlink()
    assert ctx(*REVOKE, cwd=store, env=OPEN).status == 0
    assert states(store)["bob"] == "revoked"


def test_a_role_that_ctx_does_not_know_is_taken_and_said_to_be_that_of_a_decision(store: Path) -> None:
    trust = ("trust", "bob", "--issuer", "acme", "--key", "alice")
    result = keys(*trust, "--role", "secruity", "--role", "support_ops", "--role", "publisher", cwd=store)
    assert result.status == 0
    assert result.out.splitlines()[1:] == [
        "secruity counts only where it is the owner_role of a decision. Did you mean security?",
        "support_ops counts only where it is the owner_role of a decision.",
    ]
    for_machines = msgspec.json.decode(keys(*trust, "--role", "data", "--role", "ops", "--json", cwd=store).raw)
    assert for_machines["owner_roles"] == ["ops"]
    assert keys(*trust, "--role", "tenant:acme_eu", cwd=store).out.count("\n") == 1
    one_error_line(keys(*trust, "--role", "tenant:", cwd=store), 2, "usage")
    assert key_list(store)["issuers"][0]["keys"][-1]["roles"] == ["tenant:acme_eu"]


def test_quietly_a_new_key_is_its_id_and_a_list_is_all_ids_once(store: Path) -> None:
    new_id = keys("new", "dave", "--quiet", cwd=store).out.strip()
    assert keys("trust", "bob", "--issuer", "globex", "--new-issuer", "--key", "alice", cwd=store).status == 0
    listing = key_list(store)
    ids = {key["key_id"] for issuer in listing["issuers"] for key in issuer["keys"]} | {
        x["key_id"] for x in listing["here"]
    }
    quiet = keys("list", "--quiet", cwd=store).out.split()
    assert len(quiet) == len(ids) == 4
    assert set(quiet) == ids
    assert new_id in ids


def test_what_a_trusted_key_signs_is_verified_by_the_keyring_of_the_store(store: Path) -> None:
    with open_platform(Settings(cwd=str(store))) as platform:
        key_store = KeyStore(platform, HUSH.encode)
        bob = key_store.signer("bob")
        envelope = sign(statement(), bob)
        grounds = grounds_of(key_store.keyring, key_store.now)
        assert verify(envelope, PACK, issuer="acme", trust_context=grounds).signed_by == (bob.public_key.key_id,)


def test_of_two_first_keys_at_once_exactly_one_owns_the_keyring(tmp_path: Path) -> None:
    ctx("init", cwd=tmp_path)
    children = [
        subprocess.Popen(
            [COMMAND, "keys", "new", name, "--issuer", "acme"],
            cwd=tmp_path,
            env=child_environment(OPEN),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for name in ("one", "two")
    ]
    ends = sorted(child.wait(timeout=PATIENCE) for child in children)
    assert ends[0] == 0
    assert ends[1] in {2, 11, 14}
    (acme,) = key_list(tmp_path)["issuers"]
    assert len(acme["keys"]) == 1


def test_keys_do_not_disturb_the_care_of_the_store(store: Path) -> None:
    assert ctx("fsck", cwd=store).status == 0
    assert ctx("fsck", "--rebuild", cwd=store).status == 0
    assert states(store) == {"alice": "valid", "bob": "valid"}


@pytest.mark.parametrize("args", [["log"], ["keys", "--help"]])
def test_what_signs_nothing_does_not_load_what_signs(store: Path, args: list[str]) -> None:
    modules = imported(*args, cwd=store)
    assert not {name for name in modules if name.startswith(("cryptography", "contextplane.trust"))}
