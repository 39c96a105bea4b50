"""Events that somebody wrote into the catalog himself: whoever reads the stream refuses each, for its own reason."""

from typing import TYPE_CHECKING, cast

import pytest
from msgspec import to_builtins

from contextplane.model.catalog import Event
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import Json, canonical
from contextplane.registry.events import (
    PAYLOAD_TYPE,
    AliasSet,
    Change,
    Deprecated,
    EnvironmentOpened,
    RefreshReported,
    RefreshRequired,
    RegistryEvent,
    Revoked,
    kind_of,
    read_event,
    sign_event,
)
from contextplane.registry.streams import (
    aliases_stream,
    artifact_stream,
    environment_stream,
    pins_stream,
    version_stream,
)
from contextplane.registry.writer import PlannedChange
from contextplane.trust.dsse import make_envelope
from tests.unit.registry.desk import code
from tests.unit.registry.world import ISSUER, ORIGIN, Registry
from tests.unit.trust.world import key_of, revoke, trust

if TYPE_CHECKING:
    from contextplane.model.timestamp import Timestamp

PACK = b'{"pack":1}'
REF = PackRef.parse("refunds@1.0.0")
STREAM = version_stream(REF)


@pytest.fixture
def registry() -> Registry:
    made = Registry()
    made.publish(PACK)
    return made


class Forged:
    """The next event of a stream, as a reader would accept it; each test changes one thing."""

    def __init__(self, registry: Registry, stream: str, change: Change) -> None:
        self.registry = registry
        with registry.reading() as reader:
            state = reader.state(stream)
            keyring, entry = reader.keyrings.now.seq, reader.streams.head("registry/log")
        self.seq, self.previous, self.keyring, self.entry = state.seq + 1, state.head, keyring, entry
        self.at: Timestamp | str = registry.now
        self.stream = self.subject = stream
        self.change = change
        self.kind = kind_of(change)

    def event(self) -> RegistryEvent:
        return RegistryEvent(
            subject=self.subject,
            seq=self.seq,
            previous=self.previous,
            entry=self.entry,
            keyring=self.keyring,
            at=str(self.at),
            reason="forged",
            change=self.change,
            origin=ORIGIN,
        )

    def write(self, by: str = "pub", claims: str = "") -> None:
        body = sign_event(self.event(), key_of(by))
        if claims:
            mine, theirs = (key_of(name).public_key.key_id.encode() for name in (by, claims))
            body = body.replace(mine, theirs)
        with self.registry.catalog.write() as tx:
            tx.streams.append(self.stream, tx.streams.head(self.stream), [Event(kind=self.kind, body=body)])

    def read(self) -> str:
        with self.registry.reading() as reader:
            return code(lambda: reader.state(self.stream))


def test_what_nothing_is_wrong_with_is_read(registry: Registry) -> None:
    Forged(registry, STREAM, Revoked()).write()
    with registry.reading() as reader:
        assert reader.version(REF).stage == "revoked"


def test_a_signature_of_another_key_than_it_names_is_refused(registry: Registry) -> None:
    forged = Forged(registry, STREAM, Deprecated())
    forged.write(by="mallory", claims="pub")
    assert forged.read() == "registry_signer_untrusted"


@pytest.mark.parametrize(
    ("by", "refused"), [("mallory", "registry_signer_untrusted"), ("ops", "registry_role_missing")]
)
def test_a_key_that_is_not_trusted_or_may_not_is_refused(registry: Registry, by: str, refused: str) -> None:
    forged = Forged(registry, STREAM, Deprecated())
    forged.write(by=by)
    assert forged.read() == refused


def test_an_event_that_does_not_follow_the_one_before_it_is_refused(registry: Registry) -> None:
    forged = Forged(registry, STREAM, Deprecated())
    forged.previous = Digest.of(b"another past").hex
    forged.write()
    assert forged.read() == "registry_event_invalid"


@pytest.mark.parametrize(
    ("field", "value"), [("subject", "registry/version/other@1.0.0"), ("seq", 7), ("kind", "revoked")]
)
def test_an_event_of_another_place_or_kind_is_refused(registry: Registry, field: str, value: object) -> None:
    forged = Forged(registry, STREAM, Deprecated())
    setattr(forged, field, value)
    forged.write()
    assert forged.read() == "registry_event_invalid"


def test_a_role_that_was_given_later_does_not_reach_back_to_before_it_was(registry: Registry) -> None:
    registry.seconds += 1
    forged = Forged(registry, STREAM, Deprecated())
    registry.keyring_change(trust(key_of("author"), ISSUER, "publisher"))
    forged.keyring += 1
    forged.write(by="author")
    assert forged.read() == "registry_signer_untrusted"


