"""Attacks on a registry as data: who attacks, what happened before, what the attacker does, and what must come of it.

`W` can write to `.ctx` and has no key. `K(role)` can do the same, and has one trusted key with that role. Honest people
and attackers use the command `ctx`; attackers edit files and rows besides, and sign what they like with their key
(`Forger`).

A step is a text, which is run as a command (`tests.support.registry_team`), or a function of the scene. A check runs
after the attack. It is a command that must refuse with one of some codes, or one whose answer must be what it was.
"""

import base64
import json
import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from contextplane.authoring.gates.table import Report
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.registry.events import Approval, Drafted, EnvironmentOpened, Linted, Published
from contextplane.registry.reports import gates_report
from contextplane.trust.clock import next_event_time
from tests.support.catalog_rows import CatalogRows, open_rows
from tests.support.registry_forger import Forger
from tests.support.registry_tampering import put_tables_back, read_tables
from tests.support.registry_team import LOG_ROLE, PACK_ID, Team, error_code, trust_step
from tests.surfaces.commands import NOBODY, is_root
from tests.surfaces.keyrings import HUSH
from tests.unit.registry.desk import ISSUER, NARROWER, version
from tests.unit.trust.world import key_of

__all__ = ["ATTACKS", "Attack", "Scene", "prepare"]

PINNED = f"{PACK_ID}@1.1.0"
BEFORE = f"{PACK_ID}@1.0.0"
NEXT = f"{PACK_ID}@1.2.0"
OTHER_ISSUER = "tenant_globex"

COMPILE = f": compile {PINNED} --environment prod --request request-1.1.0.json --json"
COMPILE_BEFORE = f": compile {BEFORE} --environment prod --request request-1.0.0.json --json"
PACKS, SHOW, VERIFY = ": packs --json", f": show {PINNED} --json", f": verify {PINNED} --json"
FSCK, AUDIT = ": fsck --json", ": verify --registry --json"
PIN = f"ops: pin staging {BEFORE} --json"
READS = (COMPILE, PACKS, SHOW, VERIFY)

VERSION_STREAM = f"registry/version/{PINNED}"
PIN_STREAM = f"registry/pins/prod/{PACK_ID}"

UNSIGNED = frozenset({"note_unsigned"})
REWRITTEN = frozenset({"registry_heads_rewritten"})
CUT = frozenset({"registry_stream_cut"})
OLD_KEYRING = frozenset({"keyring_rolled_back", "checkpoint_before_keyring"})


class Scene:
    """A registry while it is attacked: its team, its rows, and what was noted on the way."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.notes: dict[str, Any] = {}

    @property
    def rows(self) -> CatalogRows:
        return open_rows(self.team.store, self.team.database_url)

    def play(self, *steps: "Step") -> None:
        for step in steps:
            if isinstance(step, str):
                self.team.do(step)
            else:
                step(self)

    def cut(self, stream: str, events: int = 1) -> None:
        """Remove the last events of a stream."""
        last = self.rows.ask("SELECT max(seq) FROM event WHERE stream = ?", stream)[0][0]
        assert self.rows.run("DELETE FROM event WHERE stream = ? AND seq > ?", stream, last - events) == events

    def body(self, stream: str, seq: int) -> bytes:
        return bytes(self.rows.ask("SELECT body FROM event WHERE stream = ? AND seq = ?", stream, seq)[0][0])


Step = str | Callable[[Scene], None]
Check = Callable[[Scene], None]


class Attack(NamedTuple):
    """An attack: `story` happens before it, `deed` is what the attacker does, `checks` must hold after it.

    `still_open`: why it succeeds today; an empty text if it does not.
    """

    name: str
    attacker: str
    story: tuple[Step, ...]
    deed: tuple[Step, ...]
    checks: tuple[Check, ...]
    still_open: str = ""


def prepare(team: Team) -> None:
    """The registry that every attack begins with: 1.0.0 and then 1.1.0 were pinned in prod."""
    team.found()
    team.request_for(BEFORE)
    team.request_for(PINNED)
    team.release(version("1.0.0"))
    team.release(version("1.1.0", NARROWER))
    team.do(f"ops: pin prod {BEFORE}", f"ops: pin prod {PINNED}")


# --- checks -----------------------------------------------------------------------------------------------------------


def refuses(step: str, codes: frozenset[str]) -> Check:
    """The command ends with one of these codes, as its error or as a problem that it lists."""

    def check(scene: Scene) -> None:
        result = scene.team.run(step)
        problems = _problem_codes(result.raw) if result.status else set()
        assert result.status, f"{step} succeeded: {result.out[:400]}"
        assert {error_code(result)} & codes or problems & codes, f"{step}: {result.err or result.out}"

    return check


def asks_first(step: str) -> Check:
    """The command wants to be confirmed, and there is no terminal to ask at."""

    def check(scene: Scene) -> None:
        for option in ((), ("--json",)):
            words = [word for word in scene.team.arguments(step) if word != "--yes"]
            result = scene.team.ctx(*words, *option)
            assert error_code(result) == "confirmation_needed", f"{step}: {result}"

    return check


def says(step: str, words: str) -> Check:
    """The command refuses, and says this."""

    def check(scene: Scene) -> None:
        result = scene.team.run(step)
        assert result.status, f"{step} succeeded: {result.out[:400]}"
        assert words in result.err, result.err

    return check


def refuse(steps: tuple[str, ...], codes: frozenset[str]) -> tuple[Check, ...]:
    return tuple(refuses(step, codes) for step in steps)


def finds_damage(step: str = FSCK) -> Check:
    """The command reports damage, whatever it calls it."""

    def check(scene: Scene) -> None:
        result = scene.team.run(step)
        assert result.status, f"{step} found nothing: {result.out[:400]}"

    return check


def answers(step: str, field: str, note: str, *, or_refuses: frozenset[str] = frozenset()) -> Check:
    """A field of the command's answer has the noted value; or the command refuses with one of these codes."""

    def check(scene: Scene) -> None:
        result = scene.team.run(f"{step} --json")
        if error_code(result) not in or_refuses:
            assert result.status == 0, result
            assert json.loads(result.raw)[field] == scene.notes[note]

    return check


def succeeds(step: str) -> Check:
    return lambda scene: scene.team.do(step)


def same(step: str) -> Check:
    """The command answers as it did before the attack (`note_answer`)."""

    def check(scene: Scene) -> None:
        assert scene.team.run(step).raw == scene.notes[step]

    return check


def is_trusted(key: str, *, trusted: bool) -> Check:
    def check(scene: Scene) -> None:
        listing = scene.team.answer(": keys list")
        ids = {entry["key_id"]: entry["state"] for issuer in listing["issuers"] for entry in issuer["keys"]}
        assert (ids.get(scene.notes[key]) == "valid") is trusted, listing

    return check


