"""The `--json` answers of every verb of execution packs and the store, with every possible member.

Members are named by path: `packs[].ref` is the member `ref` of each object in the list `packs`.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contextplane.app.execution.record import Recorder
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from contextplane.trust.checkpoint import Checkpoint
from tests.surfaces.commands import ctx
from tests.surfaces.handoff_store import HandoffStore
from tests.surfaces.registries import prepared
from tests.surfaces.runs import LOG, packed, place

__all__ = ["Member", "answers", "members"]

Member = tuple[str, object]
"""The path of a member, and a value of it."""

KEY = "AKIA" + "ABCDEFGHIJKLMNOP"
REPORT = "# Refunded\n"


def members(value: object, free: frozenset[str], path: str = "") -> Iterator[Member]:
    """Every member of an answer at every level, except below the paths in `free`, which have free names."""
    if path:
        yield path, value
    if path in free:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from members(item, free, f"{path}.{name}" if path else name)
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            for name, inner in item.items():
                yield from members(inner, free, f"{path}[].{name}")


def answers(folder: Path) -> dict[str, list[Any]]:
    """Answers by section of the JSON page, enough of each to show every member."""
    runs, damaged = _Runs(folder / "runs"), _Damaged(folder / "damaged")
    by_section = {**runs.answers(), **damaged.answers()}
    by_section["fork"] += [_json("fork", damaged.second, cwd=damaged.folder)]
    by_section["pack"] += [_json("pack", "changed.json", "--parent", damaged.first, cwd=damaged.folder)]
    by_section["export"], by_section["import"] = _carried(folder, runs)
    by_section["status"] += [_json("status", "--tables", cwd=_governed(folder / "governed"))]
    by_section["status"] += [_json("status", cwd=_with_trust_root(folder / "held"))]
    by_section["fsck"] += [_rebuilt(folder / "lost", runs.folder)]
    by_section["gc"] += [_collected(folder / "old")]
    by_section["errors"] = [_error("cat", f"{runs.first}:outputs/none", cwd=runs.folder)]
    return by_section


def _json(*args: str, cwd: Path, log: object = None) -> Any:  # noqa: ANN401  any JSON
    result = ctx(*args, "--json", cwd=cwd, input=None if log is None else json.dumps(log).encode())
    assert result.raw, result
    return json.loads(result.raw)


def _error(*args: str, cwd: Path) -> Any:  # noqa: ANN401
    return json.loads(ctx(*args, "--json", cwd=cwd).err)


class _Runs:
    """A sound store: a run, a fork of it, a recording, and an output file of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._settings = Settings(cwd=str(folder))
        init(self._settings, ".")
        (folder / "order.json").write_text('{"id": 881}', encoding="utf-8")
        (folder / "out").mkdir()
        (folder / "out" / "report.md").write_text(REPORT, encoding="utf-8")
        self.first = packed(folder)

    def answers(self) -> dict[str, list[Any]]:
        here = self.folder
        by_section: dict[str, list[Any]] = {"pack": list(self._pack())}
        fork = _json("fork", self.first, cwd=here)
        draft = Path(fork["draft"])
        draft.write_text(draft.read_text(encoding="utf-8").replace("model-x", "model-y"), encoding="utf-8")
        by_section["fork"] = [fork]
        by_section["finalize DRAFT"] = [_json("finalize", fork["draft"], cwd=here)]
        self.second = by_section["finalize DRAFT"][0]["ref"]
        recording = self._left_behind()
        by_section["log --unfinished"] = [_json("log", "--unfinished", cwd=here)]
        by_section["finalize RECORDING"] = [_json("finalize", recording, cwd=here)]
        by_section["show"] = [_json("show", ref, cwd=here) for ref in (self.first, self.second)]
        by_section["cat"] = [_json("cat", f"{self.first}:steps/0", cwd=here)]
        by_section["log"] = [_json("log", cwd=here)]
        by_section["log REF"] = [_json("log", self.second, cwd=here)]
        by_section["search"] = [_json("search", "careful", cwd=here)]
        by_section["verify FILE"] = [_json("verify", "out/report.md", cwd=here), self._described_by_others()]
        by_section["status"] = [_json("status", cwd=here)]
        return by_section

    def _pack(self) -> Iterator[Any]:
        """Answers of two packs: with a suspected secret, a cut search and a sidecar; with a refused sidecar."""
        log = {**LOG, "prompts": [{"role": "user", "content": KEY}, {"role": "user", "content": "x" * 300_000}]}
        yield _json("pack", "-", "--sidecars", cwd=self.folder, log=log)
        other = {**LOG, "outputs": [{"name": "out/report.md", "content": "# Refused\n"}]}
        yield _json("pack", "-", "--sidecars", cwd=self.folder, log=other)

    def _left_behind(self) -> str:
        recorder = Recorder(model="m", system_prompt="s", parent=self.first, settings=self._settings)
        with pytest.raises(RuntimeError), recorder as run:
            run.prompt("user", KEY)
            raise RuntimeError
        return run.id

    def _described_by_others(self) -> Any:  # noqa: ANN401
        """Verify with a sidecar of another program that has every optional member."""
        (self.folder / "copy").mkdir()
        shutil.copy(self.folder / "out" / "report.md", self.folder / "copy" / "report.md")
        claims = {"inputs": ["order.json"], "tools": ["read_file"], "confidence": "high", "notes": "checked"}
        sidecar = json.dumps({"context_pack": f"ctx://{self.first}", "output": "out/report.md", **claims})
        (self.folder / "copy" / "report.md.ctx.json").write_text(sidecar, encoding="utf-8")
        return _json("verify", "copy/report.md", cwd=self.folder)


