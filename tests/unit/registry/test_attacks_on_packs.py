"""Every attack and mistake that a registry is made to withstand, one row each, with the code that it ends in.

What is done to the catalog's file is in `test_attacks_on_history.py`, and has a row here where a run would be given
something wrong by it.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from contextplane.adapters.files.key_files import read_key_file
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.app.registry.audit import audit_registry
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.registry.events import Deprecated, Drafted, Revoked
from contextplane.registry.streams import artifact_stream, version_stream
from contextplane.registry.writer import PlannedChange
from contextplane.trust.compatibility import RuntimeCapabilities
from contextplane.trust.dsse import Statement, make_envelope
from contextplane.trust.verify import sign
from tests.unit.authoring.packs import EXAMPLE, with_changes
from tests.unit.registry.desk import NARROWER, Office, code, version
from tests.unit.registry.releases import HERE, PACK, TENANT, Bent, Releases, Walk, envelope_of
from tests.unit.registry.tampering import Stolen, copied
from tests.unit.registry.world import STORE
from tests.unit.trust.world import key_of, revoke, rotate, threshold

NEXT = with_changes([{"at": "/pack_meta/pack_version", "value": "2.0.0"}])
SECOND = PackRef.parse("ctxpack.support@2.0.0")
PINS, VERSION = "registry/pins/prod/ctxpack.support", "registry/version/ctxpack.support@1.0.0"


class Target:
    """A registry in a file, and whoever has that file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registry = Releases(str(folder / "catalog.db"))
        self.thief = Stolen(folder / "catalog.db")

    def release(self, *signers: str, **changes: object) -> None:
        self.registry.pin_here(self.registry.release(**({"envelope": envelope_of(*signers)} | changes)))  # type: ignore[arg-type]


def other_type(statement: Statement) -> bytes:
    return make_envelope("application/json", statement.to_bytes(), key_of("signer")).to_bytes()


def other_bytes(statement: Statement) -> bytes:
    mine = msgspec.json.decode(sign(statement, key_of("signer")))
    other = msgspec.json.decode(sign(msgspec.structs.replace(statement, digest=Digest.of(b"")), key_of("signer")))
    return msgspec.json.encode({**mine, "signatures": other["signatures"]})


def other_digest(statement: Statement) -> bytes:
    return sign(msgspec.structs.replace(statement, digest=Digest.of(b"other")), key_of("signer"))


def expired(target: Target) -> str:
    target.registry.seconds += 7200
    target.release("short")
    return target.registry.ends()


def revoked_key(target: Target) -> str:
    target.release("signer")
    target.registry.seconds += 10
    target.registry.keyring_change(revoke(key_of("signer"), msgspec.structs.replace(target.registry.now, seconds=0)))
    return target.registry.ends()


def one_of_two(target: Target) -> str:
    target.registry.keyring_change(threshold(TENANT, 2))
    target.release("signer")
    return target.registry.ends()


def signed_as(envelope: Callable[[Statement], bytes]) -> Callable[[Target], str]:
    def act(target: Target) -> str:
        target.release(envelope=envelope)
        return target.registry.ends()

    return act


def exchanged_bytes(target: Target) -> str:
    target.release("signer")
    return target.registry.ends(bend=lambda snapshot: Bent(snapshot, object=lambda data: data + b"\n"))


def older_version_as_newest(target: Target) -> str:
    target.release("signer")
    target.release("signer", value=NEXT)
    assert (target.registry.ends(), target.registry.ends(SECOND)) == ("not_pinned", "ok")
    target.thief.cut(PINS)
    return target.registry.ends()


def whole_registry_rolled_back(target: Target) -> str:
    target.release("signer")
    copied(target.thief.path, target.folder / "old.db")
    target.registry.on_version("pub", str(PACK), Revoked())
    seen = target.registry.resolve(purpose="replay").proof.checkpoint
    target.registry.catalog.close()
    with closing(SqliteCatalog.open(str(target.folder / "old.db"), STORE)) as old:
        target.registry.catalog = old
        assert target.registry.ends() == "ok"  # to whoever never saw more
        return target.registry.ends(seen=seen)


def hidden_revocation(target: Target) -> str:
    target.release("signer")
    target.registry.on_version("pub", str(PACK), Revoked())
    target.thief.cut(VERSION)
    return target.registry.ends()


def frozen(target: Target) -> str:
    target.release("signer")
    assert target.registry.ends(max_age=3600, later=3600) == "ok"
    return target.registry.ends(max_age=3600, later=3601)


def forked(target: Target) -> str:
    target.release("signer")
    seen = target.registry.resolve().proof.checkpoint
    return target.registry.ends(seen=msgspec.structs.replace(seen, root=bytes(32)))


def truncated(target: Target) -> str:
    target.release("signer")
    target.thief.cut("registry/log")
    return target.registry.ends()


def reworded(target: Target) -> str:
    target.release("signer")
    target.thief.reword(VERSION, 1, b"as it should be", b"as it could be!")
    return target.registry.ends()


def draft(target: Target) -> str:
    data = canonical(EXAMPLE)
    change = Drafted(kind="context_pack", id=PACK.pack_id, version=PACK.version, issuer=TENANT)
    plan = PlannedChange(stream=artifact_stream(Digest.of(data)), change=change, reason="new")
    target.registry.act("author", plan, objects=(data,))
    return target.registry.ends()


def unreviewed(target: Target) -> str:
    target.release("signer", walk=Walk(draft=False, lint=False, reviews=(), signed=False))
    return target.registry.ends()


