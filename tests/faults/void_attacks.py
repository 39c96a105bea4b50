"""What a key without the right puts into the log for good. It counts for nothing, and honest people go on.

Nobody can take an entry out of the log again, and no copy is without it. So after each of these deeds every reader sees
what was there before, an audit names the deed, everybody with a right still acts, and the log can be signed.
"""

from contextplane.model.ids import Digest
from contextplane.model.timestamp import Timestamp
from contextplane.registry.events import (
    Change,
    Deprecated,
    DraftListed,
    EnvironmentOpened,
    NameClaimed,
    Pin,
    Pinned,
    Pins,
    Published,
    Revoked,
    Unpinned,
    Withdrawn,
)
from contextplane.registry.streams import environment_stream, names_stream, pins_stream
from contextplane.trust.clock import next_event_time
from contextplane.trust.merkle_log import LogEntry, entry_body
from tests.faults.registry_attacks import (
    AUDIT,
    BEFORE,
    COMPILE,
    COMPILE_BEFORE,
    NEXT,
    OTHER_ISSUER,
    OWNERS,
    PIN_STREAM,
    PINNED,
    READS,
    SIGNED_NEXT,
    VERSION_STREAM,
    Attack,
    Check,
    Scene,
    Step,
    forget,
    note_answer,
    note_time,
    owners_revoke,
    record,
    refuses,
    revokes_from_noted_time,
    same,
    somebody_reads,
    succeeds,
    trust,
)
from tests.support.registry_forger import Forger
from tests.support.registry_team import LOG_ROLE, PACK_ID
from tests.unit.registry.desk import NARROWER, version
from tests.unit.trust.world import key_of

__all__ = ["VOID_ATTACKS"]

OBJECTS = (b"no artifact", b"no envelope", b"no report")
DIGEST, ENVELOPE, REPORT = (str(Digest.of(data)) for data in OBJECTS)
SIGN = "root: verify --registry --sign"


def append(person: str, stream: str, change: Change, *, keyring: int = 0) -> Step:
    """Append an event, whether or not it is allowed. `keyring`: how many changes too old the one is that it names."""
    return lambda scene: Forger(scene.team, person).append_event(stream, change, keyring=keyring)


def append_bytes(person: str, stream: str, body: bytes) -> Step:
    return lambda scene: Forger(scene.team, person).append_copy(stream, "pinned", body)


def append_leaves(person: str, *bodies: bytes) -> Step:
    return lambda scene: Forger(scene.team, person).append_leaves(*bodies)


def entry_of(stream: str, *, event: bytes = b"") -> bytes:
    """An entry of the log for the first event of a stream."""
    return entry_body(LogEntry(event=Digest.of(event).hex, seq=1, stream=stream, previous=""))


def repeat_last_leaf(person: str) -> Step:
    """The last entry of the log, which everybody has seen, is put into it once more."""

    def step(scene: Scene) -> None:
        last = scene.rows.ask("SELECT max(seq) FROM event WHERE stream = ?", "registry/log")[0][0]
        Forger(scene.team, person).append_leaves(scene.body("registry/log", last))

    return step


def append_deep_pins(person: str) -> Step:
    """Pins of environments and ids each of which begins with the last one, with bytes that are no events."""

    def step(scene: Scene) -> None:
        names = [pins_stream("a" * length, "a") for length in range(1, 114)]
        names += [pins_stream("a" * 113, "a" * length) for length in range(2, 129)]  # no catalog has longer names
        Forger(scene.team, person).append_firsts(names, b"{}")

    return step


def forge_withdrawal(person: str) -> Step:
    """Withdraw the noted draft."""

    def step(scene: Scene) -> None:
        stream = f"registry/artifact/{scene.notes['draft'].removeprefix('sha256:')}"
        Forger(scene.team, person).append_event(stream, Withdrawn())

    return step


def publication(issuer: str, *, kind: str = "context_pack") -> Published:
    return Published(
        digest=DIGEST,
        kind=kind,  # type: ignore[arg-type]
        issuer=issuer,
        envelope=ENVELOPE,
        report=REPORT,
        golden="passed",
        after="",
    )


def store_objects(scene: Scene) -> None:
    for data in OBJECTS:
        Forger(scene.team, "gops").store(data)