def _problem_codes(raw: bytes) -> set[str]:
    try:
        answer = json.loads(raw)
    except ValueError:
        return set()
    if not isinstance(answer, dict):
        return set()
    problems = [*answer.get("troubles", ()), *answer.get("problems", ())]
    listed = {(version["problem"] or "").partition(":")[0] for version in answer.get("versions", ())}
    return {problem["code"] for problem in problems if "code" in problem} | listed - {""}


# --- steps ------------------------------------------------------------------------------------------------------------


def cut(stream: str, events: int = 1) -> Step:
    return lambda scene: scene.cut(stream, events)


def sign_heads(person: str) -> Step:
    """Sign the ends of streams as they are, with one more entry."""
    return lambda scene: Forger(scene.team, person).sign_heads()


def note_answer(step: str) -> Step:
    def note(scene: Scene) -> None:
        result = scene.team.run(step)
        assert result.status == 0, result
        scene.notes[step] = result.raw

    return note


def record(name: str, number: str, *changes: dict[str, Any], by: str = "author") -> Step:
    """Record a draft, and note its digest."""

    def step(scene: Scene) -> None:
        scene.notes[name] = scene.team.record(version(number, *changes), by=by)["digest"]

    return step


def approve(name: str, *roles: str) -> Step:
    return lambda scene: scene.team.approve(scene.notes[name], *roles)


def with_digest(name: str, step: str) -> Step:
    """Run a step in which `DIGEST` stands for a noted digest."""
    return lambda scene: scene.team.do(step.replace("DIGEST", scene.notes[name]))


def trust(person: str, *roles: str, issuer: str = ISSUER) -> Step:
    return lambda scene: scene.team.do(trust_step(person, issuer, *roles, team=scene.team))


def forget(scene: Scene) -> None:
    """From here on, the client is one that reads this registry for the first time."""
    scene.team = scene.team.newcomer("newcomer.state")


def keep_copy(scene: Scene) -> None:
    scene.notes["tables"] = read_tables(scene.rows)
    shutil.copytree(scene.team.store, scene.team.folder.with_name("copy"), symlinks=True)


def put_copy_back(scene: Scene) -> None:
    shutil.rmtree(scene.team.store)
    shutil.move(scene.team.folder.with_name("copy"), scene.team.store)
    if scene.team.database_url is not None:
        put_tables_back(scene.rows, scene.notes["tables"])


def hide(prefix: str) -> Step:
    """Take the rows of streams away, and note them."""

    def step(scene: Scene) -> None:
        scene.notes["hidden"] = scene.rows.ask(
            "SELECT stream, seq, kind, body FROM event WHERE stream LIKE ?", f"{prefix}%"
        )
        assert scene.rows.run("DELETE FROM event WHERE stream LIKE ?", f"{prefix}%")

    return step


def show_again(scene: Scene) -> None:
    for row in scene.notes["hidden"]:
        scene.rows.run("INSERT INTO event (stream, seq, kind, body) VALUES (?, ?, ?, ?)", *row)


# --- 1: the ends of streams -------------------------------------------------------------------------------------------

REVOKED: tuple[Step, ...] = (f"pub: revoke {PINNED} --reason leak",)


def _heads_attacks() -> tuple[Attack, ...]:
    attacks = []
    for person, attacker, codes in (("guest", "K(no role)", UNSIGNED), ("author", "K(log)", REWRITTEN)):
        after = refuse((*READS, PIN), codes)
        attacks += [
            Attack(
                f"a revocation is removed and the ends are signed by {attacker}",
                attacker,
                REVOKED,
                (cut(VERSION_STREAM), sign_heads(person)),
                (*after, finds_damage(FSCK), finds_damage(AUDIT)),
            ),
            Attack(
                f"the newest pin is removed and the ends are signed by {attacker}",
                attacker,
                (),
                (cut(PIN_STREAM), sign_heads(person)),
                (*refuse((COMPILE, COMPILE_BEFORE, PACKS, PIN), codes), finds_damage(AUDIT)),
            ),
            Attack(
                f"a refresh is removed and the ends are signed by {attacker}",
                attacker,
                ("pub: refresh open ADAPTER_SCHEMA_UPDATED adp_orders --reason 'another API'",),
                (cut(VERSION_STREAM), sign_heads(person)),
                (*refuse((f"ops: pin staging {PINNED}", ": refresh list"), codes), finds_damage(AUDIT)),
            ),
            Attack(
                f"a rejection is removed and the ends are signed by {attacker}",
                attacker,
                (
                    record("draft", "1.2.0", NARROWER),
                    approve("draft", "architecture", "data", "evaluation", "security"),
                    with_digest("draft", "sec: review DIGEST --role security --reject --reason 'it leaks'"),
                ),
                (
                    lambda scene: scene.cut(f"registry/artifact/{scene.notes['draft'].removeprefix('sha256:')}"),
                    sign_heads(person),
                ),
                (*refuse((f"pub: sign {NEXT}",), codes), finds_damage(AUDIT)),
            ),
        ]
    attacks.append(
        Attack(
            "a revocation is removed and the ends are signed by K(no role), before somebody who never read it",
            "K(no role)",
            REVOKED,
            (cut(VERSION_STREAM), sign_heads("guest"), forget),
            refuse((*READS, PIN), UNSIGNED),
        )
    )
    return tuple(attacks)


# --- 2: drafts --------------------------------------------------------------------------------------------------------


def _draft_row(scene: Scene, name: str) -> str:
    return str(scene.notes[name]).removeprefix("sha256:")


def point_draft_elsewhere(scene: Scene) -> None:
    """The row of the draft of 1.2.0 names another document, which has another number."""
    good, evil = _draft_row(scene, "draft"), _draft_row(scene, "evil")
    prefix = f"registry/draft/{NEXT}/"
    assert scene.rows.run("UPDATE root SET name = ?, target = ? WHERE name = ?", prefix + evil, evil, prefix + good)


def remove_draft_row(scene: Scene) -> None:
    row = f"registry/draft/{NEXT}/{_draft_row(scene, 'second')}"
    assert scene.rows.run("DELETE FROM root WHERE name = ?", row)


REVIEW_NEXT = f"sec: review {NEXT} --role security --approve --reason 'as it should be'"

