"""Publishers who claim what is not so: gates that did not pass, a step that is too small, a name that is another's."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from contextplane import __version__
from contextplane.app.registry.audit import audit_registry
from contextplane.app.registry.release import publish as publish_artifact
from contextplane.app.registry.resolve import load_for_replay, resolve_request
from contextplane.authoring.gates.table import Report
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.registry.artifacts import Candidate, candidate
from contextplane.registry.claims import PublicationClaims, newest_publication, published_ref
from contextplane.registry.events import CatalogReference, Drafted, Linted, Published, RegistryEvent, Signed
from contextplane.registry.name_state import KindTaken, NameTaken
from contextplane.registry.publish import Release, plan_publication
from contextplane.registry.publish import publish as publish_release
from contextplane.registry.reports import GoldenResult, gates_report
from contextplane.registry.resolution import ResolveRequest
from contextplane.registry.reviews import needed_roles
from contextplane.registry.streams import LOG, artifact_stream, version_stream, versions_of
from contextplane.registry.writer import PlannedChange
from contextplane.trust.dsse import Statement
from contextplane.trust.verify import sign
from tests.support.cases import cases
from tests.unit.authoring.packs import EXAMPLE
from tests.unit.registry.backdating import slipped_in
from tests.unit.registry.desk import CATALOG as DESK_CATALOG
from tests.unit.registry.desk import ISSUER, NARROWER, OVERLAY, REVIEWERS, ROLES, Office, code, version
from tests.unit.registry.releases import CATALOG, HERE, PACK, TENANT, Releases, Walk, envelope_of
from tests.unit.registry.test_rogues import published, rogue
from tests.unit.registry.test_shared_catalogs import BOUND
from tests.unit.trust.world import key_of, trust

UNGATED = {"at": "/tooling_layer/permissions/2/requires_approval_gate"}
"""Takes the gate away from the tool that pays."""

PASSED = Report(findings=())
GLOBEX = "tenant_globex"


def report_of(pack: Candidate, report: Report = PASSED, version: str = "") -> bytes:
    return gates_report(pack.ref, pack.digest, report, gates_version=version)


class Forger:
    """A publisher with a program of his own. His colleagues review what he shows them, and sign."""

    def __init__(self, here: Office) -> None:
        self.here = here

    def publish(
        self,
        pack: Candidate,
        *,
        after: str = "",
        report: bytes = b"",
        signed: str = "",
        catalogs: tuple[CatalogReference, ...] = (),
    ) -> PackRef:
        """Publish a document past every rule. `signed`: the name that is signed, if not its own."""
        report = report or gates_report(pack.ref, pack.digest, PASSED, catalogs=catalogs)
        draft = Drafted(kind=pack.kind, id=pack.ref.pack_id, version=pack.ref.version, issuer=pack.issuer)
        roles = needed_roles(pack, None)
        linted = Linted(report=str(Digest.of(report)), roles=roles, after=after, catalogs=catalogs)
        self._append("pub", artifact_stream(pack.digest), draft, pack.data)
        self._append("pub", artifact_stream(pack.digest), linted, report)
        for role in roles:
            if role != "support_ops" or "evaluation" not in roles:
                self.here.review(str(pack.digest), REVIEWERS[role], role)
        statement = Statement(name=signed or str(pack.ref), kind=pack.kind, issuer=pack.issuer, digest=pack.digest)
        envelope = sign(statement, key_of("pub"))
        sealed = str(Digest.of(envelope))
        self._append("pub", artifact_stream(pack.digest), Signed(envelope=sealed, threshold=1), envelope)
        published = Published(
            digest=str(pack.digest),
            kind=pack.kind,
            issuer=pack.issuer,
            envelope=sealed,
            report=str(Digest.of(report)),
            golden="not_run",
            after=after,
            catalogs=catalogs,
        )
        with self.here.desk.read() as reader:
            planned = plan_publication(reader.name(pack.ref.pack_id), pack.ref, published, "so it is")
        try:
            self.here.desk.act(key_of("pub"), planned)
        except (NameTaken, KindTaken):
            self._slip(version_stream(pack.ref), published)
        return pack.ref

    def _slip(self, stream: str, change: Published) -> None:
        """Append what no program of ours appends, under a checkpoint."""
        desk = self.here.desk
        with desk.read() as reader:
            entry, keyring = reader.streams.head(LOG), reader.keyrings.now.seq
        now = desk.keys.now
        event = RegistryEvent(
            subject=stream,
            seq=1,
            previous="",
            entry=entry,
            keyring=keyring,
            at=str(now),
            reason="mine",
            change=change,
            origin=desk.origin,
        )
        slipped_in(desk.platform.catalog, event, by="pub", until=now, origin=desk.origin)

    def _append(self, by: str, stream: str, change: Any, *objects: bytes) -> None:  # noqa: ANN401  any change
        planned = PlannedChange(stream=stream, change=change, reason="so it is")
        self.here.desk.act(key_of(by), [planned], objects)


def ends(here: Office, ref: PackRef) -> dict[str, set[str]]:
    """With which codes each reader ends: verify REF, verify --registry, pin."""
    audited = audit_registry(here.desk, lambda _size, _events: None)
    return {
        "verify": {code(lambda: load_for_replay(here.desk, ref))},
        "audit": {problem.code for problem in audited.problems},
        "pin": {code(lambda: here.pin("prod", ref))},
    }


def everywhere(expected: str) -> dict[str, set[str]]:
    return {"verify": {expected}, "audit": {expected}, "pin": {expected}}


def void(expected: str) -> dict[str, set[str]]:
    """Nothing was published, and an audit reports why."""
    return {"verify": {"version_not_found"}, "audit": {expected}, "pin": {"version_not_found"}}


# --- in a store, as the command does it -------------------------------------------------------------------------------


def test_a_pack_that_no_gate_passes_is_found_by_everybody_who_reads_it(here: Office) -> None:
    ref = Forger(here).publish(candidate(version("1.0.0", UNGATED)))
    assert ends(here, ref) == everywhere("publication_gates_failed")


def test_the_gates_that_judged_it_then_are_named_if_its_report_has_them(here: Office) -> None:
    pack = candidate(version("1.0.0", UNGATED))
    Forger(here).publish(pack, report=report_of(pack, version="0.0.7"))
    (problem,) = audit_registry(here.desk, lambda _size, _events: None).problems
    assert "by those of version 0.0.7" in problem.message
    assert problem.at == f"{version_stream(pack.ref)}@1"


def test_a_step_that_is_too_small_for_the_change_is_found_by_everybody(here: Office) -> None:
    here.release(version("1.0.0"))
    ref = Forger(here).publish(candidate(version("1.0.1", NARROWER)), after="1.0.0")
    assert ends(here, ref) == everywhere("publication_version_wrong")


def test_a_version_that_was_compared_with_nothing_is_found_by_everybody(here: Office) -> None:
    here.release(version("1.0.0"))
    ref = Forger(here).publish(candidate(version("1.0.1", NARROWER)))
    assert ends(here, ref) == everywhere("publication_version_wrong")


@pytest.mark.parametrize("what", ["of another version", "that did not pass", "no report"])
def test_a_report_that_claims_something_else_is_found_by_everybody(here: Office, what: str) -> None:
    pack = candidate(version("1.0.0"))
    other = candidate(version("1.0.1"))
    reports = {
        "of another version": report_of(other),
        "that did not pass": report_of(pack, Report(findings=(), not_run=("schema",))),
        "no report": canonical({"passed": True}),
    }
    ref = Forger(here).publish(pack, report=reports[what])
    assert ends(here, ref) == everywhere("publication_report_wrong")


def test_a_signature_for_another_name_is_found_by_the_audit_too(here: Office) -> None:
    Forger(here).publish(candidate(version("1.0.0")), signed="ctxpack.other@1.0.0")
    audited = audit_registry(here.desk, lambda _size, _events: None)
    assert {problem.code for problem in audited.problems} == {"publication_report_wrong"}


@pytest.mark.parametrize("catalog", ["was never published", "has other bytes"])
def test_a_catalog_that_was_not_published_like_that_helps_no_pack_through_its_gates(here: Office, catalog: str) -> None:
    """A rule of the pack is bound to a decision that only the catalog has."""
    shared = candidate({**DESK_CATALOG, "intents": []})
    if catalog == "has other bytes":
        here.release(DESK_CATALOG)
    named = CatalogReference(id=shared.ref.pack_id, version=shared.ref.version, digest=str(shared.digest))
    ref = Forger(here).publish(candidate(dict(BOUND)), catalogs=(named,))
    assert ends(here, ref) == everywhere("publication_gates_failed")


def test_a_name_of_another_issuer_is_found_by_everybody_and_its_owner_goes_on(here: Office) -> None:
    """Also below the versions of the owner, where nothing was to compare it with."""
    here.release(version("1.0.0"))
    here.trust("pub", "publisher", f"tenant:{ISSUER}", issuer=GLOBEX)
    for name in ("arch", "sec", "dat", "eva"):
        here.trust(name, *ROLES[name], issuer=GLOBEX)
    rogue = version("0.9.0", {"at": "/contract_meta/issuer", "value": GLOBEX})
    ref = Forger(here).publish(candidate(rogue))
    assert ends(here, ref) == void("publish_name_taken")
    # the owner is neither kept from publishing nor compared with what is not his
    here.trust("pub", "publisher")
    following = here.release(version("1.1.0", NARROWER))
    assert here.pin("prod", following).ref == following
    below = here.release(version("0.9.1"))
    assert load_for_replay(here.desk, below).marks == ()


def test_an_id_of_another_kind_is_found_by_everybody_and_not_published(here: Office) -> None:
    here.release(version("1.0.0"))
    catalog = {**DESK_CATALOG, "catalog_id": "ctxpack.support", "catalog_version": "2.0.0"}
    acted = here.record(catalog)
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    assert code(lambda: here.publish(str(acted.digest))) == "publish_kind_taken"
    rogue = candidate({**catalog, "catalog_version": "3.0.0"})
    assert ends(here, Forger(here).publish(rogue)) == void("publish_kind_taken")


def test_what_was_judged_is_not_judged_again_in_one_session(here: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = here.release()
    here.pin("prod", ref)
    here.desk.platform.client_state.forget()
    here.desk.memory._judged.clear()
    request = ResolveRequest(refs=(ref,), tenant=ISSUER, environment="prod", purpose="new_traffic")
    (key,) = resolve_request(here.desk, request, HERE, max_age=None).judged
    assert here.desk.memory.judged == {key}

    def judge(_claims: PublicationClaims) -> None:
        raise AssertionError

    monkeypatch.setattr("contextplane.app.registry.resolve.judge_claims", judge)
    assert resolve_request(here.desk, request, HERE, max_age=None).judged == ()


# --- resolving --------------------------------------------------------------------------------------------------------


def test_a_run_does_not_get_a_pack_that_no_gate_passes_and_a_replay_marks_it() -> None:
    registry = Releases()
    registry.pin_here(registry.release(version("1.0.0", UNGATED)))
    assert registry.ends(PACK) == "publication_gates_failed"
    replayed = registry.resolve(PACK, purpose="replay")
    assert replayed.marks == (f"{PACK}: it does not pass the gates of this runtime",)
    assert replayed.judged == ()  # it is judged again the next time


def test_a_run_does_not_get_a_version_that_steps_too_short_and_a_replay_marks_it() -> None:
    registry = Releases().with_example()
    ref = registry.release(version("1.0.1", NARROWER))
    registry.pin_here(ref)
    assert registry.ends(ref) == "publication_version_wrong"
    assert registry.resolve(ref, purpose="replay").marks == (f"{ref}: its number does not cover its change",)


def test_a_version_is_compared_with_the_one_before_it_at_that_time() -> None:
    registry = Releases().with_example()
    ref = registry.release(version("2.0.0"))
    registry.pin_here(ref)
    assert registry.release(version("1.1.0", NARROWER)).release < ref.release  # it was not there yet
    assert registry.ends(ref) == "ok"


def of_globex(registry: Releases, number: str) -> PackRef:
    registry.keyring_change(trust(key_of("pub"), GLOBEX, "publisher", f"tenant:{TENANT}"))
    rogue = version(number, {"at": "/contract_meta/issuer", "value": GLOBEX})
    return registry.release(rogue, envelope=envelope_of("pub"), walk=Walk(signer="pub", after=""))


def of_other_kind(registry: Releases, number: str) -> PackRef:
    value = {**CATALOG, "catalog_id": PACK.pack_id, "catalog_version": number}
    return registry.release(value, "decision_catalog", walk=Walk(after=""))


def with_other_report(registry: Releases, number: str) -> PackRef:
    return registry.release(version(number), walk=Walk(report=report_of(candidate(version("7.0.0")))))


@cases(
    ("forge", "expected"),
    [
        (of_globex, "version_not_found"),
        (of_other_kind, "version_not_found"),
        (with_other_report, "publication_report_wrong"),
    ],
)
@cases("number", ["0.9.0", "2.0.0"])
def test_what_was_never_good_is_refused_for_every_purpose(
    forge: Callable[[Releases, str], PackRef], expected: str, number: str
) -> None:
    registry = Releases().with_example()
    ref = forge(registry, number)
    refs = (ref, PACK) if forge is of_other_kind else (ref,)
    assert registry.ends(*refs, purpose="replay") == expected


def test_a_claim_that_was_judged_before_is_not_judged_again() -> None:
    registry = Releases().with_example()
    (key,) = registry.resolve(PACK).judged
    assert registry.resolve(PACK, judged={key}).judged == ()
    forged = Releases()
    forged.pin_here(forged.release(version("1.0.0", UNGATED)))
    assert forged.ends(PACK, judged={key}) == "publication_gates_failed"  # the key names one publication, not bytes


def test_a_publication_by_another_takes_no_number_of_the_owner() -> None:
    """It is void: the owner publishes the same number after it."""
    registry = Releases().with_example()
    ref = of_globex(registry, "1.0.1")
    assert registry.ends(ref) == "version_not_found"
    following = registry.release(version("1.0.1"))
    registry.pin_here(following)
    assert registry.ends(following) == "ok"


def slip_in(registry: Releases) -> str:
    """Somebody without the right publishes under the id of others, past every rule."""
    stream = version_stream(PackRef.parse(f"{PACK.pack_id}@0.5.0"))
    rogue(registry, "arch", stream, published(b"whatever"))
    return stream


def test_a_publication_without_the_right_hinders_no_other_version() -> None:
    registry = Releases().with_example()
    slip_in(registry)
    assert registry.ends(PACK) == "ok"
    with registry.opened() as reader:
        newest = newest_publication(
            reader, versions_of(reader, PACK.pack_id), below=PackRef.parse(f"{PACK.pack_id}@1.0.1")
        )
        assert newest is not None
        assert published_ref(newest) == PACK
        assert reader.version(PackRef.parse(f"{PACK.pack_id}@0.5.0")).published is None
    following = registry.release(version("1.0.1"))
    registry.pin_here(following)
    assert registry.ends(following) == "ok"


def test_a_publication_that_was_spoilt_in_the_store_is_not_left_out() -> None:
    """Otherwise the next in line would own the name."""
    registry = Releases().with_example()
    stream = slip_in(registry)
    registry.tamper(stream, 1, canonical({"no": "event"}))
    assert registry.ends(PACK) == "envelope_invalid"
    with registry.reading() as reader:
        versions = [PackRef.parse(f"{PACK.pack_id}@0.5.0")]
        assert code(lambda: newest_publication(reader, versions)) == "envelope_invalid"


# --- overlays of another tenant ---------------------------------------------------------------------------------------


def of_other_tenant(here: Office) -> str:
    """An overlay by globex on a pack of acme, reviewed and signed."""
    here.trust("pub", "publisher", issuer=GLOBEX)
    for name in ("arch", "sec", "dat", "eva"):
        here.trust(name, *ROLES[name], issuer=GLOBEX)
    acted = here.record({**OVERLAY, "issuer": GLOBEX})
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    return str(acted.digest)


def test_an_overlay_of_another_tenant_is_not_published(here: Office) -> None:
    here.release()
    assert code(lambda: here.publish(of_other_tenant(here))) == "issuer_not_for_tenant"
    here.trust("pub", "publisher", f"tenant:{ISSUER}", issuer=GLOBEX)
    assert here.publish(str(candidate({**OVERLAY, "issuer": GLOBEX}).digest)).stage == "published"


def test_an_overlay_is_published_only_with_the_pack_that_it_was_judged_with(here: Office) -> None:
    here.release()
    acted = here.record(OVERLAY)
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    with here.desk.read() as reader:
        envelope = here.desk.platform.objects.get(Digest.parse(reader.artifact(acted.digest).envelope))
    assert acted.report is not None
    release = Release(
        artifact=here.desk.artifact(acted.digest),
        envelope=envelope,
        report=acted.report,
        golden=GoldenResult(outcome="not_run", words="none"),
        base=candidate(dict(EXAMPLE)),
    )
    here.release(version("1.1.0", NARROWER))

    def late() -> None:
        with here.desk.write(key_of("pub"), [release.report_data]) as writer:
            publish_release(writer, release, "in a hurry")

    assert code(late) == "stream_conflict"
    assert here.publish(str(acted.digest)).stage == "published"


def test_an_overlay_of_another_tenant_is_not_pinned(here: Office) -> None:
    """It was published when there was no pack yet."""
    overlay = here.publish(of_other_tenant(here)).ref
    here.trust("pub", "publisher")
    here.pin("staging", here.release())
    assert code(lambda: here.pin("staging", overlay)) == "issuer_not_for_tenant"


def test_a_pack_of_another_tenant_is_not_pinned_below_an_overlay(here: Office) -> None:
    here.pin("staging", here.release(EXAMPLE))
    here.pin("staging", here.release(OVERLAY))
    here.trust("gpub", "publisher", f"tenant:{GLOBEX}")
    moved = here.record(version("2.0.0", {"at": "/pack_meta/tenant/tenant_id", "value": GLOBEX}))
    here.review_all(str(moved.digest), moved.missing)
    here.sign(str(moved.digest), "gpub")
    here.publish(str(moved.digest), "gpub")
    assert here.pin("prod", moved.ref).ref == moved.ref
    assert code(lambda: here.pin("staging", moved.ref)) == "issuer_not_for_tenant"


def test_publishing_asks_the_gates_of_now(here: Office) -> None:
    """The report that is stored names the gates that ran."""
    acted = here.record()
    here.review_all(str(acted.digest), acted.missing)
    here.sign(str(acted.digest))
    publish_artifact(here.desk, str(acted.digest), here.by("pub"))
    with here.desk.read() as reader:
        report = reader.version(acted.ref).publication.report
    stored: Any = msgspec.json.decode(here.desk.platform.objects.get(Digest.parse(report)))
    assert stored["gates_version"] == __version__
