"""`ctx show`, `cat`, `log` and `search`, as a person who looks for a run uses them."""

from pathlib import Path

import pytest

from contextplane.model.ids import Digest
from contextplane.testing.proofs import proves
from tests.surfaces.running import ctx
from tests.surfaces.runs import packed, place, refs


@pytest.fixture
def store(tmp_path: Path) -> Path:
    assert ctx("init", cwd=tmp_path).status == 0
    return tmp_path


@proves("execution-pack:inspect:ctx-show-hash")
def test_show_tells_what_a_run_consists_of(store: Path) -> None:
    digits = packed(store)
    shown = ctx("show", digits[:8], cwd=store).out
    for line in (
        "Model:     model-x",
        "order.json (11 B)",
        "[0] tool_call read_file (deterministic)",
        "out/report.md (11 B)",
    ):
        assert line in shown
    assert "[1] reasoning (non-deterministic) +1.500s" in shown
    assert "Refund order 881" not in shown
    full = ctx("show", f"ctx://{digits}", "--steps", "--content", cwd=store).out
    for text in ('{"path":"order.json"}', "Refund order 881", "# Refunded", "It was delivered."):
        assert text in full


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("system_prompt", b"You are careful."),
        ("prompts/0", b"Refund order 881"),
        ("inputs/order.json", b'{"id": 881}'),
        ("steps/1", b"It was delivered."),
        ("outputs/out/report.md", b"# Refunded\n"),
    ],
)
def test_every_part_of_a_run_can_be_read_back(store: Path, part: str, content: bytes) -> None:
    digits = packed(store)
    for ref in (f"ctx://{digits}:{part}", f"{digits[:6]}:{part}", f"sha256:{digits}:{part}"):
        assert ctx("cat", ref, cwd=store).raw == content


@pytest.mark.parametrize("part", ["steps/9", "steps/x", "outputs/none", "none", "prompts/-1", "inputs/"])
def test_a_part_that_is_not_there_is_not_found(store: Path, part: str) -> None:
    result = ctx("cat", f"{packed(store)}:{part}", cwd=store)
    assert (result.status, "execution_pack_part_not_found" in result.err) == (13, True)


def test_the_log_is_newest_first_and_can_be_narrowed(store: Path) -> None:
    old = packed(store, created="2020-01-01T00:00:00Z", model={"identifier": "model-y"}, steps=[])
    new = packed(store)
    assert refs(ctx("log", "--json", cwd=store)) == [new, old]
    assert refs(ctx("log", "--json", "--since", "2021-01-01", cwd=store)) == [new]
    assert refs(ctx("log", "--json", "--since", "2020-01-01T00:00:00Z", cwd=store)) == [new, old]
    assert refs(ctx("log", "--json", "--model", "model-y", cwd=store)) == [old]
    assert refs(ctx("log", "--json", "--tool", "read_file", cwd=store)) == [new]
    cut = ctx("log", "--limit", "1", cwd=store)
    assert cut.out.startswith(new[:12])
    assert "--all" in cut.err
    assert ctx("log", "--all", cwd=store).out.count("\n") == 2
    for bad in (("--limit", "0"), ("--limit", "x"), ("--since", "yesterday")):
        assert ctx("log", *bad, cwd=store).status == 2


def test_words_are_found_where_they_stand(store: Path) -> None:
    digits = packed(store)
    for words, part in {
        "Refund 881": "prompts/0",
        "careful": "system_prompt",
        "delivered": "steps/1",
        "order.json path": "steps/0/parameters",
        "refunded": "outputs/out/report.md",
        "model-x": "metadata",
    }.items():
        result = ctx("search", words, cwd=store)
        assert f"{digits[:12]}:{part}" in result.out, (words, result)
    assert ctx("search", "nowhere", cwd=store).out == "Nothing found.\n"
    assert ctx("search", '"', "AND", "(", cwd=store).status == 0


def test_a_tampered_manifest_is_named_as_tampered_and_still_listed(store: Path) -> None:
    digits = packed(store)
    path = place(store, digits)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"model-x", b"model-y"))
    for args in (("show", digits), ("cat", f"ctx://{digits}"), ("cat", f"{digits}:system_prompt")):
        result = ctx(*args, cwd=store)
        assert (result.status, "object_corrupt" in result.err) == (11, True), result
    listed = ctx("log", cwd=store)
    assert listed.status == 0
    assert digits[:12] in listed.out
    assert "corrupt" in listed.out


def test_a_tampered_or_missing_content_is_marked(store: Path) -> None:
    digits = packed(store)
    report, prompt = Digest.of(b"# Refunded\n").hex, Digest.of(b"You are careful.").hex
    place(store, report).chmod(0o644)
    place(store, report).write_bytes(b"# REFUNDED\n")
    place(store, prompt).unlink()
    plain = ctx("show", digits, cwd=store).out
    assert f"out/report.md (tampered with: sha256:{report})" in plain
    assert f"System prompt: missing: sha256:{prompt}" in plain
    shown = ctx("show", digits, "--content", cwd=store)
    assert shown.status == 0
    assert "[tampered with: " in shown.out
    assert "[missing: " in shown.out


def test_words_at_the_edge_of_a_piece_are_found(store: Path) -> None:
    packed(store, system_prompt="w " * 8190 + "boundaryword and more")
    assert ":system_prompt" in ctx("search", "boundaryword", cwd=store).out


@pytest.mark.parametrize("part", ["steps/" + "9" * 5000, "prompts/\u0661"])
def test_a_number_that_is_none_is_no_part(store: Path, part: str) -> None:
    assert ctx("cat", f"{packed(store)}:{part}", cwd=store).status == 13
