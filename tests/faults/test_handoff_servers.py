"""Server processes under faults: killed, racing on one store, on a full disk, and with jumping clocks."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from tests.surfaces.agents import SERVER, Agent, environment, says, serving
from tests.surfaces.commands import ctx
from tests.surfaces.handoffs import later, legend, section, whole
from tests.unit.handoff.reference_root import ReferencePacks

TURNS = 20

# The machine's clock, off by the seconds in a file.
_OFF_CLOCK = """
import datetime, pathlib, sys
from contextplane.adapters import system
from contextplane.mcp.main import run
class Off(system.SystemClock):
    def now(self):
        seconds = float(pathlib.Path(sys.argv[1]).read_text())
        return super().now() + datetime.timedelta(seconds=seconds)
system.SystemClock = Off
sys.exit(run())
"""


@contextmanager
def served_by(command: list[str], cwd: Path, stdin: IO[bytes] | int = subprocess.PIPE) -> Iterator[Agent]:
    """Start a server with another command, and kill it at the end of the block."""
    with subprocess.Popen(
        command, cwd=cwd, env=environment(), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield Agent(process)
        finally:
            process.kill()


def assert_sound(folder: Path) -> None:
    """Assert that `ctx fsck` finds nothing wrong."""
    store = str(folder / ".agents" / "mcp" / "context_pack" / ".ctx")
    result = ctx("fsck", cwd=folder, env={"CTX_DIR": store})
    assert result.status == 0, result.out + result.err


def write_call(ident: object, **arguments: object) -> bytes:
    return says("tools/call", {"name": "input", "arguments": {"action": "write", **arguments}}, ident=ident)


def structured_content(reply: dict[str, Any]) -> dict[str, Any]:
    return dict(reply["result"]["structuredContent"])


# --- two servers on one store -----------------------------------------------------------------------------------------


def test_of_two_servers_that_write_the_same_revision_one_wins_and_the_other_is_told_what_changed(folder: Path) -> None:
    with serving(folder) as first, serving(folder) as second:
        pack = first.does("write", document={"sections": [section("base")]})["id"]
        before: set[str] = set()
        for revision in range(1, TURNS + 1):
            for name, agent in (("one", first), ("two", second)):
                document = {"sections": [section("base"), section(f"of-{name}", description=str(revision))]}
                agent.send(write_call(name, id=pack, expected_revision=revision, document=document))
            answers = [first.receive(), second.receive()]
            won = [answer for answer in answers if "isError" not in answer["result"]]
            [lost] = [structured_content(answer) for answer in answers if "isError" in answer["result"]]
            assert [structured_content(answer)["payload"]["revision"] for answer in won] == [revision + 1]
            assert lost["code"] == "revision_conflict"
            assert lost["details"]["current_revision"] == revision + 1
            assert set(lost["details"]["changed_section_keys"]) == before | {f"of-{won[0]['id']}"}
            before = {f"of-{won[0]['id']}"}
        assert first.does("get", id=pack) == second.does("get", id=pack)
    assert_sound(folder)


def test_of_two_servers_that_take_one_name_one_wins(folder: Path) -> None:
    with serving(folder) as first, serving(folder) as second:
        for turn in range(TURNS):
            for agent in (first, second):
                agent.send(write_call(turn, document=whole(name=f"plan {turn}")))
            codes = [structured_content(agent.receive()).get("code") for agent in (first, second)]
            assert sorted(codes, key=str) == [None, "conflict"]
    assert_sound(folder)


def test_what_one_server_does_the_other_sees_at_once(folder: Path) -> None:
    with serving(folder) as first, serving(folder) as second:
        assert second.does("list")["count"] == 0
        pack = first.does("write", document=whole(name="plan", refs=0))["id"]
        page = legend(second.reads(name="plan", limit=1))
        assert page["selected_revision"] == "1"
        second.does("write", name="plan", expected_revision=1, document=whole(refs=0, title="Anew"))
        assert first.does("get", id=pack)["title"] == "Anew"
        assert "revision" in first.fails("output", id=pack, page_token=page["next_page_token"])["message"]
        assert first.does("delete", name="plan")["deleted"] is True
        assert second.fails("output", id=pack)["code"] == "not_found"
        assert second.does("write", document=whole(name="plan", refs=0))["revision"] == 1


def test_servers_that_take_in_one_reference_root_at_once_all_find_all_of_it_and_change_nothing_there(
    folder: Path,
) -> None:
    there = ReferencePacks(folder / ".agents" / "mcp" / "context_pack")
    packs = [f"pk_aaaaa{first}{second}2" for first in "abcdefghij" for second in "abcdefghij"]
    for pack in packs:
        there.write(pack, name=f"name of {pack}")
    before = there.contents()
    with ExitStack() as stack:
        agents = [stack.enter_context(serving(folder)) for _ in range(3)]
        for agent in agents:
            agent.send(says("tools/call", {"name": "input", "arguments": {"action": "list", "limit": 1}}))
        assert [structured_content(agent.receive())["payload"]["total"] for agent in agents] == [len(packs)] * 3
        agents[0].does("write", id=packs[7], expected_revision=3, document={"sections": []})
        assert {agent.does("get", name=f"name of {packs[7]}")["revision"] for agent in agents} == {4}
    assert there.contents() == before
    assert_sound(folder)


# --- killed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [0, 1, 7, 60])
def test_a_server_killed_while_it_writes_loses_nothing_that_it_answered(folder: Path, answers: int) -> None:
    calls = folder / "calls"
    large = [{"name": f"pack {n}", "sections": [section("big", description="x" * 70_000 * (n % 3))]} for n in range(80)]
    calls.write_bytes(b"".join(write_call(n, document=document) for n, document in enumerate(large)))
    # Its replies are more than a pipe holds: it blocks until they are read, and is killed there.
    with calls.open("rb") as file, served_by([SERVER], folder, file) as agent:
        done = [agent.receive() for _ in range(answers)]
        agent.process.send_signal(signal.SIGKILL)
        assert agent.process.wait() == -signal.SIGKILL
        assert agent.process.stdout is not None
        unread = agent.process.stdout.read().splitlines(keepends=True)
        done += [msgspec.json.decode(line, type=dict[str, Any]) for line in unread if line.endswith(b"\n")]
    written = [structured_content(answer)["payload"] for answer in done]
    with serving(folder) as agent:
        for pack in written:
            got = agent.does("get", id=pack["id"])
            assert {**got, **pack} == got
        listing = agent.does("list")
        assert len(written) <= listing["total"] <= len(written) + 9
        for row in listing["packs"]:  # what was not answered is absent or whole
            assert agent.does("get", id=row["id"])["name"] == row["name"]
        assert agent.does("write", document=whole(name="life goes on", refs=0))["revision"] == 1
    assert_sound(folder)


# --- a full disk ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2_000, 90_000], ids=["small", "large"])
def test_on_a_full_disk_a_write_is_an_error_and_reading_goes_on(folder: Path, size: int) -> None:
    with serving(folder) as agent:
        first = agent.does("write", document=whole(name="first", refs=0))
    # No file may grow beyond that: what a full disk does to a write, without one.
    command = ["sh", "-c", f'ulimit -f {256 if size < 64_000 else 160}; exec "$0"', SERVER]
    written, error = [], None
    with served_by(command, folder) as agent:
        for n in range(400):
            result = agent.calls(
                "input", action="write", document={"sections": [section("ab", description="x" * size)]}
            )
            if "isError" in result:
                error = result["structuredContent"]
                break
            written.append(result["structuredContent"]["payload"]["id"])
            size += 3_000 if size > 64_000 else n % 2
        assert error is not None
        assert (error["kind"], error["code"]) == ("io_error", "io_error")
        assert error["details"]["reason"] in {"catalog_failed", "storage_full", "io_error"}
        assert agent.does("get", id=first["id"])["title"] == "Login bug"
    with serving(folder) as agent:
        for pack in (first["id"], *written):
            assert agent.does("get", id=pack)["revision"] == 1
        assert agent.does("write", document=whole(refs=0))["revision"] == 1
    assert_sound(folder)


# --- clocks -----------------------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_neither_reorders_packs_nor_turns_time_back(folder: Path) -> None:
    off = folder / "off"
    off.write_text("0", encoding="ascii")
    with served_by([sys.executable, "-c", _OFF_CLOCK, str(off)], folder) as agent:
        first = agent.does("write", document=whole(refs=0, name="first", ttl_minutes=60))
        off.write_text("-100000", encoding="ascii")
        assert agent.does("get", id=first["id"])["ttl_remaining_seconds"] > 100_000
        earlier = agent.does("write", id=first["id"], expected_revision=1, document=whole(refs=0, ttl_minutes=60))
        assert earlier["updated_at"] == first["updated_at"]
        assert earlier["expires_at"] < later(first["expires_at"], -90_000)  # counted from what time it is
        off.write_text("0", encoding="ascii")
        assert agent.fails("input", action="get", id=first["id"])["code"] == "not_found"
        off.write_text("-100000", encoding="ascii")
        again = agent.does("ttl", id=first["id"], expected_revision=2, extend_minutes=2_628_000)
        assert (again["revision"], again["updated_at"]) == (3, first["updated_at"])
        off.write_text("1000000", encoding="ascii")
        future = agent.does("write", document=whole(refs=0, name="future"))
        off.write_text("0", encoding="ascii")
        last = agent.does("write", id=future["id"], expected_revision=1, document=whole(refs=0))
        assert last["updated_at"] == future["updated_at"]
        assert [row["name"] for row in agent.does("list")["packs"]] == ["future", "first"]
        assert legend(agent.reads(name="future"))["freshness_state"] == "fresh"
    assert_sound(folder)
