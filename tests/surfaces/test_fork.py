"""`ctx fork` and `ctx finalize`: a run becomes a draft, an edited draft a run, and nothing is lost."""

import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import msgspec
import pytest

from contextplane.app.execution.fork import _remove_draft, finalize, fork
from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.catalog import BLOB, IndexedObject
from contextplane.model.execution.references import MAX_MANIFEST_BYTES
from contextplane.model.ids import Digest
from contextplane.model.json.errors import JsonRefused
from contextplane.model.json.parse import parse
from contextplane.model.timestamp import Timestamp
from contextplane.record.draft import MAX_DRAFT_BYTES, InvalidDraft
from contextplane.store.fsck import fsck
from contextplane.testing.proofs import proves
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import COMMAND, Result, child_environment, ctx

LOG = {
    "model": {"identifier": "m-1", "parameters": {"temperature": 0.2}},
    "system_prompt": "You are careful.",
    "prompts": [{"role": "user", "content": "Refund order 881"}],
    "inputs": [{"name": "order.json", "content": "{}"}],
    "steps": [{"type": "tool_call", "tool": "read_file", "output": "{}", "timestamp": "2026-05-04T09:31:41Z"}],
    "outputs": [{"name": "report.md", "content": "# done"}],
    "environment": {"os": "linux", "runtime": "py3.11"},
}
STARTED = Timestamp.of(datetime(2026, 5, 5, tzinfo=UTC))
REFUSED = 10


@pytest.fixture
def run(tmp_path: Path) -> str:
    """A store in the test's folder with one run; its digits."""
    init(Settings(cwd=str(tmp_path)), ".")
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        return pack_log(platform, msgspec.json.encode(LOG), root=str(tmp_path)).digest.hex


def json_answer(result: Result) -> dict[str, Any]:
    assert (result.status, result.err) == (0, "")
    value = msgspec.json.decode(result.raw)
    assert isinstance(value, dict)
    return value


def forked(folder: Path, run: str) -> Path:
    return Path(json_answer(ctx("fork", run, "--json", cwd=folder))["draft"])


def edit(draft: Path, change: Callable[[dict[str, Any]], object]) -> None:
    value = msgspec.json.decode(draft.read_bytes())
    change(value)
    draft.write_bytes(msgspec.json.encode(value))


def another_model(value: dict[str, Any]) -> None:
    value["model"]["identifier"] = "m-2"


def stored(folder: Path) -> set[str]:
    """The name of everything that is in the store's objects and among its packs."""
    return {str(path) for name in ("objects", "packs") for path in (folder / ".ctx" / name).rglob("*")}