def pin_of(name: str, number: str, by: str, *, named: str = PACK_ID) -> Pinned:
    """A pin as its event carries it: `named` is what the event says that it pins."""
    pin = Pin(
        id=name,
        version=number,
        digest=DIGEST,
        kind="context_pack",
        entry=1,
        at="2026-01-01T00:00:00Z",
        by=key_of(by).public_key.key_id,
    )
    return Pinned(kind="context_pack", id=named, version=number, digest=DIGEST, pins=Pins(base=pin))


def pin_with_earlier_time(person: str) -> Step:
    """Pin a version in production by a stolen key, with a time right after the last change of the keyring."""

    def step(scene: Scene) -> None:
        last = Timestamp.parse(scene.team.answer(": keys list")["as_of"])
        at, key_id = next_event_time(last, last), key_of(person).public_key.key_id
        number, digest = BEFORE.rpartition("@")[2], scene.team.answer(f": show {BEFORE}")["digest"]
        entry = scene.rows.ask("SELECT max(seq) FROM event WHERE stream = ?", "registry/log")[0][0]
        pin = Pin(id=PACK_ID, version=number, digest=digest, kind="context_pack", entry=entry, at=str(at), by=key_id)
        change = Pinned(kind="context_pack", id=PACK_ID, version=number, digest=digest, pins=Pins(base=pin))
        Forger(scene.team, person).append_event(PIN_STREAM, change, at, hidden=True)

    return step


def release(number: str) -> Check:
    return lambda scene: _assert_released(scene, number)


def _assert_released(scene: Scene, number: str) -> None:
    scene.team.release(version(number, NARROWER))


def is_void(code: str, *acts: str) -> tuple[Check, ...]:
    """Everything reads as before, also for newcomers; the audit says so; acts and signatures go on."""
    return (
        same(COMPILE),
        *(succeeds(step) for step in READS),
        somebody_reads(*READS, who="somebody"),
        refuses(AUDIT, frozenset({code})),
        succeeds(SIGN),
        *(succeeds(act) for act in acts),
        succeeds(f"ops: pin prod {BEFORE}"),
        succeeds(f"ops: rollback prod {PACK_ID} --reason 'not that one'"),
        succeeds(SIGN),
    )


def void(  # noqa: PLR0913  what an attack consists of
    name: str,
    attacker: str,
    deed: tuple[Step, ...],
    code: str,
    *,
    story: tuple[Step, ...] = (),
    acts: tuple[str, ...] = (),
    checks: tuple[Check, ...] = (),
) -> Attack:
    return Attack(name, attacker, (*story, note_answer(COMPILE)), deed, (*is_void(code, *acts), *checks))


GLOBEX: tuple[Step, ...] = (trust("gops", "operator", "publisher", LOG_ROLE, issuer=OTHER_ISSUER), store_objects)
THING = "globex.thing"
CLAIM = NameClaimed(issuer=OTHER_ISSUER, kind="context_pack", tenant=OTHER_ISSUER)
OWN_VERSION: tuple[Step, ...] = (
    append("gops", names_stream(THING), CLAIM),
    append("gops", f"registry/version/{THING}@1.0.0", publication(OTHER_ISSUER)),
)
MISSING, INVALID, REWRITTEN = "registry_role_missing", "registry_event_invalid", "log_rewritten"
ODD_STREAMS = (
    "registry/version/garbage",
    f"registry/version/{PACK_ID}@1",
    "registry/artifact/zz",
    "registry/drafts/zz",
    "registry/names/!!",
    "registry/pins/prod",
    "registry/evil",
    "foo/bar",
)
UNKNOWN = frozenset({"version_not_found"})
DOUBTFUL = frozenset({"pin_doubtful"})
IN_STAGING = COMPILE_BEFORE.replace("prod", "staging")


def backdated(
    name: str,
    revoked: Check,
    *,
    story: tuple[Step, ...] = (),
    theft: tuple[Step, ...] = (),
    later: tuple[Step, ...] = (),
) -> Attack:
    """A thief pins with an earlier time. The owner revokes from the time of the theft, and nothing of it is left.

    `theft`: what is noted when it begins. `later`: what honest people do before it is known. What the holder of the key
    pinned before it stays.
    """
    checks = (
        refuses(COMPILE_BEFORE, DOUBTFUL),
        same(IN_STAGING),
        somebody_reads(IN_STAGING, AUDIT),
        lambda scene: refuses(COMPILE_BEFORE, DOUBTFUL)(Scene(scene.team.newcomer("somebody.state"))),
        succeeds(f"new: pin prod {PINNED}"),
        succeeds(COMPILE),
        succeeds(AUDIT),
    )
    return Attack(
        name,
        "K(operator), stolen",
        (
            trust("new", "operator", LOG_ROLE),
            *story,
            f"ops: pin staging {BEFORE}",
            record("other", "7.0.0"),
            note_answer(IN_STAGING),
            note_time,
        ),
        (*theft, pin_with_earlier_time("ops"), *later),
        (succeeds(COMPILE_BEFORE), revoked, succeeds(SIGN), *checks),
    )


