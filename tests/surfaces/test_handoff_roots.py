"""Where packs are and what their refs lead into: in subfolders, in worktrees, and after a file was renamed."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.agents import Agent, serving
from tests.surfaces.commands import ctx
from tests.surfaces.git_repository import git, git_repository
from tests.surfaces.handoff_store import json_answer
from tests.surfaces.handoffs import Place, content, finding, section, whole

ONE_REF: dict[str, Any] = {"title": "Login bug", "sections": [section("findings", refs=[finding(3)])]}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder with code and a subfolder."""
    (tmp_path / "project" / "src").parent.mkdir()
    place = Place(tmp_path / "project")
    (place.folder / "services" / "api").mkdir(parents=True)
    (place.folder / "services" / "api" / "app.py").write_text("app = 1\n", encoding="utf-8")
    return place


def states(agent: Agent, pack: str) -> list[tuple[str, str]]:
    """Each ref of a pack with the state of its lines."""
    result = agent.calls("output", action="read", id=pack, profile="reviewer", structured=True)
    chunks = result["structuredContent"]["payload"]["chunks"]
    return [(chunk["key"], chunk["state"]) for chunk in chunks if chunk["kind"] == "ref"]


def write(folder: Path, document: dict[str, Any] = ONE_REF, env: Mapping[str, str] | None = None) -> str:
    with serving(folder, env) as agent:
        return str(agent.does("write", document=document)["id"])


def test_a_server_in_a_subfolder_reads_refs_from_the_folder_that_holds_the_store(place: Place) -> None:
    assert ctx("init", cwd=place.folder).status == 0
    pack = write(place.folder)
    with serving(place.folder / "services" / "api") as agent:
        assert states(agent, pack) == [("step-3", "current")]
        moved = agent.does("write", document=whole(status="finalized"))
        assert moved["status"] == "finalized"
    assert (
        json_answer(ctx("handoff", "show", pack, "--json", cwd=place.folder / "services"))["sections"][0]["refs"][0][
            "state"
        ]
        == "current"
    )


def test_a_path_from_the_working_folder_is_refused_with_the_path_from_the_source_root(place: Place) -> None:
    assert ctx("init", cwd=place.folder).status == 0
    ref = {"key": "app", "path": "app.py", "line_start": 1, "line_end": 1}
    with serving(place.folder / "services" / "api") as agent:
        draft = agent.does("write", document={"sections": [section("findings", refs=[ref])]})
        assert draft["unanchored_refs"][0]["reason"] == (
            "the file is missing; paths start at the source root: services/api/app.py"
        )
        nowhere = {**ref, "path": "nowhere.py"}
        draft = agent.does("write", document={"sections": [section("findings", refs=[nowhere])]})
        assert draft["unanchored_refs"][0]["reason"] == "the file is missing"


def test_a_store_that_is_named_serves_a_subfolder_from_the_folder_that_holds_it(place: Place) -> None:
    assert ctx("init", cwd=place.folder).status == 0
    pack = write(place.folder)
    with serving(place.folder / "services", {"CTX_DIR": str(place.folder / ".ctx")}) as agent:
        assert states(agent, pack) == [("step-3", "current")]


def test_a_store_elsewhere_serves_the_root_of_the_repository(place: Place, tmp_path: Path) -> None:
    git_repository(place.folder)
    root = {"CONTEXT_PACK_ROOT": str(tmp_path / "packs")}
    pack = write(place.folder, env=root)
    with serving(place.folder / "services" / "api", root) as agent:
        assert states(agent, pack) == [("step-3", "current")]


def test_a_store_above_the_repository_serves_the_root_of_the_repository(place: Place, tmp_path: Path) -> None:
    assert ctx("init", cwd=tmp_path).status == 0
    git_repository(place.folder)
    pack = write(place.folder)
    with serving(place.folder / "services" / "api") as agent:
        assert states(agent, pack) == [("step-3", "current")]


def test_without_a_store_all_folders_of_a_repository_share_the_packs_of_its_root(place: Place) -> None:
    git_repository(place.folder)
    pack = write(place.folder / "services" / "api")
    assert (place.folder / ".agents" / "mcp" / "context_pack" / ".ctx" / "config.json").is_file()
    assert not (place.folder / "services" / "api" / ".agents").exists()
    for folder in (place.folder, place.folder / "services"):
        with serving(folder) as agent:
            assert states(agent, pack) == [("step-3", "current")]
    assert git("status", "--porcelain", cwd=place.folder) == ""


