"""People with good keys who go round the verbs: an event of theirs is well signed, and says what is not so."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from contextplane.app.registry.audit import audit_registry, prove_inclusion
from contextplane.app.registry.pins import set_protection
from contextplane.app.registry.resolve import load_for_replay
from contextplane.app.registry.view import show_version
from contextplane.app.settings import Settings
from contextplane.model.catalog import Event
from contextplane.model.ids import Digest
from contextplane.registry.artifact_state import REQUIRED_REVIEWS
from contextplane.registry.artifacts import Candidate, candidate
from contextplane.registry.events import (
    Change,
    Drafted,
    DraftListed,
    EnvironmentOpened,
    Linted,
    Published,
    RegistryEvent,
    Review,
    Signed,
    sign_event,
)
from contextplane.registry.reviews import ReviewIncomplete, check_reviews, needed_roles
from contextplane.registry.streams import LOG, artifact_stream, drafts_stream, environment_stream, version_stream
from contextplane.registry.writer import PlannedChange
from contextplane.trust.dsse import IN_TOTO, Envelope, Signature, Statement, encode_base64
from contextplane.trust.keyring_events import KeyRotation, ThresholdChange
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.merkle_log import LogEntry
from contextplane.trust.verify import sign
from tests.support.forged_log import forge_log
from tests.unit.registry.backdating import slipped_in
from tests.unit.registry.desk import ISSUER, PACK, Office, code, desk_in, version
from tests.unit.registry.tampering import Stolen
from tests.unit.trust.world import key_of

LINTED = Linted(report=str(Digest.of(b"{}")), roles=(), after="")


def slip(here: Office, by: str, digest: Digest, *changes: Change, objects: tuple[bytes, ...] = ()) -> None:
    """Append events about some bytes, as no verb would."""
    plans = [PlannedChange(stream=artifact_stream(digest), change=change, reason="so it is") for change in changes]
    here.desk.act(key_of(by), plans, objects)


def signed_as(here: Office, by: str, pack: Candidate, statement: Statement, *, threshold: int = 1) -> None:
    envelope = sign(statement, key_of(by))
    slip(here, by, pack.digest, Signed(envelope=str(Digest.of(envelope)), threshold=threshold), objects=(envelope,))


def several_roles(here: Office) -> None:
    here.trust("arch", "architecture", "data")
    here.trust("sec", "security", "evaluation", "support_ops")


@pytest.mark.parametrize("name", ["ctxpack.support@9.9.9", PACK])
def test_who_signs_second_signs_what_he_was_asked_to_and_not_what_the_first_one_put_there(
    here: Office, name: str
) -> None:
    here.change_keys(ThresholdChange(issuer=ISSUER, threshold=2))
    pack, target = candidate(version("1.0.0")), str(here.record(version("1.0.0")).digest)
    here.review_all(target)
    worse = Statement(name=name, kind="context_pack", issuer=ISSUER, digest=Digest.of(b"something worse"))
    signed_as(here, "ops", pack, worse, threshold=2)
    assert code(lambda: here.sign(target)) == "statement_subject_mismatch"
    # the way out: a rejection voids what was signed
    here.review(target, "sec", "security", "reject")
    here.review(target, "sec", "security")
    assert here.sign(target).signatures == (1, 2)


@pytest.mark.parametrize(
    "lie", [{"kind": "overlay"}, {"id": "ctxpack.other"}, {"version": "9.0.0"}, {"issuer": "globex"}]
)
def test_bytes_that_were_recorded_as_what_they_are_not_go_nowhere(here: Office, lie: dict[str, Any]) -> None:
    """An overlay takes fewer reviewers than a pack. The verbs look at the bytes, also if others went round them."""
    several_roles(here)
    globex = {"arch": "architecture", "sec": "security", "dat": "data", "eva": "evaluation", "pub": "publisher"}
    for name, role in globex.items():
        here.trust(name, role, issuer="globex")
    pack = candidate(version("1.0.0"))
    draft = Drafted(kind=pack.kind, id=pack.ref.pack_id, version=pack.ref.version, issuer=ISSUER)
    slip(here, "author", pack.digest, msgspec.structs.replace(draft, **lie), LINTED, objects=(pack.data, b"{}"))
    target = str(pack.digest)
    assert code(lambda: here.review(target, "arch", "architecture")) == "artifact_recorded_otherwise"
    for by, role in (("arch", "architecture"), ("sec", "security"), ("dat", "data"), ("eva", "evaluation")):
        slip(here, by, pack.digest, Review(role=role, verdict="approve"))
    assert code(lambda: here.sign(target)) == "artifact_recorded_otherwise"
    signed_as(here, "pub", pack, Statement(name=PACK, kind=pack.kind, issuer=ISSUER, digest=pack.digest))
    assert here.artifact_stage(pack.digest) == "signed"
    assert code(lambda: here.record(version("1.0.0"))) == "artifact_recorded_otherwise"
    assert code(lambda: here.publish(target)) == "artifact_recorded_otherwise"


def test_bytes_in_another_than_the_canonical_form_are_not_published(here: Office) -> None:
    """They would be the same document under a second digest."""
    pack = candidate(version("1.0.0"))
    data = pack.data + b"\n"
    digest = Digest.of(data)
    draft = Drafted(kind=pack.kind, id=pack.ref.pack_id, version=pack.ref.version, issuer=ISSUER)
    slip(here, "author", digest, draft, LINTED, objects=(data, b"{}"))
    assert code(lambda: here.review(str(digest), "arch", "architecture")) == "artifact_invalid"
    for by, role in (("arch", "architecture"), ("sec", "security"), ("dat", "data"), ("eva", "evaluation")):
        slip(here, by, digest, Review(role=role, verdict="approve"))
    assert code(lambda: here.sign(str(digest))) == "artifact_invalid"
    assert code(lambda: here.publish(str(digest))) == "artifact_invalid"


def test_a_reviewer_who_has_several_roles_counts_for_one_of_the_four_whatever_was_recorded(here: Office) -> None:
    several_roles(here)
    acted = here.record(version("1.0.0"))
    for by, role in (("arch", "architecture"), ("sec", "security")):
        here.review(str(acted.digest), by, role)
    with here.desk.read() as reader:
        state = reader.artifact(acted.digest)
    two = msgspec.structs.replace(state, needed=REQUIRED_REVIEWS["overlay"])
    with pytest.raises(ReviewIncomplete) as error:
        check_reviews(two, needed_roles(candidate(version("1.0.0")), None))
    assert error.value.details == {"missing": ["data", "evaluation"]}


def test_a_rejection_of_an_owner_stands_also_when_somebody_records_that_nobody_asks_him(here: Office) -> None:
    here.trust("own", "support_ops")
    acted = here.record()
    target = str(acted.digest)
    here.review_all(target, acted.missing)
    here.review(target, "own", "support_ops", "reject")
    slip(here, "author", acted.digest, LINTED, objects=(b"{}",))
    here.sign(target)
    assert code(lambda: here.publish(target)) == "review_rejected"


@pytest.mark.parametrize("lie", [20, 0])
def test_a_publication_that_names_another_place_in_the_log_is_vouched_for_by_nobody(here: Office, lie: int) -> None:
    """It was published first, and reviewed afterwards; by the entry that it names it was the other way round."""
    acted = here.record()
    envelope = sign(Statement(name=PACK, kind="context_pack", issuer=ISSUER, digest=acted.digest), key_of("pub"))
    with here.desk.read() as reader:
        state, keyring = reader.artifact(acted.digest), reader.keyrings.now.seq
    change = Published(
        digest=str(acted.digest),
        kind="context_pack",
        issuer=ISSUER,
        envelope=str(Digest.of(envelope)),
        report=state.report,
        golden="not_run",
        after="",
    )
    now = here.desk.keys.now
    event = RegistryEvent(
        subject=version_stream(acted.ref),
        seq=1,
        previous="",
        entry=lie,
        keyring=keyring,
        at=str(now),
        reason="it is urgent",
        change=change,
        origin=here.desk.origin,
    )
    slipped_in(here.desk.platform.catalog, event, by="pub", until=now, origin=here.desk.origin)
    for by, role in (("arch", "architecture"), ("sec", "security"), ("dat", "data"), ("eva", "evaluation")):
        slip(here, by, acted.digest, Review(role=role, verdict="approve"))
    slip(here, "pub", acted.digest, Signed(envelope=str(Digest.of(envelope)), threshold=1), objects=(envelope,))
    for n in range(20):  # the log is as long as it says by then
        set_protection(here.desk, "staging", protected=bool(n % 2), by=here.by("ops"))
    assert code(lambda: load_for_replay(here.desk, acted.ref)) == "version_not_found"
    assert code(lambda: prove_inclusion(here.desk, acted.ref)) == "version_not_found"


def test_a_report_that_is_none_is_told_as_that(here: Office) -> None:
    pack = candidate(version("1.0.0"))
    draft = Drafted(kind=pack.kind, id=pack.ref.pack_id, version=pack.ref.version, issuer=ISSUER)
    slip(here, "author", pack.digest, draft, LINTED, objects=(pack.data, b"{}"))
    listed = PlannedChange(
        stream=drafts_stream(pack.ref), change=DraftListed(digest=str(pack.digest)), reason="to show it"
    )
    here.desk.act(key_of("author"), [listed])
    assert code(lambda: show_version(here.desk, pack.ref)) == "registry_event_invalid"


def test_nobody_is_shown_as_a_signer_because_an_envelope_names_him(here: Office) -> None:
    acted = here.record()
    target = str(acted.digest)
    here.review_all(target, acted.missing)
    statement = Statement(name=PACK, kind="context_pack", issuer=ISSUER, digest=acted.digest)
    named = Signature(key_id=key_of("root").public_key.key_id, value=bytes(64))
    good = Envelope.parse(sign(statement, key_of("pub")), payload_type=IN_TOTO)
    data = msgspec.structs.replace(good, signatures=(*good.signatures, named)).to_bytes()
    slip(here, "pub", acted.digest, Signed(envelope=str(Digest.of(data)), threshold=1), objects=(data,))
    here.publish(target)
    assert show_version(here.desk, acted.ref).signed_by == (key_of("pub").public_key.key_id,)


def test_a_rotation_cannot_be_taken_out_of_a_past_that_was_seen(here: Office, tmp_path: Path) -> None:
    """The author has a second key, which may review, and can write the catalog."""
    here.trust("spare", "security")
    now, raw = here.desk.keys.now, encode_base64(key_of("spare").public_key.raw)
    rotation = KeyRotation(
        old=key_of("author").public_key.key_id, key=raw, valid_from=str(now), old_until="2031-01-01T00:00:00Z"
    )
    here.change_keys(rotation)
    here.trust("later")
    target = str(here.record().digest)
    assert code(lambda: here.review(target, "spare", "security")) == "reviewer_is_author"
    with here.desk.platform.catalog.read() as view:
        *_, before, rotated, _last = [event.body for event in view.streams.read(KEYRING_STREAM)]
    assert before != rotated
    stolen = Stolen(tmp_path / ".ctx" / "catalog.db")
    stolen.run("UPDATE event SET body = ? WHERE stream = ? AND body = ?", before, KEYRING_STREAM, rotated)
    assert code(lambda: here.review(target, "spare", "security")) == "keyring_rewritten"
    with desk_in(Settings(cwd=str(tmp_path)), here.clock) as anew:
        assert code(lambda: anew.review(target, "spare", "security")) == "keyring_event_invalid"


def test_an_event_that_was_signed_for_another_store_is_void(here: Office) -> None:
    here.release()
    with here.desk.read() as reader:
        entry, keyring = reader.streams.head(LOG), reader.keyrings.now.seq
    now = here.desk.keys.now
    event = RegistryEvent(
        subject=environment_stream("dev"),
        seq=1,
        previous="",
        entry=entry,
        keyring=keyring,
        at=str(now),
        reason="for a test store",
        change=EnvironmentOpened(),
        origin="contextplane.registry/store_of_tests",
    )
    slipped_in(here.desk.platform.catalog, event, by="ops", until=now, origin=here.desk.origin)
    with here.desk.read() as reader:
        assert reader.environment("dev").protected
    assert "event_of_other_store" in {problem.code for problem in audit_registry(here.desk, lambda *_: None).problems}


def test_a_key_without_the_role_log_signs_no_checkpoint(here: Office) -> None:
    key = here.desk.keys.key_trust(key_of("guest").public_key, ISSUER)
    here.change_keys(key)
    assert code(lambda: here.record(by="guest")) == "registry_signer_untrusted"
    now = here.desk.keys.now
    with here.desk.platform.catalog.write() as tx:
        forge_log(tx, [], signer=key_of("guest"), at=now, origin=here.desk.origin)
    assert code(lambda: here.base("prod")) == "note_unsigned"


def test_a_rejection_that_is_exchanged_behind_the_log_is_missed(here: Office) -> None:
    """Who signs the log puts another event in its place, and one more that names the other as the one before it."""
    acted = here.record()
    here.review_all(str(acted.digest), acted.missing)
    here.review(str(acted.digest), "sec", "security", "reject")
    stream = artifact_stream(acted.digest)
    with here.desk.read() as reader:
        *_, approved, rejected = reader.history(stream)
        entry, keyring = reader.streams.head(LOG), reader.keyrings.now.seq
    linted = Linted(report=str(acted.digest), roles=(), after="")
    first = replace(rejected.event, change=linted)
    fake = sign_event(first, key_of("author"))
    now = here.desk.keys.now
    second = replace(first, seq=first.seq + 1, previous=Digest.of(fake).hex, entry=entry, keyring=keyring, at=str(now))
    body = sign_event(second, key_of("author"))
    thief = Stolen(Path(here.desk.platform.home.catalog))
    thief.put(stream, first.seq, fake)
    thief.run("UPDATE event SET kind = 'linted' WHERE stream = ? AND seq = ?", stream, first.seq)
    with here.desk.platform.catalog.write() as tx:
        tx.streams.append(stream, first.seq, [Event(kind="linted", body=body)])
        logged = LogEntry(event=Digest.of(body).hex, seq=second.seq, stream=stream, previous=rejected.digest)
        forge_log(tx, [logged], signer=key_of("author"), at=now, origin=here.desk.origin)
    assert approved.kind == "reviewed"
    for act in (lambda: here.sign(str(acted.digest)), lambda: here.artifact_stage(acted.digest)):
        assert code(act) == "registry_event_invalid"
