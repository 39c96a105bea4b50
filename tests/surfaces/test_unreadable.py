"""An unreadable object is neither tampered with nor missing: every verb says that it is unreadable."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.surfaces.commands import NOBODY, Result, ctx, ctx_as_nobody, is_root, public_folder
from tests.surfaces.runs import manifest, packed, place


@pytest.fixture
def store() -> Iterator[Path]:
    with public_folder() as folder:
        assert ctx("init", cwd=folder).status == 0
        yield folder


def close(store: Path, digits: str) -> None:
    """Make one object unreadable, and give the store to user `nobody` if we are root."""
    place(store, digits).chmod(0o000)
    if is_root():
        for path in [store, *store.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)


def says_neither(result: Result, but: str = "unreadable") -> str:
    text = result.out + result.err
    assert "tampered" not in text
    assert "corrupt" not in text
    assert "missing" not in text.replace("0 missing", "")
    assert but in text
    return text


def test_a_content_that_cannot_be_read_is_unchecked(store: Path) -> None:
    pack = packed(store)
    other = packed(store, outputs=[{"name": "out/report.md", "content": "# Paid"}])
    output = manifest(store, pack)["outputs"][0]["content_ref"].removeprefix("sha256:")
    close(store, output)
    verdict = ctx_as_nobody("verify", pack, cwd=store)
    assert verdict.status == 10
    assert "Permission denied" in says_neither(verdict)
    assert json.loads(ctx_as_nobody("verify", pack, "--json", cwd=store).raw)["answer"] == "unchecked"
    assert "  out/report.md (unreadable)" in says_neither(ctx_as_nobody("show", pack, cwd=store))
    says_neither(ctx_as_nobody("cat", f"{pack}:outputs/out/report.md", cwd=store))
    says_neither(ctx_as_nobody("diff", pack, other, cwd=store))
    replayed = ctx_as_nobody("replay", pack, "--recorded", cwd=store)
    assert replayed.status == 1
    says_neither(replayed)


def test_a_manifest_that_cannot_be_read_is_marked_as_that(store: Path) -> None:
    pack = packed(store)
    close(store, pack)
    assert ctx_as_nobody("verify", pack, cwd=store).status == 10
    for verb in (("log",), ("search", "Refunded"), ("verify", pack)):
        says_neither(ctx_as_nobody(*verb, cwd=store))
    result = ctx_as_nobody("show", pack, cwd=store)
    says_neither(result)
    assert (result.status, result.err.split(":")[1].strip()) == (1, "storage_failed")


def test_what_cannot_be_read_is_kept_by_a_collector_and_named(store: Path) -> None:
    pack = packed(store)
    (store / ".ctx" / "packs" / pack).unlink()
    assert ctx("fsck", "--rebuild", cwd=store).status == 0
    close(store, first_output(store, pack))
    result = ctx_as_nobody("gc", "--grace", "0s", "--dry-run", cwd=store)
    assert result.status == 0
    says_neither(result, but="unreadable")


def first_output(store: Path, pack: str) -> str:
    """The digits of the first output of a pack."""
    fields = json.loads(place(store, pack).read_bytes())
    return str(fields["outputs"][0]["content_ref"]).removeprefix("sha256:")
