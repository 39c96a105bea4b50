"""The demo, chapter by chapter: each does something real to a real store and reports the outcome.

Its runs are one refund, as a support agent handled it twice: made up, and the same on every machine.
"""

import hashlib
import os
from collections.abc import Callable, Iterator

from contextplane.app.demo.contract import authoring_chapter, compile_chapter, refusal_code, release_chapter, require
from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.repair import open_repaired
from contextplane.app.settings import Settings
from contextplane.audit.diff import diff_packs
from contextplane.audit.load import LoadedPack, load_pack, part_digest
from contextplane.audit.replay import fidelity, replay_recorded
from contextplane.audit.verify import PackVerdict, verify_pack
from contextplane.model.catalog import BLOB, IndexedObject, PackFilter
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.store.status import store_contents

__all__ = ["CHAPTERS", "DECISION", "ORDER", "Chapter", "later_log", "recorded_runs", "refund_log", "tour"]

ORDER = '{"amount_inr":4200,"ceid":"order:ord_881","customer":"customer:cus_77","status":"delivered"}'
DECISION = '{"amount_inr":4200,"decision_key":"support.refund.execute","outcome":"escalated"}'
_PAID = '{"amount_inr":4200,"decision_key":"support.refund.execute","outcome":"executed"}'
_POLICY = '{"allow":true,"gate":"GATE_FINANCE_APPROVAL","rule":"R_HIGH_VALUE_REQUIRES_APPROVAL"}'
_LATER_POLICY = '{"allow":true,"rule":"R_WITHIN_LIMIT"}'


def refund_log() -> dict[str, Json]:
    """Return the log of the first run. The order and the output of its lookup are the same bytes."""
    return {
        "model": {"identifier": "model-of-the-demo-1", "parameters": {"temperature": 0}},
        "system_prompt": "You handle refunds. Never promise one before the policy is verified.",
        "prompts": [{"role": "user", "content": "Refund order ord_881 for INR 4200."}],
        "inputs": [{"name": "order.json", "content": ORDER}],
        "steps": [
            _call("adp_orders.lookup", ORDER, "2026-05-04T09:31:40Z"),
            _call("adp_policy.eval", _POLICY, "2026-05-04T09:31:41Z"),
            {"type": "reasoning", "output": "Over the limit: finance decides.", "timestamp": "2026-05-04T09:31:42Z"},
        ],
        "outputs": [{"name": "decision.json", "content": DECISION}],
        "environment": {"os": "linux", "runtime": "demo", "tool_versions": {"adp_orders": "2026-04-15"}},
    }


def later_log() -> dict[str, Json]:
    """Return the log of the same refund under a later policy: no approval is needed, and it is paid."""
    return {
        **refund_log(),
        "steps": [
            _call("adp_orders.lookup", ORDER, "2026-05-11T09:31:40Z"),
            _call("adp_policy.eval", _LATER_POLICY, "2026-05-11T09:31:41Z"),
            _call("adp_payments.refund", '{"status":"paid"}', "2026-05-11T09:31:42Z"),
            {"type": "reasoning", "output": "Within the limit: paid.", "timestamp": "2026-05-11T09:31:43Z"},
        ],
        "outputs": [{"name": "decision.json", "content": _PAID}],
    }


def _call(tool: str, output: str, timestamp: str) -> dict[str, Json]:
    return {
        "type": "tool_call",
        "tool": tool,
        "parameters": {"order_id": "ord_881"},
        "output": output,
        "deterministic": True,
        "timestamp": timestamp,
    }


class Chapter(Value, frozen=True):
    """A heading, and the lines of what happened."""

    title: str
    lines: tuple[str, ...]


def tour(folder: str) -> Iterator[Chapter]:
    """Run every chapter in a folder that is empty at first."""
    settings = Settings(cwd=folder)
    for title, run in CHAPTERS:
        yield Chapter(title=title, lines=tuple(run(settings)))


