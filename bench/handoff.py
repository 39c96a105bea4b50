"""Handoff packs over MCP: the start of the server, large stores, reading pages, durable writes."""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec

from bench.measure import Row, measure_in_turns
from bench.servers import Client, Server, servers

__all__ = ["handoff_rows"]

_STARTS, _CALLS, _PAGES, _WRITES = 40, 200, 300, 1000
_FEW, _MANY = 10, 5_000
_REFS, _LINES = 30, 200
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def handoff_rows() -> Iterator[Row]:
    with servers() as (folder, python, measured, stack):
        _write_sources(folder)
        yield from _start_rows(python, measured)
        yield from _large_store_rows(measured, stack)
        yield from _page_rows(folder, measured, stack)
        yield from _write_rows(folder, measured, stack)


# --- starting ---------------------------------------------------------------------------------------------------------


def _start_rows(python: Path, servers: Sequence[Server]) -> Iterator[Row]:
    roots = {server.name: server.root() for server in servers}
    for server in servers:
        _fill(server, roots[server.name], _FEW)

    def hello(server: Server) -> Client:
        client = server.start(roots[server.name])
        client.hello()
        return client

    def first_call(server: Server) -> Client:
        client = hello(server)
        client.call("input", action="list")
        return client

    def bare() -> None:
        subprocess.run([python, "-I", "-c", "pass"], check=True)

    def leave(client: Client | None) -> None:
        if client is not None:
            client.leave()

    for what, begin in (("start to the initialize reply", hello), ("start to the first tools/call reply", first_call)):
        works: list[Callable[[], Client | None]] = [bare, *(partial(begin, server) for server in servers)]
        idle, *times = measure_in_turns(works, rounds=_STARTS, afterwards=leave)
        ratio = times[0] / idle
        figures = f"{times[0] * 1000:.1f} ms, bare {idle * 1000:.1f} ms"
        yield Row(what, "python -I -c pass", ratio, "<= 5", ratio <= 5, figures)
        yield from _comparison_rows(what, times)


# --- large stores -----------------------------------------------------------------------------------------------------


def _large_store_rows(servers: Sequence[Server], stack: ExitStack) -> Iterator[Row]:
    """Yield the cost of calls in a store of 5,000 packs against one of 10. A list returns ten packs in both."""
    clients: list[tuple[Client, str]] = []
    for server in servers:
        for count in (_FEW, _MANY):
            root = server.root()
            name = _fill(server, root, count)
            clients.append((stack.enter_context(server.running(root)), name))
    calls: dict[str, Callable[[Client, str], Callable[[], object]]] = {
        "list": lambda client, _: client.prepare_call("input", action="list", limit=10),
        "get": lambda client, name: client.prepare_call("input", action="get", name=name),
        "write": lambda client, _: client.prepare_call("input", action="write", document=_document(1)),
        "read": lambda client, name: client.prepare_call("output", action="read", name=name),
    }
    for action, call in calls.items():
        times = measure_in_turns([call(client, name) for client, name in clients], rounds=_CALLS)
        few, many = times[:2]
        what = f"{action} in a store of 5,000 packs"
        figures = f"{many * 1000:.2f} ms, {few * 1000:.2f} ms"
        yield Row(what, "in a store of 10", many / few, "<= 1.3", many / few <= 1.3, figures)
        if times[2:]:
            figures = f"{many * 1000:.2f} ms, {times[3] * 1000:.2f} ms (in a store of 10: {times[2] * 1000:.2f} ms)"
            yield Row(what, "MCP_OTHER", many / times[3], "-", kept=True, figures=figures)


# --- pages and writes -------------------------------------------------------------------------------------------------


