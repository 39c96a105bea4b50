"""A run gets a pack only at the end of thirteen steps. Each attack, and each mistake, ends in its own code."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from contextplane.authoring.artifacts import judge
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.registry.events import Deprecated, Drafted, Revoked
from contextplane.registry.streams import artifact_stream
from contextplane.registry.writer import PlannedChange
from contextplane.trust.compatibility import RuntimeCapabilities
from contextplane.trust.dsse import IN_TOTO, Statement, make_envelope
from contextplane.trust.merkle import leaf_hash, verify_inclusion
from contextplane.trust.merkle_log import LogEntry, entry_body
from contextplane.trust.tenancy import tenant_role
from contextplane.trust.verify import sign
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.changes import NARROWING, overlay
from tests.unit.authoring.packs import EXAMPLE, with_changes
from tests.unit.registry.releases import CATALOG, HERE, OVERLAY, PACK, TENANT, Bent, Envelope, Releases, envelope_of
from tests.unit.trust.world import key_of, revoke, threshold, trust

OTHER = PackRef.parse("ctxpack.support@2.0.0")
NEXT = with_changes([{"at": "/pack_meta/pack_version", "value": "2.0.0"}])


@proves(
    "context-pack:full-example:publishes-as-itself",
    "context-pack:definition:signed",
    "api-contracts:pack-ref:loaded-by-reference",
    "context-pack:structure:contract-meta",
)
def test_the_full_example_is_resolved_by_its_reference_with_all_that_proves_it() -> None:
    resolution = Releases().with_example().resolve()
    (pack,) = resolution.packs
    assert (str(pack.ref), pack.kind, pack.digest) == (
        "ctxpack.support@1.0.0",
        "context_pack",
        Digest.of(canonical(EXAMPLE)),
    )
    assert pack.signed_by == (key_of("signer").public_key.key_id,)
    assert resolution.view == msgspec.convert(EXAMPLE, ContextPack)
    assert resolution.view.pack_meta.tenant.tenant_id == TENANT
    assert (resolution.value, resolution.overlays, resolution.marks, resolution.ttl_seconds) == (EXAMPLE, (), (), 86400)
    artifact = artifact_stream(pack.digest)
    streams = [artifact] * 7 + ["registry/version/ctxpack.support@1.0.0", "registry/pins/prod/ctxpack.support"]
    assert [event.stream for event in resolution.proof.events] == streams
    assert [event.seq for event in resolution.proof.events] == [1, 2, 3, 4, 5, 6, 7, 1, 1]


def test_the_proof_can_be_checked_by_anybody_who_has_the_checkpoint() -> None:
    proof = Releases().with_example().resolve().proof
    for event in proof.events:
        entry = LogEntry(event=event.event, seq=event.seq, stream=event.stream, previous=event.previous)
        leaf = leaf_hash(entry_body(entry))
        verify_inclusion(leaf, event.entry, proof.checkpoint.size, root=proof.checkpoint.root, proof=event.path)
    assert proof.checkpoint.text.encode() in proof.note


def test_catalogs_and_overlays_take_part_in_their_order_and_are_in_the_lineage() -> None:
    registry = Releases().with_example()
    catalog = registry.with_catalog()
    late = {**OVERLAY, "overlay_id": "ov.a", "order": 9}
    early = {**msgspec.to_builtins(overlay(NARROWING[300])), "environment": "prod", "overlay_id": "ov.b", "order": 1}
    registry.with_overlay(late)
    registry.with_overlay(early)
    resolution = registry.resolve(PACK, catalog)
    names = ["ctxpack.support@1.0.0", "decision-catalog.support@2.1.0", "ov.b@1.0.0", "ov.a@1.0.0"]
    assert [str(document.ref) for document in resolution.lineage] == names
    assert [overlay.digest for overlay in resolution.overlays] == [
        Digest.of(canonical(early)),
        Digest.of(canonical(late)),
    ]
    assert [decision_spec.decision_key for decision_spec in resolution.view.decision_layer.decision_specs] == [
        "support.refund.execute",
        "support.refund.review",
    ]
    assert {overlay.overlay for overlay in resolution.applied} == {"ov.a@1.0.0", "ov.b@1.0.0"}
    assert msgspec.convert(resolution.value, ContextPack) == resolution.view != msgspec.convert(EXAMPLE, ContextPack)


# --- (1) to (6): the envelope and who signed it -----------------------------------------------------------------------


def other_type(statement: Statement) -> bytes:
    return make_envelope("application/vnd.contextplane.keyring+json", statement.to_bytes(), key_of("signer")).to_bytes()


def about_other_bytes(statement: Statement) -> bytes:
    return sign(msgspec.structs.replace(statement, digest=Digest.of(b"other")), key_of("signer"))


def of_other_issuer(statement: Statement) -> bytes:
    return sign(msgspec.structs.replace(statement, issuer="tenant_globex"), key_of("signer"))


def spoiled(statement: Statement) -> bytes:
    mine = msgspec.json.decode(sign(statement, key_of("signer")))
    theirs = msgspec.json.decode(about_other_bytes(statement))
    return msgspec.json.encode({**mine, "signatures": theirs["signatures"]})


@proves("context-pack:definition:signed")
@cases(
    ("envelope", "expected"),
    [
        (lambda _: b"{}", "envelope_invalid"),
        (other_type, "envelope_payload_type_wrong"),
        (lambda _: make_envelope(IN_TOTO, b"{}", key_of("signer")).to_bytes(), "statement_invalid"),
        (about_other_bytes, "statement_digest_mismatch"),
        (of_other_issuer, "statement_issuer_mismatch"),
        (envelope_of(), "signature_missing"),
        (envelope_of("mallory"), "signature_key_unknown"),
        (envelope_of("stranger"), "signature_key_of_other_issuer"),
        (spoiled, "signature_invalid"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_its_issuer_did_not_sign_is_refused_whatever_the_registry_says(envelope: Envelope, expected: str) -> None:
    registry = Releases()
    registry.pin_here(registry.release(envelope=envelope))
    assert registry.ends() == registry.ends(purpose="replay") == expected


def test_one_of_two_needed_signatures_is_not_enough_even_when_two_were_not_needed_then() -> None:
    registry = Releases().with_example()
    assert registry.ends() == "ok"
    registry.keyring_change(threshold(TENANT, 2))
    assert registry.ends() == "signature_threshold_not_met"
    registry.pin_here(registry.release(NEXT, envelope=envelope_of("signer", "pub")))
    assert registry.ends(OTHER) == "ok"


def test_a_key_must_have_been_good_when_the_registry_saw_what_it_signed_and_not_for_ever() -> None:
    registry = Releases()
    registry.pin_here(registry.release(envelope=envelope_of("short")))
    assert registry.ends(later=7200) == "ok"
    registry.seconds += 7200
    registry.pin_here(registry.release(NEXT, envelope=envelope_of("short")))
    assert registry.ends(OTHER) == "signature_key_expired"


def test_a_key_revoked_from_a_time_after_publication_spoils_nothing_and_from_before_it_does() -> None:
    registry = Releases().with_example()
    published = registry.now
    registry.seconds += 100
    registry.keyring_change(revoke(key_of("signer"), registry.now))
    assert registry.ends() == "ok"
    registry.keyring_change(
        revoke(key_of("signer"), msgspec.structs.replace(published, seconds=published.seconds - 50))
    )
    assert registry.ends() == "signature_key_revoked"


# --- the registry and the bytes say the same --------------------------------------------------------------------------


def test_bytes_that_are_not_those_that_were_published_are_refused() -> None:
    registry = Releases().with_example()
    bend: Callable[[Any], Any] = lambda snapshot: Bent(snapshot, object=lambda data: data + b" ")  # noqa: E731
    assert registry.ends(bend=bend) == "artifact_mismatch"
    registry.kept.clear()
    assert registry.ends() == "object_not_found"


@proves("context-pack:contract-meta:issuer-is-audit-owner")
def test_the_registry_has_the_issuer_on_record_and_a_pack_without_one_is_none() -> None:
    registry = Releases().with_example()
    with registry.reading() as reader:
        published = reader.version(PACK).published
    assert published is not None
    assert published.issuer == EXAMPLE["contract_meta"]["issuer"] == TENANT
    nobodys = with_changes([{"at": "/contract_meta/issuer"}])
    assert [finding.code for finding in judge("context_pack", nobodys).findings] == ["schema_part_missing"]
    bend: Callable[[Any], Any] = lambda snapshot: Bent(snapshot, object=lambda _: canonical(nobodys))  # noqa: E731
    assert registry.ends(bend=bend) == "artifact_mismatch"


@cases(
    "release",
    [
        lambda r: r.release(ref=OTHER),
        lambda r: r.release(
            with_changes([{"at": "/contract_meta/issuer", "value": "somebody"}]), ref=PACK, issuer=TENANT
        ),
        lambda r: r.release(CATALOG, "decision_catalog", ref=PACK),
        lambda r: r.release(
            envelope=lambda s: sign(msgspec.structs.replace(s, name="ctxpack.other@1.0.0"), key_of("signer"))
        ),
        lambda r: r.release(envelope=lambda s: sign(msgspec.structs.replace(s, kind="overlay"), key_of("signer"))),
        lambda r: r.publish_bytes(canonical(CATALOG), PACK),
        lambda r: r.publish_bytes(canonical({**EXAMPLE, "twelfth_layer": {}}), PACK),
        lambda r: r.publish_bytes(b"{", PACK),
    ],
    ids=[
        *("another version", "another issuer", "another id", "a statement of another name", "of another kind"),
        *("another document", "a layer that is not known", "no document"),
    ],
)
def test_a_document_that_says_something_else_of_itself_than_the_registry_is_refused(
    release: Callable[[Releases], PackRef],
) -> None:
    registry = Releases()
    ref = release(registry)
    registry.pin_here(ref)
    assert registry.ends(ref) == "artifact_mismatch"


# --- (7) the issuer and the tenant, (10) the tenant that asks ---------------------------------------------------------


def test_an_issuer_publishes_for_another_tenant_only_when_that_was_granted_to_the_key() -> None:
    registry = Releases()
    value = with_changes([{"at": "/pack_meta/tenant/tenant_id", "value": "tenant_globex"}])
    registry.pin_here(registry.release(value))
    assert registry.ends(tenant="tenant_globex") == "issuer_not_for_tenant"
    registry.keyring_change(trust(key_of("signer"), TENANT, tenant_role("tenant_globex")))
    assert registry.ends(tenant="tenant_globex") == "ok"
    assert registry.ends() == "tenant_mismatch"


def test_a_pack_is_for_its_tenant_and_for_those_it_is_shared_with() -> None:
    registry = Releases().with_example()
    assert registry.ends(tenant="tenant_globex") == "tenant_mismatch"
    assert registry.ends(tenant="tenant_globex", purpose="replay") == "tenant_mismatch"
    shared = with_changes([{"at": "/pack_meta/tenant/shared_with", "value": ["tenant_globex"]}], NEXT)
    registry.pin_here(registry.release(shared))
    assert registry.ends(OTHER, tenant="tenant_globex") == registry.ends(OTHER) == "ok"


def test_a_catalog_that_is_not_shared_stays_with_its_tenant_even_where_the_pack_is() -> None:
    registry = Releases()
    shared = with_changes([{"at": "/pack_meta/tenant/shared_with", "value": ["tenant_initech"]}])
    registry.pin_here(registry.release(shared))
    catalog = registry.with_catalog()
    assert registry.ends(tenant="tenant_initech") == "ok"
    assert registry.ends(PACK, catalog, tenant="tenant_initech") == "tenant_mismatch"


# --- (8) the state of the version -------------------------------------------------------------------------------------


@proves("context-pack:lifecycle:draft")
def test_a_draft_and_a_version_that_never_was_are_not_resolved() -> None:
    registry = Releases()
    data = canonical(EXAMPLE)
    change = Drafted(kind="context_pack", id=PACK.pack_id, version=PACK.version, issuer=TENANT)
    registry.act(
        "author", PlannedChange(stream=artifact_stream(Digest.of(data)), change=change, reason="new"), objects=(data,)
    )
    registry.kept[Digest.of(data)] = data
    assert registry.ends() == registry.ends(purpose="replay") == "version_not_found"
    assert registry.ends(PackRef.parse("ctxpack.nothing@9.9.9")) == "version_not_found"


@proves(
    "context-pack:lifecycle:deprecated-replays",
    "context-pack:lifecycle:deprecated-no-new-traffic",
    "context-pack:versioning-guidelines:deprecation-is-registry-state",
)
def test_a_deprecated_version_is_replayed_and_takes_no_new_traffic_and_its_bytes_are_the_same() -> None:
    registry = Releases().with_example()
    before = registry.resolve()
    registry.on_version("pub", str(PACK), Deprecated())
    assert registry.ends() == "version_deprecated"
    after = registry.resolve(purpose="replay")
    assert after.marks == ("ctxpack.support@1.0.0: deprecated, for replay only",)
    assert (after.value, after.packs[0].digest) == (before.value, before.packs[0].digest)


@proves("context-pack:lifecycle:revoked-blocks", "context-pack:lifecycle:revoked-retained")
def test_a_revoked_version_is_blocked_with_its_reason_and_kept_for_replay_with_a_mark() -> None:
    registry = Releases().with_example()
    registry.on_version("pub", str(PACK), Revoked())
    with pytest.raises(Exception, match="as it should be") as refused:
        registry.resolve()
    assert refused.value.code == "version_revoked"  # type: ignore[attr-defined]
    resolution = registry.resolve(purpose="replay")
    assert resolution.marks == ("ctxpack.support@1.0.0: revoked, for replay only",)
    assert resolution.value == EXAMPLE


def test_what_a_key_published_that_was_not_to_be_trusted_takes_no_new_traffic_and_is_marked() -> None:
    registry = Releases().with_example()
    before = msgspec.structs.replace(registry.now, seconds=registry.now.seconds - 30)
    registry.seconds += 10
    registry.keyring_change(revoke(key_of("pub"), before))
    assert registry.ends() == "publication_doubtful"
    assert registry.resolve(purpose="replay").marks == ("ctxpack.support@1.0.0: published by a key that is revoked",)


# --- (9) what it requires ---------------------------------------------------------------------------------------------


@proves("context-pack:versioning-guidelines:runtime-compatibility")
@proves("context-pack:contract-meta:old-runtime-fails-closed", case="an older runtime")
@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (HERE, "ok"),
        (RuntimeCapabilities(), "ontology_missing"),
        (RuntimeCapabilities(ontologies=("ont.support@1.0.1",)), "ontology_missing"),
        (msgspec.structs.replace(HERE, runtime="0.9.0"), "runtime_too_old"),
    ],
    ids=["all of it", "no ontology", "another ontology", "an older runtime"],
)
def test_a_runtime_without_what_the_pack_requires_gets_nothing(
    capabilities: RuntimeCapabilities, expected: str
) -> None:
    registry = Releases().with_example()
    assert (
        registry.ends(capabilities=capabilities)
        == registry.ends(capabilities=capabilities, purpose="replay")
        == expected
    )
