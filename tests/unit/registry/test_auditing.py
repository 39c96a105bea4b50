"""A verification of all of the registry tells everything that is wrong, and where; and what is sound is signed anew."""

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextplane.app.registry.audit import audit_registry, prove_consistency, prove_inclusion, renew_checkpoint
from contextplane.app.registry.pins import roll_back, set_alias, set_protection, unpin
from contextplane.app.registry.release import retire
from contextplane.app.registry.resolve import load_for_replay
from contextplane.model.ids import PackRef
from contextplane.model.timestamp import NO_TIME
from contextplane.registry.audit import AuditResult
from contextplane.registry.events import Deprecated
from contextplane.registry.streams import CHECKPOINTS, LOG
from contextplane.testing.standalone_verifier import proves_consistency, proves_inclusion
from contextplane.trust.checkpoint import NoteUnsigned
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import follow_keyring
from tests.postgres import shared_url
from tests.unit.registry.desk import NARROWER, OVERLAY, Clock, Office, code, office, version
from tests.unit.registry.tampering import Stolen
from tests.unit.registry.world import ORIGIN, Registry
from tests.unit.trust.world import CHECK, key_of, revoke

ONE = PackRef.parse("ctxpack.support@1.0.0")


def whole(here: Office) -> AuditResult:
    return audit_registry(here.desk, lambda _size, _events: None)


def sign(here: Office, result: AuditResult, by: str = "ops") -> object:
    return renew_checkpoint(here.desk, result, key_of(by))


