"""--quiet prints names, contents and problems, and nothing else, for every verb.

test_cli.py tries every verb on a sound store. Here something is wrong, and is named all the same.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from contextplane.app.init import init
from contextplane.app.platform import open_platform
from contextplane.app.settings import Settings
from contextplane.model.ids import Digest
from tests.support.cases import cases
from tests.surfaces.commands import Result, ctx
from tests.surfaces.handoff_store import HandoffStore
from tests.surfaces.runs import LOG, packed, place

ID = "[0-9a-f]{64}"
CONTENTS = """\
ctx://WHOLE
ctx://WHOLE:system_prompt
      You are careful\\.
ctx://WHOLE:prompts/0
      Refund order 881
ctx://WHOLE:inputs/order\\.json
      {"id": 881}
ctx://WHOLE:steps/0
      {"id": 881}
ctx://WHOLE:steps/1
      It was delivered\\.
ctx://WHOLE:outputs/out/report\\.md
      # Refunded
"""


@dataclass(frozen=True)
class World:
    """A store with a sound run, two that lost an output, a tampered one, and an unreferenced object."""

    folder: Path
    whole: str
    hurt: str
    gone: str
    tampered: str
    stray: str

    def ctx(self, *args: str) -> Result:
        return ctx(*map(self.named, args), cwd=self.folder)

    def named(self, text: str) -> str:
        """The text with its words replaced by the digits they stand for."""
        for name in ("whole", "hurt", "gone", "tampered", "stray"):
            text = text.replace(name.upper(), getattr(self, name))
        return text


def overwrite(store: Path, digits: str) -> None:
    object_ = place(store, digits)
    object_.chmod(0o644)
    object_.write_bytes(b"x" + object_.read_bytes())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Shared by all tests of a module: their changes do not affect each other."""
    folder = tmp_path_factory.mktemp("quiet")
    init(Settings(cwd=str(folder)), ".")
    (folder / "order.json").write_text('{"id": 881}')
    (folder / "out").mkdir()
    (folder / "out" / "report.md").write_text("# Refunded\n")
    (folder / "log.json").write_text(json.dumps(LOG))
    assert ctx("pack", "log.json", "--sidecars", cwd=folder).status == 0
    (folder / "out" / "report.md").write_text("# Refused\n")
    whole = packed(folder)
    assert ctx("export", whole, "-o", "runs.tar", cwd=folder).status == 0
    step = {**LOG["steps"][0], "output": "another order"}
    hurt = packed(folder, steps=[step], outputs=[{"name": "lost.md", "content": "soon lost"}])
    tampered = packed(folder, system_prompt="Soon tampered with.")
    gone = packed(folder, outputs=[{"name": "out/report.md", "content": "soon gone"}])
    for content in (b"soon lost", b"soon gone"):
        place(folder, Digest.of(content).hex).unlink()
    overwrite(folder, tampered)
    draft = Path(json.loads(ctx("fork", whole, "--json", cwd=folder).out)["draft"])
    (folder / "draft.json").write_text(draft.read_text().replace("model-x", "model-y"))
    with open_platform(Settings(cwd=str(folder))) as platform:
        stray = platform.objects.put(b"nobody refers to it")
        with platform.catalog.write() as tx:
            tx.objects.record_blobs([(stray, 19)])
    return World(folder, whole, hurt, gone, tampered, str(stray))


