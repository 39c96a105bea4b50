"""Resolving a pack in a large registry against a small one, resolving it again, and following a long log."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.measure import Row, in_turns, scratch
from contextplane.adapters.ed25519 import Ed25519Check, Ed25519Signer, generated
from contextplane.adapters.files.objects import FileObjects
from contextplane.adapters.sqlite.catalog import SqliteCatalog
from contextplane.model.catalog import BLOB, Recorded
from contextplane.model.ids import Digest, PackRef
from contextplane.model.json.canonical import canonical
from contextplane.model.timestamp import Timestamp
from contextplane.registry.artifact_state import FOUR
from contextplane.registry.events import Change, Drafted, Linted, Observed, Pinned, Pins, Published, Review, Signed
from contextplane.registry.open import open_registry
from contextplane.registry.resolution import Asked, CatalogShelf, ResolutionCache, Resolved, StateNumber, state_number
from contextplane.registry.resolve import Standpoint, resolve
from contextplane.registry.streams import TREE, artifact_stream, origin_of, pins_stream, version_stream
from contextplane.registry.writer import Planned, Writer
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.compatibility import Present
from contextplane.trust.dsse import Statement, encoded
from contextplane.trust.keyring import KeyTrust, TrustedKeys, proposed
from contextplane.trust.keyring_stream import append_change, followed
from contextplane.trust.merkle import StreamTree, consistency_proof
from contextplane.trust.verify import Grounds, sign

__all__ = ["registry"]

_EXAMPLE = Path(__file__).parent.parent / "tests" / "cases" / "context_pack" / "support.json"
_TENANT, _STORE = "tenant_acme_prod", "0123456789abcdef"
_PACK = PackRef.parse("ctxpack.support@1.0.0")
_FEW, _MANY = 10, 10_000
_EACH = 10
_PART = 100
_REPEATS, _HITS = 20, 20_000
_NOW = Timestamp.parse("2030-01-01T00:00:00Z")
_CHECK = Ed25519Check()


def registry() -> Iterator[Row]:
    with scratch() as folder:
        _, signer = generated(b"bench")
        small = _Registry(f"{folder}/small", signer, _FEW)
        start = time.perf_counter()
        large = _Registry(f"{folder}/large", signer, _MANY)
        made = time.perf_counter() - start
        yield from _resolving(small, large, made)
        yield _again(large)
        yield _following(large)


def _resolving(small: "_Registry", large: "_Registry", made: float) -> Iterator[Row]:
    def often(registry: _Registry) -> Callable[[], object]:
        return lambda: [registry.resolved() for _ in range(_REPEATS)]

    few, many = in_turns([often(small), often(large)], rounds=25)
    ratio = many / few
    each = f"{many / _REPEATS * 1000:.2f} ms, {few / _REPEATS * 1000:.2f} ms"
    figures = f"{each}; {large.entries:,} events made in {made:.0f} s"
    what = f"verify and resolve among {_MANY:,} versions, {large.entries:,} events"
    yield Row(what, f"among {_FEW} versions, {small.entries} events", ratio, "<= 1.3", ratio <= 1.3, figures)


def _again(large: "_Registry") -> Row:
    cache = ResolutionCache()
    with large.catalog.read() as view:
        state = state_number(view.streams)

    def ask(known: StateNumber | None = None) -> Resolved:
        return cache.resolved(large.asked, _NOW, lambda: (large.resolved(), state), known)

    def ask_now() -> Resolved:
        with large.catalog.read() as view:
            return ask(state_number(view.streams))

    ask()
    works: list[Callable[[], object]] = [large.resolved, lambda: [ask() for _ in range(_HITS)]]
    works.append(lambda: [ask_now() for _ in range(_REPEATS)])
    cold, warm, asked = in_turns(works, rounds=15)
    hit = warm / _HITS
    figures = (
        f"{hit * 1e6:.2f} us; asking for the state first {asked / _REPEATS * 1e6:.0f} us; cold {cold * 1e6:.0f} us"
    )
    return Row("resolving again, a cache hit", "20 us", hit * 1e6 / 20, "<= 1", hit <= 20e-6, figures)


def _following(large: "_Registry") -> Row:
    """How many nodes are fetched to show that the log goes on from what was seen: the worst of many old sizes."""
    size = large.entries
    worst, total, tried = 0, 0, 0
    with large.catalog.read() as view:
        for old in range(1, size, 101):
            nodes = _Counted(StreamTree(view.streams, TREE))
            consistency_proof(nodes, old, size)
            worst, total, tried = max(worst, nodes.fetched), total + nodes.fetched, tried + 1
    levels = size.bit_length()
    ratio = worst / levels
    figures = f"at most {worst} nodes, {total / tried:.0f} on average, of a log of {size:,} entries"
    return Row(
        "nodes fetched by a consistency check", f"log2 of its size, {levels}", ratio, "<= 3", ratio <= 3, figures
    )


class _Counted:
    def __init__(self, tree: StreamTree) -> None:
        self._tree = tree
        self.fetched = 0

    def node(self, level: int, index: int) -> bytes:
        self.fetched += 1
        return self._tree.node(level, index)


class _Filler(NamedTuple):
    """What stands for the artifact, the envelope and the report of a version that nobody asks for."""

    digest: str
    envelope: str
    report: str


class _Registry:
    """A registry of so many versions, with ten events each. The one that is asked for is published in their middle."""

    _seen: Checkpoint | None

    def __init__(self, folder: str, signer: Ed25519Signer, versions: int) -> None:
        Path(folder, "objects").mkdir(parents=True)
        self.catalog, _ = SqliteCatalog.create(f"{folder}/catalog.db", _STORE)
        self.objects = FileObjects(f"{folder}/objects")
        self._signer = signer
        self.asked = Asked(refs=(_PACK,), tenant=_TENANT, environment="prod", purpose="new_traffic")
        self._reviewers = {role: generated(b"bench")[1] for role in FOUR}
        self._keys = self._trusted()
        fill = _Filler(*(str(self._put(word)) for word in (b"artifact", b"envelope", b"report")))
        half = versions // 2
        for begin in range(0, half, _PART):
            self._append([one for n in range(begin, min(begin + _PART, half)) for one in _version(n, fill)])
        self._publish()
        for begin in range(half, versions, _PART):
            self._append([one for n in range(begin, min(begin + _PART, versions)) for one in _version(n, fill)])
        self._seen = None
        self._seen = self.resolved().proof.checkpoint

    @property
    def entries(self) -> int:
        assert self._seen is not None
        return self._seen.size

    def resolved(self) -> Resolved:
        """As a client does it that knows the keyring and has seen the log before."""
        with self.catalog.read() as view:
            keys = followed(view.streams, self._keys, _CHECK)
            opened = open_registry(view, keys, _CHECK, origin=origin_of(_STORE), seen=self._seen)
            standpoint = Standpoint(
                grounds=Grounds(keyring=keys, check=_CHECK, now=_NOW),
                present=Present(ontologies=("ont.support@1.0.0",)),
                seen=self._seen,
            )
            return resolve(self.asked, CatalogShelf(opened, self.objects.get), standpoint)

    def _trusted(self) -> TrustedKeys:
        people: list[tuple[Ed25519Signer, tuple[str, ...]]] = [(self._signer, ("operator", "owner", "publisher"))]
        people += [(key, (role, "support_ops")) for role, key in self._reviewers.items()]
        keys = TrustedKeys()
        with self.catalog.write() as tx:
            for one, roles in people:
                key = encoded(one.public_key.raw)
                change = KeyTrust(issuer=_TENANT, key=key, roles=roles, valid_from=str(_NOW), valid_until=None)
                body = proposed(keys, change, at=_NOW, signer=self._signer)
                keys = append_change(tx.streams, keys, body, _CHECK)
        return keys

    def _put(self, data: bytes) -> Digest:
        self.objects.put(data)
        with self.catalog.write(survives="crash") as tx:
            tx.objects.record(Recorded(digest=Digest.of(data), kind=BLOB, size=len(data), traced=True))
        return Digest.of(data)

    def _append(self, planned: list[Planned], by: Ed25519Signer | None = None) -> None:
        signer = by or self._signer
        with self.catalog.write(survives="crash") as tx:
            writer = Writer(tx, keys=self._keys, check=_CHECK, signer=signer, now=_NOW, origin=origin_of(_STORE))
            writer.append(planned)

    def _publish(self) -> None:
        digest = self._put(canonical(json.loads(_EXAMPLE.read_bytes())))
        statement = Statement(name=str(_PACK), kind="context_pack", issuer=_TENANT, digest=digest)
        envelope, report = self._put(sign(statement, self._signer)), self._put(b"a report")
        published = _published(_Filler(str(digest), str(envelope), str(report)))
        drafted = Drafted(kind="context_pack", id=_PACK.pack_id, version=_PACK.version, issuer=_TENANT)
        steps: list[tuple[Change, Ed25519Signer]] = [(drafted, self._signer)]
        steps.append((Linted(report=str(report), roles=(), after=""), self._signer))
        steps += [(Review(role=role, verdict="approve"), key) for role, key in self._reviewers.items()]
        steps.append((Signed(envelope=str(envelope), threshold=1), self._signer))
        for change, by in steps:
            self._append([Planned(stream=artifact_stream(digest), change=change, reason="as it should be")], by)
        pinned = Pinned(kind="context_pack", id=_PACK.pack_id, version=_PACK.version, digest=str(digest), pins=Pins())
        self._append(
            [
                Planned(stream=version_stream(_PACK), change=published, reason="released"),
                Planned(stream=pins_stream("prod", _PACK.pack_id), change=pinned, reason="released"),
            ]
        )


def _version(number: int, fill: _Filler) -> Iterator[Planned]:
    stream = version_stream(PackRef(f"pack.{number}", "1.0.0"))
    yield Planned(stream=stream, change=_published(fill), reason="released")
    for n in range(_EACH - 1):
        yield Planned(stream=stream, change=Observed(environment=f"env_{n}", run=f"run_{n}"), reason="seen in a run")


def _published(fill: _Filler) -> Published:
    return Published(
        digest=fill.digest,
        kind="context_pack",
        issuer=_TENANT,
        envelope=fill.envelope,
        report=fill.report,
        golden="not_run",
        after="",
    )