DRAFTS = (
    Attack(
        "the row of a draft names another draft, and four people approve something else",
        "W",
        (record("draft", "1.2.0", NARROWER), record("evil", "9.0.0")),
        (point_draft_elsewhere,),
        (
            answers(REVIEW_NEXT, "digest", "draft", or_refuses=frozenset({"artifact_recorded_otherwise"})),
            finds_damage(),
        ),
    ),
    Attack(
        "of two drafts with one name, the row of one is removed",
        "W",
        (record("draft", "1.2.0", NARROWER), record("second", "1.2.0", by="arch")),
        (remove_draft_row,),
        (refuses(REVIEW_NEXT, frozenset({"artifact_ambiguous"})),),
    ),
    Attack(
        "the row of a draft is removed",
        "W",
        (record("draft", "1.2.0", NARROWER), record("second", "1.2.0", by="arch")),
        (remove_draft_row,),
        (finds_damage(),),
    ),
)


# --- 3, 4: the keyring ------------------------------------------------------------------------------------------------


def _edit_memory(scene: Scene, edit: Callable[[dict[str, Any]], None]) -> None:
    path = scene.team.store / "keys" / "keyring.json"
    memory = json.loads(path.read_bytes()) if path.exists() else scene.notes.get("memory", {"issuers": []})
    edit(memory)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(memory), encoding="utf-8")


def add_owner_to_memory(scene: Scene) -> None:
    """The remembered keyring gets one more owner, whose key is the intruder's."""

    def edit(memory: dict[str, Any]) -> None:
        for issuer in memory["issuers"]:
            owner = next((key for key in issuer["keys"] if "owner" in key["roles"]), None)
            if owner is not None:
                raw = base64.b64encode(key_of("mallory").public_key.raw).decode()
                key = {**owner["key"], "raw": raw} if isinstance(owner["key"], dict) else raw
                issuer["keys"].append({**owner, "key": key})

    _edit_memory(scene, edit)


def clear_revocation_in_memory(scene: Scene) -> None:
    def edit(memory: dict[str, Any]) -> None:
        for issuer in memory["issuers"]:
            for key in issuer["keys"]:
                key.pop("revoked_from", None)
                key.pop("reason", None)

    _edit_memory(scene, edit)


_REGISTRY_STREAMS = ("registry/%", "tree/%")


def note_registry(scene: Scene) -> None:
    """Note every row of the registry, and none of the keyring."""
    scene.notes["events"] = scene.rows.ask(
        "SELECT stream, seq, kind, body FROM event WHERE stream LIKE ? OR stream LIKE ?", *_REGISTRY_STREAMS
    )
    scene.notes["marks"] = scene.rows.ask("SELECT name, value FROM mark")


def put_registry_back(scene: Scene) -> None:
    events = [("INSERT INTO event (stream, seq, kind, body) VALUES (?, ?, ?, ?)", row) for row in scene.notes["events"]]
    marks = [("INSERT INTO mark (name, value) VALUES (?, ?)", row) for row in scene.notes["marks"]]
    emptying = [("DELETE FROM event WHERE stream LIKE ? OR stream LIKE ?", _REGISTRY_STREAMS), ("DELETE FROM mark", ())]
    scene.rows.run_all([*emptying, *events, *marks])


TEMP: tuple[Step, ...] = (trust("temp", "operator", LOG_ROLE), "root: keys revoke ./temp.pub --reason lost")

KEYRING = (
    Attack(
        "the remembered keyring gets an owner",
        "W",
        (note_answer(": keys list --json"),),
        (add_owner_to_memory,),
        (
            lambda scene: refuses(
                trust_step("mallory2", ISSUER, "owner", team=scene.team).replace("root:", "mallory:"),
                frozenset({"keyring_not_an_owner", "keyring_memory_invalid", "registry_signer_untrusted"}),
            )(scene),
            same(": keys list --json"),
            succeeds(PACKS),
        ),
    ),
    Attack(
        "a revocation is cleared in the remembered keyring",
        "W",
        TEMP,
        (clear_revocation_in_memory,),
        (refuses(f"temp: pin prod {BEFORE}", frozenset({"registry_signer_untrusted", "keyring_memory_invalid"})),),
    ),
    Attack(
        "the newest registry is shown with the keyring of before a revocation",
        "W",
        TEMP,
        (cut("trust/keyring"), forget),
        refuse((*READS, f"temp: pin prod {BEFORE}"), OLD_KEYRING),
    ),
    Attack(
        "the newest keyring is shown with a checkpoint of before its last change",
        "W",
        (trust("temp", "operator", LOG_ROLE),),
        (cut("registry/checkpoints"), forget),
        refuse((*READS, PIN), OLD_KEYRING | {"log_rewritten"}),
    ),
    Attack(
        "the newest keyring is shown with the whole registry of before its last change",
        "W",
        (note_registry, trust("temp", "operator", LOG_ROLE)),
        (put_registry_back, forget),
        refuse((*READS, PIN), OLD_KEYRING),
    ),
)


# --- 5: other stores --------------------------------------------------------------------------------------------------


def pin_in_test_store(scene: Scene) -> None:
    """In another store with the same keys and as many events, an operator pins the version in prod."""
    test = Team(scene.team.folder.with_name("test_store"))
    prepare(test)
    test.do(f"ops: pin canary {BEFORE}")
    scene.notes["pin"] = open_rows(test.store).ask(
        "SELECT kind, body FROM event WHERE stream = ?", f"registry/pins/canary/{PACK_ID}"
    )[0]


def bring_pin_over(scene: Scene) -> None:
    kind, body = scene.notes["pin"]
    Forger(scene.team, "author").append_copy(f"registry/pins/canary/{PACK_ID}", kind, bytes(body))


OTHER_STORES = (
    Attack(
        "a pin of a test store is brought into production",
        "K(log)",
        (pin_in_test_store,),
        (bring_pin_over,),
        (
            refuses(
                f": compile {BEFORE} --environment canary --request request-1.0.0.json --json",
                frozenset({"not_pinned"}),
            ),
            refuses(AUDIT, frozenset({"event_of_other_store"})),
        ),
    ),
)


# --- 6: thresholds ----------------------------------------------------------------------------------------------------

THRESHOLDS = (
    Attack(
        "a person signs with the key that is rotated and with the new one",
        "K(publisher)",
        (
            lambda scene: scene.team.do(
                f"root: keys trust {scene.team.public_file('pub')} --issuer {ISSUER} --threshold 2",
                f"root: keys rotate {scene.team.public_file('pub')} {scene.team.public_file('pub2')} --overlap 30",
            ),
            record("draft", "1.2.0", NARROWER),
            approve("draft", "architecture", "security", "data", "evaluation"),
        ),
        (
            with_digest("draft", "pub: sign DIGEST"),
            lambda scene: scene.notes.update(second=scene.team.run(f"pub2: sign {scene.notes['draft']}")),
        ),
        (refuses(f"pub2: publish {NEXT}", frozenset({"signature_threshold_not_met", "lifecycle_transition_refused"})),),
    ),
)


# --- 7: hidden streams ------------------------------------------------------------------------------------------------


