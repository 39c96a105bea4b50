"""Honest and dishonest people at one registry: no sequence of acts leads to what the rights do not allow.

The honest act by the functions of the package, and a plain model (`registry_model`) says what comes of it. A dishonest
one is a person with a key (K) who writes an event of any kind without the right to, or signs something false of the
log; or somebody (W) who has no key, edits rows of the catalog and puts back earlier copies of it. After each step, for
a client with a memory, and as long as nothing is edited for one that reads the registry for the first time:

    1  it resolves nothing but what the model serves
    2  it resolves all of that unless something is edited: events without the right count for nothing
    3  `ctx verify --registry` reports events without the right, and everything that is edited
    4  unless something is edited, `ctx verify --registry --sign` signs, and the honest act; if something is, they do
       when the last copy from before the edits is put back, and nobody has to forget anything
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
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

from contextplane.app.registry.audit import audit_registry, renew_checkpoint
from contextplane.app.registry.pins import drop_alias, roll_back, set_alias, set_protection, unpin
from contextplane.app.registry.refresh import close_incident, open_incident, open_refresh, run_refresh
from contextplane.app.registry.release import retire, withdraw_draft
from contextplane.app.registry.resolve import resolve_request
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.catalog import IndexedObject
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.registry.resolution import ResolveRequest
from contextplane.registry.streams import CHECKPOINTS, LOG, pins_stream, version_stream
from contextplane.trust.keyring_events import Change as KeyringChange
from contextplane.trust.keyring_events import (
    KeyRevocation,
    OwnerThreshold,
    ThresholdChange,
    WitnessThreshold,
)
from contextplane.trust.keyring_stream import STREAM as KEYRING
from contextplane.trust.merkle_log import LogEntry
from tests.laws.registry_forgeries import KINDS, Forgery, LogForger, forged_changes
from tests.laws.registry_model import ENVIRONMENTS, REVIEWS, RegistryModel, Rights
from tests.support.cases import cases
from tests.support.samples import PROFILE
from tests.unit.registry.desk import ISSUER, NARROWER, REVIEWERS, ROLES, Clock, Office, desk_in, office, version
from tests.unit.registry.releases import HERE
from tests.unit.registry.tampering import Stolen, copied
from tests.unit.trust.world import CHECK, key_of, rotate, trust

OTHER_ISSUER = "tenant_globex"
PACK_ID = "ctxpack.support"
DOCUMENTS = {
    "1.0.0": version("1.0.0"),
    "1.0.1": version("1.0.1"),
    "1.1.0": version("1.1.0", NARROWER),
    "0.9.0": version("0.9.0"),
}
REFS = {number: PackRef(PACK_ID, number) for number in DOCUMENTS}
DIGESTS = {number: Digest.of(canonical(document)) for number, document in DOCUMENTS.items()}
DRAFT, FORGED = "1.1.0", "0.9.0"
"""The version that the honest record, review, sign and publish, and one that only the dishonest publish."""

OTHERS = {"bops": ("log", "operator"), "bpub": ("log", "publisher"), "bsec": ("log", "security")}
GRANTS = {
    "root": {ISSUER: frozenset({"owner", "log"})},
    **{name: {ISSUER: frozenset(roles)} for name, roles in ROLES.items()},
    "deputy": {ISSUER: frozenset({"log"})},
    "guest": {ISSUER: frozenset[str]()},
    **{name: {OTHER_ISSUER: frozenset(roles)} for name, roles in OTHERS.items()},
}
OPERATORS = ("ops", "ops2", "ops3")
"""The keys of the operator, each of which is rotated into the next."""

KEYS = (*GRANTS, *OPERATORS[1:], "lost", "stranger")
"""Every key. `lost` had every right and is revoked, `stranger` was never trusted."""

PLACES = tuple((environment, number) for environment in ENVIRONMENTS for number in REFS)
ODD_STREAM = "registry/other/thing"
"""A stream of nothing that the registry knows."""

STREAMS = (
    *(pins_stream(environment, PACK_ID) for environment in ENVIRONMENTS),
    *(version_stream(ref) for ref in REFS.values()),
)
EVENTS = "stream LIKE 'registry/%' OR stream LIKE 'tree/%' OR stream LIKE 'trust/%'"

numbers = st.sampled_from([*REFS])
environments = st.sampled_from(ENVIRONMENTS)
places = st.integers(0, 10**6)


def _prepare(folder: Path) -> None:
    """Two published versions, the first of which is pinned in prod; and everybody of `KEYS`."""
    with office(folder) as here:
        here.change_keys(trust(key_of("guest"), ISSUER))
        here.trust("deputy")
        for name, roles in OTHERS.items():
            here.trust(name, *roles, issuer=OTHER_ISSUER)
        here.trust("lost", "operator", "publisher", "security", *(f"environment:{name}" for name in ENVIRONMENTS))
        here.change_keys(_revocation("lost", here.desk.keys.now))
        for number in ("1.0.0", "1.0.1"):
            here.release(DOCUMENTS[number])
        here.pin("prod", REFS["1.0.0"])
        _store(here, canonical(DOCUMENTS[FORGED]))


def _store(here: Office, data: bytes) -> None:
    """Store an object, so that somebody can publish it."""
    indexed = IndexedObject(digest=here.desk.platform.objects.put(data), kind="blob", size=len(data), traced=True)
    with here.desk.platform.catalog.write() as tx:
        tx.objects.record(indexed)


def _revocation(name: str, since: Timestamp) -> KeyRevocation:
    return KeyRevocation(key_id=key_of(name).public_key.key_id, revoked_from=str(since), reason="lost")


class _Place:
    """The store, one client with a memory, and copies of the catalog from before each act."""

    template: Path

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="actors-"))
        shutil.copytree(self.template, self.folder / "store")
        self.catalog = self.folder / "store" / ".ctx" / "catalog.db"
        self.clock = Clock()
        self.clock.moment += timedelta(hours=1)
        self.copies = 0
        self.is_edited = False
        self.are_events_edited = False

    @contextmanager
    def session(self, *, state: str | None = "state") -> Iterator[Office]:
        """A command of its own: it remembers what the client's commands before it saw. None: it remembers nothing."""
        state_dir = None if state is None else str(self.folder / state)
        with desk_in(Settings(cwd=str(self.folder / "store"), state_dir=state_dir), self.clock, CHECK) as here:
            yield here

    def keep_copy(self) -> None:
        self.copies += 1
        copied(self.catalog, self.folder / f"copy-{self.copies}.db")
        self.is_edited = self.are_events_edited = False

    def put_back(self, number: int) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.catalog}{suffix}").unlink(missing_ok=True)
        copied(self.folder / f"copy-{number}.db", self.catalog)
        self.look()

    @staticmethod
    def events(path: Path) -> list[tuple[object, ...]]:
        return Stolen(path).ask(f"SELECT * FROM event WHERE {EVENTS} ORDER BY 1, 2")  # noqa: S608

    @staticmethod
    def indexes(path: Path) -> list[tuple[object, ...]]:
        tables = [Stolen(path).ask(f"SELECT * FROM {table} ORDER BY 1") for table in ("mark", "root")]  # noqa: S608
        return [row for rows in tables for row in rows]

    def has_stream(self, stream: str) -> bool:
        return bool(Stolen(self.catalog).ask("SELECT 1 FROM event WHERE stream = ? LIMIT 1", stream))

    def look(self) -> None:
        """See whether the catalog is another than after the last act that followed from the log."""
        copy = self.folder / f"copy-{self.copies}.db"
        self.are_events_edited = self.events(self.catalog) != self.events(copy)
        self.is_edited = self.are_events_edited or self.indexes(self.catalog) != self.indexes(copy)

    @contextmanager
    def editing(self) -> Iterator[Stolen]:
        """The catalog in the hands of somebody who can write to it."""
        yield Stolen(self.catalog)
        self.look()

    @contextmanager
    def forging(self, signer: str = "author") -> Iterator[LogForger]:
        """The catalog in the hands of somebody who can sign the log."""
        with self.session() as here, here.desk.platform.catalog.write() as tx:
            yield LogForger(tx, here.desk.origin, signer)
        self.look()


