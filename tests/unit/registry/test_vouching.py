"""Somebody who may publish goes round the reviews, with a program of his own: no run gets what he published."""

from collections.abc import Callable

import pytest

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.registry.events import Approval, CatalogReference, Drafted, Linted, Observed, Review, Signed
from contextplane.registry.streams import LOG, artifact_stream, version_stream
from tests.support.cases import cases
from tests.unit.authoring.packs import EXAMPLE, with_changes
from tests.unit.registry.releases import CATALOG, OVERLAY, PACK, TENANT, Releases, Walk
from tests.unit.registry.test_rogues import Odd, problems, rogue
from tests.unit.registry.world import ISSUER
from tests.unit.trust.world import day, key_of, revoke, rotate, trust

NEXT = with_changes([{"at": "/pack_meta/pack_version", "value": "1.1.0"}])
SECOND = PackRef.parse("ctxpack.support@1.1.0")
DATA = canonical(EXAMPLE)
SHARED = CatalogReference(id="decision-catalog.support", version="2.1.0", digest=f"sha256:{'0' * 64}")
LATER = Timestamp.parse("2030-03-01T00:00:00Z")
ARCH, SEC, DAT, EVA = ("arch", "architecture"), ("sec", "security"), ("dat", "data"), ("eva", "evaluation")


def drafted(registry: Releases) -> None:
    change = Drafted(kind="context_pack", id=PACK.pack_id, version=PACK.version, issuer=TENANT)
    registry.on_artifact("author", DATA, change, DATA)
    registry.lint(DATA)


def the_same(_: Releases) -> None:
    """Everybody has the keys that he always had."""


def author_has_another_key(registry: Releases) -> None:
    registry.keyring_change(trust(key_of("author"), TENANT, "security"))
    registry.keyring_change(rotate(key_of("author"), key_of("renewed"), since=day(1), old_until=LATER))


def reviewer_has_two_keys(registry: Releases) -> None:
    registry.keyring_change(trust(key_of("sec"), TENANT, "security", "data"))
    registry.keyring_change(rotate(key_of("sec"), key_of("renewed"), since=day(1), old_until=LATER))


def evaluator_owns_nothing(registry: Releases) -> None:
    registry.keyring_change(trust(key_of("other"), TENANT, "evaluation"))


def architect_has_every_role(registry: Releases) -> None:
    registry.keyring_change(trust(key_of("arch"), TENANT, "architecture", "data", "evaluation", "support_ops"))


Keys = Callable[[Releases], None]
WAYS: dict[str, tuple[Walk, Keys]] = {
    "nobody ever saw it": (Walk(draft=False, lint=False, reviews=(), signed=False), the_same),
    "only drafted": (Walk(lint=False, reviews=(), signed=False), the_same),
    "only linted": (Walk(reviews=(), signed=False), the_same),
    "one role is missing": (Walk(reviews=(ARCH, SEC, DAT), signed=False), the_same),
    "reviewed, and not signed": (Walk(signed=False), the_same),
    "signed by one of two": (Walk(threshold=2), the_same),
    "another envelope is signed": (Walk(envelope=b"another"), the_same),
    "all of it came later": (Walk(late=True), the_same),
    "reviewed by its author with a rotated key": (
        Walk(reviews=(ARCH, ("renewed", "security"), DAT, EVA), signed=False),
        author_has_another_key,
    ),
    "one reviewer in two roles with two keys": (
        Walk(reviews=(ARCH, SEC, ("renewed", "data"), EVA), signed=False),
        reviewer_has_two_keys,
    ),
    "no owner of its decisions": (
        Walk(reviews=(ARCH, SEC, DAT, ("other", "evaluation"))),
        evaluator_owns_nothing,
    ),
    "reviewed as an overlay": (Walk(kind="overlay", reviews=(ARCH, SEC)), architect_has_every_role),
    "reviewed as another version": (Walk(name="ctxpack.support@0.9.0"), the_same),
    "reviewed as another pack": (Walk(name="ctxpack.other@1.0.0"), the_same),
    "reviewed as somebody else's": (Walk(issuer="acme", signer="pub"), the_same),
    "compared with a version that never was": (Walk(after="0.9.0"), the_same),
    "compared with a later one": (Walk(after="2.0.0"), the_same),
    "compared with itself": (Walk(after="1.0.0"), the_same),
    "linted without the catalogs that it names": (Walk(catalogs=(SHARED,)), the_same),
    "an approval that nobody gave": (
        Walk(approvals=(Approval(role="security", by=key_of("arch").public_key.key_id),)),
        the_same,
    ),
}


