"""What a manifest refers to, however it was written; and what is no manifest."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.execution.references import ManifestRefs, find_references, is_entry_of
from contextplane.model.ids import Digest
from contextplane.model.json.errors import MAX_DEPTH
from tests.support.cases import cases


def digest(n: int) -> Digest:
    return Digest.of(b"%d" % n)


def ref(n: int) -> str:
    return str(digest(n))


def manifest(**fields: object) -> bytes:
    return msgspec.json.encode({"version": "0.1", "steps": [], **fields})


def read(**fields: object) -> ManifestRefs:
    refs = find_references(manifest(**fields))
    assert refs is not None
    return refs


def test_every_role_is_found_in_the_order_of_the_manifest() -> None:
    refs = read(
        parent=ref(9),
        outputs=[{"name": "a", "content_ref": ref(7)}, {"name": "b", "content_ref": ref(8)}],
        steps=[{"output_ref": ref(5)}, {"output_ref": ref(6)}],
        inputs=[{"content_ref": ref(3)}, {"content_ref": ref(4)}],
        prompts=[{"content_ref": ref(2), "role": "user"}],
        system_prompt=ref(1),
    )
    roles = ["system_prompt", "prompts", "inputs", "inputs", "steps", "steps", "outputs", "outputs", "parent"]
    assert refs.objects == tuple(zip(roles, map(digest, range(1, 10)), strict=True))
    assert (refs.mentions, refs.unreadable) == ((), ())


def test_a_reference_named_twice_in_one_role_stands_once_and_in_two_roles_twice() -> None:
    refs = read(inputs=[{"content_ref": ref(1)}, {"content_ref": ref(1)}], outputs=[{"content_ref": ref(1)}])
    assert refs.objects == (("inputs", digest(1)), ("outputs", digest(1)))


@pytest.mark.parametrize("nothing", ["", None])
def test_an_empty_reference_refers_to_nothing(nothing: str | None) -> None:
    refs = read(system_prompt=nothing, parent=nothing, steps=[{"output_ref": nothing}], inputs=[{}], outputs=[])
    assert refs == ManifestRefs(objects=(), mentions=(), unreadable=())


def test_a_digest_in_capitals_names_the_same_bytes() -> None:
    assert read(system_prompt=f"sha256:{digest(1).hex.upper()}").objects == (("system_prompt", digest(1)),)


@cases(
    "text",
    [
        "sha256:",
        "sha256:abc",
        ref(1).upper(),
        ref(1).removeprefix("sha256:"),
        f" {ref(1)}",
        f"{ref(1)}0",
        "ctx://" + "0" * 64,
        "the text itself",
    ],
)
def test_a_text_that_is_no_digest_is_unreadable_and_the_rest_is_found(text: str) -> None:
    refs = read(system_prompt=ref(1), inputs=[{"content_ref": text}], parent=ref(2))
    assert refs.objects == (("system_prompt", digest(1)), ("parent", digest(2)))
    assert refs.unreadable == (("inputs", repr(text)[:100]),)


@cases("value", [0, 7, 1.5, True, False, [], {}, [1], {"content_ref": "x"}, [[]], 2**200])
@cases("role", ["system_prompt", "prompts", "inputs", "steps", "outputs", "parent"])
def test_what_is_not_even_a_text_is_unreadable_and_never_an_accident(role: str, value: object) -> None:
    key = "output_ref" if role == "steps" else "content_ref"
    refs = read(**{role: value if role in {"system_prompt", "parent"} else [{key: value}]})
    assert refs.objects == ()
    assert [found_role for found_role, _ in refs.unreadable] == [role]


@cases("value", ["text", 7, {}, {"content_ref": ref(2)}, ["text"], [7], [[]]])
@cases("field", ["prompts", "inputs", "steps", "outputs"])
def test_a_list_of_another_shape_is_unreadable_and_the_rest_is_found(field: str, value: object) -> None:
    refs = read(**{field: value, "system_prompt": ref(1)})
    assert refs.objects == (("system_prompt", digest(1)),)
    assert [role for role, _ in refs.unreadable] == [field]


@cases("field", ["prompts", "inputs", "steps", "outputs"])
def test_a_list_that_is_not_there_is_empty(field: str) -> None:
    assert read(**{field: None}) == ManifestRefs(objects=(), mentions=(), unreadable=())


@cases("version", ["0.2", "", 0.1, None, [], {"a": 1}])
def test_a_manifest_of_another_version_is_not_wholly_known(version: object) -> None:
    refs = read(version=version, system_prompt=ref(1))
    assert refs.objects == (("system_prompt", digest(1)),)
    assert [role for role, _ in refs.unreadable] == ["version"]


@cases(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"{",
        b"null",
        b"7",
        b'"text"',
        b"[]",
        b"{}",
        b'{"version": "0.1"}',
        b'{"steps": []}',
        b"[" * 5000 + b"]" * 5000,
        b'{"version": "0.1", "steps": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"version": "0.1", "steps": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
        b'{"version": "0.1", "steps": []} and more',
        b'{"version": "0.1", "steps": NaN}',
        b'{"version": "\xff", "steps": []}',
    ],
    ids=range(16),
)
def test_other_bytes_are_no_manifest(data: bytes) -> None:
    assert find_references(data) is None


def test_digests_anywhere_else_are_mentions() -> None:
    refs = read(
        system_prompt=ref(1),
        graph={"content_ref": ref(2), ref(9): "a key is no value"},
        steps=[{"parameters": {"path": [ref(3), ref(1), "sha256:x", f"see {ref(8)}"]}, "output_ref": ""}],
        model={"identifier": "x"},
    )
    assert refs.objects == (("system_prompt", digest(1)),)
    assert set(refs.mentions) == {digest(2), digest(3)}
    assert refs.unreadable == ()


def test_a_long_unreadable_text_is_cut() -> None:
    assert read(parent="x" * 1000).unreadable == (("parent", "'" + "x" * 99),)


@given(st.binary(max_size=200) | st.from_regex(rb'\{"version":1,"steps":[\[\]{}":,a0-]{0,40}\}', fullmatch=True))
def test_no_bytes_at_all_make_it_fail(data: bytes) -> None:
    refs = find_references(data)
    assert refs is None or (refs.objects, refs.mentions) == ((), ())


# --- the registry entry -----------------------------------------------------------------------------------------------

ORIGINAL = manifest(hash="", system_prompt=ref(1))
NAME = Digest.of(ORIGINAL)


@cases(
    "entry",
    [
        str(NAME).encode(),
        f"{NAME}\n".encode(),
        ORIGINAL.replace(b'"hash":""', f'"hash":"{NAME}"'.encode()),
        msgspec.json.format(ORIGINAL.replace(b'"hash":""', f'"hash":"{NAME}"'.encode()), indent=2),
    ],
    ids=["bare", "bare-line", "copy", "pretty"],
)
def test_an_entry_is_a_copy_with_its_hash_or_the_bare_digest(entry: bytes) -> None:
    assert is_entry_of(entry, ORIGINAL, NAME)


@cases(
    "entry",
    [
        b"",
        ORIGINAL,
        b"{}",
        b"[]",
        b"\xff",
        b"[" * 5000,
        ref(5).encode(),
        ORIGINAL.replace(b'"hash":""', f'"hash":"{ref(5)}"'.encode()),
        ORIGINAL.replace(b'"hash":""', f'"hash":"{NAME}","more":1'.encode()),
        ORIGINAL.replace(b'"hash":""', f'"hash":"{NAME}"'.encode()).replace(b"0.1", b"0.2"),
    ],
    ids=["empty", "no-hash", "object", "list", "not-text", "deep", "another", "other-hash", "more", "changed"],
)
def test_any_other_entry_is_no_copy(entry: bytes) -> None:
    assert not is_entry_of(entry, ORIGINAL, NAME)


@cases("original", [b"", b"[]", b"7", b"\xff"])
def test_of_what_is_no_manifest_there_is_no_copy(original: bytes) -> None:
    value: Any = {"hash": str(Digest.of(original))}
    assert not is_entry_of(msgspec.json.encode(value), original, Digest.of(original))
