"""Environments pin exact versions: what may be pinned where, what is put back in an emergency, what it is called."""

from collections.abc import Sequence
from typing import Any

import pytest

from contextplane.app.registry.pins import (
    drop_alias,
    pin_version,
    promote,
    roll_back,
    set_alias,
    set_protection,
    unpin,
)
from contextplane.app.registry.refresh import close_incident, open_incident, open_refresh
from contextplane.app.registry.release import retire
from contextplane.app.registry.resolve import resolve_request
from contextplane.app.registry.session import RegistrySession
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json
from contextplane.model.timestamp import Timestamp
from contextplane.ports.objects import ObjectNotFound
from contextplane.registry.artifacts import Candidate
from contextplane.registry.events import RollbackEnded
from contextplane.registry.reports import EvaluationReport, GoldenResult
from contextplane.registry.resolution import ResolveRequest
from contextplane.registry.streams import pins_stream
from contextplane.testing.proofs import proves
from tests.unit.registry.desk import CATALOG, ISSUER, NARROWER, OVERLAY, PACK, Office, code, version
from tests.unit.registry.releases import HERE
from tests.unit.trust.world import key_of, revoke

SECOND = "ctxpack.support@1.1.0"
SUPPORT = "ctxpack.support"


def two_versions(here: Office) -> None:
    here.release()
    here.release(version("1.1.0", NARROWER))