@cases("way", WAYS)
def test_what_went_round_a_step_is_neither_run_nor_replayed(way: str) -> None:
    registry = Releases()
    walk, keys = WAYS[way]
    keys(registry)
    if walk.after == "2.0.0":
        registry.release(with_changes([{"at": "/pack_meta/pack_version", "value": "2.0.0"}]))
    registry.pin_here(registry.release(walk=walk))
    assert registry.ends() == registry.ends(purpose="replay") == "publication_unreviewed"


@pytest.mark.parametrize(("value", "kind"), [(OVERLAY, "overlay"), (CATALOG, "decision_catalog")])
def test_an_overlay_and_a_catalog_that_nobody_reviewed_spoil_the_pack(value: dict[str, object], kind: str) -> None:
    registry = Releases().with_example()
    unseen = Walk(draft=False, lint=False, reviews=(), signed=False)
    ref = registry.release(value, kind, walk=unseen)  # type: ignore[arg-type]
    registry.pin_here(ref, PACK.pack_id if kind == "overlay" else "")
    refs = (PACK,) if kind == "overlay" else (PACK, ref)
    assert registry.ends(*refs) == "publication_unreviewed"


def test_an_overlay_that_was_recorded_as_a_pack_is_none() -> None:
    registry = Releases().with_example()
    ref = registry.release(OVERLAY, "overlay", walk=Walk(kind="context_pack"))
    registry.pin_here(ref, PACK.pack_id)
    assert registry.ends() == "publication_unreviewed"


def test_the_refusal_says_what_was_missing_and_where() -> None:
    registry = Releases()
    registry.pin_here(registry.release(walk=Walk(reviews=(ARCH, DAT), signed=False)))
    with pytest.raises(Exception, match="not approved as security, evaluation") as refused:
        registry.resolve()
    assert refused.value.at == str(PACK)  # type: ignore[attr-defined]


def test_a_rejection_that_stood_is_told() -> None:
    registry = Releases()
    registry.keyring_change(trust(key_of("second"), TENANT, "security"))
    drafted(registry)
    registry.review_all(DATA)
    registry.review("second", DATA, "security", "reject")
    registry.pin_here(registry.release(walk=Walk(draft=False, lint=False, reviews=(), signed=False)))
    assert registry.ends(purpose="replay") == "publication_unreviewed"
    with pytest.raises(Exception, match="rejected as security: as it should be"):
        registry.resolve()


def test_a_version_before_that_was_published_after_it_was_not_there_to_be_compared_with() -> None:
    registry = Releases()
    registry.pin_here(registry.release(walk=Walk(after="0.5.0")))
    registry.release(with_changes([{"at": "/pack_meta/pack_version", "value": "0.5.0"}]))
    assert registry.ends() == "publication_unreviewed"


def test_the_owner_of_a_decision_is_asked_when_it_changed_and_not_when_it_did_not() -> None:
    changed = with_changes([{"at": "/decision_layer/decision_specs/0/owner_role", "value": "finance"}], NEXT)
    for value, expected in ((NEXT, "ok"), (changed, "publication_unreviewed")):
        registry = Releases().with_example()
        evaluator_owns_nothing(registry)
        reviews = (ARCH, SEC, DAT, ("other", "evaluation"))
        registry.pin_here(registry.release(value, walk=Walk(reviews=reviews)))
        assert registry.ends(SECOND) == expected


def test_the_bytes_of_the_version_before_must_be_those_that_were_published() -> None:
    registry = Releases().with_example()
    registry.pin_here(registry.release(NEXT))
    registry.kept[Digest.of(DATA)] = canonical(NEXT)
    assert registry.ends(SECOND) == "publication_unreviewed"
    registry.kept[Digest.of(DATA)] = b"{"
    assert registry.ends(SECOND) == "publication_unreviewed"


def test_one_event_of_the_version_before_is_read_whatever_happened_to_it_and_none_of_others() -> None:
    registry = Releases().with_example()
    for n in range(5):
        registry.on_version("author", str(PACK), Observed(environment=f"env_{n}", run="run_0123456789abcdef"))
    registry.pin_here(registry.release(NEXT))
    registry.release(with_changes([{"at": "/pack_meta/pack_version", "value": "3.0.0"}]))
    streams = [event.stream for event in registry.resolve(SECOND).proof.events]
    assert streams.count(version_stream(PACK)) == 1
    assert set(streams) == {
        version_stream(PACK),
        version_stream(SECOND),
        artifact_stream(Digest.of(canonical(NEXT))),
        "registry/pins/prod/ctxpack.support",
    }


