"""`ctx init --trust-root` and `CTX_TRUST_ROOT`: stored outside of the store, and shown by `ctx status`."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextplane.model.timestamp import Timestamp
from contextplane.trust.checkpoint import Checkpoint
from tests.surfaces.commands import Result, ctx
from tests.surfaces.keyrings import keyring_in
from tests.surfaces.sample import one_error_line

A, B = "a" * 64, "b" * 64
CHECKPOINT = Checkpoint(
    origin="contextplane.registry/store_0", size=7, root=bytes(32), time=Timestamp.parse("2030-01-01T00:00:00Z")
)


def root_in(folder: Path, **env: str) -> Any:  # noqa: ANN401  any JSON
    result = ctx("status", "--json", cwd=folder, env=env)
    assert result.status == 0, result.err
    return json.loads(result.raw)["trust_root"]


def init(folder: Path, *args: str, **env: str) -> Result:
    return ctx("init", *args, cwd=folder, env=env)


def test_a_trust_root_is_stored_for_a_new_store_and_replaced_for_one_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "good.ckpt").write_text(CHECKPOINT.text)
    assert init(tmp_path).status == 0
    assert root_in(tmp_path) is None
    done = init(tmp_path, "--trust-root", B, "--trust-root", f"{A},{B}", "--trust-root", "good.ckpt")
    assert (done.status, "trust root" in done.out) == (0, True)
    shown = {"origin": CHECKPOINT.origin, "size": 7, "time": "2030-01-01T00:00:00Z"}
    assert root_in(tmp_path) == {"source": "init", "key_ids": [A, B], "checkpoint": shown}
    (tmp_path / "good.ckpt").unlink()
    lines = ctx("status", cwd=tmp_path).out.splitlines()
    assert [line for line in lines if line.startswith("root ")] == [
        f"root      key {A}",
        f"root      key {B}",
        f"root      checkpoint of {CHECKPOINT.origin}, 7 events, signed 2030-01-01T00:00:00Z",
    ]
    assert init(tmp_path).status == 0
    assert root_in(tmp_path)["key_ids"] == [A, B]
    assert init(tmp_path, "--trust-root", A).status == 0
    assert root_in(tmp_path) == {"source": "init", "key_ids": [A], "checkpoint": None}


def test_each_store_has_its_own_and_nothing_of_it_is_in_the_store(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert init(tmp_path, "one", "--trust-root", A).status == 0
    assert init(tmp_path, "two").status == 0
    assert root_in(tmp_path / "one")["key_ids"] == [A]
    assert root_in(tmp_path / "two") is None
    for path in (tmp_path / "one").rglob("*"):
        assert path.is_dir() or A.encode() not in path.read_bytes()


def test_the_environment_wins(tmp_path: Path) -> None:
    assert init(tmp_path, "--trust-root", A).status == 0
    assert root_in(tmp_path, CTX_TRUST_ROOT=f"{B}\n") == {"source": "environment", "key_ids": [B], "checkpoint": None}
    (tmp_path / "x").write_text(CHECKPOINT.text)
    assert root_in(tmp_path, CTX_TRUST_ROOT="x")["checkpoint"]["size"] == 7
    for text in ("", "  ", "none", f"{A} none"):
        one_error_line(ctx("status", cwd=tmp_path, env={"CTX_TRUST_ROOT": text}), 10, "trust_root_invalid")


@pytest.mark.parametrize("text", [" ", "none.ckpt", A[:16]])
def test_an_unclear_root_is_refused_before_a_store_is_made(tmp_path: Path, text: str) -> None:
    one_error_line(init(tmp_path, "--trust-root", A, "--trust-root", text), 10, "trust_root_invalid")
    assert not (tmp_path / ".ctx").exists()


def test_a_root_that_cannot_be_stored_is_an_error(tmp_path: Path) -> None:
    message = one_error_line(init(tmp_path, "--trust-root", A, XDG_STATE_HOME="/dev/null"), 1, "trust_root_not_stored")
    assert "CTX_TRUST_ROOT" in message
    assert init(tmp_path, XDG_STATE_HOME="/dev/null").status == 0
    assert root_in(tmp_path, XDG_STATE_HOME="/dev/null") is None


def test_a_memory_that_was_changed_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert init(tmp_path, "--trust-root", A, XDG_STATE_HOME=str(state)).status == 0
    (file,) = state.rglob("*.json")
    file.write_bytes(b"{}")
    message = one_error_line(
        ctx("status", cwd=tmp_path, env={"XDG_STATE_HOME": str(state)}), 11, "client_state_invalid"
    )
    assert str(file) in message


def test_reading_and_verifying_a_store_hold_it_to_its_root(tmp_path: Path) -> None:
    keyring_in(tmp_path)
    owner = json.loads(ctx("keys", "list", "--json", cwd=tmp_path).raw)["issuers"][0]["keys"][0]["key_id"]
    (tmp_path / "other.ckpt").write_text(CHECKPOINT.text)
    for command in (("packs",), ("verify", "--registry")):
        assert ctx(*command, cwd=tmp_path, env={"CTX_TRUST_ROOT": owner}).status == 0
        one_error_line(ctx(*command, cwd=tmp_path, env={"CTX_TRUST_ROOT": A}), 11, "trust_root_mismatch")
        forked = ctx(*command, cwd=tmp_path, env={"CTX_TRUST_ROOT": "other.ckpt"})
        assert (forked.status, "log_forked" in forked.out + forked.err) == (11, True)