def recorded_runs(folder: str) -> tuple[Digest, Digest]:
    """Return the two runs of the tour that ran in this folder, in the order of their time."""
    with open_platform(Settings(cwd=folder)) as platform, platform.catalog.read() as view:
        later, first = view.packs.page(PackFilter(), 2)
    return first.digest, later.digest


def _init_chapter(settings: Settings) -> Iterator[str]:
    done = init(settings, ".")
    yield f"made {done.path}"
    yield f"its id is {done.store_id}; of its catalog only the events could not be made again"


def _pack_chapter(settings: Settings) -> Iterator[str]:
    log = canonical(refund_log())
    with open_platform(settings) as platform:
        first = pack_log(platform, log, root=settings.cwd)
        again = pack_log(platform, log, root=settings.cwd)
        yield f"ctx pack refund.json: ctx://{first.digest.hex}"
        here = store_contents(platform.catalog)
        blobs = sum(tally.objects for tally in here.kinds if tally.kind == BLOB)
        yield f"its 7 contents are {blobs} objects: the order and its lookup's answer are the same bytes, kept once"
        yield require(again.digest == first.digest and not again.new, "packed again: the same identity, nothing new")


def _search_chapter(settings: Settings) -> Iterator[str]:
    with open_platform(settings) as platform:
        with platform.catalog.read() as view:
            (hit,) = view.texts.search("finance decides", 5)
            (row,) = view.packs.page(PackFilter(tool="adp_policy.eval"), 5)
        yield f"ctx search 'finance decides': {hit.pack.hex[:12]}:{hit.part}"
        yield f"ctx log --tool adp_policy.eval: {row.digest.hex[:12]}  {row.model}  {row.steps} steps"
        pack = load_pack(row.digest, platform.objects)
        thought = platform.objects.get(part_digest(pack, hit.part)).decode()
        yield f"ctx cat {row.digest.hex[:12]}:{hit.part}: {thought}"


def _diff_chapter(settings: Settings) -> Iterator[str]:
    with open_platform(settings) as platform:
        first = _first_run(platform)
        later = load_pack(pack_log(platform, canonical(later_log()), root=settings.cwd).digest, platform.objects)
        yield f"a week later the same refund is paid: ctx pack later.json: ctx://{later.digest.hex}"
        result = diff_packs(first, later, platform.objects)
        summary = f"{len(result.entries)} differences, the first one first"
        yield f"ctx diff {first.digest.hex[:12]} {later.digest.hex[:12]}: {summary}"
        for entry in result.entries:
            yield f"  [{entry.type}] {entry.description}"
            if entry is result.entries[0] and entry.text:
                yield from (f"    {line}" for line in entry.text.lines if line[:2] in {"-{", "+{"})
    by_tool = any("adp_payments.refund added" in entry.description for entry in result.entries)
    yield require(by_tool, "one step more is one difference: the steps after it are still compared with their own")


def _verify_chapter(settings: Settings) -> Iterator[str]:
    with open_platform(settings) as platform:
        first = _first_run(platform)
        verdict = _verdict(platform, first)
        yield require(
            verdict.answer == "verified",
            f"ctx verify {first.digest.hex[:12]}: {verdict.answer}, {verdict.objects} objects hashed again",
        )
        parts = list(replay_recorded(first, platform.objects))
        line = f"ctx replay {first.digest.hex[:12]} --recorded: {len(parts)} parts read back, fidelity exact"
        yield require(fidelity(parts) == "exact", line)
        yield "without --recorded the tools of the run are called again, each in its confines, and compared"


def _plain_files_chapter(settings: Settings) -> Iterator[str]:
    with open_platform(settings) as platform:
        path = _object_path(platform, Digest.of(DECISION.encode()))
    with open(path, "rb") as file:
        digits = hashlib.sha256(file.read()).hexdigest()
    yield f"sha256sum {os.path.relpath(path, settings.cwd)}"
    yield require(path.replace(os.sep, "").endswith(digits), f"{digits}: the name of the file")


