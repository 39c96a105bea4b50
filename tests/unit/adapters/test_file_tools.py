"""The tools that read files: what each gives, and that no path leads out of the workspace."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.adapters.tools.builtin import builtin_lookup
from contextplane.adapters.tools.process import ProcessTools, SandboxOptions
from contextplane.adapters.tools.sandbox import Workspace
from contextplane.adapters.tools.wire import MAX_OUTPUT_BYTES, ToolRequest
from contextplane.adapters.tools.worker import run_tool
from contextplane.ports.tools import ToolFailed, ToolRefused, Tools
from tests.support.cases import cases
from tests.unit.adapters.tool_workspace import SECRET, ToolWorkspace


@cases("name", ["path", "file_path"])
@cases("path", ["a.txt", "./sub/../a.txt", "link_in"])
def test_a_file_of_the_workspace_is_read_by_either_name_of_the_parameter(tools: Tools, name: str, path: str) -> None:
    assert tools.call("read_file", {name: path}) == b"alpha\nbeta 881\n"


def test_an_absolute_path_into_the_workspace_is_read(tools: Tools, place: ToolWorkspace) -> None:
    assert tools.call("read_file", {"path": str(place.root / "a.txt")}) == b"alpha\nbeta 881\n"


def test_files_are_listed_at_any_depth_in_order_without_links_pipes_and_the_store(tools: Tools) -> None:
    assert tools.call("list_files", {"path": "sub"}) == b"b.txt\nbinary\n"
    assert tools.call("list_files", {}) == b"a.txt\nsub/b.txt\nsub/binary\nworkmodule.py\n"


@cases(
    ("parameters", "lines"),
    [
        ({"path": "sub"}, b"sub/b.txt:1:881 first\nsub/b.txt:3:881\n"),
        ({"path": "a.txt"}, b"a.txt:2:beta 881\n"),
        ({}, b"a.txt:2:beta 881\nsub/b.txt:1:881 first\nsub/b.txt:3:881\n"),
    ],
)
def test_a_search_gives_path_line_and_text(tools: Tools, parameters: dict[str, str], lines: bytes) -> None:
    assert tools.call("search", {"pattern": "881", **parameters}) == lines


def test_bytes_that_are_no_text_are_given_as_they_are(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff.txt"
    Path(os.fsdecode(odd)).write_bytes(b"\xff\xfe 881\n\xc3 881")
    (tmp_path / "plain").write_bytes(b"\xff\xfe")
    with ProcessTools(SandboxOptions(root=str(tmp_path))) as tools:
        assert tools.call("read_file", {"path": "plain"}) == b"\xff\xfe"
        assert tools.call("list_files", {}) == b"plain\n\xff.txt\n"
        assert tools.call("search", {"pattern": "881"}) == b"\xff.txt:1:\xff\xfe 881\n\xff.txt:2:\xc3 881\n"


def test_a_file_of_any_size_ends_in_an_answer(tmp_path: Path) -> None:
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 40)
    with ProcessTools(SandboxOptions(root=str(tmp_path))) as tools:
        with pytest.raises(ToolFailed, match="larger than 16 MiB"):
            tools.call("read_file", {"path": "huge"})
        assert tools.call("search", {"pattern": "881"}) == b""
        assert tools.call("list_files", {}) == b"huge\n"


def test_a_pattern_is_text_and_no_expression(tools: Tools) -> None:
    assert tools.call("search", {"pattern": "8.1"}) == b""


@cases("tool", ["read_file", "list_files", "search"])
@cases(
    "path",
    [
        *("/etc/passwd", "/dev/zero", "/", "..", "../secret", "sub/../../secret", "link_out", "link_folder/secret"),
        *(
            "link_folder",
            "link_device",
            ".ctx",
            ".ctx/config.json",
            "sub/../.ctx/config.json",
            "link_store/config.json",
        ),
    ],
)
def test_whatever_leads_out_of_the_workspace_or_into_the_store_is_refused(tools: Tools, tool: str, path: str) -> None:
    with pytest.raises(ToolRefused):
        tools.call(tool, {"path": path, "pattern": "881"})


@cases(
    ("tool", "parameters"),
    [
        ("read_file", {}),
        ("read_file", {"path": 1}),
        ("read_file", {"path": ""}),
        ("read_file", {"path": "a\0b"}),
        ("read_file", {"path": "missing"}),
        ("read_file", {"path": "sub"}),
        ("read_file", {"path": "pipe"}),
        ("list_files", {"path": "a.txt"}),
        ("list_files", {"path": "pipe"}),
        ("list_files", {"path": "a\0b"}),
        ("search", {}),
        ("search", {"pattern": ""}),
        ("search", {"pattern": "881", "path": "pipe"}),
        ("search", {"pattern": "881", "path": "missing"}),
    ],
)
def test_what_cannot_be_read_or_asked_is_a_failure_and_nothing_waits_for_it(
    tools: Tools, tool: str, parameters: dict[str, object]
) -> None:
    with pytest.raises(ToolFailed):
        tools.call(tool, parameters)


def test_a_list_is_whole_or_a_failure(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):  # deeper than any path can name
        os.mkdir("x" * 250, dir_fd=folder)
        below = os.open("x" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    for tool in ("list_files", "search"):
        request = ToolRequest(tool=tool, parameters={"pattern": "881"})
        assert run_tool(request, builtin_lookup(Workspace(str(tmp_path)), ())).ended == "failed"


@given(
    path=st.text() | st.lists(st.sampled_from(["..", ".", "sub", "link_folder", "secret", "link_out"])).map("/".join)
)
def test_no_path_at_all_gives_bytes_from_outside(place: ToolWorkspace, path: str) -> None:
    lookup = builtin_lookup(Workspace(str(place.root)), ())
    for tool in ("read_file", "list_files", "search"):
        parameters = {"path": path, "pattern": "nobody"}
        output = run_tool(ToolRequest(tool=tool, parameters=parameters), lookup).output
        assert SECRET not in output
        assert b"secret" not in output


@pytest.mark.parametrize(("size", "fits"), [(MAX_OUTPUT_BYTES, True), (MAX_OUTPUT_BYTES + 1, False)])
def test_an_output_has_a_limit(tools: Tools, tmp_path: Path, size: int, *, fits: bool) -> None:
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", size)
    with ProcessTools(SandboxOptions(root=str(tmp_path))) as others:
        function: dict[str, object] = {"function": "workmodule:large", "arguments": {"n": size}}
        calls: list[tuple[Tools, str, dict[str, object]]] = [
            (others, "read_file", {"path": "large"}),
            (tools, "python", function),
        ]
        for called, name, parameters in calls:
            if fits:
                assert len(called.call(name, parameters)) == size
            else:
                with pytest.raises(ToolFailed, match="larger than 16 MiB"):
                    called.call(name, parameters)
