"""`ctx search`: every word of a run is found in its place, and unsearched contents are reported."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contextplane.app.execution.pack import pack_log
from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from tests.surfaces.commands import ctx

LOG: dict[str, Any] = {
    "model": {"identifier": "model-x"},
    "system_prompt": "You are careful.",
    "prompts": [{"role": "user", "content": "Please refund the order 881"}],
    "inputs": [{"name": "customer.csv", "content": "onlyininput"}],
    "steps": [
        {
            "type": "tool_call",
            "tool": "lookup_order",
            "parameters": {"query": "first\nsecond", "nested": [{"deep": ["innermost", 4711, True]}]},
            "output": "what was read",
        }
    ],
    "outputs": [{"name": "out/report.md", "content": "# Refunded\n"}],
    "environment": {"os": "plan9", "runtime": "python3.11", "tool_versions": {"lookup_order": "2.7beta"}},
}

Pack = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    init(Settings(cwd=str(tmp_path)), ".")
    return tmp_path


@pytest.fixture
def pack(folder: Path) -> Pack:
    def packed(**fields: object) -> str:
        with open_platform(Settings(cwd=str(folder))) as platform:
            return pack_log(platform, json.dumps({**LOG, **fields}).encode(), root=str(folder)).digest.hex

    return packed


def answer(*args: str, folder: Path) -> dict[str, Any]:
    result = ctx("search", *args, "--json", cwd=folder)
    assert (result.status, result.err) == (0, "")
    value: dict[str, Any] = json.loads(result.raw)
    return value


def parts(*args: str, folder: Path) -> list[str]:
    return [hit["part"] for hit in answer(*args, folder=folder)["hits"]]


def test_every_word_is_found_where_it_stands(folder: Path, pack: Pack) -> None:
    pack()
    for words, expected in {
        "careful": ["system_prompt"],
        "REFUND": ["prompts/0"],
        "refun*": ["outputs/out/report.md", "prompts/0"],
        '"refund the order"': ["prompts/0"],
        '"order refund"': [],
        "second": ["steps/0/parameters"],
        "innermost 4711 query": ["steps/0/parameters"],
        "read": ["steps/0"],
        "model-x plan9": ["metadata"],
        "lookup_order": ["metadata"],
        "2.7beta": ["metadata"],
        "customer.csv": ["metadata"],
        "report.md tool_call": ["metadata"],
        "onlyininput": [],
        "careful refund": [],
    }.items():
        assert parts(words, folder=folder) == expected, words


def test_people_see_the_place_and_the_words_around_it_on_one_line(folder: Path, pack: Pack) -> None:
    digits = pack(system_prompt="You\tare\r\n  careful \x1b[31m.\n")
    result = ctx("search", "careful", cwd=folder)
    assert result.out == f"{digits[:12]}:system_prompt  You are careful \\x1b[31m.\n"
    assert ctx("search", "nowhere", cwd=folder).out == "Nothing found.\n"


def test_a_long_answer_is_cut_and_says_so(folder: Path, pack: Pack) -> None:
    for n in range(3):
        pack(system_prompt=f"careful {n}")
    newest = answer("careful", folder=folder)
    assert (len(newest["hits"]), newest["more"]) == (3, False)
    cut = ctx("search", "careful", "--limit", "2", cwd=folder)
    assert cut.out.count("\n") == 2
    assert cut.err == "ctx: 2 places listed, there are more: use --limit N or --all\n"
    assert ctx("search", "careful", "--limit", "2", "--quiet", cwd=folder).err == cut.err
    less = answer("careful", "--limit", "2", folder=folder)
    assert (less["hits"], less["more"]) == (newest["hits"][:2], True)
    assert answer("careful", "--all", folder=folder) == answer("careful", "--limit", "3", folder=folder) == newest
    for bad in (["--limit", "0"], ["--limit", "x"], ["--limit", "1", "--all"], ["--limit", "-1"]):
        assert ctx("search", "careful", *bad, cwd=folder).status == 2


def test_without_a_limit_fifty_places_are_shown(folder: Path, pack: Pack) -> None:
    pack(prompts=[{"role": "user", "content": f"careful {n}"} for n in range(60)])
    results = answer("careful", folder=folder)
    assert (len(results["hits"]), results["more"]) == (50, True)
    assert len(answer("careful", "--all", folder=folder)["hits"]) == 61


@pytest.mark.parametrize("words", [[""], ["..."], ['"', "(", ")"], ["*"], [" "]])
def test_to_search_for_nothing_is_a_mistake_with_a_way_out(folder: Path, words: list[str]) -> None:
    result = ctx("search", *words, cwd=folder)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("ctx: search_text_empty: no word to search for (punctuation alone ")


@pytest.mark.parametrize(
    "content",
    [
        {"content": "careful " + "x" * (1 << 20)},
        {"content_base64": base64.b64encode(b"\xff\xfe careful").decode()},
        {"content_base64": base64.b64encode(b"careful\x00").decode()},
        {"content_base64": base64.b64encode(b"careful \xff" * (200 << 10)).decode()},
    ],
    ids=["long", "binary", "with-nul", "long-binary"],
)
def test_what_was_not_searched_is_said(folder: Path, pack: Pack, content: dict[str, str]) -> None:
    pack()
    plain = answer("careful", folder=folder)
    assert (plain["left_out"], plain["searched_bytes_of_each"]) == (False, 1 << 20)
    assert ctx("search", "careful", cwd=folder).err == ""
    pack(outputs=[{"name": "o", **content}])
    results = answer("careful", folder=folder)
    assert results["left_out"] is True
    assert [hit["part"] for hit in results["hits"]].count("outputs/o") == ("content" in content)
    warning = "ctx: binary contents were not searched, and large texts only up to the first MiB\n"
    assert ctx("search", "careful", cwd=folder).err == warning
    assert ctx("fsck", "--rebuild", cwd=folder).status == 0
    assert answer("careful", folder=folder)["left_out"] is True


def test_the_first_mebibyte_is_searched_to_its_last_whole_character(folder: Path, pack: Pack) -> None:
    text = "\u00e9 " * 349_520 + "lastword \u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9 behind"
    pack(outputs=[{"name": "o", "content": text}])
    assert parts("lastword", folder=folder) == ["outputs/o"]
    assert parts("behind", folder=folder) == []


def test_a_pack_that_was_tampered_with_since_is_found_and_marked(folder: Path, pack: Pack) -> None:
    bad, gone = pack(system_prompt="careful one"), pack(system_prompt="careful two")
    whole = pack(system_prompt="careful three")
    path = folder / ".ctx" / "objects" / bad[:2] / bad[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"model-x", b"model-y"))
    (folder / ".ctx" / "objects" / gone[:2] / gone[2:]).unlink()
    lines = ctx("search", "careful", cwd=folder).out.splitlines()
    assert lines == [
        f"{whole[:12]}:system_prompt  careful three",
        f"{gone[:12]}:system_prompt  [missing]  careful two",
        f"{bad[:12]}:system_prompt  [tampered with]  careful one",
    ]
    assert [hit["problem"] for hit in answer("careful", folder=folder)["hits"]] == [None, "missing", "tampered with"]


def test_every_place_that_is_found_in_a_run_can_be_read(folder: Path, pack: Pack) -> None:
    digits = pack()
    for words in ("careful", "second", "read", "refunded", "order"):
        for part in parts(words, folder=folder):
            assert ctx("cat", f"{digits}:{part}", cwd=folder).status == 0, part