def after(change: Deprecated | Revoked) -> Callable[[Target], str]:
    def act(target: Target) -> str:
        target.release("signer")
        target.registry.on_version("pub", str(PACK), change)
        return target.registry.ends()

    return act


def request(**how: object) -> Callable[[Target], str]:
    def act(target: Target) -> str:
        target.release("signer")
        return target.registry.ends(**how)

    return act


def clock_back(target: Target) -> str:
    """Put back, so that what is stale seems to be fresh."""
    target.release("signer")
    assert target.registry.ends(max_age=3600, later=3601) == "registry_frozen"
    return target.registry.ends(max_age=3600, later=-121)


def exposed_key(target: Target) -> str:
    key = target.folder / "mine.key"
    key.write_bytes(b"secret")
    key.chmod(0o640)
    with pytest.raises(ContextPlaneError) as refused:
        read_key_file(str(key))
    return refused.value.code


ATTACKS: dict[str, tuple[Callable[[Target], str], str]] = {
    "no signature": (signed_as(envelope_of()), "signature_missing"),
    "signed by a key that nobody knows": (signed_as(envelope_of("mallory")), "signature_key_unknown"),
    "signed by a key that was expired": (expired, "signature_key_expired"),
    "signed by a key that is revoked": (revoked_key, "signature_key_revoked"),
    "signed by a key of another issuer": (signed_as(envelope_of("stranger")), "signature_key_of_other_issuer"),
    "one of two needed signatures": (one_of_two, "signature_threshold_not_met"),
    "a signature over other bytes": (signed_as(other_bytes), "signature_invalid"),
    "a swapped payload type": (signed_as(other_type), "envelope_payload_type_wrong"),
    "a statement about another digest": (signed_as(other_digest), "statement_digest_mismatch"),
    "bytes that are not those of the digest": (exchanged_bytes, "artifact_mismatch"),
    "an older version served again as the newest": (older_version_as_newest, "registry_stream_cut"),
    "a revocation that is kept from us": (hidden_revocation, "registry_stream_cut"),
    "an older copy of the whole registry": (whole_registry_rolled_back, "log_rolled_back"),
    "a frozen registry": (frozen, "registry_frozen"),
    "a truncated history": (truncated, "log_truncated"),
    "a forked history": (forked, "log_forked"),
    "an event rewritten at the same length": (reworded, "registry_signer_untrusted"),
    "a draft in a runtime": (draft, "version_not_found"),
    "a publication that nobody reviewed": (unreviewed, "publication_unreviewed"),
    "a deprecated version for new traffic": (after(Deprecated()), "version_deprecated"),
    "a revoked version for new traffic": (after(Revoked()), "version_revoked"),
    "a runtime that is too old": (
        request(capabilities=msgspec.structs.replace(HERE, runtime="0.9.0")),
        "runtime_too_old",
    ),
    "an ontology that is not there": (request(capabilities=RuntimeCapabilities()), "ontology_missing"),
    "another tenant": (request(tenant="tenant_globex"), "tenant_mismatch"),
    "a clock that went backwards": (clock_back, "clock_went_backwards"),
    "a key file that others can read": (exposed_key, "key_file_exposed"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_ends_in_a_refusal_with_a_code_of_its_own(tmp_path: Path, attack: str) -> None:
    act, expected = ATTACKS[attack]
    assert act(Target(tmp_path)) == expected


def test_without_an_attack_the_same_release_is_resolved(tmp_path: Path) -> None:
    assert request()(Target(tmp_path)) == "ok"


def test_a_revoked_version_is_replayed_and_marked(tmp_path: Path) -> None:
    target = Target(tmp_path)
    after(Revoked())(target)
    assert target.registry.resolve(purpose="replay").marks == (f"{PACK}: revoked, for replay only",)


# --- what people try who have keys ------------------------------------------------------------------------------------


def pin_after(change: Deprecated | Revoked) -> Callable[[Office], object]:
    def act(here: Office) -> object:
        ref = here.release()
        here.desk.act(key_of("pub"), [PlannedChange(stream=version_stream(ref), change=change, reason="old")])
        return here.pin("prod", ref)

    return act


def author_reviews(here: Office) -> object:
    here.trust("author", "security")
    return here.review(str(here.record().digest), "author", "security")


def author_reviews_with_a_new_key(here: Office) -> object:
    here.trust("author", "security")
    target = str(here.record().digest)
    now = here.desk.keys.now
    here.change_keys(rotate(key_of("author"), key_of("renewed"), since=now, old_until=now))
    return here.review(target, "renewed", "security")


def other_bytes_under_a_revoked_number(here: Office) -> object:
    ref = here.release()
    here.desk.act(key_of("pub"), [PlannedChange(stream=version_stream(ref), change=Revoked(), reason="bad")])
    return here.release(version("1.0.0", NARROWER))


PEOPLE: dict[str, tuple[Callable[[Office], object], str]] = {
    "pinning what is deprecated": (pin_after(Deprecated()), "version_deprecated"),
    "pinning what is revoked": (pin_after(Revoked()), "version_revoked"),
    "reviewing one's own work": (author_reviews, "reviewer_is_author"),
    "reviewing one's own work with a rotated key": (author_reviews_with_a_new_key, "reviewer_is_author"),
    "other bytes under a number that was revoked": (other_bytes_under_a_revoked_number, "version_taken"),
}


@pytest.mark.parametrize("attempt", PEOPLE)
def test_an_attempt_is_refused_and_leaves_a_registry_that_verifies(here: Office, attempt: str) -> None:
    act, expected = PEOPLE[attempt]
    assert code(lambda: act(here)) == expected
    result = audit_registry(here.desk, lambda _size, _events: None)
    assert result.problems == ()
    assert result.entries
