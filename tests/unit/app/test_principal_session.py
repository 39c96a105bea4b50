"""One way from a principal to a session, for every surface."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from contextplane.adapters.ed25519 import PassphraseNeeded
from contextplane.adapters.files.store_dir import StoreNotFound
from contextplane.app.init import init
from contextplane.app.session import LocalPrincipal, open_session
from contextplane.app.settings import Settings
from contextplane.app.store_access import Store
from contextplane.testing.laws.streams import run_in_threads


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    store_settings = Settings(cwd=str(tmp_path))
    init(store_settings)
    return store_settings


def test_a_session_opens_the_store_by_its_first_use_and_handoff_packs_need_none(tmp_path: Path) -> None:
    with open_session(Settings(cwd=str(tmp_path))) as session:
        assert session.handoffs.pack_reader.list().total == 0
        assert session.handoffs is session.handoffs
        with pytest.raises(StoreNotFound):
            _ = session.platform


def test_a_principal_acts_with_the_keys_that_it_can_open(settings: Settings) -> None:
    with open_session(settings, LocalPrincipal(passphrase=lambda: b"open sesame, please")) as session:
        made = session.keys.create_key("alice", "tenant_acme")
        key_id = session.keys.signer("alice").public_key.key_id
        assert session.registry().keys is session.keys
        assert key_id in str(made)
    with open_session(settings) as reader, pytest.raises(PassphraseNeeded):
        reader.keys.signer("alice")


def test_the_key_of_the_environment_comes_before_those_of_the_store(settings: Settings) -> None:
    holder = LocalPrincipal(passphrase=lambda: b"open sesame, please")
    with open_session(settings, holder) as session:
        session.keys.create_key("alice", "tenant_acme")
        alice = session.keys.signer("alice").public_key
        private = session.keys.files.read("alice")
        session.keys.create_key("bob", None)
    with open_session(settings, LocalPrincipal(passphrase=holder.passphrase, signing_key=private)) as session:
        assert session.keys.signer().public_key == alice


def test_sessions_on_a_shared_store_have_the_platform_of_their_thread(settings: Settings) -> None:
    platforms: dict[int, object] = {}
    with Store(settings) as store:

        def work(thread: int) -> None:
            with open_session(store) as first, open_session(store) as second:
                assert first.platform is second.platform is store.platform
                platforms[thread] = first.platform

        run_in_threads(work, 3)
        assert len(set(platforms.values())) == 3
        with open_session(store) as session:
            assert session.platform.store_id == store.store_id


def test_neither_settings_nor_principals_show_their_secrets(settings: Settings) -> None:
    secretive = (
        LocalPrincipal(passphrase=lambda: b"hush", signing_key=b"hush"),
        replace(settings, database_url="postgresql://ctx:hush@db/ctx"),
    )
    for value in secretive:
        assert "hush" not in repr(value)
        assert "hush" not in str(list(value.__rich_repr__()))
