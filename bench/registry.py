"""Resolving a pack in a large registry against a small one, from the cache, and checking a long log."""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.measure import Row, measure_in_turns, scratch
from contextplane.adapters.ed25519 import Ed25519Check, Ed25519Signer, generate_key
from contextplane.adapters.files.client_state import ClientState
from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.registry.keys import KeyStore
from contextplane.app.registry.memory import RegistryMemory
from contextplane.app.registry.session import RegistrySession
from contextplane.app.settings import Settings
from contextplane.authoring.gates.table import Report
from contextplane.model.catalog import BLOB, IndexedObject
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.registry.artifact_state import REVIEW_ROLES
from contextplane.registry.audit import AuditInputs, audit
from contextplane.registry.claims import ClaimsJudgement
from contextplane.registry.events import (
    Change,
    Drafted,
    Linted,
    NameClaimed,
    Observed,
    Pinned,
    Pins,
    Published,
    Review,
    Signed,
)
from contextplane.registry.log import next_keyring_entry, sign_log
from contextplane.registry.name_state import NameState
from contextplane.registry.open import open_registry
from contextplane.registry.publish import plan_publication
from contextplane.registry.recent_audit import audit_since
from contextplane.registry.rejudge import judge_publication
from contextplane.registry.reports import gates_report
from contextplane.registry.resolution import (
    CatalogSnapshot,
    Resolution,
    ResolutionCache,
    ResolveRequest,
    StateNumber,
    state_number,
)
from contextplane.registry.resolve import ResolveContext, resolve
from contextplane.registry.streams import TREE, artifact_stream, names_stream, origin_of, pins_stream, version_stream
from contextplane.registry.writer import PlannedChange, RegistryWriter
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.compatibility import RuntimeCapabilities
from contextplane.trust.dsse import Statement, encode_base64
from contextplane.trust.keyring import TrustedKeys, sign_change
from contextplane.trust.keyring_events import KeyTrust
from contextplane.trust.keyring_stream import append_change, follow_keyring
from contextplane.trust.merkle import EMPTY_ROOT, StreamTree, consistency_proof
from contextplane.trust.merkle_log import VerifiedCheckpoint
from contextplane.trust.verify import TrustContext, sign

__all__ = ["registry_rows"]

_EXAMPLE = Path(__file__).parent.parent / "tests" / "cases" / "context_pack" / "support.json"
_TENANT = "tenant_acme_prod"
_PACK = PackRef.parse("ctxpack.support@1.0.0")
_FEW, _MANY = 10, 10_000
_AUDITED, _NEW, _NEWER = 10_000, 1_000, 100  # entries: in all, and those that a client or an auditor has not seen yet
_EACH = 10
_PART = 100
_REPEATS, _HITS = 20, 20_000
_NOW = Timestamp.parse("2030-01-01T00:00:00Z")
_CHECK = Ed25519Check()


