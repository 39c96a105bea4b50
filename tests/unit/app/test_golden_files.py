"""The files of golden cases: JSON or YAML, each a file of its folder, written whole or not at all."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from contextplane.app.compile.golden import golden_files, record_cases
from contextplane.app.packs.files import MAX_CASE_BYTES
from contextplane.errors import ContextPlaneError
from tests.unit.compiler.case_files import SHOWN, source_of, write_json
from tests.unit.evaluation.test_golden import folder, line, recorded, run

YAML = """\
# what is asked
request: {request}  # in one line
run_context: {run_context}

# where
environment: {environment}
"""


def yaml_case(cases: Path, name: str, *, before: str = "", after: str = "") -> Path:
    path = cases / name
    text = YAML.format(**{key: json.dumps(part) for key, part in SHOWN.items()})
    path.write_text(f"{before}{text}{after}", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("", "expected:\n  refused: x\n  stage: y"),
        ("# first\nexpected: {refused: x, stage: y}\n# and then\n\n", "# the end\n"),
        ("---\nexpected:\n  {}\n", ""),
    ],
    ids=["nothing yet", "at the end", "at the top", "of no form"],
)
def test_a_case_in_yaml_keeps_every_line_of_its_author(tmp_path: Path, before: str, after: str) -> None:
    cases = tmp_path / "golden"
    cases.mkdir()
    path = yaml_case(cases, "shown.yaml", before=before, after=after)
    record_cases(source_of(tmp_path), golden_files(str(cases), anew=True))
    text = path.read_text(encoding="utf-8")
    for text_line in YAML.splitlines() + [row for row in (before + after).splitlines() if row.startswith("#")]:
        assert text_line.partition("{")[0] in text
    assert "expected:" not in text
    assert (cases / "shown.expected.json").exists()
    assert run(str(cases), source_of(tmp_path))["shown"].passed
    record_cases(source_of(tmp_path), golden_files(str(cases)))
    assert path.read_text(encoding="utf-8") == text


def test_nothing_is_recorded_where_one_cannot_be_written(tmp_path: Path) -> None:
    cases = Path(folder(tmp_path))
    # All members in one line: no line can be cut out.
    whole = json.dumps({**SHOWN, "expected": {"refused": "x", "stage": "y"}})
    (cases / "then.yaml").write_text(f"# a comment\n{whole}\n", encoding="utf-8")
    before = {path.name: path.read_bytes() for path in cases.iterdir()}
    with pytest.raises(ContextPlaneError) as refused:
        record_cases(source_of(tmp_path), golden_files(str(cases)))
    assert refused.value.code == "golden_case_invalid"
    assert {path.name: path.read_bytes() for path in cases.iterdir()} == before


def a_link_out(path: Path) -> None:
    write_json(path.parent.parent, "elsewhere.json", SHOWN)
    path.symlink_to("../elsewhere.json")


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "is a pipe"),
    "a folder": (Path.mkdir, "is a folder"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "out of its folder"),
    "a link out of the folder": (a_link_out, "out of its folder"),
    "a link to nothing": (lambda path: path.symlink_to("nothing.json"), "No such file"),
}


@pytest.mark.parametrize("name", ["odd.json", "odd.yaml"])
@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_of_the_folder_is_refused_and_nobody_waits_for_it(tmp_path: Path, kind: str, name: str) -> None:
    make, words = ODD[kind]
    cases = folder(tmp_path)
    make(Path(cases) / name)
    with pytest.raises(ContextPlaneError, match=words) as refused:
        golden_files(cases)
    assert (refused.value.code, refused.value.at) == ("document_unreadable", f"{cases}/{name}")


@pytest.mark.parametrize(
    ("name", "data", "size", "code"),
    [
        ("odd.json", b'{"a": "\xff"}', None, "json_utf8_invalid"),
        ("odd.yaml", b'a: "\xff"', None, "yaml_refused"),
        ("odd.json", b"", MAX_CASE_BYTES + 1, "author_file_too_large"),
        ("odd.yaml", b"", MAX_CASE_BYTES + 1, "author_file_too_large"),
    ],
    ids=["not utf-8", "not utf-8, in yaml", "far too large", "far too large, in yaml"],
)
def test_what_cannot_be_read_is_refused_with_its_name(
    tmp_path: Path, name: str, data: bytes, size: int | None, code: str
) -> None:
    cases = folder(tmp_path)
    with (Path(cases) / name).open("wb") as file:
        file.write(data)
        file.truncate(size)
    with pytest.raises(ContextPlaneError) as refused:
        golden_files(cases)
    assert (refused.value.code, (refused.value.at or "").startswith(f"{cases}/{name}")) == (code, True)


def test_the_surface_of_a_folder_is_a_file_of_it(tmp_path: Path) -> None:
    recorded(tmp_path)
    a_link_out(tmp_path / "golden" / "tool_surface.json")
    with pytest.raises(ContextPlaneError, match="out of its folder"):
        line(tmp_path, "tool_surface")


def test_a_link_within_the_folder_stays_a_link(tmp_path: Path) -> None:
    cases = Path(folder(tmp_path))
    (cases / "link.json").symlink_to("shown.json")
    record_cases(source_of(tmp_path), golden_files(str(cases)))
    assert (cases / "link.json").is_symlink()
    assert run(str(cases), source_of(tmp_path))["link"].passed
