"""What came since a kept checkpoint is verified as in a verification of everything, and nothing else is read."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.model.ids import Digest
from contextplane.registry.audit import AuditInputs, AuditResult
from contextplane.registry.events import Deprecated, EnvironmentOpened, Published, RegistryEvent
from contextplane.registry.recent_audit import audit_since
from contextplane.registry.streams import CHECKPOINTS, LOG, environment_stream
from contextplane.trust.checkpoint import Checkpoint, CheckpointInvalid, NoteUnsigned, signed_checkpoint
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import STREAM as KEYRING
from contextplane.trust.merkle_log import LogEntry
from tests.support.cases import cases
from tests.support.forged_log import forge_log
from tests.unit.registry.backdating import slipped_in
from tests.unit.registry.tampering import Stolen, copied
from tests.unit.registry.world import ISSUER, ORIGIN, STORE, Registry
from tests.unit.trust.world import CHECK, key_of

OLD_VERSION, NEW_VERSION = "registry/version/refunds@1.0.0", "registry/version/refunds@1.0.1"
PINS = "registry/pins/prod/refunds"
OLD_ARTIFACT, NEW_ARTIFACT = (f"registry/artifact/{Digest.of(data).hex}" for data in (b"one", b"two"))


class AuditedRegistry:
    """A registry, the checkpoint that an auditor kept of it, and everything that came after that."""

    def __init__(self, path: Path) -> None:
        registry = Registry(path=str(path))
        registry.publish(b"one")
        self.kept = registry.pin("prod", "refunds@1.0.0", b"one").newest
        registry.publish(b"two", "refunds@1.0.1")
        registry.pin("prod", "refunds@1.0.1", b"two")
        self.newest = registry.on_version("pub", "refunds@1.0.0", Deprecated()).newest
        self.later = replace(registry.now, seconds=registry.now.seconds + 60)
        registry.catalog.close()
        self.path = path

    def copy(self, folder: Path) -> "Copy":
        copied(self.path, folder / "catalog.db")
        return Copy(folder / "catalog.db", self)


class Copy(Stolen):
    """A copy of it, to be changed and verified."""

    def __init__(self, path: Path, original: AuditedRegistry) -> None:
        super().__init__(path)
        self.original = original

    def audited_since(self, note: bytes | None = None, seen: Checkpoint | None = None) -> AuditResult:
        note = self.original.kept.note if note is None else note
        with closing(SqliteCatalog.open(str(self.path), STORE)) as catalog, catalog.read() as view:
            return audit_since(note, AuditInputs(view=view, known=TrustedKeys(origin=ORIGIN), check=CHECK, seen=seen))

    def forge(self, subject: str, change: Published | EnvironmentOpened | Deprecated, by: str) -> None:
        """Slip in an event that its signer may not make."""
        with closing(SqliteCatalog.open(str(self.path), STORE)) as catalog:
            with catalog.read() as view:
                before = list(view.streams.read(subject))
                event = RegistryEvent(
                    subject=subject,
                    seq=len(before) + 1,
                    previous=Digest.of(before[-1].body).hex if before else "",
                    entry=view.streams.head(LOG),
                    keyring=view.streams.head(KEYRING),
                    at=str(self.original.later),
                    reason="because I can",
                    change=change,
                    origin=ORIGIN,
                )
            slipped_in(catalog, event, by=by, until=self.original.later)

    def drop_end(self, stream: str) -> None:
        """Sign the ends of streams without this one, which is cut."""
        self.cut(stream)
        with closing(SqliteCatalog.open(str(self.path), STORE)) as catalog, catalog.write() as tx:
            forge_log(tx, [], signer=key_of("ops"), at=self.original.later, origin=ORIGIN)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> AuditedRegistry:
    return AuditedRegistry(tmp_path_factory.mktemp("registry") / "catalog.db")


@pytest.fixture
def copy(original: AuditedRegistry, tmp_path: Path) -> Copy:
    return original.copy(tmp_path)


def places(result: AuditResult) -> set[tuple[str, str]]:
    return {(problem.code, problem.at) for problem in result.problems}


def test_what_is_new_is_counted_and_sound(copy: Copy) -> None:
    result = copy.audited_since()
    whole = copy.audited()
    assert result.sound, result.problems
    assert result.since == copy.original.kept.checkpoint
    assert result.since is not None
    assert result.entries == whole.entries - result.since.size
    assert (result.newest, result.subjects) == (whole.newest, 4)


def test_nothing_is_new_since_the_newest(copy: Copy) -> None:
    result = copy.audited_since(copy.original.newest.note)
    assert (result.sound, result.entries, result.subjects, result.checkpoints) == (True, 0, 0, 0)


TAKEN = Published(
    digest=str(Digest.of(b"one")),
    kind="context_pack",
    issuer=ISSUER,
    envelope=str(Digest.of(b"envelope of one")),
    report=str(Digest.of(b"report of one")),
    golden="not_run",
    after="",
)

DAMAGE: dict[str, Callable[[Copy], None]] = {
    "an event is cut": lambda copy: copy.cut(PINS),
    "an event is reworded": lambda copy: copy.reword(NEW_VERSION, 1, b"as it should be", b"as it shall be."),
    "an entry is no entry": lambda copy: copy.put(LOG, copy.original.kept.checkpoint.size + 2, b"{}"),
    "an entry is cut": lambda copy: copy.cut(LOG),
    "two entries are swapped": lambda copy: copy.put(LOG, 25, copy.body(LOG, 26)),
    "a node is another": lambda copy: copy.put("tree/registry/00", 25, copy.body("tree/registry/00", 3)),
    "a checkpoint is cut": lambda copy: copy.cut(CHECKPOINTS),
    "a checkpoint is another": lambda copy: copy.put(CHECKPOINTS, 20, copy.body(CHECKPOINTS, 2)),
    "a checkpoint is a copy": lambda copy: copy.put(CHECKPOINTS, 20, copy.body(CHECKPOINTS, 19)),
    "an event is added": lambda copy: copy.add(NEW_VERSION, "deprecated", copy.body(OLD_VERSION, 2)),
    "a reviewer opens an environment": lambda copy: copy.forge(environment_stream("dev"), EnvironmentOpened(), "sec"),
    "an operator deprecates": lambda copy: copy.forge(NEW_VERSION, Deprecated(), "ops"),
    "a version is published anew": lambda copy: copy.forge("registry/version/refunds@2.0.0", TAKEN, "pub"),
}


OF_THE_LOG = {"an entry is no entry", "two entries are swapped"}


@cases("name", DAMAGE)
def test_damage_to_what_is_new_is_reported_as_by_a_full_audit(
    original: AuditedRegistry, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    copy = original.copy(tmp_path_factory.mktemp("copy"))
    DAMAGE[name](copy)
    whole = copy.audited(seen=original.kept.checkpoint)
    assert not whole.sound
    recent = places(copy.audited_since())
    assert recent
    assert recent <= places(whole)
    if name in OF_THE_LOG:  # what hangs on it is not reported again
        return
    # What the same damage does to nodes and streams without a new entry is left to a full audit.
    assert {code for code, _ in places(whole) - recent} <= {
        "registry_heads_damaged",
        "registry_stream_cut",
        "tree_damaged",
    }


def test_an_old_event_of_a_stream_that_goes_on_is_verified_again(copy: Copy) -> None:
    copy.reword(PINS, 1, b"go", b"no")
    assert ("registry_signer_untrusted", f"{PINS}@2") in places(copy.audited_since())


@cases("seq", (1, 50))
def test_a_void_entry_does_not_say_where_a_stream_was(tmp_path: Path, seq: int) -> None:
    """Events after it count as in a full audit."""
    registry = Registry(path=str(tmp_path / f"{seq}.db"))
    registry.publish(b"one")
    kept = registry.pin("prod", "refunds@1.0.0", b"one").newest
    with registry.catalog.write() as tx:
        void = [LogEntry(event="0" * 64, seq=seq, stream=name, previous="1" * 64) for name in (OLD_VERSION, PINS)]
        forge_log(tx, void, signer=key_of("author"), at=registry.now, origin=ORIGIN)
    registry.on_version("pub", "refunds@1.0.0", Deprecated())
    registry.publish(b"two", "refunds@1.0.1")
    registry.pin("prod", "refunds@1.0.1", b"two")
    with registry.catalog.read() as view:
        result = audit_since(kept.note, AuditInputs(view=view, known=TrustedKeys(origin=ORIGIN), check=CHECK))
    assert [(problem.code, problem.at, problem.logged) for problem in result.problems] == [
        ("log_rewritten", f"{OLD_VERSION}@{seq}", True),
        ("log_rewritten", f"{PINS}@{seq}", True),
    ]


def test_ends_of_streams_that_leave_something_out_are_found(copy: Copy) -> None:
    copy.drop_end(OLD_VERSION)
    codes = {problem.code for problem in copy.audited_since().problems}
    assert {"registry_heads_rewritten", "registry_stream_cut"} <= codes


def test_a_log_that_was_rewritten_before_the_checkpoint_is_found_by_its_nodes(copy: Copy) -> None:
    size = copy.original.kept.checkpoint.size
    level, index = max((n, (size >> n)) for n in range(8) if size >> n & 1)
    copy.put(f"tree/registry/{level:02d}", index, b'"' + b"0" * 64 + b'"')
    assert "log_rewritten" in {problem.code for problem in copy.audited_since().problems}


def test_an_old_copy_does_not_continue_the_checkpoint(copy: Copy) -> None:
    result = copy.audited_since(copy.original.newest.note)
    assert result.sound
    copy.cut(CHECKPOINTS)
    assert ("checkpoint_missing", CHECKPOINTS) in places(copy.audited_since(copy.original.newest.note))
    copy.cut(LOG)
    result = copy.audited_since(copy.original.newest.note)
    assert places(result) == {("checkpoint_missing", CHECKPOINTS), ("log_rolled_back", LOG)}
    assert result.newest is None


def test_events_that_nothing_new_depends_on_are_not_read(copy: Copy) -> None:
    copy.reword(OLD_ARTIFACT, 1, b"as it should be", b"as it shall be.")
    assert not copy.audited().sound
    assert copy.audited_since().sound


def test_a_note_that_no_key_of_the_log_signed_is_refused(copy: Copy) -> None:
    kept = copy.original.kept
    with pytest.raises(NoteUnsigned):
        copy.audited_since(signed_checkpoint(kept.checkpoint, key_of("mallory")))
    with pytest.raises(CheckpointInvalid, match="first format"):
        copy.audited_since(signed_checkpoint(replace(kept.checkpoint, keyring=None), key_of("root")))
    with pytest.raises(CheckpointInvalid):
        copy.audited_since(b"\xff not a note")
