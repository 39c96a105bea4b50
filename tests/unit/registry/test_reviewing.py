"""Reviews: by whom, in which role, of exactly which bytes, and how long they count."""

import pytest

from contextplane.app.registry.audit import audit_registry
from contextplane.app.registry.resolve import resolve_request
from contextplane.registry.resolution import ResolveRequest
from contextplane.testing.proofs import proves
from contextplane.trust.dsse import encode_base64
from contextplane.trust.keyring_events import KeyRotation
from tests.unit.registry.desk import ISSUER, NARROWER, Office, code, version
from tests.unit.registry.releases import HERE
from tests.unit.trust.world import key_of, revoke

WIDER = {"at": "/decision_layer/decision_specs/0/allowed_outcomes/-", "value": "postponed"}


def rotate(here: Office, old: str, new: str) -> None:
    """Somebody has a new key."""
    now = here.desk.keys.now
    raw = encode_base64(key_of(new).public_key.raw)
    here.change_keys(KeyRotation(old=key_of(old).public_key.key_id, key=raw, valid_from=str(now), old_until=str(now)))


@proves("context-pack:lifecycle:reviewed")
@pytest.mark.parametrize("absent", ["architecture", "security", "data", "evaluation"])
def test_all_four_reviewers_are_needed(here: Office, absent: str) -> None:
    acted = here.record()
    here.review_all(
        str(acted.digest), [role for role in ("architecture", "security", "data", "evaluation") if role != absent]
    )
    assert here.artifact_stage(acted.digest) == "linted"
    assert code(lambda: here.sign(str(acted.digest))) == "lifecycle_transition_refused"


def test_the_author_does_not_review_nor_does_a_key_that_was_rotated_from_or_into_his(here: Office) -> None:
    here.trust("author", "architecture")
    acted = here.record()
    target = str(acted.digest)
    assert code(lambda: here.review(target, "author", "architecture")) == "reviewer_is_author"
    rotate(here, "author", "renewed")
    assert code(lambda: here.review(target, "renewed", "architecture")) == "reviewer_is_author"


def test_a_review_that_turns_out_to_be_of_the_author_counts_no_longer(here: Office) -> None:
    acted = here.record()
    target = str(acted.digest)
    here.review_all(target)
    rotate(here, "author", "arch")
    assert here.artifact_stage(acted.digest) == "linted"


def test_of_two_reviews_that_turn_out_to_be_of_one_person_the_last_counts(here: Office) -> None:
    acted = here.record()
    here.review_all(str(acted.digest))
    rotate(here, "arch", "sec")
    with here.desk.read() as reader:
        state = reader.artifact(acted.digest)
    assert (state.stage, state.missing) == ("linted", ("architecture",))


def test_it_counts_no_longer_also_after_it_was_signed_and_another_review_takes_its_place(here: Office) -> None:
    here.trust("other", "architecture")
    acted = here.record()
    target = str(acted.digest)
    here.review_all(target, acted.missing)
    here.sign(target)
    rotate(here, "author", "arch")
    assert here.artifact_stage(acted.digest) == "linted"
    assert code(lambda: here.publish(target)) == "lifecycle_transition_refused"
    here.review(target, "other", "architecture")
    assert here.publish(target).stage == "published"
    assert audit_registry(here.desk, lambda _size, _events: None).problems == ()


@pytest.mark.parametrize(("old", "new"), [("arch", "sec"), ("author", "sec"), ("eva", "author"), ("ops", "pub")])
def test_who_takes_over_the_key_of_a_colleague_unmakes_nothing_that_both_did(here: Office, old: str, new: str) -> None:
    ref = here.release()
    here.pin("prod", ref)
    rotate(here, old, new)
    request = ResolveRequest(refs=(ref,), tenant=ISSUER, environment="prod", purpose="new_traffic")
    assert resolve_request(here.desk, request, HERE, max_age=None).marks == ()
    assert audit_registry(here.desk, lambda _size, _events: None).problems == ()


def test_a_reviewer_counts_once(here: Office) -> None:
    here.trust("arch", "architecture", "security")
    target = str(here.record().digest)
    here.review(target, "arch", "architecture")
    assert code(lambda: here.review(target, "arch", "security")) == "reviewer_counts_once"


