"""Checking a pack notices whatever is not as it was, and tells that apart from what could not be checked."""

from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.audit.verify import (
    ExpectedOutput,
    PackVerdict,
    VerificationProblem,
    expected_output,
    gravest_answer,
    verify_pack,
)
from contextplane.model.execution.manifest import Environment, Manifest, Model, Output, manifest_bytes
from contextplane.model.ids import Digest
from tests.support.cases import cases
from tests.unit.store.world import World, passing_world, world_in


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as world:
        yield world


def verdict(world: World, digest: Digest) -> PackVerdict:
    return verify_pack(digest, world.platform.entries, world.platform.objects, seen=lambda _size, _count: None)


def verify_answers(world: World, digest: Digest) -> tuple[str, list[tuple[str, str]]]:
    """The answer, and each trouble's own answer with the digest or the role that it names last."""
    got = verdict(world, digest)
    return got.answer, [(problem.answer, problem.what.split()[-1]) for problem in got.problems]


def struct_order(world: World, parent: Digest, *, output: bytes = b"forked") -> bytes:
    """A fork as the reference program finalizes it: fields in the order of its structs, not canonical."""
    fields = {
        "version": "0.1",
        "hash": "",
        "created": "2026-05-04T09:31:42Z",
        "model": {"identifier": "model-y", "parameters": None},
        "system_prompt": world.other.blob(b"You are careful."),
        "prompts": None,
        "inputs": None,
        "steps": [],
        "outputs": [{"name": "report.md", "content_ref": world.other.blob(output)}],
        "environment": {"os": "linux", "runtime": "go1.23.4", "tool_versions": None},
        "parent": str(parent),
    }
    return msgspec.json.encode(fields)


def test_a_whole_pack_is_verified_with_every_object_it_refers_to_counted_once(world: World) -> None:
    digest = world.pack(b"one", b"two", b"one")
    got = verdict(world, digest)
    # The manifest, the system prompt, a prompt, an input, two outputs; the only step had no output.
    assert (got.answer, got.objects, got.parents, got.problems) == ("verified", 6, (), ())
    assert got.manifest is not None


def test_the_gravest_problem_is_the_answer_wherever_it_stands() -> None:
    modified = VerificationProblem(answer="modified", what="a", why="b")
    unchecked = VerificationProblem(answer="unchecked", what="c", why="d")
    unknown = VerificationProblem(answer="unknown", what="e", why="f")
    assert {gravest_answer(order) for order in permutations([modified, unchecked, unknown])} == {"modified"}
    assert {gravest_answer(order) for order in permutations([unchecked, unknown])} == {"unknown"}
    assert (gravest_answer([unchecked]), gravest_answer([])) == ("unchecked", "verified")


def test_the_line_of_parents_is_walked_to_its_end(world: World) -> None:
    first = world.pack(b"one")
    second = world.pack(b"two", parent=first.hex)
    third = world.pack(b"three", parent=second.hex)
    assert verdict(world, third).parents == (second, first)
    assert verdict(world, third).answer == "verified"


def test_a_fork_that_the_reference_finalized_uncanonically_is_verified(world: World) -> None:
    parent = world.pack(b"one")
    fork = world.register(struct_order(world, parent))
    got = verdict(world, fork)
    assert (got.answer, got.parents) == ("verified", (parent,))


PARTS: dict[str, Callable[[Digest, Digest], Digest]] = {
    "manifest": lambda fork, _parent: fork,
    "parent": lambda _fork, parent: parent,
    "system_prompt": lambda _fork, _parent: Digest.of(b"You are careful."),
    "output": lambda _fork, _parent: Digest.of(b"two"),
}


@settings(max_examples=25, deadline=None)
@given(part=st.sampled_from(sorted(PARTS)), data=st.data())
def test_one_changed_byte_anywhere_is_modified_and_named(part: str, data: st.DataObject) -> None:
    with passing_world() as world:
        parent = world.pack(b"one")
        fork = world.pack(b"two", parent=parent.hex)
        target = PARTS[part](fork, parent)
        whole = bytearray(world.place(target).read_bytes())
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] ^= data.draw(st.integers(1, 255))
        world.damage(target, bytes(whole))
        answer, problems = verify_answers(world, fork)
        assert answer == "modified"
        assert ("modified", str(target)) in problems


