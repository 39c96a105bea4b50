"""The demo, chapter by chapter: each does something real to a real store and prints the outcome.

Its story is one refund: the contract for it, two runs of it, and a bug in its code that one agent hands to another. All
of it is made up, and its hashes are the same on every machine.
"""

import os
from collections.abc import Callable, Iterator

from contextplane.app.demo.contract import (
    StoryUntrue,
    compile_chapter,
    contract_chapter,
    refusal_code,
    release_chapter,
    require,
)
from contextplane.app.execution.pack import pack_log
from contextplane.app.handoff.session import open_handoffs
from contextplane.app.init import init
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.audit.diff import diff_packs
from contextplane.audit.load import LoadedPack, load_pack
from contextplane.audit.replay import fidelity, replay_recorded
from contextplane.audit.verify import PackVerdict, verify_pack
from contextplane.handoff.document import read_document
from contextplane.model.catalog import PackFilter
from contextplane.model.handoff import LineRange
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.value import Value
from contextplane.store.fsck import fsck

__all__ = ["CHAPTERS", "DECISION", "ORDER", "Chapter", "later_log", "recorded_runs", "refund_log", "tour"]

ORDER = '{"amount_inr":4200,"ceid":"order:ord_881","customer":"customer:cus_77","status":"delivered"}'
DECISION = '{"amount_inr":4200,"decision_key":"support.refund.execute","outcome":"escalated"}'
_PAID = '{"amount_inr":4200,"decision_key":"support.refund.execute","outcome":"executed"}'
_POLICY = '{"allow":true,"gate":"GATE_FINANCE_APPROVAL","rule":"R_HIGH_VALUE_REQUIRES_APPROVAL"}'
_LATER_POLICY = '{"allow":true,"rule":"R_WITHIN_LIMIT"}'

_STATE = ".state"
"""What the client of the tour remembers, in its folder: nothing is left behind elsewhere."""

_SOURCE_PATH = "shop/refunds.py"
_SOURCE = """\
LIMIT = 3000


def refund(order, amount):
    if amount > LIMIT:
        ask_finance(order)
    pay(order, amount)
"""
_SOURCE_HEAD = '"""Refunds of the shop."""\n\nimport logging\n\n'
_HANDOFF_NAME = "refund-limit"
_FINDINGS: dict[str, Json] = {
    "name": _HANDOFF_NAME,
    "title": "large refunds are paid without approval",
    "sections": [
        {"key": "scope", "title": "Scope", "description": "Only shop/refunds.py."},
        {
            "key": "findings",
            "title": "Findings",
            "refs": [
                {
                    "key": "limit",
                    "path": _SOURCE_PATH,
                    "line_start": 6,
                    "line_end": 7,
                    "title": "the answer of finance is ignored",
                }
            ],
        },
        {"key": "qa", "title": "QA", "description": "Read, not run.\n\nverdict: fail"},
    ],
}


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
    settings = Settings(cwd=folder, state_dir=os.path.join(folder, _STATE))
    init(settings, ".")
    for title, run in CHAPTERS:
        yield Chapter(title=title, lines=tuple(run(settings)))


def recorded_runs(folder: str) -> tuple[Digest, Digest]:
    """Return the two runs of the tour that ran in this folder, in the order of their time."""
    settings = Settings(cwd=folder, state_dir=os.path.join(folder, _STATE))
    with open_platform(settings) as platform, platform.catalog.read() as view:
        later, first = view.packs.page(PackFilter(), 2)
    return first.digest, later.digest