class RegistryActors(RuleBasedStateMachine):
    """The acts, and what holds after each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.place = _Place()
        self.model = RegistryModel(Rights(GRANTS, ISSUER), {"1.0.0": "published", "1.0.1": "published"})
        self.model.pin("prod", "1.0.0", "ops")
        self.operator = OPERATORS[0]
        self.is_deputy_trusted = True
        self.had_right: dict[str, tuple[int, str]] = {}
        self.forged = 0
        self.kept = b""
        self.refusal: ContextPlaneError | None = None

    @initialize()
    def begin(self) -> None:
        with self.place.session() as here:
            newest = audit_registry(here.desk, _quiet).newest  # the client saw it
        assert newest is not None
        self.kept = newest.note
        self.place.keep_copy()

    def teardown(self) -> None:
        shutil.rmtree(self.place.folder)

    def act(self, act: Callable[[Office], object], *, allowed: bool = True) -> None:
        """Act honestly, which succeeds if and only if the model allows it."""
        with self.place.session() as here:
            if allowed:
                act(here)
            else:
                with pytest.raises(ContextPlaneError):
                    act(here)
        self.place.keep_copy()

    # --- the honest: versions ----------------------------------------------------------------------------------------

    @precondition(lambda self: self.is_whole and self.model.draft is None and DRAFT not in self.model.stages)
    @rule()
    def record(self) -> None:
        self.act(lambda here: here.record(DOCUMENTS[DRAFT]))
        self.model.draft, self.model.is_signed = {}, False

    @precondition(lambda self: self.is_whole and self.model.draft is not None)
    @rule(role=st.sampled_from(REVIEWS), verdict=st.sampled_from(["approve", "approve", "approve", "reject"]))
    def review(self, role: str, verdict: str) -> None:
        self.act(lambda here: here.review(str(DIGESTS[DRAFT]), REVIEWERS[role], role, verdict))  # type: ignore[arg-type]
        self.model.review(role, verdict)

    @precondition(lambda self: self.is_whole and self.model.draft is not None)
    @rule()
    def approve_all(self) -> None:
        for role in REVIEWS:
            self.review(role, "approve")

    @precondition(lambda self: self.is_whole and self.model.draft is not None)
    @rule()
    def sign_draft(self) -> None:
        self.act(lambda here: here.sign(str(DIGESTS[DRAFT])), allowed=self.model.is_reviewed)
        self.model.is_signed = self.model.is_reviewed

    @precondition(lambda self: self.is_whole and self.model.draft is not None)
    @rule()
    def publish(self) -> None:
        allowed = self.model.is_signed
        self.act(lambda here: here.publish(str(DIGESTS[DRAFT])), allowed=allowed)
        if allowed:
            self.model.stages[DRAFT], self.model.draft = "published", None

    @precondition(lambda self: self.is_whole and self.model.draft is not None)
    @rule(by=st.sampled_from(["author", "pub"]))
    def withdraw_draft(self, by: str) -> None:
        self.act(lambda here: withdraw_draft(here.desk, str(DIGESTS[DRAFT]), here.by(by)))
        self.model.draft = None

    @precondition(lambda self: self.is_whole)
    @rule(number=numbers)
    def deprecate(self, number: str) -> None:
        allowed = self.model.stages.get(number) in {"published", "unreviewed", "deprecated"}
        self.act(lambda here: retire(here.desk, REFS[number], "deprecated", here.by("pub")), allowed=allowed)
        if allowed:
            self.model.stages[number] = "deprecated"

    @precondition(lambda self: self.is_whole)
    @rule(number=numbers)
    def revoke(self, number: str) -> None:
        allowed = number in self.model.stages
        self.act(lambda here: retire(here.desk, REFS[number], "revoked", here.by("pub")), allowed=allowed)
        if allowed:
            self.model.stages[number] = "revoked"

    @precondition(lambda self: self.is_whole)
    @rule()
    def open_refresh(self) -> None:
        self.act(lambda here: open_refresh(here.desk, "ADAPTER_SCHEMA_UPDATED", "adp_orders", here.by("pub")))
        in_use = {number for number, stage in self.model.stages.items() if stage in {"published", "unreviewed"}}
        self.model.refreshes |= in_use

    @precondition(lambda self: self.is_whole)
    @rule(number=numbers)
    def run_refresh(self, number: str) -> None:
        allowed = number in self.model.refreshes and self.model.stages[number] != "revoked"
        self.act(lambda here: run_refresh(here.desk, REFS[number], here.by("pub")), allowed=allowed)
        self.model.refreshes -= {number} if allowed else set()

    @precondition(lambda self: self.is_whole)
    @rule(number=numbers, opens=st.booleans())
    def open_or_close_incident(self, number: str, opens: bool) -> None:  # noqa: FBT001  drawn
        act, incident = (open_incident if opens else close_incident), (number, "inc-1")
        allowed = number in self.model.stages and (incident in self.model.incidents) is not opens
        self.act(lambda here: act(here.desk, REFS[number], "inc-1", here.by(self.operator)), allowed=allowed)
        if allowed:
            (self.model.incidents.add if opens else self.model.incidents.discard)(incident)

    # --- the honest: environments ------------------------------------------------------------------------------------

    @precondition(lambda self: self.is_whole)
    @rule(number=numbers, environment=environments)
    def pin(self, number: str, environment: str) -> None:
        self._pin(number, environment, self.operator)

    @precondition(lambda self: self.is_whole and self.model.rights.may("deputy", "pinned", environment="prod"))
    @rule(number=numbers)
    def pin_by_deputy(self, number: str) -> None:
        self._pin(number, "prod", "deputy")

    def _pin(self, number: str, environment: str, by: str) -> None:
        allowed = self.model.can_pin(environment, number)
        self.act(lambda here: here.pin(environment, REFS[number], by), allowed=allowed)
        if allowed:
            self.model.pin(environment, number, by)

    @precondition(lambda self: self.is_whole)
    @rule(environment=environments)
    def unpin(self, environment: str) -> None:
        allowed = self.model.pinned(environment) is not None
        self.act(lambda here: unpin(here.desk, environment, PACK_ID, None, here.by(self.operator)), allowed=allowed)
        if allowed:
            self.model.unpin(environment, self.operator)

    @precondition(lambda self: self.is_whole)
    @rule(environment=environments)
    def roll_back(self, environment: str) -> None:
        allowed = self.model.rollback_target(environment) is not None
        self.act(lambda here: roll_back(here.desk, environment, PACK_ID, None, here.by(self.operator)), allowed=allowed)
        if allowed:
            self.model.roll_back(environment, self.operator)

    @precondition(lambda self: self.is_whole)
    @rule(number=numbers, alias=st.sampled_from(["live", "next"]))
    def set_alias(self, number: str, alias: str) -> None:
        allowed = self.model.stages.get(number) in {"published", "unreviewed", "deprecated"}
        self.act(lambda here: set_alias(here.desk, REFS[number], alias, here.by(self.operator)), allowed=allowed)
        if allowed:
            self.model.aliases[alias] = number

    @precondition(lambda self: self.is_whole)
    @rule(alias=st.sampled_from(["live", "next"]))
    def drop_alias(self, alias: str) -> None:
        allowed = alias in self.model.aliases
        self.act(lambda here: drop_alias(here.desk, PACK_ID, alias, here.by(self.operator)), allowed=allowed)
        self.model.aliases.pop(alias, None)

    @precondition(lambda self: self.is_whole)
    @rule(environment=environments, protected=st.booleans())
    def set_protection(self, environment: str, protected: bool) -> None:  # noqa: FBT001  drawn
        self.act(lambda here: set_protection(here.desk, environment, protected=protected, by=here.by(self.operator)))
        (self.model.opened.discard if protected else self.model.opened.add)(environment)

    # --- the honest: keys and the log --------------------------------------------------------------------------------

    @precondition(lambda self: self.is_whole and self.is_deputy_trusted)
    @rule(is_operator=st.booleans())
    def give_or_take_the_role_of_the_deputy(self, is_operator: bool) -> None:  # noqa: FBT001  drawn
        roles = ("operator", "environment:prod") if is_operator else ()
        self.act(lambda here: here.trust("deputy", *roles))
        self.model.rights.grants["deputy"] = {ISSUER: frozenset({"log", *roles})}
        if is_operator:
            self._note_right("deputy")

    @precondition(lambda self: self.is_whole and self.is_deputy_trusted)
    @rule()
    def revoke_the_deputy(self) -> None:
        """The key of the deputy was stolen before it was ever used: nothing that it signed counts."""
        began = Timestamp.parse("2030-01-01T00:00:01Z")
        self.act(lambda here: here.change_keys(_revocation("deputy", began)))
        self.sign_log()  # the deputy may have signed the newest checkpoint
        self.model.rights.grants.pop("deputy")
        self.model.revoked_keys.add("deputy")
        self.is_deputy_trusted = False

    @precondition(lambda self: self.is_whole and self.operator != OPERATORS[-1])
    @rule()
    def rotate(self) -> None:
        """The operator gets another key, and the old one ends at once."""
        old, new = self.operator, OPERATORS[OPERATORS.index(self.operator) + 1]
        self._note_right(old)

        def change(here: Office) -> None:
            now = here.desk.keys.now
            here.change_keys(rotate(key_of(old), key_of(new), since=now, old_until=now))

        self.act(change)
        self.model.rights.grants[new] = self.model.rights.grants.pop(old)
        self.operator = new

    def _note_right(self, key: str) -> None:
        """Note when a key had a right, to use it later."""
        with self.place.session() as here:
            self.had_right[key] = here.desk.keys.keyring.seq, str(here.desk.keys.keyring.as_of)

    @precondition(lambda self: self.is_whole)
    @rule()
    def sign_log(self) -> None:
        """`ctx verify --registry --sign`."""
        self.act(lambda here: renew_checkpoint(here.desk, audit_registry(here.desk, _quiet), key_of("author")))

    @precondition(lambda self: self.is_whole)
    @rule()
    def verify_what_is_new(self) -> None:
        """`ctx verify --registry --since`: an auditor goes on from the checkpoint that was kept the last time."""
        with self.place.session() as here:
            audited, whole = audit_registry(here.desk, _quiet, self.kept), audit_registry(here.desk, _quiet)
        assert audited.signable, audited.problems
        assert {*audited.problems} <= {*whole.problems}
        assert audited.newest is not None
        self.kept = audited.newest.note

    @precondition(lambda self: self.is_whole)
    @rule()
    def let_forty_days_pass(self) -> None:
        """A protected environment serves nothing then, until somebody signs the log."""
        self.place.clock.moment += timedelta(days=40)
        assert {environment for environment, _ in self.resolved()} <= self.model.opened
        self.sign_log()

    @precondition(lambda self: self.place.is_edited)
    @rule()
    def restore(self) -> None:
        """The copy from before the edits is put back."""
        self.place.put_back(self.place.copies)
        self.sign_log()

    # --- the dishonest: events ---------------------------------------------------------------------------------------

    @precondition(lambda self: self.is_whole)
    @rule(
        kind=st.sampled_from(KINDS),
        key=places,
        number=numbers,
        environment=environments,
        issuer=st.sampled_from([ISSUER, OTHER_ISSUER]),
    )
    def forge(self, kind: str, key: int, number: str, environment: str, issuer: str) -> None:
        """Somebody without the right writes an event of any kind."""
        without = self.keys_without(kind, environment)
        by = without[key % len(without)]
        with self.forging(by) as forger:
            forgery = self.forgery(forger, kind, by, number, environment, issuer=issuer)
            forger.append_event(forgery.stream, forgery.change, by)

    @precondition(lambda self: self.is_whole and self.past_operators)
    @rule(number=numbers, key=places)
    def forge_with_a_right_of_the_past(self, number: str, key: int) -> None:
        """A key that had the right pins under the keyring and at the time of then."""
        by = self.past_operators[key % len(self.past_operators)]
        keyring, at = self.had_right[by]
        with self.forging(by) as forger:
            forgery = self.forgery(forger, "pinned", by, number, "prod", at=at)
            forger.append_event(forgery.stream, forgery.change, by, keyring=keyring, at=at)

    @precondition(lambda self: self.is_whole and FORGED not in self.model.stages)
    @rule()
    def publish_without_reviews(self) -> None:
        """A publisher publishes what nobody reviewed and signed. The name is used then, and nobody is served."""
        with self.forging("pub") as forger:
            forgery = self.forgery(forger, "published", "pub", FORGED, "prod")
            forger.append_event(forgery.stream, forgery.change, "pub")
        self.model.stages[FORGED] = "unreviewed"

    @precondition(lambda self: self.is_whole)
    @rule(source=places, stream=st.sampled_from(STREAMS))
    def repeat_an_event(self, source: int, stream: str) -> None:
        """An event of somebody honest is appended once more, to its stream or to another."""
        events = Stolen(self.place.catalog).ask(
            "SELECT kind, body FROM event WHERE stream LIKE 'registry/%/%' ORDER BY stream, seq"
        )
        kind, body = events[source % len(events)]
        assert isinstance(body, bytes)
        with self.forging() as forger:
            forger.append(stream, str(kind), body)

    @precondition(lambda self: self.is_whole)
    @rule(stream=st.sampled_from([*STREAMS, ODD_STREAM]), body=st.sampled_from([b"", b"{}", b"\xff"]))
    def append_nonsense(self, stream: str, body: bytes) -> None:
        with self.forging() as forger:
            forger.append(stream, "pinned", body)

    @precondition(lambda self: self.is_whole)
    @rule(number=places)
    def repeat_an_entry(self, number: int) -> None:
        """An entry of the log is appended once more, and no end of a stream moves."""
        with self.forging() as forger:
            forger.repeat_entry(number)

    @precondition(lambda self: self.is_whole)
    @rule(
        stream=st.sampled_from([*STREAMS, KEYRING, LOG]),
        seq=st.sampled_from([1, 2, 3, 10**15]),
        previous=st.sampled_from(["", "0" * 64, None]),
    )
    def enter_what_does_not_follow(self, stream: str, seq: int, previous: str | None) -> None:
        """The log gets an entry that does not follow the last one of its stream, of this format or of the first."""
        is_next = previous == "" and seq == 1 and not self.place.has_stream(stream)
        if not is_next:
            with self.forging() as forger:
                forger.append_void_entry(LogEntry(event="0" * 64, seq=seq, stream=stream, previous=previous))

    @precondition(lambda self: self.is_whole)
    @rule(stream=st.sampled_from([CHECKPOINTS, LOG, "tree/registry/00"]))
    def enter_what_is_no_event(self, stream: str) -> None:
        """The log gets an entry for something else that the catalog has, as if it was an event."""
        with self.forging() as forger:
            forger.append_entry_of_first(stream)

    def keys_without(self, kind: str, environment: str) -> list[str]:
        """The keys that may not write an event of this kind."""
        where = "" if kind.startswith(("alias", "incident")) else environment
        may = partial(self.model.rights.may, kind=kind, environment=where, role="security", author="author")
        return [name for name in KEYS if not may(name)]

    @property
    def past_operators(self) -> list[str]:
        """The keys that could pin in prod, and cannot now."""
        may = partial(self.model.rights.may, kind="pinned", environment="prod")
        return sorted(key for key in self.had_right if not may(key))

    def forgery(  # noqa: PLR0913  what an event names
        self,
        forger: LogForger,
        kind: str,
        by: str,
        number: str,
        environment: str,
        *,
        issuer: str = ISSUER,
        at: str = "",
    ) -> Forgery:
        changes = forged_changes(
            REFS[number],
            DIGESTS[number],
            environment,
            issuer=issuer,
            key_id=key_of(by).public_key.key_id,
            entry=forger.entry,
            at=at or str(forger.now),
        )
        return changes[kind]

    @contextmanager
    def forging(self, by: str = "author") -> Iterator[LogForger]:
        """Write past the rules, what the log then has. Who cannot sign the log has a friend who can."""
        with self.place.forging(by if self.model.rights.signs_log(by) else "author") as forger:
            yield forger
        self.forged += 1
        self.place.keep_copy()

    # --- the dishonest: the log, the keyring, rows -------------------------------------------------------------------

    @precondition(lambda self: self.is_whole)
    @rule(key=places, change=st.sampled_from(["trust", "rotate", "revoke", "threshold", "owners", "witnesses"]))
    def forge_change_of_keyring(self, key: int, change: str) -> None:
        """Somebody who is no owner changes the keyring, and a signer of the log puts it into the log."""
        without = [name for name in KEYS if not self.model.rights.may(name, "key_trusted")]
        with self.place.forging() as forger:
            forger.append_keyring_change(_keyring_change(change, forger.now), without[key % len(without)])

    @precondition(lambda self: self.is_whole)
    @rule(stream=st.sampled_from(STREAMS), skipped=st.sampled_from([0, 0, 1, 5]))
    def sign_an_event_that_is_not_there(self, stream: str, skipped: int) -> None:
        """A signer of the log puts an entry into it, and keeps the event to himself, and perhaps others before it."""
        with self.place.forging() as forger:
            forger.append_only_entry(stream, "0" * 64, skipped)

    @precondition(lambda self: self.is_whole)
    @rule(key=st.sampled_from(["guest", "stranger", "lost"]))
    def sign_without_the_role(self, key: str) -> None:
        with self.place.forging(key) as forger:
            forger.sign()

    @precondition(lambda self: self.is_whole and self.is_deputy_trusted)
    @rule(years=st.sampled_from([1, 10, 100]))
    def sign_in_the_future(self, years: int) -> None:
        """The deputy signs a time that nobody can act after; an owner revokes the key, and it was never said."""
        with self.place.forging("deputy") as forger:
            now = forger.now
            forger.sign(at=Timestamp(seconds=now.seconds + years * 365 * 86_400, nanos=0))
        assert self.resolved() <= self.served
        self.revoke_the_deputy()

    @precondition(lambda self: self.is_whole)
    @rule(stream=st.sampled_from(STREAMS), grows=st.booleans())
    def leave_the_end_of_a_stream_out(self, stream: str, grows: bool) -> None:  # noqa: FBT001  drawn
        """The last event of a stream is removed, and the ends are signed without it; with `grows`, a new event, too."""
        with self.place.editing() as thief:
            thief.cut(stream)
        if not self.place.is_edited:  # there was no end to leave out
            return
        with self.place.forging() as forger:
            if grows:
                forgery = self.forgery(forger, "draft_listed", "author", DRAFT, "prod")
                forger.append_event(forgery.stream, forgery.change, "author")
            forger.sign_streams()

    @rule(number=places, how=st.sampled_from(["delete", "change", "copy"]), other=places)
    def edit_a_row(self, number: int, how: str, other: int) -> None:
        with self.place.editing() as thief:
            rows = thief.ask(f"SELECT stream, seq FROM event WHERE {EVENTS} ORDER BY 1, 2")  # noqa: S608
            row, source = rows[number % len(rows)], rows[other % len(rows)]
            body = thief.body(*row)  # type: ignore[arg-type]
            match how:
                case "delete":
                    thief.run("DELETE FROM event WHERE stream = ? AND seq = ?", *row)
                case "change":
                    place = other % max(1, len(body))
                    body = body[:place] + bytes([body[place] ^ 1] if body else [1]) + body[place + 1 :]
                    thief.run("UPDATE event SET body = ? WHERE stream = ? AND seq = ?", body, *row)
                case _:
                    thief.run("UPDATE event SET body = ? WHERE stream = ? AND seq = ?", body, *source)

    @rule(table=st.sampled_from(["mark", "root"]), number=places, other=places, deletes=st.booleans())
    def edit_an_index(self, table: str, number: int, other: int, deletes: bool) -> None:  # noqa: FBT001  drawn
        column = {"mark": "value", "root": "target"}[table]
        with self.place.editing() as thief:
            names = thief.ask(f"SELECT name FROM {table} WHERE name LIKE 'registry/%' ORDER BY 1")  # noqa: S608
            if names and deletes:
                thief.run(f"DELETE FROM {table} WHERE name = ?", *names[number % len(names)])  # noqa: S608
            elif names:
                value = f"(SELECT {column} FROM {table} WHERE name = ?)"  # noqa: S608
                pair = *names[other % len(names)], *names[number % len(names)]
                thief.run(f"UPDATE {table} SET {column} = {value} WHERE name = ?", *pair)  # noqa: S608

    @precondition(lambda self: self.is_whole)
    @rule(number=places)
    def forge_while_a_row_is_missing(self, number: int) -> None:
        """Somebody takes a row away, and another signs the log meanwhile; an administrator puts the row back."""
        thief = Stolen(self.place.catalog)
        rows = thief.ask(
            "SELECT stream, seq, kind, body FROM event WHERE stream LIKE 'registry/%/%' AND stream != ? ORDER BY 1, 2",
            ODD_STREAM,
        )
        row = rows[number % len(rows)]
        thief.run("DELETE FROM event WHERE stream = ? AND seq = ?", *row[:2])
        with self.place.forging() as forger:
            forger.append(ODD_STREAM, "pinned", b"{}")
        assert self.resolved() <= self.served
        thief.run("INSERT INTO event (stream, seq, kind, body) VALUES (?, ?, ?, ?)", *row)
        self.forged += 1
        self.place.keep_copy()

    @rule(number=places)
    def put_an_earlier_copy_back(self, number: int) -> None:
        self.place.put_back(1 + number % self.place.copies)

    # --- what holds after each step ----------------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        return self.place.copies > 0 and not self.place.is_edited

    @property
    def served(self) -> set[tuple[str, str]]:
        """What the model serves."""
        return {where for where in PLACES if self.model.serves(*where)}

    @invariant()
    def resolves_what_the_rights_allow(self) -> None:
        if not self.place.copies:
            return
        served, first, again = self.served, self.resolved(), self.resolved()
        assert first | again <= served  # what was refused once is not accepted the second time
        if not self.place.is_edited:
            assert first == again == served, self.refusal
            assert self.resolved(state=None) == served, self.refusal

    @invariant()
    def aliases_lead_where_the_operators_say(self) -> None:
        if not self.is_whole:
            return
        with self.place.session() as here:
            for alias in ("live", "next"):
                number = self.model.aliases.get(alias)
                try:
                    assert here.desk.named_version(f"{PACK_ID}@{alias}").version == number
                except ContextPlaneError:
                    assert number is None

    @invariant()
    def an_audit_reports_what_the_dishonest_did(self) -> None:
        if not self.place.copies:
            return
        are_edited, is_edited = self.place.are_events_edited, self.place.is_edited
        with self.place.session() as here:
            try:
                audited = audit_registry(here.desk, _quiet)
            except ContextPlaneError:
                assert is_edited
                return
        assert not (audited.sound and (are_edited or self.forged))
        assert is_edited or audited.signable, audited.problems
        assert is_edited or self.forged or audited.sound, audited.problems

    def resolved(self, state: str | None = "state") -> set[tuple[str, str]]:
        """The environments and versions that new runs get, by one command."""
        with self.place.session(state=state) as here:
            return {where for where in PLACES if self._is_resolved(here, *where)}

    def _is_resolved(self, here: Office, environment: str, number: str) -> bool:
        request = ResolveRequest(refs=(REFS[number],), tenant=ISSUER, environment=environment, purpose="new_traffic")
        try:
            resolve_request(here.desk, request, HERE, max_age=None)
        except ContextPlaneError as error:
            self.refusal = error
            return False
        return True


def _quiet(_size: int, _events: int) -> None:
    pass


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def _keyring_change(what: str, at: Timestamp) -> KeyringChange:
    match what:
        case "trust":
            return trust(key_of("mallory"), ISSUER, "owner", since=at)
        case "rotate":
            return rotate(key_of("root"), key_of("mallory"), since=at, old_until=at)
        case "revoke":
            return _revocation("pub", at)
        case "threshold":
            return ThresholdChange(issuer=ISSUER, threshold=2)
        case "owners":
            return OwnerThreshold(threshold=2)
        case _:
            return WitnessThreshold(witnesses=2)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("registry")
    _prepare(folder)
    return folder


def test_no_sequence_of_acts_leads_to_what_the_rights_do_not_allow(template: Path) -> None:
    _Place.template = template
    examples, steps = (400, 30) if PROFILE == "laws" else (4, 8)
    phases = tuple(Phase) if PROFILE == "laws" else (Phase.generate,)  # a step takes half a second
    run_state_machine_as_test(
        RegistryActors,
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None, phases=phases),
    )


SEQUENCES: dict[str, list[tuple[str, dict[str, object]]]] = {
    "an earlier copy does not bring a revoked version back": [
        ("pin", {"number": "1.0.1", "environment": "prod"}),
        ("revoke", {"number": "1.0.1"}),
        ("put_an_earlier_copy_back", {"number": 1}),
        ("restore", {}),
        ("pin", {"number": "1.0.0", "environment": "prod"}),
    ],
    "a right that was taken away is not used in the past": [
        ("give_or_take_the_role_of_the_deputy", {"is_operator": True}),
        ("give_or_take_the_role_of_the_deputy", {"is_operator": False}),
        ("forge_with_a_right_of_the_past", {"number": "1.0.1", "key": 0}),
        ("pin", {"number": "1.0.1", "environment": "prod"}),
    ],
    "a revocation cannot be left out": [
        ("revoke", {"number": "1.0.0"}),
        ("leave_the_end_of_a_stream_out", {"stream": version_stream(REFS["1.0.0"]), "grows": True}),
        ("restore", {}),
        ("pin", {"number": "1.0.1", "environment": "prod"}),
    ],
    "an event that is kept secret closes the registry until a copy is put back": [
        ("sign_an_event_that_is_not_there", {"stream": STREAMS[0], "skipped": 0}),
        ("restore", {}),
        ("pin", {"number": "1.0.1", "environment": "prod"}),
    ],
    "an entry of the log that is repeated moves nothing": [
        ("repeat_an_entry", {"number": -1}),
        ("pin", {"number": "1.0.1", "environment": "prod"}),
        ("repeat_an_entry", {"number": -1}),
        ("roll_back", {"environment": "prod"}),
    ],
    "a stream of nothing closes nothing": [
        ("append_nonsense", {"stream": ODD_STREAM, "body": b"{}"}),
        ("enter_what_is_no_event", {"stream": CHECKPOINTS}),
        ("pin", {"number": "1.0.1", "environment": "prod"}),
        ("sign_log", {}),
        ("verify_what_is_new", {}),
    ],
    "what a stolen key pinned is not served, and the registry is signed by another": [
        ("give_or_take_the_role_of_the_deputy", {"is_operator": True}),
        ("pin_by_deputy", {"number": "1.0.1"}),
        ("revoke_the_deputy", {}),
        ("pin", {"number": "1.0.1", "environment": "prod"}),
    ],
    "a release between forged events": [
        ("record", {}),
        ("forge", {"kind": "reviewed", "key": 0, "number": DRAFT, "environment": "prod", "issuer": ISSUER}),
        ("approve_all", {}),
        ("forge", {"kind": "draft_withdrawn", "key": 2, "number": DRAFT, "environment": "prod", "issuer": ISSUER}),
        ("sign_draft", {}),
        ("forge", {"kind": "published", "key": 0, "number": DRAFT, "environment": "prod", "issuer": ISSUER}),
        ("publish", {}),
        ("forge", {"kind": "revoked", "key": 3, "number": DRAFT, "environment": "prod", "issuer": ISSUER}),
        ("pin", {"number": DRAFT, "environment": "prod"}),
        ("forge", {"kind": "unpinned", "key": 1, "number": DRAFT, "environment": "prod", "issuer": ISSUER}),
        ("roll_back", {"environment": "prod"}),
    ],
}
"""Acts that once led to a false resolve, or nearly."""


@cases("name", SEQUENCES)
def test_known_sequences_lead_nowhere(template: Path, name: str) -> None:
    _Place.template = template
    actors = RegistryActors()
    actors.begin()
    try:
        for act, arguments in SEQUENCES[name]:
            getattr(actors, act)(**arguments)
            actors.resolves_what_the_rights_allow()
            actors.aliases_lead_where_the_operators_say()
            actors.an_audit_reports_what_the_dishonest_did()
    finally:
        actors.teardown()


@pytest.mark.parametrize("kind", KINDS if PROFILE == "laws" else KINDS[::8])
def test_an_event_by_any_key_without_the_right_changes_nothing(template: Path, kind: str) -> None:
    """Everybody without the right writes one about each version, and the honest go on; some kinds in every run."""
    _Place.template = template
    actors = RegistryActors()
    actors.begin()
    try:
        for number, issuer in ((DRAFT, ISSUER), (FORGED, OTHER_ISSUER), ("1.0.1", ISSUER), ("1.0.0", ISSUER)):
            for key in range(len(actors.keys_without(kind, "prod"))):
                actors.forge(kind, key, number, "prod", issuer)
            actors.resolves_what_the_rights_allow()
            actors.aliases_lead_where_the_operators_say()
        actors.an_audit_reports_what_the_dishonest_did()
        actors.set_alias(FORGED, "next")  # nobody published it
        actors.deprecate(FORGED)
        actors.sign_log()
        actors.record()
        actors.approve_all()
        actors.sign_draft()
        actors.publish()
        actors.pin(DRAFT, "prod")
        actors.resolves_what_the_rights_allow()
        actors.roll_back("prod")
        actors.resolves_what_the_rights_allow()
    finally:
        actors.teardown()