def _take_name(scene: Scene) -> None:
    """Another issuer cannot publish under the id, at whichever step it is refused."""
    document = version("3.0.0", {"at": "/contract_meta/issuer", "value": OTHER_ISSUER})
    team = scene.team
    team.write("taken.json", document)
    steps = ["bauthor: lint taken.json --record --json"]
    steps += [
        f"{person}: review taken.json --role {role} --approve --reason ok"
        for person, role in (
            ("barch", "architecture"),
            ("bsec", "security"),
            ("bdat", "data"),
            ("beva", "evaluation"),
        )
    ]
    results = [team.run(step) for step in (*steps, "bpub: sign taken.json", "bpub: publish taken.json")]
    assert results[-1].status, f"the name was taken: {[result.err or result.out for result in results]}"
    assert not any(result.err.startswith("Traceback") for result in results)


HIDDEN = (
    Attack(
        "the stream of a version is hidden for a second",
        "W",
        (
            record("draft", "1.2.0", NARROWER),
            approve("draft", "architecture", "security", "data", "evaluation"),
            f"pub: sign {NEXT}",
        ),
        (hide(VERSION_STREAM),),
        (
            *refuse((PACKS, f"pub: publish {NEXT}"), CUT),
            show_again,
            succeeds(PACKS),
            succeeds(f"pub: publish {NEXT}"),
            succeeds(AUDIT),
        ),
    ),
    Attack(
        "all pins are hidden",
        "W",
        (),
        (hide("registry/pins/"),),
        refuse((PACKS, SHOW), CUT),
    ),
    Attack(
        "all versions of a name are hidden, and another issuer takes it",
        "W with K(publisher) of another issuer",
        (
            *(
                trust(f"b{person}", *roles, LOG_ROLE, issuer=OTHER_ISSUER)
                for person, roles in {
                    "arch": ("architecture",),
                    "sec": ("security",),
                    "dat": ("data",),
                    "eva": ("evaluation", "support_ops"),
                    "pub": ("publisher", f"tenant:{ISSUER}"),
                    "author": (),
                }.items()
            ),
        ),
        (hide(f"registry/version/{PACK_ID}@"),),
        (
            _take_name,
            show_again,
            succeeds(AUDIT),
        ),
    ),
)


# --- 8: what publishers claim -----------------------------------------------------------------------------------------

UNSOUND = {"at": "/tooling_layer/permissions/2/requires_approval_gate"}
OTHER_TEAM = {
    "barch": ("architecture",),
    "bsec": ("security",),
    "bdat": ("data",),
    "beva": ("evaluation", "support_ops"),
    "bpub": ("publisher", f"tenant:{ISSUER}"),
}


def forge_release(number: str, *changes: dict[str, Any], after: str = "1.1.0", of: str = "") -> Step:
    """Bring a document to a published version past every rule: `linted`, its report and `published` are forged.

    `of`: "b" for people of another issuer.
    """

    def step(scene: Scene) -> None:
        team, forger = scene.team, Forger(scene.team, f"{of}pub")
        document = version(number, *changes)
        digest = forger.store(canonical(document))
        stream, issuer = f"registry/artifact/{digest.hex}", document["contract_meta"]["issuer"]
        ref = PackRef(PACK_ID, number)
        report = str(forger.store(gates_report(ref, digest, Report(findings=()))))
        roles = {"architecture": "arch", "security": "sec", "data": "dat", "evaluation": "eva"}
        forger.append_event(stream, Drafted(kind="context_pack", id=PACK_ID, version=number, issuer=issuer))
        forger.append_event(stream, Linted(report=report, roles=tuple(roles), after=after))
        for role, person in roles.items():
            team.do(f"{of}{person}: review {digest} --role {role} --approve --reason 'it looks good'")
        team.do(f"{of}pub: sign {digest}")
        state = forger.artifact(digest)
        forger.append_event(
            f"registry/version/{ref}",
            Published(
                digest=str(digest),
                kind="context_pack",
                issuer=issuer,
                envelope=state.envelope,
                report=report,
                golden="not_run",
                after=after,
                approvals=tuple(Approval(role=review.role, by=review.key_id) for review in state.approvals),
            ),
        )

    return step


def _claims(number: str, code: str) -> tuple[Check, ...]:
    ref = f"{PACK_ID}@{number}"
    return refuse((f": verify {ref}", AUDIT, f"ops: pin canary {ref}"), frozenset({code}))


CLAIMS = (
    Attack(
        "a pack that no gate passes is published by a forged lint",
        "K(publisher)",
        (),
        (forge_release("2.0.0", UNSOUND),),
        _claims("2.0.0", "publication_gates_failed"),
    ),
    Attack(
        "a large change is published under a small step of the version",
        "K(publisher)",
        (),
        (forge_release("1.1.1"),),
        _claims("1.1.1", "publication_version_wrong"),
    ),
    Attack(
        "a version is compared with an older one than the one before it",
        "K(publisher)",
        (),
        (forge_release("1.1.1", after="1.0.0"),),
        _claims("1.1.1", "publication_version_wrong"),
    ),
    Attack(
        "another issuer publishes a version of a pack",
        "K(publisher) of another issuer",
        tuple(trust(person, *roles, LOG_ROLE, issuer=OTHER_ISSUER) for person, roles in OTHER_TEAM.items()),
        (forge_release("0.9.0", {"at": "/contract_meta/issuer", "value": OTHER_ISSUER}, after="", of="b"),),
        (
            *refuse(
                (f": verify {PACK_ID}@0.9.0", f"ops: pin canary {PACK_ID}@0.9.0"), frozenset({"version_not_found"})
            ),
            refuses(AUDIT, frozenset({"publish_name_taken"})),
            *(succeeds(step) for step in READS),
        ),
    ),
)


# --- 9: other issuers -------------------------------------------------------------------------------------------------

ROLE_MISSING = frozenset({"registry_role_missing"})

ISSUERS = (
    Attack(
        "a reviewer of another issuer approves",
        "K(security) of another issuer",
        (trust("bsec", "security", LOG_ROLE, issuer=OTHER_ISSUER), record("draft", "1.2.0", NARROWER)),
        (),
        (
            refuses(
                f"bsec: review {NEXT} --role security --approve --reason ok",
                ROLE_MISSING | {"review_role_unneeded", "reviewer_of_other_issuer"},
            ),
        ),
    ),
    Attack(
        "an operator of another issuer unpins production",
        "K(operator) of another issuer",
        (trust("bops", "operator", LOG_ROLE, issuer=OTHER_ISSUER),),
        (),
        (
            refuses(f"bops: unpin prod {PACK_ID} --reason 'not ours'", ROLE_MISSING),
            refuses(f"bops: pin prod {BEFORE}", ROLE_MISSING),
            refuses(f"bops: rollback prod {PACK_ID} --reason 'not ours'", ROLE_MISSING),
            succeeds(COMPILE),
        ),
    ),
)


