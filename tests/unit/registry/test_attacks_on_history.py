"""Whoever has the catalog's file and no key hides, changes and brings back nothing unnoticed. Each has its code."""

from collections.abc import Callable
from pathlib import Path

import pytest

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, PackRef
from contextplane.registry.events import Published, Revoked
from contextplane.registry.log import REGISTRY_LOG
from contextplane.registry.reader import RegistryReader
from contextplane.registry.streams import CHECKPOINTS, LOG
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import follow_keyring
from tests.unit.registry.tampering import Stolen, copied, stolen
from tests.unit.registry.world import ISSUER, ORIGIN, Registry
from tests.unit.trust.world import CHECK, key_of, revoke

ONE, TWO = PackRef.parse("refunds@1.0.0"), PackRef.parse("refunds@2.0.0")
FIRST, SECOND = "registry/version/refunds@1.0.0", "registry/version/refunds@2.0.0"
PINS = "registry/pins/prod/refunds"
ROOT = "registry/heads/"


class Past:
    """A registry with a past: what a client saw of it on the way, and a copy from before a revocation."""

    def __init__(self, folder: Path) -> None:
        self.now, self.earlier = folder / "now.db", folder / "earlier.db"
        registry = Registry(path=str(self.now))
        registry.publish(b"one", str(ONE))
        registry.publish(b"two", str(TWO))
        registry.pin("prod", str(ONE), b"one")
        copied(self.now, self.earlier)
        self.fork_at = registry.seconds
        registry.pin("prod", str(TWO), b"two")
        registry.on_version("pub", str(ONE), Revoked())
        self.seconds = registry.seconds
        with registry.catalog.read() as view:
            self.known = follow_keyring(view.streams, TrustedKeys(origin=ORIGIN), CHECK)
        with registry.reading() as reader:
            status = REGISTRY_LOG.newest_checkpoint(reader.streams, reader.keyrings, CHECK, ORIGIN)
        assert status is not None
        self.seen = status.checkpoint
        registry.catalog.close()


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(tmp_path_factory.mktemp("past"))


Act = Callable[[RegistryReader], object]


def read_first(reader: RegistryReader) -> object:
    return reader.version(ONE)


def read_pins(reader: RegistryReader) -> object:
    return reader.pins("prod", "refunds")


def nothing(reader: RegistryReader) -> object:
    return reader


def flipped(there: Stolen, stream: str, seq: int) -> None:
    body = there.body(stream, seq)
    there.put(stream, seq, body[:-10] + bytes([body[-10] ^ 1]) + body[-9:])


def cut_and_fitted(there: Stolen) -> None:
    there.cut(FIRST)
    there.run("UPDATE mark SET value = replace(value, char(10) || '2 ', char(10) || '1 ')")


