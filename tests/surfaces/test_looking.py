"""`ctx show`, `cat`, `log` and `search`, as used to find a run."""

import json
from pathlib import Path

import pytest

from contextplane.model.ids import Digest
from contextplane.testing.proofs import proves
from tests.support.reference_store import ReferenceStore
from tests.surfaces.commands import ctx
from tests.surfaces.runs import LOG, packed, place, refs


@pytest.fixture
def store(tmp_path: Path) -> Path:
    assert ctx("init", cwd=tmp_path).status == 0
    return tmp_path


@proves("execution-pack:inspect:ctx-show-hash")
def test_show_tells_what_a_run_consists_of(store: Path) -> None:
    digits = packed(store)
    screen = ctx("show", digits[:8], cwd=store).out
    for line in (
        "Model:     model-x",
        "order.json (11 B)",
        "[0] tool_call read_file (deterministic)",
        "out/report.md (11 B)",
    ):
        assert line in screen
    assert "[1] reasoning (non-deterministic) +1.500s" in screen
    assert "Refund order 881" not in screen
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
    assert "[tampered with]" in listed.out


def test_a_tampered_or_missing_content_is_marked(store: Path) -> None:
    digits = packed(store)
    report, prompt = Digest.of(b"# Refunded\n").hex, Digest.of(b"You are careful.").hex
    place(store, report).chmod(0o644)
    place(store, report).write_bytes(b"# REFUNDED\n")
    place(store, prompt).unlink()
    plain = ctx("show", digits, cwd=store).out
    assert "  out/report.md (tampered with)\n" in plain
    assert f"System prompt: {prompt[:12]} (missing)\n" in plain
    result = ctx("show", digits, "--content", cwd=store)
    assert result.status == 0
    assert "  [tampered with]\n" in result.out
    assert "  [missing]\n" in result.out


@pytest.mark.parametrize(
    ("harm", "status", "code", "damage"),
    [
        ("change", 11, "object_corrupt", "was tampered with"),
        ("remove", 13, "object_not_found", "is missing"),
        ("obstruct", 1, "object_obstructed", "was tampered with"),
    ],
)
def test_a_content_that_is_not_whole_is_told_by_the_part_that_was_asked_for(
    store: Path, harm: str, status: int, code: str, damage: str
) -> None:
    digits, digest = packed(store), Digest.of(b"# Refunded\n")
    path = place(store, digest.hex)
    path.chmod(0o644)
    path.write_bytes(b"# REFUNDED\n")
    if harm != "change":
        path.unlink()
    if harm == "obstruct":
        path.mkdir()
    ref = f"{digits[:4]}:outputs/out/report.md"
    result = ctx("cat", ref, cwd=store)
    assert (result.status, result.raw) == (status, b"")
    assert result.err.startswith(f"ctx: {code}: ctx://{digits[:12]}:outputs/out/report.md: its content {damage} (")
    assert "'ctx fsck' lists all damage" in result.err
    assert str(store) not in result.err
    error = json.loads(ctx("cat", ref, "--json", cwd=store).err)["error"]
    assert (error["code"], error["details"]["digest"]) == (code, str(digest))


def test_an_object_that_was_asked_for_by_its_digest_may_just_be_none(store: Path) -> None:
    digits = packed(store)
    for ref in (f"sha256:{'0' * 64}", f"sha256:{'0' * 64}:steps/0"):
        gone = ctx("cat", ref, cwd=store)
        assert (gone.status, "no such object in this store (check the digits" in gone.err) == (13, True)
    digest = Digest.of(b"# Refunded\n")
    place(store, digest.hex).chmod(0o644)
    place(store, digest.hex).write_bytes(b"")
    changed = ctx("cat", str(digest), cwd=store)
    assert (changed.status, f"object_corrupt: {digest}: this object was tampered with (" in changed.err) == (11, True)
    assert digits not in changed.err


def test_a_list_says_how_much_of_it_is_listed_and_when_nothing_fits(store: Path) -> None:
    assert ctx("log", "--model", "model-x", cwd=store).out == "No execution packs.\n"
    packed(store)
    packed(store, system_prompt="You are bold.")
    for option in (("--model", "none"), ("--tool", "none"), ("--since", "2030-01-01")):
        assert ctx("log", *option, cwd=store).out == "None of 2 execution packs matches.\n"
    assert ctx("log", "--limit", "1", cwd=store).err == ("ctx: 1 pack listed, there are more: use --limit N or --all\n")
    assert ctx("search", "--limit", "1", "Refund", cwd=store).err == (
        "ctx: 1 place listed, there are more: use --limit N or --all\n"
    )


