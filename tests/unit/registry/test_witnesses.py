"""Witnesses: who counts, what new runs ask for, and that no witness cosigns a second history."""

import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from contextplane.app.init import init
from contextplane.app.registry.audit import audit_registry, renew_checkpoint
from contextplane.app.registry.export import export_version
from contextplane.app.registry.mirror import import_bundle, resolve_published
from contextplane.app.registry.release import record_draft
from contextplane.app.registry.resolve import resolve_request
from contextplane.app.registry.witness import witness_checkpoint
from contextplane.app.settings import Settings
from contextplane.model.catalog import Event
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import canonical
from contextplane.registry.events import Observed
from contextplane.registry.resolution import ResolveRequest
from contextplane.registry.streams import COSIGNATURES, version_stream
from contextplane.registry.version_state import Use
from contextplane.registry.writer import PlannedChange
from contextplane.trust.compatibility import RuntimeCapabilities
from contextplane.trust.cosignature import Cosignature
from contextplane.trust.dsse import encode_base64
from contextplane.trust.keyring_events import KeyRevocation, KeyRotation, WitnessThreshold
from contextplane.trust.trust_root import TrustRoot
from tests.unit.compiler.case_files import SHOWN
from tests.unit.registry.desk import ISSUER, PACK, Clock, Office, code, desk_in, office, version
from tests.unit.trust.world import CHECK, key_of

REF = PackRef.parse(PACK)
CAPABILITIES = RuntimeCapabilities(ontologies=tuple(SHOWN["environment"]["ontologies"]))


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Office]:
    """A registry with a pinned version, and two witnesses, none of whom is asked for."""
    store = tmp_path / "store"
    store.mkdir()
    with office(store) as made:
        made.release()
        made.pin("staging", PACK)
        trusting = made.desk.keys.key_trust
        made.change_keys(
            *(trusting(key_of(name).public_key, ISSUER, roles=("witness",)) for name in ("wanda", "walter"))
        )
        yield made


def witness(here: Office, name: str) -> bool:
    return witness_checkpoint(here.desk, key_of(name)).new


def ask_for(here: Office, number: int) -> None:
    here.change_keys(WitnessThreshold(witnesses=number))


def resolved(here: Office, purpose: Use = "new_traffic") -> str:
    request = ResolveRequest(refs=(REF,), tenant=ISSUER, environment="staging", purpose=purpose)
    return str(resolve_request(here.desk, request, CAPABILITIES, max_age=None).packs[0].ref)


def refusal(here: Office) -> str:
    return code(lambda: resolved(here))


def problems(here: Office) -> list[str]:
    return [problem.code for problem in audit_registry(here.desk, lambda _size, _events: None).problems]


def test_new_runs_ask_for_as_many_witnesses_as_the_keyring_says(here: Office) -> None:
    assert resolved(here) == PACK
    ask_for(here, 2)
    assert refusal(here) == "checkpoint_not_witnessed"
    assert resolved(here, "replay") == PACK
    assert witness(here, "wanda")
    assert refusal(here) == "checkpoint_not_witnessed"
    assert not witness(here, "wanda")  # a second time changes nothing
    assert here.streams()[COSIGNATURES] == 1
    assert witness(here, "walter")
    assert resolved(here) == PACK
    assert problems(here) == []
    here.observe(REF, "staging")  # the next checkpoint is another one
    assert refusal(here) == "checkpoint_not_witnessed"
    ask_for(here, 0)
    assert resolved(here) == PACK


def test_a_person_with_two_keys_is_one_witness(here: Office) -> None:
    old, new = key_of("wanda").public_key, key_of("new wanda").public_key
    now = str(here.desk.keys.now)
    here.change_keys(
        WitnessThreshold(witnesses=2),
        KeyRotation(old=old.key_id, key=encode_base64(new.raw), valid_from=now, old_until="2031-01-01T00:00:00Z"),
    )
    assert witness(here, "wanda")
    assert witness(here, "new wanda")
    assert refusal(here) == "checkpoint_not_witnessed"
    assert witness(here, "walter")
    assert resolved(here) == PACK


