"""Somebody with a trusted key and a program of his own, which checks nothing: full verification tells what he did."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from contextplane.model.catalog import Event
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.registry.audit import AuditInputs, audit
from contextplane.registry.events import (
    AliasSet,
    Change,
    Deprecated,
    EnvironmentOpened,
    Pin,
    Pinned,
    Pins,
    Published,
    RegistryEvent,
    kind_of,
    sign_event,
)
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.streams import (
    CHECKPOINTS,
    LOG,
    aliases_stream,
    environment_stream,
    pins_stream,
    version_stream,
)
from contextplane.registry.writer import compare_objects, rebuild_index
from contextplane.store.event_stream import StreamHead, stream_head
from contextplane.trust.checkpoint import signed_checkpoint
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.merkle_log import LogEntry
from tests.support.cases import cases
from tests.support.forged_log import forge_log, heads_of
from tests.unit.registry.world import ISSUER, ORIGIN, Registry
from tests.unit.trust.world import CHECK, key_of

ONE = PackRef.parse("refunds@1.0.0")


class Odd(NamedTuple):
    """What is not as it should be of an event that he writes."""

    entry: int = 0
    seconds: int = 0
    keyring: int = 0


EVEN = Odd()


def rogue(registry: Registry, by: str, stream: str, change: Change, odd: Odd = EVEN) -> None:
    """Append an event, its entry, both trees and a checkpoint, as if it were in order."""
    registry.seconds += 1
    signer = key_of(by)
    with registry.catalog.write() as tx:
        before = stream_head(tx.streams, stream)
        at = Timestamp(seconds=registry.now.seconds + odd.seconds, nanos=0)
        event = RegistryEvent(
            subject=stream,
            seq=1 if before is None else before.seq + 1,
            previous="" if before is None else before.digest,
            entry=tx.streams.head(LOG) + odd.entry,
            keyring=tx.streams.head("trust/keyring") + odd.keyring,
            at=str(at),
            reason="because I can",
            change=change,
            origin=ORIGIN,
        )
        body = sign_event(event, signer)
        tx.streams.append(stream, event.seq - 1, [Event(kind=kind_of(change), body=body)])
        entry = LogEntry(event=Digest.of(body).hex, seq=event.seq, stream=stream, previous=event.previous)
        forge_log(tx, [entry], signer=signer, at=registry.now, origin=ORIGIN)


def problems(registry: Registry) -> list[tuple[str, str]]:
    with registry.catalog.read() as view:
        result = audit(AuditInputs(view=view, known=TrustedKeys(origin=ORIGIN), check=CHECK))
    return [(problem.code, problem.at) for problem in result.problems]


def published(data: bytes) -> Published:
    digest = str(Digest.of(data))
    return Published(
        digest=digest, kind="context_pack", issuer=ISSUER, envelope=digest, report=digest, golden="not_run", after=""
    )


def pinned(registry: Registry, version: str, by: str) -> Pinned:
    """A pin as it should be, but of a version that was perhaps never published."""
    digest, key = str(Digest.of(b"one")), key_of(by).public_key.key_id
    with registry.catalog.read() as view:
        entry = view.streams.head(LOG)
    at = str(Timestamp(seconds=registry.now.seconds + 1, nanos=0))
    pin = Pin(id="refunds", version=version, digest=digest, kind="context_pack", entry=entry, at=at, by=key)
    return Pinned(kind="context_pack", id="refunds", version=version, digest=digest, pins=Pins(base=pin))


OPENED, VERSION, PINS = environment_stream("staging"), version_stream(ONE), pins_stream("prod", "refunds")
ALIASES = aliases_stream("refunds")

Deed = Callable[[Registry], None]
DEEDS: dict[str, tuple[Deed, str, str]] = {
    "an event that names another entry of the log": (
        lambda r: rogue(r, "ops", OPENED, EnvironmentOpened(), Odd(entry=1)),
        "registry_event_invalid",
        OPENED,
    ),
    "an event of a time before the entry before it": (
        lambda r: rogue(r, "ops", OPENED, EnvironmentOpened(), Odd(seconds=-3)),
        "clock_went_backwards",
        OPENED,
    ),
    "an event of a time after its checkpoint": (
        lambda r: rogue(r, "ops", OPENED, EnvironmentOpened(), Odd(seconds=9)),
        "clock_went_backwards",
        "registry/checkpoints",
    ),
    "an event under an older keyring": (
        lambda r: rogue(r, "ops", OPENED, EnvironmentOpened(), Odd(keyring=-1)),
        "registry_signer_untrusted",
        OPENED,
    ),
    "an event under a keyring that is not there": (
        lambda r: rogue(r, "ops", OPENED, EnvironmentOpened(), Odd(keyring=1)),
        "registry_event_invalid",
        OPENED,
    ),
    "an act without the role": (
        lambda r: rogue(r, "arch", OPENED, EnvironmentOpened()),
        "registry_role_missing",
        OPENED,
    ),
    "an act of a stranger": (
        lambda r: rogue(r, "mallory", OPENED, EnvironmentOpened()),
        "registry_signer_untrusted",
        OPENED,
    ),
    "a second publication of a version": (
        lambda r: rogue(r, "pub", VERSION, published(b"two")),
        "lifecycle_transition_refused",
        VERSION,
    ),
    "a publication of what nobody reviewed": (
        lambda r: rogue(r, "pub", version_stream(PackRef.parse("refunds@2.0.0")), published(b"two")),
        "lifecycle_transition_refused",
        version_stream(PackRef.parse("refunds@2.0.0")),
    ),
    "a pin of what was never published": (
        lambda r: rogue(r, "ops", PINS, pinned(r, "2.0.0", "ops")),
        "lifecycle_transition_refused",
        PINS,
    ),
    "a pin that says that something else is pinned": (
        lambda r: rogue(r, "ops", PINS, pinned(r, "1.0.0", "pub")),
        "registry_event_invalid",
        PINS,
    ),
    "an alias of what was never published": (
        lambda r: rogue(r, "root", ALIASES, AliasSet(alias="best", version="3.0.0")),
        "lifecycle_transition_refused",
        ALIASES,
    ),
    "a change of a version in a stream of an environment": (
        lambda r: rogue(r, "pub", OPENED, Deprecated()),
        "registry_role_missing",
        OPENED,
    ),
}


@cases("deed", DEEDS)
def test_what_he_did_is_told_with_its_place(deed: str) -> None:
    registry = Registry()
    registry.publish(b"one")
    assert problems(registry) == []
    act, code, stream = DEEDS[deed]
    act(registry)
    assert (code, stream) in [(problem_code, at.rpartition("@")[0]) for problem_code, at in problems(registry)]


def test_a_publication_that_was_not_compared_with_the_version_before_it_is_told() -> None:
    registry = Registry()
    registry.publish(b"one")
    registry.publish(b"two", "refunds@2.0.0")
    registry.draft(b"between", "refunds@1.1.0")
    registry.lint(b"between")
    registry.review_all(b"between")
    registry.sign(b"between")
    assert problems(registry) == []
    stream = version_stream(PackRef.parse("refunds@1.1.0"))
    rogue(registry, "pub", stream, published(b"between"))
    assert problems(registry) == [("publication_version_wrong", f"{stream}@1")]


def test_what_is_in_order_is_in_order_whatever_program_wrote_it() -> None:
    registry = Registry()
    registry.publish(b"one")
    rogue(registry, "ops", OPENED, EnvironmentOpened())
    rogue(registry, "ops", PINS, pinned(registry, "1.0.0", "ops"))
    rogue(registry, "ops", ALIASES, AliasSet(alias="best", version="1.0.0"))
    assert problems(registry) == []


def checkpoint(registry: Registry, size: int, seconds: int) -> None:
    """A checkpoint of so many more entries than the newest one, so many seconds later."""
    with registry.reading() as reader:
        status = REGISTRY_LOG.newest_checkpoint(reader.streams, reader.keyrings, CHECK, ORIGIN)
    assert status is not None
    last = status.checkpoint
    time = Timestamp(seconds=status.time.seconds + seconds, nanos=0)
    made = replace(last, size=last.size + size, time=time)
    body = canonical(signed_checkpoint(made, key_of("pub")).decode())
    with registry.catalog.write() as tx:
        tx.streams.append(CHECKPOINTS, tx.streams.head(CHECKPOINTS), [Event(kind="checkpoint", body=body)])


@cases(
    ("size", "seconds", "code"),
    [(0, 1, ""), (-1, 1, "log_rolled_back"), (1, 1, "log_truncated"), (0, -1, "clock_went_backwards")],
)
def test_a_checkpoint_of_fewer_or_more_entries_or_of_an_earlier_time_is_told(
    size: int, seconds: int, code: str
) -> None:
    registry = Registry()
    registry.publish(b"one")
    checkpoint(registry, 0, 5)
    checkpoint(registry, size, seconds)
    with registry.catalog.read() as view:
        newest = f"{CHECKPOINTS}@{view.streams.head(CHECKPOINTS)}"
    assert [problem_code for problem_code, at in problems(registry) if at == newest][:1] == ([code] if code else [])


def test_ends_of_streams_that_were_signed_wrongly_are_told_although_the_index_agrees() -> None:
    registry = Registry()
    registry.publish(b"one")
    with registry.catalog.write() as tx:
        ends = heads_of(tx.streams) | {VERSION: StreamHead(seq=1, digest="0" * 64)}
        forge_log(tx, [], signer=key_of("pub"), at=registry.now, origin=ORIGIN, heads=ends)
    assert {code for code, _ in problems(registry)} == {"log_rewritten", "registry_heads_rewritten"}


def test_an_object_that_he_names_as_another_kind_of_thing_stops_no_rebuild_and_is_told() -> None:
    registry = Registry()
    registry.publish(b"one")
    rogue(registry, "pub", version_stream(PackRef.parse("refunds@2.0.0")), published(b"one"))
    with registry.catalog.write() as tx:
        rebuild_index(tx, lambda _digest: 3)
    with registry.catalog.read() as view:
        assert {what for what, _ in compare_objects(view)} == {str(Digest.of(b"one"))}