# --- 10: rollback -----------------------------------------------------------------------------------------------------

ROLLBACK = (
    Attack(
        "a rollback to a deprecated version takes production down",
        "nobody",
        (f"pub: deprecate {BEFORE} --reason superseded",),
        (lambda scene: scene.notes.update(rollback=scene.team.run(f"ops: rollback prod {PACK_ID} --reason 'oops'")),),
        (
            lambda scene: _assert(scene.notes["rollback"].status != 0, scene.notes["rollback"].out),
            succeeds(COMPILE),
        ),
    ),
    Attack(
        "a rollback that names a deprecated version takes production down",
        "nobody",
        (f"pub: deprecate {BEFORE} --reason superseded",),
        (),
        (
            refuses(f"ops: rollback prod {PACK_ID} 1.0.0 --reason 'oops'", frozenset({"version_deprecated"})),
            succeeds(COMPILE),
        ),
    ),
)


def _assert(holds: bool, message: object) -> None:  # noqa: FBT001  as the statement
    assert holds, message


# --- clocks -----------------------------------------------------------------------------------------------------------

FUTURE = Timestamp.parse("2099-01-01T00:00:00Z")
AHEAD = frozenset({"clock_went_backwards"})
DEV = "registry/environments/dev"
_MICROSECOND = 1_000


def sign_future(person: str) -> Step:
    """Sign a checkpoint of a far future, with nothing else in it."""
    return lambda scene: Forger(scene.team, person).sign_checkpoint(FUTURE)


def open_dev_in_future(person: str) -> Step:
    """Open an environment by an event of a far future."""
    return lambda scene: Forger(scene.team, person).append_event(DEV, EnvironmentOpened(), FUTURE)


def hide_future(person: str) -> Step:
    """Open an environment by an event of a far future, under a checkpoint of today."""
    return lambda scene: Forger(scene.team, person).append_event(DEV, EnvironmentOpened(), FUTURE, hidden=True)


def trusts(person: str, *roles: str) -> Check:
    return lambda scene: scene.team.do(trust_step(person, ISSUER, *roles, team=scene.team))


def note_time(scene: Scene) -> None:
    """Note the moment after the newest checkpoint, which an honest person signed."""
    last = _newest_time(scene)
    scene.notes["time"] = str(next_event_time(last, last))


def note_earlier_time(scene: Scene) -> None:
    """Note a moment before the newest checkpoint, and after the one before it."""
    last = _newest_time(scene)
    scene.notes["time"] = str(Timestamp(seconds=last.seconds - (last.nanos < _MICROSECOND), nanos=_before(last.nanos)))


def _newest_time(scene: Scene) -> Timestamp:
    return Timestamp.parse(scene.team.answer(": verify --registry")["checkpoint"]["time"])


def _before(nanos: int) -> int:
    return (nanos - _MICROSECOND) % 1_000_000_000


def sign_noted_time(person: str) -> Step:
    return lambda scene: Forger(scene.team, person).sign_checkpoint(Timestamp.parse(scene.notes["time"]))


def sign_other_root(person: str) -> Step:
    return lambda scene: Forger(scene.team, person).sign_other_root(Timestamp.parse(scene.notes["time"]))


def revokes_from_noted_time(person: str) -> Check:
    """An owner takes back what a key signed since the attack."""

    def check(scene: Scene) -> None:
        public, since = scene.team.public_file(person), scene.notes["time"]
        scene.team.do(f"root: keys revoke {public} --reason 'its clock is wrong' --from {since}")

    return check


def is_of_today(scene: Scene) -> None:
    """The newest checkpoint and the last change of the keyring have times of this machine's clock."""
    audit = scene.team.answer(": verify --registry")
    assert audit["clock_behind_seconds"] == 0, audit
    assert audit["checkpoint"]["time"] < "2098", audit


def somebody_reads(*steps: str, who: str = "newcomer") -> Check:
    """Another client can do these as well. It remembers what it read before under this name."""
    return lambda scene: scene.team.newcomer(f"{who}.state").do(*steps)


def owners_revoke(person: str) -> Check:
    """Two owners agree to take back what a third one signed since the attack."""

    def check(scene: Scene) -> None:
        public, since = scene.team.public_file(person), scene.notes["time"]
        scene.team.do(
            f"root: keys propose revoke {public} --reason 'its clock is wrong' --from {since} -o revoke.json",
            "anna: keys approve revoke.json --yes",
        )

    return check


COLLEAGUES = {
    "reader": PACKS,
    "runner": COMPILE,
    "auditor": AUDIT,
    "replayer": VERIFY,
    "writer": "eva: lint draft.json --record",
    "owner": "root: keys propose trust --witnesses 0 -o none.json",
    "exporter": f": export {BEFORE} --environment prod -o exported.json",
}
"""Clients that saw what is of the future, and what each of them does first when it was taken back."""


def _recovery(revoked: Check) -> tuple[Check, ...]:
    """What is of the future is built upon by no act; an owner takes it back, and everybody goes on."""
    return (
        *refuse((COMPILE, PIN, "pub: verify --registry --sign"), AHEAD),
        lambda scene: refuses(trust_step("new", ISSUER, "operator", LOG_ROLE, team=scene.team), AHEAD)(scene),
        *(succeeds(step) for step in (PACKS, SHOW, VERIFY, AUDIT)),
        *(somebody_reads(PACKS, who=who) for who in COLLEAGUES),
        revoked,
        *refuse((COMPILE, PIN), UNSIGNED),
        succeeds("pub: verify --registry --sign"),
        is_of_today,
        *(succeeds(step) for step in READS),
        *(somebody_reads(step, who=who) for who, step in COLLEAGUES.items()),
        somebody_reads(*READS, AUDIT),
        is_of_today,
        somebody_reads(*READS, AUDIT),
    )


GO_ON: tuple[Check, ...] = (
    trusts("new", "operator", "environment:dev", LOG_ROLE),
    succeeds(f"new: pin staging {BEFORE}"),
    succeeds("new: pin dev --protect"),
    succeeds("new: pin dev --open --reason 'to try'"),
    succeeds("new: pin dev --protect --reason 'it was tried'"),
    is_of_today,
    somebody_reads(*READS, AUDIT),
)
"""What people do afterwards, under a new change of the keyring, in the stream that was attacked, too."""

OWNERS: tuple[Step, ...] = (
    lambda scene: scene.team.do(f"{trust_step('anna', ISSUER, 'owner', team=scene.team)} --until 2098-01-01T00:00:00Z"),
    trust("ben", "owner"),
    trust("carl", "owner"),
    "root: keys propose trust --owners 2 -o owners.json",
    "anna: keys approve owners.json --yes",
)

