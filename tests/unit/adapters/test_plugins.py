"""Plug-ins are entry points of installed packages: named like their tool, loaded when called, one for each name."""

from pathlib import Path

import pytest

from contextplane.adapters.tools.plugin_worker import plugin_tool, plugin_versions
from contextplane.ports.tools import ToolFailed, ToolRefused, ToolUnknown

CODE = "NOTHING = 1\ndef shout(parameters, workspace): return {**parameters, 'in': workspace}\n"


def install(folder: Path, name: str, points: str, version: str = "1.0") -> None:
    """A package as an installer leaves it."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (folder / f"{name}.py").write_text(CODE)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[contextplane.tools]\n{points}")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_plug_in_is_found_with_its_version_and_called_with_the_workspace(site: Path) -> None:
    install(site, "plugone", "shout881 = plugone:shout\n", version="2.5")
    assert plugin_versions()["shout881"] == "2.5"
    assert plugin_tool("shout881", "/the/root")({"text": "hey"}) == b'{"in":"/the/root","text":"hey"}'


def test_a_plug_in_that_is_no_function_or_is_not_there_is_told(site: Path) -> None:
    install(site, "plugone", "odd881 = plugone:NOTHING\ngone881 = plugone:absent\nlost881 = absent881:shout\n")
    with pytest.raises(ToolFailed, match="is no function"):
        plugin_tool("odd881", "/")
    with pytest.raises(AttributeError):
        plugin_tool("gone881", "/")
    with pytest.raises(ModuleNotFoundError):
        plugin_tool("lost881", "/")
    with pytest.raises(ToolUnknown):
        plugin_tool("nobody881", "/")


def test_two_plug_ins_of_one_name_are_refused_and_both_named(site: Path) -> None:
    install(site, "plugone", "shout881 = plugone:shout\n")
    install(site, "plugtwo", "shout881 = plugtwo:shout\n")
    with pytest.raises(ToolRefused, match=r"plugone:shout.*plugtwo:shout|plugtwo:shout.*plugone:shout"):
        plugin_tool("shout881", "/")


def test_one_plug_in_that_is_found_twice_is_one(site: Path) -> None:
    install(site, "plugone", "shout881 = plugone:shout\n", version="1.0")
    install(site, "plugone", "shout881 = plugone:shout\n", version="1.1")
    assert plugin_tool("shout881", "/")({}) == b'{"in":"/"}'
