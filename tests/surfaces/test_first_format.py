"""A store of the first format: it is read as it is, an owner seals it, and everything goes on from there.

`tests/cases/stores/first_format.tar.gz` was made by the last version that wrote this format. ctxpack.support@1.0.0 is
published and pinned in production, 1.0.1 is drafted and linted, and alice took over the key of ops by rotation.
"""

import json
import shutil
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from contextplane.app.platform import Platform, open_platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.settings import Settings
from contextplane.model.catalog import Event
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.registry.events import RegistryEvent, Revoked, kind_of, sign_event
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.streams import CHECKPOINTS, LOG, origin_of, version_stream
from contextplane.store.event_stream import last_event, stream_head
from contextplane.trust.checkpoint import signed_checkpoint
from contextplane.trust.keyring_stream import STREAM as KEYRING
from contextplane.trust.merkle_log import LogEntry
from tests.support.cases import cases
from tests.support.forged_log import forge_log
from tests.surfaces.commands import Result, ctx
from tests.surfaces.sample import one_error_line
from tests.unit.registry.tampering import Stolen

ARCHIVE = Path(__file__).parent.parent / "cases" / "stores" / "first_format.tar.gz"
PASSPHRASE = "correct horse battery"  # noqa: S105  of keys that only tests know
PACK = "ctxpack.support@1.0.0"
ENTRIES = 11
SEALED_KEYRING = 10
"""The change of the keyring that seals it."""

LATER = "2100-01-01T00:00:00Z"
AGE = str(10**10)
"""The archive gets older every day, and its registry is never signed again: any age is allowed."""

SEAL = ("verify", "--registry", "--sign", "--key", "root", "--json")


