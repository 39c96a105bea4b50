"""`ctx pack`, as a person with an agent's log uses it."""

import base64
import json
import os
import threading
from pathlib import Path

import pytest

from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical
from contextplane.testing.proofs import proves
from tests.surfaces.commands import ctx
from tests.surfaces.runs import LOG, manifest, packed, place, refs


@pytest.fixture
def store(tmp_path: Path) -> Path:
    assert ctx("init", cwd=tmp_path).status == 0
    return tmp_path


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
    assert "already packed" in again.err
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
    assert (result.status, f"ctx: {code}: logs/run.json#/outputs/0/" in result.err) == (status, True), result
    assert ctx("log", cwd=store).out == "No execution packs.\n"
    assert "0 orphaned, 0 foreign" in ctx("fsck", cwd=store).out


@pytest.mark.parametrize(
    ("log", "status", "message"),
    [
        ("none.json", 13, "none.json: cannot be read: No such file or directory"),
        (".", 13, ".: is a folder, not a file (name a file, or - for standard input)"),
        ("empty.json", 10, "empty.json: line 1, column 1: the document is empty"),
    ],
)
def test_a_log_that_cannot_be_read_is_told_as_such(store: Path, log: str, status: int, message: str) -> None:
    (store / "empty.json").write_bytes(b"")
    result = ctx("pack", log, cwd=store)
    assert (result.status, result.err.count("\n"), message in result.err) == (status, 1, True), result.err


def test_packing_a_run_again_puts_back_what_was_missing_or_damaged(store: Path) -> None:
    digits = packed(store)
    gone, damaged = (place(store, Digest.of(text).hex) for text in (b"You are careful.", b"# Refunded\n"))
    gone.unlink()
    damaged.chmod(0o644)
    damaged.write_bytes(b"another")
    assert ctx("verify", digits, cwd=store).status != 0
    assert packed(store) == digits
    assert ctx("verify", digits, cwd=store).status == 0


def test_what_looks_like_a_secret_is_told_and_not_repeated(store: Path) -> None:
    secret = "ghp_" + "a1" * 18
    result = ctx("pack", "-", cwd=store, input=json.dumps({**LOG, "system_prompt": f"use {secret}"}).encode())
    assert result.status == 0
    assert "/system_prompt may contain a secret (GitHub token)" in result.err
    assert secret not in result.err + result.out


@proves("execution-pack:manifest-fields:parent-is-fork-origin")
def test_a_parent_is_named_and_followed(store: Path) -> None:
    first = packed(store)
    body = json.dumps({**LOG, "system_prompt": "Be bold."}).encode()
    second = ctx("pack", "-", "--parent", first[:8], cwd=store, input=body).out.strip().removeprefix("ctx://")
    assert manifest(store, second)["parent"] == f"sha256:{first}"
    assert f"Parent:    {first[:12]}" in ctx("show", second, cwd=store).out
    assert f"(forked from {first[:12]})" in ctx("log", cwd=store).out
    assert refs(ctx("log", "--parent", first, "--json", cwd=store)) == [second]
    assert ctx("pack", "-", "--parent", "0" * 64, cwd=store, input=body).status == 13


def test_a_manifest_that_could_not_be_read_back_is_not_packed(store: Path) -> None:
    steps = [{"type": "reasoning", "parameters": {"p": "x" * (65 << 20)}}]
    result = ctx("pack", "-", cwd=store, input=json.dumps({**LOG, "steps": steps}).encode())
    assert (result.status, "manifest_invalid" in result.err) == (10, True)
    assert ctx("fsck", cwd=store).status == 0


def test_a_log_may_come_through_a_named_pipe(store: Path) -> None:
    pipe = store / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(json.dumps(LOG).encode(),), daemon=True)
    writer.start()
    assert ctx("pack", "pipe", cwd=store).out == f"ctx://{packed(store)}\n"


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_content_is_read_from_a_regular_file_only(store: Path, kind: str) -> None:
    os.mkfifo(store / "pipe")
    (store / "device").symlink_to("/dev/zero")
    (store / "folder").mkdir()
    body = json.dumps({**LOG, "outputs": [{"name": "o", "path": kind}]}).encode()
    result = ctx("pack", "-", cwd=store, input=body)
    assert result.status in {10, 13}
    assert "/outputs/0/path" in result.err
    assert ctx("log", cwd=store).out == "No execution packs.\n"


# --- what is searched for secrets, and what is not read ---------------------------------------------------------------


def test_how_much_was_not_searched_for_secrets_is_told(store: Path) -> None:
    large = "x" * (256 << 10)
    log = {**LOG, "system_prompt": large, "outputs": [{"name": "o", "content": large + "x"}]}
    (store / "log.json").write_text(json.dumps(log))
    result = ctx("pack", "log.json", cwd=store)
    assert result.status == 0
    assert "ctx: only the first 256 KiB of /outputs/0/content were searched for secrets\n" in result.err
    assert json.loads(ctx("pack", "log.json", "--json", cwd=store).out)["unsearched"] == ["/outputs/0/content"]
    (store / "log.json").write_text(json.dumps({**log, "system_prompt": large + "y"}))
    result = ctx("pack", "log.json", cwd=store)
    assert "256 KiB of /system_prompt and 1 other were searched" in result.err
    assert json.loads(ctx("pack", "-", "--json", cwd=store, input=json.dumps(LOG).encode()).out)["unsearched"] == []


def test_a_log_does_not_read_the_store_it_is_packed_into(store: Path) -> None:
    secret = store / ".ctx" / "keys" / "k.pem"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("of the store")
    (store / "other" / ".ctx").mkdir(parents=True)
    (store / "other" / ".ctx" / "k.pem").write_text("of another store")
    (store / "link").symlink_to(".ctx")
    for path in (".ctx/keys/k.pem", str(secret), "link/keys/k.pem", "./other/../.ctx/keys/k.pem", "other/.ctx/k.pem"):
        log = {**LOG, "inputs": [{"name": "i", "path": path}]}
        result = ctx("pack", "-", cwd=store, input=json.dumps(log).encode())
        assert (result.status, result.out) == (10, ""), path
        assert result.err.startswith("ctx: path_inside_store: /inputs/0/path ("), path
    elsewhere = {"CTX_DIR": str(store / ".ctx")}
    log = {**LOG, "inputs": [{"name": "i", "path": "k.pem"}]}
    (store / "log.json").write_text(json.dumps(log))
    inside = ctx("pack", "../../log.json", "--root", ".", cwd=secret.parent, env=elsewhere)
    assert (inside.status, "path_inside_store" in inside.err) == (10, True)