def registry_rows() -> Iterator[Row]:
    with scratch() as folder:
        _, signer = generate_key(b"a passphrase of the bench")
        small = _Registry(f"{folder}/small", signer, _FEW)
        start = time.perf_counter()
        large = _Registry(f"{folder}/large", signer, _MANY)
        made = time.perf_counter() - start
        yield from _resolve_rows(small, large, made)
        yield _cache_hit_row(large)
        yield _consistency_row(large)
        yield from _audit_rows(_Registry(f"{folder}/audited", signer, _AUDITED // _EACH))


def _resolve_rows(small: "_Registry", large: "_Registry", made: float) -> Iterator[Row]:
    def repeat(registry: _Registry) -> Callable[[], object]:
        return lambda: [registry.resolve() for _ in range(_REPEATS)]

    few, many = measure_in_turns([repeat(small), repeat(large)], rounds=25)
    ratio = many / few
    each = f"{many / _REPEATS * 1000:.2f} ms, {few / _REPEATS * 1000:.2f} ms"
    figures = f"{each}; {large.entries:,} events made in {made:.0f} s"
    what = f"verify and resolve among {_MANY:,} versions, {large.entries:,} events"
    yield Row(what, f"among {_FEW} versions, {small.entries} events", ratio, "<= 1.3", ratio <= 1.3, figures)


def _cache_hit_row(large: "_Registry") -> Row:
    cache = ResolutionCache()
    with large.catalog.read() as view:
        state = state_number(view.streams)

    def resolve_cached(known: StateNumber | None = None) -> Resolution:
        return cache.get_or_resolve(large.request, _NOW, lambda: (large.resolve(), state), known)

    def resolve_current() -> Resolution:
        with large.catalog.read() as view:
            return resolve_cached(state_number(view.streams))

    resolve_cached()
    works: list[Callable[[], object]] = [large.resolve, lambda: [resolve_cached() for _ in range(_HITS)]]
    works.append(lambda: [resolve_current() for _ in range(_REPEATS)])
    cold, warm, current = measure_in_turns(works, rounds=15)
    hit = warm / _HITS
    figures = (
        f"{hit * 1e6:.2f} us; asking for the state first {current / _REPEATS * 1e6:.0f} us; cold {cold * 1e6:.0f} us"
    )
    return Row("resolving again, a cache hit", "20 us", hit * 1e6 / 20, "<= 1", hit <= 20e-6, figures)


def _consistency_row(large: "_Registry") -> Row:
    """Count the nodes that a consistency proof fetches: the worst of many old sizes."""
    size = large.entries
    worst, total, proofs = 0, 0, 0
    with large.catalog.read() as view:
        for old in range(1, size, 101):
            nodes = _CountedNodes(StreamTree(view.streams, TREE))
            consistency_proof(nodes, old, size)
            worst, total, proofs = max(worst, nodes.fetched), total + nodes.fetched, proofs + 1
    levels = size.bit_length()
    ratio = worst / levels
    figures = f"at most {worst} nodes, {total / proofs:.0f} on average, of a log of {size:,} entries"
    return Row(
        "nodes fetched by a consistency check", f"log2 of its size, {levels}", ratio, "<= 3", ratio <= 3, figures
    )


def _audit_rows(registry: "_Registry") -> Iterator[Row]:
    """Compare what is new with everything: opening as a client that is behind, and verifying since a checkpoint."""
    far = registry.newest
    registry.grow(_NEW - _NEWER)
    kept = registry.newest
    registry.grow(_NEWER - _EACH)
    near = registry.newest
    registry.grow(_EACH)
    behind, current = measure_in_turns([partial(registry.open, far), partial(registry.open, near)], rounds=15)
    ratio = behind / current
    figures = f"{behind * 1000:.1f} ms, {current * 1000:.1f} ms"
    what = f"a client opens a registry that grew by {_NEW:,} entries since it looked last"
    yield Row(what, f"by {_EACH}", ratio, "<= 3", ratio <= 3, figures)
    works: list[Callable[[], object]] = [partial(registry.audit, kept), registry.audit]
    new, whole = measure_in_turns(works, rounds=3)
    ratio = new / whole
    figures = f"{new * 1000:.0f} ms, {whole * 1000:.0f} ms"
    what = f"verifying {_NEWER} new entries of {far.checkpoint.size + _NEW:,}"
    yield Row(what, "verifying all of them", ratio, "<= 0.2", ratio <= 0.2, figures)


class _CountedNodes:
    def __init__(self, tree: StreamTree) -> None:
        self._tree = tree
        self.fetched = 0

    def node(self, level: int, index: int) -> bytes:
        self.fetched += 1
        return self._tree.node(level, index)


class _FixedMemory(RegistryMemory):
    """The memory of a client that always saw the same checkpoint last."""

    def __init__(self, state: ClientState, origin: str, seen: VerifiedCheckpoint) -> None:
        super().__init__(state, origin)
        self._seen = seen

    def load(self) -> Checkpoint:
        super().load()
        return self._seen.checkpoint

    @property
    def voids(self) -> int:
        return 0

    def save(self, verified: VerifiedCheckpoint | None, voids: int | None = None) -> None:
        pass


class _Filler(NamedTuple):
    """Digests of the artifact, the envelope and the report of a version that is never resolved."""

    digest: str
    envelope: str
    report: str


class _Registry:
    """A registry of many versions with ten events each. The one to resolve is published in their middle."""

    newest: VerifiedCheckpoint
    _seen: Checkpoint | None
    _judged: frozenset[str]

    def __init__(self, folder: str, signer: Ed25519Signer, versions: int) -> None:
        Path(folder).mkdir(parents=True)
        self._settings = Settings(cwd=folder, state_dir=f"{folder}/state")
        init(self._settings)
        with open_platform(self._settings) as platform:
            self._origin, store_id = origin_of(platform.store_id), platform.store_id
        self.catalog = SqliteCatalog.open(f"{folder}/.ctx/catalog.db", store_id)
        self.objects = FileObjects(f"{folder}/.ctx/objects")
        self._signer = signer
        self.request = ResolveRequest(refs=(_PACK,), tenant=_TENANT, environment="prod", purpose="new_traffic")
        self._reviewers = {role: generate_key(b"a passphrase of the bench")[1] for role in REVIEW_ROLES}
        self._seen, self._judged = None, frozenset[str]()
        self._keys = self._trust_keys()
        fill = self._fill = _Filler(*(str(self._put(word)) for word in (b"artifact", b"envelope", b"report")))
        half, self._versions = versions // 2, versions
        for begin in range(0, half, _PART):
            self._append([change for n in range(begin, min(begin + _PART, half)) for change in _version(n, fill)])
        self._publish()
        for begin in range(half, versions, _PART):
            self._append([change for n in range(begin, min(begin + _PART, versions)) for change in _version(n, fill)])
        first = self.resolve()
        self._seen, self._judged = first.proof.checkpoint, frozenset(first.judged)

    @property
    def entries(self) -> int:
        assert self._seen is not None
        return self._seen.size

    def resolve(self) -> Resolution:
        """Resolve like a client that knows the keyring and has seen the log before."""
        with self.catalog.read() as view:
            keys = follow_keyring(view.streams, self._keys, _CHECK)
            opened = open_registry(view, keys, _CHECK, origin=self._origin, seen=self._seen, voids=0)
            standpoint = ResolveContext(
                trust_context=TrustContext(keyring=keys, check=_CHECK, now=_NOW),
                capabilities=RuntimeCapabilities(ontologies=("ont.support@1.0.0",)),
                judgement=ClaimsJudgement(judge=judge_publication, gates="bench", judged=self._judged),
                seen=self._seen,
            )
            return resolve(self.request, CatalogSnapshot(opened, self.objects.get), standpoint)

    def open(self, seen: VerifiedCheckpoint) -> None:
        """Open it like a command of a client that saw this checkpoint last, and forgets that it saw more."""
        with open_platform(self._settings) as platform:
            keys = KeyStore(platform, lambda: None)
            keys.memory = _FixedMemory(platform.client_state, self._origin, seen)
            with RegistrySession(keys).read():
                pass

    def audit(self, kept: VerifiedCheckpoint | None = None) -> None:
        """Verify all of it, or what came since a checkpoint."""
        verify = audit if kept is None else partial(audit_since, kept.note)
        with self.catalog.read() as view:
            verify(AuditInputs(view=view, known=TrustedKeys(origin=self._origin), check=_CHECK))

    def grow(self, entries: int) -> None:
        """Publish more versions, one act each, until there are so many entries more."""
        for _ in range(entries // _EACH):
            self._versions += 1
            self._append(list(_version(self._versions, self._fill)))

    def _trust_keys(self) -> TrustedKeys:
        people: list[tuple[Ed25519Signer, tuple[str, ...]]] = [(self._signer, ("operator", "owner", "publisher"))]
        people += [(key, tuple(sorted(("log", role, "support_ops")))) for role, key in self._reviewers.items()]
        keys = TrustedKeys(origin=self._origin)
        with self.catalog.write() as tx:
            for signer, roles in people:
                key = encode_base64(signer.public_key.raw)
                change = KeyTrust(issuer=_TENANT, key=key, roles=roles, valid_from=str(_NOW), valid_until=None)
                body = sign_change(
                    keys, change, at=_NOW, signer=self._signer, entry=next_keyring_entry(tx.streams, keys)
                )
                keys = append_change(tx.streams, keys, body, _CHECK)
            sign_log(tx, [], heads=EMPTY_ROOT, keys=keys, signer=self._signer, at=_NOW, origin=self._origin)
        return keys

    def _put(self, data: bytes) -> Digest:
        self.objects.put(data)
        with self.catalog.write(survives="crash") as tx:
            tx.objects.record(IndexedObject(digest=Digest.of(data), kind=BLOB, size=len(data), traced=True))
        return Digest.of(data)

    def _append(self, planned: list[PlannedChange], by: Ed25519Signer | None = None) -> None:
        signer = by or self._signer
        with self.catalog.write(survives="crash") as tx:
            writer = RegistryWriter(
                tx, keys=self._keys, check=_CHECK, signer=signer, now=_NOW, origin=self._origin, seen=self._seen
            )
            self.newest = writer.append(planned).newest
            self._seen = self.newest.checkpoint

    def _publish(self) -> None:
        digest = self._put(canonical(json.loads(_EXAMPLE.read_bytes())))
        statement = Statement(name=str(_PACK), kind="context_pack", issuer=_TENANT, digest=digest)
        envelope = self._put(sign(statement, self._signer))
        report = self._put(gates_report(_PACK, digest, Report(findings=())))
        published = _publication(_Filler(str(digest), str(envelope), str(report)))
        drafted = Drafted(kind="context_pack", id=_PACK.pack_id, version=_PACK.version, issuer=_TENANT)
        steps: list[tuple[Change, Ed25519Signer]] = [(drafted, self._signer)]
        steps.append((Linted(report=str(report), roles=(), after=""), self._signer))
        steps += [(Review(role=role, verdict="approve"), key) for role, key in self._reviewers.items()]
        steps.append((Signed(envelope=str(envelope), threshold=1), self._signer))
        for change, by in steps:
            self._append([PlannedChange(stream=artifact_stream(digest), change=change, reason="as it should be")], by)
        pinned = Pinned(kind="context_pack", id=_PACK.pack_id, version=_PACK.version, digest=str(digest), pins=Pins())
        self._append(plan_publication(NameState(base_id=_PACK.pack_id), _PACK, published, "released"))
        self._append([PlannedChange(stream=pins_stream("prod", _PACK.pack_id), change=pinned, reason="released")])


def _version(number: int, fill: _Filler) -> Iterator[PlannedChange]:
    stream, published = version_stream(PackRef(f"pack.{number}", "1.0.0")), _publication(fill)
    claim = NameClaimed(issuer=_TENANT, kind="context_pack", tenant=_TENANT)
    yield PlannedChange(stream=names_stream(f"pack.{number}"), change=claim, reason="released")
    yield PlannedChange(stream=stream, change=published, reason="released")
    for n in range(_EACH - 2):
        yield PlannedChange(
            stream=stream, change=Observed(environment=f"env_{n}", run=f"run_{n}"), reason="seen in a run"
        )


def _publication(fill: _Filler) -> Published:
    return Published(
        digest=fill.digest,
        kind="context_pack",
        issuer=_TENANT,
        envelope=fill.envelope,
        report=fill.report,
        golden="not_run",
        after="",
    )