def test_events_that_claim_a_place_in_the_log_before_the_publication_are_not_proved() -> None:
    registry = Releases()
    stream = artifact_stream(Digest.of(DATA))
    registry.pin_here(registry.release(walk=Walk(reviews=(ARCH, SEC, DAT), signed=False)))
    with registry.reading() as reader:
        state, size = reader.version(PACK), reader.streams.head(LOG)
    assert registry.ends() == "publication_unreviewed"
    back = Odd(entry=state.entry - 1 - size)
    rogue(registry, "eva", stream, Review(role="evaluation", verdict="approve"), back)
    signed = Signed(envelope=state.publication.envelope, threshold=1)
    rogue(registry, "signer", stream, signed, Odd(entry=back.entry - 1))
    assert registry.ends() == "publication_unreviewed"


# --- keys that are revoked from before --------------------------------------------------------------------------------


def revoked_from_the_start(registry: Releases, name: str) -> None:
    registry.seconds += 10
    registry.keyring_change(revoke(key_of(name), day(2)))


def test_what_stands_on_the_approval_of_a_revoked_key_takes_no_new_traffic_and_is_replayed_with_a_mark() -> None:
    registry = Releases().with_example()
    revoked_from_the_start(registry, "sec")
    assert registry.ends() == "publication_doubtful"
    assert registry.resolve(purpose="replay").marks == (f"{PACK}: approved by a key that is revoked",)
    assert problems(registry) == []


def test_a_key_that_is_revoked_from_later_on_has_approved() -> None:
    registry = Releases().with_example()
    registry.seconds += 10
    registry.keyring_change(revoke(key_of("sec"), registry.now))
    assert registry.ends() == "ok"


def test_another_approval_in_the_same_role_is_enough() -> None:
    registry = Releases()
    registry.keyring_change(trust(key_of("second"), TENANT, "security"))
    registry.pin_here(registry.release(walk=Walk(reviews=(ARCH, SEC, ("second", "security"), DAT, EVA))))
    revoked_from_the_start(registry, "sec")
    assert registry.ends() == "ok"


def test_without_the_approval_of_a_revoked_key_it_waits_for_another_and_its_history_can_be_read() -> None:
    registry = Releases()
    digest, data = Digest.of(DATA), DATA
    registry.draft(data, str(PACK))
    registry.lint(data)
    registry.review_all(data)
    registry.sign(data)
    revoked_from_the_start(registry, "sec")
    with registry.reading() as reader:
        state = reader.artifact(digest)
    assert (state.stage, state.missing, state.seq, state.ignoring_revocations.stage) == (
        "linted",
        ("security",),
        7,
        "signed",
    )
    registry.keyring_change(trust(key_of("second"), ISSUER, "security"))
    registry.review("second", data, "security")
    registry.sign(data)
    with registry.reading() as reader:
        assert reader.artifact(digest).stage == "signed"
    assert problems(registry) == []


def test_what_was_never_allowed_is_refused_whatever_became_of_keys() -> None:
    registry = Releases()
    drafted(registry)
    registry.on_artifact("arch", DATA, Linted(report=str(Digest.of(b"report of " + DATA)), roles=(), after=""))
    revoked_from_the_start(registry, "author")
    with pytest.raises(ContextPlaneError) as refused:
        registry.on_artifact("signer", DATA, Signed(envelope=str(Digest.of(DATA)), threshold=1))
    assert refused.value.code == "lifecycle_transition_refused"


def test_the_rejection_of_a_revoked_key_stops_nobody_and_the_history_is_in_order() -> None:
    registry = Releases()
    registry.keyring_change(trust(key_of("second"), TENANT, "security"))
    drafted(registry)
    registry.review("sec", DATA, "security", "reject")
    registry.review("arch", DATA, "architecture")
    revoked_from_the_start(registry, "sec")
    rest = Walk(draft=False, lint=False, reviews=(("second", "security"), DAT, EVA))
    registry.pin_here(registry.release(walk=rest))
    assert registry.ends() == "ok"
    assert problems(registry) == []
    with registry.reading() as reader:
        state = reader.artifact(Digest.of(DATA))
    assert (state.stage, state.ignoring_revocations.stage) == ("signed", "linted")


class TakenOver(Releases):
    """Between signature and publication the author takes over the key of a reviewer."""

    def _walk(self, walk: Walk, data: bytes, drafted: Drafted, sealed: bytes, signer: str) -> None:
        super()._walk(walk, data, drafted, sealed, signer)
        self.keyring_change(rotate(key_of("author"), key_of("sec"), since=day(1), old_until=LATER))


def test_a_review_that_is_the_authors_by_the_time_of_the_publication_does_not_carry_it() -> None:
    registry = TakenOver()
    registry.pin_here(registry.release())
    assert registry.ends() == registry.ends(purpose="replay") == "publication_unreviewed"
    assert [code for code, _ in problems(registry)] == ["lifecycle_transition_refused"]
