"""A pack whose rules are bound to decisions of a catalog is judged together with it, all the way to publication."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from contextplane.app.registry.audit import audit_registry
from contextplane.app.registry.refresh import open_refresh, run_refresh
from contextplane.app.registry.release import retire
from contextplane.app.registry.resolve import resolve_request
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, PackRef
from contextplane.registry.events import CatalogReference
from contextplane.registry.publish import Release, publish
from contextplane.registry.reports import GoldenResult
from contextplane.registry.resolution import Resolution, ResolveRequest
from contextplane.trust.compatibility import RuntimeCapabilities
from tests.unit.authoring.packs import with_changes
from tests.unit.registry.desk import CATALOG, ISSUER, OVERLAY, Office, code
from tests.unit.trust.world import key_of

BINDING = "/policy_layer/policy_bundles/0/policy_dsl/rules/0/decision_binding"
BOUND: Mapping[str, Any] = with_changes([{"at": BINDING, "value": "support.refund.review"}])
SHARED = PackRef.parse("decision-catalog.support@2.1.0")


def release_bound(here: Office) -> PackRef:
    acted = here.record(BOUND, catalogs=(SHARED,))
    target = str(acted.digest)
    here.review_all(target, acted.missing)
    here.sign(target)
    here.publish(target)
    return acted.ref


def resolve(here: Office, *refs: PackRef) -> Resolution:
    for ref in refs:
        here.pin("prod", ref)
    request = ResolveRequest(refs=refs, tenant=ISSUER, environment="prod", purpose="new_traffic")
    return resolve_request(here.desk, request, RuntimeCapabilities(ontologies=("ont.support@1.0.0",)), max_age=None)


def test_alone_it_stays_a_draft_and_together_with_the_catalog_it_is_linted(here: Office) -> None:
    here.release(CATALOG)
    alone = here.record(BOUND)
    assert alone.report is not None
    assert alone.stage == "draft"
    assert "decision_binding_unknown" in {finding.code for finding in alone.report.findings}
    assert here.record(BOUND, catalogs=(SHARED,)).stage == "linted"


def test_the_catalog_is_on_record_with_its_digest_and_publishing_judges_with_it_again(here: Office) -> None:
    here.release(CATALOG)
    ref = release_bound(here)
    with here.desk.read() as reader:
        published = reader.version(ref).publication
        catalog = reader.version(SHARED).digest
        linted = reader.artifact(Digest.parse(published.digest)).catalogs
    named = CatalogReference(id=SHARED.pack_id, version=SHARED.version, digest=str(catalog))
    assert published.catalogs == linted == (named,)
    report = json.loads(here.desk.platform.objects.get(Digest.parse(published.report)))
    assert report["catalogs"] == [{"ref": str(SHARED), "digest": str(catalog)}]
    assert report["passed"]
    assert audit_registry(here.desk, lambda _size, _events: None).problems == ()


def test_a_run_gets_it_together_with_the_catalog_and_not_alone(here: Office) -> None:
    here.release(CATALOG)
    ref = release_bound(here)
    assert code(lambda: resolve(here, ref)) == "merged_view_invalid"
    resolution = resolve(here, ref, SHARED)
    keys = [decision_spec.decision_key for decision_spec in resolution.view.decision_layer.decision_specs]
    assert keys == ["support.refund.execute", "support.refund.review"]


def test_a_catalog_that_was_withdrawn_meanwhile_stops_the_publication(here: Office) -> None:
    here.release(CATALOG)
    acted = here.record(BOUND, catalogs=(SHARED,))
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    retire(here.desk, SHARED, "revoked", here.by("pub", "wrong"))
    assert code(lambda: here.publish(str(acted.digest))) == "version_revoked"


def test_publishing_it_again_changes_nothing_also_when_its_catalog_was_withdrawn(here: Office) -> None:
    here.release(CATALOG)
    ref = release_bound(here)
    retire(here.desk, SHARED, "deprecated", here.by("pub", "old"))
    before = here.streams()
    acted = here.publish(str(ref))
    assert (acted.stage, acted.appended, here.streams()) == ("published", None, before)


def test_what_was_linted_with_other_catalogs_since_is_published_with_those(here: Office) -> None:
    here.release(CATALOG)
    newer = {**CATALOG, "catalog_version": "2.1.1"}
    other = here.release(newer)
    here.record(BOUND, catalogs=(SHARED,))
    acted = here.record(BOUND, catalogs=(other,))
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    here.publish(str(acted.digest))
    with here.desk.read() as reader:
        assert [catalog.version for catalog in reader.version(acted.ref).publication.catalogs] == ["2.1.1"]


def test_what_was_judged_with_other_catalogs_than_it_was_linted_with_is_not_published(here: Office) -> None:
    here.release(CATALOG)
    acted = here.record(BOUND, catalogs=(SHARED,))
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    with here.desk.read() as reader:
        envelope = here.desk.platform.objects.get(Digest.parse(reader.artifact(acted.digest).envelope))
    assert acted.report is not None
    golden = GoldenResult(outcome="not_run", words="none")
    stale = Release(
        artifact=here.desk.artifact(acted.digest), envelope=envelope, report=acted.report, golden=golden, catalogs=()
    )

    def late() -> None:
        with here.desk.write(key_of("pub"), [stale.report_data]) as writer:
            publish(writer, stale, "in a hurry")

    assert code(late) == "stream_conflict"


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        (BOUND, "decision-catalog.other@1.0.0", "version_not_found"),
        (BOUND, "ctxpack.support@0.9.0", "reference_of_wrong_kind"),
        (OVERLAY, str(SHARED), "reference_of_wrong_kind"),
        (CATALOG, str(SHARED), "reference_of_wrong_kind"),
    ],
)
def test_only_a_pack_is_judged_with_catalogs_and_only_with_published_ones(
    here: Office, value: Mapping[str, Any], name: str, expected: str
) -> None:
    here.release(CATALOG)
    here.release(with_changes([{"at": "/pack_meta/pack_version", "value": "0.9.0"}]))
    assert code(lambda: here.record(value, catalogs=(PackRef.parse(name),))) == expected


def test_a_catalog_that_says_something_else_under_a_key_of_the_pack_is_refused(here: Office) -> None:
    own = {**BOUND["decision_layer"]["decision_specs"][0], "owner_role": "security"}
    here.release({**CATALOG, "decision_specs": [*CATALOG["decision_specs"], own]})
    with pytest.raises(ContextPlaneError) as refused:
        here.record(BOUND, catalogs=(SHARED,))
    assert refused.value.code == "merge_conflict"


@pytest.mark.parametrize("dependency", ["*", "decision-catalog.support@2.1.1"])
def test_a_refresh_judges_it_with_the_catalogs_that_it_was_published_with(here: Office, dependency: str) -> None:
    here.release(CATALOG)
    ref = release_bound(here)
    here.release({**CATALOG, "catalog_version": "2.1.1"})
    opened = open_refresh(here.desk, "DECISION_CATALOG_UPDATED", dependency, here.by("pub")).opened
    assert ref in opened
    outcomes = {outcome.action: outcome.passed for outcome in run_refresh(here.desk, ref, here.by("pub"))}
    assert outcomes["bindings"] is True