ROLLED_BACK = frozenset({"log_rolled_back", "keyring_rolled_back"})


def revoke_from_noted_time(person: str) -> Step:
    return revokes_from_noted_time(person)


CLOSED = (
    Attack(
        "an old copy of the whole store with a checkpoint by a revoked key on it",
        "W with a key that had the role log",
        (note_time, revoke_from_noted_time("author"), keep_copy, *REVOKED),
        (put_copy_back, sign_noted_time("author")),
        (
            *refuse((*READS, PIN), UNSIGNED),
            refuses("ops: verify --registry --sign --json", ROLLED_BACK),
            refuses(AUDIT, ROLLED_BACK),
        ),
    ),
    *(
        Attack(
            name,
            "K(log)",
            (note,),
            (deed,),
            (
                *refuse((*READS, PIN), codes),
                finds_damage(AUDIT),
                finds_damage("pub: verify --registry --sign"),
                revokes_from_noted_time("author"),
                *refuse((*READS, PIN), UNSIGNED),
                succeeds("pub: verify --registry --sign"),
                *(succeeds(step) for step in (*READS, PIN, AUDIT, FSCK)),
                somebody_reads(*READS, AUDIT),
            ),
        )
        for name, note, deed, codes in (
            ("a checkpoint of another log", note_time, sign_other_root("author"), frozenset({"log_rewritten"})),
            (
                "a checkpoint that is older than the one before it",
                note_earlier_time,
                sign_noted_time("author"),
                ROLLED_BACK,
            ),
        )
    ),
)

CLOCKS = (
    Attack(
        "a checkpoint of the year 2099",
        "K(log)",
        (note_time,),
        (sign_future("author"),),
        (
            somebody_reads(PACKS, who="keeper"),
            lambda scene: refuses(f"root: keys revoke {scene.team.public_file('author')} --reason lost", AHEAD)(scene),
            *_recovery(revokes_from_noted_time("author")),
            *GO_ON,
            somebody_reads(FSCK, who="keeper"),
        ),
    ),
    Attack(
        "an event and a checkpoint of the year 2099",
        "K(operator)",
        (note_time,),
        (open_dev_in_future("ops"),),
        (*_recovery(revokes_from_noted_time("ops")), *GO_ON),
    ),
    Attack(
        "an event of the year 2099 under a checkpoint of today",
        "K(operator)",
        (note_time,),
        (hide_future("ops"),),
        (
            *(succeeds(step) for step in READS),
            refuses(AUDIT, AHEAD),
            revokes_from_noted_time("ops"),
            succeeds("pub: verify --registry --sign"),
            *(succeeds(step) for step in (*READS, AUDIT)),
            *GO_ON,
        ),
    ),
    Attack(
        "a checkpoint of the year 2099 by one of three owners",
        "K(owner), two of whom must agree",
        (*OWNERS, note_time),
        (sign_future("ben"),),
        _recovery(owners_revoke("ben")),
    ),
)

# --- the whole store --------------------------------------------------------------------------------------------------

STORE = (
    Attack(
        "an old copy of the whole store is put back",
        "W",
        (keep_copy, *REVOKED),
        (put_copy_back,),
        refuse((*READS, PIN), frozenset({"log_rolled_back", "keyring_rolled_back"})),
    ),
    Attack(
        "the log gets an entry, and its event is kept back",
        "K(log)",
        (keep_copy,),
        (lambda scene: Forger(scene.team, "author").append_copy(PIN_STREAM, "pinned", b"{}"), cut(PIN_STREAM)),
        (
            *refuse((COMPILE, PACKS, SHOW, PIN, f"pub: deprecate {BEFORE} --reason old"), CUT),
            succeeds(VERIFY),  # other streams can be read
            somebody_reads(VERIFY, who="newcomer"),
            finds_damage(AUDIT),
            put_copy_back,
            somebody_reads(*READS, who="newcomer"),
            *(succeeds(step) for step in (*READS, PIN, "root: verify --registry --sign")),
        ),
    ),
)

# --- 11: settings and stores of others --------------------------------------------------------------------------------


def setting(name: str, value: str) -> Step:
    return lambda scene: scene.team.settings.update({name: value})


def work_below(scene: Scene) -> None:
    """From here on, the client works in a folder below that of the store."""
    below, team = scene.team.folder / "work", scene.team
    shutil.copytree(team.folder, below, ignore=shutil.ignore_patterns(".ctx"))
    scene.team = Team(below, state=team.state, database_url=team.database_url)


def give_away(*, all_of_it: bool) -> Check:
    """The folder of the store belongs to another user; with `all_of_it`, so does everything in it."""

    def step(scene: Scene) -> None:
        if not is_root():
            pytest.skip("only root can give files to another user")
        os.chown(scene.team.store, NOBODY, NOBODY)
        for path in scene.team.store.rglob("*") if all_of_it else ():
            os.chown(path, NOBODY, NOBODY)

    return step


def link_to_store_of_another_user(scene: Scene) -> None:
    """The folder `.ctx` is our link to a store that another user made."""
    other = scene.team.folder.with_name("other")
    give_away(all_of_it=True)(scene)
    shutil.move(scene.team.store, other)
    scene.team.store.symlink_to(other)


def link_of_another_user(scene: Scene) -> None:
    """The folder `.ctx` is a link that another user made, to a store of ours."""
    ours = scene.team.folder.with_name("ours")
    if not is_root():
        pytest.skip("only root can give files to another user")
    shutil.move(scene.team.store, ours)
    scene.team.store.symlink_to(ours)
    os.chown(scene.team.store, NOBODY, NOBODY, follow_symlinks=False)


NO_AGE = {
    "empty": "",
    "of spaces": "   ",
    "of tabs": "\t\t",
    "of line ends": "\n",
    "a word": "never",
    "negative": "-1",
    "a fraction": "1e9",
    "of other digits": "\u0663\u0666\u0660\u0660",
}
OTHER_USER = {
    "the folder of a store above": (give_away(all_of_it=False),),
    "a store above": (give_away(all_of_it=True),),
    "a store above, behind a link of ours": (link_to_store_of_another_user,),
    "a link above to a store of ours": (link_of_another_user,),
}

SETTINGS = (
    *(
        Attack(
            f"CTX_REGISTRY_MAX_AGE is {name}",
            "nobody",
            (),
            (setting("CTX_REGISTRY_MAX_AGE", value),),
            refuse((COMPILE,), frozenset({"registry_frozen"})),
        )
        for name, value in NO_AGE.items()
    ),
    *(
        Attack(
            f"another user made {name}",
            "another user",
            (),
            (*deed, work_below),
            refuse((PACKS, AUDIT, COMPILE, PIN), frozenset({"store_of_another_user"})),
        )
        for name, deed in OTHER_USER.items()
    ),
)