def _tampering_chapter(settings: Settings) -> Iterator[str]:
    right = DECISION.encode()
    with open_platform(settings) as platform:
        path = _object_path(platform, Digest.of(right))
        os.chmod(path, 0o644)
        with open(path, "wb") as file:
            file.write(right.replace(b"escalated", b"approved!"))
        yield "someone writes 'approved!' over 'escalated'"
        yield f"reading it is refused: {refusal_code(lambda: platform.objects.get(Digest.of(right)))}"
        answer = _verdict(platform, _first_run(platform)).answer
        yield require(answer == "modified", "ctx verify says so: modified, and ends with status 11")
        for finding in fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _objects: None):
            yield f"fsck: {finding.state} {finding.what[:19]}..., needed by {finding.needed_by[0][:19]}..."
        platform.objects.put(right)
        yield require(platform.objects.get(Digest.of(right)) == right, "putting the right bytes again heals it")


def _lost_catalog_chapter(settings: Settings) -> Iterator[str]:
    with open_platform(settings) as platform:
        before, path = store_contents(platform.catalog), platform.home.catalog
    for name in (path, f"{path}-wal", f"{path}-shm"):
        if os.path.exists(name):
            os.unlink(name)
    yield "the catalog is deleted"
    yield f"every verb refuses, rather than forget quietly: {refusal_code(lambda: open_platform(settings).__enter__())}"
    with open_repaired(settings) as done:
        same = store_contents(done.platform.catalog).kinds == before.kinds
        yield require(same, f"fsck --rebuild: {done.rebuilt.objects} objects indexed again, as before")
        for line in done.loss.truth if done.loss else ():
            yield f"it names what no rebuild brings back: {line}"


def _gc_chapter(settings: Settings) -> Iterator[str]:
    with open_platform(settings) as platform:
        draft = b"a draft that was never finished"
        digest = platform.objects.put(draft)
        with platform.catalog.write() as tx:
            tx.objects.record(IndexedObject(digest=digest, kind=BLOB, size=len(draft), traced=True))
        os.utime(_object_path(platform, digest), (0, 0))
        yield "an old draft lies around that nothing refers to"
        stores = (platform.catalog, platform.entries, platform.objects)
        done = gc(*stores, older_than=platform.clock.now(), dry_run=False)
        yield f"gc removed {len(done.objects)} object, {done.freed} bytes; the runs are untouched:"
        here = store_contents(platform.catalog)
        findings = list(fsck(*stores, lambda _size, _objects: None))
        yield require(not findings, f"{here.objects} objects, {here.execution_packs} execution packs, all sound")


def _first_run(platform: Platform) -> LoadedPack:
    """Load the first run of the tour."""
    with platform.catalog.read() as view:
        rows = view.packs.page(PackFilter(), 2)
    return load_pack(rows[-1].digest, platform.objects)


def _verdict(platform: Platform, pack: LoadedPack) -> PackVerdict:
    return verify_pack(pack.digest, platform.entries, platform.objects, seen=lambda _size, _objects: None)


def _object_path(platform: Platform, digest: Digest) -> str:
    return os.path.join(platform.home.objects, digest.hex[:2], digest.hex[2:])


CHAPTERS: tuple[tuple[str, Callable[[Settings], Iterator[str]]], ...] = (
    ("A store is made", _init_chapter),
    ("A refund is kept: what the agent saw, what it did, what it decided", _pack_chapter),
    ("It can be found again", _search_chapter),
    ("The same refund, decided otherwise: what changed?", _diff_chapter),
    ("It can be proved, and replayed", _verify_chapter),
    ("Nothing is hidden: any tool can check it", _plain_files_chapter),
    ("A decision is tampered with", _tampering_chapter),
    ("The catalog is lost", _lost_catalog_chapter),
    ("What nobody needs is collected", _gc_chapter),
    ("A contract says what an agent may do, and is judged before anybody runs it", authoring_chapter),
    ("Nobody releases it alone", release_chapter),
    ("What an agent gets for one request, and nothing else", compile_chapter),
)
