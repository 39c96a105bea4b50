"""What the log has and the rules do not allow counts for nothing; what the log does not have is refused."""

import pytest
from msgspec.structs import replace

from contextplane.model.catalog import Event
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.registry.audit import AuditInputs, AuditResult, audit
from contextplane.registry.events import (
    Change,
    Deprecated,
    Drafted,
    DraftListed,
    EnvironmentOpened,
    NameClaimed,
    Pin,
    Pinned,
    Pins,
    Promoted,
    Published,
    Revoked,
    Unpinned,
)
from contextplane.registry.log import log_ends
from contextplane.registry.pin_state import PinState
from contextplane.registry.resign import resign
from contextplane.registry.streams import (
    CHECKPOINTS,
    LOG,
    environment_stream,
    names_stream,
    pins_stream,
    version_stream,
    versions_of,
)
from contextplane.registry.version_view import list_pins
from contextplane.registry.writer import PlannedChange, compare_ends, compare_objects, rebuild_index
from contextplane.store.event_stream import stream_head
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle_log import LogEntry
from tests.support.forged_log import forge_log
from tests.unit.registry.backdating import backdated, keyring_before, slip_change
from tests.unit.registry.desk import code
from tests.unit.registry.world import ISSUER, ORIGIN, Registry
from tests.unit.trust.world import CHECK, key_of, trust

PACK = b'{"pack":1}'
REF = PackRef.parse("refunds@1.0.0")
VERSION, PINS, NAME = version_stream(REF), pins_stream("prod", "refunds"), names_stream("refunds")


@pytest.fixture
def registry() -> Registry:
    made = Registry()
    made.publish(PACK)
    made.pin("prod", str(REF), PACK)
    return made


def audited(registry: Registry) -> AuditResult:
    with registry.catalog.read() as view:
        return audit(AuditInputs(view=view, known=TrustedKeys(origin=ORIGIN), check=CHECK))


def sign_again(registry: Registry) -> None:
    """An owner signs what an audit accepts."""
    result = audited(registry)
    with registry.catalog.write() as tx:
        known = TrustedKeys(origin=ORIGIN)
        resign(tx, result, known=known, check=CHECK, signer=key_of("root"), now=registry.now, origin=ORIGIN)


def pins_of(registry: Registry) -> Pins:
    with registry.opened() as reader:
        return reader.pins("prod", "refunds").pins


def unpinned(version: str = "1.0.0") -> Unpinned:
    return Unpinned(id="refunds", version=version, pins=Pins())


WITHOUT_RIGHT: dict[str, tuple[str, str, Change]] = {
    "an author unpins": ("author", PINS, unpinned()),
    "a publisher unpins": ("pub", PINS, unpinned()),
    "an operator revokes": ("ops", VERSION, Revoked()),
    "a reviewer deprecates": ("sec", VERSION, Deprecated()),
    "a publisher opens production": ("pub", environment_stream("prod"), EnvironmentOpened()),
    "an operator claims a name": ("ops", NAME, NameClaimed(issuer=ISSUER, kind="context_pack", tenant="globex")),
    "a publisher claims a name for others": (
        "pub",
        NAME,
        NameClaimed(issuer="globex", kind="overlay", tenant="globex"),
    ),
}


@pytest.mark.parametrize("name", WITHOUT_RIGHT)
def test_an_event_without_the_right_changes_nothing_and_the_next_one_counts(registry: Registry, name: str) -> None:
    by, stream, change = WITHOUT_RIGHT[name]
    with registry.opened() as reader:
        before = reader.pins("prod", "refunds").pins, reader.version(REF).stage, reader.name("refunds").tenants
        assert reader.environment("prod").protected
    slip_change(registry, by, stream, change)
    with registry.opened() as reader:
        assert (
            reader.pins("prod", "refunds").pins,
            reader.version(REF).stage,
            reader.name("refunds").tenants,
        ) == before
        assert reader.environment("prod").protected
        assert len(list(reader.history(stream))) == reader.state(stream).seq - 1
    result = audited(registry)
    assert [(problem.code, problem.logged) for problem in result.problems] == [("registry_role_missing", True)]
    sign_again(registry)
    registry.on_version("pub", str(REF), Deprecated())
    registry.publish(b'{"pack":2}', "refunds@1.0.1")
    registry.pin("prod", "refunds@1.0.1", b'{"pack":2}')
    with registry.opened() as reader:
        assert reader.version(REF).stage == "deprecated"
        assert reader.pins("prod", "refunds").base == PackRef.parse("refunds@1.0.1")
    assert audited(registry).problems == result.problems


def test_bytes_that_are_no_event_are_passed_over_where_the_log_has_them(registry: Registry) -> None:
    with registry.catalog.write() as tx:
        for stream in (PINS, VERSION):
            end = stream_head(tx.streams, stream)
            assert end is not None
            tx.streams.append(stream, end.seq, [Event(kind="pinned", body=b"\xff")])
            entry = LogEntry(event=Digest.of(b"\xff").hex, seq=end.seq + 1, stream=stream, previous=end.digest)
            forge_log(tx, [entry], signer=key_of("author"), at=registry.now, origin=ORIGIN)
    base = pins_of(registry).base
    assert base is not None
    assert base.version == "1.0.0"
    registry.on_version("pub", str(REF), Revoked())
    with registry.opened() as reader:
        assert reader.version(REF).stage == "revoked"
        assert [event.kind for event in reader.history(VERSION)] == ["published", "revoked"]