def test_packs_that_a_subfolder_has_of_its_own_stay_there_with_its_files(place: Place) -> None:
    inner = place.folder / "services" / "api"
    own = {"sections": [section("findings", refs=[{"key": "app", "path": "app.py", "line_start": 1, "line_end": 1}])]}
    pack = write(inner, own)
    git_repository(place.folder)
    with serving(inner) as agent:
        assert states(agent, pack) == [("app", "current")]


def test_the_working_folder_is_the_source_root_if_the_environment_asks_for_it(place: Place) -> None:
    assert ctx("init", cwd=place.folder).status == 0
    pack = write(place.folder)
    for name in ("session_cwd", ".", ""):
        with serving(place.folder / "services", {"CONTEXT_PACK_SOURCE_ROOT": name}) as agent:
            assert states(agent, pack) == [("step-3", "unreadable")]


def test_a_submodule_belongs_to_the_project_around_it(place: Place, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "lib.py").write_text("lib = 1\n", encoding="utf-8")
    git_repository(library)
    git_repository(place.folder)
    git("submodule", "add", "-q", str(library), "vendor", cwd=place.folder)
    assert ctx("init", cwd=place.folder).status == 0
    pack = write(place.folder)
    with serving(place.folder / "vendor") as agent:
        assert states(agent, pack) == [("step-3", "current")]


# --- worktrees --------------------------------------------------------------------------------------------------------


def worktree(place: Place, at: Path) -> Path:
    git("worktree", "add", "-q", str(at), cwd=place.folder)
    return at


@pytest.mark.parametrize("where", ["../feature", ".worktrees/feature"])
def test_worktrees_share_packs_and_each_reads_its_own_files(place: Place, where: str) -> None:
    git_repository(place.folder)
    assert ctx("init", cwd=place.folder).status == 0
    pack = write(place.folder)
    tree = worktree(place, place.folder / where)
    code = tree / "src" / "auth.py"
    code.write_text("# new\n" + code.read_text(encoding="utf-8"), encoding="utf-8")
    for folder in (tree, tree / "services" / "api"):
        with serving(folder) as agent:
            assert states(agent, pack) == [("step-3", "moved")]
    with serving(place.folder) as agent:
        assert states(agent, pack) == [("step-3", "current")]
    second = write(tree)
    assert second in ctx("handoff", "list", cwd=place.folder).out
    assert second in ctx("handoff", "list", cwd=tree / "services").out
    assert not (tree / ".ctx").exists()
    assert not (tree / ".agents").exists()


def test_worktrees_share_packs_without_a_store_too(place: Place, tmp_path: Path) -> None:
    git_repository(place.folder)
    tree = worktree(place, tmp_path / "feature")
    pack = write(tree / "services")
    with serving(place.folder) as agent:
        assert states(agent, pack) == [("step-3", "current")]


def test_a_store_in_a_subfolder_of_the_main_worktree_serves_the_same_subfolder_of_others(
    place: Place, tmp_path: Path
) -> None:
    git_repository(place.folder)
    inner = place.folder / "services"
    assert ctx("init", cwd=inner).status == 0
    own = {
        "sections": [section("findings", refs=[{"key": "app", "path": "api/app.py", "line_start": 1, "line_end": 1}])]
    }
    pack = write(inner, own)
    tree = worktree(place, tmp_path / "feature")
    with serving(tree / "services" / "api") as agent:
        assert states(agent, pack) == [("app", "current")]


def test_a_worktree_with_a_store_of_its_own_uses_that(place: Place, tmp_path: Path) -> None:
    git_repository(place.folder)
    assert ctx("init", cwd=place.folder).status == 0
    write(place.folder)
    tree = worktree(place, tmp_path / "feature")
    assert ctx("init", cwd=tree).status == 0
    with serving(tree) as agent:
        assert agent.does("list")["packs"] == []


def test_a_folder_that_only_says_it_is_a_worktree_gets_no_packs_of_that_project(place: Place, tmp_path: Path) -> None:
    git_repository(place.folder)
    assert ctx("init", cwd=place.folder).status == 0
    write(place.folder)
    tree = worktree(place, tmp_path / "feature")
    stranger = tmp_path / "download"
    stranger.mkdir()
    shutil.copy(tree / ".git", stranger / ".git")
    with serving(stranger) as agent:
        assert agent.does("list")["packs"] == []