class OldStore:
    """The store in a folder, and one client of it with a memory of its own."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.state = state

    def run(self, *args: str) -> Result:
        env = {"CTX_KEY_PASSPHRASE": PASSPHRASE, "XDG_STATE_HOME": str(self.state), "CTX_REGISTRY_MAX_AGE": AGE}
        return ctx(*args, cwd=self.folder, env=env)

    def answer(self, *args: str) -> dict[str, Any]:
        result = self.run(*args, "--json")
        assert result.status == 0, result.err
        answer: dict[str, Any] = json.loads(result.out)
        return answer

    def rows(self) -> dict[str, list[Any]]:
        """Every row of the tables that the registry is in."""
        with closing(sqlite3.connect(self.folder / ".ctx" / "catalog.db")) as database:
            tables = ("event", "mark", "object", "root")
            return {table: database.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in tables}  # noqa: S608

    def compile_hash(self) -> str:
        """The hash of a request that is compiled with what production pins."""
        answer = self.answer("compile", "ctxpack.support", "--environment", "production", "--request", "request.json")
        compiled: str = answer["context_ledger"]["compiled_context_hash"]
        return compiled

    @property
    def thief(self) -> Stolen:
        return Stolen(self.folder / ".ctx" / "catalog.db")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first_format") / "store"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    (folder / ".ctx" / "keys").chmod(0o700)  # the filter drops modes of folders
    assert ctx("new", "request.json", "--request", cwd=folder).status == 0
    return folder


@pytest.fixture
def store(unpacked: Path, tmp_path: Path) -> OldStore:
    return OldStore(Path(shutil.copytree(unpacked, tmp_path / "store")), tmp_path / "state")


@pytest.fixture(scope="module")
def sealed_once(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sealed") / "store"
    store = OldStore(Path(shutil.copytree(unpacked, folder)), tmp_path_factory.mktemp("state"))
    assert store.run(*SEAL).status == 0
    return folder


@pytest.fixture
def sealed(sealed_once: Path, tmp_path: Path) -> OldStore:
    return OldStore(Path(shutil.copytree(sealed_once, tmp_path / "sealed")), tmp_path / "state")


def test_it_is_read_as_it_is_and_nothing_in_it_changes(store: OldStore) -> None:
    before = store.rows()
    assert PACK in store.run("packs").out
    assert "pinned in   production" in store.run("show", PACK).out
    assert store.run("verify", PACK).status == 0
    assert store.answer("verify", "--registry")["entries"] == ENTRIES
    assert len(store.compile_hash()) == len("sha256:") + 64
    assert store.run("fsck").status == 0
    assert store.rows() == before


@cases(
    "args",
    [
        ["lint", "refunds.yaml", "--record", "--key", "alice"],
        [
            "review",
            "ctxpack.support@1.0.1",
            "--role",
            "security",
            "--approve",
            "--reason",
            "ok",
            "--key",
            "sec",
            "--yes",
        ],
        ["pin", "production", PACK, "--reason", "again", "--key", "alice"],
        ["revoke", PACK, "--reason", "wrong", "--yes", "--key", "pub"],
        ["keys", "revoke", "sec", "--reason", "lost", "--key", "root"],
    ],
)
def test_no_act_is_done_before_it_is_sealed(store: OldStore, args: list[str]) -> None:
    before = store.rows()
    error = one_error_line(store.run(*args), 10, "store_not_sealed")
    assert "ctx verify --registry --sign --key OWNER" in error
    assert store.rows() == before


def test_only_an_owner_seals_it(store: OldStore) -> None:
    before = store.rows()
    one_error_line(store.run("verify", "--registry", "--sign", "--key", "pub"), 11, "keyring_not_an_owner")
    assert store.rows() == before


def test_the_verification_says_that_the_format_is_the_first_until_it_is_sealed(store: OldStore) -> None:
    assert "Format:     the first, which is only read" in store.run("verify", "--registry").out
    assert "Format:     the first, which was sealed now" in store.run(*SEAL[:-1]).out
    assert "Format:" not in store.run("verify", "--registry").out


def test_a_sealed_store_is_sound_compiles_the_same_and_everybody_acts_again(store: OldStore) -> None:
    compiled, log_signers = store.compile_hash(), {"root", "arch", "sec", "dat", "eva", "pub", "ops", "alice"}
    assert store.answer(*SEAL[:-1])["signed"]
    assert store.answer("verify", "--registry")["answer"] == "verified"
    assert store.compile_hash() == compiled
    (issuer,) = store.answer("keys", "list")["issuers"]
    assert {key["name"] for key in issuer["keys"] if "log" in key["roles"]} == log_signers
    for role, name in (("architecture", "arch"), ("security", "sec"), ("data", "dat"), ("evaluation", "eva")):
        args = ("review", "ctxpack.support@1.0.1", "--role", role, "--approve", "--reason", "ok", "--yes")
        assert store.run(*args, "--key", name).status == 0
    assert store.run("sign", "ctxpack.support@1.0.1", "--key", "pub", "--yes", "--reason", "ok").status == 0
    assert store.run("publish", "ctxpack.support@1.0.1", "--key", "pub", "--yes", "--reason", "ok").status == 0
    assert store.run("pin", "production", "ctxpack.support@1.0.1", "--reason", "ok", "--key", "alice").status == 0
    assert store.answer("verify", "--registry")["answer"] == "verified"
    assert store.run("fsck").status == 0


def test_a_client_that_saw_the_first_format_accepts_the_sealed_one_and_not_the_way_back(
    store: OldStore, sealed: OldStore
) -> None:
    client = OldStore(store.folder, sealed.state)
    assert client.run("packs").status == 0
    old = store.folder.with_name("old")
    shutil.copytree(store.folder, old)
    assert client.run(*SEAL).status == 0
    assert client.run("packs").status == 0
    shutil.rmtree(store.folder)
    shutil.copytree(old, store.folder)
    one_error_line(client.run("packs"), 11, "keyring_rolled_back")


def sign_later(store: OldStore) -> None:
    """A key without the role of an owner signs the registry as it is, at a time of the far future."""
    with open_platform(Settings(cwd=str(store.folder), state_dir=None)) as platform, platform.catalog.write() as tx:
        newest = last_event(tx.streams, CHECKPOINTS)
        assert newest is not None
        claimed = REGISTRY_LOG.claimed_checkpoint(newest.body)
        signer = KeyStore(platform, PASSPHRASE.encode).signer("pub")
        note = signed_checkpoint(replace(claimed, time=Timestamp.parse(LATER)), signer)
        tx.streams.append(CHECKPOINTS, newest.seq, [Event(kind="checkpoint", body=canonical(note.decode()))])


def test_it_is_sealed_also_if_its_time_is_far_ahead_because_nothing_is_revoked_before_that(store: OldStore) -> None:
    sign_later(store)
    one_error_line(store.run("keys", "revoke", "pub", "--reason", "lost", "--key", "root"), 10, "store_not_sealed")
    assert store.run(*SEAL).status == 0
    assert store.run("keys", "revoke", "pub", "--reason", "lost", "--key", "root").status == 0


def test_a_second_seal_signs_a_checkpoint_and_nothing_else(sealed: OldStore) -> None:
    before = sealed.answer("verify", "--registry")
    assert sealed.answer(*SEAL[:-1])["signed"]
    after = sealed.answer("verify", "--registry")
    assert (after["entries"], after["checkpoints"]) == (before["entries"], before["checkpoints"] + 1)


@cases(
    ("stream", "seq", "old", "new"),
    [
        ("registry/pins/production/ctxpack.support", 1, b"1.0.0", b"1.0.1"),
        (version_stream(PackRef.parse(PACK)), 1, b"tenant_acme_prod", b"tenant_acme_test"),
        ("registry/log", 3, b'"seq":', b'"sEq":'),
    ],
)
@pytest.mark.parametrize("format_of", ["first", "sealed"])
def test_a_change_of_an_old_event_is_found(  # noqa: PLR0913, PLR0917  a table of changes, in both formats
    store: OldStore, sealed: OldStore, format_of: str, stream: str, seq: int, old: bytes, new: bytes
) -> None:
    target = store if format_of == "first" else sealed
    if stream == LOG:
        target.thief.put(stream, seq, target.thief.body(stream, seq).replace(old, new))
    else:
        target.thief.reword(stream, seq, old, new)
    report = json.loads(target.run("verify", "--registry", "--json").out)
    assert report["answer"] == "modified"
    assert f"{stream}@{seq}" in {trouble["at"] for trouble in report["troubles"]}


@contextmanager
def forger(store: OldStore, name: str) -> Iterator["Forger"]:
    with open_platform(Settings(cwd=str(store.folder), state_dir=None)) as platform:
        yield Forger(platform, name)


class Forger:
    """Whoever can write to the store and has the key of `name`: events that look like the first format."""

    def __init__(self, platform: Platform, name: str) -> None:
        self._platform = platform
        self._signer = KeyStore(platform, PASSPHRASE.encode).signer(name)

    def revoke(self, *, entry: int | None, keyring: int | None, at: str) -> None:
        """Revoke the version by an event that names no store."""
        stream = version_stream(PackRef.parse(PACK))
        with self._platform.catalog.write() as tx:
            head = stream_head(tx.streams, stream)
            assert head is not None
            event = RegistryEvent(
                subject=stream,
                seq=head.seq + 1,
                previous=head.digest,
                entry=tx.streams.head(LOG) if entry is None else entry,
                keyring=tx.streams.head(KEYRING) if keyring is None else keyring,
                at=at,
                reason="because I can",
                change=Revoked(),
            )
            body = sign_event(event, self._signer)
            tx.streams.append(stream, head.seq, [Event(kind=kind_of(event.change), body=body)])
            logged = LogEntry(event=Digest.of(body).hex, seq=event.seq, stream=stream, previous=head.digest)
            forge_log(
                tx, [logged], signer=self._signer, at=Timestamp.parse(LATER), origin=origin_of(self._platform.store_id)
            )


@cases(
    ("entry", "keyring", "at"),
    [
        (None, None, LATER),
        (3, None, LATER),
        (3, SEALED_KEYRING - 1, "2026-11-16T12:17:53Z"),
    ],
)
def test_an_event_of_the_first_format_after_the_seal_is_void(
    sealed_once: Path, tmp_path_factory: pytest.TempPathFactory, entry: int | None, keyring: int | None, at: str
) -> None:
    folder = tmp_path_factory.mktemp("forged")
    store = OldStore(Path(shutil.copytree(sealed_once, folder / "store")), folder / "state")
    assert store.run("show", PACK).status == 0
    with forger(store, "pub") as thief:
        thief.revoke(entry=entry, keyring=keyring, at=at)
    report = json.loads(store.run("verify", "--registry", "--json").out)
    assert report["answer"] == "void"
    result = store.run("show", PACK)
    assert (result.status, "revoked" in result.out) == (0, False), result