# --- 11: keys and passphrases -----------------------------------------------------------------------------------------

SHORT = {
    "of two letters": "ab",
    "of eleven letters": "abcdefghijk",
    "of eleven letters that take two bytes each": "\u043f\u0430\u0440\u043e\u043b\u044c\u043f\u0430\u0440\u043e\u043b",
    "of three letters that take four bytes each": "\U0001f511\U0001f512\U0001f513",
}
TYPOS = {
    "with a letter left out": "tenant_acme_prd",
    "with two letters swapped": "tenant_acem_prod",
    "with other separators": "tenant-acme-prod",
    "in capitals": ISSUER.upper(),
    "in title case": ISSUER.title(),
}


def found_elsewhere(scene: Scene) -> None:
    """From here on, the client works in a new store without any key."""
    team = scene.team
    scene.team = Team(team.folder.with_name("elsewhere"), database_url=None)
    scene.team.settings.update(team.settings)
    scene.team.folder.mkdir()
    scene.team.do(": init")


def no_key(*names: str) -> Check:
    def check(scene: Scene) -> None:
        kept = [name for name in names if (scene.team.folder / name).exists()]
        assert not kept, kept

    return check


def new_key(scene: Scene) -> None:
    """Bob makes a key in the folder of the store."""
    scene.team.settings["CTX_KEY_PASSPHRASE"] = HUSH
    scene.team.do(": keys new bob")


def swap_public_half(*suffixes: str) -> Step:
    """The files of Bob's key get the public half of another key, which their reader would trust as his."""

    def step(scene: Scene) -> None:
        mallory = (scene.team.folder / scene.team.public_file("mallory")).read_bytes()
        for suffix in suffixes:
            path = scene.team.store / "keys" / f"bob{suffix}"
            private = path.read_bytes().partition(b"-----BEGIN PUBLIC KEY-----")[0]
            path.write_bytes(private + mallory)

    return step


def swap_public_half_of_file(scene: Scene) -> None:
    """The file of the operator's key gets the public half of another key, and so does a variable with the key."""
    path = scene.team.folder / scene.team.key_file("ops")
    mallory = (scene.team.folder / scene.team.public_file("mallory")).read_bytes()
    path.write_bytes(path.read_bytes() + mallory)
    scene.team.settings["CTX_SIGNING_KEY"] = path.read_text()


def mallory_is_not_trusted(scene: Scene) -> None:
    assert key_of("mallory").public_key.key_id not in _ends(scene)


def _ends(scene: Scene) -> dict[str, str | None]:
    """When each trusted key ends, by its id."""
    listing = scene.team.answer(": keys list")
    return {key["key_id"]: key["valid_until"] for issuer in listing["issuers"] for key in issuer["keys"]}


def ends_at(person: str, end: str) -> Check:
    """The new key of a rotation ends then."""
    return lambda scene: _assert(_ends(scene)[key_of(person).public_key.key_id] == end, _ends(scene))


def until(person: str, end: str) -> Step:
    return lambda scene: scene.team.do(
        f"root: keys trust {scene.team.public_file(person)} --issuer {ISSUER} --role operator --until {end}"
    )


def rotate(old: str, new: str, options: str = "") -> Step:
    return lambda scene: scene.team.do(
        f"root: keys rotate {scene.team.public_file(old)} {scene.team.public_file(new)} {options}"
    )


TRUST_BOB = f"root: keys trust bob --issuer {ISSUER} --role operator"
FAR, NEAR = "2099-01-01T00:00:00Z", "2098-01-01T00:00:00Z"
DIFFER = frozenset({"key_halves_differ"})

KEYS = (
    *(
        Attack(
            f"a new key gets a passphrase {name}",
            "nobody",
            (setting("CTX_KEY_PASSPHRASE", words),),
            (found_elsewhere,),
            (
                *refuse(
                    (f": keys new alice --issuer {ISSUER}", ": keys new dave --standalone -o dave.key"),
                    frozenset({"passphrase_too_short"}),
                ),
                no_key(".ctx/keys/alice.key", "dave.key", "dave.key.pub"),
            ),
        )
        for name, words in SHORT.items()
    ),
    *(
        Attack(
            f"a key is trusted for the name of an issuer {name}",
            "nobody",
            (note_answer(": keys list --json"), lambda scene: scene.notes.update(file=scene.team.public_file("temp"))),
            (),
            (
                refuses(f"root: keys trust ./temp.pub --issuer {typo} --role log", frozenset({"issuer_not_found"})),
                says(f"root: keys trust ./temp.pub --issuer {typo}", f"did you mean {ISSUER}?"),
                says(f"root: keys propose trust ./temp.pub --issuer {typo} -o two.json", f"did you mean {ISSUER}?"),
                same(": keys list --json"),
            ),
        )
        for name, typo in TYPOS.items()
    ),
    Attack(
        "a key is trusted for the name of an issuer that is like no other",
        "nobody",
        (lambda scene: scene.notes.update(file=scene.team.public_file("temp")),),
        (),
        (
            says("root: keys trust ./temp.pub --issuer globex", f"known here: {ISSUER}"),
            succeeds("root: keys trust ./temp.pub --issuer globex --new-issuer"),
        ),
    ),
    *(
        Attack(
            f"the public half is exchanged in {name}",
            "W",
            (new_key,),
            (swap_public_half(*suffixes),),
            (
                refuses(TRUST_BOB, DIFFER),
                refuses(f"root: keys rotate {key_of('ops').public_key.key_id} bob", DIFFER),
                mallory_is_not_trusted,
            ),
        )
        for name, suffixes in {"both files of a key": (".key", ".pub"), "the file of a private key": (".key",)}.items()
    ),
    Attack(
        "the public half beside a private key is exchanged",
        "W",
        (new_key,),
        (swap_public_half(".pub"),),
        (lambda scene: scene.notes.update(trusting=scene.team.run(TRUST_BOB)), mallory_is_not_trusted),
    ),
    Attack(
        "the public half is exchanged in a file with a key that signs",
        "W",
        (),
        (swap_public_half_of_file,),
        refuse((PIN, f": pin staging {BEFORE}"), DIFFER),
    ),
    Attack(
        "a rotation lifts the end of a key",
        "K(operator)",
        (until("ops", FAR), rotate("ops", "ops2")),
        (),
        (ends_at("ops2", FAR),),
    ),
    Attack(
        "two rotations lift the end of a key",
        "K(operator)",
        (until("ops", FAR), rotate("ops", "ops2"), rotate("ops2", "ops3")),
        (),
        (ends_at("ops3", FAR),),
    ),
    Attack(
        "a rotation into a key that ends earlier lifts its end",
        "K(operator)",
        (until("ops", FAR), until("ops2", NEAR), rotate("ops", "ops2")),
        (),
        (ends_at("ops2", NEAR),),
    ),
    Attack(
        "a rotation into a key that ends later lifts the end of the old one",
        "K(operator)",
        (until("ops", NEAR), until("ops2", FAR), rotate("ops", "ops2", "--overlap 3650")),
        (),
        (ends_at("ops2", NEAR),),
    ),
)


