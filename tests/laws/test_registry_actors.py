"""Honest and dishonest people at one registry: no sequence of acts leads to a resolve that the rights do not allow.

The honest act by the functions of the package. A dishonest one is a person with a key (K) who signs an event without
the right to, or signs the ends of streams without one of them, or somebody (W) who has no key, edits rows of the
catalog and puts back earlier copies of it. After each step, for a client with a memory:

    1  what it resolves, the honest made resolvable: an operator pinned it, and no publisher revoked it
    2  as long as nobody was dishonest, it resolves all of that
    3  `ctx verify --registry` finds what the dishonest changed
    4  when the last honest copy is put back, the honest act again
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from contextplane.app.registry.audit import audit_registry
from contextplane.app.registry.pins import unpin
from contextplane.app.registry.release import withdraw
from contextplane.app.registry.resolve import resolve_request
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import Event
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.ports.catalog import StreamsView
from contextplane.registry.events import (
    Change,
    Pin,
    Pinned,
    Pins,
    RegistryEvent,
    Revoked,
    Unpinned,
    kind_of,
    sign_event,
)
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.resolution import ResolveRequest
from contextplane.registry.streams import CHECKPOINTS, LOG, pins_stream, version_stream
from contextplane.store.event_stream import last_event, stream_head
from contextplane.trust.keyring_stream import STREAM as KEYRING
from contextplane.trust.merkle_log import LogEntry
from tests.support.cases import cases
from tests.support.forged_log import forge_log
from tests.support.samples import PROFILE
from tests.unit.registry.desk import ISSUER, Clock, Office, desk_in, office, version
from tests.unit.registry.releases import HERE
from tests.unit.registry.tampering import Stolen, copied
from tests.unit.trust.world import key_of

ONE, TWO = PackRef.parse("ctxpack.support@1.0.0"), PackRef.parse("ctxpack.support@1.0.1")
PINS = pins_stream("prod", ONE.pack_id)
NEITHER_PUBLISHER_NOR_OPERATOR = ("author", "sec", "eva")
TABLES = "stream LIKE 'registry/%' OR stream LIKE 'tree/%' OR stream LIKE 'trust/%'"

versions = st.sampled_from([ONE, TWO])


def _prepare(folder: Path) -> None:
    """Two published versions, the first of which is pinned. `deputy` is no operator yet."""
    with office(folder) as here:
        here.trust("deputy")
        here.release(version("1.0.0"))
        here.release(version("1.0.1"))
        here.pin("prod", ONE)


class RegistryActors(RuleBasedStateMachine):
    """The store, one client with a memory, and what the honest made of it."""

    template: Path

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="actors-"))
        shutil.copytree(self.template, self.folder / "store")
        self.catalog = self.folder / "store" / ".ctx" / "catalog.db"
        self.clock = Clock()
        self.clock.moment += timedelta(hours=1)
        self.pinned: PackRef | None = ONE
        self.revoked: set[PackRef] = set()
        self.copies = 0
        self.is_signed_falsely = False
        self.refusal: ContextPlaneError | None = None
        self.before_deputy: tuple[int, str] | None = None
        with self.session() as here:
            here.stage(ONE)  # the client saw it
        self.keep_copy()

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @contextmanager
    def session(self) -> Iterator[Office]:
        """A command of its own: it remembers what the client's commands before it saw."""
        settings = Settings(cwd=str(self.folder / "store"), state_dir=str(self.folder / "state"))
        with desk_in(settings, self.clock) as here:
            yield here

    def keep_copy(self) -> None:
        """Keep a copy of what the honest made, and of what their client knows."""
        self.copies += 1
        copied(self.catalog, self.folder / f"copy-{self.copies}.db")
        shutil.rmtree(self.folder / "known", ignore_errors=True)
        shutil.copytree(self.folder / "state", self.folder / "known")

    def put_back(self, number: int) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.catalog}{suffix}").unlink(missing_ok=True)
        copied(self.folder / f"copy-{number}.db", self.catalog)

    @property
    def thief(self) -> Stolen:
        return Stolen(self.catalog)

    def rows(self, path: Path) -> list[tuple[object, ...]]:
        events = Stolen(path).ask(f"SELECT * FROM event WHERE {TABLES} ORDER BY 1, 2")  # noqa: S608
        return [*events, *Stolen(path).ask("SELECT * FROM mark WHERE name LIKE 'registry/%' ORDER BY 1")]

    @property
    def is_changed(self) -> bool:
        """Whether the catalog is another than the honest made it."""
        return self.rows(self.catalog) != self.rows(self.folder / f"copy-{self.copies}.db")

    # --- the honest --------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.is_changed)
    @rule(ref=versions)
    def pin(self, ref: PackRef) -> None:
        with self.session() as here:
            if ref in self.revoked:
                with pytest.raises(ContextPlaneError):
                    here.pin("prod", ref)
            else:
                here.pin("prod", ref)
                self.pinned = ref
        self.keep_copy()

    @precondition(lambda self: not self.is_changed and self.pinned is not None)
    @rule()
    def unpin(self) -> None:
        with self.session() as here:
            unpin(here.desk, "prod", ONE.pack_id, None, here.by("ops"))
        self.pinned = None
        self.keep_copy()

    @precondition(lambda self: not self.is_changed)
    @rule(ref=versions)
    def revoke(self, ref: PackRef) -> None:
        with self.session() as here:
            withdraw(here.desk, ref, "revoked", here.by("pub"))
        self.revoked.add(ref)
        self.keep_copy()

    @precondition(lambda self: not self.is_changed)
    @rule()
    def make_the_deputy_an_operator_for_a_day(self) -> None:
        """The deputy is an operator, and then no more: under an earlier keyring the key has a right."""
        with self.session() as here:
            here.trust("deputy", "operator", "environment:prod")
            self.before_deputy = here.desk.keys.keyring.seq, str(here.desk.keys.keyring.as_of)
        with self.session() as here:
            here.trust("deputy")
        self.keep_copy()

    @precondition(lambda self: self.is_changed)
    @rule()
    def restore(self) -> None:
        """The last honest copy is put back. Who saw a false checkpoint must forget it."""
        self.put_back(self.copies)
        if self.is_signed_falsely:
            shutil.rmtree(self.folder / "state")
            shutil.copytree(self.folder / "known", self.folder / "state")
        self.is_signed_falsely = False
        with self.session() as here:
            here.trust("helper", "data")  # an act of an owner, who changes nothing else
        self.keep_copy()

    # --- the dishonest -----------------------------------------------------------------------------------------------

    @rule(ref=versions, by=st.sampled_from((*NEITHER_PUBLISHER_NOR_OPERATOR, "pub")))
    def pin_without_the_right(self, ref: PackRef, by: str) -> None:
        self.forge(PINS, self.pin_of(ref, by), by)

    @rule(by=st.sampled_from((*NEITHER_PUBLISHER_NOR_OPERATOR, "pub")))
    def unpin_without_the_right(self, by: str) -> None:
        self.forge(PINS, Unpinned(id=ONE.pack_id, version=ONE.version, pins=Pins()), by)

    @rule(ref=versions, by=st.sampled_from((*NEITHER_PUBLISHER_NOR_OPERATOR, "ops")))
    def revoke_without_the_right(self, ref: PackRef, by: str) -> None:
        self.forge(version_stream(ref), Revoked(), by)

    @precondition(lambda self: self.before_deputy is not None)
    @rule(ref=versions)
    def pin_with_a_right_of_the_past(self, ref: PackRef) -> None:
        assert self.before_deputy is not None
        keyring, at = self.before_deputy
        self.forge(PINS, self.pin_of(ref, "deputy", at), "deputy", keyring=keyring, at=at)

    @rule(stream=st.sampled_from([PINS, version_stream(ONE), version_stream(TWO)]))
    def leave_the_end_of_a_stream_out(self, stream: str) -> None:
        self.thief.cut(stream)
        with self.session() as here, here.desk.platform.catalog.write() as tx:
            forge_log(tx, [], signer=key_of("author"), at=_next_time(tx.streams), origin=here.desk.origin)
        self.is_signed_falsely = True

    @rule(number=st.integers(0, 10**6), how=st.sampled_from(["delete", "change", "copy"]), other=st.integers(0, 10**6))
    def edit_a_row(self, number: int, how: str, other: int) -> None:
        places = self.thief.ask(f"SELECT stream, seq FROM event WHERE {TABLES} ORDER BY 1, 2")  # noqa: S608
        row, source = places[number % len(places)], places[other % len(places)]
        ((body,),) = self.thief.ask("SELECT body FROM event WHERE stream = ? AND seq = ?", *row)
        assert isinstance(body, bytes)
        match how:
            case "delete":
                self.thief.run("DELETE FROM event WHERE stream = ? AND seq = ?", *row)
            case "change":
                place = other % len(body)
                body = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
                self.thief.run("UPDATE event SET body = ? WHERE stream = ? AND seq = ?", body, *row)
            case _:
                self.thief.run("UPDATE event SET body = ? WHERE stream = ? AND seq = ?", body, *source)

    @rule(number=st.integers(1, 10**6))
    def put_an_earlier_copy_back(self, number: int) -> None:
        self.put_back(1 + number % self.copies)

    def pin_of(self, ref: PackRef, by: str, at: str | None = None) -> Pinned:
        """A pin as the event after the last one of the log would make it."""
        with self.session() as here, here.desk.platform.catalog.read() as view:
            at = at or str(_next_time(view.streams))
            entry = view.streams.head(LOG)
            digest = str(Digest.of(canonical(version(ref.version))))
        pin = Pin(
            id=ref.pack_id,
            version=ref.version,
            digest=digest,
            kind="context_pack",
            entry=entry,
            at=at,
            by=key_of(by).public_key.key_id,
        )
        return Pinned(kind="context_pack", id=ref.pack_id, version=ref.version, digest=digest, pins=Pins(base=pin))

    def forge(self, stream: str, change: Change, by: str, *, keyring: int | None = None, at: str | None = None) -> None:
        """Sign an event, its entry and a checkpoint of everything, past the rules."""
        with self.session() as here, here.desk.platform.catalog.write() as tx:
            head, moment = stream_head(tx.streams, stream), _next_time(tx.streams)
            event = RegistryEvent(
                subject=stream,
                seq=1 if head is None else head.seq + 1,
                previous="" if head is None else head.digest,
                entry=tx.streams.head(LOG),
                keyring=keyring or tx.streams.head(KEYRING),
                at=at or str(moment),
                reason="because I can",
                change=change,
                origin=here.desk.origin,
            )
            body = sign_event(event, key_of(by))
            tx.streams.append(stream, event.seq - 1, [Event(kind=kind_of(change), body=body)])
            entry = LogEntry(event=Digest.of(body).hex, seq=event.seq, stream=stream, previous=event.previous)
            forge_log(tx, [entry], signer=key_of(by), at=moment, origin=here.desk.origin)
        self.is_signed_falsely = True

    # --- what holds after each step ----------------------------------------------------------------------------------

    @invariant()
    def resolves_only_what_the_honest_allow(self) -> None:
        if not hasattr(self, "folder"):
            return
        for ref in (ONE, TWO):
            is_allowed = self.pinned == ref and ref not in self.revoked
            # What was refused once is not accepted the second time.
            assert self.is_resolved(ref) <= is_allowed
            assert self.is_resolved(ref) == is_allowed or (is_allowed and self.is_changed), self.refusal

    @invariant()
    def an_audit_finds_what_the_dishonest_changed(self) -> None:
        if not hasattr(self, "folder"):
            return
        with self.session() as here:
            try:
                is_sound = audit_registry(here.desk, lambda _size, _events: None).sound
            except ContextPlaneError:
                is_sound = False
        assert is_sound != self.is_changed

    def is_resolved(self, ref: PackRef) -> bool:
        request = ResolveRequest(refs=(ref,), tenant=ISSUER, environment="prod", purpose="new_traffic")
        try:
            with self.session() as here:
                resolve_request(here.desk, request, HERE, max_age=None)
        except ContextPlaneError as error:
            self.refusal = error
            return False
        return True


