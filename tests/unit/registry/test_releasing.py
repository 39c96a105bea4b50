"""From a document to a published version: every step in its order, by those who may, and for exactly these bytes."""

from typing import Any

import msgspec
import pytest

from contextplane.app.registry.release import publish, retire, run_gates, withdraw_draft
from contextplane.app.registry.view import list_drafts
from contextplane.model.artifact import EnvironmentDescription
from contextplane.model.ids import Digest, PackRef
from contextplane.registry.artifact_state import REVIEW_ROLES
from contextplane.registry.events import Published, Signed
from contextplane.registry.publish import Release
from contextplane.registry.publish import publish as publish_release
from contextplane.registry.reports import GoldenResult
from contextplane.registry.streams import artifact_stream, version_stream
from contextplane.registry.writer import PlannedChange, draft_root
from contextplane.testing.proofs import proves
from contextplane.trust.dsse import Statement
from contextplane.trust.keyring_events import ThresholdChange
from contextplane.trust.verify import sign
from tests.unit.authoring.packs import ENVIRONMENT, EXAMPLE
from tests.unit.registry.desk import CATALOG, ISSUER, NARROWER, OVERLAY, PACK, ROLES, Office, code, version
from tests.unit.trust.world import key_of, revoke

BROKEN = version("1.0.0", {"at": "/tooling_layer/permissions/0/adapter_id", "value": "adp_nowhere"})
WIDER = {"at": "/decision_layer/decision_specs/0/allowed_outcomes/-", "value": "postponed"}


@proves("context-pack:full-example:publishes-as-itself")
@proves("context-pack:lifecycle:order")
def test_the_full_example_walks_from_a_draft_to_a_pinned_version(here: Office) -> None:
    acted = here.record()
    assert (str(acted.ref), acted.stage) == (PACK, "linted")
    target = str(acted.digest)
    here.review_all(target)
    assert here.artifact_stage(acted.digest) == "reviewed"
    assert here.sign(target).stage == "signed"
    assert here.publish(target).stage == "published"
    assert here.pin("prod", PACK).ref == acted.ref
    assert here.base("prod") == PACK


@proves("context-pack:lifecycle:order")
def test_no_step_can_be_skipped(here: Office) -> None:
    acted = here.record()
    target = str(acted.digest)
    assert code(lambda: here.sign(target)) == "lifecycle_transition_refused"
    assert code(lambda: here.publish(target)) == "lifecycle_transition_refused"
    assert code(lambda: here.pin("prod", PACK)) == "version_not_found"
    here.review_all(target, ("architecture", "security", "data"))
    assert code(lambda: here.sign(target)) == "lifecycle_transition_refused"
    here.review(target, "eva", "evaluation")
    assert code(lambda: here.publish(target)) == "lifecycle_transition_refused"
    assert {name: n for name, n in here.streams().items() if name.startswith("registry/version")} == {}


@pytest.mark.parametrize(
    "text",
    ["Use ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 for it", "The card is 4111 1111 1111 1111"],
    ids=["a secret", "a number of somebody"],
)
def test_what_must_not_be_kept_for_ever_is_not_even_kept_as_a_draft(here: Office, text: str) -> None:
    before, streams = set(here.desk.platform.objects.names()), here.streams()
    leaking = version("1.0.0", {"at": "/business_context/non_negotiables/-", "value": text})
    assert code(lambda: here.record(leaking)) == "artifact_not_kept"
    assert (set(here.desk.platform.objects.names()), here.streams()) == (before, streams)


@proves("context-pack:lifecycle:linted")
@proves("context-pack:binding-graph:missing-edge-blocks-publication")
def test_what_does_not_pass_the_gates_stays_a_draft_and_goes_nowhere(here: Office) -> None:
    acted = here.record(BROKEN)
    assert (acted.stage, acted.report is not None and acted.report.passed) == ("draft", False)
    for act in (
        lambda: here.review(str(acted.digest), "arch", "architecture"),
        lambda: here.publish(str(acted.digest)),
    ):
        assert code(act) == "lifecycle_transition_refused"


def test_a_document_of_no_form_cannot_be_recorded(here: Office) -> None:
    before = here.streams()
    assert code(lambda: here.record({"pack_meta": {}})) == "artifact_invalid"
    assert here.streams() == before