@proves("context-pack:lifecycle:pinned")
@proves("context-pack:definition:unit-of-deployment")
def test_an_environment_pins_one_version_and_each_its_own(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    here.pin("staging", SECOND)
    assert (here.base("prod"), here.base("staging"), here.base("dev")) == (PACK, SECOND, "None")
    assert here.pin("prod", SECOND).before == PackRef.parse(PACK)
    assert here.base("prod") == SECOND


def test_pinning_what_is_pinned_changes_nothing(here: Office) -> None:
    here.release()
    here.pin("prod", PACK)
    before = here.streams()
    assert here.pin("prod", PACK).appended is None
    assert here.streams() == before


def test_only_an_operator_or_an_owner_pins(here: Office) -> None:
    here.release()
    for name in ("author", "pub", "sec"):
        assert code(lambda name=name: here.pin("prod", PACK, name)) == "registry_role_missing"
    assert here.pin("prod", PACK, "root").appended is not None


def test_what_may_not_take_new_traffic_is_not_pinned(here: Office) -> None:
    ref = here.release()
    assert code(lambda: here.pin("prod", "ctxpack.support@9.9.9")) == "version_not_found"
    retire(here.desk, ref, "deprecated", here.by("pub"))
    assert code(lambda: here.pin("prod", ref)) == "version_deprecated"
    retire(here.desk, ref, "revoked", here.by("pub"))
    assert code(lambda: here.pin("prod", ref)) == "version_revoked"


def test_what_a_key_published_that_was_revoked_from_before_is_not_pinned(here: Office) -> None:
    ref = here.release()
    since = here.desk.keys.keyring.as_of
    here.record(version("7.0.0"))
    here.change_keys(revoke(key_of("pub"), since))
    assert code(lambda: here.pin("prod", ref)) == "signature_key_revoked"


def test_a_name_of_an_environment_is_a_name(here: Office) -> None:
    here.release()
    for name in ("", "a b", "a/b", "-x", "x" * 200):
        assert code(lambda name=name: here.pin(name, PACK)) == "registry_name_invalid"
    assert [name for name in here.streams() if name.startswith("registry/pins")] == []


def test_an_open_refresh_keeps_a_version_out_of_a_protected_environment(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    open_refresh(here.desk, "MODEL_CONFIG_UPDATED", "*", here.by("pub"))
    assert code(lambda: here.pin("prod", SECOND)) == "refresh_open"
    assert here.base("prod") == PACK  # what is pinned stays so
    assert set_protection(here.desk, "dev", protected=False, by=here.by("ops"))
    assert not set_protection(here.desk, "dev", protected=False, by=here.by("ops"))
    here.pin("dev", SECOND)
    assert set_protection(here.desk, "dev", protected=True, by=here.by("ops"))
    assert code(lambda: here.pin("dev", PACK)) == "refresh_open"
    assert code(lambda: set_protection(here.desk, "x", protected=False, by=here.by("pub"))) == "registry_role_missing"


def test_an_overlay_is_pinned_onto_the_pack_it_is_for_where_it_is_for(here: Office) -> None:
    here.release()
    here.release(OVERLAY)
    assert code(lambda: here.pin("staging", "ovl.staging@1.0.0")) == "overlay_elsewhere"  # no pack yet
    here.pin("staging", PACK)
    here.pin("prod", PACK)
    assert code(lambda: here.pin("prod", "ovl.staging@1.0.0")) == "overlay_elsewhere"
    here.pin("staging", "ovl.staging@1.0.0")
    with here.desk.read() as reader:
        pins = reader.pins("staging", SUPPORT).pins
    assert [overlay.id for overlay in pins.overlays] == ["ovl.staging"]
    assert pins.base is not None


def test_a_pack_is_not_pinned_under_an_overlay_that_does_not_apply_to_it(here: Office) -> None:
    here.release()
    here.release(OVERLAY)
    here.pin("staging", PACK)
    here.pin("staging", "ovl.staging@1.0.0")
    gone: list[dict[str, Any]] = [{"at": "/tooling_layer/adapter_registry/0/adapter_id", "value": "adp_purchases"}]
    gone.append({"at": "/tooling_layer/permissions/0/adapter_id", "value": "adp_purchases"})
    gone.append({"at": "/tooling_layer/permissions/0/produces", "value": ["order_lookup"]})
    here.release(version("2.0.0", *gone))
    assert code(lambda: here.pin("staging", "ctxpack.support@2.0.0")) == "overlay_misplaced"
    unpin(here.desk, "staging", SUPPORT, "ovl.staging", here.by("ops"))
    here.pin("staging", "ctxpack.support@2.0.0")


def test_a_decision_catalog_is_pinned_under_its_own_id(here: Office) -> None:
    ref = here.release(CATALOG)
    here.pin("prod", ref)
    assert here.base("prod", ref.pack_id) == str(ref)


def test_unpinning_takes_away_what_is_there_and_nothing_else(here: Office) -> None:
    here.release()
    here.pin("prod", PACK)
    assert code(lambda: unpin(here.desk, "prod", "other.pack", None, here.by("ops"))) == "pin_not_found"
    assert unpin(here.desk, "prod", SUPPORT, None, here.by("ops")).ref == PackRef.parse(PACK)
    assert here.base("prod") == "None"
    assert code(lambda: unpin(here.desk, "prod", SUPPORT, None, here.by("ops"))) == "pin_not_found"


@proves("context-pack:versioning-guidelines:rollback-re-pins")
def test_a_rollback_pins_the_version_before_again_and_records_how_long_it_took(here: Office) -> None:
    two_versions(here)
    first = here.pin("prod", PACK)
    here.pin("prod", SECOND)
    act = roll_back(here.desk, "prod", SUPPORT, None, here.by("ops", "wrong refunds"))
    assert (str(act.ref), str(act.before), act.digest) == (PACK, SECOND, first.digest)
    assert (act.golden, act.passed_over) == ("not_run", ())
    with here.desk.read() as reader:
        *_, ended = reader.history(pins_stream("prod", SUPPORT))
    assert isinstance(ended.change, RollbackEnded)
    assert ended.change.milliseconds == act.milliseconds
    assert act.milliseconds
    assert ended.change.rollback == ended.event.seq - 1
    assert here.base("prod") == PACK
    assert str(roll_back(here.desk, "prod", SUPPORT, "1.1.0", here.by("ops")).ref) == SECOND  # and back again


def test_who_rolls_back_once_more_does_not_bring_back_what_was_rolled_back(here: Office) -> None:
    """Two people see the same trouble, or one does not trust that the first time worked."""
    two_versions(here)
    third = here.release(version("1.2.0", NARROWER))
    for ref in (PACK, SECOND, third):
        here.pin("prod", ref)
    for expected in (SECOND, PACK):
        assert str(roll_back(here.desk, "prod", SUPPORT, None, here.by("ops")).ref) == expected
    assert code(lambda: roll_back(here.desk, "prod", SUPPORT, None, here.by("ops"))) == "rollback_never_pinned"
    here.pin("prod", third)  # mended, and pinned anew by somebody who means it
    here.pin("prod", SECOND)
    assert str(roll_back(here.desk, "prod", SUPPORT, None, here.by("ops")).ref) == str(third)


def test_a_rollback_goes_only_to_what_was_pinned_there(here: Office) -> None:
    two_versions(here)
    here.pin("prod", SECOND)
    here.pin("staging", PACK)
    for number in (None, "1.0.0", "1.1.0"):
        assert (
            code(lambda number=number: roll_back(here.desk, "prod", SUPPORT, number, here.by("ops")))
            == "rollback_never_pinned"
        )
    assert code(lambda: roll_back(here.desk, "nowhere", SUPPORT, None, here.by("ops"))) == "rollback_never_pinned"


def serves(here: Office, ref: str, environment: str = "prod") -> str:
    """Whether a new run gets a version there, or the code of the refusal."""
    request = ResolveRequest(refs=(PackRef.parse(ref),), tenant=ISSUER, environment=environment, purpose="new_traffic")
    try:
        resolve_request(here.desk, request, HERE, max_age=None)
    except ContextPlaneError as error:
        return error.code
    return "ok"


def test_a_rollback_passes_over_what_cannot_serve_and_says_why(here: Office) -> None:
    two_versions(here)
    third = here.release(version("1.2.0", NARROWER))
    fourth = here.release(version("1.3.0", NARROWER))
    for ref in (PACK, SECOND, third, fourth):
        here.pin("prod", ref)
    retire(here.desk, PackRef.parse(SECOND), "revoked", here.by("pub"))
    retire(here.desk, third, "deprecated", here.by("pub"))
    act = roll_back(here.desk, "prod", SUPPORT, None, here.by("ops"))
    assert [(str(other.ref), other.code) for other in act.passed_over] == [
        (str(third), "version_deprecated"),
        (SECOND, "version_revoked"),
    ]
    assert (str(act.ref), here.base("prod"), serves(here, PACK)) == (PACK, PACK, "ok")


def test_a_rollback_that_finds_nothing_that_can_serve_changes_nothing(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    here.pin("prod", SECOND)
    retire(here.desk, PackRef.parse(PACK), "deprecated", here.by("pub"))
    before = here.streams()
    with pytest.raises(ContextPlaneError) as refused:
        roll_back(here.desk, "prod", SUPPORT, None, here.by("ops"))
    assert refused.value.code == "rollback_never_pinned"
    assert refused.value.details["passed_over"] == [{"ref": PACK, "code": "version_deprecated"}]
    assert (here.streams(), serves(here, SECOND)) == (before, "ok")


def test_a_version_that_cannot_serve_is_refused_by_name_before_anything_changes(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    here.pin("prod", SECOND)
    retire(here.desk, PackRef.parse(PACK), "deprecated", here.by("pub"))
    before = here.streams()
    assert code(lambda: roll_back(here.desk, "prod", SUPPORT, "1.0.0", here.by("ops"))) == "version_deprecated"
    assert (here.streams(), serves(here, SECOND)) == (before, "ok")
    retire(here.desk, PackRef.parse(PACK), "revoked", here.by("pub"))
    assert code(lambda: roll_back(here.desk, "prod", SUPPORT, "1.0.0", here.by("ops"))) == "version_revoked"


def test_a_version_whose_approval_is_void_cannot_serve_and_is_passed_over(here: Office) -> None:
    here.trust("sec2", "security")
    two_versions(here)
    acted = here.record(version("1.2.0", NARROWER))
    for by, role in (("arch", "architecture"), ("sec2", "security"), ("dat", "data"), ("eva", "evaluation")):
        here.review(str(acted.digest), by, role)
    here.sign(str(acted.digest))
    here.publish(str(acted.digest))
    for ref in (PACK, acted.ref, SECOND):
        here.pin("prod", ref)
    here.change_keys(revoke(key_of("sec2"), Timestamp.parse("2030-01-01T00:00:00Z")))
    act = roll_back(here.desk, "prod", SUPPORT, None, here.by("ops"))
    assert [(other.ref, other.code) for other in act.passed_over] == [(acted.ref, "publication_doubtful")]
    assert (str(act.ref), serves(here, PACK)) == (PACK, "ok")


def test_a_rollback_names_the_open_incidents_of_the_version(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    here.pin("prod", SECOND)
    open_incident(here.desk, PackRef.parse(PACK), "INC-7", here.by("ops"))
    assert roll_back(here.desk, "prod", SUPPORT, None, here.by("ops")).incidents == ("INC-7",)


class Red:
    """Golden cases of which one fails."""

    def run(self, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> GoldenResult:
        return GoldenResult(
            outcome="failed", words=f"{ref} of {len(str(value)) + len(catalogs)}", cases=("refund_3001",)
        )


def test_a_red_golden_case_is_told_after_a_rollback_and_does_not_stop_it_but_stops_a_publication(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    here.pin("prod", SECOND)
    red = RegistrySession(here.desk.keys, golden=Red())
    act = roll_back(red, "prod", SUPPORT, None, here.by("ops"))
    assert (act.golden, here.base("prod")) == ("failed", PACK)
    acted = here.record(version("1.3.0"))
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    here.desk.golden = Red()
    assert code(lambda: here.publish(str(acted.digest))) == "publish_golden_failed"


class Lost:
    """Golden cases that are gone."""

    def run(self, ref: PackRef, value: Json, catalogs: Sequence[Candidate] = ()) -> GoldenResult:
        raise ObjectNotFound(f"the cases of {ref}, of {len(str(value)) + len(catalogs)}")


def test_golden_cases_that_cannot_run_do_not_hide_that_the_rollback_is_in_force(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    here.pin("prod", SECOND)
    act = roll_back(RegistrySession(here.desk.keys, golden=Lost()), "prod", SUPPORT, None, here.by("ops"))
    assert (act.golden, act.golden_words.partition(":")[0], here.base("prod")) == ("not_run", "object_not_found", PACK)
    with here.desk.read() as reader:
        kinds = [event.kind for event in reader.history(pins_stream("prod", SUPPORT))]
    assert kinds[-2:] == ["rolled_back", "rollback_ended"]


class Passed:
    """Release gates that passed, or not."""

    def __init__(self, *, passed: bool = True) -> None:
        self.passed = passed

    def evaluate(self, ref: PackRef, environment: str) -> EvaluationReport | None:
        return EvaluationReport(passed=self.passed, words=f"{ref} in {environment}", report=b'{"report":"evaluation"}')


class PinsMeanwhile(Passed):
    """While the release gates are asked, somebody pins another version."""

    def __init__(self, here: Office, ref: str) -> None:
        super().__init__()
        self.here = here
        self.other = ref

    def evaluate(self, ref: PackRef, environment: str) -> EvaluationReport | None:
        self.here.pin(environment, self.other)
        return super().evaluate(ref, environment)


def test_what_is_promoted_is_what_is_pinned_when_it_is_promoted(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    here.observe(PackRef.parse(PACK), "prod")
    desk = RegistrySession(here.desk.keys, evaluations=PinsMeanwhile(here, SECOND))
    assert code(lambda: promote(desk, "prod", SUPPORT, here.by("ops"))) == "promotion_not_observed"


@proves("context-pack:lifecycle:promoted-or-rolled-back")
def test_a_promotion_needs_passed_release_gates_and_no_open_incident(here: Office) -> None:
    ref = here.release()
    by = here.by("ops")
    assert code(lambda: promote(here.desk, "prod", SUPPORT, by)) == "pin_not_found"
    here.pin("prod", ref)
    assert code(lambda: promote(here.desk, "prod", SUPPORT, by)) == "promotion_not_observed"
    here.observe(ref, "prod")
    assert code(lambda: promote(here.desk, "prod", SUPPORT, by)) == "promotion_without_evaluation"
    here.desk.evaluations = Passed(passed=False)
    assert code(lambda: promote(here.desk, "prod", SUPPORT, by)) == "promotion_without_evaluation"
    here.desk.evaluations = Passed()
    open_incident(here.desk, ref, "INC-7", by)
    assert code(lambda: promote(here.desk, "prod", SUPPORT, by)) == "promotion_incident_open"
    close_incident(here.desk, ref, "INC-7", by)
    promote(here.desk, "prod", SUPPORT, by)
    with here.desk.read() as reader:
        kinds = [event.kind for event in reader.history(pins_stream("prod", SUPPORT))]
    assert kinds == ["pinned", "promoted"]


def test_an_incident_is_opened_once_and_closed_once(here: Office) -> None:
    ref, by = here.release(), here.by("ops")
    assert code(lambda: close_incident(here.desk, ref, "INC-7", by)) == "lifecycle_transition_refused"
    open_incident(here.desk, ref, "INC-7", by)
    assert code(lambda: open_incident(here.desk, ref, "INC-7", by)) == "lifecycle_transition_refused"
    assert code(lambda: open_incident(here.desk, ref, "INC-8", here.by("pub"))) == "registry_role_missing"


def test_an_alias_leads_to_one_version_at_a_time_and_is_for_people(here: Office) -> None:
    two_versions(here)
    by = here.by("ops")
    set_alias(here.desk, PackRef.parse(PACK), "stable", by)
    assert str(here.desk.named_version("ctxpack.support@stable")) == PACK
    set_alias(here.desk, PackRef.parse(SECOND), "stable", by)
    assert str(here.desk.named_version("ctxpack.support@stable")) == SECOND
    assert code(lambda: PackRef.parse("ctxpack.support@stable")) == "pack_ref_unpinned"
    drop_alias(here.desk, SUPPORT, "stable", by)
    assert code(lambda: here.desk.named_version("ctxpack.support@stable")) == "alias_not_found"
    assert code(lambda: drop_alias(here.desk, SUPPORT, "stable", by)) == "alias_not_found"
    assert code(lambda: set_alias(here.desk, PackRef(SUPPORT, "9.0.0"), "x", by)) == "version_not_found"
    for name in ("2.0.0", "9", "", "a b"):
        assert code(lambda name=name: set_alias(here.desk, PackRef.parse(PACK), name, by)) in {
            "registry_name_invalid",
            "registry_change_invalid",
        }


def test_the_name_of_an_environment_names_what_is_pinned_there(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    assert str(here.desk.named_version("ctxpack.support@prod")) == PACK
    set_alias(here.desk, PackRef.parse(SECOND), "prod", here.by("ops"))
    assert code(lambda: here.desk.named_version("ctxpack.support@prod")) == "alias_ambiguous"


@pytest.mark.parametrize(
    "text", ["ctxpack.support", "ctxpack.support@", "ctxpack.support@^1.0.0", "@prod", "ctxpack.support@1.0"]
)
def test_what_is_neither_a_version_nor_a_name_is_refused(here: Office, text: str) -> None:
    assert code(lambda: here.desk.named_version(text)) == "pack_ref_unpinned"


def test_every_pin_is_in_the_history_with_who_and_why(here: Office) -> None:
    two_versions(here)
    here.pin("prod", PACK)
    pin_version(here.desk, "prod", PackRef.parse(SECOND), here.by("root", "new redaction"))
    with here.desk.read() as reader:
        history = [
            (event.kind, event.event.reason, event.by.key_id) for event in reader.history(pins_stream("prod", SUPPORT))
        ]
    ops, root = (key_of(name).public_key.key_id for name in ("ops", "root"))
    assert history == [("pinned", "as it should be", ops), ("pinned", "new redaction", root)]


def test_an_operator_of_another_tenant_pins_nothing_here(here: Office) -> None:
    ref = here.release()
    here.trust("theirs", "operator", issuer="globex")
    assert code(lambda: here.pin("prod", ref, by="theirs")) == "registry_role_missing"
    here.pin("prod", ref)
    assert code(lambda: unpin(here.desk, "prod", SUPPORT, None, here.by("theirs"))) == "registry_role_missing"
    assert here.base("prod") == str(ref)
    for role in (f"tenant:{ISSUER}", "environment:prod"):
        here.trust("theirs", "operator", role, issuer="globex")
        unpin(here.desk, "prod", SUPPORT, None, here.by("theirs"))
        here.pin("prod", ref, by="theirs")