def _next_time(streams: StreamsView) -> Timestamp:
    """The time of the newest checkpoint and a second."""
    newest = last_event(streams, CHECKPOINTS)
    assert newest is not None
    _, claimed = REGISTRY_LOG.read_note(newest.body)
    return Timestamp(seconds=claimed.seconds + 1, nanos=0)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("registry")
    _prepare(folder)
    return folder


def test_no_sequence_of_acts_leads_to_what_the_rights_do_not_allow(template: Path) -> None:
    RegistryActors.template = template
    examples, steps = (400, 25) if PROFILE == "laws" else (4, 6)
    phases = tuple(Phase) if PROFILE == "laws" else (Phase.generate,)  # a step takes half a second
    run_state_machine_as_test(
        RegistryActors,
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None, phases=phases),
    )


SEQUENCES: dict[str, list[tuple[str, dict[str, object]]]] = {
    "an earlier copy does not bring a revoked version back": [
        ("pin", {"ref": TWO}),
        ("revoke", {"ref": TWO}),
        ("put_an_earlier_copy_back", {"number": 1}),
        ("restore", {}),
        ("pin", {"ref": ONE}),
    ],
    "a right that was taken away is not used in the past": [
        ("make_the_deputy_an_operator_for_a_day", {}),
        ("pin_with_a_right_of_the_past", {"ref": TWO}),
        ("restore", {}),
        ("pin", {"ref": TWO}),
    ],
    "a revocation cannot be left out": [
        ("revoke", {"ref": ONE}),
        ("leave_the_end_of_a_stream_out", {"stream": version_stream(ONE)}),
        ("restore", {}),
        ("pin", {"ref": TWO}),
    ],
}
"""Acts that once led to a false resolve, or nearly."""


@cases("name", SEQUENCES)
def test_known_sequences_lead_nowhere(template: Path, name: str) -> None:
    RegistryActors.template = template
    actors = RegistryActors()
    actors.begin()
    try:
        for act, arguments in SEQUENCES[name]:
            getattr(actors, act)(**arguments)
            actors.resolves_only_what_the_honest_allow()
            actors.an_audit_finds_what_the_dishonest_changed()
    finally:
        actors.teardown()
