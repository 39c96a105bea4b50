"""One function appends to the registry, all or nothing; and what it wrote can be proved."""

import msgspec
import pytest

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.registry.errors import RegistryUntrusted
from contextplane.registry.events import Deprecated, Published, Revoked
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.streams import CHECKPOINTS, LOG, TREE, artifact_stream, version_stream
from contextplane.trust.checkpoint import NoteUnsigned, signed_checkpoint
from contextplane.trust.merkle import StreamTree, inclusion_proof, leaf_hash, verify_inclusion
from contextplane.trust.merkle_log import LogEntry
from tests.unit.registry.world import ORIGIN, Registry
from tests.unit.trust.world import CHECK, key_of, revoke

PACK = b'{"pack":1}'


def code(act: object) -> str:
    with pytest.raises(ContextPlaneError) as error:
        act()  # type: ignore[operator]
    return error.value.code


def test_a_pack_walks_the_whole_way() -> None:
    registry = Registry()
    registry.publish(PACK)
    registry.pin("prod", "refunds@1.0.0", PACK)
    with registry.reading() as reader:
        assert reader.artifact(Digest.of(PACK)).stage == "signed"
        version = reader.version(PackRef.parse("refunds@1.0.0"))
        assert (version.stage, version.digest, version.serves("new_traffic")) == ("published", Digest.of(PACK), True)
        assert reader.pins("prod", "refunds").base == PackRef.parse("refunds@1.0.0")
        assert reader.state("registry/pins/prod/refunds") == reader.pins("prod", "refunds")


def test_every_event_has_its_entry_in_the_log_and_a_proof_of_it_under_the_newest_checkpoint() -> None:
    registry = Registry()
    registry.publish(PACK)
    with registry.reading() as reader:
        shown = REGISTRY_LOG.verify_checkpoint(reader.streams, reader.keyrings, CHECK, ORIGIN)
        assert shown is not None
        tree, size = StreamTree(reader.streams, TREE), shown.checkpoint.size
        assert size == reader.streams.head(LOG) == 17
        for index, logged in enumerate(reader.streams.read(LOG)):
            entry, body = msgspec.json.decode(logged.body, type=LogEntry), logged.body
            stored = next(iter(reader.streams.read(entry.stream, after=entry.seq - 1)))
            assert Digest.of(stored.body).hex == entry.event
            if entry.stream != "trust/keyring":
                assert [event.event.entry for event in reader.history(entry.stream)][entry.seq - 1] == index
            proof = inclusion_proof(tree, index, size)
            verify_inclusion(leaf_hash(body), index, size, root=shown.checkpoint.root, proof=proof)


def test_a_refused_event_leaves_all_streams_as_they_were() -> None:
    registry = Registry()
    registry.publish(PACK)
    before = registry.streams()
    assert code(lambda: registry.on_version("ops", "refunds@1.0.0", Deprecated())) == "registry_role_missing"
    assert code(lambda: registry.publish(PACK, walk=False)) == "lifecycle_transition_refused"
    assert code(lambda: registry.on_version("mallory", "refunds@1.0.0", Revoked())) == "registry_signer_untrusted"
    assert registry.streams() == before


def test_whose_key_is_revoked_is_told_to_act_with_another_for_it_is_never_trusted_again() -> None:
    registry = Registry()
    registry.publish(PACK)
    registry.keyring_change(revoke(key_of("ops"), registry.now))
    for by, hint in (("ops", "use another key"), ("mallory", "'ctx keys trust' changes it")):
        with pytest.raises(RegistryUntrusted) as refused:
            registry.on_version(by, "refunds@1.0.0", Revoked())
        assert hint in str(refused.value)
        assert ("cannot be undone" in str(refused.value), "is revoked" in str(refused.value)) == (by == "ops",) * 2


def test_an_act_by_a_clock_behind_the_newest_checkpoint_or_keyring_comes_right_after_them() -> None:
    registry = Registry()
    last = registry.publish(PACK).newest.time
    registry.seconds -= 10
    (deprecated,) = (done := registry.on_version("pub", "refunds@1.0.0", Deprecated())).events
    assert deprecated.at == done.newest.time == Timestamp(seconds=last.seconds, nanos=1000)
    early = Registry()
    changed = early.now
    early.seconds -= 5
    early.draft(PACK)
    with early.reading() as reader:
        assert next(reader.history(artifact_stream(Digest.of(PACK)))).at > changed


