"""The demo, chapter by chapter: each does something real to a real store and tells what came of it.

The world of the demo: one refund, as a support agent handled it twice. Made up, and the same on every machine.
"""

import hashlib
import os
from collections.abc import Callable, Iterator

from contextplane.app.demo.contract import compiled, judged_first, refusal, released, true
from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import Platform, opened
from contextplane.app.repair import repaired
from contextplane.app.settings import Settings
from contextplane.audit.diff import diff
from contextplane.audit.load import LoadedPack, load, part_digest
from contextplane.audit.replay import fidelity, replay_recorded
from contextplane.audit.verify import PackVerdict, verify_pack
from contextplane.model.catalog import BLOB, PackFilter, Recorded
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.store.status import contents

__all__ = ["CHAPTERS", "DECISION", "ORDER", "Chapter", "kept_runs", "later_log", "refund_log", "tour"]

ORDER = '{"amount_inr":4200,"ceid":"order:ord_881","customer":"customer:cus_77","status":"delivered"}'
DECISION = '{"amount_inr":4200,"decision_key":"support.refund.execute","outcome":"escalated"}'
_PAID = '{"amount_inr":4200,"decision_key":"support.refund.execute","outcome":"executed"}'
_POLICY = '{"allow":true,"gate":"GATE_FINANCE_APPROVAL","rule":"R_HIGH_VALUE_REQUIRES_APPROVAL"}'
_LATER_POLICY = '{"allow":true,"rule":"R_WITHIN_LIMIT"}'


def refund_log() -> dict[str, Json]:
    """The run as its agent logged it. The order and what its lookup returned are the same bytes."""
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
    """The same refund under a policy that was changed in between: nobody has to be asked, and it is paid."""
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
    """Tell the story in a folder that is empty at first."""
    settings = Settings(cwd=folder)
    for title, tell in CHAPTERS:
        yield Chapter(title=title, lines=tuple(tell(settings)))


def kept_runs(folder: str) -> tuple[Digest, Digest]:
    """The two runs of the story that was told in this folder, the first one first."""
    with opened(Settings(cwd=folder)) as platform, platform.catalog.read() as view:
        later, first = view.packs.page(PackFilter(), 2)
    return first.digest, later.digest


def _made(settings: Settings) -> Iterator[str]:
    done = init(settings, ".")
    yield f"made {done.path}"
    yield f"its id is {done.store_id}; of its catalog only the events could not be made again"


def _kept(settings: Settings) -> Iterator[str]:
    log = canonical(refund_log())
    with opened(settings) as platform:
        first = pack_log(platform, log, root=settings.cwd)
        again = pack_log(platform, log, root=settings.cwd)
        yield f"ctx pack refund.json: ctx://{first.digest.hex}"
        here = contents(platform.catalog)
        blobs = sum(tally.objects for tally in here.kinds if tally.kind == BLOB)
        yield f"its 7 contents are {blobs} objects: the order and its lookup's answer are the same bytes, kept once"
        yield true(again.digest == first.digest and not again.new, "packed again: the same identity, nothing new")


def _found(settings: Settings) -> Iterator[str]:
    with opened(settings) as platform:
        with platform.catalog.read() as view:
            (hit,) = view.texts.search("finance decides", 5)
            (row,) = view.packs.page(PackFilter(tool="adp_policy.eval"), 5)
        yield f"ctx search 'finance decides': {hit.pack.hex[:12]}:{hit.part}"
        yield f"ctx log --tool adp_policy.eval: {row.digest.hex[:12]}  {row.model}  {row.steps} steps"
        pack = load(row.digest, platform.objects)
        thought = platform.objects.get(part_digest(pack, hit.part)).decode()
        yield f"ctx cat {row.digest.hex[:12]}:{hit.part}: {thought}"


def _compared(settings: Settings) -> Iterator[str]:
    with opened(settings) as platform:
        first = _first(platform)
        later = load(pack_log(platform, canonical(later_log()), root=settings.cwd).digest, platform.objects)
        yield f"a week later the same refund is paid: ctx pack later.json: ctx://{later.digest.hex}"
        found = diff(first, later, platform.objects)
        told = f"{len(found.entries)} differences, the first one first"
        yield f"ctx diff {first.digest.hex[:12]} {later.digest.hex[:12]}: {told}"
        for entry in found.entries:
            yield f"  [{entry.type}] {entry.description}"
            if entry is found.entries[0] and entry.text:
                yield from (f"    {line}" for line in entry.text.lines if line[:2] in {"-{", "+{"})
    by_tool = any("adp_payments.refund added" in entry.description for entry in found.entries)
    yield true(by_tool, "one step more is one difference: the steps after it are still compared with their own")