ATTACKS: dict[str, tuple[Callable[[Stolen], object], Act, str]] = {
    "a revocation cut off its version": (lambda s: s.cut(FIRST), read_first, "registry_stream_cut"),
    "the newest pin cut off": (lambda s: s.cut(PINS), read_pins, "registry_stream_cut"),
    "all pins of an environment taken away": (lambda s: s.cut(PINS, 9), read_pins, "registry_stream_cut"),
    "a version taken away": (lambda s: s.cut(FIRST, 9), read_first, "registry_stream_cut"),
    "an old pin put at the end again": (
        lambda s: s.add(PINS, "pinned", s.body(PINS, 1)),
        read_pins,
        "registry_stream_cut",
    ),
    "a revocation reworded at the same length": (
        lambda s: s.reword(FIRST, 2, b"as it should be", b"as it could be!"),
        read_first,
        "registry_signer_untrusted",
    ),
    "a revocation made a deprecation": (
        lambda s: s.run("UPDATE event SET kind = 'deprecated' WHERE stream = ? AND seq = 2", FIRST),
        read_first,
        "registry_event_invalid",
    ),
    "the event of another version in its place": (
        lambda s: s.put(FIRST, 1, s.body(SECOND, 1)),
        read_first,
        "registry_event_invalid",
    ),
    "entries cut off the log": (lambda s: s.cut(LOG), nothing, "log_truncated"),
    "leaves cut off the tree": (lambda s: s.cut("tree/registry/00"), nothing, "log_truncated"),
    "an entry added to the log": (lambda s: s.add(LOG, "entry", s.body(LOG, 1)), nothing, "log_rewritten"),
    "a node of the tree changed": (lambda s: flipped(s, "tree/registry/04", 1), nothing, "log_rewritten"),
    "a node of the tree that is no hash": (lambda s: s.put("tree/registry/04", 1, b'""'), nothing, "tree_damaged"),
    "the newest checkpoint taken away": (lambda s: s.cut(CHECKPOINTS), nothing, "log_rewritten"),
    "all checkpoints taken away": (lambda s: s.cut(CHECKPOINTS, 99), nothing, "checkpoint_missing"),
    "a checkpoint made to look fresh": (
        lambda s: s.put(CHECKPOINTS, 27, s.body(CHECKPOINTS, 27).replace(b"2030-02-01", b"2030-02-02")),
        nothing,
        "note_unsigned",
    ),
    "a checkpoint that is no note": (lambda s: s.put(CHECKPOINTS, 27, b'"x"'), nothing, "checkpoint_invalid"),
    "an old checkpoint shown as the newest": (
        lambda s: s.put(CHECKPOINTS, 27, s.body(CHECKPOINTS, 26)),
        nothing,
        "log_rewritten",
    ),
    "the tree of ends taken away": (
        lambda s: s.run("DELETE FROM mark WHERE name LIKE ?", f"{ROOT}%"),
        read_first,
        "registry_heads_damaged",
    ),
    "the tree of ends changed to fit a cut stream": (
        cut_and_fitted,
        read_first,
        "registry_heads_damaged",
    ),
    "the keyring rolled back": (lambda s: s.cut("trust/keyring"), nothing, "keyring_rolled_back"),
    "the keyring's last change exchanged": (
        lambda s: s.put("trust/keyring", 8, s.body("trust/keyring", 7)),
        nothing,
        "keyring_rewritten",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_was_done_to_the_catalog_is_refused_by_who_reads_it(past: Past, tmp_path: Path, attack: str) -> None:
    there = stolen(past.now, tmp_path)
    act, read, expected = ATTACKS[attack]
    with there.opened(past.seen, past.known) as reader:
        read(reader)
    act(there)
    with pytest.raises(ContextPlaneError) as refused, there.opened(past.seen, past.known) as reader:
        read(reader)
    assert (refused.value.code, refused.value.family) == (expected, "untrusted")


@pytest.mark.parametrize("attack", ATTACKS)
def test_full_verification_finds_it_too(past: Past, tmp_path: Path, attack: str) -> None:
    there = stolen(past.now, tmp_path)
    assert there.audited(past.seen, past.known).sound
    ATTACKS[attack][0](there)
    assert not there.audited(past.seen, past.known).sound


def test_an_older_copy_of_everything_is_noticed_by_who_saw_more(past: Past, tmp_path: Path) -> None:
    there = stolen(past.earlier, tmp_path)
    with there.opened() as reader:  # whoever sees it for the first time cannot know
        assert reader.version(ONE).stage == "published"
    with pytest.raises(ContextPlaneError) as refused, there.opened(past.seen, past.known):
        pass
    assert refused.value.code == "log_rolled_back"
    assert [problem.code for problem in there.audited(past.seen, past.known).problems] == ["log_rolled_back"]


@pytest.mark.parametrize(("more", "expected"), [(0, "log_rolled_back"), (1, "log_forked"), (2, "log_rewritten")])
def test_a_history_that_went_another_way_is_no_continuation(
    past: Past, tmp_path: Path, more: int, expected: str
) -> None:
    there = stolen(past.earlier, tmp_path)
    with there.registry(past.fork_at + 60) as registry:
        for n in range(more + 1):
            registry.pin("dev", str(ONE if n % 2 else TWO), b"one" if n % 2 else b"two")
    with pytest.raises(ContextPlaneError) as refused, there.opened(past.seen, past.known):
        pass
    assert refused.value.code == expected
    assert there.audited(past.seen, past.known).problems[0].code == expected
    assert there.audited().sound


def test_an_emptied_registry_is_rolled_back(past: Past, tmp_path: Path) -> None:
    there = stolen(past.now, tmp_path)
    there.run("DELETE FROM event WHERE stream LIKE 'registry/%' OR stream LIKE 'tree/%'")
    with pytest.raises(ContextPlaneError) as refused, there.opened(past.seen, past.known):
        pass
    assert refused.value.code == "checkpoint_missing"
    assert "log_rolled_back" in {problem.code for problem in there.audited(past.seen, past.known).problems}


def test_nothing_is_appended_to_a_stream_that_was_cut_so_that_a_taken_version_stays_taken(
    past: Past, tmp_path: Path
) -> None:
    there = stolen(past.now, tmp_path)
    there.cut(FIRST, 9)
    with there.registry(past.seconds) as registry, pytest.raises(ContextPlaneError) as refused:
        registry.publish(b"other bytes", str(ONE))
    assert refused.value.code == "registry_stream_cut"


def test_a_publication_that_skipped_the_reviews_is_found_although_its_publisher_signed_it(tmp_path: Path) -> None:
    registry = Registry(path=str(tmp_path / "catalog.db"))
    registry.draft(b"unseen")
    change = Published(
        digest=str(Digest.of(b"unseen")),
        kind="context_pack",
        issuer=ISSUER,
        envelope=str(Digest.of(b"envelope")),
        report=str(Digest.of(b"report")),
        golden="not_run",
        after="",
    )
    registry.on_version("pub", str(ONE), change, b"envelope", b"report")
    registry.catalog.close()
    (problem,) = Stolen(tmp_path / "catalog.db").audited().problems
    assert (problem.code, problem.at) == ("lifecycle_transition_refused", f"{FIRST}@1")


def test_a_key_that_is_revoked_signs_no_checkpoint_that_is_believed(past: Past, tmp_path: Path) -> None:
    there = stolen(past.now, tmp_path)
    with there.registry(past.seconds) as registry:
        at = registry.now
        registry.keyring_change(revoke(key_of("pub"), at))
    with pytest.raises(ContextPlaneError) as refused, there.opened(past.seen):
        pass
    assert refused.value.code == "note_unsigned"
    result = there.audited(past.seen)
    assert ([problem.code for problem in result.problems], result.renewable) == (["note_unsigned"], True)


def test_an_old_keyring_beside_the_newest_registry_is_noticed_by_newcomers(past: Past, tmp_path: Path) -> None:
    there = stolen(past.now, tmp_path)
    there.cut("trust/keyring")
    with pytest.raises(ContextPlaneError) as refused, there.opened():
        pass
    assert refused.value.code == "keyring_rolled_back"