@pytest.mark.parametrize("cut", [b"", b"tw", b"two and more"], ids=["emptied", "cut", "longer"])
def test_a_blob_of_another_length_is_modified(world: World, cut: bytes) -> None:
    digest = world.pack(b"two")
    world.damage(Digest.of(b"two"), cut)
    assert verify_answers(world, digest) == ("modified", [("modified", str(Digest.of(b"two")))])


def test_a_missing_blob_and_a_missing_parent_are_unchecked_and_both_told(world: World) -> None:
    parent = world.pack(b"one")
    fork = world.pack(b"two", parent=parent.hex)
    world.place(parent).unlink()
    world.place(Digest.of(b"two")).unlink()
    assert verify_answers(world, fork) == (
        "unchecked",
        [("unchecked", str(Digest.of(b"two"))), ("unchecked", str(parent))],
    )


def test_damage_outweighs_what_is_missing(world: World) -> None:
    digest = world.pack(b"one", b"two")
    world.place(Digest.of(b"one")).unlink()
    world.damage(Digest.of(b"two"), b"other")
    assert verdict(world, digest).answer == "modified"


def test_a_pack_without_its_manifest_is_unknown(world: World) -> None:
    digest = world.pack(b"one")
    world.place(digest).unlink()
    assert verify_answers(world, digest) == ("unknown", [("unknown", str(digest))])


def test_bytes_that_are_no_manifest_are_unchecked(world: World) -> None:
    assert verdict(world, world.register(b"not a manifest")).answer == "unchecked"


def test_a_reference_that_is_none_is_unchecked_and_told_once(world: World) -> None:
    manifest = msgspec.json.decode(struct_order(world, Digest.of(b"nobody")))
    manifest |= {"system_prompt": "sha256:short", "parent": "somebody"}
    answer, problems = verify_answers(world, world.register(msgspec.json.encode(manifest)))
    assert (answer, len(problems)) == ("unchecked", 2)


@pytest.mark.parametrize(
    ("entry", "answer"),
    [(b"sha256:" + b"0" * 64, "modified"), (b"{}", "modified"), (b"", "modified"), (None, "unchecked")],
    ids=["another-hash", "another-manifest", "empty", "gone"],
)
def test_the_registry_entry_is_compared(world: World, entry: bytes | None, answer: str) -> None:
    digest = world.pack(b"one")
    place = world.path / "packs" / digest.hex
    if entry is None:
        place.unlink()
    else:
        place.write_bytes(entry)
    assert verify_answers(world, digest) == (answer, [(answer, f"packs/{digest.hex}")])


# --- what a manifest says besides ------------------------------------------------------------------------------------


def changed(world: World, change: Callable[[dict[str, Any]], object]) -> bytes:
    manifest = msgspec.json.decode(struct_order(world, Digest.of(b"x")))
    del manifest["parent"]
    change(manifest)
    return msgspec.json.encode(manifest)


@pytest.mark.parametrize(
    ("size", "answer"),
    [
        (6, "verified"),
        (6.0, "verified"),
        (None, "verified"),
        (99999, "unchecked"),
        (0, "unchecked"),
        ("6", "unchecked"),
    ],
)
def test_the_size_that_a_manifest_gives_an_input_is_held_against_its_content(
    world: World, size: object, answer: str
) -> None:
    entry = {"name": "in", "content_ref": world.other.blob(b"sixsix"), "size": size}
    digest = world.register(changed(world, lambda value: value.update(inputs=[entry])))
    assert verdict(world, digest).answer == answer


def test_an_input_of_no_told_size_is_verified(world: World) -> None:
    entry = {"name": "in", "content_ref": world.other.blob(b"sixsix")}
    assert (
        verdict(world, world.register(changed(world, lambda manifest: manifest.update(inputs=[entry])))).answer
        == "verified"
    )


@pytest.mark.parametrize("inside", [b'"version":"0.1",', b'"os":"linux",'], ids=["at the top", "deeper"])
def test_a_key_that_stands_twice_is_told(world: World, inside: bytes) -> None:
    raw = changed(world, dict)
    assert verdict(world, world.register(raw)).answer == "verified"
    got = verdict(world, world.register(raw.replace(inside, inside * 2)))
    assert (got.answer, len(got.problems)) == ("unchecked", 1)
    assert "readers differ" in got.problems[0].why


UNKNOWN: dict[str, Callable[[dict[str, Any], str], object]] = {
    "at the top": lambda value, ref: value.update(attachments=[{"content_ref": ref}]),
    "in an entry": lambda value, ref: value["outputs"][0].update(thumbnail_ref=ref),
    "in the model": lambda value, ref: value["model"].update(card={"at": ref.upper().replace("SHA", "sha")}),
}