def note_later_time(scene: Scene) -> None:
    """Note a moment after the one that was noted: the theft is later than the time of any checkpoint."""
    noted = Timestamp.parse(scene.notes["time"])
    scene.notes["time"] = str(next_event_time(noted, noted))


def revokes_until_others_confirm(person: str) -> Check:
    """The owner revokes from the time of the theft, is told of what nobody confirms, and revokes that as well."""

    def check(scene: Scene) -> None:
        revoke = f"root: keys revoke {scene.team.public_file(person)} --reason stolen --from"
        result = scene.team.run(f"{revoke} {scene.notes['time']}")
        assert result.status == 0, result
        assert "no other key confirms when" in result.err, result
        scene.team.do(f"{revoke} {result.err.split()[-1]}")

    return check


HONEST_ACT: tuple[Step, ...] = (record("draft", "1.2.0", NARROWER),)

VOID_ATTACKS = (
    void(
        "a key without a right unpins production",
        "K(log)",
        (append("author", PIN_STREAM, Unpinned(id=PACK_ID, version="1.1.0", pins=Pins())),),
        MISSING,
    ),
    void(
        "a key without a right revokes what production pins",
        "K(log)",
        (append("author", VERSION_STREAM, Revoked()),),
        MISSING,
    ),
    void(
        "a reviewer opens a protected environment",
        "K(security)",
        (append("sec", environment_stream("prod"), EnvironmentOpened()),),
        MISSING,
    ),
    void(
        "a key without a right puts a draft into the stream of a protected environment",
        "K(log)",
        (append("author", environment_stream("prod"), DraftListed(digest=DIGEST)),),
        "registry_event_invalid",
    ),
    void(
        "an operator of another tenant pins production by a version of their own",
        "K(operator) of another issuer",
        (*OWN_VERSION, append("gops", PIN_STREAM, pin_of(PACK_ID, "1.0.0", "gops", named=THING))),
        MISSING,
        story=GLOBEX,
    ),
    void(
        "an operator of another tenant pins a version of their own in the place of another's",
        "K(operator) of another issuer",
        (*OWN_VERSION, append("gops", PIN_STREAM, pin_of(THING, "1.0.0", "gops", named=THING))),
        MISSING,
        story=GLOBEX,
    ),
    void(
        "another issuer publishes under an id, and pins that",
        "K(operator, publisher) of another issuer",
        (
            append("gops", f"registry/version/{PACK_ID}@9.9.9", publication(OTHER_ISSUER)),
            append("gops", PIN_STREAM, pin_of(PACK_ID, "9.9.9", "gops")),
        ),
        "publish_name_taken",
        story=GLOBEX,
        checks=(refuses(f": verify {PACK_ID}@9.9.9", UNKNOWN), refuses(f"ops: pin prod {PACK_ID}@9.9.9", UNKNOWN)),
    ),
    void(
        "another issuer claims an id that has an owner",
        "K(publisher) of another issuer",
        (
            append(
                "gops",
                names_stream(PACK_ID),
                NameClaimed(issuer=OTHER_ISSUER, kind="context_pack", tenant=OTHER_ISSUER),
            ),
            append("gops", PIN_STREAM, pin_of(PACK_ID, "1.0.0", "gops")),
        ),
        "publish_name_taken",
        story=GLOBEX,
    ),
    void(
        "another issuer takes the next number of a pack",
        "K(publisher) of another issuer",
        (append("gops", f"registry/version/{PACK_ID}@1.2.0", publication(OTHER_ISSUER)),),
        "publish_name_taken",
        story=GLOBEX,
        checks=(release("1.2.0"), succeeds(f"ops: pin prod {PACK_ID}@1.2.0")),
    ),
    void(
        "a key without a right squats the next number of a pack",
        "K(log)",
        (append("author", f"registry/version/{PACK_ID}@1.2.0", Deprecated()),),
        MISSING,
        checks=(release("1.2.0"),),
    ),
    void(
        "a role that was taken away is used under the keyring of before",
        "K(log), an operator until then",
        (append("former", PIN_STREAM, Unpinned(id=PACK_ID, version="1.1.0", pins=Pins()), keyring=1),),
        INVALID,
        story=(trust("former", "operator", LOG_ROLE), trust("former", LOG_ROLE)),
    ),
    void(
        "a role that was taken away is used under the keyring of before, for somebody who never read the registry",
        "K(log), an operator until then",
        (append("former", PIN_STREAM, Unpinned(id=PACK_ID, version="1.1.0", pins=Pins()), keyring=1), forget),
        INVALID,
        story=(trust("former", "operator", LOG_ROLE), trust("former", LOG_ROLE)),
    ),
    void(
        "bytes that are no event are put at the end of the pins",
        "K(log)",
        (append_bytes("author", PIN_STREAM, b"{}"),),
        "envelope_invalid",
    ),
    void(
        "bytes that are no text are put at the end of a version",
        "K(log)",
        (append_bytes("author", VERSION_STREAM, b"\xff\xfe"),),
        "envelope_invalid",
    ),
    void(
        "a leaf that is no entry is put into the log",
        "K(log)",
        (append_leaves("author", b"{}", b"\xff", b""),),
        "log_rewritten",
    ),
    void(
        "an event is put into a stream whose name is none of pins",
        "K(log)",
        (append("author", "registry/pins/prod/!!", Unpinned(id=PACK_ID, version="1.1.0", pins=Pins())),),
        REWRITTEN,
        checks=(succeeds(f"pub: revoke {BEFORE} --reason leak"), succeeds(f"ops: unpin prod {PACK_ID} --reason x")),
    ),
    void(
        "events are put into streams of nothing",
        "K(log)",
        tuple(append("author", name, Revoked()) for name in ODD_STREAMS),
        REWRITTEN,
        checks=(release("1.2.0"),),
    ),
    void(
        "entries of streams that are not there, and of none, are put into the log",
        "K(log)",
        (append_leaves("author", *map(entry_of, ODD_STREAMS), b'{"event":"%s","previous":"","seq":1}' % (b"0" * 64)),),
        REWRITTEN,
    ),
    void(
        "each of many entries has a stream whose name begins with that of the last one",
        "K(log)",
        (append_leaves("author", *(entry_of("a" * length) for length in range(1, 601))),),
        REWRITTEN,
    ),
    void(
        "the names of pins are as deep as they can be",
        "K(log)",
        (append_deep_pins("author"),),
        "envelope_invalid",
    ),
    void(
        "entries that follow nothing are put into the log",
        "K(log)",
        (
            append_leaves(
                "author",
                b'{"event":"%s","previous":"","seq":9,"stream":"%s"}' % (b"0" * 64, VERSION_STREAM.encode()),
                b'{"event":"%s","previous":"%s","seq":1,"stream":"%s"}' % (b"0" * 64, b"1" * 64, PIN_STREAM.encode()),
                b'{"event":"%s","seq":2,"stream":"trust/keyring"}' % (b"0" * 64),
            ),
        ),
        "log_rewritten",
    ),
    void(
        "the last entry of the log is repeated",
        "K(log)",
        (repeat_last_leaf("author"),),
        "log_rewritten",
    ),
    void(
        "an entry of the first format takes the first event of a stream",
        "K(log)",
        (
            append_leaves(
                "author",
                b'{"event":"%s","seq":1,"stream":"registry/version/%s@1.2.0"}' % (b"0" * 64, PACK_ID.encode()),
            ),
        ),
        "log_rewritten",
        checks=(release("1.2.0"),),
    ),
    void(
        "somebody else forges the withdrawal of a draft",
        "K(security)",
        (forge_withdrawal("sec"),),
        MISSING,
        story=SIGNED_NEXT,
        acts=(f"pub: publish {NEXT}",),
    ),
    backdated(
        "a stolen key pins with an earlier time, under a checkpoint with an earlier time",
        revokes_until_others_confirm("ops"),
        theft=(note_later_time,),
        later=HONEST_ACT,
    ),
    backdated("a stolen key pins with an earlier time", revokes_from_noted_time("ops")),
    backdated(
        "a stolen key pins with an earlier time, and others act afterwards",
        revokes_from_noted_time("ops"),
        later=HONEST_ACT,
    ),
    backdated(
        "a stolen key pins with an earlier time, and several owners revoke it",
        owners_revoke("ops"),
        story=OWNERS,
        later=HONEST_ACT,
    ),
)
