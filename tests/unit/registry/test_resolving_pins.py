"""What a run is given where it runs: pins, overlays, several documents, and the log that all of it stands in."""

from collections.abc import Callable
from typing import Any

import msgspec

from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.registry.events import Deprecated, EnvironmentOpened, EnvironmentProtected, Pins, Revoked, Unpinned
from contextplane.registry.streams import environment_stream, pins_stream
from contextplane.registry.writer import PlannedChange
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.merkle_log import VerifiedCheckpoint
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.changes import WIDENING, overlay
from tests.unit.authoring.packs import EXAMPLE, with_changes
from tests.unit.registry.releases import CATALOG, OVERLAY, PACK, Bent, Releases, envelope_of
from tests.unit.registry.world import PEOPLE
from tests.unit.trust.world import key_of, revoke, trust

OTHER = PackRef.parse("ctxpack.support@2.0.0")
NEXT = with_changes([{"at": "/pack_meta/pack_version", "value": "2.0.0"}])


# --- (11) pins --------------------------------------------------------------------------------------------------------


@proves("context-pack:lifecycle:pinned", "context-pack:definition:unit-of-deployment")
def test_new_traffic_gets_only_what_its_environment_pins_and_replay_needs_no_pin() -> None:
    registry = Releases()
    registry.release()
    registry.release(NEXT)
    assert registry.ends() == "not_pinned"
    assert registry.ends(purpose="replay") == "ok"
    registry.pin_here(PACK)
    assert registry.ends() == "ok"
    assert registry.ends(environment="staging") == "not_pinned"
    assert registry.ends(OTHER) == "not_pinned"
    registry.pin_here(OTHER)
    assert (registry.ends(), registry.ends(OTHER)) == ("not_pinned", "ok")
    change = Unpinned(id=OTHER.pack_id, version=OTHER.version, pins=Pins())
    registry.act("ops", PlannedChange(stream=pins_stream("prod", OTHER.pack_id), change=change, reason="stop"))
    assert registry.ends(OTHER) == "not_pinned"


def test_a_catalog_is_pinned_like_a_pack() -> None:
    registry = Releases().with_example()
    catalog = registry.release(CATALOG, "decision_catalog")
    assert registry.ends(PACK, catalog) == "not_pinned"
    registry.pin_here(catalog)
    assert registry.ends(PACK, catalog) == "ok"


def test_a_pin_of_other_bytes_is_refused() -> None:
    registry = Releases()
    registry.pin_here(registry.release(), digest=str(Digest.of(b"other")))
    assert registry.ends() == "artifact_mismatch"


def test_a_pin_by_a_key_that_was_not_to_be_trusted_is_refused() -> None:
    registry = Releases().with_example()
    before = msgspec.structs.replace(registry.now, seconds=registry.now.seconds - 1)
    registry.release(NEXT)
    registry.keyring_change(revoke(key_of("ops"), before))
    assert registry.ends() == "pin_doubtful"


def test_a_checkpoint_by_a_key_that_was_not_to_be_trusted_is_none() -> None:
    registry = Releases().with_example()
    before = msgspec.structs.replace(registry.now, seconds=registry.now.seconds - 1)
    registry.keyring_change(revoke(key_of("ops"), before))
    assert registry.ends() == "note_unsigned"


def test_a_pin_under_a_later_event_of_somebody_else_is_still_judged_by_who_made_it() -> None:
    registry = Releases().with_example()
    before = msgspec.structs.replace(registry.now, seconds=registry.now.seconds - 1)
    ref = registry.release(OVERLAY, "overlay")
    registry.pin_here(ref, PACK.pack_id, by="root")
    registry.keyring_change(revoke(key_of("ops"), before))
    assert registry.ends() == "pin_doubtful"


# --- (12) overlays, and several documents -----------------------------------------------------------------------------

GATE_TTL = "/policy_layer/approval_gates/GATE_FINANCE_APPROVAL/ttl_seconds"


def changing(at: str, value: object, **fields: object) -> dict[str, Any]:
    return {**OVERLAY, "changes": [{"at": at, "value": value}], **fields}


@cases(
    ("value", "expected"),
    [
        (OVERLAY, "ok"),
        ({**msgspec.to_builtins(overlay(WIDENING[0])), "environment": "prod"}, "overlay_widens"),
        (changing("/policy_layer/approval_gates/GATE_X/ttl_seconds", 5), "overlay_misplaced"),
        (changing(GATE_TTL, -5), "overlay_malformed"),
        (changing(GATE_TTL, 60, environment="staging"), "overlay_of_other_environment"),
        (changing(GATE_TTL, 60, issuer="tenant_globex"), "issuer_not_for_tenant"),
    ],
)
def test_an_overlay_is_admitted_like_a_pack_and_may_only_constrain(value: dict[str, Any], expected: str) -> None:
    registry = Releases()
    signers = ("stranger",) if value["issuer"] == "tenant_globex" else ("signer",)
    for name in ("pub", "arch", "sec", "dat", "eva"):
        registry.keyring_change(trust(key_of(name), "tenant_globex", *PEOPLE[name]))
    ref = registry.release(value, "overlay", envelope=envelope_of(*signers))  # before there is a pack to judge it with
    registry.pin_here(registry.release())
    registry.pin_here(ref, PACK.pack_id)
    assert registry.ends() == expected