@pytest.mark.parametrize("where", UNKNOWN)
def test_a_reference_in_a_field_that_is_not_known_is_looked_at_too(world: World, where: str) -> None:
    ref = world.other.blob(b"attached")
    digest = world.register(changed(world, lambda value: UNKNOWN[where](value, ref)))
    assert verdict(world, digest).answer == "verified"
    world.damage(Digest.of(b"attached"), b"another")
    assert verify_answers(world, digest) == ("modified", [("modified", ref)])
    world.place(Digest.of(b"attached")).unlink()
    assert verify_answers(world, digest) == ("unchecked", [("unchecked", ref)])


def test_a_digest_in_a_free_field_may_name_anything(world: World) -> None:
    step = {"type": "t", "tool": "t", "parameters": {"commit": str(Digest.of(b"never here"))}}
    assert (
        verdict(world, world.register(changed(world, lambda manifest: manifest.update(steps=[step])))).answer
        == "verified"
    )


# --- which output a file is -------------------------------------------------------------------------------------------

A, B = Digest.of(b"a"), Digest.of(b"b")


def of(*outputs: tuple[str, Digest | str]) -> Manifest:
    listed = tuple(Output(name=name, content_ref=str(digest)) for name, digest in outputs)
    return Manifest(
        created="", model=Model(), system_prompt=str(A), environment=Environment(), outputs=listed, parent=""
    )


@cases(
    ("manifest", "path", "expected"),
    [
        # The log's folder may not have been the workspace, so a path alone does not decide between two.
        (of(("x.md", A), ("out/x.md", B)), "out/x.md", "2 outputs of the pack are named x.md: out/x.md, x.md"),
        (of(("x.md", A), ("out/x.md", A)), "out/x.md", ExpectedOutput(name="out/x.md", digest=A)),
        (of(("./out//x.md", A)), "out/x.md", ExpectedOutput(name="./out//x.md", digest=A)),
        (of(("out/x.md", A)), "elsewhere/x.md", ExpectedOutput(name="out/x.md", digest=A)),
        (of(("x.md", A), ("x.md", B)), "x.md", ExpectedOutput(name="x.md", digest=B)),
        (of(("a/x.md", A), ("b/x.md", B)), "x.md", "2 outputs of the pack are named x.md: a/x.md, b/x.md"),
        (of(("a/x.md", A)), "y.md", "the pack has no output named y.md"),
        (of(("x.md", "sha256:short")), "x.md", "the hash of x.md is not understood"),
        (of(), "x.md", "the pack has no output named x.md"),
    ],
)
def test_a_file_is_the_output_of_its_path_or_the_only_one_of_its_name(
    manifest: Manifest, path: str, expected: ExpectedOutput | str
) -> None:
    assert expected_output(manifest, path) == expected


def test_a_manifest_of_ours_is_verified_as_well(world: World) -> None:
    world.other.blob(b"a")
    digest = world.register(manifest_bytes(of(("x.md", A))))
    assert verdict(world, digest).answer == "verified"


@cases(
    ("path", "named"),
    [("a/x.md", "b/x.md"), ("sub/a/x.md", "b/x.md"), ("a/x.md", "x.md"), ("sub/b/x.md", "./x.md"), ("x.md", "a/x.md")],
)
def test_a_sidecar_does_not_make_a_file_another_output_than_the_one_whose_place_it_has(path: str, named: str) -> None:
    manifest = of(("a/x.md", A), ("b/x.md", B), ("x.md", Digest.of(b"c")))
    reason = expected_output(manifest, path, named)
    assert isinstance(reason, str)
    assert "and it lies where" in reason
    same = of(("a/x.md", A), ("b/x.md", A), ("x.md", A))
    assert isinstance(expected_output(same, path, named), ExpectedOutput)


def test_the_output_that_a_sidecar_names_decides() -> None:
    manifest = of(("x.md", A), ("out/x.md", B))
    assert expected_output(manifest, "sub/x.md", "x.md") == ExpectedOutput(name="x.md", digest=A)
    assert expected_output(manifest, "elsewhere.d/x.md", "x.md") == ExpectedOutput(name="x.md", digest=A)
    assert isinstance(expected_output(manifest, "x.md", "none.md"), str)