class _Damaged:
    """A store with a fork that differs from its run and has lost its input and its output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        init(Settings(cwd=str(folder)), ".")
        (folder / "order.json").write_text('{"id": 881}', encoding="utf-8")
        self.first = packed(folder)
        step = {**LOG["steps"][0], "parameters": {"path": "order.json", "lines": 1}, "output": "another order"}
        changed = {
            "steps": [step, {"type": "tool_call", "tool": "no_such_tool", "parameters": {}}, *LOG["steps"]],
            "inputs": [{"name": "order.json", "content": "soon lost"}],
            "outputs": [{"name": "out/report.md", "content": "soon gone"}],
        }
        (folder / "changed.json").write_text(json.dumps({**LOG, **changed}), encoding="utf-8")
        self.second = _json("pack", "changed.json", "--parent", self.first, cwd=folder)["ref"]
        for content in (b"soon lost", b"soon gone"):
            place(folder, Digest.of(content).hex).unlink()
        with open_platform(Settings(cwd=str(folder))) as platform:
            platform.objects.put(b"nobody refers to it")

    def answers(self) -> dict[str, list[Any]]:
        here = self.folder
        return {
            "diff": [_json("diff", self.first, self.second, cwd=here), _json("diff", self.first, self.first, cwd=here)],
            "replay": [_json("replay", self.second, cwd=here), _json("replay", self.second, "--recorded", cwd=here)],
            "verify REF": [_json("verify", self.second, cwd=here)],
            "fsck": [_json("fsck", cwd=here)],
            "gc": [_json("gc", cwd=here)],
        }


def _carried(folder: Path, runs: _Runs) -> tuple[list[Any], list[Any]]:
    """Export a run with its parent and a handoff pack, import them, lose an object and import again."""
    handed, there = HandoffStore(runs.folder), folder / "there"
    pack = handed.write()
    there.mkdir()
    init(Settings(cwd=str(there)), ".")
    exported = _json("export", runs.second, str(pack.id), "-o", "runs.tar", cwd=runs.folder)
    imported = _json("import", str(runs.folder / "runs.tar"), cwd=there)
    place(there, Digest.of(REPORT.encode()).hex).unlink()
    return [exported], [imported, _json("import", str(runs.folder / "runs.tar"), cwd=there)]


def _governed(folder: Path) -> Path:
    """A store with a registry."""
    folder.mkdir()
    init(Settings(cwd=str(folder)), ".")
    prepared(folder)
    return folder


def _with_trust_root(folder: Path) -> Path:
    """A store that this client holds to a key and to a checkpoint."""
    folder.mkdir()
    checkpoint = Checkpoint(origin="contextplane.registry/store_0", size=0, root=bytes(32))
    (folder / "checkpoint").write_text(checkpoint.text)
    init(Settings(cwd=str(folder)), ".", ["a" * 64, "checkpoint"])
    return folder


def _rebuilt(folder: Path, source: Path) -> Any:  # noqa: ANN401
    """Rebuild a store whose catalog was lost."""
    shutil.copytree(source / ".ctx", folder / ".ctx")
    (folder / ".ctx" / "catalog.db").write_bytes(b"no database")
    return _json("fsck", "--rebuild", cwd=folder)


def _collected(folder: Path) -> Any:  # noqa: ANN401
    """Collect a deleted handoff pack."""
    handed = HandoffStore(folder)
    handed.delete(str(handed.write().id))
    return _json("gc", "--grace", "0s", cwd=folder)