@cases(
    ("spoil", "expected"),
    [
        (lambda registry, ref: registry.on_version("pub", str(ref), Revoked()), "version_revoked"),
        (lambda registry, ref: registry.on_version("pub", str(ref), Deprecated()), "version_deprecated"),
        (lambda registry, _: registry.kept.pop(Digest.of(canonical(OVERLAY))), "object_not_found"),
        (lambda registry, ref: registry.pin_here(ref, PACK.pack_id, digest=f"sha256:{'0' * 64}"), "artifact_mismatch"),
    ],
)
def test_a_pinned_overlay_that_cannot_be_had_refuses_the_pack_and_is_not_left_out(
    spoil: Callable[[Releases, PackRef], object], expected: str
) -> None:
    registry = Releases().with_example()
    spoil(registry, registry.with_overlay())
    assert registry.ends() == expected


def test_an_overlay_that_its_issuer_did_not_sign_is_refused() -> None:
    registry = Releases().with_example()
    registry.pin_here(registry.release(OVERLAY, "overlay", envelope=envelope_of("mallory")), PACK.pack_id)
    assert registry.ends() == "signature_key_unknown"


@proves("context-pack:overlays:declared")
def test_an_overlay_applies_only_while_its_environment_pins_it() -> None:
    registry = Releases().with_example()
    ref = registry.release(OVERLAY, "overlay")
    published = registry.resolve()
    assert (published.value, published.overlays, published.applied) == (EXAMPLE, (), ())
    assert [document.ref for document in published.lineage] == [PACK]
    assert registry.ends(overlays=(ref,)) == "overlay_not_asked"
    registry.pin_here(ref, PACK.pack_id)
    pinned = registry.resolve()
    assert [overlay.ref for overlay in pinned.overlays] == [ref]
    assert pinned.value != EXAMPLE
    change = Unpinned(id=ref.pack_id, version=ref.version, pins=Pins())
    registry.act("ops", PlannedChange(stream=pins_stream("prod", PACK.pack_id), change=change, reason="stop"))
    assert (registry.resolve().value, registry.resolve().overlays) == (EXAMPLE, ())


def test_a_replay_names_the_overlays_that_were_applied_and_new_traffic_names_none() -> None:
    registry = Releases().with_example()
    ref = registry.with_overlay()
    live = registry.resolve()
    assert registry.ends(overlays=(ref,)) == "overlay_not_asked"
    again = registry.resolve(purpose="replay", overlays=(ref,))
    assert (again.value, again.lineage) == (live.value, live.lineage)
    bare = registry.resolve(purpose="replay")
    assert (bare.value, bare.overlays) == (EXAMPLE, ())
    assert registry.ends(purpose="replay", overlays=(PACK,)) == "reference_of_wrong_kind"
    assert registry.ends(purpose="replay", overlays=(ref, ref)) == "overlays_mixed"


def test_references_are_to_one_pack_and_to_catalogs() -> None:
    registry = Releases().with_example()
    ref, catalog = registry.with_overlay(), registry.with_catalog()
    assert registry.ends(ref) == "reference_of_wrong_kind"
    assert registry.ends(catalog) == "context_pack_missing"
    assert registry.ends(PACK, PACK) == "reference_repeated"
    registry.pin_here(registry.release(NEXT))
    assert registry.ends(PACK, OTHER, purpose="replay") == "reference_repeated"


def test_a_catalog_with_another_content_under_a_key_of_the_pack_is_refused() -> None:
    registry = Releases().with_example()
    own = {**EXAMPLE["decision_layer"]["decision_specs"][0], "owner_role": "somebody"}
    catalog = registry.with_catalog({**CATALOG, "decision_specs": [*CATALOG["decision_specs"], own]})
    assert registry.ends(PACK, catalog) == "merge_conflict"


# --- (13) the log -----------------------------------------------------------------------------------------------------


def checkpoint_of(registry: Releases) -> Checkpoint:
    return registry.resolve().proof.checkpoint


def with_root(newest: VerifiedCheckpoint) -> VerifiedCheckpoint:
    spoiled = msgspec.structs.replace(newest.checkpoint, root=bytes(32))
    return msgspec.structs.replace(newest, checkpoint=spoiled)


def shorter(newest: VerifiedCheckpoint) -> VerifiedCheckpoint:
    return msgspec.structs.replace(newest, checkpoint=msgspec.structs.replace(newest.checkpoint, size=1))


@cases(
    ("answers", "expected"),
    [
        ({"inclusion": lambda path: path[1:]}, "inclusion_not_proved"),
        ({"inclusion": lambda path: (*path, bytes(32))}, "inclusion_not_proved"),
        ({"inclusion": lambda path: (bytes(32), *path[1:])}, "inclusion_not_proved"),
        ({"newest": with_root}, "inclusion_not_proved"),
        ({"newest": shorter}, "inclusion_not_proved"),
        ({"newest": lambda _: None}, "checkpoint_missing"),
        ({"history": lambda events: events[1:]}, "version_not_found"),
    ],
)
def test_what_is_not_in_the_log_is_not_believed(answers: dict[str, Any], expected: str) -> None:
    registry = Releases().with_example()
    assert registry.ends(bend=lambda snapshot: Bent(snapshot, **answers)) == expected


