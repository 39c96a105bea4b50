"""A draft of a damaged run: the damage is named, with the way out."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from contextplane.app.execution.fork import DraftDamaged, finalize, fork
from contextplane.app.execution.pack import pack_log
from contextplane.app.platform import Platform, open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from contextplane.model.problems import DocumentInvalid
from contextplane.record.draft import InvalidDraft
from tests.surfaces.artifacts import damage, place
from tests.surfaces.commands import ctx

LOG = msgspec.json.encode(
    {
        "model": {"identifier": "m-1"},
        "system_prompt": "You are careful.",
        "inputs": [{"name": "order.json", "content": "881"}],
        "environment": {"os": "linux", "runtime": "python3.11"},
    }
)
ORDER = Digest.of(b"881")
HEALS = "packing the same log again or importing the run heals it; 'ctx fsck' lists all damage"


class Forked:
    """A run in a store, and an edited draft of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        assert ctx("init", cwd=folder).status == 0
        with open_platform(Settings(cwd=str(folder))) as platform:
            self.run = pack_log(platform, LOG, root=str(folder)).digest
            self.draft = Path(fork(platform, self.run))
        self.write(b"m-1", b"m-2")

    @property
    def name(self) -> str:
        return f"ctx://{self.run.hex[:12]}"

    def write(self, was: bytes, now: bytes) -> None:
        self.draft.write_bytes(self.draft.read_bytes().replace(was, now))

    def refused(self, platform: Platform) -> DocumentInvalid:
        with pytest.raises(DocumentInvalid) as caught:
            finalize(platform, str(self.draft))
        return caught.value


@pytest.fixture
def forked(tmp_path: Path) -> Forked:
    return Forked(tmp_path)


def test_a_content_that_was_tampered_with_ends_as_untrusted_and_is_named_by_fork_as_well(forked: Forked) -> None:
    damage(place(forked.folder, ORDER))
    result = ctx("finalize", str(forked.draft), cwd=forked.folder)
    at = f"{forked.draft}#/inputs/0/content_ref"
    problem = f"{forked.name}:inputs/order.json was tampered with"
    assert result.err == f"ctx: draft_damaged: {at}: {problem} ({HEALS})\n"
    assert (result.status, result.raw, forked.draft.exists()) == (11, b"", True)
    again = ctx("fork", forked.run.hex, cwd=forked.folder)
    assert (again.status, again.err) == (0, f"ctx: {problem}: a draft that refers to it cannot be finalized\n")
    answer = msgspec.json.decode(ctx("fork", forked.run.hex, "--json", cwd=forked.folder).raw)
    assert answer["damaged"] == [{"part": "inputs/order.json", "damage": "tampered"}]


def a_content(_forked: Forked) -> Digest:
    return ORDER


def the_parent(forked: Forked) -> Digest:
    return forked.run


@pytest.mark.parametrize(
    ("what", "problem"),
    [(a_content, ":inputs/order.json is missing"), (the_parent, " is missing")],
)
def test_what_is_missing_and_was_here_has_the_same_way_out(
    forked: Forked, what: Callable[[Forked], Digest], problem: str
) -> None:
    place(forked.folder, what(forked)).unlink()
    with open_platform(Settings(cwd=str(forked.folder))) as platform:
        error = forked.refused(platform)
        assert (error.code, error.family, error.hint) == ("draft_invalid", "refused", HEALS)
        assert f"{forked.name}{problem}" in error.message
        pack_log(platform, LOG, root=str(forked.folder))
        assert finalize(platform, str(forked.draft)).new


def test_what_never_was_here_is_a_mistake_of_the_draft(forked: Forked) -> None:
    nowhere = Digest.of(b"never stored")
    forked.write(str(ORDER).encode(), str(nowhere).encode())
    with open_platform(Settings(cwd=str(forked.folder))) as platform:
        error = forked.refused(platform)
        assert (error.code, error.message) == ("draft_invalid", f"missing in this store: {nowhere}")
        assert error.hint == InvalidDraft.way_out


def test_damage_is_told_with_what_else_is_wrong(forked: Forked) -> None:
    damage(place(forked.folder, ORDER))
    nowhere = Digest.of(b"never stored")
    forked.write(str(Digest.of(b"You are careful.")).encode(), str(nowhere).encode())
    with open_platform(Settings(cwd=str(forked.folder))) as platform:
        error = forked.refused(platform)
        assert isinstance(error, DraftDamaged)
        assert [problem.at for problem in error.problems] == ["/system_prompt", "/inputs/0/content_ref"]
        forked.write(b'"m-2"', b"7")
        error = forked.refused(platform)
        assert (error.code, error.hint) == ("draft_invalid", InvalidDraft.way_out)
        assert [problem.at for problem in error.problems] == [
            "/model/identifier",
            "/system_prompt",
            "/inputs/0/content_ref",
        ]