@cases(
    ("args", "status", "out", "err"),
    [
        (["show", "WHOLE"], 0, r"ctx://WHOLE\n", ""),
        (["show", "HURT"], 0, r"ctx://HURT\nctx://HURT:outputs/lost\.md  \[missing.*\]\n", ""),
        (["show", "WHOLE", "--content"], 0, CONTENTS, ""),
        (
            ["show", "HURT", "--content"],
            0,
            r"ctx://HURT\n(.*\n)*ctx://HURT:outputs/lost\.md\n      \[missing.*\]\n",
            "",
        ),
        (["show", "TAMPERED"], 11, "", "ctx: object_corrupt: .*\n"),
        (["log"], 0, rf"(ctx://{ID}\n){{4,5}}", "ctx: ctx://TAMPERED: .*\n"),
        (["search", "soon"], 0, r"(ctx://(TAMPERED|HURT|GONE):\S+\n)+", "(ctx: ctx://TAMPERED:system_prompt: .*\n)"),
        (["cat", "WHOLE:outputs/out/report.md"], 0, "# Refunded\n", ""),
        (["diff", "WHOLE", "HURT"], 0, "", ""),
        (["diff", "WHOLE", "HURT", "--exit-code"], 12, "", ""),
        (["diff", "WHOLE", "GONE"], 0, r"\[output_drift\] .*out/report\.md.*\n", ""),
        (["replay", "WHOLE"], 0, "", ""),
        (["replay", "HURT"], 12, "  ≠ steps/0  read_file .*diverged\n", ""),
        (["replay", "HURT", "--recorded"], 1, r"  ✗ outputs/lost\.md .*failed: .*\n", ""),
        (["verify", "WHOLE"], 0, "", ""),
        (["verify", "HURT"], 10, r"  unchecked .*outputs/lost\.md .*\n", ""),
        (["verify", "TAMPERED"], 11, r"  modified  manifest .*\n", ""),
        (["verify", "out/report.md"], 11, r"  modified  out/report\.md \(expected .*, actual .*\)\n", ""),
        (["verify", "order.json"], 13, r"  unknown   order\.json .*\n", ""),
        (["fork", "WHOLE"], 0, r"/\S+/\.ctx/drafts/\S+\n", ""),
        (["export", "WHOLE", "-o", "again.tar"], 0, "", ""),
        (["import", "runs.tar"], 0, r"ctx://WHOLE\n", ""),
        (["pack", "log.json"], 0, r"ctx://WHOLE\n", ""),
        (["finalize", "draft.json"], 0, rf"ctx://{ID}\n", ""),
        (["gc", "--dry-run", "--grace", "0s"], 0, r"STRAY\n", ""),
        (["status"], 0, "", ""),
        (["fsck"], 1, rf"((missing|corrupt)   sha256:{ID}  .*\n(          needed by .*\n)*){{3}}", ""),
        (["lint", "bad.json"], 10, r"(error   .*\n +.*\n +-> .*\n)+", ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_quietly_a_verb_names_what_is_wrong_and_says_nothing_else(
    world: World, args: list[str], status: int, out: str, err: str
) -> None:
    (world.folder / "bad.json").write_text('{"pack_meta": {}}')
    result = world.ctx(*args, "--quiet")
    assert result.status == status, result
    assert re.fullmatch(world.named(out), result.out), result.out
    assert re.fullmatch(world.named(err), result.err), result.err


def test_quietly_a_lost_catalog_is_named_when_it_is_found_and_ever_after(tmp_path: Path) -> None:
    init(Settings(cwd=str(tmp_path)), ".")
    (tmp_path / ".ctx" / "catalog.db").write_bytes(b"no database")
    rebuilt = ctx("fsck", "--rebuild", "--quiet", cwd=tmp_path)
    assert (rebuilt.status, rebuilt.err) == (1, "")
    assert rebuilt.out.startswith("The catalog could not be used: ")
    assert "lost for ever" in rebuilt.out
    assert ctx("status", "--quiet", cwd=tmp_path).out.startswith("lost      the catalog was lost")
    assert ctx("fsck", "--quiet", cwd=tmp_path) == Result(0, b"", "")


def test_quietly_a_handoff_pack_that_was_tampered_with_is_named(tmp_path: Path) -> None:
    handed = HandoffStore(tmp_path)
    pack = handed.write()
    assert handed.ctx("show", pack.id, "--quiet").out == f"{pack.id}@1\n"
    assert handed.ctx("verify", pack.id, "--quiet") == Result(0, b"", "")
    overwrite(tmp_path, handed.object_of(pack).parent.name + handed.object_of(pack).name)
    damaged = handed.ctx("verify", pack.id, "--quiet")
    assert (damaged.status, damaged.err) == (11, "")
    assert re.fullmatch(r"  modified  .+\n", damaged.out)
