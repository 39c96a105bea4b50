"""`ctx witness`: a witness cosigns the newest checkpoint, and the keyring asks for witnesses."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from contextplane.trust.cosignature import Cosignature
from tests.surfaces.commands import ctx
from tests.surfaces.keyrings import OPEN, key_list, keys
from tests.surfaces.sample import one_error_line


@pytest.fixture
def store(keyring_store: Path) -> Path:
    """A store in which carol is a witness."""
    trust = ["trust", "carol", "--issuer", "acme", "--role", "witness", "--key", "alice"]
    result = keys(*trust, cwd=keyring_store)
    assert (result.status, result.err) == (0, "")
    return keyring_store


def test_a_witness_cosigns_once(store: Path) -> None:
    first = json.loads(ctx("witness", "--key", "carol", "--json", cwd=store, env=OPEN).raw)
    assert (first["new"], first["witnesses"], first["required"]) == (True, 1, 0)
    assert Cosignature.parse(first["line"]).name.startswith("contextplane.witness/")
    again = ctx("witness", "--key", "carol", cwd=store, env=OPEN)
    assert (again.status, again.err) == (0, "")
    assert "Already cosigned the checkpoint of 3 entries" in again.out
    assert ctx("verify", "--registry", cwd=store, env=OPEN).status == 0
    one_error_line(ctx("witness", "--key", "alice", cwd=store, env=OPEN), 10, "not_a_witness")


def test_the_keyring_asks_for_witnesses(store: Path) -> None:
    result = keys("trust", "--witnesses", "1", "--key", "alice", cwd=store)
    assert "1 witness must cosign the newest checkpoint for new runs, signed by" in result.out
    assert "registry: 1 witness must cosign" in keys("list", cwd=store).out
    assert key_list(store)["witnesses"] == 1
    assert "and 1 must have" in ctx("witness", "--key", "carol", cwd=store, env=OPEN).out
    one_error_line(keys("trust", "--witnesses", "17", "--key", "alice", cwd=store), 2, "usage")
    assert keys("propose", "trust", "--witnesses", "0", "-o", "none.json", "--key", "alice", cwd=store).status == 0
    assert keys("approve", "none.json", "--key", "alice", "--yes", cwd=store).status == 0
    assert key_list(store)["witnesses"] == 0


def test_who_signed_the_checkpoint_does_not_count_and_is_told(store: Path) -> None:
    both = ["trust", "carol", "--issuer", "acme", "--role", "witness", "--role", "log", "--key", "alice"]
    assert keys(*both, cwd=store).status == 0
    assert "does not count" not in ctx("witness", "--key", "carol", cwd=store, env=OPEN).out
    assert ctx("verify", "--registry", "--sign", "--key", "carol", cwd=store, env=OPEN).status == 0
    result = ctx("witness", "--key", "carol", cwd=store, env=OPEN)
    assert result.status == 0
    assert "It does not count: the same person signed this checkpoint." in result.out
    assert "Witnesses who cosigned it: 0." in result.out


def test_a_false_cosignature_is_reported_and_stops_nobody_from_signing(store: Path) -> None:
    with closing(sqlite3.connect(store / ".ctx" / "catalog.db")) as catalog, catalog:
        row = ("registry/cosignatures", 1, "cosignature", b"{}")
        catalog.execute("INSERT INTO event (stream, seq, kind, body) VALUES (?, ?, ?, ?)", row)
    result = ctx("verify", "--registry", "--sign", "--key", "alice", cwd=store, env=OPEN)
    assert (result.status, result.out.count("cosignature_invalid")) == (11, 1)
    signed = json.loads(ctx("verify", "--registry", "--sign", "--key", "alice", "--json", cwd=store, env=OPEN).raw)
    assert (signed["answer"], signed["signed"]) == ("modified", True)
    assert ctx("witness", "--key", "carol", cwd=store, env=OPEN).status == 0