def _page_rows(folder: Path, servers: Sequence[Server], stack: ExitStack) -> Iterator[Row]:
    """Yield the speed of reading a page with the code of 30 refs, each in its own file."""
    works: list[Callable[[], object]] = []
    for server in servers:
        client = stack.enter_context(server.running(server.root()))
        pack = client.payload("write", document=_document(_REFS))["id"]
        page = client.call("output", action="read", id=pack, profile="reviewer")
        assert page.count("```python") == _REFS
        works.append(client.prepare_call("output", action="read", id=pack, profile="reviewer"))
    files = [folder / "src" / f"file{n}.py" for n in range(_REFS)]
    bare, *times = measure_in_turns([lambda: [path.read_bytes() for path in files], *works], rounds=_PAGES)
    rate = 1 / times[0]
    figures = f"{times[0] * 1000:.2f} ms, the bare files {bare * 1000:.2f} ms"
    what = "read a page with 30 refs"
    yield Row(what, "300 a second", rate / 300, ">= 1", rate >= 300, figures)
    yield from _comparison_rows(what, times)


def _write_rows(folder: Path, servers: Sequence[Server], stack: ExitStack) -> Iterator[Row]:
    """Yield the speed of writing new packs durably, next to a write of the same bytes with an fsync."""
    clients = [stack.enter_context(server.running(server.root())) for server in servers]
    data = msgspec.json.encode(_document(2))
    file = stack.enter_context((folder / "bare").open("wb", buffering=0))

    def write_and_sync() -> None:
        file.write(data)
        os.fsync(file.fileno())

    works = [client.prepare_call("input", action="write", document=_document(2)) for client in clients]
    bare, *times = measure_in_turns([write_and_sync, *works], rounds=_WRITES)
    rate, what = 1 / times[0], "durable input write"
    figures = f"{times[0] * 1000:.2f} ms, {rate:.0f} a second"
    yield Row(what, "400 a second", rate / 400, ">= 1", rate >= 400, figures)
    yield Row(what, "the same bytes and an fsync", times[0] / bare, "-", kept=True, figures=f"{bare * 1000:.2f} ms")
    yield from _comparison_rows(what, times)


def _comparison_rows(what: str, times: Sequence[float]) -> Iterator[Row]:
    for other in times[1:]:
        figures = f"{times[0] * 1000:.2f} ms, {other * 1000:.2f} ms"
        yield Row(what, "MCP_OTHER", times[0] / other, "-", kept=True, figures=figures)


# --- what they work on ------------------------------------------------------------------------------------------------


def _write_sources(folder: Path) -> None:
    (folder / "src").mkdir()
    for n in range(_REFS):
        lines = [f"def step_{n}_{line}(token): return token + {line}\n" for line in range(_LINES)]
        (folder / "src" / f"file{n}.py").write_text("".join(lines), encoding="utf-8")


def _document(refs: int, name: str | None = None) -> dict[str, object]:
    refs_listed = [
        {"key": f"ref-{n}", "path": f"src/file{n}.py", "line_start": 91, "line_end": 100, "why": "expiry is ignored"}
        for n in range(refs)
    ]
    sections = [
        {"key": "scope", "title": "Scope", "description": "Only the token check."},
        {"key": "findings", "title": "Findings", "refs": refs_listed},
        {"key": "qa", "title": "QA", "description": "verdict: pass"},
    ]
    return {"title": "Login bug", "sections": sections, **({"name": name} if name else {})}


def _fill(server: Server, root: str, count: int) -> str:
    """Fill a root with packs; return the name of one. For another server their files are written directly."""
    name = f"pack {count // 2}"
    if server.name == "ours":
        with server.running(root) as client:
            for n in range(count):
                client.call("input", action="write", document=_document(1, f"pack {n}"))
        return name
    with server.running(root) as client:
        first = client.payload("write", document=_document(1, "pack 0"))
    packs = Path(root, "packs")
    packs.mkdir(exist_ok=True)
    for n in range(1, count):
        digits = "".join(_LETTERS[n >> shift & 31] for shift in range(35, -1, -5))
        (packs / f"pk_{digits}.json").write_bytes(
            msgspec.json.encode({**first, "id": f"pk_{digits}", "name": f"pack {n}"})
        )
    return name