ODD_STREAMS = (
    "registry/pins/prod/!!",
    "registry/pins/prod",
    "registry/version/garbage",
    "registry/artifact/zz",
    "registry/drafts/zz",
    "registry/names/!!",
    "registry/evil",
    "foo/bar",
)


@pytest.mark.parametrize("is_stored", [True, False])
def test_entries_of_streams_of_nothing_are_void_and_everybody_goes_on(registry: Registry, *, is_stored: bool) -> None:
    """Whether or not the catalog has their events."""
    with registry.catalog.write() as tx:
        for stream in ODD_STREAMS:
            if is_stored:
                tx.streams.append(stream, 0, [Event(kind="pinned", body=b"{}")])
            entry = LogEntry(event=Digest.of(b"{}").hex, seq=1, stream=stream, previous="")
            forge_log(tx, [entry], signer=key_of("author"), at=registry.now, origin=ORIGIN)
    result = audited(registry)
    assert [(problem.code, problem.logged) for problem in result.problems] == [("log_rewritten", True)] * len(
        ODD_STREAMS
    )
    assert all(repr(stream) in problem.message for stream, problem in zip(ODD_STREAMS, result.problems, strict=True))
    sign_again(registry)
    registry.publish(b'{"pack":2}', "refunds@1.0.1")
    registry.pin("prod", "refunds@1.0.1", b'{"pack":2}')
    with registry.opened() as reader:
        assert [str(ref) for ref in versions_of(reader)] == ["refunds@1.0.0", "refunds@1.0.1"]
        assert [str(ref) for ref, _ in list_pins(reader)] == ["refunds@1.0.1"]
    again = audited(registry)
    assert again.problems == result.problems
    with registry.catalog.read() as view:
        assert list(compare_ends(view, again.newest)) == []


@pytest.mark.parametrize("stream", ["registry/pins/prod/!!", "registry/evil"])
def test_a_stream_of_nothing_that_the_log_does_not_name_is_damage(registry: Registry, stream: str) -> None:
    with registry.catalog.write() as tx:
        tx.streams.append(stream, 0, [Event(kind="pinned", body=b"{}")])
    result = audited(registry)
    assert [(problem.code, problem.at) for problem in result.problems] == [("registry_event_invalid", stream)]
    assert not result.signable


def test_the_record_of_a_draft_in_another_stream_names_no_object(registry: Registry) -> None:
    """The digest of a draft is the name of its stream."""
    slip_change(registry, "author", PINS, Drafted(kind="context_pack", id="refunds", version="1.0.0", issuer=ISSUER))
    with registry.catalog.read() as view:
        assert list(compare_objects(view)) == []
    with registry.catalog.write() as tx:
        rebuild_index(tx, lambda _digest: 1)
    assert {problem.logged for problem in audited(registry).problems} == {True}


def test_nobody_acts_on_a_stream_of_nothing(registry: Registry) -> None:
    """Readers would take it for void."""
    change = DraftListed(digest=str(Digest.of(PACK)))
    planned = PlannedChange(stream="registry/drafts/_refunds@1.0.0", change=change, reason="go")
    assert code(lambda: registry.act("author", planned)) == "registry_name_invalid"
    assert audited(registry).sound


@pytest.mark.parametrize("seq", [1, 2, 3])
def test_bytes_that_are_no_event_are_refused_where_the_log_has_others(registry: Registry, seq: int) -> None:
    """Also before an event that is void itself, and before one that is no event."""
    registry.on_version("pub", str(REF), Deprecated())
    slip_change(registry, "author", VERSION, Revoked())
    registry.tamper(VERSION, seq, canonical({"no": "event"}))
    with registry.opened() as reader:
        assert code(lambda: reader.version(REF)) == "envelope_invalid"
    assert not audited(registry).signable