def test_all_that_is_wrong_is_told_together_with_its_place(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.publish(b"one")
    registry.pin("prod", "refunds@1.0.0", b"one")
    registry.on_version("pub", "refunds@1.0.0", Deprecated())
    registry.catalog.close()
    thief = Stolen(tmp_path / "catalog.db")
    thief.cut("registry/version/refunds@1.0.0")
    thief.reword("registry/pins/prod/refunds", 1, b"go", b"no")
    thief.put("tree/registry/01", 1, b'"' + b"0" * 64 + b'"')
    thief.add("tree/registry/02", "tree_node", b'"' + b"0" * 64 + b'"')
    thief.add("tree/registry/09", "tree_node", b'"' + b"0" * 64 + b'"')
    thief.add("registry/strange", "entry", b"{}")
    problems = {(problem.code, problem.at) for problem in thief.audited().problems}
    assert problems == {
        ("registry_stream_cut", "registry/version/refunds@1.0.0@2"),
        ("log_rewritten", "registry/pins/prod/refunds@1"),
        ("tree_damaged", "tree/registry/01@1"),
        ("tree_damaged", "tree/registry/02@5"),
        ("tree_damaged", "tree/registry/09"),
        ("registry_event_invalid", "registry/strange"),
    }


def test_a_checkpoint_in_the_place_of_its_neighbour_is_reported(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.publish(b"one")
    registry.catalog.close()
    thief = Stolen(tmp_path / "catalog.db")
    assert thief.audited().sound
    ((last,),) = thief.ask("SELECT max(seq) FROM event WHERE stream = ?", CHECKPOINTS)
    assert isinstance(last, int)
    thief.put(CHECKPOINTS, last - 1, thief.body(CHECKPOINTS, last - 2))
    problems = [(problem.code, problem.at) for problem in thief.audited().problems]
    assert problems == [("checkpoint_missing", f"{CHECKPOINTS}@{last - 1}")]


@pytest.mark.parametrize("code_of_damage", ["object_not_found", "object_corrupt"])
def test_every_object_that_an_event_names_is_read_and_none_stops_the_signing(here: Office, code_of_damage: str) -> None:
    """The objects of a draft, of a signed artifact and of a published version: documents, envelopes and reports."""
    here.record(version("3.0.0"))
    signed = here.record(version("4.0.0"))
    here.review_all(str(signed.digest), signed.missing)
    here.sign(str(signed.digest))
    kept = whole(here).newest
    assert kept is not None
    here.release()
    objects = {path for path in Path(here.desk.platform.home.objects).glob("??/*") if not path.is_dir()}
    assert len(objects) == 9
    only_new = 0
    for path in objects:
        data = path.read_bytes()
        path.unlink()
        if code_of_damage == "object_corrupt":
            path.write_bytes(data + b" ")
        result = whole(here)
        assert {problem.code for problem in result.problems} == {code_of_damage}
        assert any(f"{path.parent.name}{path.name}" in problem.message for problem in result.problems)
        assert result.signable
        only_new += not audit_registry(here.desk, lambda _size, _events: None, kept.note).sound
        path.unlink(missing_ok=True)
        path.write_bytes(data)
    assert only_new == 4
    assert whole(here).sound


FAR = 10**15
"""No loop that counts so far comes to an end."""


@pytest.mark.parametrize("stream", [CHECKPOINTS, LOG, "registry/environments/dev", "tree/registry/00"])
def test_a_number_that_somebody_put_into_the_catalog_is_not_counted_up_to(here: Office, stream: str) -> None:
    set_protection(here.desk, "dev", protected=False, by=here.by("ops"))
    there = Stolen(Path(here.desk.platform.home.catalog))
    there.run("INSERT INTO event VALUES (?, ?, 'entry', ?)", stream, FAR, b'"x"')
    assert not whole(here).sound
    before = here.desk.keys.keyring.seq
    assert here.desk.keys.revoke(key_of("ops").public_key.key_id, "stolen", key_of("root")).seq == before + 1
    assert not whole(here).sound


@pytest.mark.parametrize("number", [b"-9007199254740991", b"0", b"9007199254740991", b"1" + b"0" * 30])
def test_neither_is_one_that_stands_in_an_entry_of_the_log(here: Office, number: bytes) -> None:
    set_protection(here.desk, "dev", protected=False, by=here.by("ops"))
    there = Stolen(Path(here.desk.platform.home.catalog))
    there.put(LOG, 1, there.body(LOG, 1).replace(b'"seq":1,', b'"seq":%b,' % number))
    assert "log_rewritten" in {problem.code for problem in whole(here).problems}


def test_a_log_that_is_longer_than_is_signed_is_told_to_whoever_never_saw_it_before(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.publish(b"one")
    registry.catalog.close()
    thief = Stolen(tmp_path / "catalog.db")
    thief.cut(CHECKPOINTS)
    assert [(problem.code, problem.at) for problem in thief.audited().problems] == [
        ("log_rewritten", f"{CHECKPOINTS}@15"),
        ("log_rewritten", LOG),
    ]


def test_a_memory_of_the_keyring_that_trusts_others_than_the_keyring_does_is_told(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.publish(b"one")
    with registry.catalog.read() as view:
        known = follow_keyring(view.streams, TrustedKeys(origin=ORIGIN), CHECK)
    registry.catalog.close()
    thief = Stolen(tmp_path / "catalog.db")
    assert thief.audited(known=known).sound
    (acme,) = known.issuers
    widened = replace(known, issuers=(acme, replace(acme, name="globex")))
    assert [problem.code for problem in thief.audited(known=widened).problems] == ["keyring_rewritten"]


def test_an_event_beside_the_log_is_told(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.publish(b"one")
    registry.catalog.close()
    thief = Stolen(tmp_path / "catalog.db")
    thief.add("registry/version/ghost@1.0.0", "published", thief.body("registry/version/refunds@1.0.0", 1))
    (problem,) = thief.audited().problems
    assert (problem.code, problem.at) == ("registry_stream_cut", "registry/version/ghost@1.0.0@1")


def test_a_keyring_that_does_not_verify_is_the_one_trouble_for_nobody_is_trusted_then(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.publish(b"one")
    registry.catalog.close()
    thief = Stolen(tmp_path / "catalog.db")
    thief.put("trust/keyring", 2, thief.body("trust/keyring", 3))
    assert [problem.at for problem in thief.audited().problems] == ["trust/keyring@2"]


def test_a_registry_in_which_nothing_happened_has_its_keyring_and_is_sound(here: Office) -> None:
    result = whole(here)
    assert (result.sound, result.entries) == (True, here.desk.keys.keyring.seq)
    sign(here, result)
    assert whole(here).sound


def test_what_is_sound_is_signed_anew_and_the_log_stays_as_it_is(here: Office) -> None:
    here.record()
    result = whole(here)
    before = here.streams()
    sign(here, result)
    after = here.streams()
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {
        "registry/checkpoints": 1
    }
    again = whole(here)
    assert again.sound
    assert again.newest is not None
    assert again.newest.time > result.as_of


def test_nobody_vouches_who_is_not_trusted(here: Office) -> None:
    here.record()
    result = whole(here)
    assert code(lambda: sign(here, result, "mallory")) == "registry_signer_untrusted"


def test_who_vouches_by_a_clock_that_is_behind_does_so_after_what_he_vouches_for(here: Office) -> None:
    here.record()
    result = whole(here)
    clock = here.desk.platform.clock
    assert isinstance(clock, Clock)
    clock.moment -= timedelta(hours=1)
    sign(here, result)
    again = whole(here)
    assert again.sound
    assert again.as_of > result.as_of


def test_nobody_vouches_for_what_was_written_since_he_looked(here: Office) -> None:
    here.record()
    result = whole(here)
    here.release()
    assert code(lambda: sign(here, result)) == "stream_conflict"


def test_nobody_vouches_for_what_is_wrong(here: Office) -> None:
    here.record()
    Stolen(Path(here.desk.platform.home.catalog)).put(LOG, 1, b"{}")
    result = whole(here)
    assert code(lambda: sign(here, result)) == "registry_unsound"


def test_when_who_signed_the_newest_checkpoint_is_revoked_another_vouches_for_all_and_it_goes_on(here: Office) -> None:
    ref = here.release()
    here.pin("prod", ref)
    here.change_keys(revoke(key_of("ops"), NO_TIME))
    messages = set()
    for act in (lambda: here.stage(ref), lambda: here.pin("dev", ref, "root"), lambda: load_for_replay(here.desk, ref)):
        with pytest.raises(NoteUnsigned) as refused:
            act()
        messages.add(str(refused.value))
    (message,) = messages
    assert message.startswith("registry/checkpoints@10: the key that signed the newest checkpoint is revoked")
    assert "'ctx verify --registry --sign --key KEY'" in message
    result = whole(here)
    assert ([problem.code for problem in result.problems], result.renewable, result.by_revoked) == (
        ["note_unsigned"],
        True,
        1,
    )
    sign(here, result, "root")
    assert here.stage(ref) == "published"
    assert whole(here).sound


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_whatever_people_do_leaves_a_registry_that_verifies(tmp_path: Path, place: str) -> None:
    with office(tmp_path, shared_url() if place == "postgres" else None) as here:
        by = here.by("ops", "as the day goes")
        first, second = here.release(), here.release(version("1.1.0", NARROWER))
        for ref in (first, second):
            here.pin("prod", ref)
        roll_back(here.desk, "prod", first.pack_id, None, by)
        set_alias(here.desk, second, "stable", by)
        set_protection(here.desk, "dev", protected=False, by=by)
        here.pin("dev", second)
        unpin(here.desk, "dev", second.pack_id, None, by)
        here.release(OVERLAY)
        here.release(version("1.0.1"))
        retire(here.desk, first, "deprecated", here.by("pub", "old"))
        retire(here.desk, second, "revoked", here.by("pub", "bad"))
        result = whole(here)
        assert result.problems == ()
        assert result.subjects == 18


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_proofs_that_are_carried_away_convince_a_verifier_that_shares_no_code(tmp_path: Path, place: str) -> None:
    with office(tmp_path, shared_url() if place == "postgres" else None) as here:
        here.release()
        held = prove_inclusion(here.desk, ONE)
        assert proves_inclusion(held.proof, held.entry, held.vkey)
        assert not proves_inclusion(held.proof, held.entry + b" ", held.vkey)
        here.pin("prod", ONE)
        grown = prove_consistency(here.desk, 3)
        assert proves_consistency(grown.proof, grown.old_root, grown.vkey)
        assert not proves_consistency(grown.proof, bytes(32), grown.vkey)
        assert code(lambda: prove_inclusion(here.desk, PackRef.parse("ctxpack.support@9.0.0"))) == "version_not_found"
        assert code(lambda: prove_consistency(here.desk, 99)) == "outside_tree"
        assert whole(here).sound
