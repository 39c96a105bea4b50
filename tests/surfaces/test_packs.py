"""`ctx pack`, `show`, `cat`, `log` and `search`, as a person with an agent's log uses them."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from contextplane.model.canonical import canonical
from contextplane.model.ids import Digest
from contextplane.testing.proofs import proves
from tests.surfaces.running import Result, ctx

LOG: dict[str, Any] = {
    "model": {"identifier": "model-x", "parameters": {"temperature": 0.7, "top_p": 1.0}},
    "system_prompt": "You are careful.",
    "prompts": [{"role": "user", "content": "Refund order 881"}],
    "inputs": [{"name": "order.json", "content": '{"id": 881}'}],
    "steps": [
        {
            "index": 0,
            "type": "tool_call",
            "tool": "read_file",
            "parameters": {"path": "order.json"},
            "output": '{"id": 881}',
            "deterministic": True,
            "timestamp": "2026-05-04T09:31:41Z",
        },
        {"type": "reasoning", "output": "It was delivered.", "timestamp": "2026-05-04T09:31:42.5Z"},
    ],
    "outputs": [{"name": "out/report.md", "content": "# Refunded\n"}],
    "environment": {"os": "linux", "runtime": "python3.11", "tool_versions": {"read_file": "1"}},
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    assert ctx("init", cwd=tmp_path).status == 0
    return tmp_path


def packed(store: Path, **fields: object) -> str:
    """Pack a log; return the 64 digits of the pack."""
    result = ctx("pack", "-", cwd=store, input=json.dumps({**LOG, **fields}).encode())
    assert result.status == 0, result.err
    return result.out.strip().removeprefix("ctx://")


def manifest(store: Path, digits: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(ctx("show", digits, "--json", cwd=store).out)
    return value


def place(store: Path, digits: str) -> Path:
    return store / ".ctx" / "objects" / digits[:2] / digits[2:]


@proves(
    "execution-pack:manifest:canonical-json-file",
    "execution-pack:manifest:stored-in-object-store",
    "execution-pack:manifest:identifier-is-own-hash",
    "execution-pack:canonicalization:canonical-before-hashing",
    "execution-pack:canonicalization:hash-empty-while-hashing",
    "execution-pack:canonicalization:hash-populated-once-known",
)
def test_the_identity_of_a_pack_is_the_hash_of_its_canonical_manifest(store: Path) -> None:
    digits = packed(store)
    raw = place(store, digits).read_bytes()
    assert Digest.of(raw).hex == digits
    value = json.loads(raw)
    assert value["hash"] == ""
    assert canonical(value) == raw
    entry = json.loads((store / ".ctx" / "packs" / digits).read_bytes())
    assert entry == {**value, "hash": f"sha256:{digits}"} == manifest(store, digits)


@proves("execution-pack:canonicalization:same-execution-same-hash")
def test_the_same_log_gives_the_same_pack_and_says_so(store: Path) -> None:
    first = packed(store)
    again = ctx("pack", "-", cwd=store, input=json.dumps(dict(reversed(LOG.items())), indent=3).encode())
    assert (again.status, again.out) == (0, f"ctx://{first}\n")
    assert "packed before" in again.err
    assert ctx("log", cwd=store).out.count("\n") == 1


@proves(
    "execution-pack:manifest-fields:all-fields",
    "execution-pack:manifest-fields:version",
    "execution-pack:manifest-fields:hash",
    "execution-pack:manifest-fields:created",
    "execution-pack:manifest-fields:parent-optional",
    "execution-pack:model-object:identifier",
    "execution-pack:model-object:parameters",
    "execution-pack:step-object:all-fields",
    "execution-pack:environment:all-fields",
    "execution-pack:manifest-fields:model",
    "execution-pack:manifest-fields:system-prompt",
    "execution-pack:manifest-fields:prompts",
    "execution-pack:manifest-fields:inputs",
    "execution-pack:manifest-fields:steps",
    "execution-pack:manifest-fields:outputs",
    "execution-pack:manifest-fields:environment",
    "execution-pack:model-object:captures-configuration",
    "execution-pack:step-object:atomic-action",
    "execution-pack:step-object:index",
    "execution-pack:step-object:tool-and-parameters",
    "execution-pack:step-object:output-ref",
    "execution-pack:step-object:deterministic",
    "execution-pack:step-object:timestamp",
    "execution-pack:environment:os",
    "execution-pack:environment:runtime",
    "execution-pack:environment:tool-versions",
    "execution-pack:overview:manifest-and-blobs",
    "execution-pack:content-addressing:large-content-not-inline",
    "execution-pack:content-addressing:ref-fields-hold-hashes",
    "execution-pack:content-addressing:content-fields-hold-hashes",
)
def test_a_manifest_has_the_fields_of_the_specification_and_contents_by_reference(store: Path) -> None:
    digits = packed(store)

    def ref(text: str) -> str:
        return str(Digest.of(text.encode()))

    assert manifest(store, digits) == {
        "version": "0.1",
        "hash": f"sha256:{digits}",
        "created": "2026-05-04T09:31:42.5Z",
        "model": {"identifier": "model-x", "parameters": {"temperature": 0.7, "top_p": 1}},
        "system_prompt": ref("You are careful."),
        "prompts": [{"role": "user", "content_ref": ref("Refund order 881")}],
        "inputs": [{"name": "order.json", "content_ref": ref('{"id": 881}'), "size": 11}],
        "steps": [
            {
                "index": 0,
                "type": "tool_call",
                "tool": "read_file",
                "parameters": {"path": "order.json"},
                "output_ref": ref('{"id": 881}'),
                "deterministic": True,
                "timestamp": "2026-05-04T09:31:41Z",
            },
            {
                "index": 1,
                "type": "reasoning",
                "tool": "",
                "parameters": None,
                "output_ref": ref("It was delivered."),
                "deterministic": False,
                "timestamp": "2026-05-04T09:31:42.5Z",
            },
        ],
        "outputs": [{"name": "out/report.md", "content_ref": ref("# Refunded\n")}],
        "environment": {"os": "linux", "runtime": "python3.11", "tool_versions": {"read_file": "1"}},
    }


@proves("execution-pack:inspect:ctx-show-hash")
def test_show_tells_what_a_run_consists_of(store: Path) -> None:
    digits = packed(store)
    shown = ctx("show", digits[:8], cwd=store).out
    for line in (
        "Model:   model-x",
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


def test_contents_may_come_as_base64_and_as_files_beside_the_log(store: Path) -> None:
    (store / "logs").mkdir()
    (store / "logs" / "big.bin").write_bytes(bytes(range(256)) * 5000)
    outputs = [
        {"name": "b", "content_base64": base64.b64encode(b"\x00\xff").decode()},
        {"name": "f", "path": "big.bin"},
    ]
    (store / "logs" / "run.json").write_text(json.dumps({**LOG, "outputs": outputs}), encoding="utf-8")
    result = ctx("pack", "logs/run.json", cwd=store)
    ref = result.out.strip()
    assert ctx("cat", f"{ref}:outputs/b", cwd=store).raw == b"\x00\xff"
    assert ctx("cat", f"{ref}:outputs/f", cwd=store).raw == bytes(range(256)) * 5000


@pytest.mark.parametrize(
    ("output", "status", "code"),
    [
        ({"path": "../outside"}, 10, "path_outside_root"),
        ({"path": "/etc/hostname"}, 10, "path_outside_root"),
        ({"path": "link"}, 10, "path_outside_root"),
        ({"path": "none"}, 13, "source_unreadable"),
        ({"path": "."}, 13, "source_unreadable"),
        ({"path": "a\x00b"}, 13, "source_unreadable"),
        ({"content_base64": "%%%"}, 10, "content_base64_invalid"),
    ],
)
def test_a_content_that_cannot_be_had_is_refused_and_nothing_is_packed(
    store: Path, output: dict[str, str], status: int, code: str
) -> None:
    (store / "logs").mkdir()
    (store / "outside").write_text("secret", encoding="ascii")
    (store / "logs" / "link").symlink_to("../outside")
    (store / "logs" / "run.json").write_text(
        json.dumps({**LOG, "outputs": [{"name": "o", **output}]}), encoding="utf-8"
    )
    result = ctx("pack", "logs/run.json", cwd=store)
    assert (result.status, code in result.err, "/outputs/0/" in result.err) == (status, True, True), result
    assert ctx("log", cwd=store).out == "No execution packs.\n"
    assert "0 orphaned, 0 foreign" in ctx("fsck", cwd=store).out


@pytest.mark.parametrize("log", ["none.json", ".", "empty.json"])
def test_a_log_that_cannot_be_read_is_told_as_such(store: Path, log: str) -> None:
    (store / "empty.json").write_bytes(b"")
    result = ctx("pack", log, cwd=store)
    assert result.status in {10, 13}
    assert result.err.count("\n") == 1


def test_what_looks_like_a_secret_is_told_and_not_repeated(store: Path) -> None:
    secret = "ghp_" + "a1" * 18
    result = ctx("pack", "-", cwd=store, input=json.dumps({**LOG, "system_prompt": f"use {secret}"}).encode())
    assert result.status == 0
    assert "/system_prompt looks like it holds a secret (GitHub token)" in result.err
    assert secret not in result.err + result.out


@proves("execution-pack:manifest-fields:parent-is-fork-origin")
def test_a_parent_is_named_and_followed(store: Path) -> None:
    first = packed(store)
    body = json.dumps({**LOG, "system_prompt": "Be bold."}).encode()
    second = ctx("pack", "-", "--parent", first[:8], cwd=store, input=body).out.strip().removeprefix("ctx://")
    assert manifest(store, second)["parent"] == f"sha256:{first}"
    assert f"Parent:  {first[:12]}" in ctx("show", second, cwd=store).out
    assert f"(forked from {first[:12]})" in ctx("log", cwd=store).out
    assert refs(ctx("log", "--parent", first, "--json", cwd=store)) == [second]
    assert ctx("pack", "-", "--parent", "0" * 64, cwd=store, input=body).status == 13


def refs(result: Result) -> list[str]:
    return [row["ref"].removeprefix("ctx://") for row in json.loads(result.out)["packs"]]


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
        assert ctx("log", *bad, cwd=store).status in {2, 10}


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
    assert f"out/report.md (corrupt: sha256:{report})" in plain
    assert f"System prompt: object_not_found: sha256:{prompt}" in plain
    shown = ctx("show", digits, "--content", cwd=store)
    assert shown.status == 0
    assert "[object_corrupt: " in shown.out
    assert "[object_not_found: " in shown.out


def test_a_manifest_that_could_not_be_read_back_is_not_packed(store: Path) -> None:
    steps = [{"type": "reasoning", "parameters": {"p": "x" * (65 << 20)}}]
    result = ctx("pack", "-", cwd=store, input=json.dumps({**LOG, "steps": steps}).encode())
    assert (result.status, "manifest_invalid" in result.err) == (10, True)
    assert ctx("fsck", cwd=store).status == 0


def test_words_at_the_edge_of_a_piece_are_found(store: Path) -> None:
    packed(store, system_prompt="w " * 8190 + "boundaryword and more")
    assert ":system_prompt" in ctx("search", "boundaryword", cwd=store).out


@pytest.mark.parametrize("part", ["steps/" + "9" * 5000, "prompts/\u0661"])
def test_a_number_that_is_none_is_no_part(store: Path, part: str) -> None:
    assert ctx("cat", f"{packed(store)}:{part}", cwd=store).status == 13