def test_what_a_role_allowed_then_stays_done_when_it_is_taken_away(registry: Registry) -> None:
    registry.keyring_change(trust(key_of("pub"), ISSUER))
    with registry.reading() as reader:
        version = reader.version(REF)
    assert (version.stage, version.doubtful) == ("published", False)
    assert code(lambda: registry.on_version("pub", str(REF), Deprecated())) == "registry_role_missing"


def test_an_event_under_a_keyring_that_there_is_not_is_refused(registry: Registry) -> None:
    forged = Forged(registry, STREAM, Deprecated())
    forged.keyring += 1
    forged.write()
    assert forged.read() == "registry_event_invalid"


def test_what_enables_is_void_when_its_key_is_revoked_from_before_and_what_restricts_holds(registry: Registry) -> None:
    since = registry.now
    registry.act("ops", PlannedChange(stream=environment_stream("staging"), change=EnvironmentOpened(), reason="open"))
    required = RefreshRequired(trigger="MODEL_CONFIG_UPDATED", dependency="*", actions=("representative_replay",))
    registry.on_version("pub", str(REF), required)
    report = str(Digest.of(b"report of " + PACK))
    change = RefreshReported(opened=2, action="representative_replay", passed=True, report=report)
    registry.on_version("pub", str(REF), change)
    registry.on_version("pub", str(REF), Deprecated())
    with registry.reading() as reader:
        assert not reader.environment("staging").protected
        assert reader.version(REF).open_refreshes == ()
    for name in ("ops", "pub"):
        registry.keyring_change(revoke(key_of(name), since))
    with registry.reading() as reader:
        assert reader.environment("staging").protected
        version = reader.version(REF)
    assert [open_refresh.trigger for open_refresh in version.open_refreshes] == ["MODEL_CONFIG_UPDATED"]
    assert version.stage == "deprecated"


@pytest.mark.parametrize(
    ("stream", "change"),
    [
        (artifact_stream(Digest.of(PACK)), AliasSet(alias="x", version="1.0.0")),
        (STREAM, AliasSet(alias="x", version="1.0.0")),
        (pins_stream("prod", "refunds"), AliasSet(alias="x", version="1.0.0")),
        (aliases_stream("refunds"), EnvironmentOpened()),
        (environment_stream("staging"), AliasSet(alias="x", version="1.0.0")),
    ],
    ids=["artifact", "version", "pins", "aliases", "environment"],
)
def test_a_change_of_something_else_has_no_place_in_a_stream(registry: Registry, stream: str, change: Change) -> None:
    forged = Forged(registry, stream, change)
    forged.write(by="root")  # who may do anything
    assert forged.read() == "registry_event_invalid"


def test_the_last_pin_is_looked_at_as_closely_as_all_of_them(registry: Registry) -> None:
    forged = Forged(registry, pins_stream("prod", "refunds"), AliasSet(alias="x", version="1.0.0"))
    forged.write(by="ops")
    with registry.reading() as reader:
        assert code(lambda: reader.pins("prod", "refunds")) == "registry_event_invalid"


def test_a_past_of_pins_that_was_exchanged_is_noticed_on_the_way_back(registry: Registry) -> None:
    for _ in range(3):
        registry.pin("prod", "refunds@1.0.0", PACK)
    stream = pins_stream("prod", "refunds")
    with registry.reading() as reader:
        assert [backward.event.seq for backward in reader.history_reversed(stream)] == [3, 2, 1]
        body = next(iter(reader.streams.read(stream, after=2))).body
    registry.tamper(stream, 2, body)
    with registry.reading() as reader:
        assert code(lambda: list(reader.history_reversed(stream))) == "registry_event_invalid"


def test_what_is_no_event_or_signed_by_several_is_refused(registry: Registry) -> None:
    several = make_envelope(PAYLOAD_TYPE, b"{}", key_of("pub"), key_of("ops")).to_bytes()
    event = Forged(registry, STREAM, Revoked()).event()
    both = make_envelope(
        PAYLOAD_TYPE, canonical(cast("Json", to_builtins(event))), key_of("pub"), key_of("ops")
    ).to_bytes()
    for body in (make_envelope(PAYLOAD_TYPE, b"[]", key_of("pub")).to_bytes(), several, both):
        assert code(lambda body=body: read_event(body)) == "registry_event_invalid"


def test_a_time_that_is_none_is_refused(registry: Registry) -> None:
    forged = Forged(registry, STREAM, Deprecated())
    forged.at = "yesterday"
    forged.write()
    assert forged.read() == "registry_event_invalid"


@pytest.mark.parametrize("name", ["registry/elsewhere/x", "registry/log", "trust/keyring"])
def test_a_stream_of_no_subject_has_no_state(registry: Registry, name: str) -> None:
    with registry.reading() as reader:
        assert code(lambda: reader.state(name)) == "registry_event_invalid"
