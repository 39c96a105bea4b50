"""Published versions in a store that did not publish them: exported with their proofs, verified, resolved, run."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from contextplane.app.compile.sources import published_pack, source_from_registry
from contextplane.app.init import init
from contextplane.app.registry.audit import audit_registry, renew_checkpoint
from contextplane.app.registry.export import ExportedBundle, export_version
from contextplane.app.registry.mirror import (
    acting_error,
    find_pinned_version,
    import_bundle,
    known_size,
    list_mirrors,
)
from contextplane.app.registry.pins import pin_version
from contextplane.app.registry.release import retire
from contextplane.app.settings import Settings
from contextplane.compiler.case import CompileCase, read_case
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event
from contextplane.model.ids import Digest, PackRef
from contextplane.registry.bundle import RegistryBundle, bundle_bytes, parse_bundle
from contextplane.registry.streams import pins_stream, version_stream
from contextplane.store.event_stream import stream_head
from contextplane.trust.merkle_log import LogEntry
from contextplane.trust.trust_root import TrustRoot
from tests.support.forged_log import forge_log
from tests.unit.compiler.case_files import SHOWN
from tests.unit.compiler.scenario import put
from tests.unit.registry.desk import (
    CATALOG,
    ENDPOINT,
    NARROWER,
    OVERLAY,
    PACK,
    Clock,
    Office,
    code,
    desk_in,
    office,
    version,
)
from tests.unit.trust.world import key_of

REF = PackRef.parse(PACK)
FOUNDER = TrustRoot(key_ids=(key_of("root").public_key.key_id,))


class Pair:
    """The store that publishes, and one that receives. Each has a folder of its own."""

    def __init__(self, source: Office, target: Office) -> None:
        self.source = source
        self.target = target

    def export(self, ref: str = PACK, *environments: str, since: int = 0) -> ExportedBundle:
        return export_version(self.source.desk, PackRef.parse(ref), environments, since=since)

    def take(self, data: bytes, root: TrustRoot | None = FOUNDER) -> str:
        """Import a bundle; return `ok` or the code of the refusal."""
        try:
            import_bundle(self.target.desk, data, root)
        except ContextPlaneError as error:
            return error.code
        return "ok"


@contextmanager
def receiver(folder: Path, clock: Clock, trust_root: str | None = None) -> Iterator[Office]:
    settings = Settings(cwd=str(folder), trust_root=trust_root)
    init(settings)
    with desk_in(settings, clock) as here:
        yield here


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    source, target = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    target.mkdir()
    with office(source) as here:
        here.release()
        here.pin("staging", PACK)
        assert isinstance(here.clock, Clock)
        with receiver(target, here.clock) as there:
            yield Pair(here, there)


def case(**changes: object) -> CompileCase:
    return read_case(put(SHOWN, {f"/{name.replace('__', '/')}": value for name, value in changes.items()}))


def compiled(here: Office, environment: str = "staging", ref: PackRef = REF, max_age: int | None = None) -> object:
    request = case()
    return source_from_registry(here.desk, ref, request, environment, max_age=max_age).compile(request)


def test_an_imported_version_compiles_to_the_same_bytes_as_where_it_was_published(pair: Pair) -> None:
    assert pair.take(pair.export().data) == "ok"
    assert compiled(pair.target) == compiled(pair.source)
    assert published_pack(pair.target.desk, REF) == published_pack(pair.source.desk, REF)


@pytest.mark.parametrize("body", [b"\xff\xfe", b"base64:AA==", b"{}"])
def test_bytes_that_are_no_event_come_along_where_the_log_has_them(pair: Pair, body: bytes) -> None:
    """Whoever signs the log can put them into a stream for good. They count for nothing elsewhere, either."""
    with pair.source.desk.platform.catalog.write() as tx:
        for stream in (pins_stream("staging", REF.pack_id), version_stream(REF)):
            end = stream_head(tx.streams, stream)
            assert end is not None
            tx.streams.append(stream, end.seq, [Event(kind="pinned", body=body)])
            entry = LogEntry(event=Digest.of(body).hex, seq=end.seq + 1, stream=stream, previous=end.digest)
            now, origin = pair.source.desk.keys.clock, pair.source.desk.origin
            forge_log(tx, [entry], signer=key_of("author"), at=now, origin=origin)
    assert pair.take(pair.export().data) == "ok"
    assert compiled(pair.target) == compiled(pair.source)


@pytest.mark.parametrize("text", ["base64:", "base64:A", "base64:e30=", "base64:!!"])
def test_an_event_of_a_bundle_that_is_base64_without_need_or_is_none_is_refused(pair: Pair, text: str) -> None:
    bundle = parse_bundle(pair.export().data)
    name = version_stream(REF)
    stream = replace(bundle.streams[name], events=(*bundle.streams[name].events, text))
    assert pair.take(bundle_bytes(replace(bundle, streams={**bundle.streams, name: stream}))) == "bundle_invalid"


def test_overlays_and_the_version_before_come_along(pair: Pair) -> None:
    newer = pair.source.release(version("1.1.0", NARROWER))
    pair.source.release({**OVERLAY, "changes": [ENDPOINT]})
    pair.source.pin("staging", newer)
    pair.source.pin("staging", "ovl.staging@1.0.0")
    assert pair.take(pair.export(str(newer)).data) == "ok"
    request = case(request__context_pack_refs=[str(newer)])

    def compile_in(here: Office) -> object:
        return source_from_registry(here.desk, newer, request, "staging", max_age=None).compile(request)

    assert compile_in(pair.target) == compile_in(pair.source)


def test_a_catalog_that_a_pack_was_published_with_comes_along(pair: Pair) -> None:
    here, catalog = pair.source, pair.source.release(CATALOG)
    here.pin("staging", catalog)
    acted = here.record(version("1.1.0", NARROWER), catalogs=(catalog,))
    target = str(acted.digest)
    here.review_all(target, acted.missing)
    here.sign(target)
    here.publish(target)
    here.pin("staging", acted.ref)
    assert pair.take(pair.export(str(acted.ref)).data) == "ok"
    request = case(request__context_pack_refs=[str(acted.ref), str(catalog)])

    def compile_in(office_: Office) -> object:
        return source_from_registry(office_.desk, acted.ref, request, "staging", max_age=None).compile(request)

    assert compile_in(pair.target) == compile_in(here)
    request = case(request__context_pack_refs=[str(acted.ref), "catalog.other@1.0.0"])
    assert code(lambda: compile_in(pair.target)) == "mirror_incomplete"


def test_a_catalog_is_mirrored_by_itself_too(pair: Pair) -> None:
    catalog = pair.source.release(CATALOG)
    pair.source.pin("staging", catalog)
    assert pair.take(pair.export(str(catalog)).data) == "ok"
    assert [mirror.ref for mirror in list_mirrors(pair.target.desk)] == [catalog]


def test_the_same_version_gives_the_same_bytes_and_an_import_again_changes_nothing(pair: Pair) -> None:
    first, again = pair.export(), pair.export()
    assert first.data == again.data
    assert import_bundle(pair.target.desk, first.data, FOUNDER).new
    assert not import_bundle(pair.target.desk, first.data).new


def test_a_bundle_without_a_trust_root_is_refused_and_the_founder_is_named(pair: Pair) -> None:
    with pytest.raises(ContextPlaneError) as refusal:
        import_bundle(pair.target.desk, pair.export().data)
    assert refusal.value.code == "trust_root_missing"
    assert refusal.value.details["founder"] == FOUNDER.key_ids[0]
    assert FOUNDER.key_ids[0] in (refusal.value.hint or "")


def test_the_trust_root_of_the_receiving_store_vouches_too(pair: Pair, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    assert isinstance(pair.source.clock, Clock)
    with receiver(folder, pair.source.clock, FOUNDER.key_ids[0]) as there:
        import_bundle(there.desk, pair.export().data)
        assert compiled(there) == compiled(pair.source)


def test_the_same_names_in_a_store_of_somebody_else_are_refused_by_the_trust_root(pair: Pair, tmp_path: Path) -> None:
    folder = tmp_path / "evil"
    folder.mkdir()
    with office(folder) as evil:
        evil.release()
        evil.pin("staging", PACK)
        forged = export_version(evil.desk, REF).data
    # The founder of that store is another key in truth: here the trust root is.
    assert pair.take(forged, TrustRoot(key_ids=(key_of("stranger").public_key.key_id,))) == "trust_root_mismatch"
    genuine = parse_bundle(pair.export().data)
    other = parse_bundle(forged)
    for field in ("streams", "heads", "tree", "checkpoint", "origin"):
        assert pair.take(bundle_bytes(replace(genuine, **{field: getattr(other, field)}))) != "ok"


def test_a_checkpoint_as_trust_root_takes_a_proof_from_there(pair: Pair) -> None:
    roots = []
    for environment in ("prod", "dev", "qa"):
        with pair.source.desk.read():
            newest = pair.source.desk.newest
        assert newest is not None
        roots.append(newest.checkpoint)
        pair.source.pin(environment, PACK, by="root")
    plain = pair.export(PACK, "staging").data
    assert {pair.take(plain, TrustRoot(checkpoint=root)) for root in roots} == {"ok", "bundle_unproved"}
    for root in roots:
        proved = pair.export(PACK, "staging", since=root.size).data
        assert pair.take(proved, TrustRoot(checkpoint=replace(root, root=bytes(32)))) == "log_rewritten"
        foreign = replace(root, origin="contextplane.registry/ffff")
        assert pair.take(proved, TrustRoot(checkpoint=foreign)) == "trust_root_missing"
        assert root.keyring is not None
        keyring = replace(root.keyring, head="0" * 64)
        assert pair.take(proved, TrustRoot(checkpoint=replace(root, keyring=keyring))) == "keyring_rewritten"
        assert pair.take(proved, TrustRoot(checkpoint=root)) == "ok"
        assert known_size(pair.target.desk, pair.source.desk.origin) == root.size


def _forms(bundle: RegistryBundle, other: RegistryBundle) -> Iterator[tuple[str, RegistryBundle]]:
    """Every member of a bundle changed, dropped, or taken from the bundle of another version."""
    for name, stream in bundle.streams.items():
        kept = {key: content for key, content in bundle.streams.items() if key != name}
        yield f"without {name}", replace(bundle, streams=kept)
        for index, body in enumerate(stream.events):
            middle = len(body) // 2
            changed = f"{body[:middle]}{'A' if body[middle] != 'A' else 'B'}{body[middle + 1 :]}"
            for what, events in (("changed", (changed,)), ("dropped", ())):
                bent = replace(stream, events=(*stream.events[:index], *events, *stream.events[index + 1 :]))
                yield f"{name}@{index + 1} {what}", replace(bundle, streams={**bundle.streams, name: bent})
        foreign = next(content for key, content in other.streams.items() if key != name)
        yield f"{name} of another", replace(bundle, streams={**bundle.streams, name: foreign})
        yield (
            f"{name} elsewhere",
            replace(bundle, streams={**bundle.streams, name: replace(stream, after=stream.after + 1)}),
        )
    for field in ("heads", "objects", "tree"):
        members = getattr(bundle, field)
        for index in range(len(members)):
            yield f"{field}/{index} dropped", replace(bundle, **{field: (*members[:index], *members[index + 1 :])})
        yield f"{field} of another", replace(bundle, **{field: getattr(other, field)})
    for index, node in enumerate(bundle.tree):
        bent_node = replace(node, hash=f"{int(node.hash[0], 16) ^ 1:x}{node.hash[1:]}")
        yield (
            f"tree/{index} changed",
            replace(bundle, tree=(*bundle.tree[:index], bent_node, *bundle.tree[index + 1 :])),
        )
    for index, text in enumerate(bundle.heads):
        heads = sorted(
            {*bundle.heads[:index], *bundle.heads[index + 1 :], text.replace("registry", "registri") + "\nz"}
        )
        yield f"heads/{index} changed", replace(bundle, heads=tuple(heads))
    for index, text in enumerate(bundle.objects):
        objects = sorted({*bundle.objects[:index], *bundle.objects[index + 1 :], f"AAAA{text[4:]}"})
        yield f"objects/{index} changed", replace(bundle, objects=tuple(objects))
    yield "ref of another", replace(bundle, ref=other.ref)
    yield "another origin", replace(bundle, origin=f"{bundle.origin}0")
    yield "another checkpoint", replace(bundle, checkpoint=bundle.checkpoint.replace("\n", "\n1", 1))
    yield "an older checkpoint", replace(bundle, checkpoint=other.checkpoint)


def test_every_changed_or_missing_part_of_a_bundle_is_refused_with_a_code(pair: Pair) -> None:
    older = parse_bundle(pair.export().data)
    newer = pair.source.release(version("1.1.0", NARROWER))
    pair.source.pin("staging", newer)
    bundle = parse_bundle(pair.export(str(newer)).data)
    accepted = [what for what, form in _forms(bundle, older) if pair.take(bundle_bytes(form)) == "ok"]
    assert accepted == []
    assert pair.take(bundle_bytes(bundle)) == "ok"


def test_the_keyring_of_before_a_revocation_is_refused(pair: Pair) -> None:
    pair.source.trust("leaver")
    pair.source.desk.keys.revoke(key_of("leaver").public_key.key_id, "left", key_of("root"))
    bundle = parse_bundle(pair.export().data)
    keyring = bundle.streams["trust/keyring"]
    before = replace(keyring, events=keyring.events[:-1])
    data = bundle_bytes(replace(bundle, streams={**bundle.streams, "trust/keyring": before}))
    assert pair.take(data) == "keyring_rolled_back"
    assert pair.take(bundle_bytes(bundle)) == "ok"


def test_bytes_that_are_not_the_one_form_of_a_bundle_are_refused(pair: Pair) -> None:
    data = pair.export().data
    bundle = parse_bundle(data)
    assert pair.take(data[:-1]) == "bundle_invalid"
    assert pair.take(data + b"\n") == "bundle_invalid"
    assert pair.take(msgspec.json.encode(msgspec.json.decode(data) | {"more": 1})) == "bundle_invalid"
    assert pair.take(bundle_bytes(replace(bundle, heads=tuple(reversed(bundle.heads))))) == "bundle_invalid"
    assert pair.take(bundle_bytes(replace(bundle, ref="../../etc"))) == "bundle_invalid"
    assert pair.take(bundle_bytes(replace(bundle, objects=("%", *bundle.objects)))) == "bundle_invalid"


def test_an_older_bundle_after_a_newer_one_is_refused(pair: Pair) -> None:
    before = pair.export().data
    retire(pair.source.desk, REF, "revoked", pair.source.by("pub"))
    after = pair.export(PACK, "staging").data
    assert pair.take(after) == "ok"
    assert pair.take(before) == "bundle_older"
    assert code(lambda: compiled(pair.target)) == "version_revoked"


def test_a_bundle_that_hides_a_revocation_is_old(pair: Pair) -> None:
    before = pair.export().data
    retire(pair.source.desk, REF, "revoked", pair.source.by("pub"))
    assert pair.take(before) == "ok"
    assert isinstance(pair.source.clock, Clock)
    pair.source.clock.moment = pair.source.clock.moment.replace(day=3)
    compiled(pair.target)  # as it was then
    assert code(lambda: compiled(pair.target, max_age=3600)) == "registry_frozen"


def test_the_newest_bundle_says_what_an_environment_pins(pair: Pair) -> None:
    assert code(lambda: find_pinned_version(pair.target.desk, REF.pack_id, "staging")) == "pin_not_found"
    assert pair.take(pair.export().data) == "ok"
    assert find_pinned_version(pair.target.desk, REF.pack_id, "staging") == REF
    newer = pair.source.release(version("1.1.0", NARROWER))
    pair.source.pin("staging", newer)
    assert pair.take(pair.export(str(newer)).data) == "ok"
    assert find_pinned_version(pair.target.desk, REF.pack_id, "staging") == newer
    assert code(lambda: find_pinned_version(pair.target.desk, REF.pack_id, "prod")) == "pin_not_found"


def test_an_environment_that_was_not_exported_is_named(pair: Pair) -> None:
    assert pair.take(pair.export().data) == "ok"
    assert code(lambda: compiled(pair.target, "prod")) == "mirror_incomplete"
    assert pair.take(pair.export(PACK, "staging", "prod").data) == "ok"
    assert code(lambda: compiled(pair.target, "prod")) == "not_pinned"


def test_nobody_acts_on_a_mirrored_version(pair: Pair) -> None:
    assert pair.take(pair.export().data) == "ok"
    pair.target.trust("root", "owner")
    with pytest.raises(ContextPlaneError) as refusal:
        pin_version(pair.target.desk, "staging", REF, pair.target.by("root"))
    assert acting_error(pair.target.desk, refusal.value).code == "version_is_mirrored"
    with pytest.raises(ContextPlaneError) as refusal:
        retire(pair.target.desk, REF, "revoked", pair.target.by("root"))
    assert acting_error(pair.target.desk, refusal.value).code == "version_is_mirrored"


def test_a_bundle_that_was_exchanged_in_the_store_is_noticed(pair: Pair) -> None:
    before = pair.export().data
    retire(pair.source.desk, REF, "revoked", pair.source.by("pub"))
    assert pair.take(before) == "ok"
    assert pair.take(pair.export(PACK, "staging").data) == "ok"
    platform = pair.target.desk.platform
    with platform.objects.batch() as batch:
        digest = batch.put(before)
        batch.commit()
    with platform.catalog.write() as tx:
        ((name, _),) = tx.objects.roots("mirror/")
        tx.objects.keep(name, digest)
    assert code(lambda: compiled(pair.target)) == "mirror_replaced"
    (mirror,) = list_mirrors(pair.target.desk)
    assert mirror.problem.startswith("mirror_replaced")


def test_a_mirror_of_a_time_that_was_taken_back_goes_on_with_the_next_one(pair: Pair) -> None:
    here, clock = pair.source, pair.source.clock
    assert isinstance(clock, Clock)
    before, right = here.desk.keys.clock, clock.moment
    clock.moment += timedelta(days=365)
    here.record(version("1.1.0", NARROWER))
    assert pair.take(pair.export().data) == "ok"
    clock.moment = right
    assert code(lambda: compiled(pair.target)) == "clock_went_backwards"
    here.desk.keys.revoke(key_of("author").public_key.key_id, "its clock", key_of("root"), since=before)
    here.desk.keys.__dict__.pop("keyring", None)
    renew_checkpoint(here.desk, audit_registry(here.desk, lambda _size, _events: None), key_of("pub"))
    size = known_size(pair.target.desk, here.desk.origin)
    assert size > 0
    assert pair.take(pair.export(since=size).data) == "ok"
    assert compiled(pair.target)