def test_a_review_takes_the_role_it_is_made_in_also_of_an_owner(here: Office) -> None:
    target = str(here.record().digest)
    for name in ("root", "pub", "ops", "sec"):
        assert code(lambda name=name: here.review(target, name, "architecture")) == "registry_role_missing"
    assert code(lambda: here.review(target, "ops", "operator")) == "review_role_unneeded"


def test_a_rejection_stands_until_its_reviewer_approves(here: Office) -> None:
    acted = here.record()
    target = str(acted.digest)
    here.review_all(target)
    here.sign(target)
    assert here.review(target, "sec", "security", "reject").stage == "linted"
    for act in (lambda: here.sign(target), lambda: here.publish(target)):
        assert code(act) == "review_rejected"
    here.trust("sec2", "security")
    assert here.review(target, "sec2", "security").stage == "linted"
    assert here.review(target, "sec", "security").stage == "reviewed"
    assert code(lambda: here.publish(target)) == "lifecycle_transition_refused"  # what was signed before is void
    here.sign(target)
    assert here.publish(target).stage == "published"


def test_what_a_reviewer_says_with_a_new_key_takes_the_place_of_what_he_said_with_the_old_one(here: Office) -> None:
    acted = here.record()
    target = str(acted.digest)
    here.review(target, "sec", "security", "reject")
    rotate(here, "sec", "sec renewed")
    here.review(target, "sec renewed", "security")
    here.review_all(target, ("architecture", "data", "evaluation"))
    assert here.artifact_stage(acted.digest) == "reviewed"


def test_the_review_of_a_key_that_was_revoked_from_before_does_not_count(here: Office) -> None:
    acted = here.record()
    since = here.desk.keys.now
    here.review_all(str(acted.digest))
    here.record(version("2.0.0"))  # so that the newest checkpoint is not his
    here.change_keys(revoke(key_of("sec"), since))
    assert here.artifact_stage(acted.digest) == "linted"


def test_the_owner_of_a_decision_that_changed_must_be_among_the_reviewers(here: Office) -> None:
    here.trust("eva", "evaluation")
    acted = here.record()
    assert "support_ops" in acted.missing
    here.review_all(str(acted.digest))
    assert here.artifact_stage(acted.digest) == "linted"
    here.trust("owner of it", "support_ops")
    assert here.review(str(acted.digest), "owner of it", "support_ops").stage == "reviewed"


def test_the_owner_of_a_decision_that_did_not_change_need_not_look_again(here: Office) -> None:
    here.release()
    here.trust("eva", "evaluation")
    assert "support_ops" not in here.record(version("1.1.0", NARROWER)).missing
    assert "support_ops" in here.record(version("2.0.0", WIDER)).missing


def test_an_owner_is_asked_by_what_is_published_when_it_is_published(here: Office) -> None:
    """Linted against nothing newer than 1.0.0; then a version comes between that changed the decision."""
    here.release()
    late = str(here.record(version("3.0.0")).digest)
    here.trust("eva2", "evaluation")
    for name, role in (("arch", "architecture"), ("sec", "security"), ("dat", "data"), ("eva2", "evaluation")):
        here.review(late, name, role)
    here.sign(late)
    here.release(version("2.0.0", WIDER))
    assert code(lambda: here.publish(late)) == "review_incomplete"


@proves("context-pack:excluded:unreviewed-prompt-edits")
def test_an_edit_of_what_models_read_is_new_bytes_which_nobody_has_reviewed(here: Office) -> None:
    here.release()
    edit = {"at": "/tone_and_comms/do/-", "value": "always offer a refund"}
    acted = here.record(version("1.1.0", edit))
    assert set(acted.missing) >= {"architecture", "security", "data", "evaluation"}
    for act in (lambda: here.sign(str(acted.digest)), lambda: here.publish(str(acted.digest))):
        assert code(act) == "lifecycle_transition_refused"
    assert here.stage("ctxpack.support@1.0.0") == "published"
    assert code(lambda: here.pin("prod", acted.ref)) == "version_not_found"


def test_a_reviewer_of_another_issuer_is_none_here(here: Office) -> None:
    acted = here.record()
    here.trust("theirs", "security", issuer="globex")
    assert code(lambda: here.review(str(acted.digest), "theirs", "security")) == "registry_role_missing"
    assert here.review(str(acted.digest), "sec", "security").missing