def _runs_chapter(settings: Settings) -> Iterator[str]:
    """Store two runs of the same refund, compare them, and check the first."""
    with open_platform(settings) as platform:
        first = load_pack(_pack_file(platform, settings, "refund.json", refund_log()), platform.objects)
        yield f"ctx pack refund.json: ctx://{first.digest.hex}"
        later = load_pack(_pack_file(platform, settings, "later.json", later_log()), platform.objects)
        yield f"ctx pack later.json:  ctx://{later.digest.hex}"
        names = f"{first.digest.hex[:12]} {later.digest.hex[:12]}"
        result = diff_packs(first, later, platform.objects)
        yield f"ctx diff {names}: {len(result.entries)} differences"
        yield from (f"  [{entry.type}] {entry.description}" for entry in result.entries)
        verdict = _verdict(platform, first)
        exact = fidelity(list(replay_recorded(first, platform.objects))) == "exact"
        name = first.digest.hex[:12]
        yield require(
            verdict.answer == "verified" and exact,
            f"ctx verify {name}: verified; ctx replay {name} --recorded: exact",
        )


def _handoff_chapter(settings: Settings) -> Iterator[str]:
    """Write a handoff pack in one session, move its lines, and read it in another session."""
    path = os.path.join(settings.cwd, *_SOURCE_PATH.split("/"))
    os.makedirs(os.path.dirname(path))
    _write_text(path, _SOURCE)
    with open_handoffs(settings) as session:
        written = session.repository.write(read_document(_FINDINGS)).pack
        yield f"Agent A reads {_SOURCE_PATH} and writes {written.id}: {written.title}"
    _write_text(path, _SOURCE_HEAD + _SOURCE)
    yield f"A colleague adds {len(_SOURCE_HEAD.splitlines())} lines at the top of that file."
    with open_handoffs(settings) as session:
        pack = session.pack_reader.get(_HANDOFF_NAME).pack
        (ref,) = [ref for section in pack.sections for ref in section.refs]
        located = session.source_reader().locate(ref)
    lines = located.lines
    if located.state != "moved" or lines is None or pack != written:
        raise StoryUntrue("the second agent did not find the lines of the first")
    yield f"Agent B reads {_HANDOFF_NAME}: {ref.title}. Lines {_range(ref.lines)} moved to {_range(lines)}:"
    yield from (f"  {number:>2}: {line}" for number, line in enumerate(located.code, lines.start))


def _tampering_chapter(settings: Settings) -> Iterator[str]:
    """Change a stored object behind the back of `ctx`; every reader notices, and packing again repairs it."""
    digest = Digest.of(DECISION.encode())
    with open_platform(settings) as platform:
        run = _first_run(platform)
        path, name = _object_path(platform, digest), run.digest.hex[:12]
        os.chmod(path, 0o644)
        _write_text(path, DECISION.replace("escalated", "approved!"))
        yield f"An intruder writes 'approved!' over 'escalated' in {os.path.relpath(path, settings.cwd)[:24]}..."
        code = refusal_code(lambda: platform.objects.get(digest))
        yield f"ctx cat {name}:outputs/decision.json: refused, {code}"
        answer = _verdict(platform, run).answer
        yield require(answer == "modified", f"ctx verify {name}: modified, exit status 11")
        findings = fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _objects: None)
        (damage,) = [finding for finding in findings if finding.state == "corrupt"]
        yield f"ctx fsck: {damage.state} {damage.what[:19]}..., needed by {damage.needed_by[0][:19]}..."
        pack_log(platform, canonical(refund_log()), root=settings.cwd)
        answer = _verdict(platform, run).answer
        yield require(answer == "verified", f"ctx pack refund.json restores the bytes; ctx verify {name}: verified")


def _range(lines: LineRange) -> str:
    return f"{lines.start}-{lines.end}"


def _pack_file(platform: Platform, settings: Settings, name: str, log: dict[str, Json]) -> Digest:
    """Write a log to a file and store it as an execution pack."""
    data = canonical(log)
    _write_text(os.path.join(settings.cwd, name), data.decode())
    return pack_log(platform, data, root=settings.cwd).digest


def _write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


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
    ("A contract: what an agent may do", contract_chapter),
    ("Compile: what a model gets for one request", compile_chapter),
    ("Release: it takes several people", release_chapter),
    ("Runs: stored and compared", _runs_chapter),
    ("Handoff: one agent continues from another", _handoff_chapter),
    ("Tampering is found", _tampering_chapter),
)
