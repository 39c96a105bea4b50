"""`ctx import` refuses anything but a complete, truthful archive, and nothing of it is visible."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.adapters.files.archive import archive_header
from contextplane.app.execution.archive import import_packs
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.archive import HEADER_NAME, Header, entry_name, header_bytes, object_name
from contextplane.model.execution.references import MAX_MANIFEST_BYTES
from contextplane.model.ids import Digest
from tests.support.cases import cases
from tests.surfaces.archives import ABSENT, Pair, archive, contents, manifest, member, refused
from tests.surfaces.commands import ctx


def test_a_changed_byte_is_named_and_nothing_of_the_archive_is_visible(pair: Pair) -> None:
    assert pair.data.count(b"second") == 1
    error = refused(pair.take(pair.data.replace(b"second", b"Second")), 11, "archive_corrupt")
    assert object_name(Digest.of(b"second")) in error
    assert contents(pair.there) == {}
    assert list(pair.there.glob(".ctx/objects/.staging/*")) == []
    assert pair.take(pair.data).status == 0


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_byte_of_an_archive_can_be_another(pair_once: Pair, data: st.DataObject) -> None:
    whole = pair_once.data
    at = data.draw(st.integers(0, len(whole) - 1))
    broken = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    file = pair_once.file.with_name("broken.tar")
    file.write_bytes(broken)
    with open_platform(Settings(cwd=str(pair_once.there))) as platform, pytest.raises(ContextPlaneError):
        import_packs(platform, str(file))
    assert contents(pair_once.there) == {}


def test_a_compressed_truncated_or_doubled_archive_is_refused(pair_once: Pair) -> None:
    assert "decompress it first" in refused(pair_once.take(gzip.compress(pair_once.data)), 10, "archive_invalid")
    assert "truncated" in refused(pair_once.take(pair_once.data[:-1024]), 10, "archive_invalid")
    assert "more after its end" in refused(pair_once.take(pair_once.data * 2), 10, "archive_invalid")
    refused(pair_once.take(b""), 10, "archive_invalid")
    refused(ctx("import", "absent.tar", cwd=pair_once.there), 13, "source_unreadable")
    assert "is a folder, not an archive" in refused(ctx("import", ".", cwd=pair_once.there), 13, "source_unreadable")
    assert contents(pair_once.there) == {}


LONE = manifest()
CHILD = manifest(parent=str(Digest.of(LONE)))
NEEDY = manifest(system_prompt=str(Digest.of(b"prompt")))
NO_MODEL = LONE.replace(b'"model":{},', b"")
NO_INDEX = manifest(steps=[{"index": 0.5}])


def _header(*roots: bytes, parents: tuple[bytes, ...] = ()) -> Header:
    return Header(roots=tuple(sorted(map(Digest.of, roots))), parents=tuple(map(Digest.of, parents)))


@cases(
    ("data", "code"),
    [
        (archive(_header(LONE)), "archive_invalid"),
        (archive(_header(LONE), LONE, b"stowaway"), "archive_invalid"),
        (archive(_header(LONE), LONE, entries=[]), "archive_invalid"),
        (archive(_header(LONE), LONE, CHILD, entries=sorted(map(Digest.of, (LONE, CHILD)))), "archive_invalid"),
        (archive(_header(LONE, parents=(CHILD,)), LONE, CHILD), "archive_invalid"),
        (archive(_header(CHILD), LONE, CHILD), "archive_invalid"),
        (archive(_header(NEEDY), NEEDY), "execution_pack_incomplete"),
        (archive(_header(b"{}"), b"{}"), "execution_pack_not_understood"),
        (archive(_header(NO_MODEL), NO_MODEL), "execution_pack_not_understood"),
        (archive(_header(NO_INDEX), NO_INDEX), "execution_pack_not_understood"),
        (
            archive(_header(LONE), LONE, entries=[]).removesuffix(bytes(1024))
            + member(entry_name(Digest.of(LONE)), str(ABSENT).encode())
            + bytes(1024),
            "archive_invalid",
        ),
    ],
    ids=[
        "no-manifest",
        "stowaway",
        "no-entry",
        "an-entry-too-many",
        "a-parent-of-nobody",
        "a-parent-that-the-header-hides",
        "a-content-is-missing",
        "not-a-manifest",
        "a-manifest-without-a-model",
        "a-step-without-an-index",
        "an-entry-of-another",
    ],
)
def test_an_archive_that_says_otherwise_than_it_holds_is_refused(pair_once: Pair, data: bytes, code: str) -> None:
    refused(pair_once.take(data), 10, code)
    assert contents(pair_once.there) == {}


def test_a_manifest_beyond_its_limit_is_refused_before_it_is_read(pair_once: Pair) -> None:
    first = member(HEADER_NAME, header_bytes(_header(LONE)))
    large = archive_header(object_name(Digest.of(LONE)), MAX_MANIFEST_BYTES + 1)
    assert "larger than any manifest" in refused(pair_once.take(first + large), 10, "archive_invalid")


def test_a_pack_is_whole_when_the_store_has_what_the_archive_has_not(pair: Pair) -> None:
    with open_platform(Settings(cwd=str(pair.there))) as platform:
        prompt = platform.objects.put(b"prompt")
    assert pair.take(archive(_header(NEEDY), NEEDY)).status == 0
    place = pair.there / ".ctx" / "objects" / prompt.hex[:2] / prompt.hex[2:]
    place.chmod(0o644)
    place.write_bytes(b"Prompt")
    refused(pair.take(archive(_header(NEEDY), NEEDY)), 10, "execution_pack_incomplete")
    assert pair.take(archive(_header(NEEDY), NEEDY, b"prompt")).status == 0
    assert place.read_bytes() == b"prompt"


@cases("name", ["../../escaped", "/escaped", "objects/../../../escaped", "objects/aa/" + "b" * 63])
def test_no_name_in_an_archive_leads_anywhere(pair_once: Pair, name: str) -> None:
    first = member(HEADER_NAME, header_bytes(_header(LONE)))
    refused(pair_once.take(first + member(name, b"x") + bytes(1024)), 10, "archive_invalid")
    assert not list(pair_once.folder.rglob("escaped"))


@pytest.mark.parametrize("magic", [b"\x1f\x8b\x08", b"BZh9", b"\x28\xb5\x2f\xfd"])
def test_nothing_is_decompressed_whatever_it_would_unfold_to(pair_once: Pair, magic: bytes) -> None:
    assert "decompress it first" in refused(pair_once.take(magic + bytes(2000)), 10, "archive_invalid")


def test_a_member_that_claims_a_tebibyte_is_refused_where_its_bytes_end(pair_once: Pair) -> None:
    first = member(HEADER_NAME, header_bytes(_header(LONE)))
    claim = archive_header(object_name(ABSENT), 1 << 40)
    assert "truncated" in refused(pair_once.take(first + claim + b"x" * 5000), 10, "archive_invalid")
    assert list(pair_once.there.glob(".ctx/objects/.staging/*")) == []