@pytest.mark.parametrize(
    "pointer",
    [b"", b"gitdir: ", b"gitdir: /nowhere/at/all", b"gitdir: a\0b", b"\xff\xfe", b"gitdir: .git", b"x" * 100_000],
)
def test_a_broken_pointer_of_git_is_harmless(place: Place, pointer: bytes) -> None:
    (place.folder / ".git").write_bytes(pointer)
    pack = write(place.folder)
    with serving(place.folder) as agent:
        assert states(agent, pack) == [("step-3", "current")]


# --- renamed files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(place: Place) -> Place:
    """A repository with a store, whose code is committed."""
    git_repository(place.folder)
    assert ctx("init", cwd=place.folder).status == 0
    return place


def rename(place: Place, new: str, *, commit: bool = True, prefix: str = "") -> None:
    (place.folder / new).parent.mkdir(parents=True, exist_ok=True)
    git("mv", "src/auth.py", new, cwd=place.folder)
    if prefix:
        code = place.folder / new
        code.write_text(prefix + code.read_text(encoding="utf-8"), encoding="utf-8")
    if commit:
        git("commit", "-q", "-a", "-m", "rename", cwd=place.folder)


@pytest.mark.parametrize("commit", [True, False])
def test_a_renamed_file_is_followed(repository: Place, *, commit: bool) -> None:
    pack = write(repository.folder)
    rename(repository, "lib/login.py", commit=commit, prefix="# moved\n")
    with serving(repository.folder / "services") as agent:
        assert states(agent, pack) == [("step-3", "moved")]
        page = agent.reads(action="read", id=pack, profile="reviewer")
    assert "- path: src/auth.py\n- lines: 3-3 (moved: now lib/login.py 4-4)\n" in content(page)
    assert "   4: def step_3(token): return 3\n" in page
    assert "stale" not in page
    shown = ctx("handoff", "show", pack, cwd=repository.folder)
    assert "src/auth.py:3-3  moved, now lib/login.py:4-4" in shown.out


def test_a_file_that_was_renamed_twice_is_followed(repository: Place) -> None:
    pack = write(repository.folder)
    rename(repository, "lib/login.py")
    (repository.folder / "README").write_text("x\n", encoding="utf-8")
    git("add", "-A", cwd=repository.folder)
    git("commit", "-q", "-m", "other", cwd=repository.folder)
    git("mv", "lib/login.py", "lib/session.py", cwd=repository.folder)
    git("commit", "-q", "-m", "again", cwd=repository.folder)
    with serving(repository.folder) as agent:
        assert states(agent, pack) == [("step-3", "moved")]
        assert "now lib/session.py 3-3" in agent.reads(action="read", id=pack)


def test_a_pack_with_a_renamed_file_can_be_finalized_and_names_the_new_path(repository: Place) -> None:
    with serving(repository.folder) as agent:
        pack = agent.does("write", document=whole())
        rename(repository, "lib/login.py")
        final = agent.does("write", id=pack["id"], expected_revision=1, document=whole(status="finalized"))
        (moved,) = final["moved_refs"]
        assert (moved["path"], moved["now_path"], moved["now"]) == (
            "src/auth.py",
            "lib/login.py",
            {"start": 1, "end": 1},
        )


def test_a_file_that_was_deleted_stays_missing(repository: Place) -> None:
    pack = write(repository.folder)
    git("rm", "-q", "src/auth.py", cwd=repository.folder)
    git("commit", "-q", "-m", "gone", cwd=repository.folder)
    with serving(repository.folder) as agent:
        assert states(agent, pack) == [("step-3", "unreadable")]
        assert "> stale ref: the file is missing" in agent.reads(action="read", id=pack)


def test_lines_that_changed_in_a_renamed_file_are_stale(repository: Place) -> None:
    pack = write(repository.folder)
    rename(repository, "lib/login.py")
    code = repository.folder / "lib" / "login.py"
    code.write_text(code.read_text(encoding="utf-8").replace("return 3\n", "return 33\n"), encoding="utf-8")
    with serving(repository.folder) as agent:
        assert states(agent, pack) == [("step-3", "changed")]


