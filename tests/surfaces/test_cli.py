"""Options of every verb: JSON for programs, plain text in a pipe, quiet, errors in either form."""

import re
from pathlib import Path

import msgspec
import pytest

from contextplane.cli.table import VERBS
from tests.support.cases import cases
from tests.surfaces.commands import ctx, ctx_subprocess
from tests.surfaces.registries import at_office, key_file, pack_file, prepared
from tests.surfaces.sample import REPORT, Store, one_error_line
from tests.unit.registry.desk import ISSUER
from tests.unit.trust.world import key_of

NAMES = [verb.name for verb in VERBS]
REFUSED = ("promote", "rollback", "unpin")  # the one can only refuse yet, the others only once do what they are asked
ENDING = [name for name in NAMES if name not in REFUSED]
ANSWERING = [name for name in ENDING if name != "mcp"]  # a server answers its client and not its caller


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store that verbs may change, with something for each of them to work on."""
    store = Store(tmp_path_factory.mktemp("used"))
    log = {"model": {"identifier": "m"}, "system_prompt": "s", "environment": {"os": "l", "runtime": "r"}}
    (store.folder / "log.json").write_bytes(msgspec.json.encode(log))
    assert ctx("pack", "log.json", cwd=store.folder).status == 0
    assert ctx("new", "refunds.yaml", cwd=store.folder).status == 0
    assert ctx("new", "request.yaml", "--request", cwd=store.folder).status == 0
    assert ctx("new", "refunds.test.yaml", "--test", cwd=store.folder).status == 0
    (store.folder / "golden").mkdir()
    assert ctx("new", "golden/refund.json", "--request", cwd=store.folder).status == 0
    assert ctx("export", store.pack, "-o", "archive.tar", cwd=store.folder).status == 0
    draft = msgspec.json.decode(ctx("fork", store.pack, "--json", cwd=store.folder).raw)
    text = Path(draft["draft"]).read_bytes().replace(b"model-x", b"model-y")
    (store.folder / "draft.json").write_bytes(text)
    assert ctx("finalize", "draft.json", cwd=store.folder).status == 0
    prepared(store.folder)
    key_file(store.folder, "wit")
    with at_office(store.folder) as here:
        here.change_keys(here.desk.keys.key_trust(key_of("wit").public_key, ISSUER, roles=("witness",)))
    unwanted = pack_file(store.folder, "unwanted.json", "7.0.0")
    assert ctx("lint", unwanted, "--record", "--key", "./author.pem", cwd=store.folder).status == 0
    for name in ("receiver", "publisher"):
        (store.folder / name).mkdir()
        assert ctx("init", cwd=store.folder / name).status == 0
    prepared(store.folder / "publisher")
    return store


# What a verb may say beside its answer when it is tried for the second time.
SAID_AGAIN = {
    "pack": "ctx: already packed, complete\n",
    "finalize": "ctx: already finalized; nothing changed\n",
}

# How a verb ends that does not end well with what it is given here: what cannot be told is no pass.
STATUS = {"check": 15}

# What is left of an answer when silence is asked for: what things are called, one on each line.
QUIETLY = {
    "pack": r"ctx://[0-9a-f]{64}\n",
    "finalize": r"ctx://[0-9a-f]{64}\n",
    "fork": r"/\S+/\.ctx/drafts/\S+\n",
    "compile": r"sha256:[0-9a-f]{64}\n",
    "log": r"(ctx://[0-9a-f]{64}\n){3}",
    "show": r"ctx://[0-9a-f]{64}\n",
    "import": r"ctx://[0-9a-f]{64}\n",
    "check": r"([2-8]\. (failed|undecided) .*\n   .*\n)+",
    "search": r"(ctx://[0-9a-f]{64}:\S+\n)+",
    "keys": r"([0-9a-f]{64}\n){9}",
    "packs": r"(ctxpack\.support@1\.[0-3]\.0\n){4}(ctxpack\.support@5\.0\.0\n)?(ctxpack\.support@1\.1\.0\n)?",
    "push": r"ctxpack\.support@1\.1\.0\n",
    "pull": r"ctxpack\.support@1\.1\.0\n",
}

VERB_LINES = {
    "init": ["init"],
    "demo": ["demo"],
    "status": ["status", "--tables"],
    "cat": ["cat", "REPORT"],
    "new": ["new", "refunds.yaml"],
    "lint": ["lint", "refunds.yaml"],
    "check": ["check", "refunds.yaml"],
    "compile": ["compile", "refunds.yaml", "--request", "request.yaml"],
    "why": ["why", "refunds.yaml", "GATE_FINANCE_APPROVAL", "--request", "request.yaml"],
    "test": ["test", "refunds.test.yaml"],
    "golden": ["golden", "record", "golden", "refunds.yaml"],
    "pack": ["pack", "log.json"],
    "show": ["show", "PACK"],
    "log": ["log"],
    "schema": ["schema", "context-pack"],
    "search": ["search", "careful"],
    "verify": ["verify", "PACK"],
    "diff": ["diff", "PACK", "PACK"],
    "replay": ["replay", "PACK", "--recorded"],
    "explain": ["explain", "object_corrupt"],
    "fork": ["fork", "PACK"],
    "finalize": ["finalize", "draft.json"],
    "export": ["export", "PACK", "-o", "out.tar"],
    "import": ["import", "archive.tar"],
    "handoff": ["handoff", "list"],
    "keys": ["keys", "list"],
    "witness": ["witness", "--key", "./wit.pem"],
    "review": [
        *("review", "ctxpack.support@3.0.0", "--role", "security", "--approve"),
        *("--reason", "it is sound", "--yes", "--key", "./sec.pem"),
    ],
    "sign": ["sign", "ctxpack.support@4.0.0", "--yes", "--key", "./pub.pem"],
    "publish": ["publish", "ctxpack.support@5.0.0", "--yes", "--key", "./pub.pem"],
    "withdraw": ["withdraw", "unwanted.json", "--reason", "the wrong file", "--key", "./author.pem"],
    "pin": ["pin", "staging", "ctxpack.support@1.0.0", "--key", "./ops.pem"],
    "unpin": ["unpin", "nowhere", "ctxpack.support", "--reason", "why not", "--key", "./ops.pem"],
    "promote": ["promote", "prod", "ctxpack.support", "--key", "./ops.pem"],
    "rollback": ["rollback", "nowhere", "ctxpack.support", "--reason", "wrong refunds", "--key", "./ops.pem"],
    "deprecate": ["deprecate", "ctxpack.support@1.2.0", "--reason", "old", "--key", "./pub.pem"],
    "revoke": ["revoke", "ctxpack.support@1.3.0", "--reason", "it leaks", "--key", "./pub.pem"],
    "refresh": ["refresh", "list"],
    "packs": ["packs"],
    "push": ["push", "receiver", "ctxpack.support@1.1.0", "--trust-root", key_of("root").public_key.key_id],
    "pull": ["pull", "publisher", "ctxpack.support@1.1.0", "--trust-root", key_of("root").public_key.key_id],
    "mcp": ["mcp"],
    "fsck": ["fsck"],
    "gc": ["gc", "--dry-run"],
    "completion": ["completion", "bash"],
}


def line_of(store: Store, name: str) -> list[str]:
    stands_for = {"REPORT": store.report, "PACK": store.pack}
    return [stands_for.get(word, word) for word in VERB_LINES[name]]


def test_every_verb_is_tried_here() -> None:
    assert sorted(VERB_LINES) == sorted(NAMES)


@pytest.mark.parametrize("name", ANSWERING)
def test_every_verb_answers_with_one_json_document_wherever_the_option_stands(used: Store, name: str) -> None:
    after = ctx_subprocess(*line_of(used, name), "--json", cwd=used.folder)  # a verb imports all that it needs
    before = ctx("--json", *line_of(used, name), cwd=used.folder)
    assert (after.status, after.err) == (before.status, before.err) == (STATUS.get(name, 0), "")
    assert isinstance(msgspec.json.decode(after.raw), dict | list)
    assert type(msgspec.json.decode(before.raw)) is type(msgspec.json.decode(after.raw))
    assert b"\x1b" not in after.raw


@cases("name", ANSWERING)
def test_every_verb_prints_plain_text_in_a_pipe(used: Store, name: str) -> None:
    result = ctx(*line_of(used, name), cwd=used.folder)
    assert (result.status, result.err) == (STATUS.get(name, 0), SAID_AGAIN.get(name, ""))
    assert result.raw
    assert b"\x1b" not in result.raw or name == "completion"


@cases("name", ENDING)
def test_a_quiet_verb_prints_only_what_was_asked_for(used: Store, name: str) -> None:
    result = ctx("--quiet", *line_of(used, name), cwd=used.folder)
    assert (result.status, result.err) == (STATUS.get(name, 0), "")
    if name == "cat":
        assert result.raw == REPORT
    elif name in {"completion", "schema"}:
        assert result.raw
    else:
        assert re.fullmatch(QUIETLY.get(name, ""), result.out), result.out


@pytest.mark.parametrize("name", REFUSED)
def test_a_verb_that_can_only_refuse_says_so_in_one_line(used: Store, name: str) -> None:
    status, code = {
        "promote": (10, "promotion_not_observed"),
        "rollback": (10, "rollback_never_pinned"),
        "unpin": (13, "pin_not_found"),
    }[name]
    one_error_line(ctx(*line_of(used, name), cwd=used.folder), status, code)


def test_quiet_is_not_silent_about_errors(tmp_path: Path) -> None:
    one_error_line(ctx("--quiet", "status", cwd=tmp_path), 13, "store_not_found")


@pytest.mark.parametrize(
    ("args", "status", "code"),
    [
        (["status"], 13, "store_not_found"),
        (["cat", "refunds@1.2.3"], 2, "reference_not_an_object"),
        (["cat", "x"], 2, "reference_invalid"),
        (["status", "--nope"], 2, "usage"),
        (["xyzzy"], 2, "usage"),
        ([], 2, "usage"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_an_error_is_one_json_document_when_a_machine_reads(
    tmp_path: Path, args: list[str], status: int, code: str
) -> None:
    for line in ([*args, "--json"], ["--json", *args]):
        result = ctx(*line, cwd=tmp_path)
        assert (result.status, result.raw) == (status, b"")
        error = msgspec.json.decode(result.err)["error"]
        assert set(error) == {"code", "family", "message", "at", "hint", "details"}
        assert (error["code"], bool(error["hint"])) == (code, True)


@cases(
    "args",
    [
        ["pack", "log.json", "--parent", ""],
        ["log", "--parent", ""],
        ["log", "--since="],
        ["log", "--model", ""],
        ["log", "--tool="],
        ["log", "--unfinished", "--tool", ""],
        ["export", "cafe", "-o", ""],
        ["handoff", "list", "--query", ""],
    ],
    ids=" ".join,
)
def test_an_option_with_an_empty_value_is_not_taken_for_one_that_was_left_out(sample: Store, args: list[str]) -> None:
    assert "its value is empty" in one_error_line(ctx(*args, cwd=sample.folder), 2, "usage")


@cases("args", [["log", "--model"], ["log", "--tool"], ["search"], ["handoff", "read"]], ids=" ".join)
def test_a_text_that_is_not_utf_8_is_refused_in_one_line(sample: Store, args: list[str]) -> None:
    assert "not UTF-8" in one_error_line(ctx(*args, "a\udcff", cwd=sample.folder), 2, "usage")


@pytest.mark.parametrize("json", [[], ["--json"]], ids=["people", "machine"])
def test_an_error_repeats_no_secret_of_what_it_is_about(tmp_path: Path, json: list[str]) -> None:
    ctx("init", cwd=tmp_path)
    key, block = "AKIAABCDEFGHIJKLMNOP", f"-----BEGIN {'PRIVATE'} KEY-----"
    (tmp_path / "log.json").write_bytes(msgspec.json.encode({key: 1, block: 2, "created": f"at {key}"}))
    result = ctx("pack", "log.json", *json, cwd=tmp_path)
    assert result.status == 10
    assert "execution_log_invalid" in result.err
    assert "it looks like a secret" in result.err
    assert key not in result.err
    assert block not in result.err