@pytest.mark.parametrize("signer", ["walter", "new walter"])
def test_who_signed_the_checkpoint_is_no_witness_of_it(here: Office, signer: str) -> None:
    """Also with another key of theirs."""
    old, new, now = key_of("walter").public_key, key_of("new walter").public_key, str(here.desk.keys.now)
    here.change_keys(
        here.desk.keys.key_trust(old, ISSUER, roles=("log", "operator", "witness")),
        KeyRotation(old=old.key_id, key=encode_base64(new.raw), valid_from=now, old_until="2031-01-01T00:00:00Z"),
    )
    ask_for(here, 1)
    assert witness(here, "walter")  # of a checkpoint that root signed
    assert resolved(here) == PACK
    here.desk.act(key_of(signer), [observation()])
    assert witness(here, "walter")
    assert not witness(here, "walter")
    assert witness_checkpoint(here.desk, key_of("walter")).witnesses.people == 0
    assert refusal(here) == "checkpoint_not_witnessed"
    assert witness(here, "wanda")
    assert resolved(here) == PACK
    assert problems(here) == []


def observation() -> PlannedChange:
    change = Observed(environment="staging", run="run_0123456789abcdef")
    return PlannedChange(stream=version_stream(REF), change=change, reason="a run used it")


def test_only_a_valid_key_with_the_role_is_a_witness(here: Office) -> None:
    for name in ("ops", "root", "stranger"):
        assert code(lambda name=name: witness(here, name)) == "not_a_witness"
    ask_for(here, 1)
    assert witness(here, "wanda")
    key_id = key_of("wanda").public_key.key_id
    here.change_keys(KeyRevocation(key_id=key_id, revoked_from="2031-01-01T00:00:00Z", reason="leaves"))
    assert code(lambda: witness(here, "wanda")) == "not_a_witness"  # she could cosign an earlier time for ever
    here.change_keys(KeyRevocation(key_id=key_id, revoked_from=str(here.desk.keys.now), reason="lost"))
    assert code(lambda: witness(here, "wanda")) == "not_a_witness"
    assert refusal(here) == "checkpoint_not_witnessed"
    assert COSIGNATURES in here.streams()


def add(here: Office, *events: Event) -> None:
    """Write to the stream past every rule."""
    with here.desk.platform.catalog.write() as tx:
        tx.streams.append(COSIGNATURES, tx.streams.head(COSIGNATURES), events)


def last_event(here: Office) -> Event:
    with here.desk.platform.catalog.read() as view:
        *_, stored = view.streams.read(COSIGNATURES)
    return Event(kind=stored.kind, body=stored.body)


def test_an_old_or_forged_cosignature_counts_for_nothing_and_stops_nobody(here: Office) -> None:
    ask_for(here, 1)
    assert witness(here, "wanda")
    cosigned = last_event(here)
    here.observe(REF, "staging")
    size = witness_checkpoint(here.desk, key_of("walter")).checkpoint.size
    ask_for(here, 1)
    renumbered = cosigned.body.replace(f'"size":{size - 1}'.encode(), f'"size":{size + 1}'.encode())
    add(here, cosigned, Event(kind="cosignature", body=renumbered), Event(kind="cosignature", body=b"{}"))
    assert refusal(here) == "checkpoint_not_witnessed"
    assert set(problems(here)) == {"cosignature_invalid"}
    assert len(problems(here)) == 3  # the old one is genuine, and not in its place
    renew_checkpoint(here.desk, audit_registry(here.desk, lambda _size, _events: None), key_of("root"))
    assert witness(here, "wanda")
    assert resolved(here) == PACK


def forged(cosigned: Event, size: int) -> Event:
    """A cosignature with another size in it."""
    content = json.loads(cosigned.body)
    return Event(kind=cosigned.kind, body=canonical(content | {"size": size}))


def problems_since(here: Office, note: bytes) -> list[tuple[str, str]]:
    result = audit_registry(here.desk, lambda _size, _events: None, note)
    return [(problem.code, problem.at) for problem in result.problems]