def test_a_log_that_goes_on_is_followed_and_the_checkpoint_is_there_to_be_remembered() -> None:
    registry = Releases().with_example()
    seen = checkpoint_of(registry)
    registry.release(NEXT)
    after = registry.resolve(seen=seen).proof.checkpoint
    assert after.size > seen.size
    assert registry.resolve(seen=after).proof.checkpoint == after


@cases(
    ("change", "expected"),
    [
        (lambda seen: {"size": seen.size + 1}, "log_rolled_back"),
        (lambda _: {"root": bytes(32)}, "log_forked"),
        (lambda seen: {"size": seen.size - 1}, "log_rewritten"),
        (lambda _: {"origin": "contextplane.registry/other"}, "log_forked"),
    ],
)
def test_a_log_that_is_not_the_one_that_was_seen_is_refused(change: Callable[[Checkpoint], Any], expected: str) -> None:
    registry = Releases().with_example()
    seen = checkpoint_of(registry)
    assert registry.ends(seen=msgspec.structs.replace(seen, **change(seen))) == expected
    assert registry.ends(seen=seen) == "ok"


def test_a_proof_of_consistency_is_asked_for_and_checked() -> None:
    registry = Releases().with_example()
    seen = checkpoint_of(registry)
    registry.release(NEXT)
    bend: Callable[[Any], Any] = lambda snapshot: Bent(snapshot, consistency=lambda path: path[1:])  # noqa: E731
    assert registry.ends(seen=seen, bend=bend) == "log_rewritten"


def test_a_frozen_registry_takes_no_new_traffic_and_its_past_can_be_replayed() -> None:
    registry = Releases().with_example()
    assert registry.ends(max_age=60, later=60) == "ok"
    assert registry.ends(max_age=60, later=61) == "registry_frozen"
    assert registry.ends(max_age=60, later=61, purpose="replay") == "ok"
    assert registry.ends(max_age=0, later=0) == "registry_frozen"  # as a blank setting says
    assert registry.ends(later=10**6) == "ok"


def test_by_a_clock_behind_the_newest_checkpoint_nothing_is_fresh() -> None:
    registry = Releases().with_example()
    assert registry.ends(later=-121, max_age=3600) == "clock_went_backwards"
    assert registry.ends(later=-121, max_age=3600, purpose="replay") == "ok"
    for age, lag in ((1, 60), (60, 60), (3600, 120), (None, 86_400)):  # as clocks may differ; by default a day
        assert registry.ends(later=-lag, max_age=age) == "ok"
        assert registry.ends(later=-lag - 1, max_age=age) == "clock_went_backwards"


def test_an_event_that_was_changed_in_the_catalog_is_refused() -> None:
    registry = Releases().with_example()
    with registry.catalog.read() as view:
        body = next(iter(view.streams.read(f"registry/version/{PACK}"))).body
    registry.tamper(f"registry/version/{PACK}", 1, body.replace(b'"sig":"', b'"sig":"A', 1)[: len(body)])
    assert registry.ends() in {"envelope_invalid", "base64_not_strict", "registry_signer_untrusted"}


def test_whoever_reads_a_version_notices_that_its_revocation_was_cut_off() -> None:
    registry = Releases().with_example()
    registry.on_version("pub", str(PACK), Revoked())
    with registry.catalog.write() as tx:
        database = tx.streams._db  # type: ignore[attr-defined]
        guards = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'event'")
        for (guard,) in guards.fetchall():
            database.execute(f"DROP TRIGGER {guard}")
        database.execute("DELETE FROM event WHERE stream = ? AND seq = 2", (f"registry/version/{PACK}",))
    assert registry.ends() == registry.ends(purpose="replay") == "registry_stream_cut"


def test_resolving_twice_says_the_same() -> None:
    registry = Releases().with_example()
    registry.with_overlay()
    assert registry.resolve() == registry.resolve()


def test_a_protected_environment_needs_a_registry_that_was_signed_lately() -> None:
    registry = Releases().with_example()
    month = 30 * 24 * 3600
    assert registry.ends(later=month - 3600) == "ok"
    assert registry.ends(later=month + 3600) == "registry_frozen"
    assert registry.ends(later=month + 3600, purpose="replay") == "ok"
    stream = environment_stream("prod")
    hour = PlannedChange(stream=stream, change=EnvironmentProtected(max_age=3600), reason="it is production")
    registry.act("ops", hour)
    assert (registry.ends(later=3599), registry.ends(later=3700)) == ("ok", "registry_frozen")
    registry.act("ops", PlannedChange(stream=stream, change=EnvironmentOpened(), reason="for a test"))
    assert registry.ends(later=10 * month) == "ok"