def _proved(settings: Settings) -> Iterator[str]:
    with opened(settings) as platform:
        first = _first(platform)
        verdict = _verdict(platform, first)
        yield true(
            verdict.answer == "verified",
            f"ctx verify {first.digest.hex[:12]}: {verdict.answer}, {verdict.objects} objects hashed again",
        )
        parts = list(replay_recorded(first, platform.objects))
        told = f"ctx replay {first.digest.hex[:12]} --recorded: {len(parts)} parts read back, fidelity exact"
        yield true(fidelity(parts) == "exact", told)
        yield "without --recorded the tools of the run are called again, each in its confines, and compared"


def _plain(settings: Settings) -> Iterator[str]:
    with opened(settings) as platform:
        path = _path(platform, Digest.of(DECISION.encode()))
    with open(path, "rb") as file:
        digits = hashlib.sha256(file.read()).hexdigest()
    yield f"sha256sum {os.path.relpath(path, settings.cwd)}"
    yield true(path.replace(os.sep, "").endswith(digits), f"{digits}: the name of the file")


def _tampered(settings: Settings) -> Iterator[str]:
    right = DECISION.encode()
    with opened(settings) as platform:
        path = _path(platform, Digest.of(right))
        os.chmod(path, 0o644)
        with open(path, "wb") as file:
            file.write(right.replace(b"escalated", b"approved!"))
        yield "someone writes 'approved!' over 'escalated'"
        yield f"reading it is refused: {refusal(lambda: platform.objects.get(Digest.of(right)))}"
        answer = _verdict(platform, _first(platform)).answer
        yield true(answer == "modified", "ctx verify says so: modified, and ends with status 11")
        for finding in fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _objects: None):
            yield f"fsck: {finding.state} {finding.what[:19]}..., needed by {finding.needed_by[0][:19]}..."
        platform.objects.put(right)
        yield true(platform.objects.get(Digest.of(right)) == right, "putting the right bytes again heals it")


def _lost(settings: Settings) -> Iterator[str]:
    with opened(settings) as platform:
        before, path = contents(platform.catalog), platform.home.catalog
    for name in (path, f"{path}-wal", f"{path}-shm"):
        if os.path.exists(name):
            os.unlink(name)
    yield "the catalog is deleted"
    yield f"every verb refuses, rather than forget quietly: {refusal(lambda: opened(settings).__enter__())}"
    with repaired(settings) as done:
        same = contents(done.platform.catalog).kinds == before.kinds
        yield true(same, f"fsck --rebuild: {done.rebuilt.objects} objects indexed again, as before")
        for line in done.loss.truth if done.loss else ():
            yield f"it names what no rebuild brings back: {line}"


def _collected(settings: Settings) -> Iterator[str]:
    with opened(settings) as platform:
        draft = b"a draft that was never finished"
        digest = platform.objects.put(draft)
        with platform.catalog.write() as tx:
            tx.objects.record(Recorded(digest=digest, kind=BLOB, size=len(draft), traced=True))
        os.utime(_path(platform, digest), (0, 0))
        yield "an old draft lies around that nothing refers to"
        stores = (platform.catalog, platform.entries, platform.objects)
        done = gc(*stores, older_than=platform.clock.now(), dry_run=False)
        yield f"gc removed {len(done.objects)} object, {done.freed} bytes; the runs are untouched:"
        here = contents(platform.catalog)
        findings = list(fsck(*stores, lambda _size, _objects: None))
        yield true(not findings, f"{here.objects} objects, {here.execution_packs} execution packs, all sound")


def _first(platform: Platform) -> LoadedPack:
    """The run that the story began with."""
    with platform.catalog.read() as view:
        rows = view.packs.page(PackFilter(), 2)
    return load(rows[-1].digest, platform.objects)


def _verdict(platform: Platform, pack: LoadedPack) -> PackVerdict:
    return verify_pack(pack.digest, platform.entries, platform.objects, seen=lambda _size, _objects: None)


def _path(platform: Platform, digest: Digest) -> str:
    return os.path.join(platform.home.objects, digest.hex[:2], digest.hex[2:])


CHAPTERS: tuple[tuple[str, Callable[[Settings], Iterator[str]]], ...] = (
    ("A store is made", _made),
    ("A refund is kept: what the agent saw, what it did, what it decided", _kept),
    ("It can be found again", _found),
    ("The same refund, decided otherwise: what changed?", _compared),
    ("It can be proved, and replayed", _proved),
    ("Nothing is hidden: any tool can check it", _plain),
    ("A decision is tampered with", _tampered),
    ("The catalog is lost", _lost),
    ("What nobody needs is collected", _collected),
    ("A contract says what an agent may do, and is judged before anybody runs it", judged_first),
    ("Nobody releases it alone", released),
    ("What an agent gets for one request, and nothing else", compiled),
)