def test_cosignatures_since_a_checkpoint_are_verified_and_older_ones_are_not_read(here: Office) -> None:
    old = witness_checkpoint(here.desk, key_of("wanda"))
    add(here, forged(last_event(here), old.checkpoint.size - 1))
    kept = renew_checkpoint(here.desk, audit_registry(here.desk, lambda _size, _events: None), key_of("root"))
    assert problems(here) == ["cosignature_invalid"]
    here.observe(REF, "staging")
    assert problems_since(here, kept.note) == []
    size = witness_checkpoint(here.desk, key_of("walter")).checkpoint.size
    genuine = last_event(here)
    assert problems_since(here, kept.note) == []
    here.observe(REF, "staging")
    add(here, forged(genuine, size + 1), genuine, Event(kind="cosignature", body=b"{}"))
    assert problems_since(here, kept.note) == [
        ("cosignature_invalid", f"{COSIGNATURES}@{number}") for number in (4, 5, 6)
    ]
    assert witness(here, "wanda")
    assert len(problems_since(here, kept.note)) == 3


def test_the_line_holds_for_the_signed_note(here: Office) -> None:
    result = witness_checkpoint(here.desk, key_of("wanda"))
    cosignature = Cosignature.parse(result.line)
    assert cosignature.holds(result.checkpoint.text, key_of("wanda").public_key, CHECK)
    assert cosignature.time >= result.time.seconds


def test_a_witness_that_saw_another_history_cosigns_nothing(here: Office, tmp_path: Path) -> None:
    """The store is put back to an earlier copy and goes another way. Who signs checkpoints sees nothing wrong."""
    store = Path(here.desk.platform.home.path).parent
    here.desk.platform.catalog.close()
    shutil.copytree(store, tmp_path / "copy")
    settings = Settings(cwd=str(store), state_dir=str(tmp_path / "witness"))
    with desk_in(settings, Clock()) as there:
        there.observe(REF, "staging")
        assert witness(there, "wanda")
    shutil.rmtree(store / ".ctx")
    shutil.copytree(tmp_path / "copy" / ".ctx", store / ".ctx")
    with desk_in(settings, Clock()) as there:
        assert code(lambda: witness(there, "wanda")) == "log_rolled_back"
    with desk_in(Settings(cwd=str(store), state_dir=str(tmp_path / "insider")), Clock()) as insider:
        record_draft(insider.desk, version("7.0.0"), key_of("author"))
        insider.observe(REF, "staging")
        assert witness(insider, "walter")  # who saw nothing before
    with desk_in(settings, Clock()) as there:
        assert code(lambda: witness(there, "wanda")) in {"log_rewritten", "log_forked"}


def test_the_cosignatures_come_with_an_exported_version(here: Office, tmp_path: Path) -> None:
    ask_for(here, 1)
    target = Settings(cwd=str(tmp_path / "target"))
    Path(target.cwd).mkdir()
    init(target)
    root = TrustRoot(key_ids=(key_of("root").public_key.key_id,))
    request = ResolveRequest(refs=(REF,), tenant=ISSUER, environment="staging", purpose="new_traffic")

    def resolve_there() -> str:
        with desk_in(target, here.clock) as there:
            import_bundle(there.desk, export_version(here.desk, REF).data, root)
            return str(resolve_published(there.desk, request, CAPABILITIES, max_age=None).packs[0].ref)

    assert code(resolve_there) == "checkpoint_not_witnessed"
    assert witness(here, "wanda")
    assert resolve_there() == PACK


def test_a_witness_cosigns_no_checkpoint_of_next_year(here: Office) -> None:
    assert isinstance(here.clock, Clock)
    right = here.clock.moment
    here.clock.moment += timedelta(days=365)
    here.observe(REF, "staging")
    here.clock.moment = right
    assert code(lambda: witness(here, "wanda")) == "clock_went_backwards"
    assert COSIGNATURES not in here.streams()
    here.clock.moment += timedelta(days=365)
    assert witness(here, "wanda")