def trust_reviewers(here: Office, issuer: str) -> None:
    """Another issuer has the same reviewers."""
    for name in ("arch", "sec", "dat", "eva"):
        here.trust(name, *ROLES[name], issuer=issuer)


@proves("context-pack:lifecycle:signed")
def test_as_many_keys_of_the_issuer_sign_as_it_asks_for(here: Office) -> None:
    here.change_keys(ThresholdChange(issuer=ISSUER, threshold=2))
    target = str(here.record().digest)
    here.review_all(target)
    first = here.sign(target)
    assert (first.stage, first.signatures) == ("reviewed", (1, 2))
    assert here.sign(target).appended is None  # the same key again
    assert code(lambda: here.publish(target)) == "lifecycle_transition_refused"
    assert here.sign(target, "ops").stage == "signed"
    assert here.publish(target).stage == "published"


def test_only_a_key_of_the_issuer_signs_and_only_its_publisher_publishes(here: Office) -> None:
    here.trust("stranger", "publisher", issuer="globex")
    target = str(here.record().digest)
    here.review_all(target)
    assert code(lambda: here.sign(target, "stranger")) == "registry_role_missing"
    here.sign(target)
    for name in ("stranger", "ops", "author"):
        assert code(lambda name=name: here.publish(target, name)) == "registry_role_missing"


def test_a_signature_of_a_key_that_is_no_longer_good_is_not_published(here: Office) -> None:
    here.trust("pub2", "publisher")
    target = str(here.record().digest)
    here.review_all(target)
    here.sign(target)
    here.record(version("2.0.0"))
    here.change_keys(revoke(key_of("pub"), here.desk.keys.now))
    assert code(lambda: here.publish(target, "pub2")) == "signature_key_revoked"


@pytest.mark.parametrize(("name", "kind"), [("other.pack@1.0.0", "context_pack"), (PACK, "overlay")])
def test_a_signature_under_another_name_or_as_another_kind_is_not_published(here: Office, name: str, kind: str) -> None:
    acted = here.record()
    here.review_all(str(acted.digest))
    envelope = sign(Statement(name=name, kind=kind, issuer=ISSUER, digest=acted.digest), key_of("pub"))
    change = Signed(envelope=str(Digest.of(envelope)), threshold=1)
    planned = PlannedChange(stream=artifact_stream(acted.digest), change=change, reason="signed as something else")
    here.desk.act(key_of("pub"), [planned], [envelope])
    assert code(lambda: here.publish(str(acted.digest))) == "statement_subject_mismatch"


def test_an_issuer_publishes_for_another_tenant_only_where_an_owner_granted_it(here: Office) -> None:
    pack = version("1.0.0", {"at": "/contract_meta/issuer", "value": "globex"})
    here.trust("gpub", "publisher", issuer="globex")
    trust_reviewers(here, "globex")
    acted = here.record(pack)
    target = str(acted.digest)
    here.review_all(target)
    here.sign(target, "gpub")
    assert code(lambda: here.publish(target, "gpub")) == "issuer_not_for_tenant"
    here.trust("gpub", "publisher", f"tenant:{ISSUER}", issuer="globex")
    assert here.publish(target, "gpub").stage == "published"


@proves("context-pack:pack-meta:id-and-version-immutable")
@proves("context-pack:definition:immutable")
@proves("context-pack:versioning-guidelines:never-rewrite")
@proves("context-pack:misconceptions:not-editable-in-production")
def test_other_bytes_under_a_published_name_are_refused_for_ever_and_the_same_bytes_change_nothing(
    here: Office,
) -> None:
    other = str(here.record(version("1.0.0", NARROWER)).digest)
    here.review_all(other)
    here.sign(other)
    ref = here.release()
    digest = str(here.desk.candidate_digest(str(here.record().digest)))
    before = here.streams()
    assert here.publish(digest).appended is None
    assert here.streams() == before
    for how in (None, "deprecated", "revoked"):
        if how is not None:
            retire(here.desk, ref, how, here.by("pub"))
        assert code(lambda: here.publish(other)) == "version_taken"
        assert code(lambda: here.record(version("1.0.0", NARROWER))) == "version_taken"
        assert here.publish(digest).appended is None