def test_a_rename_is_followed_into_the_worktree_and_not_out_of_the_source_root(repository: Place) -> None:
    inner = repository.folder / "services" / "api"
    assert ctx("init", cwd=inner).status == 0
    own = {"sections": [section("findings", refs=[{"key": "app", "path": "app.py", "line_start": 1, "line_end": 1}])]}
    pack = write(inner, own)
    git("mv", "services/api/app.py", "services/app.py", cwd=repository.folder)
    git("commit", "-q", "-m", "out", cwd=repository.folder)
    with serving(inner) as agent:
        assert states(agent, pack) == [("app", "unreadable")]
    git("mv", "services/app.py", "services/api/main.py", cwd=repository.folder)
    git("commit", "-q", "-m", "back", cwd=repository.folder)
    with serving(inner) as agent:
        assert states(agent, pack) == [("app", "moved")]


@pytest.mark.parametrize("include", [False, True])
def test_a_hostile_repository_runs_nothing_and_changes_nothing(
    repository: Place, tmp_path: Path, *, include: bool
) -> None:
    pack = write(repository.folder)
    rename(repository, "lib/login.py")
    traps = tmp_path / "traps"
    traps.mkdir()
    sprung = tmp_path / "sprung"
    trap = traps / "trap"
    trap.write_text(f"#!/bin/sh\necho $0 >> {sprung}\ncat\n", encoding="utf-8")
    trap.chmod(0o755)
    for name in ("post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"):
        shutil.copy(trap, traps / name)
    for key, value in {
        "core.fsmonitor": str(trap),
        "core.hooksPath": str(traps),
        "core.pager": str(trap),
        "diff.external": str(trap),
        "filter.evil.clean": str(trap),
        "filter.evil.process": str(trap),
        "filter.other.one.clean": str(trap),
        "diff.evil.textconv": str(trap),
        "diff.evil.command": str(trap),
        "log.showSignature": "true",
        "gpg.program": str(trap),
        "core.sshCommand": str(trap),
        "alias.rev-list": f"!{trap}",
    }.items():
        file = ["--file", str(repository.folder / ".git" / "more")] if include else []
        git("config", *file, key, value, cwd=repository.folder)
    if include:
        git("config", "include.path", "more", cwd=repository.folder)
    (repository.folder / ".gitattributes").write_text("* filter=evil diff=evil\n", encoding="utf-8")
    sprung.unlink(missing_ok=True)
    index = (repository.folder / ".git" / "index").read_bytes()
    os.utime(repository.folder / "lib" / "login.py", (1, 1))
    os.utime(repository.folder / ".git" / "index", (1, 1))  # so that git compares the contents of all files
    (tmp_path / "elsewhere").mkdir()
    hostile = {
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_WORK_TREE": str(tmp_path / "elsewhere"),
        "GIT_EXTERNAL_DIFF": str(trap),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(trap),
        "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_EXEC_PATH": str(traps),
    }
    with serving(repository.folder, hostile) as agent:
        assert states(agent, pack) == [("step-3", "moved")]
        assert agent.does("write", document=ONE_REF)["revision"] == 1
    assert not sprung.exists(), sprung.read_text(encoding="utf-8")
    assert not (tmp_path / "trace").exists()
    assert (repository.folder / ".git" / "index").read_bytes() == index


@pytest.mark.parametrize("script", [None, "exit 1", "echo garbage", "kill -9 $$", "head -c 100000000 /dev/zero"])
def test_without_a_git_that_works_a_renamed_file_is_missing(
    repository: Place, tmp_path: Path, script: str | None
) -> None:
    pack = write(repository.folder)
    rename(repository, "lib/login.py")
    programs = tmp_path / "programs"
    programs.mkdir()
    if script is not None:
        (programs / "git").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (programs / "git").chmod(0o755)
    with serving(
        repository.folder, {"PATH": f"{programs}:/nowhere" if script is None else f"{programs}:/bin"}
    ) as agent:
        assert states(agent, pack) == [("step-3", "unreadable")]
        assert agent.does("write", document={"sections": []})["revision"] == 1


def test_a_git_of_the_project_itself_is_not_run(repository: Place, tmp_path: Path) -> None:
    pack = write(repository.folder)
    rename(repository, "lib/login.py")
    sprung = tmp_path / "sprung"
    fake = repository.folder / "git"
    fake.write_text(f"#!/bin/sh\ntouch {sprung}\n", encoding="utf-8")
    fake.chmod(0o755)
    path = f".::{repository.folder}:{os.environ['PATH']}"
    with serving(repository.folder, {"PATH": path}) as agent:
        assert states(agent, pack) == [("step-3", "moved")]
    assert not sprung.exists()