def test_an_event_names_objects_that_are_stored() -> None:
    registry = Registry()
    change = Published(
        digest=str(Digest.of(b"nowhere")),
        kind="context_pack",
        issuer="acme",
        envelope=str(Digest.of(b"x")),
        report=str(Digest.of(b"y")),
        golden="not_run",
        after="",
    )
    assert code(lambda: registry.on_version("pub", "refunds@1.0.0", change)) == "object_not_found"


def test_what_events_name_is_kept_by_a_root_and_known_by_its_kind() -> None:
    registry = Registry()
    registry.publish(PACK)
    with registry.catalog.read() as view:
        kinds = {}
        for name, digest in view.objects.roots("registry/"):
            assert name in {f"registry/{digest.hex}", f"registry/draft/refunds@1.0.0/{digest.hex}"}
            entry = view.objects.lookup(digest)
            assert entry is not None
            assert entry.traced
            kinds[digest] = entry.kind
    assert kinds == {
        Digest.of(PACK): "registry_artifact",
        Digest.of(b"report of " + PACK): "registry_report",
        Digest.of(b"envelope of " + PACK): "registry_envelope",
    }


def tampered(registry: Registry, stream: str, seq: int) -> None:
    """An event of the same length, with one bit of its payload changed."""
    with registry.catalog.read() as view:
        body = next(iter(view.streams.read(stream, after=seq - 1))).body
    place = body.index(b'"payload":"') + 40
    registry.tamper(stream, seq, body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :])


@pytest.mark.parametrize("seq", [1, 2])
def test_a_rewritten_event_is_noticed_by_whoever_reads_it(seq: int) -> None:
    registry = Registry()
    registry.publish(PACK)
    registry.on_version("pub", "refunds@1.0.0", Deprecated())
    stream = version_stream(PackRef.parse("refunds@1.0.0"))
    tampered(registry, stream, seq)
    with registry.reading() as reader:
        assert code(lambda: reader.version(PackRef.parse("refunds@1.0.0"))) in {
            "registry_event_invalid",
            "registry_signer_untrusted",
        }


def test_an_event_of_another_stream_is_refused_in_this_one() -> None:
    registry = Registry()
    registry.publish(PACK)
    registry.publish(b"two", "refunds@2.0.0")
    first, second = (version_stream(PackRef.parse(f"refunds@{n}.0.0")) for n in (1, 2))
    with registry.catalog.read() as view:
        body = next(iter(view.streams.read(second))).body
    registry.tamper(first, 1, body)
    with registry.reading() as reader:
        assert code(lambda: reader.version(PackRef.parse("refunds@1.0.0"))) == "registry_event_invalid"


def test_nothing_is_appended_to_a_log_that_is_not_what_its_checkpoint_says() -> None:
    registry = Registry()
    registry.publish(PACK)
    registry.tamper("tree/registry/04", 1, b'"' + b"0" * 64 + b'"')
    assert code(lambda: registry.on_version("pub", "refunds@1.0.0", Deprecated())) == "log_rewritten"


def test_a_checkpoint_is_believed_while_its_signer_is_not_revoked_from_before_it_on() -> None:
    registry = Registry()
    registry.publish(PACK)
    at = registry.now
    registry.keyring_change(revoke(key_of("pub"), at))
    with registry.reading() as reader, pytest.raises(NoteUnsigned, match="is revoked from before that time") as refused:
        REGISTRY_LOG.newest_checkpoint(reader.streams, reader.keyrings, CHECK, ORIGIN)
    assert refused.value.at == "registry/checkpoints@16"
    assert "'ctx verify --registry --sign --key KEY'" in str(refused.value.hint)
    assert code(lambda: registry.draft(b"another")) == "note_unsigned"


def test_nobody_is_told_to_sign_what_no_key_that_was_ever_trusted_has_signed() -> None:
    registry = Registry()
    last = registry.publish(PACK).newest.checkpoint
    registry.tamper(CHECKPOINTS, 16, canonical(signed_checkpoint(last, key_of("mallory")).decode()))
    with registry.reading() as reader, pytest.raises(NoteUnsigned, match="no key that was trusted then") as refused:
        REGISTRY_LOG.newest_checkpoint(reader.streams, reader.keyrings, CHECK, ORIGIN)
    assert refused.value.at == "registry/checkpoints@16"
    assert "--sign" not in str(refused.value.hint)
    assert "restore the catalog from a copy" in str(refused.value.hint)