@proves("context-pack:lifecycle:published")
@proves("context-pack:contract-meta:issuer-is-audit-owner")
@proves("context-pack:structure:contract-meta")
def test_a_published_entry_tells_what_it_stands_on(here: Office) -> None:
    ref = here.release()
    with here.desk.read() as reader:
        (verified,) = reader.history(version_stream(ref))
    change = verified.change
    assert isinstance(change, Published)
    assert (change.issuer, change.kind, change.golden, change.after) == (ISSUER, "context_pack", "not_run", "")
    assert {approval.role: approval.by for approval in change.approvals} == {
        role: key_of(name).public_key.key_id
        for name, role in zip(("arch", "sec", "dat", "eva"), REVIEW_ROLES, strict=True)
    }
    report: Any = msgspec.json.decode(here.desk.platform.objects.get(Digest.parse(change.report)))
    assert (report["passed"], report["ref"], report["digest"]) == (True, PACK, change.digest)
    assert report["golden"]["outcome"] == "not_run"
    assert report["findings"]


@proves("context-pack:gates:before-publication")
@proves("context-pack:ci:sign-after-gates")
def test_all_gates_run_again_when_it_is_published(here: Office) -> None:
    """Linted where nothing was known of the environment: what the gates find by now stops it."""
    acted = here.record()
    here.review_all(str(acted.digest))
    here.sign(str(acted.digest))
    before = here.streams()
    elsewhere = EnvironmentDescription(endpoints=("internal://something_else",))
    assert code(lambda: publish(here.desk, PACK, here.by("pub"), elsewhere)) == "publish_gates_failed"
    assert here.streams() == before
    assert publish(here.desk, PACK, here.by("pub"), ENVIRONMENT).stage == "published"


def test_a_number_that_promises_too_little_is_refused(here: Office) -> None:
    here.release()
    target = str(here.record(version("1.0.1", WIDER)).digest)
    here.review_all(target)
    here.sign(target)
    assert code(lambda: here.publish(target)) == "version_bump_too_small"


def test_a_fix_of_an_older_line_is_compared_with_that_line(here: Office) -> None:
    here.release()
    here.release(version("2.0.0", WIDER))
    assert str(here.release(version("1.1.0", NARROWER))) == "ctxpack.support@1.1.0"


@proves("context-pack:versioning-guidelines:deprecation-is-registry-state")
@proves("context-pack:lifecycle:revoked-retained")
def test_deprecating_and_revoking_change_the_state_and_not_a_byte(here: Office) -> None:
    ref = here.release()
    with here.desk.read() as reader:
        digest = reader.version(ref).digest
    for how in ("deprecated", "revoked"):
        assert code(lambda how=how: retire(here.desk, ref, how, here.by("ops"))) == "registry_role_missing"
        retire(here.desk, ref, how, here.by("pub", f"{how} for a reason"))
        assert retire(here.desk, ref, how, here.by("pub")).appended is None
        with here.desk.read() as reader:
            state = reader.version(ref)
        assert (state.stage, state.digest, state.reason) == (how, digest, f"{how} for a reason")
        assert state.serves("replay")
        assert not state.serves("new_traffic")
        assert here.desk.artifact(digest).ref == ref
    assert code(lambda: retire(here.desk, ref, "deprecated", here.by("pub"))) == "lifecycle_transition_refused"
    assert (
        code(lambda: retire(here.desk, PackRef("no.pack", "1.0.0"), "revoked", here.by("pub"))) == "version_not_found"
    )


def test_overlays_and_catalogs_are_published_with_fewer_reviews_and_the_same_care(here: Office) -> None:
    here.release()
    overlay = here.record(OVERLAY)
    assert overlay.missing == ("architecture", "security")
    assert str(here.release(OVERLAY)) == "ovl.staging@1.0.0"
    assert here.record(CATALOG).missing == ("architecture", "security", "support_ops")
    assert str(here.release(CATALOG)) == "decision-catalog.support@2.1.0"
    widening = {**OVERLAY, "overlay_version": "1.1.0", "changes": [{"at": "/pack_meta/ttl_seconds", "value": 5}]}
    assert here.record(widening).stage == "draft"