def test_the_log_of_a_run_is_that_run_and_what_it_was_forked_from(store: Path) -> None:
    first = packed(store)
    (store / "log.json").write_text(json.dumps({**LOG, "system_prompt": "You are bold."}))
    second = ctx("pack", "log.json", "--parent", first, cwd=store).out.strip()
    (store / "log.json").write_text(json.dumps({**LOG, "system_prompt": "You are brave."}))
    third = ctx("pack", "log.json", "--parent", second, cwd=store).out.strip().removeprefix("ctx://")
    line = [third, second.removeprefix("ctx://"), first]
    packed(store, system_prompt="Nobody's fork")
    result = ctx("log", third[:6], cwd=store)
    assert (result.status, result.err, [line[:12] for line in result.out.splitlines()]) == (
        0,
        "",
        [digits[:12] for digits in line],
    )
    assert refs(ctx("log", second, "--json", cwd=store)) == line[1:]
    cut = ctx("log", third, "--limit", "2", cwd=store)
    assert ([line[:12] for line in cut.out.splitlines()], "2 packs listed" in cut.err) == (
        [digits[:12] for digits in line[:2]],
        True,
    )
    assert json.loads(ctx("log", third, "--limit", "2", "--json", cwd=store).out)["more"] is True
    assert refs(ctx("log", third, "--all", "--json", cwd=store)) == line
    for option in ("--model", "--tool", "--since", "--parent"):
        assert ctx("log", third, option, "x", cwd=store).status == 2
    assert ctx("log", third, "--unfinished", cwd=store).status == 2
    assert ctx("log", "0" * 64, cwd=store).status == 13


def test_a_line_of_forks_that_leads_out_of_the_store_says_where_it_goes_on(tmp_path: Path) -> None:
    other, absent = ReferenceStore(tmp_path), "ab" * 32
    pack = other.pack(outputs={}, parent=absent)
    assert ctx("init", cwd=tmp_path).status == 0
    result = ctx("log", pack, cwd=tmp_path)
    assert result.out.startswith(pack[:12])
    assert result.err == f"ctx: the history continues with ctx://{absent[:12]}, which is not in this store\n"
    answer = json.loads(ctx("log", pack, "--json", cwd=tmp_path).out)
    assert (answer["absent_parent"], answer["more"]) == (f"ctx://{absent}", False)


def test_what_is_wrong_with_a_manifest_is_listed_with_all_its_places(tmp_path: Path) -> None:
    other = ReferenceStore(tmp_path)
    pack = other.blob(b'{"version":"0.1","steps":[]}').removeprefix("sha256:")
    (other.path / "packs" / pack).write_text(f"sha256:{pack}", encoding="ascii")
    assert ctx("init", cwd=tmp_path).status == 0
    message = "not a manifest: /created: is missing; /model: is missing; /system_prompt: is missing; "
    assert f"  [{message}" in ctx("log", cwd=tmp_path).out
    assert f"manifest sha256:{pack[:12]}  {message}" in ctx("verify", pack, cwd=tmp_path).out
    assert f"ctx://{pack}: {message}" in ctx("show", pack, cwd=tmp_path).err


@pytest.mark.parametrize("verb", ["show", "log", "verify", "replay"])
def test_a_recording_is_no_pack_and_is_told_how_to_become_one(store: Path, verb: str) -> None:
    result = ctx(verb, "rec_0123456789abcdef", cwd=store)
    assert (result.status, "'ctx finalize rec_0123456789abcdef' makes one of it" in result.err) == (2, True)


def test_words_at_the_edge_of_a_piece_are_found(store: Path) -> None:
    packed(store, system_prompt="w " * 8190 + "boundaryword and more")
    assert ":system_prompt" in ctx("search", "boundaryword", cwd=store).out


@pytest.mark.parametrize("part", ["steps/" + "9" * 5000, "prompts/\u0661"])
def test_a_number_that_is_none_is_no_part(store: Path, part: str) -> None:
    assert ctx("cat", f"{packed(store)}:{part}", cwd=store).status == 13
