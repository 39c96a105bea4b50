"""Every verb names a tampered manifest as tampered with, never as not found."""

from pathlib import Path

import msgspec
import pytest

from contextplane.app.execution.archive import export_packs
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from tests.support.cases import cases
from tests.surfaces.artifacts import MODIFIED, UNCHECKED, damage, log, packed, place, put_out, sidecars
from tests.surfaces.commands import ctx


class Tampered:
    """A store with a tampered pack, a fork of it, a draft of it, and an output file of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run = packed(folder, "report.md")
        put_out(folder, "report.md")
        sidecars(folder, run)
        self.pack = f"ctx://{run.digest.hex}"
        self.manifest = place(folder, run.digest)
        (folder / "log.json").write_bytes(log("report.md", "more.md"))
        self.child = ctx("pack", "log.json", "--parent", self.pack, cwd=folder).out.strip()
        draft = Path(msgspec.json.decode(ctx("fork", self.pack, "--json", cwd=folder).raw)["draft"])
        (folder / "draft.json").write_bytes(draft.read_bytes().replace(b"m-1", b"m-2"))
        with open_platform(Settings(cwd=str(folder))) as platform:
            export_packs(platform, [run.digest], str(folder / "whole.tar"))
        damage(self.manifest)


@pytest.fixture(scope="module")
def tampered(tmp_path_factory: pytest.TempPathFactory) -> Tampered:
    """Shared by all tests of a module: none of them changes it."""
    return Tampered(tmp_path_factory.mktemp("tampered"))


@cases(
    "line",
    [
        "show PACK",
        "show PACK --steps",
        "show PACK --json",
        "cat PACK",
        "cat PACK:outputs/report.md",
        "diff PACK CHILD",
        "diff CHILD PACK",
        "replay PACK",
        "replay PACK --recorded",
        "fork PACK",
        "finalize draft.json",
        "export PACK -o x.tar",
        "export CHILD -o x.tar",
        "pack log.json --parent PACK",
        "verify ./report.md",
    ],
)
def test_a_verb_that_reads_it_ends_as_untrusted_and_names_it(tampered: Tampered, line: str) -> None:
    args = [word.replace("PACK", tampered.pack).replace("CHILD", tampered.child) for word in line.split()]
    result = ctx(*args, cwd=tampered.folder)
    assert (result.status, result.raw) == (MODIFIED, b"")
    message = f"ctx://{tampered.pack.removeprefix('ctx://')[:12]}: its manifest was tampered with ("
    if "--json" in args:
        error = msgspec.json.decode(result.err)["error"]
        assert f"{error['at']}: {error['message']} (" == message
        assert (error["code"], error["details"]["damage"]) == ("object_corrupt", "tampered")
        assert error["details"]["digest"] == tampered.pack.replace("ctx://", "sha256:")
        assert error["details"]["place"] == str(tampered.manifest)
    else:
        assert result.err.startswith(f"ctx: object_corrupt: {message}")


def test_a_verb_that_lists_or_checks_it_marks_it(tampered: Tampered) -> None:
    digits = tampered.pack.removeprefix("ctx://")
    for listing in (("log",), ("log", tampered.child), ("search", "careful")):
        lines = ctx(*listing, cwd=tampered.folder).out.splitlines()
        (line,) = [line for line in lines if line.startswith(digits[:12])]
        assert "  [tampered with]" in line
        assert len(line) <= 80
        rows = msgspec.json.decode(ctx(*listing, "--json", cwd=tampered.folder).raw)
        (row,) = [pack for pack in rows.get("packs") or rows["hits"] if pack["ref"] == tampered.pack]
        assert (row["damage"], row["problem"].startswith("tampered with")) == ("tampered", True)
    assert f"Parent:    {digits[:12]} (tampered with)\n" in ctx("show", tampered.child, cwd=tampered.folder).out
    for ref, what in ((tampered.pack, "manifest"), (tampered.child, "parent")):
        result = ctx("verify", ref, cwd=tampered.folder)
        assert (result.status, "Integrity: modified" in result.out) == (MODIFIED, True)
        assert f"\n  modified  {what} ctx://{digits[:12]} was tampered with\n" in result.out
    damaged = ctx("fsck", cwd=tampered.folder)
    assert (damaged.status, f"corrupt   sha256:{digits}" in damaged.out) == (1, True)


def test_an_archive_brings_the_right_bytes_back(tmp_path: Path) -> None:
    tampered = Tampered(tmp_path)
    assert ctx("import", "whole.tar", cwd=tmp_path).status == 0
    assert ctx("verify", tampered.pack, cwd=tmp_path).status == 0


def test_a_line_of_parents_that_is_broken_is_told_apart_from_one_that_was_changed(tmp_path: Path) -> None:
    """A cycle is impossible: the manifest that closes it does not match its digest."""
    tampered = Tampered(tmp_path)
    child = tampered.child.removeprefix("ctx://")
    circle = (tmp_path / ".ctx" / "objects" / child[:2] / child[2:]).read_bytes()
    tampered.manifest.write_bytes(circle.replace(tampered.pack.removeprefix("ctx://").encode(), child.encode()))
    assert ctx("verify", tampered.child, cwd=tmp_path).status == MODIFIED
    tampered.manifest.unlink()
    missing = ctx("verify", tampered.child, cwd=tmp_path)
    assert missing.status == UNCHECKED
    assert f"  unchecked parent {tampered.pack[:18]} is missing\n" in missing.out