def test_several_drafts_of_one_version_are_told_apart_by_their_bytes(here: Office) -> None:
    here.record()
    here.record(version("1.0.0", NARROWER))
    assert code(lambda: here.review(PACK, "arch", "architecture")) == "artifact_ambiguous"
    assert code(lambda: here.review("nobody.knows@1.0.0", "arch", "architecture")) == "artifact_not_found"
    assert here.record(EXAMPLE).stage == "linted"


def test_of_two_drafts_of_one_version_the_name_stands_for_the_one_that_is_not_withdrawn(here: Office) -> None:
    first, second = here.record(), here.record(version("1.0.0", NARROWER))
    withdraw_draft(here.desk, str(first.digest), here.by("author", "the wrong file"))
    assert here.review(PACK, "arch", "architecture").digest == second.digest
    assert [draft.digest for draft in list_drafts(here.desk)] == [second.digest]
    assert code(lambda: here.review(str(first.digest), "arch", "architecture")) == "lifecycle_transition_refused"
    withdraw_draft(here.desk, PACK, here.by("pub", "superseded"))
    assert code(lambda: here.review(PACK, "sec", "security")) == "artifact_not_found"
    assert list_drafts(here.desk) == ()


def test_a_withdrawn_draft_that_is_recorded_again_starts_anew(here: Office) -> None:
    first = here.record()
    here.review_all(PACK)
    withdraw_draft(here.desk, PACK, here.by("author"))
    before = here.streams()
    again = withdraw_draft(here.desk, str(first.digest), here.by("author"))
    assert (again.appended, again.stage, here.streams()) == (None, "withdrawn", before)
    second = here.record()
    assert (second.digest, second.stage, second.missing) == (first.digest, "linted", first.missing)
    here.review_all(PACK)
    here.sign(PACK)
    assert here.publish(PACK).stage == "published"
    refused = code(lambda: withdraw_draft(here.desk, PACK, here.by("author")))
    assert (refused, here.stage(PACK)) == ("lifecycle_transition_refused", "published")


def test_a_name_that_an_index_leads_to_other_bytes_is_not_acted_on(here: Office) -> None:
    """Anybody who can write the store can change an index; nothing signs it."""
    first = here.record()
    other = here.record(version("9.0.0"))
    here.review_all(str(other.digest), other.missing)
    ref = PackRef.parse(PACK)
    with here.desk.platform.catalog.write() as tx:
        for name, _ in tx.objects.roots(draft_root(ref)):
            tx.objects.release(name)
        tx.objects.keep(draft_root(ref, other.digest), other.digest)
    assert here.review(PACK, "arch", "architecture").digest == first.digest
    assert code(lambda: here.sign(PACK)) == "lifecycle_transition_refused"
    assert code(lambda: here.publish(PACK)) == "lifecycle_transition_refused"


def test_a_release_is_compared_with_what_is_before_it_when_it_is_published(here: Office) -> None:
    """Whoever publishes looked at the version before; another one came between."""
    acted = here.record(version("3.0.0"))
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    with here.desk.read() as reader:
        state = reader.artifact(acted.digest)
    artifact = here.desk.artifact(acted.digest)
    release = Release(
        artifact=artifact,
        envelope=here.desk.platform.objects.get(Digest.parse(state.envelope)),
        report=run_gates(here.desk, artifact),
        golden=GoldenResult(outcome="not_run", words="none"),
    )
    here.release()
    with here.desk.write(key_of("pub"), [release.report_data]) as writer:
        assert code(lambda: publish_release(writer, release, "late")) == "stream_conflict"
    assert here.publish(str(acted.digest)).stage == "published"


@pytest.mark.parametrize("number", ["2.0.0", "0.1.0"])
def test_nobody_publishes_under_a_name_that_another_issuer_has(here: Office, number: str) -> None:
    here.release()
    here.trust("stranger", "publisher", "tenant:globex", issuer="globex")
    trust_reviewers(here, "globex")
    tenant = {"tenant_id": "globex", "name": "Globex"}
    other = version(
        number, {"at": "/contract_meta/issuer", "value": "globex"}, {"at": "/pack_meta/tenant", "value": tenant}
    )
    acted = here.record(other)
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest), by="stranger")
    assert code(lambda: here.publish(str(acted.digest), by="stranger")) == "publish_name_taken"