# --- 11: links --------------------------------------------------------------------------------------------------------


def link_outside(name: str) -> Step:
    """A part of the store becomes a link to a folder of the attacker."""

    def step(scene: Scene) -> None:
        outside, part = scene.team.folder.with_name("outside"), scene.team.store / name
        if name == "catalog.db" and scene.team.database_url is not None:
            pytest.skip("the catalog is in a database")
        if part.exists():
            shutil.move(part, outside)
        part.symlink_to(outside)

    return step


def link_folders_of_objects(scene: Scene) -> None:
    """Every folder of objects by their first digits becomes a link to a folder of the attacker."""
    outside, objects = scene.team.folder.with_name("outside"), scene.team.store / "objects"
    for digits in (f"{number:02x}" for number in range(256)):
        (outside / digits).mkdir(parents=True)
        if (objects / digits).exists():
            shutil.copytree(objects / digits, outside / digits, dirs_exist_ok=True)
            shutil.rmtree(objects / digits)
        (objects / digits).symlink_to(outside / digits)
    scene.notes["outside"] = sorted(outside.rglob("*"))


def nothing_is_written_outside(scene: Scene) -> None:
    assert sorted(scene.team.folder.with_name("outside").rglob("*")) == scene.notes["outside"]


RECORD = "author: lint new.json --record"
LINKED = (
    "objects",
    "catalog.lock",
    "catalog.db",
    "catalog.db-journal",
    "keys",
    "packs",
    "refs",
    "drafts",
    "objects/.staging",
)

LINKS = (
    *(
        Attack(
            f"{name} of the store is a link",
            "W",
            (),
            (link_outside(name),),
            refuse((PIN, PACKS), frozenset({"store_entry_is_link"})),
        )
        for name in LINKED
    ),
    Attack(
        "the folders of objects are links",
        "W",
        (lambda scene: scene.notes.update(file=scene.team.write("new.json", version("1.2.0", NARROWER))),),
        (link_folders_of_objects,),
        (*refuse((RECORD,), frozenset({"object_obstructed"})), nothing_is_written_outside),
    ),
)


# --- 11: drafts that are withdrawn, and what production pins ----------------------------------------------------------

SIGNED_NEXT: tuple[Step, ...] = (
    record("draft", "1.2.0", NARROWER),
    approve("draft", "architecture", "security", "data", "evaluation"),
    f"pub: sign {NEXT}",
)
WITHDRAW = f"author: withdraw {NEXT} --reason 'the wrong file'"
GONE = frozenset({"artifact_not_found", "lifecycle_transition_refused"})


def draft_stream(scene: Scene) -> str:
    return f"registry/artifact/{_draft_row(scene, 'draft')}"


def refuses_draft(step: str, codes: frozenset[str]) -> Check:
    """The command, in which `DIGEST` stands for the digest of the draft, refuses."""
    return lambda scene: refuses(step.replace("DIGEST", scene.notes["draft"]), codes)(scene)


def is_listed(*, listed: bool) -> Check:
    def check(scene: Scene) -> None:
        listing = scene.team.run(": packs --drafts --json").out
        assert (scene.notes["draft"] in listing) is listed, listing

    return check


WITHDRAWALS = (
    Attack(
        "a draft that was withdrawn is published",
        "K(publisher)",
        (*SIGNED_NEXT, WITHDRAW),
        (),
        (
            *refuse((f"pub: publish {NEXT}", f"pub: sign {NEXT}", REVIEW_NEXT), GONE),
            *(
                refuses_draft(step, GONE)
                for step in ("pub: publish DIGEST", "sec: review DIGEST --role security --approve --reason ok")
            ),
            is_listed(listed=False),
            succeeds(AUDIT),
        ),
    ),
    Attack(
        "the withdrawal of a draft is removed",
        "W",
        (*SIGNED_NEXT, WITHDRAW),
        (lambda scene: scene.cut(draft_stream(scene)),),
        (*(refuses_draft(step, CUT) for step in ("pub: publish DIGEST", f"pub: publish {NEXT}")), finds_damage(AUDIT)),
    ),
    Attack(
        "the withdrawal of a draft is removed and the ends are signed",
        "K(log)",
        (*SIGNED_NEXT, WITHDRAW),
        (lambda scene: scene.cut(draft_stream(scene)), sign_heads("sec")),
        (*refuse((f"pub: publish {NEXT}",), REWRITTEN), finds_damage(AUDIT)),
    ),
    Attack(
        "somebody else withdraws a draft",
        "K(security)",
        SIGNED_NEXT,
        (),
        (
            refuses(f"sec: withdraw {NEXT} --reason 'not mine'", frozenset({"registry_role_missing"})),
            is_listed(listed=True),
            succeeds(f"pub: publish {NEXT}"),
        ),
    ),
)

PRODUCTION = (
    Attack(
        "what production pins is revoked without a question",
        "K(publisher) by mistake",
        (),
        (),
        (
            *(
                asks_first(f"{step} --reason 'a slip'")
                for step in (f"pub: revoke {PINNED}", f"pub: revoke {PACK_ID}@prod", f"pub: deprecate {PINNED}")
            ),
            asks_first(f"ops: unpin prod {PACK_ID} --reason 'a slip'"),
            succeeds(COMPILE),
            succeeds(f"pub: revoke {BEFORE} --reason 'nobody pins it'"),
        ),
    ),
    Attack(
        "what production pins is revoked without a question while its pins are hidden",
        "W",
        (),
        (hide("registry/pins/"),),
        (
            refuses(f"pub: revoke {PINNED} --reason 'a slip'", CUT),
            show_again,
            succeeds(COMPILE),
        ),
    ),
)

ATTACKS: tuple[Attack, ...] = (
    *_heads_attacks(),
    *DRAFTS,
    *KEYRING,
    *OTHER_STORES,
    *THRESHOLDS,
    *HIDDEN,
    *CLAIMS,
    *ISSUERS,
    *ROLLBACK,
    *CLOCKS,
    *CLOSED,
    *STORE,
    *SETTINGS,
    *KEYS,
    *LINKS,
    *WITHDRAWALS,
    *PRODUCTION,
)
