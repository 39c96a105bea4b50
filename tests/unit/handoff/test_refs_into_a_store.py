"""Refs lead to code: what a store keeps beside it, its keys above all, is never shown on a page."""

from pathlib import Path

import pytest

from contextplane.app.handoff.session import open_handoffs
from contextplane.app.init import init
from contextplane.app.settings import HandoffSettings, Settings
from contextplane.handoff.source import SourceRefused
from tests.unit.handoff.builders import a_ref

SHOWN_TO_NOBODY = "a key that nobody is shown"


def folder_with_stores(folder: Path) -> Settings:
    """Code, the store that is found there, and the one that packs are in."""
    init(Settings(cwd=str(folder)), ".")
    for store in (folder / ".ctx", folder / "packs" / ".ctx"):
        (store / "keys").mkdir(parents=True, exist_ok=True)
        (store / "keys" / "alice.key").write_text(SHOWN_TO_NOBODY, encoding="utf-8")
    (folder / "link").symlink_to(".ctx")
    (folder / "code.py").symlink_to("packs/.ctx/keys/alice.key")
    return Settings(cwd=str(folder), handoff=HandoffSettings(root=str(folder / "packs")))


@pytest.mark.parametrize(
    "path", [".ctx/keys/alice.key", "packs/.ctx/keys/alice.key", "link/keys/alice.key", "code.py", ".ctx/config.json"]
)
def test_a_ref_into_a_store_is_stale_with_its_reason(tmp_path: Path, path: str) -> None:
    with open_handoffs(folder_with_stores(tmp_path)) as handoffs:
        located = handoffs.source_reader().locate(a_ref(path=path))
        assert (located.state, located.code, located.why) == ("unreadable", (), "the path leads into a store")
        with pytest.raises(SourceRefused):
            handoffs.source_reader().lines(path)


def test_what_stands_beside_a_store_is_read(tmp_path: Path) -> None:
    (tmp_path / ".ctxrc").write_text("plain", encoding="utf-8")
    with open_handoffs(folder_with_stores(tmp_path)) as handoffs:
        assert handoffs.source_reader().lines(".ctxrc") == ("plain",)