@proves("execution-pack:manifest-fields:parent-is-fork-origin", "execution-pack:manifest-fields:parent-optional")
def test_an_edited_draft_becomes_a_pack_of_its_own_with_the_run_as_its_parent(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    assert draft.parent == tmp_path / ".ctx" / "drafts"
    edit(draft, another_model)
    answer = json_answer(ctx("finalize", str(draft), "--json", cwd=tmp_path))
    assert (answer["parent"], answer["removed"]) == (f"ctx://{run}", True)
    raw = ctx("cat", answer["ref"], cwd=tmp_path).raw
    manifest = msgspec.json.decode(raw)
    assert raw == parse(raw).canonical
    assert (manifest["parent"], manifest["hash"], manifest["model"]["identifier"]) == (f"sha256:{run}", "", "m-2")
    # The time is that of the fork, and in UTC; the parent has none above it and is as it was.
    assert Timestamp.parse(manifest["created"]) > STARTED
    assert manifest["created"].endswith("Z")
    assert "parent" not in msgspec.json.decode(ctx("cat", run, cwd=tmp_path).raw)
    assert not draft.exists()
    assert json_answer(ctx("verify", answer["ref"], "--json", cwd=tmp_path))["parents"] == [f"ctx://{run}"]
    assert ctx("fsck", cwd=tmp_path).status == 0


def test_people_are_told_where_the_draft_is_and_which_pack_it_became(tmp_path: Path, run: str) -> None:
    result = ctx("fork", run[:8], cwd=tmp_path)
    (draft,) = (tmp_path / ".ctx" / "drafts").iterdir()
    assert draft.name.startswith(f"{run[:12]}-")
    assert draft.name.endswith(".draft.json")
    assert result.out == (f"Draft created at {draft}\nEdit the draft, then finalize with 'ctx finalize {draft}'\n")
    edit(draft, another_model)
    result = ctx("finalize", str(draft), cwd=tmp_path)
    assert result.out.startswith("ctx://")
    assert len(result.out) == len("ctx://") + 64 + 1


def test_the_command_that_is_told_can_be_pasted_whatever_the_folder_is_called(tmp_path: Path) -> None:
    folder = tmp_path / "my runs"
    folder.mkdir()
    init(Settings(cwd=str(folder)), ".")
    with open_platform(Settings(cwd=str(folder))) as platform:
        digest = pack_log(platform, msgspec.json.encode(LOG), root=str(folder)).digest
    told_line = ctx("fork", digest.hex, cwd=folder).out.splitlines()[1]
    (draft,) = (folder / ".ctx" / "drafts").iterdir()
    verb, typed = told_line.split("finalize with: ctx ", 1)[1].split(" ", 1)
    assert (verb, shlex.split(typed)) == ("finalize", [str(draft)])


def test_whoever_names_a_draft_without_its_folder_is_told_where_it_is(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    assert f"(did you mean {draft}?)" in ctx("finalize", draft.name, cwd=tmp_path).err
    assert f"('ctx fork' writes drafts below {draft.parent})" in ctx("finalize", "mine.json", cwd=tmp_path).err


def test_a_parent_that_is_no_digest_is_not_taken_for_a_text(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    edit(draft, lambda value: value.update(parent=run))
    result = ctx("finalize", str(draft), cwd=tmp_path)
    assert f"{draft}#/parent: not a digest" in result.err
    assert result.err.endswith("(edit the draft, then finalize it again)\n")


def test_drafts_of_one_run_never_take_each_others_place(tmp_path: Path, run: str) -> None:
    first = forked(tmp_path, run)
    edit(first, another_model)
    edited = first.read_bytes()
    others = {forked(tmp_path, run) for _ in range(3)}
    assert len(others | {first}) == 4
    assert first.read_bytes() == edited


def test_a_draft_that_lies_elsewhere_is_finalized_and_left(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run).rename(tmp_path / "mine.json")
    edit(draft, another_model)
    assert json_answer(ctx("finalize", "mine.json", "--json", cwd=tmp_path))["removed"] is False
    assert draft.exists()


def test_a_fork_that_changed_nothing_is_refused(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    edit(draft, lambda value: value.update(created="2027-01-01T00:00:00Z"))
    before = stored(tmp_path)
    result = ctx("finalize", str(draft), cwd=tmp_path)
    assert result.status == REFUSED
    assert "draft_unchanged" in result.err
    assert draft.exists()
    assert stored(tmp_path) == before


NOWHERE = str(Digest.of(b"never stored"))
BROKEN: dict[str, tuple[Callable[[dict[str, Any]], object], list[str]]] = {
    "dangling": (
        lambda value: (value.update(system_prompt=NOWHERE), value["steps"][0].update(output_ref=NOWHERE)),
        ["/system_prompt", "/steps/0/output_ref"],
    ),
    "parent-gone": (lambda value: value.update(parent=NOWHERE), ["/parent"]),
    "parent-missing": (lambda value: value.pop("parent"), ["/parent"]),
    "unknown-fields": (
        lambda value: (value.update(extra=1), value["outputs"][0].update(content="x")),
        ["/extra", "/outputs/0/content"],
    ),
    "form-and-dangling": (
        lambda value: (
            value.update(foo=1, system_prompt=NOWHERE, parent=NOWHERE),
            value["steps"][0].update(index="2"),
        ),
        ["/foo", "/steps/0/index", "/system_prompt", "/parent"],
    ),
    "parent-gone-and-dangling": (
        lambda value: value.update(system_prompt=NOWHERE, parent=NOWHERE),
        ["/system_prompt", "/parent"],
    ),
    "content-for-a-hash": (lambda value: value.update(system_prompt="Be bold."), ["/system_prompt"]),
}


def test_a_broken_draft_is_refused_with_every_place_and_nothing_is_stored(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    edit(draft, another_model)
    edited, before = draft.read_bytes(), stored(tmp_path)
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        for name, (change, places) in BROKEN.items():
            draft.write_bytes(edited)
            edit(draft, change)
            with pytest.raises(InvalidDraft) as caught:
                finalize(platform, str(draft))
            assert [problem.at for problem in caught.value.problems] == places, name
    result = ctx("finalize", str(draft), "--json", cwd=tmp_path)
    assert (result.status, result.out) == (REFUSED, "")
    error = msgspec.json.decode(result.err)["error"]
    assert (error["code"], error["at"]) == ("draft_invalid", f"{draft}#/system_prompt")
    assert draft.exists()
    assert stored(tmp_path) == before


def test_what_is_wrong_with_the_json_of_a_draft_is_told_with_its_form_and_what_dangles(
    tmp_path: Path, run: str
) -> None:
    draft = forked(tmp_path, run)
    edit(draft, lambda value: value.update(foo=1, system_prompt=NOWHERE))
    draft.write_bytes(draft.read_bytes().rstrip()[:-1] + b', "model": {}, "hash": 9007199254740993}')
    with open_platform(Settings(cwd=str(tmp_path))) as platform, pytest.raises(JsonRefused) as caught:
        finalize(platform, str(draft))
    assert caught.value.code == "json_duplicate_key"
    assert [other.at for other in caught.value.others] == ["/hash", "/hash", "/foo", "/system_prompt"]
    assert str(caught.value).startswith(f"{draft}#/model: line 1, column ")


def test_a_draft_that_was_edited_while_it_was_finalized_stays(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    finalized = draft.read_bytes()
    draft.write_bytes(finalized + b"\n")
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        assert not _remove_draft(platform, str(draft), finalized)
        assert draft.exists()
        assert _remove_draft(platform, str(draft), finalized + b"\n")
    assert not draft.exists()


def test_what_is_no_json_is_refused_with_its_place(tmp_path: Path, run: str) -> None:
    draft = tmp_path / f"{run[:4]}.json"
    assert ctx("finalize", str(draft), cwd=tmp_path).status == 13
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        for text in (b"", b"{", b'{"a":1,"a":1}', b"\xff"):
            draft.write_bytes(text)
            with pytest.raises(JsonRefused) as caught:
                finalize(platform, str(draft))
            assert str(caught.value.at).partition("#")[0] == str(draft)
        with draft.open("r+b") as file:
            file.truncate(MAX_DRAFT_BYTES + 1)
        with pytest.raises(InvalidDraft, match="larger than any draft"):
            finalize(platform, str(draft))
    draft.write_bytes(b"{")
    result = ctx("finalize", str(draft), cwd=tmp_path)
    assert result.status == REFUSED
    assert str(draft) in result.err


def test_a_run_whose_manifest_is_nearly_as_large_as_one_may_be_can_be_forked_finalized_and_checked(
    tmp_path: Path, run: str
) -> None:
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        size = platform.objects.size(Digest(run))
        # What a fork has more is its parent; each field is on a line of its own in the draft.
        room = MAX_MANIFEST_BYTES - size - 100
        log = LOG | {"model": {"identifier": "m-1", "parameters": {"long": "x" * room}}}
        large = pack_log(platform, msgspec.json.encode(log), root=str(tmp_path)).digest
        draft = Path(fork(platform, large))
        assert draft.stat().st_size > MAX_MANIFEST_BYTES
        draft.write_bytes(draft.read_bytes().replace(b'"m-1"', b'"m-2"', 1))
        result = finalize(platform, str(draft))
        assert result.manifest.parent == str(large)
        checked = fsck(platform.catalog, platform.entries, platform.objects, lambda _size, _count: None)
        assert list(checked) == []


def test_a_parent_that_is_no_pack_is_refused(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    edit(draft, lambda value: value.update(parent=value["system_prompt"]))
    result = ctx("finalize", str(draft), cwd=tmp_path)
    assert result.status == REFUSED
    assert result.err.startswith(f"ctx: draft_invalid: {draft}#/parent: not a manifest")


def test_a_tampered_run_cannot_be_forked(tmp_path: Path, run: str) -> None:
    place = tmp_path / ".ctx" / "objects" / run[:2] / run[2:]
    place.chmod(0o644)
    place.write_bytes(place.read_bytes() + b" ")
    result = ctx("fork", run, cwd=tmp_path)
    assert result.status == 11
    assert "object_corrupt" in result.err


def test_the_size_of_an_input_is_that_of_its_content(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    edit(draft, lambda value: value["inputs"][0].update(content_ref=value["system_prompt"], size=999))
    answer = json_answer(ctx("finalize", str(draft), "--json", cwd=tmp_path))
    manifest = msgspec.json.decode(ctx("cat", answer["ref"], cwd=tmp_path).raw)
    assert manifest["inputs"][0]["size"] == len("You are careful.")


def test_a_run_of_the_reference_is_forked_and_finalized_as_well(tmp_path: Path) -> None:
    other = ReferenceStore(tmp_path)
    run = other.pack(outputs={"report.md": b"done"}, steps=2)
    draft = forked(tmp_path, run)
    assert ctx("finalize", str(draft), cwd=tmp_path).status == REFUSED
    edit(draft, another_model)
    answer = json_answer(ctx("finalize", str(draft), "--json", cwd=tmp_path))
    assert ctx("verify", answer["ref"], cwd=tmp_path).status == 0


def test_what_a_finalized_fork_refers_to_is_not_collected(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    with open_platform(Settings(cwd=str(tmp_path))) as platform:
        digest = platform.objects.put(b"You are bold.")
        with platform.catalog.write() as tx:
            tx.objects.record(IndexedObject(digest=digest, kind=BLOB, size=13, traced=True))
    edit(draft, lambda value: value.update(system_prompt=str(digest)))
    answer = json_answer(ctx("finalize", str(draft), "--json", cwd=tmp_path))
    assert json_answer(ctx("gc", "--grace", "0s", "--json", cwd=tmp_path))["removed"] == []
    assert ctx("verify", answer["ref"], cwd=tmp_path).status == 0


def packs(folder: Path) -> list[str]:
    return [pack["ref"] for pack in json_answer(ctx("log", "--json", cwd=folder))["packs"]]


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "elsewhere"])
def test_several_who_finalize_one_draft_at_once_make_one_pack(tmp_path: Path, run: str, ours: bool) -> None:  # noqa: FBT001
    draft = forked(tmp_path, run)
    edit(draft, another_model)
    if not ours:
        draft = draft.rename(tmp_path / "mine.json")
    command, env = [COMMAND, "finalize", str(draft)], child_environment()
    running = [Popen(command, cwd=tmp_path, env=env, stdout=PIPE, stderr=PIPE, text=True) for _ in range(6)]
    ended = [(*child.communicate(), child.returncode) for child in running]
    outputs = {out for out, _, status in ended if status == 0}
    assert len(outputs) == 1
    # A process that comes after the draft is gone gets an error; all others get the pack.
    late = [err for _, err, status in ended if status != 0]
    assert [err for err in late if "a finalized draft is removed" not in err] == []
    assert not late or ours
    assert sorted(packs(tmp_path)) == sorted([f"ctx://{run}", *(out.strip() for out in outputs)])
    assert ctx("fsck", cwd=tmp_path).status == 0


def test_finalizing_the_same_draft_again_gives_the_same_pack_and_says_so(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run).rename(tmp_path / "mine.json")
    edit(draft, another_model)
    first = json_answer(ctx("finalize", "mine.json", "--json", cwd=tmp_path))
    assert json_answer(ctx("finalize", "./mine.json", "--json", cwd=tmp_path)) == first | {"new": False}
    assert first["new"] is True
    # What it says counts, not how it is written, nor the time that stands in it.
    edit(draft, lambda value: value.update(created="2027-01-01T00:00:00Z", hash=""))
    again = ctx("finalize", "mine.json", cwd=tmp_path)
    assert (again.out.strip(), "already finalized" in again.err) == (first["ref"], True)
    assert len(packs(tmp_path)) == 2


def test_a_finalize_that_was_killed_is_done_again_to_the_same_pack(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    edit(draft, another_model)
    for nth in range(1, 100):
        command = [sys.executable, "-c", KILLED, str(tmp_path), str(draft), str(nth)]
        if subprocess.run(command, check=False, env=child_environment()).returncode != -signal.SIGKILL:
            break
    assert nth > 5
    assert len(packs(tmp_path)) == 2
    assert not draft.exists()


KILLED = """
import sys
from contextplane.adapters.files.pack_entries import FileExecutionEntries
from contextplane.adapters.files.objects import FileObjects
from contextplane.app.execution.fork import finalize, fork
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.testing.faults import KILL, Faults, FaultyDisk
with open_platform(Settings(cwd=sys.argv[1])) as platform:
    disk, home = FaultyDisk(Faults().at("*", int(sys.argv[3]), KILL)), platform.home
    platform.entries = FileExecutionEntries(home.packs, home.staging, platform.clock, disk)
    vars(platform)["objects"] = FileObjects(home.objects, disk)
    finalize(platform, sys.argv[2])
"""


def test_a_draft_may_be_piped_in(tmp_path: Path, run: str) -> None:
    draft = forked(tmp_path, run)
    edit(draft, another_model)
    result = ctx("finalize", "-", "--json", cwd=tmp_path, input=draft.read_bytes())
    assert (json_answer(result)["removed"], draft.exists()) == (False, True)