def test_an_event_under_another_kind_is_refused_and_not_void(registry: Registry) -> None:
    """The kind is in no entry of the log: otherwise everybody who writes the catalog could make an event void."""
    registry.on_version("pub", str(REF), Revoked())
    with registry.catalog.write() as tx:
        database = tx.streams._db  # type: ignore[attr-defined]
        for (guard,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {guard}")
        database.execute("UPDATE event SET kind = 'observed' WHERE stream = ? AND seq = 2", (VERSION,))
    with registry.opened() as reader:
        assert code(lambda: reader.version(REF)) == "registry_event_invalid"


def test_a_damaged_tree_makes_no_event_void(registry: Registry) -> None:
    registry.on_version("pub", str(REF), Revoked())
    with registry.catalog.read() as view:
        entry = view.streams.head(LOG) - 1
    for _ in range(2):  # so that the entry has a neighbour, and is not below the last nodes
        registry.act("ops", PlannedChange(stream=environment_stream("dev"), change=EnvironmentOpened(), reason="go"))
    registry.tamper("tree/registry/00", (entry ^ 1) + 1, canonical("0" * 64))
    with registry.opened() as reader:
        assert code(lambda: reader.version(REF)) == "tree_damaged"


def test_a_publication_after_a_void_one_is_the_publication(registry: Registry) -> None:
    taken = Published(
        digest=str(Digest.of(PACK)),
        kind="context_pack",
        issuer=ISSUER,
        envelope=str(Digest.of(b"envelope of " + PACK)),
        report=str(Digest.of(b"report of " + PACK)),
        golden="not_run",
        after="",
    )
    slip_change(registry, "sec", version_stream(PackRef.parse("refunds@1.0.1")), taken)
    registry.publish(b'{"pack":2}', "refunds@1.0.1")
    with registry.opened() as reader:
        state = reader.version(PackRef.parse("refunds@1.0.1"))
    assert (state.stage, state.seq, state.digest) == ("published", 2, Digest.of(b'{"pack":2}'))


def test_an_operator_pins_no_other_id_in_the_place_of_this_one(registry: Registry) -> None:
    pin = Pin(
        id="others",
        version="1.0.0",
        digest=str(Digest.of(PACK)),
        kind="context_pack",
        entry=1,
        at=str(registry.now),
        by=key_of("ops").public_key.key_id,
    )
    change = Pinned(kind="context_pack", id="others", version="1.0.0", digest=pin.digest, pins=Pins(base=pin))
    before = pins_of(registry)
    slip_change(registry, "ops", PINS, change)
    assert pins_of(registry) == before
    assert {problem.code for problem in audited(registry).problems} == {"registry_event_invalid"}


def test_pins_that_do_not_follow_are_the_same_for_all_readers_and_are_reported(registry: Registry) -> None:
    """An operator with a program of their own carries an overlay that nobody pinned."""
    before = pins_of(registry)
    overlay = Pin(
        id="overlay.never",
        version="1.0.0",
        digest=str(Digest.of(PACK)),
        kind="overlay",
        entry=1,
        at=str(registry.now),
        by=key_of("root").public_key.key_id,
    )
    change = Promoted(
        id="refunds",
        version="1.0.0",
        report=str(Digest.of(b"report of " + PACK)),
        pins=replace(before, overlays=(overlay,)),
    )
    slip_change(registry, "ops", PINS, change)
    with registry.opened() as reader:
        state = reader.state(PINS)
        assert isinstance(state, PinState)
        assert reader.pins("prod", "refunds") == state
        assert state.pins == change.pins
    result = audited(registry)
    assert [(problem.code, problem.logged) for problem in result.problems] == [("registry_event_invalid", True)]
    registry.publish(b'{"pack":2}', "refunds@1.0.1")
    registry.pin("prod", "refunds@1.0.1", b'{"pack":2}')
    with registry.opened() as reader:
        assert len(list(reader.history(PINS))) == reader.state(PINS).seq
    assert audited(registry).problems == result.problems


def test_what_was_done_before_a_role_was_given_or_after_it_was_taken_is_void_for_newcomers(registry: Registry) -> None:
    earlier = registry.now
    registry.keyring_change(trust(key_of("ops"), ISSUER))
    registry.seconds += 5
    backdated(registry.catalog, earlier, keyring=keyring_before(registry.catalog), until=registry.now)
    with registry.opened() as reader:
        assert reader.environment("prod").protected
    assert [problem.code for problem in audited(registry).problems] == ["registry_event_invalid"]


def test_a_change_of_the_keyring_that_names_another_place_is_found_by_reading_the_log(registry: Registry) -> None:
    """An owner who submits a change could name any place. The log decides, and says the same to everybody."""
    registry.keyring_change(trust(key_of("late"), ISSUER, "operator", "environment:prod"), entry=0)
    registry.act("late", PlannedChange(stream=environment_stream("prod"), change=EnvironmentOpened(), reason="go"))
    with registry.opened() as reader:
        assert not reader.environment("prod").protected
        assert reader.version(REF).stage == "published"
    assert audited(registry).sound


def test_a_log_without_a_change_of_the_keyring_is_signed_again_with_it(registry: Registry) -> None:
    """Whoever signs the log could name a keyring in the checkpoint, and leave its change out of the log."""
    registry.keyring_change(trust(key_of("ops"), ISSUER), seal=False)
    with registry.catalog.write() as tx:
        forge_log(tx, [], signer=key_of("author"), at=registry.now, origin=ORIGIN, heads=log_ends(tx.streams))
    with registry.opened() as reader:
        assert code(lambda: reader.version(REF)) == "checkpoint_before_keyring"
    assert code(lambda: registry.on_version("pub", str(REF), Revoked())) == "checkpoint_before_keyring"
    result = audited(registry)
    assert ([problem.code for problem in result.problems], result.renewable) == (["checkpoint_before_keyring"], True)
    sign_again(registry)
    assert audited(registry).sound
    registry.on_version("pub", str(REF), Revoked())
    with registry.opened() as reader:
        assert reader.version(REF).stage == "revoked"
        assert reader.streams.head(CHECKPOINTS) > 1
