"""The demo, chapter by chapter: each does something real to a real store and tells what came of it."""

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import ClassVar

from contextplane.app.demo.refund import CONTENTS, MODEL, TOOLS
from contextplane.app.init import init
from contextplane.app.platform import Platform, opened
from contextplane.app.repair import repaired
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.canonical import canonical
from contextplane.model.ids import Digest
from contextplane.model.value import Value
from contextplane.ports.catalog import BLOB, Recorded
from contextplane.store.follow import follow
from contextplane.store.fsck import fsck
from contextplane.store.gc import gc
from contextplane.store.status import contents

__all__ = ["CHAPTERS", "Chapter", "StoryUntrue", "tour"]


class StoryUntrue(ContextPlaneError):
    """The demo was about to tell something that did not happen."""

    code: ClassVar[str] = "demo_untrue"


class Chapter(Value, frozen=True):
    """A heading, and the lines of what happened."""

    title: str
    lines: tuple[str, ...]


def tour(folder: str) -> Iterator[Chapter]:
    """Tell the story in a folder that is empty at first."""
    settings = Settings(cwd=folder)
    for title, tell in CHAPTERS:
        yield Chapter(title=title, lines=tuple(tell(settings)))


def _made(settings: Settings) -> Iterator[str]:
    done = init(settings, ".")
    yield f"made {done.path}"
    yield f"its id is {done.store_id}; of its catalog only the events could not be made again"


def _kept(settings: Settings) -> Iterator[str]:
    with opened(settings) as platform:
        first, again = _record(platform), _record(platform)
        here = contents(platform.catalog)
        yield f"ctx://{first.hex}"
        blobs = sum(tally.objects for tally in here.kinds if tally.kind == BLOB)
        yield f"{len(CONTENTS)} contents are {blobs} objects: the order and its lookup are the same bytes, kept once"
        yield _true(again == first, "recorded again: the same identity")


def _record(platform: Platform) -> Digest:
    """Keep one run: its contents and its manifest as objects, its name among the packs."""
    with platform.objects.batch() as batch:
        refs = {name: str(batch.put(data)) for name, data in CONTENTS.items()}
        manifest = canonical(_manifest(refs))
        digest = batch.put(manifest)
    platform.entries.add(digest, str(digest).encode())
    follow(platform.catalog, platform.entries, platform.objects)
    return digest


def _manifest(refs: dict[str, str]) -> dict[str, object]:
    steps = [("adp_orders.lookup", "lookup"), ("adp_policy.eval", "policy")]
    return {
        "version": "0.1",
        "hash": "",
        "created": "2026-05-04T09:31:42Z",
        "model": {"identifier": MODEL, "parameters": {"temperature": 0}},
        "system_prompt": refs["system_prompt"],
        "prompts": [{"role": "user", "content_ref": refs["request"]}],
        "inputs": [{"name": "order.json", "content_ref": refs["order"], "size": len(CONTENTS["order"])}],
        "steps": [
            {
                "index": index,
                "type": "tool_call",
                "tool": tool,
                "parameters": {"order_id": "ord_881"},
                "output_ref": refs[name],
                "deterministic": True,
                "timestamp": f"2026-05-04T09:31:4{index}Z",
            }
            for index, (tool, name) in enumerate(steps)
        ],
        "outputs": [{"name": "decision.json", "content_ref": refs["decision"]}],
        "environment": {"os": "linux", "runtime": "demo", "tool_versions": TOOLS},
    }


def _plain(settings: Settings) -> Iterator[str]:
    with opened(settings) as platform:
        path = _path(platform, Digest.of(CONTENTS["decision"]))
    with open(path, "rb") as file:
        digits = hashlib.sha256(file.read()).hexdigest()
    yield f"sha256sum {os.path.relpath(path, settings.cwd)}"
    yield _true(path.replace(os.sep, "").endswith(digits), f"{digits}: the name of the file")


def _tampered(settings: Settings) -> Iterator[str]:
    right = CONTENTS["decision"]
    with opened(settings) as platform:
        path = _path(platform, Digest.of(right))
        os.chmod(path, 0o644)
        with open(path, "wb") as file:
            file.write(right.replace(b"escalated", b"approved!"))
        yield "someone writes 'approved!' over 'escalated'"
        yield f"reading it is refused: {_refusal(lambda: platform.objects.get(Digest.of(right)))}"
        for finding in fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _objects: None):
            yield f"fsck: {finding.state} {finding.what[:19]}..., needed by {finding.needed_by[0][:19]}..."
        platform.objects.put(right)
        yield _true(platform.objects.get(Digest.of(right)) == right, "putting the right bytes again heals it")


def _lost(settings: Settings) -> Iterator[str]:
    with opened(settings) as platform:
        before, path = contents(platform.catalog), platform.home.catalog
    for name in (path, f"{path}-wal", f"{path}-shm"):
        if os.path.exists(name):
            os.unlink(name)
    yield "the catalog is deleted"
    yield f"every verb refuses, rather than forget quietly: {_refusal(lambda: opened(settings).__enter__())}"
    with repaired(settings) as done:
        same = contents(done.platform.catalog).kinds == before.kinds
        yield _true(same, f"fsck --rebuild: {done.rebuilt.objects} objects indexed again, as before")
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
        yield f"gc removed {len(done.objects)} object, {done.freed} bytes; the run is untouched:"
        here = contents(platform.catalog)
        findings = list(fsck(*stores, lambda _size, _objects: None))
        yield _true(not findings, f"{here.objects} objects, {here.execution_packs} execution pack, all sound")


def _true(claim: bool, told: str) -> str:  # noqa: FBT001  reads as what it is
    if not claim:
        raise StoryUntrue(f"this did not happen: {told}")
    return told


def _refusal(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except ContextPlaneError as error:
        return error.code
    raise StoryUntrue("this was not refused")


def _path(platform: Platform, digest: Digest) -> str:
    return os.path.join(platform.home.objects, digest.hex[:2], digest.hex[2:])


CHAPTERS: tuple[tuple[str, Callable[[Settings], Iterator[str]]], ...] = (
    ("A store is made", _made),
    ("A refund is kept: what the agent saw, what it did, what it decided", _kept),
    ("Nothing is hidden: any tool can check it", _plain),
    ("A decision is tampered with", _tampered),
    ("The catalog is lost", _lost),
    ("What nobody needs is collected", _collected),
)
